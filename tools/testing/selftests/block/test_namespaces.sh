#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Several namespaces of one NVMe controller share its tags: none is starved, each
# has a scheduler of its own, and data are kept, also when the controller was reset.
# And a namespace becomes larger and smaller while it is written.
#
# TEST_NAMESPACES="/dev/nvme1n1 /dev/nvme1n2 ...": four of one controller, whose
# content is lost

. "$(dirname "$0")/common.sh"

SECS=${TEST_SECS:-4}
LIMIT=1000	# ms, for an I/O of a disk whose neighbours are busy

find_namespaces() {
	local dev name

	disks=()
	for dev in $TEST_NAMESPACES; do
		name=$(basename "$dev")
		[ -e "/sys/block/$name" ] && unused "$name" || continue
		disks+=("$name")
	done
	[ ${#disks[@]} -ge 4 ] || skip "TEST_NAMESPACES has no 4 disks"
}

set_scheds() {
	local i scheds
	read -ra scheds <<<"$1"

	for i in "${!disks[@]}"; do
		set_sched "${disks[i]}" "${scheds[i % ${#scheds[@]}]}" || return
	done
}

all_idle() {
	local disk

	for disk in "${disks[@]}"; do
		all_back "$disk" || return
	done
}

# Each in turn sends few requests, while the others want all tags
fair() {
	local disk other

	for disk in "${disks[@]}"; do
		for other in "${disks[@]}"; do
			[ "$other" = "$disk" ] || background "$other" -t 2 -d 32 -b 8
		done
		load "$disk" -c -t 2 -s 2 -d 2 -r 50 -l $LIMIT || return
		note "$disk: $out"
		background_stop || return
		# four at a time, for two seconds, each in less than one
		[ "$(value_of ios "$out")" -ge 8 ] || { fail "$disk is starved: $out"; return; }
	done
}

# With queues of several types, a reset makes new hardware queues, every other time of
# what is left of old ones. They share their tags, too.
reset() {
	local n disk

	for n in 1 2; do
		put "/sys/block/${disks[0]}/device/reset_controller" 1 || return
		for disk in "${disks[@]}"; do
			! has_own_tags "$disk" || fail "$disk has new tags of its own" || return
		done
		reason=
	done
}

kept_on_all() {
	local disk pids=() status=0

	for disk in "${disks[@]}"; do
		data_begin "$disk" "$SECS" --numjobs=1
		pids+=($fio)
	done
	for fio in "${pids[@]}"; do
		data_end || status=1
	done
	return $status
}

namespaces() {
	set_scheds "$1" && reset && fair && kept_on_all && all_idle
}

has_size() {
	[ "$(cat "/sys/block/$1/size")" -eq "$2" ]
}

# resized DISK MIB: the target says so, and the driver asks how large it is now
resized() {
	truncate -s "$2M" "$NVMET_FILE" &&
		step "$1" "$NVMET/subsystems/$nvmet_made/namespaces/1/revalidate_size" 1 ||
		return
	wait_until 10 has_size "$1" $(($2 * 2048)) ||
		fail "$1 has $(cat "/sys/block/$1/size") sectors, and not $2 MiB"
}

resize() {
	local disk=$1 mib

	background "$disk" -d 4 -r 100 -z 8m
	data_begin "$disk" "$SECS"
	for mib in 64 16 128 32; do
		resized "$disk" $mib || break
	done
	data_end || return
	[ -z "$reason" ]
}

need_program fio
start_tests
FIRST_NAME=$TEST_NAME
if find_namespaces; then
	for scheds in "none mq-deadline bfq kyber" "mq-deadline bfq"; do
		namespaces "$scheds"
		status=$?
		background_stop
		set_scheds none
		result $status "schedulers $scheds"
	done
else
	result "$KSFT_SKIP" "several"
fi
TEST_NAME="namespaces resize"
for_nvme_loop resize 2
finish_tests
