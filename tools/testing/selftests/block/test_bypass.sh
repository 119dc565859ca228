#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Requests that need not wait go past the scheduler, and none that it would hold
# back: a bypassed request is one that is issued without having been inserted.

. "$(dirname "$0")/common.sh"

RT=1:0
BE=2:4
HIGH=2:0
IDLE=3:0
FIRST=32768	# sectors of two reads
SECOND=98304
AGED=300	# ms

# share DISK OPTION...: sets $issued and $past, of 100 reads one by one
share() {
	local disk=$1 r
	shift

	trace_start "$disk" block/block_rq_{insert,issue,complete} || return
	load "$disk" -c -n 100 "$@" || return
	trace_end
	trace_complete || return
	r=$(passed_by)
	issued=$(value_of issued "$r") past=$(value_of past "$r")
	note "$disk: $*: $past of $issued went past the scheduler"
	[ "$issued" -ge 100 ] || fail "only $issued requests seen"
}

does() {
	local least=${least:-90}

	share "$@" || return
	[ $((past * 100)) -ge $((issued * least)) ] ||
		fail "$*: only $past of $issued went past the scheduler"
}

# a stream is noticed at its second request, and again on another CPU
does_not() {
	local most=${most:-3}

	share "$@" || return
	[ "$past" -le "$most" ] || fail "$*: $past of $issued went past the scheduler"
}

# one at a time, there is nothing to merge with; but bfq wants to see them
stream() {
	if [ "$2" = bfq ]; then does_not "$1" -p seq; else does "$1" -p seq; fi
}

which_do() {
	local disk=$1 sched=$3 queue=/sys/block/$1/queue idle

	echo 0 >"$queue/rotational"
	if [ "$sched" = bfq ]; then
		# a new process would be raised
		echo 0 >"$queue/iosched/low_latency"
		# that which is served alone does, if bfq idles for it; an emulated CPU
		# may take long to come back
		idle=$(cat "$queue/iosched/slice_idle")
		put "$queue/iosched/slice_idle" 400 || return
		does "$disk" -P $HIGH && does_not "$disk" -P $IDLE || return
		put "$queue/iosched/slice_idle" 0 && does_not "$disk" -P $HIGH || return
	fi
	does "$disk" && stream "$disk" "$sched" &&
		does_not "$disk" -P $RT && does_not "$disk" -P $IDLE || return
	[ -z "$idle" ] || put "$queue/iosched/slice_idle" "$idle" || return
	echo 1 >"$queue/rotational"
	# bfq has to see first that a process does not read in sequence
	least=50 does "$disk" && stream "$disk" "$sched"
}

# bfq keeps a rotational device for a process that reads in sequence. What another
# one reads at random waits, until that one's time is over.
idles() {
	local disk=$1 queue=/sys/block/$1/queue

	echo 1 >"$queue/rotational"
	# nothing bypasses on a CPU whose bios merge
	echo 2 >"$queue/nomerges"
	# the emulated CPU of the first one may take long to come back, but with four reads
	# it always has some to come
	put "$queue/iosched/low_latency" 0 && put "$queue/iosched/slice_idle" 100 || return
	background "$disk" -d 4 -r 100 -p seq -o 32m -z 64m
	sleep 0.5
	share "$disk" -z 16m && background_stop || return
	[ "$past" -le 40 ] || fail "$past random reads went past a sequential reader"
}

# Of two processes with weights of 80 and 10 the one that bfq serves goes past it,
# and is charged: its budget of sixteen reads ends its service (the time allowed for
# them is longer than the test), and the shares are those of the weights.
weights() {
	local disk=$1 queue=/sys/block/$1/queue r heavy light past

	let_pass "$disk" "$3"
	echo 2 >"$queue/nomerges"
	put "$queue/iosched/low_latency" 0 && put "$queue/iosched/max_budget" 128 &&
		put "$queue/iosched/timeout_sync" 10000 &&
		put "$queue/iosched/slice_idle" 400 || return
	background "$disk" -d 2 -b 2 -r 100 -z 32m -P 2:0
	background "$disk" -d 2 -b 2 -r 100 -z 32m -o 32m -P 2:7
	sleep 0.5
	trace_start "$disk" block/block_rq_{insert,issue,complete} || return
	sleep 3
	trace_end
	background_stop && trace_complete || return
	r=$(passed_by)
	light=$(value_of issued "$(passed_by 65536)")
	heavy=$(($(value_of issued "$r") - light)) past=$(value_of past "$r")
	note "$disk: reads of weights 80 and 10: $heavy and $light, $past went past the scheduler"
	[ "$light" -gt 0 ] || { fail "no read of the lower weight"; return; }
	[ "$heavy" -ge $((light * 3)) ] || { fail "$heavy and $light reads of weights 80 and 10"; return; }
	[ $((past * 2)) -ge $((heavy + light)) ] || fail "only $past went past the scheduler"
}

