#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Requests that the scheduler would dispatch at once are issued directly, and none that
# it would hold back: what is issued directly was not inserted.

. "$(dirname "$0")/common.sh"

RT=1:0
BE=2:4
IDLE=3:0
FIRST=32768	# sectors of two reads
SECOND=98304
HALF=65536
AGED=300	# ms
EVENTS=(block/block_rq_{insert,issue,complete})

# judge DISK WHAT: sets $issued and $direct, of the trace from sector $from on
judge() {
	local r

	trace_end
	trace_complete || return
	r=$(issued_directly "$from")
	issued=$(value_of issued "$r") direct=$(value_of direct "$r")
	note "$1: ${*:2}: $direct of $issued issued directly"
	[ "$issued" -ge "${enough:-50}" ] || fail "only $issued requests seen"
}

# share DISK OPTION...: the same of 100 reads one by one
share() {
	local disk=$1
	shift

	trace_start "$disk" "${EVENTS[@]}" && load "$disk" -c -n 100 "$@" &&
		judge "$disk" "$@"
}

most() {
	[ $((direct * 100)) -ge $((issued * ${least:-90})) ] ||
		fail "${*:2}: only $direct of $issued issued directly"
}

none() {
	[ $((direct * 100)) -le $((issued * ${allowed:-3})) ] ||
		fail "${*:2}: $direct of $issued issued directly"
}

does() {
	share "$@" && most "$@"
}

does_not() {
	share "$@" && none "$@"
}

which_do() {
	local disk=$1 rotational=/sys/block/$1/queue/rotational from=

	let_issue "$disk" "$3" && does "$disk" && does "$disk" -p seq &&
		does "$disk" -r 0 -d 8 || return
	if [ "$3" = mq-deadline ]; then
		does "$disk" -P 2:0 && does_not "$disk" -P $RT &&
			does_not "$disk" -P $IDLE || return
	fi
	# FUA, which null_blk has only with memory
	[ "$2" = null_blk ] || does_not "$disk" -r 0 -y || return
	echo 1 >"$rotational"
	does_not "$disk" || return
	echo 0 >"$rotational"
	does "$disk"
}

# The administrator's switch
switched() {
	local disk=$1 switch=/sys/block/$1/queue/iosched/direct_issue from=

	let_issue "$disk" "$3" && does "$disk" &&
		put "$switch" 0 && allowed=0 does_not "$disk" || return
	if echo x 2>/dev/null >"$switch"; then
		fail "x was taken for a value of direct_issue"
		return
	fi
	[ "$(<"$switch")" = 0 ] || { fail "direct_issue is $(<"$switch") after x"; return; }
	put "$switch" 1 && does "$disk"
}

# A driver that may sleep may also submit I/O by itself, which submit_bio() would keep
# until the driver returns
blocks() {
	local from=

	let_issue "$1" "$3" && does_not "$1"
}

# ---- which tags they have

# in_driver DISK: sets $issued to the most that the driver has had, and $direct to the
# most that never had a scheduler's tag
in_driver() {	# by a pipe: bash seeks in a file, which is made anew then
	local line all=0 only=0

	while read -r line; do
		[[ $line != *in_flight* ]] || all=$((all + 1))
		[[ $line != *in_flight*internal_tag=-1* ]] || only=$((only + 1))
	done < <(cat "/sys/kernel/debug/block/$1/hctx0/busy")
	issued=$((all > issued ? all : issued)) direct=$((only > direct ? only : direct))
}

# tags DISK AT-LEAST NR OPTION...: what the driver has of a load that wants it all
tags() {
	local disk=$1 nr=$3 issued=0 direct=0 looks=0

	background "$disk" -d 64 "${@:4}"
	while [ $((looks++)) -lt 20 ] || { [ $issued -lt "$2" ] && [ $looks -lt 60 ]; }; do
		in_driver "$disk"
		sleep 0.1
	done
	[ $issued -ge "$2" ] || { fail "the driver has only $issued"; return; }
	note "$disk: ${*:4}: the driver has $issued, $direct of them with a driver tag only"
	background_stop || return
	[ "$nr" -eq 0 ] || [ $issued -le $((2 * nr)) ] ||
		{ fail "${*:4}: the driver has $issued, nr_requests $nr"; return; }
	[ $direct -le "$nr" ] ||
		{ fail "${*:4}: $direct with a driver tag only, nr_requests $nr"; return; }
	[ $direct -gt 0 ] || [ "$nr" -eq 0 ] || fail "${*:4}: all have a scheduler tag"
}

