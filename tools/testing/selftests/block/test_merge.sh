#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Merges that only the scheduler can find, since the neighbours come from
# different tasks or one by one, on a device that is slower than its load.
#
# The bounds are well below what the schedulers reached before dispatch was
# batched, and far above what is left if requests leave them too early.

. "$(dirname "$0")/common.sh"

# merges DISK BOUND NAME OPTION...; the best of a few rounds: on a busy machine a task
# may come too late to find its neighbour
merges() {
	rounds merge_round "$@"
}

merge_round() {
	local disk=$1 bound=$2 name=$3
	shift 3

	merged_since "$disk"
	load "$disk" -r 0 "$@" || return
	merged_since "$disk"
	note "$disk: $name: $percent % merged (bound $bound %)"
	[ $percent -ge "$bound" ] ||
		again "$name: only $percent % of the writes merged, bound $bound %"
}

# is_slow KIND: a device that is not slow leaves less time to find a neighbour, and one
# task alone may find none waiting
is_slow() {
	[ "$1" = null_blk ] || [ "$1" = scsi_debug ]
}

# tasks DISK KIND SCHED: loads whose neighbours come from one task and from several
tasks() {
	local disk=$1 few=30

	is_slow "$2" || few=10
	merges "$disk" $few "two tasks, alternate blocks" -t 2 -d 24 -n 1000 -p alternate || return
	one_task "$disk" "$2" || return
	# each reader that bfq idles for is a hole in which writes are not merged
	[ "$2 $3" != "scsi_debug bfq" ] || few=20
	background "$disk" -t 3 -d 4 -r 100 -o 64m
	merges "$disk" $few "two tasks, alternate blocks, random readers" \
		-t 2 -d 24 -n 500 -p alternate
}

# one_task DISK KIND
one_task() {
	merges "$1" 80 "plugged" -d 32 -b 32 -n 1500 -p seq || return
	is_slow "$2" || return 0
	merges "$1" 30 "one task, at the back" -d 32 -n 1000 -p seq &&
	merges "$1" 30 "one task, at the front" -d 32 -n 1000 -p reverse
}

# All go through the scheduler, and wait for its lock
rotational() {
	local disk=$1

	put "/sys/block/$disk/queue/nr_requests" 64 || return
	# bfq looks for neighbours in the queues of other tasks only on such a disk
	echo 1 >"/sys/block/$disk/queue/rotational"
	tasks "$@"
}

# Where bios get merged, those that follow are inserted, so that they are merged, too
follow() {
	local disk=$1

	counted_since "$disk"
	load "$disk" -r 0 -d 32 -n 1000 -p seq && load "$disk" -r 0 -d 32 -n 1000 -p reverse ||
		return
	counted_since "$disk"
	note "$disk: one task: ${since[direct]} issued directly, ${since[insert]} inserted"
	[ "${since[direct]}" -le "${since[insert]}" ] ||
		again "one task: ${since[direct]} issued directly, ${since[insert]} inserted"
}

# Some are issued directly, and some are staged
flash() {
	local disk=$1

	let_issue "$disk" "$3" && put "/sys/block/$disk/queue/nr_requests" 64 || return
	! has_direct "$disk" || counted_since "$disk"
	case $3 in
	bfq) one_task "$disk" "$2" ;;
	*) tasks "$@" ;;
	esac || return
	background_stop || return
	has_direct "$disk" || return 0
	counted_since "$disk"
	note "$disk: ${since[direct]} issued directly, ${since[insert]} inserted"
	[ "${since[direct]}" -gt 0 ] || { fail "nothing was issued directly"; return; }
	[ "$2" != null_blk ] || rounds follow "$disk"
}

# With nomerges 2 nothing merges, with 1 what the plug and the last request can take.
nomerges() {
	local disk=$1 queue=/sys/block/$1/queue

	put "$queue/nr_requests" 64 && put "$queue/nomerges" 2 || return
	merged_since "$disk"
	load "$disk" -r 50 -t 4 -d 8 -n 500 && load "$disk" -r 0 -d 32 -n 500 -p seq &&
		load "$disk" -r 0 -d 32 -b 32 -n 1500 -p seq || return
	merged_since "$disk"
	note "$disk: nomerges=2: $percent % merged"
	[ $percent -eq 0 ] || { fail "$percent % of the writes merged with nomerges=2"; return; }
	put "$queue/nomerges" 1 &&
	merges "$disk" 30 "nomerges=1, one task, at the back" -d 32 -n 1500 -p seq || return
	put "$queue/nomerges" 0 &&
	merges "$disk" 30 "nomerges=0, one task, at the front" -d 32 -n 1500 -p reverse
}

start_tests
FIRST_NAME=$TEST_NAME
SDEBUG_QUEUE=4
SDEBUG_NSEC=2000000
for_each_device rotational hw_queue_depth=4 irqmode=2 completion_nsec=2000000
TEST_NAME="merge flash"
for_each_device flash hw_queue_depth=4 irqmode=2 completion_nsec=2000000
TEST_NAME="merge nomerges"
TEST_KINDS=null_blk
TEST_DEVS=
for_each_device nomerges hw_queue_depth=4 irqmode=2 completion_nsec=2000000
finish_tests
