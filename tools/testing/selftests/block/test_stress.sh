#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# All at once, while data are written and read back: the scheduler, the depth and
# the CPUs change, and the driver gives requests back.

. "$(dirname "$0")/common.sh"

SECS=10

# what the driver gives back is seen
faults() {
	trace_start "$1" block/block_rq_requeue || return
	case $2 in
	null_blk) null_fault "$1" requeue 5 $MANY ;;
	scsi_debug)
		echo 0x8000 >$SDEBUG/opts
		echo 13 >$SDEBUG/every_nth ;;
	esac
}

no_faults() {
	local back

	case $2 in
	null_blk) null_fault "$1" requeue 0 0 ;;
	scsi_debug) sdebug_reset ;;
	esac
	trace_end
	back=$(grep -c ' block_rq_requeue: ' $TRACE/trace)
	note "$1: $back came back"
	[ "$back" -gt 0 ] || fail "the driver gave nothing back"
}

# changes DISK SCHED: one after the other while I/O goes on, until fio has ended
changes() {
	local disk=$1 sched=$2 q=/sys/block/$1/queue others cpu n=0

	others=(none mq-deadline bfq)
	while ! gone $fio; do
		step "$disk" "$q/scheduler" "${others[n % 3]}" &&
			step "$disk" "$q/scheduler" "$sched" &&
			step "$disk" "$q/nr_requests" $((n % 2 ? 128 : 8)) || return
		n=$((n + 1))
		cpu=/sys/devices/system/cpu/cpu$((n % 3 + 1))/online
		[ -n "$TEST_HOTPLUG" ] && [ -e "$cpu" ] || continue
		step "$disk" "$cpu" 0 && step "$disk" "$cpu" 1 || return
	done
	note "$disk: $n rounds of changes"
	[ $n -gt 0 ] || fail "nothing was changed"
}

stress() {
	local disk=$1 cpu changed

	faults "$disk" "$2" || return
	background "$disk" -t 2 -d 1 -r 100 -o 32m
	background "$disk" -d 16 -b 4 -r 100 -o 32m
	data_begin "$disk" "$SECS" --iodepth=8 --iodepth_batch_submit=4
	changes "$disk" "$3"
	changed=$?
	for cpu in /sys/devices/system/cpu/cpu[1-3]/online; do
		[ -z "$TEST_HOTPLUG" ] || [ ! -e "$cpu" ] || echo 1 >"$cpu"
	done
	data_end && [ $changed -eq 0 ] && no_faults "$disk" "$2"
}

need_program fio
need_hotplug
start_tests
requeues=/dev/null
TEST_DEVS=
only_kinds null_blk scsi_debug
SDEBUG_QUEUE=16
for_each_device stress hw_queue_depth=8 memory_backed=1
finish_tests