# as many again can be in the scheduler, which gives them to the driver
limits() {
	local disk=$1 queue=/sys/block/$1/queue most=128 file

	[ "$2" = null_blk ] || most=$((SDEBUG_QUEUE / 2))	# of those that are shared
	let_issue "$disk" "$3" && tags "$disk" 32 $most -r 100 -b 16 &&
		put "$queue/nr_requests" 8 || return
	for batch in 1 32; do
		tags "$disk" 9 8 -r 100 -b $batch || return
	done
	file=$(async_depth "$disk") || return 0
	put "$file" 4 && tags "$disk" 5 4 -r 0 -b 1
}

# few are not held by those that are in a plug
few() {
	local from=

	let_issue "$1" "$3" && tags "$1" 8 0 -r 100 -b 16 && does "$1"
}

# ---- while requests wait

# How many were issued directly while a request waited
passed() {
	trace_awk '
	/ block_rq_insert: / { since[sector()] = direct }
	/ block_rq_issue: / {
		s = sector()
		if (s in since) {
			seen++
			if (direct - since[s] > worst) worst = direct - since[s]
			delete since[s]
		} else
			direct++
	}
	END { printf "seen=%d worst=%d direct=%d\n", seen, worst, direct }'
}

# More than the device takes: adds to $waited
crowd() {
	local r

	trace_start "$1" "${EVENTS[@]}" && load "$1" -c -t 32 -n 20 || return
	trace_end
	trace_complete || return
	r=$(passed)
	note "$1: more than it takes: $r"
	[ "$(value_of worst "$r")" -le 40 ] ||
		{ fail "requests that wait for the device are passed: $r"; return; }
	((waited += $(value_of seen "$r"), waited >= 300)) ||
		again "hardly one has to wait: $waited"
}

# Those that have to wait for the device merge, and are not passed by more than it takes.
# When that is over the next ones are issued directly again.
full() {
	local disk=$1 queue=/sys/block/$1/queue waited=0 file

	let_issue "$disk" "$3" || return
	! file=$(async_depth "$disk") || put "$file" "$(<"$queue/nr_requests")" || return
	merged_since "$disk"
	load "$disk" -c -r 0 -t 2 -d 64 -i 4 -p seq -n 500 || return
	merged_since "$disk"
	note "$disk: 8 streams: $percent % merged"
	[ $percent -ge 10 ] || { fail "only $percent % of the writes merged"; return; }
	# tasks that wait for a request wake up when one has completed, and the dispatcher does
	put "$queue/nr_requests" 32 && rounds crowd "$disk" || return
	# the first ones of a CPU on which bios were merged are still inserted
	least=60 does "$disk"
}

# ---- mq-deadline: two reads, the second while the driver has the first

traced() {
	local event=" block_rq_$1: [^"$'\n'"]* $2 \\+ 8 "

	[[ $(<$TRACE/trace) =~ $event ]]
}

analyse() {
	trace_awk -v first=$FIRST -v second=$SECOND '
	# "... 12.345678: block_rq_issue: ..."
	/ block_/ {
		for (i = 1; $i !~ /^block_/; i++)
			;
		at[$i sector()] = $(i - 1) * 1000
	}
	END {
		insert = "block_rq_insert:"; issue = "block_rq_issue:"
		queue = "block_bio_queue:"; complete = "block_rq_complete:"
		printf "first=%s second=%s met=%d waited=%d ms=%d\n",
			((insert first) in at) ? "inserted" : "direct",
			((insert second) in at) ? "inserted" : "direct",
			(at[issue first] <= at[queue second] &&
			 at[queue second] < at[complete first]),
			(at[issue second] > at[complete first]),
			at[issue second] - at[queue second]
	}'
}

