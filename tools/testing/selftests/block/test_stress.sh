#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# All at once, while data are written and read back: the scheduler, the depth, the
# queues, the CPUs and the groups change, with priorities, flushes and passthrough,
# and the driver gives requests back. A second disk beside it times out, fails, and
# goes away under load.
#
# TEST_SECS: for so long on each disk with each scheduler; then on virtio_blk, too.
# TEST_SEED: the changes begin the same again.

. "$(dirname "$0")/common.sh"

SECS=${TEST_SECS:-10}
SEED=${TEST_SEED:-$RANDOM}

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
	[ "$back" -gt 0 ] || [[ $2 != null_blk && $2 != scsi_debug ]] ||
		fail "the driver gave nothing back"
}

# The driver of the second disk never sleeps: requests are issued directly and left in
# software queues. It has a write cache if it can keep data without sleeping: then
# flushes reach the driver, too.
second=bt$$x

second_begin() {
	local pid

	put "$NULLB/$second/power" 1 && wait_until 10 test -b "/dev/$second" &&
		put "/sys/block/$second/queue/io_timeout" 300 &&
		set_sched "$second" "$1" && let_issue "$second" "$1" || return
	second_faults 3 1 || return
	background "$second" -n 20000 -t 3 -d 16 -b 4 -e
	background "$second" -n 20000 -t 2 -d 1 -e -P 2:4,1:0
	background "$second" -n 2000 -x fsync -u 2000 -e
	# it may go away at once
	for pid in "${bg[@]: -3}"; do
		wait_until 10 begun "$pid" || { fail "a load does not begin"; return; }
	done
}

# begun PID: it has opened the disk and made its threads; or has ended, of which
# background_stop tells
begun() {
	local threads=("/proc/$1/task/"*)

	[ ${#threads[@]} -ge 2 ] || gone "$1"
}

second_make() {
	local memory=()

	! null_has prealloc || memory=("${NULL_KEEPS[@]}" cache_size=16)
	null_make $second size=256 submit_queues=2 hw_queue_depth=64 irqmode=2 \
		completion_nsec=100000 badblocks=+1000-1063 "${memory[@]}" &&
		second_begin "$1"
}

# flushed: a flush of the second disk has reached its driver
flushed() {
	local stat

	read -ra stat <"/sys/block/$second/stat"
	[ "${stat[15]}" -gt 0 ]
}

second_flushes() {
	! grep -q "write back" "/sys/block/$second/queue/write_cache" ||
		wait_until 20 flushed || fail "no flush reaches the driver of $second"
}

second_faults() {
	null_fault "$second" requeue "$1" "$MANY" && null_fault "$second" timeout "$2" "$MANY"
}

# what is in flight ends, with errors
second_away() {
	second_faults 0 0 && put "$NULLB/$second/power" 0 || return
	[ ! -e "/sys/block/$second" ] || { fail "$second is still there"; return; }
	second_begin "$1"
}

second_remove() {
	[ -d "$NULLB/$second" ] || return 0
	second_faults 0 0
	put "$NULLB/$second/power" 0
	rmdir "$NULLB/$second"
}

# groups for all that run here
groups_make() {
	groups=$(mktemp -d)
	mount -t cgroup2 none "$groups" 2>>"$BLK_TMP" &&
		echo +io >"$groups/cgroup.subtree_control" &&
		mkdir "$groups"/blktest{1,2} || groups=
	[ -z "$groups" ] || ! [ -e "$groups/blktest1/io.bfq.weight" ] ||
		echo 300 >"$groups/blktest1/io.bfq.weight"
}

groups_remove() {
	[ -z "$groups" ] || { rmdir "$groups"/blktest[12]; umount "$groups"; rmdir "$groups"; }
}

# any WORD...: sets $any to one of them
any() {
	any=${*:RANDOM % $# + 1:1}
}

# change DISK KIND SCHED: one of many; I/O goes on after it
change() {
	local disk=$1 kind=$2 sched=$3 q=/sys/block/$1/queue cpu burst pid

	any scheduler depth size queues cpu burst scheduler cpu burst group second
	case $any in
	scheduler)
		any none mq-deadline kyber bfq
		step "$disk" "$q/scheduler" "$any" && step "$disk" "$q/scheduler" "$sched" ;;
	depth)
		[ "$sched" = none ] && any 4 6 8 || any 4 8 64 128
		step "$disk" "$q/nr_requests" "$any" ;;
	size)	# freezes the queue
		any 64 128
		step "$disk" "$q/max_sectors_kb" "$any" ;;
	queues)
		any 1 2 3
		[ "$kind" != null_blk ] ||
			step "$disk" "$NULLB/$disk/submit_queues" "$any" ;;
	cpu)
		any 1 2 3
		cpu=/sys/devices/system/cpu/cpu$any/online
		[ -z "$TEST_HOTPLUG" ] || [ ! -e "$cpu" ] ||
			{ step "$disk" "$cpu" 0 && step "$disk" "$cpu" 1; } ;;
	burst)
		burst=("-x fsync" "-y -r 0" "-P 1:0,3:0 -t 4" "-P 2:0 -d 4 -b 2")
		[ "$kind" != scsi_debug ] || burst+=("-x sg")
		[ "$kind" != virtio_blk ] || burst+=("-x read:/sys/block/$disk/serial")
		any "${burst[@]}"
		# shellcheck disable=SC2086
		background "$disk" -s 1 -o 32m $any
		sleep 0.5
		step "$disk" /dev/null "" ;;
	group)
		any "${bg[@]}"
		pid=$any
		any . blktest1 blktest2
		# it may have ended
		[ -z "$groups" ] || { echo "$pid" >"$groups/$any/cgroup.procs"; } 2>/dev/null
		step "$disk" /dev/null "" ;;
	second) second_away "$sched" ;;
	esac
}

# changes DISK KIND SCHED: one after the other while I/O goes on, until fio has ended
changes() {
	local disk=$1 n=0

	while ! gone $fio; do
		change "$@" || return
		n=$((n + 1))
	done
	note "$disk: $n changes"
	[ $n -gt 0 ] || fail "nothing was changed"
}

under_stress() {
	local disk=$1 cpu changed

	let_issue "$disk" "$3" && faults "$disk" "$2" && second_make "$3" || return
	background "$disk" -t 2 -d 1 -r 100 -o 32m
	background "$disk" -d 16 -b 4 -r 100 -o 32m
	data_begin "$disk" "$SECS" --iodepth=8 --iodepth_batch_submit=4
	changes "$@"
	changed=$?
	for cpu in /sys/devices/system/cpu/cpu[1-3]/online; do
		[ -z "$TEST_HOTPLUG" ] || [ ! -e "$cpu" ] || echo 1 >"$cpu"
	done
	data_end && [ $changed -eq 0 ] && no_faults "$disk" "$2" && second_flushes &&
		background_stop && all_back $second
}

stress() {
	local status

	RANDOM=$SEED
	under_stress "$@"
	status=$?
	background_stop
	second_remove
	return $status
}

need_program fio
need_hotplug
start_tests
note "TEST_SEED=$SEED"
requeues=/dev/null
only_kinds null_blk scsi_debug ${TEST_SECS:+virtio_blk}
[ -n "$TEST_SECS" ] || TEST_DEVS=
groups_make
# enough for some that are issued directly, too few for all; null_blk with memory may sleep
SDEBUG_QUEUE=32
for_each_device stress hw_queue_depth=8 memory_backed=1
groups_remove
finish_tests
