#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two CPUs with one I/O each meet again and again, and none of these I/Os needs a
# timer to run the queue once more: whoever has to be told is told.
#
# They are issued directly, unless they meet. With mq-deadline those of the real-time
# class, and all on a rotational disk or with direct_issue=0, go through the scheduler.
# They are staged where its lock is taken, but on a rotational disk.
#
# And a disk that starts while another one has all tags of both: none of its own I/Os
# completes, so somebody else has to tell it that a tag is free.

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

all_taken() {
	grep -q "^busy=$(tags_of "$1")\$" "/sys/kernel/debug/block/$1/hctx0/tags"
}

# The first one has a share only while it is active
second() {
	local disk=$1 other=bu$$ round

	null_make $other size=256 "${SHARED[@]}" && set_sched $other "$3" &&
		put /sys/block/$other/queue/io_timeout 1000 || return
	for round in 1 2 3; do
		# so that it is looked at after a second
		load $other -n 1 || return
		wait_until 20 tags_inactive $other || { fail "$other stays active"; return; }
		background "$disk" -t 4 -d $(($(tags_of "$disk") / 2)) -r 100
		wait_until 20 all_taken "$disk" || { fail "$disk has not all tags"; return; }
		load $other -n 1 -l $LIMIT || return
		note "$other beside $disk: $out"
		background_stop || return
	done
}

start_tests
TEST_KINDS=null_blk
TEST_DEVS=
FIRST_NAME=$TEST_NAME
for_each_device wakeup irqmode=0
TEST_NAME="wakeup second"
SHARED=(submit_queues=1 shared_tags=1 irqmode=2 completion_nsec=100000000)
for_each_device second "${SHARED[@]}"
finish_tests
