#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two CPUs with one I/O each meet again and again, and none of these I/Os needs a
# timer to run the queue once more: whoever has to be told is told.
#
# They are issued directly, unless they meet. With mq-deadline those of the real-time
# class, and all on a rotational disk or with direct_issue=0, go through the scheduler.
# They are staged where its lock is taken, but on a rotational disk.

. "$(dirname "$0")/common.sh"

LIMIT=1000	# ms

meet() {
	local disk=$1 delayed staged
	shift

	trace_start "$disk" blktest/{delayed,delayed_all,staged} || return
	load "$disk" -c -B -l $LIMIT "$@" || return
	trace_end
	delayed=$(delayed_runs) staged=$(stagings)
	((prompt += $(prompt_runs)))
	note "$disk: $*: $out, $staged times staged, $delayed delayed runs"
	[ "$(value_of ios "$out")" -ge 20 ] || { fail "only $out"; return; }
	[ "$delayed" -eq 0 ] || fail "$*: $delayed runs of the queue were left to a timer"
}

wakeup() {
	local disk=$1 io=/sys/block/$1/queue/iosched rotational prompt=0

	# bfq runs the queue later for those that it idles for
	if [ "$3" = bfq ]; then
		put "$io/slice_idle" 0 && put "$io/low_latency" 0 || return
	fi
	probe_delayed && probe_staged || return
	for rotational in 0 1; do
		echo $rotational >"/sys/block/$disk/queue/rotational"
		meet "$disk" -t 2 -s 1 && meet "$disk" -t 2 -s 2 -d 3 -b 3 -r 50 || return
		meet "$disk" -t 2 -s 1 -P 1:0 || return
	done
	echo 0 >"/sys/block/$disk/queue/rotational"
	put "$io/direct_issue" 0 && meet "$disk" -t 2 -s 4 -d 3 -b 3 || return
	[ "$(stagings)" -gt 0 ] || { fail "none was staged"; return; }
	# Linux 6.12 has a plug for each bio: tasks run the queue themselves.
	[ $prompt -gt 0 ] || [[ $(uname -r) = 6.12.* ]] ||
		fail "no run of the queue was seen, delayed or not"
}

start_tests
TEST_KINDS=null_blk
TEST_DEVS=
for_each_device wakeup irqmode=0
finish_tests
