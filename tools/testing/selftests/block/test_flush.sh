#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What goes around the scheduler is not starved by what is in it: flush,
# passthrough, and writes with their own flush, on a device that is always full.

. "$(dirname "$0")/common.sh"

LIMIT=3000	# ms
NR=10

# bounded DISK NAME OPTION...: each I/O of it below the limit
bounded() {
	local disk=$1 name=$2
	shift 2

	load "$disk" -d 1 -u 5000 -l $LIMIT "$@" || return
	note "$disk: $name: $out"
}

under_load() {
	local disk=$1

	bounded "$disk" flush -n $NR -x fsync || return
	bounded "$disk" "synchronous write" -n $NR -r 0 -y || return
	case $2 in
	scsi_debug) bounded "$disk" passthrough -n $NR -x sg ;;
	nvme) bounded "$disk" passthrough -n $NR -x nvme ;;
	virtio_blk) bounded "$disk" passthrough -n $NR -x "read:/sys/block/$disk/serial" ;;
	esac
}

flush() {
	local disk=$1

	if ! grep -q "write back" "/sys/block/$disk/queue/write_cache"; then
		[ "$2" != null_blk ] || { fail "$disk has no write cache"; return; }
		note "$disk has no write cache: a flush does nothing"
	fi
	background "$disk" -t 4 -d 64 -b 8
	under_load "$disk" "$2"
}

start_tests
for_each_device flush memory_backed=1 cache_size=16 fua=1 hw_queue_depth=16
finish_tests
