#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The NVMe driver below the schedulers: no command id twice in flight, commands
# whose completion is lost, also when these have all tags, a controller that is
# removed and found again, one whose queues become fewer and more, and one that is
# reset while nothing is in flight.
#
# TEST_NAMESPACES: see test_namespaces.sh

. "$(dirname "$0")/common.sh"

SECS=${TEST_SECS:-8}
WRITE_QUEUES=/sys/module/nvme/parameters/write_queues
FAULT=/sys/kernel/debug/fail_io_timeout
KEEP="--size=8m --iodepth=16"	# what the removed disk has to keep

# ids DISK: from the trace; a completion is seen before its id is free again
ids() {
	awk -v name="disk=$1" '
	# "nvme0: disk=nvme0n1, qid=1, cmdid=20490, ...", where the upper 4 bits count
	{
		gsub(",", "")
		what = qid = id = ""
		for (i = 1; i <= NF; i++) {
			if ($i ~ /^nvme_(setup_cmd|complete_rq):$/)
				what = $i
			else if ($i == name)
				mine[NR] = 1
			else if ($i ~ /^qid=/)
				qid = $i
			else if ($i ~ /^cmdid=/)
				id = substr($i, 7) % 4096
		}
		if (!(NR in mine))
			next
	}
	what == "nvme_setup_cmd:" {
		commands++
		twice += (qid, id) in flying
		flying[qid, id] = 1
		if (++now > most)
			most = now
	}
	what == "nvme_complete_rq:" { now--; delete flying[qid, id] }
	END { printf "commands=%d twice=%d most=%d\n", commands, twice, most }
	' $TRACE/trace
}

unique() {
	local disk=$1 r

	[ -d /sys/kernel/tracing/events/nvme ] || { skip "no events of NVMe"; return; }
	let_issue "$disk" "$3"
	trace_start "$disk" nvme/nvme_{setup_cmd,complete_rq} || return
	load "$disk" -t 4 -d 16 -r 50 -n 500 || return
	trace_end
	trace_complete || return
	r=$(ids "$disk")
	note "$disk: $r"
	[ "$(value_of commands "$r")" -ge 1500 ] && [ "$(value_of most "$r")" -ge 4 ] ||
		{ fail "too few commands seen: $r"; return; }
	[ "$(value_of twice "$r")" -eq 0 ] || fail "a command id is twice in flight: $r"
}

may_lose() {
	[ -d $FAULT ] && [ -e "/sys/block/$1/io-timeout-fail" ] ||
		skip "no fault injection of timeouts"
}

# lose_completions DISK TIMES [ONE_OF]
lose_completions() {
	echo $(($2 > 0)) >"/sys/block/$1/io-timeout-fail"
	echo "${3:-1000}" >$FAULT/interval
	echo 0 >$FAULT/verbose
	echo "$2" >$FAULT/times
	echo $((100 * ($2 > 0))) >$FAULT/probability
}

timed_out() {
	dmesg | grep -c "nvme.*timeout"
}

# The driver aborts a command, and resets the controller if that does not help
timeouts() {
	local disk=$1 before seen status

	may_lose "$disk" || return
	let_issue "$disk" "$3"
	before=$(cat "/sys/block/$disk/queue/io_timeout")
	put "/sys/block/$disk/queue/io_timeout" 1000 || return
	seen=$(timed_out)
	lose_completions "$disk" 3
	data_is_kept "$disk" --numjobs=2 --size=2m --offset_increment=4m --iodepth=16 \
		--iodepth_batch_submit=8 --time_based --runtime=$SECS
	status=$?
	lose_completions "$disk" 0
	echo "$before" >"/sys/block/$disk/queue/io_timeout"
	seen=$(($(timed_out) - seen))
	note "$disk: $seen timeouts"
	[ $status -eq 0 ] || return $status
	[ "$seen" -ge 1 ] || fail "no command timed out"
}

no_tag_listed() {
	grep -qs "\.tag=-1" "/sys/kernel/debug/block/$1"/hctx*/dispatch
}

