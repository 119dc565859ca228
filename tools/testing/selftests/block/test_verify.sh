#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What was written is what is read: several jobs, reads and writes mixed.

. "$(dirname "$0")/common.sh"

verify() {
	local disk=$1 log

	log=$(fio --filename="/dev/$disk" --direct=1 --ioengine=io_uring --bs=4k \
		--iodepth=16 --iodepth_batch_submit=4 --offset_increment=4m --size=4m \
		--group_reporting --output-format=terse \
		--name=write --rw=randwrite --numjobs=3 --verify=crc32c \
		--do_verify=1 --verify_fatal=1 --verify_state_save=0 \
		--name=read --rw=randread --io_size=2m 2>&1) ||
		fail "fio: $(grep -v '^3;' <<<"$log" | head -3 | tr '\n' ' ')"
}

need_program fio
start_tests
for_each_device verify memory_backed=1
finish_tests