# two_reads DISK CLASS CLASS: sets $r; again if they did not meet
two_reads() {
	local try disk=$1

	for try in 1 2 3; do
		TRACE_CLOCK=mono trace_start "$disk" \
			block/block_{bio_queue,rq_insert,rq_issue,rq_complete} || return
		background "$disk" -t 2 -n 1 -r 100 -p seq -o 16m -z 64m -w 500 -P "$2,$3"
		wait_until 10 traced issue $FIRST || { fail "class $2 is not issued"; return; }
		wait_until 20 traced complete $SECOND ||
			{ fail "class $3 after $2 does not complete"; return; }
		wait_until 20 traced complete $FIRST ||
			{ fail "class $2 does not complete"; return; }
		trace_end
		background_stop || return
		r=$(analyse)
		note "$disk: class $2, then $3: $r"
		[ "$(value_of met "$r")" -eq 0 ] || return 0
	done
	skip "the machine is too busy: the reads did not meet"
}

# expect DISK CLASS CLASS "first=... second=... waited=..."
expect() {
	local word disk=$1

	two_reads "$disk" "$2" "$3" || return
	for word in $4; do
		[ "$(value_of "${word%=*}" "$r")" = "${word#*=}" ] ||
			{ fail "class $2, then $3: not $word but $r"; return; }
	done
}

# held for AGED ms, and then no longer; jiffies may be late on an emulated CPU
aged() {
	expect "$1" "$2" "$3" "second=inserted waited=0" || return
	[ "$(value_of ms "$r")" -ge $((AGED / 2)) ] ||
		fail "class $3 passed $2 after $(value_of ms "$r") ms"
}

classes() {
	local disk=$1

	expect "$disk" $BE $BE "first=direct second=direct waited=0" &&
	expect "$disk" $BE $RT "first=direct second=inserted waited=0" &&
	expect "$disk" $RT $BE "first=inserted second=inserted waited=1" &&
	expect "$disk" $BE $IDLE "first=direct second=inserted waited=1" &&
	put "/sys/block/$disk/queue/iosched/prio_aging_expire" $AGED &&
	aged "$disk" $RT $BE && aged "$disk" $BE $IDLE
}

# ---- bfq: while all are equal

alone() {
	local disk=$1 io=/sys/block/$1/queue/iosched from=

	let_issue "$disk" bfq && does "$disk" || return
	put "$io/strict_guarantees" 1 && does_not "$disk" &&
		put "$io/strict_guarantees" 0 && does "$disk" || return
	# after a pause it may be a process that is to be raised
	background "$disk" -t 2 -d 1 -b 1 -r 100 -u 60000
	sleep 0.5
	during "$disk" "with pauses" && most "$disk" "with pauses" &&
		put "$io/low_latency" 1 && during "$disk" "with pauses, low_latency" &&
		allowed=25 none "$disk" "with pauses, low_latency" && background_stop || return
	# a new one is raised; that the host is busy is no pause
	put "$io/slice_idle" 1000 && does "$disk"
}

# With low_latency the first one of each process is inserted
first() {
	local disk=$1 from=

	let_issue "$disk" bfq && put "/sys/block/$disk/queue/iosched/low_latency" 1 &&
		trace_start "$disk" "${EVENTS[@]}" || return
	for _ in {1..10}; do
		load "$disk" -n 1 || return
	done
	enough=10 judge "$disk" "the first of a process" && none "$disk" "the first of a process"
}

# during DISK WHAT: what the loads in the background do meanwhile
during() {
	trace_start "$1" "${EVENTS[@]}" || return
	sleep 2
	judge "$@"
}

# When one of another priority comes, those that were issued directly are inserted, and
# then are issued directly again.
seen_again() {
	trace_awk -v half=$HALF '
	/ block_rq_insert: / {
		inserted[sector()] = 1
		if (sector() >= half) other = 1
		else if (other) back = 1
	}
	/ block_rq_issue: / && sector() < half && !(sector() in inserted) {
		if (!other) before++
		else if (!back) passed++
		else after++
	}
	/ block_rq_complete: / { delete inserted[sector()] }
	END { printf "before=%d back=%d passed=%d after=%d\n", before, back, passed, after }'
}

change() {
	local disk=$1 r

	let_issue "$disk" bfq || return
	background "$disk" -t 1 -d 1 -b 1 -r 100 -u 2000 -z 32m
	sleep 0.5
	trace_start "$disk" "${EVENTS[@]}" || return
	sleep 0.5
	load "$disk" -n 1 -o 32m -P 2:0 || return
	sleep 1
	trace_end
	background_stop && trace_complete || return
	r=$(seen_again)
	note "$disk: one of another priority: $r"
	[ "$(value_of before "$r")" -ge 10 ] && [ "$(value_of after "$r")" -ge 10 ] ||
		{ fail "hardly one was issued directly before or after: $r"; return; }
	[ "$(value_of back "$r")" -eq 1 ] && [ "$(value_of passed "$r")" -le 2 ] ||
		fail "after one of another priority none is inserted: $r"
}

