#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Requests that come while another CPU has the elevator lock are staged: none is
# left behind or needs a timer, each CPU's come into the scheduler in the order in
# which they came, and debugfs shows what is staged. Those that find the lock free are
# inserted at once.

. "$(dirname "$0")/common.sh"

LIMIT=10000	# ms
THREADS=4
SIZE=64		# MiB
ENOUGH=20	# times that requests are staged

# Requests of a CPU (each has its part of the disk) that were inserted, or
# issued, after one that got its request later.
order() {
	trace_awk -v part=$((SIZE * 2048 / THREADS)) '
	function late(last, s,	cpu) {
		cpu = int(s / part)
		if (seq[s] < last[cpu])
			return 1
		last[cpu] = seq[s]
		return 0
	}
	/ block_getrq: / { seq[sector()] = ++nr }
	sector() in seq && / block_rq_insert: / {
		inserted++; insert_late += late(last_insert, sector())
	}
	sector() in seq && / block_rq_issue: / {
		issued++; issue_late += late(last_issue, sector())
	}
	END { printf "inserted=%d insert_late=%d issued=%d issue_late=%d\n", inserted,
		insert_late, issued, issue_late }'
}

# debugfs is read until background_stop, once at least; bfq has no files there
read_debugfs() {
	local dir=/sys/kernel/debug/block/$1 none=1 files

	files=("$dir"/hctx0/{busy,dispatch,tags,cpu*/default_rq_list})
	[ "$2" = bfq ] || files+=("$dir"/sched/*)
	(
		trap 'exit $none' TERM
		while cat "${files[@]}" >/dev/null; do
			none=0
			sleep 0.02
		done
		exit 1
	) 2>>"$BLK_TMP" &
	bg+=($!)
}

# one_round DISK SCHED: adds to $staged and $prompt
one_round() {
	local disk=$1 sched=$2 r late delayed

	trace_start "$disk" block/block_{getrq,rq_insert,rq_issue} \
		blktest/{staged,delayed,delayed_all} || return
	read_debugfs "$disk" "$sched"
	load "$disk" -c -t $THREADS -d 16 -n 800 -r 0 -z ${SIZE}m -l $LIMIT &&
		background_stop || return
	trace_end
	trace_complete || return
	r=$(order) delayed=$(delayed_runs)
	((staged += $(stagings), prompt += $(prompt_runs)))
	note "$disk: $out"
	note "$disk: $staged times staged; $r; $delayed delayed runs"
	[ "$(value_of inserted "$r")" -ge 500 ] && [ "$(value_of issued "$r")" -ge 500 ] ||
		{ fail "only $r"; return; }
	late=$(value_of insert_late "$r")
	[ "$late" -eq 0 ] || { fail "$late were inserted after a later one of their CPU"; return; }
	late=$(value_of issue_late "$r")
	[ "$sched" = bfq ] || [ "$late" -eq 0 ] ||
		{ fail "$late were issued after a later one of their CPU"; return; }
	[ "$delayed" -eq 0 ] ||
		{ fail "$delayed runs of the queue were left to a timer"; return; }
	[ $staged -ge $ENOUGH ] || again "only $staged times staged"
}

# lock_free DISK: nobody holds the lock when a task alone inserts one by one
lock_free() {
	local inserted

	trace_start "$1" block/block_rq_insert blktest/staged && load "$1" -c -n 200 || return
	trace_end
	inserted=$(grep -c ' block_rq_insert: ' $TRACE/trace)
	note "$1: one by one: $(stagings) of $inserted staged"
	[ "$inserted" -ge 200 ] || { fail "one by one: only $inserted were inserted"; return; }
	[ $(($(stagings) * 2)) -le "$inserted" ] ||
		fail "one by one: $(stagings) of $inserted were staged"
}

stage() {
	local disk=$1 sched=$3 io=/sys/block/$1/queue/iosched staged=0 prompt=0

	# what is issued directly passes those that the dispatcher is about to take
	put "/sys/block/$disk/queue/nr_requests" 128 && put "$io/direct_issue" 0 || return
	echo 0 >"/sys/block/$disk/queue/rotational"
	if [ "$sched" = bfq ]; then
		# it runs the queue later for those that it idles for
		put "$io/slice_idle" 0 && put "$io/low_latency" 0 || return
	else
		# first come, first served
		put "$io/write_expire" 0 && put "$io/fifo_batch" 1 || return
	fi
	# the first batch of mq-deadline is in the order of sectors; let it be over
	load "$disk" -d 16 -n 64 -r 0 || return
	[ "$sched" = bfq ] || grep -qx 1 "/sys/kernel/debug/block/$disk/sched/batching" ||
		{ fail "no batch of the scheduler before the test"; return; }
	probe_delayed && probe_staged && lock_free "$disk" &&
		rounds one_round "$disk" "$sched" || return
	[ $prompt -gt 0 ] || fail "no run of the queue was seen, delayed or not"
}

NEEDS_DIRECT=1
start_tests
TEST_KINDS=null_blk
TEST_DEVS=
# One request at a time: the others wait
for_each_device stage hw_queue_depth=1 irqmode=2 completion_nsec=100000
finish_tests
