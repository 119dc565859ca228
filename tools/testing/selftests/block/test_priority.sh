#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A real-time read that arrives late waits for what was chosen already, not for
# the backlog of a lower class.

. "$(dirname "$0")/common.sh"

# The reads of the real-time class are those beyond 32 MiB (sector 65536)
analyse() {
	trace_awk -v enough="$1" '
	/ block_rq_insert: / {
		s = sector()
		if (s < 65536)
			waiting++
		else if (waiting >= enough)
			since[s] = issued
	}
	/ block_rq_issue: / {
		s = sector()
		if (s < 65536) {
			issued++; waiting--
		} else if (s in since) {
			seen++
			if (issued - since[s] > worst)
				worst = issued - since[s]
			delete since[s]
		}
	}
	END { printf "seen=%d worst=%d\n", seen, worst }'
}

# late_reads DISK CLASS-OF-THE-BACKLOG
late_reads() {
	local disk=$1 depth bound r seen worst

	depth=$(tags_of "$disk")
	bound=$((depth * $(ls -d "/sys/block/$disk"/mq/* | wc -l) + 32))
	[ $bound -le 120 ] || { skip "the device takes $((bound - 32)) at once"; return; }
	trace_start "$disk" block/block_rq_{insert,issue} || return
	# bfq may hold the backlog back for as long as the reader exists, which on a
	# slow machine can be longer than the 5 s that I/O may stand still
	background "$disk" -d 500 -b 16 -r 0 -z 32m -l 10000 -P "$2"
	sleep 0.5
	load "$disk" -d 1 -n 50 -u 10000 -o 32m -z 32m -P 1:0 && background_stop || return
	trace_end
	trace_complete || return
	r=$(analyse $((bound + 32)))
	seen=$(value_of seen "$r") worst=$(value_of worst "$r")
	note "$disk: $seen real-time reads, the worst behind $worst of class ${2%:*} (bound $bound)"
	[ "$seen" -ge 10 ] || { fail "only $seen reads met a backlog"; return; }
	[ "$worst" -le $bound ] || fail "a read waited for $worst requests of a lower class"
}

priority() {
	local disk=$1 sched=$3

	put "/sys/block/$disk/queue/nr_requests" 512 || return
	echo 2 >"/sys/block/$disk/queue/nomerges"
	late_reads "$disk" 2:4 || return
	# bfq leaves an idle-class task one tag, so that it never has a backlog
	[ "$sched" = bfq ] || late_reads "$disk" 3:0
}

start_tests
SDEBUG_QUEUE=4
SDEBUG_NSEC=1000000
for_each_device priority hw_queue_depth=4 irqmode=2 completion_nsec=1000000
finish_tests