# Threads that start together share a queue. One pauses while the other one goes
# past: the queue has not been idle when the first one comes back. So it is not
# raised, and a third one, which started later, goes past on as well.
shared() {
	local disk=$1 queue=/sys/block/$1/queue r issued past

	let_pass "$disk" "$3"
	# bfq merges queues at once if it has seen that the device queues
	load "$disk" -d 32 -n 500 || return
	sleep 1
	background "$disk" -t 2 -d 2 -b 2 -r 100 -u 2300000,2000 -z 32m
	sleep 1
	background "$disk" -d 2 -b 2 -r 100 -u 2000 -z 32m -o 32m
	sleep 0.5
	put "$queue/iosched/low_latency" 1 || return
	sleep 3
	trace_start "$disk" block/block_rq_{insert,issue,complete} || return
	sleep 3
	trace_end
	trace_complete && background_stop || return
	r=$(passed_by 65536)
	issued=$(value_of issued "$r") past=$(value_of past "$r")
	note "$disk: beside two of which one pauses $past of $issued went past the scheduler"
	[ "$issued" -ge 50 ] || { fail "only $issued requests seen"; return; }
	[ $((past * 4)) -ge $((issued * 3)) ] || fail "only $past of $issued went past the scheduler"
}

# ---- streams that wait for the device

# None of the requests continues the last one of its CPU, and each time that the
# device has completed some, nothing waits for a moment.
streams() {
	local disk=$1 queue=/sys/block/$1/queue depth

	let_pass "$disk" "$3"
	# The next one might merge with it. The disk is idle only when the emulated CPU
	# comes back too late for all of them.
	echo 2 >"$queue/nomerges"
	most=25 does_not "$disk" -p seq -d 8 || return
	echo 0 >"$queue/nomerges"
	# more than the device takes at once, whatever the scheduler's default is
	depth=$(cat "$queue/async_depth")
	put "$queue/async_depth" "$(cat "$queue/nr_requests")" &&
		streams_merge "$disk" || return
	[ "$3" = bfq ] || return 0
	# two processes that are raised: bfq lets them have few tags, and serves one
	put "$queue/async_depth" "$depth" && put "$queue/iosched/low_latency" 1 &&
		streams_merge "$disk"
}

streams_merge() {
	local disk=$1 r issued past

	merged_since "$disk"
	trace_start "$disk" block/block_rq_{insert,issue,complete} || return
	load "$disk" -c -r 0 -t 2 -d 64 -i 4 -p seq -n 2000 || return
	trace_end
	trace_complete || return
	merged_since "$disk"
	r=$(passed_by)
	issued=$(value_of issued "$r") past=$(value_of past "$r")
	note "$disk: 8 streams: $percent % merged, $past of $issued went past the scheduler"
	[ $percent -ge 10 ] || { fail "only $percent % of the writes merged"; return; }
	[ $((past * 100)) -le $((issued * 25)) ] ||
		fail "$past of $issued went past the scheduler, though they merge"
}

# ---- two reads, the second while the driver has the first

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
			((insert first) in at) ? "inserted" : "past",
			((insert second) in at) ? "inserted" : "past",
			(at[issue first] <= at[queue second] &&
			 at[queue second] < at[complete first]),
			(at[issue second] > at[complete first]),
			at[issue second] - at[queue second]
	}'
}

# what debugfs says while the second waits for the first, in $counts; nothing if it
# is too late: there is a second for it
look() {
	local dir=/sys/kernel/debug/block/$1/sched end=$((SECONDS + 5))

	counts=
	until traced insert $SECOND; do
		[ $SECONDS -lt $end ] || return 0
	done
	counts="driver $(<"$dir/owned_by_driver") queued $(<"$dir/queued")"
	! traced complete $FIRST || counts=
}

# two_reads DISK CLASS CLASS [look]: sets $r; again if they did not meet, or that
# was not seen
two_reads() {
	local try disk=$1

	for try in 1 2 3; do
		TRACE_CLOCK=mono trace_start "$disk" \
			block/block_{bio_queue,rq_insert,rq_issue,rq_complete} || return
		background "$disk" -t 2 -n 1 -r 100 -p seq -o 16m -z 64m -w 500 -P "$2,$3"
		wait_until 10 traced issue $FIRST || { fail "class $2 is not issued"; return; }
		[ "$4" != look ] || look "$disk"
		wait_until 20 traced complete $SECOND ||
			{ fail "class $3 after $2 does not complete"; return; }
		wait_until 20 traced complete $FIRST || { fail "class $2 does not complete"; return; }
		trace_end
		background_stop || return
		r=$(analyse)
		note "$disk: class $2, then $3: $r${counts:+, $counts}"
		[ "$(value_of met "$r")" -eq 0 ] || [ "$4$counts" = look ] || return 0
	done
	skip "the machine is too busy: the reads did not meet, or nobody saw it"
}

