#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a task submits at once is collected in a plug: bios merge with any of its
# requests, large ones end it, they leave it in the order in which they came,
# and a queue with a scheduler does not slow down the others in it. Nor do
# requests that are for the scheduler keep back those that are issued directly.

. "$(dirname "$0")/common.sh"

# merged DISK MEMBER LOW HIGH OPTION...: share of the writes at the member. A task
# that is preempted flushes its plug: a busy machine may need more than one load.
merged() {
	rounds merged_once "$@"
}

merged_once() {
	local disk=$1 member=$2 low=$3 high=$4
	shift 4

	merged_since "$member"
	# not fewer, however long one of the members takes
	load "$disk" -r 0 -c -d 32 -b 32 -n 1600 "$@" || return
	merged_since "$member"
	note "$disk: $*: $percent % merged (from $low to $high)"
	[ "$percent" -ge "$low" ] && [ "$percent" -le "$high" ] ||
		again "$*: $percent % of the writes merged"
}

# Sizes of the plugs that were flushed
plugs() {
	trace_awk '
	/ block_unplug: \[blkload\]/ { if ($NF == 2) two++; else other++ }
	END { printf "two=%d other=%d\n", two, other }'
}

# A plug ends with a large request: each of 4, small ones and large ones in
# turns, becomes two
large_ends() {
	local disk=$1 r

	trace_start "$disk" block/block_unplug || return
	load "$disk" -r 0 -d 4 -b 4 -B -n 400 -k 4k,128k -z 64m || return
	trace_end
	r=$(plugs)
	note "$disk: plugs $r"
	# the task may be preempted, which flushes the plug
	[ "$(value_of two "$r")" -ge 180 ] && [ "$(value_of other "$r")" -le 40 ] ||
		fail "a large request does not end the plug: $r"
}

# Requests that were issued after one that got its request later
late() {
	trace_awk '
	/ block_getrq: / { seq[sector()] = ++nr }
	/ block_rq_issue: / && sector() in seq {
		s = sector(); issued++
		if (seq[s] < last) late++; else last = seq[s]
	}
	END { printf "issued=%d late=%d\n", issued, late }'
}

in_order() {
	local disk=$1 member=$2 r
	shift 2

	trace_start "$member" block/block_{getrq,rq_issue} "$@" || return
	load "$disk" -f 0 -r 0 -d 32 -b 32 -B -n 1600 -z 64m || return
	trace_end
	trace_complete || return
	r=$(late)
	note "$disk: $r"
	[ "$(value_of issued "$r")" -ge 500 ] && [ "$(value_of late "$r")" -eq 0 ] ||
		fail "not issued in the order of submission: $r"
}

plug() {
	local disk=$1 streams

	let_issue "$disk" "$3" || return
	for streams in 1 2 4; do
		merged "$disk" "$disk" 80 100 -p seq -i $streams || return
	done
	merged "$disk" "$disk" 0 5 || return
	large_ends "$disk" || return
	in_order "$disk" "$disk"
}

# A page has two buffers, which are written one by one: they merge, and neighbours
# are rare
buffered() {
	local disk=$1 file

	command -v fio >/dev/null || { skip "no program fio"; return; }
	# its size is that of all buffers of the disk, until nobody has it open
	exec {file}<>"/dev/$disk" && blockdev --setbsz 2048 "/dev/$disk" ||
		{ fail "cannot have buffers of 2 KiB"; return; }
	merged_since "$disk"
	fio --name=buffered --filename="/dev/$disk" --rw=randwrite --bs=4k \
		--ioengine=psync --fsync=64 --size=64m --io_size=4m >"$BLK_TMP" 2>&1 ||
		{ fail "fio: $(head -3 "$BLK_TMP")"; return; }
	merged_since "$disk"
	exec {file}>&-
	note "$disk: $percent % merged"
	[ $percent -ge 45 ] && [ $percent -le 60 ] ||
		fail "$percent % of the buffers merged, and not half"
}

# stacked DISK: the requests of a plug for DISK, a member of two, go in batches
stacked() {
	local disk=$1 batches

	probe_batches null_blk && md_make "$$" 4 "$disk" "$disk"b || return
	in_order md_$$ "$disk" blktest/batch || return
	batches=$(grep -c ' batch: ' $TRACE/trace)
	note "$disk: $batches batches"
	# 50 plugs, all of them with requests for the first member
	[ "$batches" -ge 45 ] ||
		fail "only $batches batches went to the driver"
}

# Two members, of which the second one has a scheduler
stack() {
	local disk=$1 sched=$3 streams

	null_make "$disk"b size=256 submit_queues=1 && set_sched "$disk" none &&
		set_sched "$disk"b "$sched" && stacked "$disk" || return
	for streams in 1 2 4; do
		merged md_$$ "$disk" 70 100 -p seq -i $streams || return
	done
	merged md_$$ "$disk" 0 5 && all_back "$disk"b
}

