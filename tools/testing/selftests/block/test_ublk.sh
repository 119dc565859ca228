#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The process that is a disk's driver dies under load, and another one takes the disk
# over. The driver requeues the requests in flight, and the batches that arrive meanwhile,
# issued directly and through the scheduler: no data are lost, and no request is left.

. "$(dirname "$0")/common.sh"

SECS=${TEST_SECS:-2}
ENOUGH=20	# of each kind, that were requeued

# requeued: sets $waiting to how many requests wait until there is a server again
requeued() {
	waiting=$(grep -c . "/sys/kernel/debug/block/$disk/requeue_list")
}

more_requeued() {
	requeued
	[ "$waiting" -ge $((before + 16)) ]
}

# replaced: another server; batches of a new load find none. Those that go directly are
# all requeued; adds to $batches if these were seen.
replaced() {
	local dead=$ublk_pid waiting before

	kill -9 "$dead" && wait_until 30 gone "$dead" ||
		{ fail "the server does not die"; return; }
	sleep 0.5
	requeued
	before=$waiting
	background "$disk" -c -n 32 -d 32 -b 8 -o 128m
	! wait_until 3 more_requeued || batches=$((batches + direct))
	ublk_serve -q "${queues:-1}" -r "${disk#ublkb}"
}

servers() {
	local disk=$1 queues=${2#ublk} r n=0 batches=0 direct all back reads writes merged

	can_issue "$disk" && let_issue "$disk" "$3" || return
	trace_start "$disk" block/block_rq_{insert,issue,requeue,complete} || return
	data_begin "$disk" "$SECS"
	# beside fio: most of the requests of a batch are in flight
	background "$disk" -t 2 -d 32 -b 8 -o 64m
	until gone $fio && [ $n -ge 2 ]; do
		# the scheduler has what the servers of odd numbers leave
		direct=$(((n + 1) % 2))
		put "/sys/block/$disk/queue/iosched/direct_issue" $direct || return
		read_stat "$disk"
		wait_until 20 advanced "$disk" $((reads + writes + 200)) ||
			{ fail "nothing completes after $n servers"; return; }
		replaced || return
		n=$((n + 1))
	done
	data_end && background_stop || return
	trace_end
	trace_complete || return
	r=$(issued_directly)
	all=$(grep -c ' block_rq_requeue: ' $TRACE/trace) back=$(value_of back "$r")
	note "$disk: $n servers died, $batches loads without one: $r, $all in all came back"
	# bfq need not issue a load directly beside others; the driver of Linux 6.12
	# has no batches
	[ "$3" = bfq ] || [ $batches -gt 0 ] || ! symbol ublk_queue_rqs ||
		{ fail "no batch was requeued"; return; }
	[ "$back" -ge $ENOUGH ] && [ $((all - back)) -ge $ENOUGH ] ||
		fail "hardly one came back, of those issued directly or of others: $r of $all"
}

need_program fio
start_tests
TEST_DEVS=
only_kinds ublk ublk4
# requeued ones are dispatched again
requeues=/dev/null
for_each_device servers
finish_tests
