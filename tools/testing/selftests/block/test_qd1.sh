#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One I/O at a time on two CPUs: each finds the other dispatching, or just gone.
# Nobody else comes by to start an I/O that was left behind. On a rotational disk all of
# them go through the scheduler, on others most are issued directly.

. "$(dirname "$0")/common.sh"

LIMIT=1000	# ms

# modes DISK ROTATIONAL MODE...: adds to $ios
modes() {
	local disk=$1 mode

	echo "$2" >"/sys/block/$disk/queue/rotational"
	for mode in "${@:3}"; do
		# shellcheck disable=SC2086
		load "$disk" -c -l $LIMIT $mode || return
		note "$disk: rotational $2: $mode: $out"
		ios=$((ios + $(value_of ios "$out")))
	done
}

qd1() {
	local disk=$1 ios=0 both=("-t 2 -s 2 -B" "-t 2 -s 2 -B -d 3 -b 3")

	# two at the same moment, again and again, single and plugged: a single I/O
	# is dispatched by the one work item of its queue, a plug by its submitter;
	# one after the other at any distance; reads and writes; more tasks than CPUs
	modes "$disk" 1 "${both[@]}" \
		"-t 2 -s 1 -u 50" "-t 2 -s 1 -r 50" "-t 8 -s 1 -u 20" &&
		modes "$disk" 0 "${both[@]}" || return
	[ $ios -ge 200 ] || fail "only $ios I/Os"
}

start_tests
FIRST_NAME=$TEST_NAME
for_each_device qd1 irqmode=0
TEST_KINDS=null_blk
TEST_DEVS=
TEST_NAME="qd1 softirq"
for_each_device qd1 irqmode=1
TEST_NAME="qd1 two queues"
for_each_device qd1 irqmode=0 submit_queues=2
finish_tests