# expect DISK CLASS CLASS "first=... second=... waited=..." [look]
expect() {
	local word disk=$1

	counts=
	two_reads "$disk" "$2" "$3" "$5" || return
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

	echo 0 >"/sys/block/$disk/queue/rotational"
	expect "$disk" $BE $BE "first=past second=past waited=0" &&
	expect "$disk" $BE $RT "first=past second=inserted waited=0" &&
	expect "$disk" $RT $BE "first=inserted second=inserted waited=1" &&
	expect "$disk" $BE $IDLE "first=past second=inserted waited=1" look || return
	[ "$counts" = "driver 0 1 0 queued 0 1 1" ] ||
		{ fail "one of class 2 in the driver, one of class 3 waits, but $counts"; return; }
	put "/sys/block/$disk/queue/iosched/prio_aging_expire" $AGED &&
	aged "$disk" $RT $BE && aged "$disk" $BE $IDLE
}

# ---- the driver gives them back

# alone, where nobody else comes by, then several
refused() {
	local disk=$1 back=0 tries=6

	# few go past when the disk takes 2 at once
	while [ $back -lt 3 ] && [ $((tries--)) -gt 0 ]; do
		trace_start "$disk" block/block_rq_{insert,requeue,complete} || return
		load "$disk" -n 100 -s 30 -l 3000 &&
			load "$disk" -c -t 3 -n 100 -r 50 -l 3000 || return
		trace_end
		trace_complete || return
		back=$((back + $(value_of back "$(passed_by)")))
	done
	note "$disk: $back came back that had gone past the scheduler"
	[ $back -ge 3 ] || fail "only $back requests came back"
}

# sdebug_refused DISK OPTS EVERY_NTH [verify]
sdebug_refused() {
	echo "$2" >$SDEBUG/opts
	echo "$3" >$SDEBUG/every_nth
	refused "$1" && { [ "$#" -eq 3 ] || data_is_kept "$1" --size=512k --iodepth=2; } ||
		{ fail "opts $2: $reason"; return; }
	sdebug_reset
}

refuse() {
	local disk=$1 depth=/sys/block/$1/device/queue_depth status

	let_pass "$disk" "$3"
	case $2 in
	null_blk)
		null_fault "$disk" requeue 20 $MANY || return
		refused "$disk" && data_is_kept "$disk" --size=512k --iodepth=2 || return
		null_fault "$disk" requeue 0 0 ;;
	scsi_debug)
		# the host is busy; and fewer commands for the disk than the host takes
		sdebug_refused "$disk" 0x8000 7 && put "$depth" 2 &&
			sdebug_refused "$disk" 0x8000 5 verify
		status=$?
		[ $status -ne 0 ] || put "$depth" $SDEBUG_QUEUE
		return $status ;;
	esac
}

need_program fio
start_tests
FIRST_NAME=$TEST_NAME
scheds=$TEST_SCHEDS
kinds=" $TEST_KINDS "
TEST_DEVS=
TEST_KINDS=null_blk
for_each_device which_do hw_queue_depth=32 irqmode=2 completion_nsec=100000
TEST_NAME="bypass idles"
case " $scheds " in *" bfq "*)
	TEST_SCHEDS=bfq
	for_each_device idles hw_queue_depth=32 irqmode=2 completion_nsec=3000000
	TEST_NAME="bypass weights"
	for_each_device weights hw_queue_depth=128 irqmode=2 completion_nsec=500000
	TEST_NAME="bypass shared"
	for_each_device shared hw_queue_depth=128 irqmode=2 completion_nsec=500000
	TEST_SCHEDS=$scheds ;;
esac
TEST_NAME="bypass streams"
for_each_device streams hw_queue_depth=32 irqmode=2 completion_nsec=20000000
TEST_NAME="bypass classes"
case " $scheds " in *" mq-deadline "*)
	TEST_SCHEDS=mq-deadline
	for_each_device classes hw_queue_depth=32 irqmode=2 completion_nsec=1500000000 ;;
esac
TEST_NAME="bypass refused"
TEST_SCHEDS=$scheds
[ "${kinds/ scsi_debug /}" = "$kinds" ] || TEST_KINDS="null_blk scsi_debug"
requeues=/dev/null
SDEBUG_QUEUE=4
for_each_device refuse hw_queue_depth=8 memory_backed=1
finish_tests
