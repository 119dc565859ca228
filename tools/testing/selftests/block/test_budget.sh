#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# When nothing is in flight nobody holds a tag or a budget, whatever the device
# answered meanwhile: busy, queue full, aborted, timed out, try again.

. "$(dirname "$0")/common.sh"

# stress DISK: batches and single I/Os at once, more than the device takes
stress() {
	background "$1" -t 2 -d 1 -e
	load "$1" -t 4 -d 32 -b 8 -n 250 -r 50 -e && background_stop && all_back "$1"
}

null_faults() {
	local disk=$1

	null_fault "$disk" requeue 10 $MANY && stress "$disk" &&
		null_fault_end "$disk" requeue $MANY || return
	echo 300 >"/sys/block/$disk/queue/io_timeout"
	null_fault "$disk" timeout 1 5 && stress "$disk" && null_fault_end "$disk" timeout 5
}

# sdebug_stress DISK OPTS EVERY_NTH: what the host refuses comes back, or fails; that
# an abort is tried again is not seen. The host says that its queue is full only if it
# is, at the nth command.
sdebug_stress() {
	local refused

	trace_start "$1" block/block_rq_requeue || return
	echo "$2" >$SDEBUG/opts
	echo "$3" >$SDEBUG/every_nth
	stress "$1" || { fail "opts $2: $reason"; return; }
	trace_end
	refused=$(value_of errors "$out")
	((refused += $(grep -c ' block_rq_requeue: ' $TRACE/trace)))
	note "$1: opts $2: $out, $refused refused"
	sdebug_reset || return
	[ $refused -gt 0 ] || [ "$2" = 0x10000 ] || again "opts $2: nothing was refused"
}

# fewer commands for the disk than the host has tags; then with the host busy,
# the queue full, commands aborted
sdebug_faults() {
	local depth=/sys/block/$1/device/queue_depth

	put "$depth" 3 && stress "$1" && put "$depth" 16 || return
	rounds sdebug_stress "$1" 0x8000 7 && rounds sdebug_stress "$1" 0x800 7 &&
		# an abort stops the host for a while
		sdebug_stress "$1" 0x10000 201
}

budget() {
	local disk=$1 kind=$2

	stress "$disk" || return
	case $kind in
	null_blk) null_faults "$disk" || return ;;
	scsi_debug) sdebug_faults "$disk" || return ;;
	esac
	# all of it can still be had
	load "$disk" -t 1 -d 64 -b 32 -n 500
}

start_tests
requeues=/dev/null
SDEBUG_QUEUE=16
for_each_device budget hw_queue_depth=8
finish_tests
