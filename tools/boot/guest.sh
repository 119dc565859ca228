# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# For guest jobs:  . "$ROOT/tools/boot/guest.sh"

guest_die() {
	echo "guest: $*" >&2
	exit 1
}

# wait_for PATH [SECONDS]: until it exists
wait_for() {
	wf_left=$((${2:-10} * 10))
	until [ -e "$1" ]; do
		[ "$wf_left" -gt 0 ] || guest_die "$1 did not appear"
		wf_left=$((wf_left - 1))
		sleep 0.1
	done
}

# set_attr FILE VALUE: write it, or end with one line
set_attr() {
	{ echo "$2" >"$1"; } 2>/dev/null || guest_die "cannot write $2 to $1"
}

# use_sched DISK NAME
use_sched() {
	set_attr "/sys/block/$1/queue/scheduler" "$2"
	case $(cat "/sys/block/$1/queue/scheduler") in
	*"[$2]"*) ;;
	*) guest_die "$1 has no scheduler $2" ;;
	esac
}

# null_make NAME [ATTRIBUTE=VALUE...]: /dev/NAME, by configfs
null_make() {
	nm_dir=/sys/kernel/config/nullb/$1
	nm_name=$1
	shift
	mkdir "$nm_dir" || guest_die "cannot make null_blk $nm_name"
	for nm_attr in "$@"; do
		set_attr "$nm_dir/${nm_attr%%=*}" "${nm_attr#*=}"
	done
	set_attr "$nm_dir/power" 1
	wait_for "/dev/$nm_name"
}

null_remove() {
	set_attr "/sys/kernel/config/nullb/$1/power" 0
	rmdir "/sys/kernel/config/nullb/$1" ||
		guest_die "cannot remove null_blk $1"
}
