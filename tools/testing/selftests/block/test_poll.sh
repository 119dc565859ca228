#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Polled I/O: what is on a hardware queue without an interrupt is found by those that
# poll, whether it was issued directly or went through the scheduler, and data are
# kept. Nobody else would complete it.

. "$(dirname "$0")/common.sh"

ENOUGH=20	# times that polling finds something

# probe_polled: an event when polling has found something
probe_polled() {
	[ -e $PROBES ] && echo "r100:blktest/polled blk_mq_poll found=\$retval:s32" >>$PROBES &&
		trace_make && put $TRACE/events/blktest/polled/filter "found > 0" ||
		skip "no probe for what polling finds"
}

# polled DISK: what fio writes and reads back
polled() {
	local disk=$1 found

	trace_start "$disk" blktest/polled || return
	! has_direct "$disk" || counted_since "$disk"
	data_is_kept "$disk" --hipri --numjobs=3 --offset_increment=4m --size=1m --iodepth=16 \
		--iodepth_batch_submit=4 || return
	trace_end
	trace_complete || return
	found=$(grep -c ' polled: ' $TRACE/trace)
	note "$disk: $found times polling found something"
	[ "$found" -ge $ENOUGH ] || fail "only $found times polling found something"
}

poll() {
	local disk=$1

	grep -qx poll "/sys/kernel/debug/block/$disk"/hctx*/type ||
		{ skip "no hardware queue of $disk is polled"; return; }
	let_issue "$disk" "$3" && probe_polled && polled "$disk" || return
	can_issue "$disk" && part_direct "$disk" || return
	put "/sys/block/$disk/queue/iosched/direct_issue" 0 && polled "$disk" || return
	counted_since "$disk"
	note "$disk: ${since[insert]} inserted"
	[ "${since[direct]}" -eq 0 ] && [ "${since[insert]}" -ge 500 ] ||
		fail "only ${since[insert]} inserted, and ${since[direct]} issued directly"
}

need_program fio
start_tests
# scsi_debug mixes up the data of polled reads, whatever the scheduler
only_kinds null_blk virtio_blk nvme
for_each_device poll poll_queues=1 "${NULL_KEEPS[@]}"
finish_tests
