#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The order that the scheduler chose is the order in which requests are issued,
# with several CPUs submitting at once, in batches and one by one.
#
# "Chosen" is seen inside the scheduler's lock, so that the probe itself cannot
# be overtaken; "issued" when the driver starts the request.

. "$(dirname "$0")/common.sh"

ENOUGH=1000

# probe_chosen SCHED: the first of these functions that the kernel has
probe_chosen() {
	local candidates fn symbol kind rq

	case $1 in
	mq-deadline) candidates="r:__dd_dispatch_request r:dd_dispatch_request" ;;
	bfq) candidates="r:__bfq_dispatch_request p:bfq_remove_request r:bfq_dispatch_request" ;;
	esac
	for fn in $candidates; do
		symbol "${fn#*:}" || continue
		case $fn in
		r:*) kind=r100 rq=\$retval ;;
		p:*) kind=p rq=\$arg2 ;;
		esac
		echo "$kind:blktest/chosen $symbol rq=$rq:x64 q=+0($rq):x64 hctx=+16($rq):x64" \
			>>$PROBES && return
	done
	skip "no probe for the requests that $1 chooses"
}

# compare: pairs of chosen and issued of the busiest queue, and how many were
# issued after one of the same hardware queue that was chosen later
compare() {
	awk '
	function field(name,	i) {
		for (i = NF; i; i--)
			if (index($i, name "=") == 1)
				return substr($i, length(name) + 2)
	}
	/ chosen: / {
		rq = field("rq"); q = field("q")
		if (rq == "0x0") next
		seq[rq] = ++chosen[q]; queue[rq] = q
	}
	/ issued: / {
		rq = field("rq")
		if (!(rq in seq)) next
		q = queue[rq]; h = field("hctx")
		pairs[q]++
		if (seq[rq] < last[h])
			late[q]++
		else
			last[h] = seq[rq]
		delete seq[rq]
	}
	END {
		for (q in pairs) if (pairs[q] > pairs[best]) best = q
		printf "pairs=%d late=%d\n", pairs[best], late[best]
	}' $TRACE/trace
}

order() {
	local disk=$1 sched=$3 r pairs late

	[ -e $PROBES ] || { skip "no kprobe events"; return; }
	probe_chosen "$sched" || return
	echo "p:blktest/issued blk_mq_start_request rq=\$arg1:x64 hctx=+16(\$arg1):x64" >>$PROBES
	# on a rotational disk all go through the scheduler; bfq need not idle
	[ "$sched" != bfq ] || put "/sys/block/$disk/queue/iosched/slice_idle" 0 || return
	echo 1 >"/sys/block/$disk/queue/rotational"
	# a merged request would be taken out of the scheduler and never issued
	echo 2 >"/sys/block/$disk/queue/nomerges"
	trace_start "$disk" blktest/chosen blktest/issued || return
	background "$disk" -t 4 -d 1
	load "$disk" -t 4 -d 16 -b 8 -n 400 -r 50 && background_stop || return
	trace_end
	trace_complete || return
	r=$(compare)
	pairs=$(value_of pairs "$r") late=$(value_of late "$r")
	note "$disk: $pairs requests chosen and issued, $late out of order"
	[ "$pairs" -ge $ENOUGH ] || { fail "only $pairs requests seen"; return; }
	[ "$late" -eq 0 ] || fail "$late of $pairs requests were overtaken by one chosen later"
}

start_tests
for_each_device order
finish_tests
