#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# virtio_blk: a disk does not say that it is rotational, and completions that one
# interrupt finds are ended in a batch, each with its own status.

. "$(dirname "$0")/common.sh"

ENOUGH=20	# batches
SPOILED=20	# blocks of TEST_BAD_DEVS, of the first 256

# As the driver made it: no other test leaves it set otherwise
flag() {
	local queue=/sys/block/$1/queue

	[ "$(<"$queue/zoned")" = none ] || { skip "$1 is zoned"; return; }
	[ "$(<"$queue/rotational")" = 0 ] || fail "$1 says that it is rotational"
}

# Where a disk has one hardware queue, a softirq ends each request
has_queues() {
	[ -d "/sys/block/$1/mq/1" ] || skip "$1 has one hardware queue"
}

# probe_ends: an event for each batch that is ended
probe_ends() {
	symbol virtblk_complete_batch && [ -e $PROBES ] &&
		echo "p:blktest/ended $symbol" >>$PROBES || skip "no probe for batches that end"
}

# ends: batches, and the most requests that ended on a CPU after one began and
# before the next one did
ends() {
	trace_awk '
	{ for (cpu = 1; $cpu !~ /^\[[0-9]+\]$/ && cpu < NF; cpu++) ; cpu = $cpu }
	/ ended: / { batches++; size[cpu] = 0 }
	/ block_rq_complete: / { if (++size[cpu] > most && batches) most = size[cpu] }
	END { printf "batches=%d most=%d\n", batches, most }'
}

# ended DISK: what was seen of a load whose data are compared
ended() {
	local disk=$1 r

	trace_start "$disk" block/block_rq_complete blktest/ended || return
	load "$disk" -V -t 4 -d 32 -b 16 -r 50 -n 1000 -z 16m || return
	trace_end
	trace_complete || return
	r=$(ends)
	note "$disk: $r"
	[ "$(value_of batches "$r")" -ge $ENOUGH ] && [ "$(value_of most "$r")" -ge 2 ] ||
		again "few requests end in batches: $r"
}

batch() {
	has_queues "$1" || return
	let_issue "$1" "$3"
	probe_ends && rounds ended "$1"
}

# What cannot be written fails, also among others of its batch, and only that
errors() {
	has_queues "$1" || return
	let_issue "$1" "$3"
	put "/sys/block/$1/queue/nomerges" 2 && probe_ends &&
		trace_start "$1" blktest/ended || return
	load "$1" -e -d 32 -b 32 -B -r 0 -z 1m -n 1024 || return
	trace_end
	note "$1: $(ends), $out"
	[ "$(value_of errors "$out")" -eq $((4 * SPOILED)) ] ||
		{ fail "not $((4 * SPOILED)) writes failed: $out"; return; }
	[ "$(value_of batches "$(ends)")" -ge 1 ] || fail "no batch ended"
}

start_tests
TEST_KINDS=virtio_blk
FIRST_NAME=$TEST_NAME
TEST_NAME="virtio flag"
for_each_device flag
TEST_NAME="virtio batch"
for_each_device batch
TEST_NAME="virtio errors"
TEST_DEVS=$TEST_BAD_DEVS
for_each_device errors
finish_tests