# Sets $neighbours to the other disks of the controller, which share the tags of $1
find_neighbours() {
	local dev name

	neighbours=()
	has_own_tags "$1" && return
	for dev in $TEST_NAMESPACES; do
		name=${dev##*/}
		if [ "$name" != "$1" ] && unused "$name" &&
		   [ "/sys/block/$name/device" -ef "/sys/block/$1/device" ]; then
			neighbours+=("$name")
		fi
	done
	[ ${#neighbours[@]} -gt 0 ] || return "$KSFT_SKIP"
	reason=
}

# hold_all_tags DISK TAGS
hold_all_tags() {
	local disk=$1 tags=$2 name pid reads writes merged status

	for name in "${neighbours[@]}"; do
		load "$name" -c -n 1 || return
	done
	for name in "${neighbours[@]}"; do
		wait_until 20 tags_inactive "$name" || fail "$name stays active" || return
	done
	read_stat "$disk"
	"$BLKLOAD" -f 4000 -c -d $((tags + 8)) -b $((tags + 8)) -n $((tags + 8)) \
		"/dev/$disk" >"$BLK_TMP" 2>&1 &
	pid=$!
	# that of -f
	wait_until 10 advanced "$disk" $((reads + writes)) ||
		fail "the first read did not end" || return
	lose_completions "$disk" $MANY 1
	counted_since "$disk" || return
	wait_until 10 no_tag_listed "$disk" || fail "no request waits for a tag"
	status=$?
	counted_since "$disk"
	for name in "${neighbours[@]}"; do
		background "$name" -c -r 100 -n 1
	done
	for name in "${neighbours[@]}"; do
		wait_until 5 tags_active "$name" || fail "$name is not active" || status=1
	done
	lose_completions "$disk" 0
	wait $pid || fail "$(<"$BLK_TMP")" || status=1
	background_stop || status=1
	note "$disk: ${since[direct]} of $((tags + 8)) reads issued directly, $tags tags," \
		"${#neighbours[@]} other disks"
	[ $status -eq 0 ] || return $status
	[ "${since[direct]}" -eq "$tags" ] ||
		fail "only ${since[direct]} of $tags tags in use directly"
}

# What was issued directly has all tags when the controller is reset, and is listed
# with them behind a request that waits for one: if not because all tags are taken,
# then because other disks begin, and the share of this one is smaller now.
all_tags() {
	local disk=$1 tags name status neighbours
	local -A before

	may_lose "$disk" || return
	find_neighbours "$disk" || return
	tags=$(tags_of "$disk")
	[ "$tags" -ge 64 ] && [ "$tags" -le 512 ] || { skip "$tags tags"; return; }
	let_issue "$disk" "$3"
	put "/sys/block/$disk/queue/nr_requests" $((2 * tags)) || return
	for name in "$disk" "${neighbours[@]}"; do
		before[$name]=$(<"/sys/block/$name/queue/io_timeout")
		put "/sys/block/$name/queue/io_timeout" 1000
	done
	hold_all_tags "$disk" "$tags"
	status=$?
	lose_completions "$disk" 0
	for name in "${!before[@]}"; do
		echo "${before[$name]}" >"/sys/block/$name/queue/io_timeout"
	done
	return $status
}

# found DEVICE NSID: sets $again to the disk that is this namespace; its name may
# be another one than before
found() {
	local file

	for file in "$1"/nvme/nvme*/nvme*n*/nsid; do
		again=$(basename "$(dirname "$file")")
		[ "$(cat "$file" 2>/dev/null)" != "$2" ] || [ ! -b "/dev/$again" ] || return 0
	done
	return 1
}

# Errors while it is away are no error
removed() {
	local disk=$1 sched=$3 device nsid again pid status

	device=$(readlink -f "/sys/block/$disk/device/device")
	[ -w "$device/remove" ] || { skip "$disk is not on PCI"; return; }
	nsid=$(cat "/sys/block/$disk/nsid")
	# shellcheck disable=SC2086
	data_is_kept "$disk" $KEEP || return
	"$BLKLOAD" -e -t 3 -d 16 -r 50 -o 32m -s 600 "/dev/$disk" >/dev/null 2>&1 &
	pid=$!
	sleep 2
	echo 1 >"$device/remove"
	kill $pid
	wait_until 30 gone $pid || fail "I/O on a disk that is gone does not end"
	status=$?
	put /sys/bus/pci/rescan 1
	[ $status -eq 0 ] || return $status
	wait_until 30 found "$device" "$nsid" && wait_until 30 test -b "/dev/$disk" ||
		{ fail "$disk is not found again"; return; }
	# it is still being made when it can be seen
	wait_until 10 set_sched "$again" "$sched" || return
	reason=
	# shellcheck disable=SC2086
	data_is_kept "$again" $KEEP --verify_only
}

# In the background, and reads that do not end with it. An emulated controller loses
# interrupts when CPUs go offline: the driver looks by itself when a command is late,
# and that is no error here; what was not issued at all remains one.
busy() {
	put "/sys/block/$1/queue/io_timeout" 3000 || return
	background "$1" -d 4 -r 100 -o 32m -l 15000
	data_begin "$1" "$SECS"
}

calm() {
	data_end && background_stop || return
	put "/sys/block/$1/queue/io_timeout" 30000
}

# reset_with DISK WRITE_QUEUES: the driver looks at the number when it resets
reset_with() {
	put $WRITE_QUEUES "$2" && step "$1" "/sys/block/$1/device/reset_controller" 1 ||
		return
	counts+=" $(find "/sys/block/$1/mq" -mindepth 1 -maxdepth 1 -type d | wc -l)"
}

# The number of hardware queues changes, while a CPU is there or is not
queues() {
	local disk=$1 before n cpu=/sys/devices/system/cpu/cpu1/online counts=

	before=$(cat $WRITE_QUEUES)
	[ "$before" -gt 0 ] && [ -w "/sys/block/$disk/device/reset_controller" ] ||
		{ skip "no queues that can be taken away (nvme.write_queues=2)"; return; }
	let_issue "$disk" "$3"
	busy "$disk" || return
	for n in 0 "$before"; do
		reset_with "$disk" "$n" || break
		[ -n "$TEST_HOTPLUG" ] && [ -e $cpu ] || continue
		step "$disk" $cpu 0 && reset_with "$disk" "$n" && step "$disk" $cpu 1 || break
	done
	[ ! -e $cpu ] || [ -z "$TEST_HOTPLUG" ] || echo 1 >$cpu
	echo "$before" >$WRITE_QUEUES
	calm "$disk" || return
	note "$disk: hardware queues:$counts"
	[ -z "$reason" ] || return 1
	[ "$(tr ' ' '\n' <<<"${counts# }" | sort -u | wc -l)" -ge 2 ] ||
		fail "the number of hardware queues did not change:$counts"
}

# A driver quiesces its queues for a reset. What is inserted meanwhile is issued when
# it is over, though nothing completes then that would run the queue.
inserted_in_reset() {
	local disk=$1 n

	background "$disk" -c -t 2 -u 5000 -r 100 -l 15000
	for n in 1 2 3 4 5 6; do
		step "$disk" "/sys/block/$disk/device/reset_controller" 1 || return
	done
	background_stop
}

need_program fio
need_hotplug
start_tests
TEST_KINDS=nvme
requeues=/dev/null
FIRST_NAME=$TEST_NAME
TEST_NAME="nvme ids"
for_each_device unique
TEST_NAME="nvme timeouts"
for_each_device timeouts
TEST_NAME="nvme all tags"
for_each_device all_tags
TEST_NAME="nvme removed"
for_each_device removed
TEST_NAME="nvme queues"
for_each_device queues
TEST_NAME="nvme reset"
for_nvme_loop inserted_in_reset 1
finish_tests