# Both have one, and the second one is rotational, so that all of its requests have
# scheduler tags
beside() {
	local disk=$1

	null_make "$disk"b size=256 submit_queues=1 && set_sched "$disk"b "$3" &&
		let_issue "$disk" "$3" || return
	echo 1 >"/sys/block/$disk"b/queue/rotational
	stacked "$disk" && all_back "$disk"b
}

# Plugs that had requests of both kinds; requests of each kind that went (issued
# directly, or inserted) after one that was got later
kinds() {
	trace_awk '
	function late(kind, s) {
		nr[kind]++; had[kind, plug_of[s]] = 1
		if (seq[s] < last[kind]) behind++; else last[kind] = seq[s]
	}
	/ block_plug: / { plug++ }
	/ block_getrq: / { seq[sector()] = ++got; plug_of[sector()] = plug }
	/ block_rq_insert: / { late(1, sector()); inserted[sector()] = 1 }
	/ block_rq_issue: / {
		issued++
		if (!(sector() in inserted)) late(2, sector())
		delete inserted[sector()]
	}
	END {
		for (i = 1; i <= plug; i++) mixed += ((1, i) in had) && ((2, i) in had)
		printf "issued=%d direct=%d mixed=%d late=%d\n", issued, nr[2], mixed, behind
	}'
}

# mixes DISK MEMBER OPTION...: adds to $plugs; each disk has more to do than it has tags
mixes() {
	local disk=$1 member=$2 r
	shift 2

	trace_start "$member" block/block_{plug,getrq,rq_insert,rq_issue} || return
	load "$disk" -c -r 0 -p seq -n 9600 -l 5000 "$@" || return
	trace_end
	trace_complete || return
	r=$(kinds)
	note "$disk: $r"
	[ "$(value_of issued "$r")" -ge 4800 ] || { fail "too few: $r"; return; }
	[ "$(value_of late "$r")" -eq 0 ] ||
		{ fail "not in the order of submission: $r"; return; }
	((plugs += $(value_of mixed "$r"), plugs >= 10)) ||
		again "only $plugs plugs had both kinds"
}

mixed() {
	local disk=$1 name plugs=0

	for name in "" b; do
		[ -z "$name" ] || null_make "$disk"b size=256 hw_queue_depth=64 irqmode=2 \
			completion_nsec=20000000 && set_sched "$disk$name" "$3" || return
		echo 2 >"/sys/block/$disk$name/queue/nomerges"
		let_issue "$disk$name" "$3" || return
	done
	rounds mixes "$disk" "$disk" -d 96 -b 48 || return
	md_make "$$" 4 "$disk" "$disk"b || return
	plugs=0
	rounds mixes md_$$ "$disk" -d 192 -b 96 && all_back "$disk"b
}

# Nobody flushes the plug of a task that sleeps because it gets no request; some in it
# have a driver tag
sleeps() {
	local disk=$1 slept

	let_issue "$disk" "$3" && put "/sys/block/$disk/queue/nr_requests" 4 || return
	echo "p:blktest/flush blk_mq_flush_plug_list asleep=\$arg2:u8" >>$PROBES ||
		{ skip "no probe for plugs"; return; }
	trace_start "$disk" blktest/flush || return
	load "$disk" -c -t 2 -d 32 -b 32 -n 1600 -r 50 -l 5000 || return
	trace_end
	slept=$(grep -c 'blkload.* flush: .*asleep=1' $TRACE/trace)
	note "$disk: $out, $slept times asleep with requests in the plug"
	[ "$slept" -ge 20 ] || fail "only $slept times asleep with requests in the plug"
}

# As many streams as queues: all requests of the plug may be continued
spread() {
	local disk=$1 i members=

	let_issue "$disk" "$3" || return
	for i in b c d; do
		null_make "$disk$i" size=256 && set_sched "$disk$i" "$3" &&
			let_issue "$disk$i" "$3" || return
		members+=" $disk$i"
	done
	md_make "$$" 4 "$disk" $members || return
	merged md_$$ "$disk" 45 100 -p seq -i 4
}

start_tests
FIRST_NAME=$TEST_NAME
TEST_KINDS=null_blk
TEST_DEVS=
schedulers=$TEST_SCHEDS
TEST_SCHEDS="none $schedulers"
for_each_device plug max_sectors=2560
TEST_NAME="plug buffered"
for_each_device buffered max_sectors=2560
TEST_NAME="plug spread"
for_each_device spread max_sectors=2560
TEST_SCHEDS=$schedulers
TEST_NAME="plug stacked"
for_each_device stack
TEST_NAME="plug beside"
for_each_device beside
TEST_NAME="plug mixed"
for_each_device mixed hw_queue_depth=64 irqmode=2 completion_nsec=20000000
TEST_NAME="plug asleep"
for_each_device sleeps hw_queue_depth=64
finish_tests
