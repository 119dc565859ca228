#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Requests that go past the scheduler reach a driver with ->queue_rqs() as a
# batch, in the scheduler's order. And what the driver does not take of one, the
# first, one in the middle or the last, is neither lost nor kept.

. "$(dirname "$0")/common.sh"

SUBMISSIONS=100
SIZE=8
SECS=6

# Batches of blkload, issued requests, and those of them that come before one
# of their batch that begins at a lower sector
batches() {
	trace_awk '
	!/ blkload-/ { next }
	/ batch: / { batches++; last = 0 }
	/ block_rq_issue: / {
		s = sector(); issued++
		if (s < last) late++
		last = s
	}
	END { printf "batches=%d issued=%d late=%d\n", batches, issued, late }'
}

batch() {
	local disk=$1 r

	let_pass "$disk" "$3"
	probe_batches "$2" || return
	trace_start "$disk" block/block_rq_issue blktest/batch || return
	load "$disk" -c -d $SIZE -b $SIZE -B -n $((SUBMISSIONS * SIZE)) || return
	trace_end
	trace_complete || return
	r=$(batches)
	note "$disk: $r"
	# what bfq knows of a process, it learns from its first requests
	[ "$(value_of batches "$r")" -ge $((SUBMISSIONS * 8 / 10)) ] ||
		fail "$SUBMISSIONS submissions, but not as many batches: $r"
	[ "$(value_of issued "$r")" -ge $((SUBMISSIONS * SIZE * 9 / 10)) ] &&
		[ "$(value_of late "$r")" -le $((SUBMISSIONS / 10)) ] ||
		fail "not issued in the order of their sectors: $r"
}

verified() {
	data_is_kept "$1" --numjobs=2 --size=2m --offset_increment=4m \
		--iodepth=16 --iodepth_batch_submit=8 --verify_backlog=64 \
		--time_based --runtime=$SECS
}

# Each 13th request of the driver fails: as batches have 8, each place comes in
# turn. Half of these the driver hands back, the others it requeues by itself.
refused() {
	local disk=$1 dir=$NULLB/$1/requeue_inject r

	[ -d "$dir" ] || { skip "no fault injection in null_blk"; return; }
	let_pass "$disk" "$3"
	probe_batches "$2" || return
	echo 13 >"$dir/interval"
	null_fault "$disk" requeue 100 -1
	trace_start "$disk" block/block_rq_{requeue,issue} blktest/batch || return
	load "$disk" -c -d $SIZE -b $SIZE -B -r 50 -n $((4 * SUBMISSIONS * SIZE)) || return
	trace_end
	null_fault "$disk" requeue 0 0
	r="$(batches) requeued=$(grep -c ' block_rq_requeue: ' $TRACE/trace)"
	note "$disk: $r"
	# each refusal ends what may bypass for some requests
	[ "$(value_of batches "$r")" -ge $SUBMISSIONS ] &&
		[ "$(value_of requeued "$r")" -ge $((SUBMISSIONS / 2)) ] ||
		fail "hardly a batch, or nothing refused: $r"
}

# A controller that is reset takes nothing meanwhile
reset() {
	local disk=$1 file=/sys/block/$1/device/reset_controller n=0

	[ -w "$file" ] || { skip "no reset of the controller"; return; }
	let_pass "$disk" "$3"
	( verified "$disk" || { echo "$reason" >>"$BLK_TMP"; exit 1; } ) &
	fio=$!
	while ! gone $fio; do
		step "$disk" "$file" 1 || gone $fio || return
		n=$((n + 1))
	done
	wait $fio || { fail "$(cat "$BLK_TMP")"; return; }
	# the last one may have met the end
	reason=
	note "$disk: $n resets"
}

need_program fio
start_tests
FIRST_NAME=$TEST_NAME
kinds=$TEST_KINDS
# the others have no ->queue_rqs()
only_kinds null_blk virtio_blk nvme
for_each_device batch hw_queue_depth=128
requeues=/dev/null
TEST_NAME="batch reset"
only_kinds nvme
for_each_device reset
TEST_NAME="batch refused"
TEST_DEVS=
TEST_KINDS=$kinds
only_kinds null_blk
for_each_device refused hw_queue_depth=128
finish_tests
