#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Scheduler, depth and queues change while the disk is busy; I/O goes on.

. "$(dirname "$0")/common.sh"

# a step takes seconds here: null_blk goes through all, others through some
steps() {
	local disk=$1 kind=$2 sched=$3 q=/sys/block/$1/queue other
	local scheds="none" depths="4 64"

	if [ "$kind" = null_blk ]; then
		scheds="none mq-deadline bfq"
		depths="4 256 64"
	fi
	for other in $scheds; do
		step "$disk" "$q/scheduler" $other || return
		step "$disk" "$q/scheduler" "$sched" || return
	done
	for other in $depths; do
		step "$disk" "$q/nr_requests" $other || return
	done
	# each of these freezes the queue
	for other in 64 128; do
		step "$disk" "$q/max_sectors_kb" $other || return
	done
}

busy() {
	background "$1" -t 2 -d 1 "${@:2}"
	background "$1" -t 3 -d 16 -b 4 "${@:2}"
}

null_queues() {
	local disk=$1 n

	for n in 2 3 1; do
		step "$disk" "$NULLB/$disk/submit_queues" $n || return
	done
}

# CPUs come and go, only where that was asked for
cpus() {
	local disk=$1 kind=$2 cpu

	[ -n "$TEST_HOTPLUG" ] || return 0
	for cpu in /sys/devices/system/cpu/cpu[1-3]/online; do
		[ -e "$cpu" ] || continue
		[ "$kind" = null_blk ] || [[ $cpu = */cpu1/* ]] || continue
		step "$disk" "$cpu" 0 && step "$disk" "$cpu" 1 || return
	done
}

# busy_queue DISK QUEUE: one of its requests has never had a scheduler's tag
busy_queue() {
	[[ $(<"/sys/kernel/debug/block/$1/hctx$2/busy") = *in_flight*internal_tag=-1* ]]
}

# A CPU does not go offline before what was issued directly to its hardware queue, which
# goes with it, has completed.
offline() {
	local disk=$1 cpu=/sys/devices/system/cpu/cpu1/online queue

	[ -n "$TEST_HOTPLUG" ] || { skip "not asked to take CPUs away (TEST_HOTPLUG=1)"; return; }
	queue=$(grep -lx 1 "/sys/block/$disk/mq"/*/cpu_list) ||
		{ skip "no hardware queue is CPU 1's only"; return; }
	queue=$(basename "${queue%/cpu_list}")
	let_issue "$disk" "$3" || return
	background "$disk" -c -t 4 -d 2
	wait_until 10 busy_queue "$disk" "$queue" ||
		{ fail "CPU 1 issues nothing directly"; return; }
	put $cpu 0 || return
	! busy_queue "$disk" "$queue" || fail "CPU 1 is offline, its requests are not done"
	echo 1 >$cpu
	[ -z "$reason" ]
}

# the disk goes away under load: its I/O ends, with errors
removal() {
	put "$NULLB/$1/power" 0 || return
	wait "${bg[@]}"
	bg=()
	[ ! -e "/sys/block/$1" ] || { fail "$1 is still there"; return; }
	put "$NULLB/$1/power" 1 && wait_until 10 test -b "/dev/$1" ||
		fail "$1 does not come back"
}

lifecycle() {
	local disk=$1 kind=$2 sched=$3

	busy "$disk"
	steps "$disk" "$kind" "$sched" && cpus "$disk" "$kind" || return
	[ "$kind" = null_blk ] || return 0
	null_queues "$disk" && background_stop || return
	busy "$disk" -n 20000 -e
	sleep 0.5
	removal "$disk"
}

need_hotplug
start_tests
FIRST_NAME=$TEST_NAME
for_each_device lifecycle hw_queue_depth=32
TEST_NAME="lifecycle offline"
TEST_KINDS=null_blk
TEST_DEVS=
for_each_device offline submit_queues=4 hw_queue_depth=64 irqmode=2 completion_nsec=2000000000
finish_tests
