#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a task submits at once is collected in a plug: bios merge with any of its
# newest requests, large ones end it, they leave it in the order in which they
# came, and a queue with a scheduler does not slow down the others in it.

. "$(dirname "$0")/common.sh"

# merged DISK MEMBER LOW HIGH OPTION...: share of the writes at the member
merged() {
	local disk=$1 member=$2 low=$3 high=$4
	shift 4

	merged_since "$member"
	load "$disk" -r 0 -d 64 -b 32 -n 1600 "$@" || return
	merged_since "$member"
	note "$disk: $*: $percent % merged (from $low to $high)"
	[ "$percent" -ge "$low" ] && [ "$percent" -le "$high" ] ||
		fail "$*: $percent % of the writes merged"
}

# Sizes of the plugs that were flushed
plugs() {
	trace_awk '
	/ block_unplug: \[blkload\]/ { if ($NF == 2) two++; else other++ }
	END { printf "two=%d other=%d\n", two, other }'
}

# A plug ends with a large request: each of 4, small ones and large ones in
# turns, becomes two
large_ends() {
	local disk=$1 r

	trace_start "$disk" block/block_unplug || return
	load "$disk" -r 0 -d 4 -b 4 -B -n 400 -k 4k,128k -z 64m || return
	trace_end
	r=$(plugs)
	note "$disk: plugs $r"
	# the task may be preempted, which flushes the plug
	[ "$(value_of two "$r")" -ge 180 ] && [ "$(value_of other "$r")" -le 40 ] ||
		fail "a large request does not end the plug: $r"
}

# Requests that were issued after one that got its request later
late() {
	trace_awk '
	/ block_getrq: / { seq[sector()] = ++nr }
	/ block_rq_issue: / && sector() in seq {
		s = sector(); issued++
		if (seq[s] < last) late++; else last = seq[s]
	}
	END { printf "issued=%d late=%d\n", issued, late }'
}

in_order() {
	local disk=$1 member=$2 r
	shift 2

	trace_start "$member" block/block_{getrq,rq_issue} "$@" || return
	load "$disk" -r 0 -d 32 -b 32 -B -n 1600 -z 64m || return
	trace_end
	trace_complete || return
	r=$(late)
	note "$disk: $r"
	[ "$(value_of issued "$r")" -ge 500 ] && [ "$(value_of late "$r")" -eq 0 ] ||
		fail "not issued in the order of submission: $r"
}

plug() {
	local disk=$1 sched=$3 streams

	for streams in 1 2 4; do
		merged "$disk" "$disk" 80 100 -p seq -i $streams || return
	done
	merged "$disk" "$disk" 0 5 || return
	large_ends "$disk" || return
	# the schedulers sort what bypasses them
	[ "$sched" != none ] || in_order "$disk" "$disk"
}

# A page has two buffers, which are written one by one: they merge, and neighbours
# are rare
buffered() {
	local disk=$1 file

	command -v fio >/dev/null || { skip "no program fio"; return; }
	# its size is that of all buffers of the disk, until nobody has it open
	exec {file}<>"/dev/$disk" && blockdev --setbsz 2048 "/dev/$disk" ||
		{ fail "cannot have buffers of 2 KiB"; return; }
	merged_since "$disk"
	fio --name=buffered --filename="/dev/$disk" --rw=randwrite --bs=4k \
		--ioengine=psync --fsync=64 --size=64m --io_size=4m >"$BLK_TMP" 2>&1 ||
		{ fail "fio: $(head -3 "$BLK_TMP")"; return; }
	merged_since "$disk"
	exec {file}>&-
	note "$disk: $percent % merged"
	[ $percent -ge 45 ] && [ $percent -le 60 ] || fail "$percent % of the buffers merged, and not half"
}

# Two members, of which the second one has a scheduler
stack() {
	local disk=$1 sched=$2 batches streams

	null_make "$disk"b size=256 submit_queues=1 && set_sched "$disk" none &&
		set_sched "$disk"b "$sched" && probe_batches null_blk || return
	md_make "$$" 4 "$disk" "$disk"b || return
	for streams in 1 2 4; do
		merged md_$$ "$disk" 70 100 -p seq -i $streams || return
	done
	merged md_$$ "$disk" 0 5 || return
	in_order md_$$ "$disk" blktest/batch || return
	batches=$(grep -c ' batch: ' $TRACE/trace)
	note "$disk: $batches batches"
	# 50 plugs, all of them with requests for the first member
	[ "$batches" -ge 45 ] ||
		{ fail "only $batches batches went to the driver"; return; }
	all_back "$disk"b
}

stacked() {
	local status

	stack "$1" "$3"
	status=$?
	trace_stop
	md_remove_all
	return $status
}

# More streams and queues than are remembered: the oldest of a queue is tried, too
spread() {
	local disk=$1 i members=

	for i in b c d; do
		null_make "$disk$i" size=256 && set_sched "$disk$i" none || return
		members+=" $disk$i"
	done
	md_make "$$" 4 "$disk" $members || return
	merged md_$$ "$disk" 20 100 -p seq -i 3
}

spreads() {
	local status

	spread "$1"
	status=$?
	md_remove_all
	return $status
}

start_tests
FIRST_NAME=$TEST_NAME
TEST_KINDS=null_blk
TEST_DEVS=
schedulers=$TEST_SCHEDS
TEST_SCHEDS="none $schedulers"
for_each_device plug max_sectors=2560
TEST_NAME="plug buffered"
for_each_device buffered max_sectors=2560
TEST_NAME="plug spread"
TEST_SCHEDS=none
for_each_device spreads
TEST_NAME="plug stacked"
for TEST_SCHEDS in $schedulers; do
	for_each_device stacked
done
finish_tests
