#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A request that comes back from the driver goes to the head: it is tried again
# before the backlog, and of several the last one comes first.

. "$(dirname "$0")/common.sh"

DEPTH=4
BACKLOG=100		# what must wait in the scheduler for a requeue to count
BOUND=$((DEPTH + 32))	# what may have been chosen already
ROUNDS=5		# at most, until enough has been seen

# A requeue is block_rq_requeue; if block_rq_insert follows it went to the head of
# the scheduler, else it stayed in the dispatch list.  A try is an issue or the
# next requeue.  "overtaken" counts the tries of others while one waits.
analyse() {
	trace_awk -v enough=$BACKLOG '
	function tried(s,	o) {
		tries++
		if (s in since) {
			if (behind[s] >= enough) {
				heads++
				if (tries - since[s] - 1 > worst)
					worst = tries - since[s] - 1
			}
			for (o in since)
				if (o != s && since_nr[o] > since_nr[s]) newer++
				else if (o != s) older++
			delete since[s]
		}
	}
	/ block_rq_requeue: / { s = sector(); tried(s); back[s] = 1 }
	/ block_rq_insert: / {
		s = sector()
		if (s in back) {
			delete back[s]
			since[s] = tries; since_nr[s] = ++nr; behind[s] = waiting
		} else {
			waiting++
		}
	}
	/ block_rq_issue: / { s = sector(); tried(s); delete back[s]; waiting-- }
	END { printf "heads=%d overtaken=%d lifo=%d fifo=%d\n", heads, worst, older, newer }'
}

# at_head DISK KIND SCHED STAGED [LOAD-OPTION...]: STAGED is how often requests must
# be staged meanwhile
at_head() {
	local disk=$1 sched=$3 enough=$4 round r overtaken
	local heads=0 worst=0 lifo=0 fifo=0 staged=0 event=
	shift 4

	put "/sys/block/$disk/queue/nr_requests" 256 || return
	if [ "$enough" -eq 0 ]; then
		echo 2 >"/sys/block/$disk/queue/nomerges"
	else
		event=blktest/staged
		probe_staged || return
	fi
	null_fault "$disk" requeue 40 $MANY || return
	for ((round = 1; round <= ROUNDS; round++)); do
		trace_start "$disk" block/block_rq_{insert,issue,requeue} \
			${event:+"$event"} || return
		load "$disk" "$@" -z 256m || return
		trace_end
		trace_complete || return
		r=$(analyse)
		overtaken=$(value_of overtaken "$r")
		((worst = overtaken > worst ? overtaken : worst, staged += $(stagings),
		  heads += $(value_of heads "$r"), lifo += $(value_of lifo "$r"),
		  fifo += $(value_of fifo "$r")))
		[ $heads -lt 50 ] || [ $lifo -lt 20 ] || [ $staged -lt "$enough" ] || break
	done
	null_fault "$disk" requeue 0 0
	note "$sched: heads=$heads overtaken=$worst lifo=$lifo fifo=$fifo staged=$staged"
	[ $heads -ge 50 ] || { fail "only $heads requeues in front of a backlog"; return; }
	[ $staged -ge "$enough" ] || { fail "only $staged times staged"; return; }
	[ $worst -le $BOUND ] ||
		{ fail "$worst requests went before a requeued one"; return; }
	# A newer one can arrive just after the older one was chosen: seen in up to
	# one pair of six.
	[ $lifo -ge 20 ] && [ $((fifo * 2)) -le $lifo ] ||
		fail "of several at the head, $lifo newer and $fifo older ones came first"
}

one_by_one() {
	at_head "$@" 0 -t 1 -d 220 -b 16 -n 3000
}

# Many CPUs insert one by one: they stage
staging() {
	at_head "$@" 20 -c -t 4 -d 55 -n 600
}

start_tests
FIRST_NAME=$TEST_NAME
requeues=/dev/null
TEST_KINDS=null_blk
TEST_DEVS=
for_each_device one_by_one hw_queue_depth=$DEPTH irqmode=2 completion_nsec=1000000
TEST_NAME="at_head staging"
for_each_device staging hw_queue_depth=$DEPTH irqmode=2 completion_nsec=1000000
finish_tests