# ---- bfq: weight raising

# How much of the first half of the disk was issued directly while the second was read
beside() {
	trace_awk -v half=$HALF '
	/ block_rq_insert: / {
		inserted[sector()] = 1
		if (sector() >= half) raised = 1
	}
	/ block_rq_issue: / {
		s = sector()
		if (s >= half) { seen++; passed += maybe; maybe = 0 }
		else if (!raised) { if (!(s in inserted)) before++ }
		else { others++; if (!(s in inserted)) maybe++ }
	}
	/ block_rq_complete: / { delete inserted[sector()] }
	END { printf "before=%d seen=%d others=%d passed=%d\n",
		before, seen, others, passed }'
}

# A program that starts beside load that is not raised: that does not pass it
raised_beside() {
	local disk=$1 io=/sys/block/$1/queue/iosched r

	let_issue "$disk" bfq && put "$io/slice_idle" 100 || return
	background "$disk" -t 1 -d 8 -b 1 -r 100 -z 32m
	sleep 0.5
	put "$io/low_latency" 1 && trace_start "$disk" "${EVENTS[@]}" || return
	sleep 0.2
	load "$disk" -n 200 -d 1 -t 1 -r 100 -z 32m -o 32m || return
	trace_end
	background_stop && trace_complete || return
	r=$(beside)
	note "$disk: a program starts: $r"
	[ "$(value_of before "$r")" -ge 10 ] && [ "$(value_of seen "$r")" -ge 150 ] ||
		{ fail "too little was seen: $r"; return; }
	[ "$(value_of passed "$r")" -le 20 ] || fail "it is passed: $r"
}

# again DISK WHAT OPTION...: after the first request, at least one more is inserted
again() {
	local disk=$1 r later

	trace_start "$disk" "${EVENTS[@]}" && load "$disk" -t 1 -d 1 -r 100 "${@:3}" || return
	trace_end
	trace_complete || return
	r=$(issued_directly)
	later=$(($(value_of issued "$r") - $(value_of direct "$r") - 1))
	note "$disk: $2: $r later=$later"
	[ $later -ge 1 ] || { fail "$2: no other one is inserted: $r"; return; }
	[ $((later * 20)) -le "$(value_of issued "$r")" ] || fail "too many are inserted: $r"
}

# One is inserted when weight-raising ends by service, and one each second
raised_ends() {
	local disk=$1 io=/sys/block/$1/queue/iosched

	let_issue "$disk" bfq && put "$io/slice_idle" 1000 && put "$io/low_latency" 1 &&
		again "$disk" "raised until the service is over" -n 1200 -k 64k || return
	sleep 0.3	# not a burst
	again "$disk" "each second" -s 4 -u 20000
}

# Queues that are not weight-raised are busy when weight-raising is disabled
raising_disabled() {
	local disk=$1 io=/sys/block/$1/queue/iosched from=

	let_issue "$disk" bfq && put "$io/slice_idle" 0 || return
	background "$disk" -d 64 -r 100 -z 32m
	sleep 0.5	# else bfq merges the queues
	background "$disk" -d 64 -r 100 -z 32m -o 32m
	sleep 0.5
	for _ in {1..10}; do
		put "$io/low_latency" 1 && put "$io/low_latency" 0 || return
	done
	background_stop && does "$disk"
}

# by_weight DISK WHAT: two loads of weights 80 and 10 run, the latter in the second half.
# While the disk is kept for one it issues directly; that counts as its share.
by_weight() {
	local from=0 light

	during "$1" "${@:2}" && background_stop || return
	[ "$direct" -ge 10 ] || { fail "${*:2}: only $direct of $issued issued directly"; return; }
	light=$(value_of issued "$(issued_directly $HALF)")
	note "$1: ${*:2}: $light of the lower weight"
	# an eighth of the other's; if nobody is charged, hardly any
	[ $((light * 16)) -ge "$issued" ] && [ "$issued" -ge $((light * 3)) ] ||
		fail "${*:2}: of $issued reads $light are of weight 10, and not of 80"
}

