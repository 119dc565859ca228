#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A request that comes back from the driver goes to the head: it is tried again
# before the backlog, and of several the last one comes first.
#
# Insertion and choice are seen inside the scheduler's lock.

. "$(dirname "$0")/common.sh"

BACKLOG=100		# what must wait in the scheduler for a requeue to count

# probe_chosen SCHED
probe_chosen() {
	local fn symbol

	case $1 in
	mq-deadline) fn=dd_dispatch_request ;;
	bfq) fn=bfq_dispatch_request ;;
	esac
	symbol "$fn" && [ -e $PROBES ] &&
		echo "r100:blktest/chosen $symbol sector=+48(\$retval):u64" >>$PROBES ||
		skip "no probe for the requests that $1 chooses"
}

# A requeue is block_rq_requeue; if block_rq_insert follows it went to the head of
# the scheduler, else it stayed in the dispatch list. For each that waits at the head
# the chosen one is a newer one, an older one, or none of them.
analyse() {
	trace_awk -v enough=$BACKLOG '
	/ block_rq_requeue: / { back[sector()] = 1 }
	/ block_rq_issue: / { delete back[sector()] }
	/ block_rq_insert: / {
		s = sector()
		if (s in back) {
			head[s] = ++nr
			if (waiting >= enough) heads++
		} else {
			queued[s] = 1; waiting++
		}
	}
	/ chosen: / && sub(/.* sector=/, "") && ($1 in queued || $1 in head) {
		for (o in head)
			if (!($1 in head)) others++
			else if (head[o] < head[$1]) newer++
			else if (head[o] > head[$1]) older++
		if (!($1 in head)) waiting--
		delete head[$1]; delete queued[$1]
	}
	END { printf "heads=%d newer=%d older=%d others=%d\n", heads, newer, older, others }'
}

# one_round DISK LOAD-OPTION...: adds to the sums of at_head
one_round() {
	local disk=$1 r
	shift

	trace_start "$disk" block/block_rq_{insert,issue,requeue} blktest/chosen \
		${event:+"$event"} || return
	load "$disk" "$@" -z 256m || return
	trace_end
	trace_complete || return
	r=$(analyse)
	((heads += $(value_of heads "$r"), newer += $(value_of newer "$r"),
	  older += $(value_of older "$r"), others += $(value_of others "$r"),
	  staged += $(stagings)))
	note "$sched: heads=$heads newer=$newer older=$older others=$others staged=$staged"
	[ $others -eq 0 ] || { fail "$others times another went before a requeued one"; return; }
	[ $older -eq 0 ] || { fail "$older times the older of several at the head"; return; }
	[ $heads -ge 50 ] || { again "only $heads requeues in front of a backlog"; return; }
	[ $newer -ge 20 ] || { again "only $newer times several at the head"; return; }
	[ $staged -ge "$enough" ] || again "only $staged times staged"
}

# at_head DISK KIND SCHED STAGED [LOAD-OPTION...]: STAGED is how often requests must
# be staged meanwhile
at_head() {
	local disk=$1 sched=$3 enough=$4
	local heads=0 newer=0 older=0 others=0 staged=0 event=
	shift 4

	probe_chosen "$sched" && put "/sys/block/$disk/queue/nr_requests" 256 || return
	if [ "$enough" -eq 0 ]; then
		echo 2 >"/sys/block/$disk/queue/nomerges"
	else
		event=blktest/staged
		probe_staged || return
	fi
	null_fault "$disk" requeue 40 $MANY || return
	rounds one_round "$disk" "$@" && null_fault "$disk" requeue 0 0
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
for_each_device one_by_one hw_queue_depth=4 irqmode=2 completion_nsec=1000000
TEST_NAME="at_head staging"
for_each_device staging hw_queue_depth=4 irqmode=2 completion_nsec=1000000
finish_tests
