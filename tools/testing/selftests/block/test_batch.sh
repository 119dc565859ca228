#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Requests that are issued directly reach a driver with ->queue_rqs() as a batch, in
# the order of submission. And what the driver does not take of one, the first, one in
# the middle or the last, is neither lost nor kept. Nor are those behind one that fails.

. "$(dirname "$0")/common.sh"

SUBMISSIONS=100
SIZE=8
SECS=${TEST_SECS:-6}

# Batches of blkload, issued requests, and those of them that come after one that was
# submitted later
batches() {
	trace_awk '
	!/ blkload-/ { next }
	/ batch: / { batches++ }
	/ block_getrq: / { seq[sector()] = ++nr }
	/ block_rq_issue: / {
		s = sector(); issued++
		if (seq[s] < last) late++; else last = seq[s]
	}
	END { printf "batches=%d issued=%d late=%d\n", batches, issued, late }'
}

batch() {
	local disk=$1 r

	# how many of these it may have can change with each: they are issued singly
	has_own_tags "$disk" || return
	let_issue "$disk" "$3"
	probe_batches "$2" || return
	trace_start "$disk" block/block_{getrq,rq_issue} blktest/batch || return
	load "$disk" -f 0 -c -d $SIZE -b $SIZE -B -n $((SUBMISSIONS * SIZE)) || return
	trace_end
	trace_complete || return
	r=$(batches)
	note "$disk: $r"
	[ "$(value_of batches "$r")" -ge $((SUBMISSIONS * 9 / 10)) ] ||
		{ fail "$SUBMISSIONS submissions, but not as many batches: $r"; return; }
	[ "$(value_of issued "$r")" -ge $((SUBMISSIONS * SIZE * 9 / 10)) ] &&
		[ "$(value_of late "$r")" -eq 0 ] ||
		fail "not issued in the order of submission: $r"
}

# Each 13th request of the driver fails: as batches have 8, each place comes in
# turn. Half of these the driver hands back, the others it requeues by itself.
refused() {
	local disk=$1 dir=$NULLB/$1/requeue_inject r

	let_issue "$disk" "$3"
	probe_batches "$2" && null_fault "$disk" requeue 100 $MANY || return
	echo 13 >"$dir/interval"
	trace_start "$disk" block/block_{getrq,rq_requeue,rq_issue} blktest/batch || return
	load "$disk" -V -c -d $SIZE -b $SIZE -B -r 50 -n $((4 * SUBMISSIONS * SIZE)) || return
	trace_end
	null_fault "$disk" requeue 0 0
	r="$(batches) requeued=$(grep -c ' block_rq_requeue: ' $TRACE/trace)"
	note "$disk: $r"
	# after a refusal the next ones are inserted
	[ "$(value_of batches "$r")" -ge $SUBMISSIONS ] &&
		[ "$(value_of requeued "$r")" -ge $((SUBMISSIONS / 2)) ] ||
		fail "hardly a batch, or nothing refused: $r"
}

# A controller that is reset takes nothing meanwhile
reset() {
	local disk=$1 file=/sys/block/$1/device/reset_controller n=0

	[ -w "$file" ] || { skip "no reset of the controller"; return; }
	let_issue "$disk" "$3"
	data_begin "$disk" "$SECS"
	while ! gone $fio; do
		step "$disk" "$file" 1 || gone $fio || return
		n=$((n + 1))
	done
	data_end || return
	# the last one may have met the end
	reason=
	note "$disk: $n resets"
	[ $n -gt 0 ] || fail "the controller was not reset"
}

# Requests that failed, by the place they had in a batch of blkload
places() {
	trace_awk '
	/ blkload-.* batch: / { size[++batch] = 0 }
	/ blkload-.* block_rq_issue: / {
		s = sector(); of[s] = batch; place[s] = ++size[batch]
	}
	/ block_rq_complete: / && $NF != "[0]" {
		s = sector(); nr++; failed[nr] = of[s]; at[nr] = place[s]
	}
	END {
		for (i = 1; i <= nr; i++) {
			if (at[i] == 1)
				first++
			else if (at[i] == size[failed[i]])
				last++
			else
				middle++
		}
		printf "batches=%d failed=%d first=%d middle=%d last=%d\n",
			batch, nr, first, middle, last
	}'
}

# Each 13th block of the first 256 cannot be written: 20 of them, 4 times. Those
# behind them in their batch can.
spoiled() {
	local disk=$1 r place

	let_issue "$disk" "$3"
	probe_batches "$2" || return
	trace_start "$disk" block/block_rq_{issue,complete} blktest/batch || return
	load "$disk" -e -c -d $SIZE -b $SIZE -B -r 0 -z 1m -n 1024 || return
	trace_end
	trace_complete || return
	r=$(places)
	note "$disk: $r; $out"
	[ "$(value_of errors "$out")" -eq 80 ] && [ "$(value_of failed "$r")" -eq 80 ] ||
		{ fail "not 80 writes failed: $r; $out"; return; }
	[ "$(value_of batches "$r")" -ge 100 ] || { fail "not as many batches: $r"; return; }
	for place in first middle last; do
		[ "$(value_of $place "$r")" -ge 1 ] ||
			{ fail "none failed at this place, $place: $r"; return; }
	done
}

need_program fio
start_tests
FIRST_NAME=$TEST_NAME
kinds=$TEST_KINDS
# the others have no ->queue_rqs()
only_kinds null_blk virtio_blk nvme ublk ublk4
for_each_device batch hw_queue_depth=128
requeues=/dev/null
TEST_NAME="batch reset"
only_kinds nvme
for_each_device reset
TEST_NAME="batch spoiled"
TEST_DEVS=$TEST_BAD_DEVS
TEST_KINDS=$kinds
only_kinds virtio_blk nvme
for_each_device spoiled
TEST_NAME="batch refused"
TEST_DEVS=
TEST_KINDS=$kinds
only_kinds null_blk
for_each_device refused hw_queue_depth=128 "${NULL_KEEPS[@]}"
finish_tests