weigh() {	# small budgets: many turns in the time of the test
	local io=/sys/block/$1/queue/iosched

	let_issue "$1" bfq && echo 2 >"/sys/block/$1/queue/nomerges" &&
		put "$io/max_budget" 128 && put "$io/slice_idle" 400 || return
	# the first dozen of queues in service have bfq's default budget, not this one
	for _ in {1..16}; do
		load "$1" -n 1 || return
	done
}

# idle_waits DISK MOST WHAT: two loads run, the latter in the second half. Of class IDLE
# at most MOST are issued directly: the disk is kept for the other.
idle_waits() {
	during "$1" "$3" && background_stop || return
	[ "$direct" -ge 10 ] || { fail "only $direct of $issued issued directly"; return; }
	direct=$(value_of direct "$(issued_directly $HALF)")
	[ "$direct" -le $(($2)) ] ||
		fail "of $issued reads $direct are of class IDLE and were issued directly"
}

idle_class() {
	local disk=$1

	weigh "$disk" || return
	background "$disk" -d 4 -b 4 -r 100 -z 32m -P 2:0
	background "$disk" -d 4 -b 4 -r 100 -z 32m -o 32m -P $IDLE
	sleep 0.5
	idle_waits "$disk" 8 "class IDLE beside BE"
}

# It is of class IDLE from now on, which an asynchronous request told bfq. While the other
# has no CPU for longer than slice_idle, the disk is not kept for it.
class_changes() {
	local disk=$1

	weigh "$disk" || return
	background "$disk" -d 4 -b 4 -r 100 -z 32m -P 2:0
	sleep 0.5	# else bfq merges the queues
	background "$disk" -r 100 -z 32m -o 32m -P 2:0 -a $IDLE
	sleep 1.5
	idle_waits "$disk" "issued / 8" "class IDLE since a while"
}

weights() {
	local disk=$1

	weigh "$disk" || return
	background "$disk" -d 2 -b 2 -r 100 -z 32m -P 2:0
	background "$disk" -d 2 -b 2 -r 100 -z 32m -o 32m -P 2:7
	sleep 0.5
	by_weight "$disk" "weights 80 and 10"
}

deep_groups() {
	at_once=32 two_groups "$1"
}

leave_groups() {
	echo $$ >"$groups/cgroup.procs"
	rmdir "$groups"/blktest[12] && umount "$groups" && rmdir "$groups"
}

# read_in GROUP DISK AT_ONCE
read_in() {
	echo $$ >"$groups/blktest$1/cgroup.procs" || return
	background "$2" -d "$3" -b "$3" -r 100 -z 32m -o $(($1 * 32 - 32))m
}

# Nobody but the groups tells the two from each other
in_two_groups() {
	local disk=$1 at_once=$2 group

	echo +io >"$groups/cgroup.subtree_control" || { skip "no io controller"; return; }
	mkdir "$groups"/blktest{1,2} && weigh "$disk" || return
	put "$groups/blktest1/io.bfq.weight" 800 || return
	for group in 1 2; do
		read_in $group "$disk" "$at_once" || return
		sleep 0.5
		[ $group -eq 1 ] || break
		during "$disk" "one group" && most "$disk" "one group" || return
	done
	by_weight "$disk" "groups of weights 800 and 100, $at_once at once" || return
	[ "$at_once" -le 2 ] || return 0
	# the disk is kept for nobody
	put "/sys/block/$disk/queue/iosched/slice_idle" 0 || return
	for group in 1 2; do
		read_in $group "$disk" 1 || return
	done
	sleep 0.5
	during "$disk" "two groups, slice_idle=0" && most "$disk" "two groups, slice_idle=0"
}

two_groups() {
	local status groups from= at_once=${at_once:-2}

	groups=$(mktemp -d)
	mount -t cgroup2 none "$groups" 2>>"$BLK_TMP" ||
		{ rmdir "$groups"; skip "no cgroup v2"; return; }
	in_two_groups "$1" "$at_once"
	status=$?
	background_stop
	leave_groups
	return $status
}

# ---- the driver gives them back

# alone, where nobody else comes by, then several: adds to $back
load_refused() {
	local disk=$1

	trace_start "$disk" block/block_rq_{insert,requeue,complete} || return
	load "$disk" -n 100 -s 30 -l 3000 &&
		load "$disk" -V -c -t 3 -n 100 -r 50 -l 3000 &&
		load "$disk" -V -c -d 24 -b 8 -n 400 -r 50 -l 3000 || return
	trace_end
	trace_complete || return
	back=$((back + $(value_of back "$(issued_directly)")))
	note "$disk: $back came back that had been issued directly"
	[ $back -ge 3 ] || again "only $back requests came back"
}

