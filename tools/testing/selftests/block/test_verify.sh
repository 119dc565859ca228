#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What was written is what is read: several jobs, reads and writes mixed. And the
# writes to a zone stay in order, though the driver gives some back: one out of
# order is an error.

. "$(dirname "$0")/common.sh"

verify() {
	local batch="--iodepth=16 --iodepth_batch_submit=4"

	# shellcheck disable=SC2086
	data_is_kept "$1" --numjobs=3 --offset_increment=4m --size=2m $batch \
		--name=read --rw=randread --size=4m --io_size=1m $batch
}

zoned() {
	null_fault "$1" requeue 10 $MANY &&
		load "$1" -t 4 -d 16 -n 500 -r 0 -p seq -z 16m &&
		null_fault_end "$1" requeue $MANY
}

# An NVMe disk checks by itself that the writes to a zone are in order.
zns() {
	local depth disk=$1

	command -v blkzone >/dev/null || { skip "no program blkzone"; return; }
	[ "$(cat "/sys/block/$disk/queue/chunk_sectors")" -eq 8192 ] ||
		{ skip "the zones of $disk are not of 4 MiB"; return; }
	for depth in 1 16; do
		blkzone reset "/dev/$disk" 2>>"$BLK_TMP" ||
			{ fail "cannot reset the zones of $disk"; return; }
		load "$disk" -t 4 -d $depth -n 500 -r 0 -p seq -z 16m || return
	done
}

need_program fio
start_tests
FIRST_NAME=$TEST_NAME
for_each_device verify memory_backed=1
requeues=/dev/null
TEST_NAME="verify zoned"
if [ "$TEST_KINDS" != null_blk ]; then
	TEST_KINDS=zns
	for_each_device zns
fi
TEST_KINDS=null_blk
TEST_DEVS=
for_each_device zoned zoned=1 zone_size=4 memory_backed=1
finish_tests
