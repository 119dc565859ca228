#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The machine sleeps and wakes up while data are written and read back. Tasks are
# frozen, then the driver takes its queues down, those for commands to a controller
# too; all go up again.
#
# The whole machine stops for some seconds, so only with TEST_SUSPEND=1. Disks that
# need their power to keep data lose them.

. "$(dirname "$0")/common.sh"

SECS=${TEST_SECS:-5}
PM=/sys/power

slept() {
	dmesg | grep -c 'PM: suspend debug: Waiting'
}

asleep() {
	local disk=$1 before n

	let_issue "$disk" "$3"
	before=$(slept)
	background "$disk" -d 4 -r 100 -o 32m
	data_begin "$disk" "$SECS"
	put $PM/pm_test platform || return
	for n in 1 2; do
		step "$disk" $PM/state freeze || break
	done
	echo none >$PM/pm_test
	data_end && background_stop || return
	[ -z "$reason" ] || return 1
	[ "$(slept)" -eq $((before + 2)) ] || fail "the machine did not sleep"
}

need_program fio
[ -n "$TEST_SUSPEND" ] || skip_all "not asked to suspend (TEST_SUSPEND=1)"
grep -q platform $PM/pm_test 2>/dev/null || skip_all "no $PM/pm_test"
start_tests
only_kinds nvme virtio_blk
for_each_device asleep
finish_tests
