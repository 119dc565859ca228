#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What was written is what is read: several jobs, reads and writes mixed, most of
# which are issued directly, while others go through the scheduler. And the writes to
# a zone stay in order, though the driver gives some back, also such as were issued
# directly: one out of order is an error.

. "$(dirname "$0")/common.sh"

ENOUGH=20	# that were issued directly and came back

verify() {
	local disk=$1 batch="--iodepth=16 --iodepth_batch_submit=4"

	let_issue "$disk" "$3" || return
	! has_direct "$disk" || counted_since "$disk"
	# shellcheck disable=SC2086
	data_is_kept "$disk" --numjobs=3 --offset_increment=4m --size=2m $batch \
		--name=read --rw=randread --size=4m --io_size=1m $batch || return
	# the real-time class is inserted, and for bfq all others than one of the classes
	load "$disk" -V -t 4 -d 4 -b 2 -n 200 -r 50 -P 2:4,1:0 || return
	can_issue "$disk" && part_direct "$disk" || return
	[ "${since[insert]}" -ge 20 ] || fail "only ${since[insert]} are inserted"
}

# A driver that may sleep does so in the tasks that submit
verify_blocking() {
	let_issue "$1" "$3" && counted_since "$1" || return
	data_is_kept "$1" --numjobs=3 --offset_increment=4m --size=2m --iodepth=16 &&
		can_issue "$1" && part_direct "$1"
}

zoned() {
	null_fault "$1" requeue 10 $MANY &&
		load "$1" -V -t 4 -d 16 -n 500 -r 0 -p seq -z 16m &&
		null_fault_end "$1" requeue $MANY
}

# The same, where writes are issued directly. The driver gives back some to the core,
# and some by a requeue of its own.
zoned_direct() {
	local disk=$1 r

	let_issue "$disk" "$3" &&
		trace_start "$disk" block/block_rq_{insert,issue,requeue,complete} &&
		zoned "$disk" || return
	trace_end
	trace_complete || return
	r=$(issued_directly)
	note "$disk: $r"
	[ "$(value_of back "$r")" -ge $ENOUGH ] ||
		fail "hardly a write came back that was issued directly: $r"
}

# An NVMe disk checks by itself that the writes to a zone are in order.
zns() {
	local depth disk=$1

	command -v blkzone >/dev/null || { skip "no program blkzone"; return; }
	[ "$(cat "/sys/block/$disk/queue/chunk_sectors")" -eq 8192 ] ||
		{ skip "the zones of $disk are not of 4 MiB"; return; }
	let_issue "$disk" "$3" || return
	for depth in 1 16; do
		blkzone reset "/dev/$disk" 2>>"$BLK_TMP" ||
			{ fail "cannot reset the zones of $disk"; return; }
		load "$disk" -V -t 4 -d $depth -n 500 -r 0 -p seq -z 16m || return
	done
}

need_program fio
start_tests
FIRST_NAME=$TEST_NAME
for_each_device verify "${NULL_KEEPS[@]}"
requeues=/dev/null
TEST_NAME="verify zoned"
if [ "$TEST_KINDS" != null_blk ]; then
	TEST_KINDS=zns
	for_each_device zns
fi
TEST_KINDS=null_blk
TEST_DEVS=
TEST_NAME="verify blocking"
for_each_device verify_blocking memory_backed=1
TEST_NAME="verify zoned"
for_each_device zoned zoned=1 zone_size=4 memory_backed=1
TEST_NAME="verify zoned direct"
NEEDS_DIRECT=1
for_each_device zoned_direct zoned=1 zone_size=4 "${NULL_KEEPS[@]}"
finish_tests
