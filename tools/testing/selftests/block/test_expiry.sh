#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A read that has expired is served, though the device is full and others that
# come all the time are nearer: two streams run upwards, beyond the single reads.

. "$(dirname "$0")/common.sh"

EXPIRE=100	# ms
DEPTH=4
STREAMS="-t 2 -d 48 -b 8"
# those that the streams have waiting may be older; what the device has, a batch of
# the scheduler and one of the dispatcher may have been chosen before
BOUND=$((2 * 48 + DEPTH + 16 + 16))
BEYOND=65536	# sectors

# For each read: how many of the streams were issued after it had expired
analyse() {
	trace_awk -v expire=$EXPIRE -v beyond=$BEYOND '
	function now(	i) {
		for (i = 1; i < NF; i++)
			if ($i ~ /^[0-9]+\.[0-9]+:$/)
				return $i * 1000
	}
	function judge(	n) {
		seen++
		n = expired ? issued - first : 0
		if (n) late++
		if (n > worst) worst = n
		waiting = expired = 0
	}
	/ block_rq_insert: / {
		if (sector() < beyond) { waiting = 1; since = now() }
	}
	/ block_rq_issue: / {
		if (sector() >= beyond) {
			issued++
			if (waiting && !expired && now() > since + expire) {
				expired = 1; first = issued - 1
			}
		} else if (waiting)
			judge()
	}
	END {
		if (waiting) judge()
		printf "seen=%d late=%d worst=%d\n", seen, late, worst
	}'
}

expiry() {
	local disk=$1 queue=/sys/block/$1/queue r seen worst

	put "$queue/nr_requests" 256 && put "$queue/iosched/read_expire" $EXPIRE || return
	echo 2 >"$queue/nomerges"
	background "$disk" $STREAMS -r 100 -p seq -o 32m -z 192m
	sleep 0.5
	TRACE_CLOCK=mono trace_start "$disk" block/block_rq_{insert,issue} || return
	load "$disk" -s 5 -u 10000 -z 16m || return
	trace_end
	background_stop && trace_complete || return
	r=$(analyse)
	seen=$(value_of seen "$r") worst=$(value_of worst "$r")
	note "$disk: $r (bound $BOUND); $out"
	[ "$seen" -ge 5 ] || { fail "only $seen reads were inserted"; return; }
	[ "$(value_of late "$r")" -ge 1 ] ||
		{ fail "no read had to wait until it expired"; return; }
	[ "$worst" -le $BOUND ] ||
		fail "$worst requests were issued before a read that had expired"
}

start_tests
TEST_SCHEDS=mq-deadline
TEST_KINDS=null_blk
TEST_DEVS=
for_each_device expiry hw_queue_depth=$DEPTH irqmode=2 completion_nsec=1000000
finish_tests
