#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# All at once, while data are written and read back: the scheduler, the depth and
# the CPUs change, and the driver gives requests back.

. "$(dirname "$0")/common.sh"

SECS=10

faults() {
	local disk=$1

	case $2 in
	null_blk)
		null_fault "$disk" requeue "$3" -1 || skip "no fault injection in null_blk" ;;
	scsi_debug)
		if [ "$3" -eq 0 ]; then
			sdebug_reset
		else
			echo 0x8000 >$SDEBUG/opts
			echo 13 >$SDEBUG/every_nth
		fi ;;
	esac
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
}

stress() {
	local disk=$1 cpu status

	faults "$disk" "$2" 5 || return
	background "$disk" -t 2 -d 1 -r 100 -o 32m
	background "$disk" -d 16 -b 4 -r 100 -o 32m
	data_begin "$disk" "$SECS" --iodepth=8 --iodepth_batch_submit=4
	changes "$disk" "$3"
	status=$?
	for cpu in /sys/devices/system/cpu/cpu[1-3]/online; do
		[ -z "$TEST_HOTPLUG" ] || [ ! -e "$cpu" ] || echo 1 >"$cpu"
	done
	data_end || return
	faults "$disk" "$2" 0
	return $status
}

need_program fio
start_tests
requeues=/dev/null
TEST_DEVS=
only_kinds null_blk scsi_debug
SDEBUG_QUEUE=16
for_each_device stress hw_queue_depth=8 memory_backed=1
finish_tests