refused() {
	local back=0

	rounds load_refused "$1"
}

# sdebug_refused DISK OPTS EVERY_NTH [verify]
sdebug_refused() {
	echo "$2" >$SDEBUG/opts
	echo "$3" >$SDEBUG/every_nth
	refused "$1" && { [ "$#" -eq 3 ] || data_is_kept "$1" --size=512k --iodepth=16; } ||
		{ fail "opts $2: $reason"; return; }
	sdebug_reset
}

refuse() {
	local disk=$1 depth=/sys/block/$1/device/queue_depth status

	let_issue "$disk" "$3" || return
	case $2 in
	null_blk)
		null_fault "$disk" requeue 20 $MANY && refused "$disk" || return
		null_fault "$disk" requeue 0 0
		# and some only after a timeout
		echo 300 >"/sys/block/$disk/queue/io_timeout"
		null_fault "$disk" timeout 2 5 && load "$disk" -e -d 8 -n 1000 &&
			null_fault_end "$disk" timeout 5 ;;
	scsi_debug)
		# the host is busy; and fewer commands for the disk than the host takes
		sdebug_refused "$disk" 0x8000 7 verify && put "$depth" 2 &&
			sdebug_refused "$disk" 0x8000 5 verify
		status=$?
		[ $status -ne 0 ] || put "$depth" $SDEBUG_QUEUE
		return $status ;;
	esac
}

# part NAME FUNCTION ATTRIBUTE...
part() {
	TEST_NAME="direct${1:+ $1}"
	for_each_device "${@:2}"
}

need_program fio
NEEDS_DIRECT=1
start_tests
FIRST_NAME=$TEST_NAME
scheds=$TEST_SCHEDS
kinds=" $TEST_KINDS "
TEST_DEVS=
TEST_KINDS=null_blk
[ "${kinds/ scsi_debug /}" = "$kinds" ] || TEST_KINDS="null_blk scsi_debug"
part "" which_do hw_queue_depth=128 irqmode=2 completion_nsec=100000
part "switched" switched hw_queue_depth=128 irqmode=2 completion_nsec=100000
requeues=/dev/null
part refused refuse hw_queue_depth=64 "${NULL_KEEPS[@]}"
requeues=
# SCSI: tags that are shared with other queues of the host, and a reserved one
SDEBUG_NSEC=700000000 part "limits" limits hw_queue_depth=128 irqmode=2 \
	completion_nsec=700000000
sdebug_reset
TEST_KINDS=null_blk
part blocking blocks hw_queue_depth=128 irqmode=2 completion_nsec=100000 blocking=1
part "few tags" few hw_queue_depth=16 irqmode=2 completion_nsec=300000000
part "full" full hw_queue_depth=16 irqmode=2 completion_nsec=100000000
for TEST_SCHEDS in $scheds; do
	case $TEST_SCHEDS in
	mq-deadline)
		part "classes" classes hw_queue_depth=32 irqmode=2 completion_nsec=1500000000 ;;
	bfq)
		part "alone" alone hw_queue_depth=128 irqmode=2 completion_nsec=100000
		part "first" first hw_queue_depth=128 irqmode=2 completion_nsec=100000
		part "change" change hw_queue_depth=128 irqmode=2 completion_nsec=100000
		part "raised" raised_beside hw_queue_depth=128 irqmode=2 completion_nsec=500000
		part "raised ends" raised_ends hw_queue_depth=128 irqmode=2 completion_nsec=100000
		part "raising disabled" raising_disabled hw_queue_depth=128 irqmode=2 \
			completion_nsec=20000000
		part "idle" idle_class hw_queue_depth=128 irqmode=2 completion_nsec=500000
		part "class changes" class_changes hw_queue_depth=128 irqmode=2 \
			completion_nsec=500000
		part "weights" weights hw_queue_depth=128 irqmode=2 completion_nsec=500000
		part groups two_groups hw_queue_depth=128 irqmode=2 completion_nsec=100000
		part "deep groups" deep_groups hw_queue_depth=128 irqmode=2 \
			completion_nsec=100000 ;;
	esac
done
finish_tests
