# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Common parts of the block tests: TAP, devices, trace, what must hold at the end.
#
# The tests only use devices that they make themselves (null_blk, scsi_debug) and
# those named in TEST_DEVS, whose content is lost:
#   TEST_DEVS="/dev/vdb /dev/nvme1n1" ./test_verify.sh
# and in TEST_BAD_DEVS, of which each 13th block of 4 KiB in the first MiB cannot
# be written.
# TEST_SCHEDS, TEST_KINDS, TEST_PARTS ("direct f*"), BLKLOAD and KTAP narrow or redirect
# a run. TEST_UNTIL_RED ends it with the first failure. TEST_KINDS may also have ublk and
# ublk4: disks of one queue and of four, whose driver is the process UBLKMEM.
#
# What is done often is done without other programs: in a busy guest each takes most
# of a second to start.

BLK_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BLKLOAD=${BLKLOAD:-$BLK_DIR/blkload}
UBLKMEM=${UBLKMEM:-$BLK_DIR/ublkmem}
TEST_SCHEDS=${TEST_SCHEDS:-mq-deadline bfq}
TEST_KINDS=${TEST_KINDS:-null_blk scsi_debug virtio_blk nvme}
NULLB=/sys/kernel/config/nullb
NVMET=/sys/kernel/config/nvmet
SDEBUG=/sys/bus/pseudo/drivers/scsi_debug
SDEBUG_QUEUE=64
SDEBUG_NSEC=100000
# A null_blk that keeps data; its driver does not sleep if it can do without
NULL_KEEPS=(memory_backed=1)
MANY=1000000	# faults: no end of them, but they are counted
TEST_NAME=$(basename "$0" .sh)
TEST_NAME=${TEST_NAME#test_}

null_made=()
md_made=()
nvmet_made=
ublk_file=
ublk_pid=
ublk_disk=
bg=()
reason=

# shellcheck source=/dev/null
. "${KTAP:-$BLK_DIR/../kselftest/ktap_helpers.sh}"

skip_all() {
	ktap_skip_all "$1"
	exit "$KSFT_SKIP"
}

need_program() {
	command -v "$1" >/dev/null || skip_all "no program $1"
}

# where CPUs are asked to come and go, one can
need_hotplug() {
	[ -z "$TEST_HOTPLUG" ] || [ -e /sys/devices/system/cpu/cpu1/online ] ||
		skip_all "no CPU can go offline"
}

# result OK-STATUS NAME...: one TAP line; $reason tells why it failed
result() {
	local status=$1
	shift

	if [ "$status" -eq 0 ]; then
		ktap_test_pass "$TEST_NAME: $*"
	elif [ "$status" -eq "$KSFT_SKIP" ]; then	# with the reason
		__ktap_test ok "$TEST_NAME: $*" "SKIP $reason"
		KTAP_CNT_SKIP=$((KTAP_CNT_SKIP + 1))
	else
		note "$reason"
		ktap_test_fail "$TEST_NAME: $*"
		[ -z "$TEST_UNTIL_RED" ] || exit 1
	fi
	reason=
}

note() {
	echo "# $*"
}

# fail REASON, skip REASON: for the functions that for_each_device calls
fail() {
	reason=$1
	return 1
}

skip() {
	reason=$1
	return "$KSFT_SKIP"
}

# again REASON: too little was seen; rounds FUNCTION ARGUMENT...: once more while it
# says so, which the last time is a failure. What is looked for may be rare on a busy
# machine.
ROUNDS=5
AGAIN=99	# no status of a shell or of kselftest

again() {
	reason=$1
	return $AGAIN
}

rounds() {
	local round status

	for ((round = 1; round <= ROUNDS; round++)); do
		"$@"
		status=$?
		[ $status -eq $AGAIN ] || return $status
	done
	return 1
}

start_tests() {
	[ "$(id -u)" -eq 0 ] || skip_all "not root"
	[ -d /sys/kernel/debug/block ] || skip_all "no debugfs (mounted?)"
	[ -x "$BLKLOAD" ] || skip_all "no $BLKLOAD; run make"
	BLK_TMP=$(mktemp) || exit 1
	trap cleanup EXIT
	trap 'exit 1' INT TERM
	! null_has prealloc || NULL_KEEPS+=(prealloc=1 size=64)
	ktap_print_header
	dmesg_mark
}

finish_tests() {
	local status

	dmesg_clean
	status=$?
	TEST_NAME=${FIRST_NAME:-$TEST_NAME}
	result $status "kernel log has no complaint"
	ktap_set_plan $((KTAP_TESTNO - 1))
	if [ "$KTAP_CNT_FAIL" -eq 0 ] && [ "$KTAP_CNT_PASS" -le 1 ]; then
		ktap_print_totals
		exit "$KSFT_SKIP"
	fi
	ktap_finished
}

cleanup() {
	local dir

	background_stop
	trace_stop
	for dir in $TRACE ${TRACE}direct ${TRACE}insert; do
		[ ! -d "$dir" ] || rmdir "$dir"
	done
	md_remove_all
	nvmet_remove
	ublk_remove
	null_remove_all
	rm -f "$BLK_TMP"
}

# ---- kernel log

dmesg_mark() {
	dmesg_start="block test $TEST_NAME $$ begins"
	echo "$dmesg_start" >/dev/kmsg
}

dmesg_clean() {
	local bad='WARNING:|BUG:|Oops|KASAN|INFO: task .* blocked|soft lockup|' log

	bad+='rcu.*stall|list_(add|del) corruption|general protection'
	# all that is left of it, if our mark was overwritten
	log=$(dmesg) && log=$(awk -v mark="$dmesg_start" '
		index($0, mark) { all = ""; next }
		{ all = all $0 "\n" }
		END { printf "%s", all }' <<<"$log") ||
		{ fail "cannot read the kernel log"; return; }
	[ -z "$TEST_RACES" ] || log=${log//BUG: KCSAN/KCSAN}
	# Linux 6.12 says so of each freeze of NVMe queues, which another task ends.
	[[ $(uname -r) != 6.12.* ]] || log=$(sed '/BUG: workqueue leaked/ {
		N; N; N; N; N
		/nvme_start_freeze/ s/BUG: // }' <<<"$log")
	bad=$(grep -E -m1 -A3 "$bad" <<<"$log") || return 0
	fail "kernel log: ${bad//$'\n'/ | }"
}

# ---- devices

put() {
	{ echo "$2" >"$1"; } 2>/dev/null || fail "cannot write '$2' to $1"
}

# wait_until SECONDS COMMAND...
wait_until() {
	local end=$((SECONDS + $1))
	shift

	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# null_make NAME ATTRIBUTE=VALUE...
null_make() {
	local name=$1 attr
	shift

	[ -d $NULLB ] || modprobe null_blk nr_devices=0 2>/dev/null
	mkdir "$NULLB/$name" || { fail "cannot make a null_blk"; return 1; }
	null_made+=("$name")
	for attr in "$@"; do
		put "$NULLB/$name/${attr%%=*}" "${attr#*=}" || return 1
	done
	put "$NULLB/$name/power" 1 || return 1
	wait_until 10 test -b "/dev/$name" || fail "/dev/$name did not appear"
}

null_remove_all() {
	local name

	for name in "${null_made[@]}"; do
		[ -d "$NULLB/$name" ] || continue
		null_fault "$name" requeue 0 0 || reason=
		echo 0 >"$NULLB/$name/power"
		rmdir "$NULLB/$name"
	done
	null_made=()
}

# null_has ATTRIBUTE: whether the null_blk of this kernel has it
null_has() {
	[ -d $NULLB ] || modprobe null_blk nr_devices=0 2>/dev/null
	[ -d $NULLB ] && [[ ,$(<$NULLB/features), = *,$1,* ]]
}

# md_make NAME CHUNK_KIB MEMBER...: a raid0 without metadata, md_NAME
md_make() {
	local name=$1 chunk=$2 md=/sys/block/md_$1/md slot=0 member
	shift 2

	[ -d /sys/module/md_mod ] || { skip "no md"; return; }
	# one that was cleared may stay
	[ -d "/sys/block/md_$name" ] ||
		put /sys/module/md_mod/parameters/new_array "md_$name" || return
	md_made+=("$name")
	put $md/metadata_version none && put $md/level raid0 &&
		put $md/raid_disks $# && put $md/chunk_size $((chunk * 1024)) || return
	for member in "$@"; do
		put $md/new_dev "$(cat "/sys/block/$member/dev")" &&
			put "$md/dev-$member/slot" $((slot++)) &&
			put "$md/dev-$member/size" \
				$(($(cat "/sys/block/$member/size") / 2)) || return
	done
	put $md/array_state active || return
	wait_until 10 test -b "/dev/md_$name" || fail "/dev/md_$name did not appear"
}

md_remove_all() {
	local name

	for name in "${md_made[@]}"; do
		wait_until 10 put "/sys/block/md_$name/md/array_state" clear
	done
	md_made=()
}

# null_fault NAME requeue|timeout PERCENT TIMES
null_fault() {
	local dir=$NULLB/$1/$2_inject

	[ -d "$dir" ] || { skip "no fault injection in null_blk"; return; }
	echo 0 >"$dir/verbose"
	echo "$4" >"$dir/times"
	echo "$3" >"$dir/probability"
}

# null_fault_end NAME requeue|timeout TIMES: there was one at least
null_fault_end() {
	local left

	left=$(<"$NULLB/$1/$2_inject/times")
	null_fault "$1" "$2" 0 0
	[ "$left" -lt "$3" ] || fail "not one $2 of null_blk"
}

# sdebug_make: sets $disk to a disk of scsi_debug (builtin or module) whose host
# takes $SDEBUG_QUEUE commands, each for $SDEBUG_NSEC
sdebug_make() {
	disk=
	[ -d $SDEBUG ] || modprobe scsi_debug dev_size_mb=128 2>/dev/null
	[ -d $SDEBUG ] || { skip "no scsi_debug"; return; }
	if [ "$(cat $SDEBUG/max_queue)" != "$SDEBUG_QUEUE" ]; then
		# only without a host
		put $SDEBUG/add_host -1 && put $SDEBUG/max_queue "$SDEBUG_QUEUE" &&
			put $SDEBUG/add_host 1 || return
	fi
	wait_until 20 sdebug_disk || { skip "no disk of scsi_debug"; return; }
	[ "$(cat "/sys/block/$disk/size")" -ge 131072 ] ||
		{ skip "scsi_debug has less than 64 MiB (dev_size_mb=128)"; return; }
	sdebug_reset
}

sdebug_disk() {
	local block

	for block in /sys/devices/pseudo_0/adapter*/host*/target*/*/block/*; do
		disk=$(basename "$block")
		[ -b "/dev/$disk" ] && return
	done
	return 1
}

sdebug_reset() {
	[ -d $SDEBUG ] || return 0
	echo 0 >$SDEBUG/opts
	echo 0 >$SDEBUG/every_nth
	wait_until 5 put $SDEBUG/ndelay "$SDEBUG_NSEC" || return
	reason=
}

# nvmet_make NAME MIB QUEUES: sets $disk to an NVMe disk that is the file
# $NVMET_FILE on this machine
nvmet_make() {
	local name=$1 sub=$NVMET/subsystems/$1 port=$NVMET/ports/99 answer number

	disk=
	[ -d $NVMET ] || modprobe -a nvmet nvme-loop 2>/dev/null
	[ -d $NVMET ] && [ -w /dev/nvme-fabrics ] || { skip "no nvme-loop"; return; }
	NVMET_FILE=$(mktemp) && truncate -s "$2M" "$NVMET_FILE" || return
	nvmet_made=$name
	mkdir "$sub" && put "$sub/attr_allow_any_host" 1 && mkdir "$sub/namespaces/1" &&
		put "$sub/namespaces/1/device_path" "$NVMET_FILE" &&
		put "$sub/namespaces/1/buffered_io" 1 &&
		put "$sub/namespaces/1/enable" 1 &&
		mkdir $port && put $port/addr_trtype loop &&
		ln -s "$sub" "$port/subsystems/$name" || return
	# the answer is "instance=1,cntlid=1"
	exec 9<>/dev/nvme-fabrics
	echo "transport=loop,nqn=$name,nr_io_queues=$3" >&9 && read -r answer <&9 ||
		{ fail "cannot connect to nvme-loop"; return; }
	exec 9>&-
	number=${answer#instance=}
	disk=nvme${number%%,*}n1
	wait_until 10 test -b "/dev/$disk" || fail "/dev/$disk did not appear"
}

nvmet_remove() {
	local sub=$NVMET/subsystems/$nvmet_made port=$NVMET/ports/99 ctrl

	[ -n "$nvmet_made" ] || return 0
	for ctrl in /sys/class/nvme/nvme*; do
		[ "$(cat "$ctrl/subsysnqn")" != "$nvmet_made" ] ||
			echo 1 >"$ctrl/delete_controller"
	done
	rm -f "$port/subsystems/$nvmet_made" "$NVMET_FILE"
	rmdir $port "$sub/namespaces/1" "$sub"
	nvmet_made=
}

# ublk_make [QUEUES]: sets $disk to a ublk disk that is the file $ublk_file
ublk_make() {
	disk=
	[ -x "$UBLKMEM" ] || { skip "no ublk server"; return; }
	[ -c /dev/ublk-control ] || modprobe ublk_drv 2>/dev/null
	[ -c /dev/ublk-control ] || { skip "no ublk"; return; }
	ublk_file=$(mktemp) && truncate -s 256M "$ublk_file" && ublk_serve -q "${1:-1}" || return
	disk=$ublk_disk
	wait_until 10 test -b "/dev/$disk" || fail "/dev/$disk did not appear"
}

# ublk_serve OPTION...: starts a server; when it has said its $ublk_disk, that has its I/O
ublk_serve() {
	read -r -t 30 ublk_disk < <(exec "$UBLKMEM" "$@" "$ublk_file" 2>>"$BLK_TMP")
	ublk_pid=$!
	[ -n "$ublk_disk" ] || fail "no disk of the ublk server: $(<"$BLK_TMP")"
}

ublk_remove() {
	local number=${ublk_disk#ublkb}

	[ -n "$ublk_file" ] || return 0
	kill "$ublk_pid" 2>/dev/null
	wait_until 30 gone "$ublk_pid" || { fail "the ublk server does not end"; return; }
	rm -f "$ublk_file"
	ublk_file=
	# one that was killed leaves it
	[ -z "$number" ] || [ ! -e "/dev/ublkc$number" ] || "$UBLKMEM" -x "$number" ||
		fail "$ublk_disk is still there"
}

kind_of() {
	case $1 in
	vd*) echo virtio_blk ;;
	nvme*)
		if [ "$(<"/sys/block/$1/queue/zoned")" = none ]; then
			echo nvme
		else
			echo zns
		fi ;;
	*) echo other ;;
	esac
}

set_sched() {
	put "/sys/block/$1/queue/scheduler" "$2" || return
	[[ $(<"/sys/block/$1/queue/scheduler") = *"[$2]"* ]] ||
		fail "$1 does not take the scheduler $2"
}

# let_issue DISK SCHED: requests that need not wait may be issued directly. bfq looks
# at the kind of disk when it comes, would raise a new process, and wants to see for
# a while that all are equal.
let_issue() {
	echo 0 >"/sys/block/$1/queue/rotational"
	[ "$2" = bfq ] || return 0
	set_sched "$1" none && set_sched "$1" bfq &&
		put "/sys/block/$1/queue/iosched/low_latency" 0 &&
		load "$1" -n 1 && sleep 0.3
}

has_direct() {
	[ -e "/sys/block/$1/queue/iosched/direct_issue" ]
}

# async_depth DISK: prints the name of its file. Before Linux 7.0 that is a file of the
# scheduler, and bfq has none.
async_depth() {
	local file

	for file in "/sys/block/$1/queue/"{,iosched/}async_depth; do
		[ ! -e "$file" ] || { echo "$file"; return; }
	done
	return 1
}

# can_issue DISK: requests can be issued directly to it, with this kernel
can_issue() {
	has_direct "$1" || { skip "this kernel has no direct issue"; return; }
	! grep -q BLOCKING "/sys/kernel/debug/block/$1/hctx0/flags" ||
		skip "the driver of $1 may sleep"
}

declare -A counted since

# events_in INSTANCE: how many there were, with those that its small buffer has lost
events_in() {
	awk '/^(entries|overrun|dropped events|read events):/ { n += $NF } END { print n + 0 }' \
		"$1"/per_cpu/cpu*/stats
}

# counted_since DISK: sets $since to how many requests of DISK had an event since the
# last call: ${since[direct]} were issued directly, ${since[insert]} were inserted and
# not merged
counted_since() {
	local name dir n

	for name in direct insert; do
		dir=$TRACE$name
		if [ ! -d "$dir" ]; then
			mkdir "$dir" 2>/dev/null || { skip "no tracefs"; return; }
			echo 4 >"$dir/buffer_size_kb"
		fi
		put "$dir/events/block/block_rq_$name/filter" "dev == $(dev_of "$1")" &&
			put "$dir/events/block/block_rq_$name/enable" 1 || return
		n=$(events_in "$dir")
		since[$name]=$((n - ${counted[$name]:-0}))
		counted[$name]=$n
	done
}

# part_direct DISK: of the requests since counted_since a quarter at least was issued
# directly
part_direct() {
	local what

	counted_since "$1"
	what="${since[direct]} issued directly, ${since[insert]} inserted"
	note "$1: $what"
	[ "${since[direct]}" -ge 100 ] && [ $((since[direct] * 3)) -ge "${since[insert]}" ] ||
		fail "few are issued directly: $what"
}

# tags_of DISK: how many a hardware queue has
tags_of() {
	sed -n 's/^nr_tags=//p' "/sys/kernel/debug/block/$1/hctx0/tags"
}

# Whether a disk has a share of the tags that disks share, by its hardware queues
tags_active() {
	grep -q TAG_ACTIVE "/sys/kernel/debug/block/$1"/hctx*/state
}

tags_inactive() {
	tags_active "$1"
	[ $? -eq 1 ]
}

has_own_tags() {
	! grep -q TAG_QUEUE_SHARED "/sys/kernel/debug/block/$1/hctx0/flags" ||
		skip "$1 shares its tags with other disks"
}

# A disk in use is none of ours
unused() {
	local used=$'\n'$(</proc/mounts)$'\n'$(</proc/swaps) holders

	holders=("/sys/block/$1/holders"/*)
	[[ $used != *$'\n'"/dev/$1"* ]] && [ ! -e "${holders[0]}" ]
}

# NEEDS_DIRECT=1: the test is about what the kernel may not have
has_needed() {
	[ -z "$NEEDS_DIRECT" ] || has_direct "$1" ||
		skip "this kernel has no direct issue"
}

declare -A settings

# settings_of DISK: sets $settings to what its queue and its scheduler are set to
settings_of() {
	local file value

	settings=()
	for file in "/sys/block/$1/queue/"{,iosched/}*; do
		[ -f "$file" ] && [[ $file != */scheduler ]] || continue
		value=
		{ read -r value <"$file"; } 2>/dev/null
		settings[$file]=$value
	done
}

# settings_back: puts back what was found, twice since one can set another
settings_back() {
	local pass file value left

	for pass in 1 2 3; do
		left=
		for file in "${!settings[@]}"; do
			value=
			{ read -r value <"$file"; } 2>/dev/null
			[ "$value" != "${settings[$file]}" ] || continue
			left+=" $file is '$value', was '${settings[$file]}';"
			[ $pass -eq 3 ] || { echo "${settings[$file]}" >"$file"; } 2>/dev/null
		done
		[ -n "$left" ] || return 0
	done
	fail "${reason:+$reason; }not put back:${left%;}"
}

# one FUNCTION SCHED KIND DISK: with what the disk was set to before put back
one() {
	local fn=$1 sched=$2 kind=$3 disk=$4 before status

	before=$(<"/sys/block/$disk/queue/scheduler")
	before=${before#*[} before=${before%]*}
	settings_of "$disk"
	set_sched "$disk" "$sched" && has_needed "$disk" && "$fn" "$disk" "$kind" "$sched" &&
		background_stop && all_back "$disk"
	status=$?
	background_stop
	trace_stop
	md_remove_all
	[ ! -d "/sys/block/$disk" ] ||
		{ set_sched "$disk" "$before" && settings_back; } || status=1
	result $status "$sched on $kind"
}

# only_kinds KIND...: of those in TEST_KINDS
only_kinds() {
	local kind wanted=" $* " kinds=

	for kind in $TEST_KINDS; do
		[[ $wanted != *" $kind "* ]] || kinds+=" $kind"
	done
	TEST_KINDS=$kinds
}

# for_each_device FUNCTION [NULL_ATTRIBUTE=VALUE...]: on each kind, each scheduler;
# if there are TEST_DEVS, with one of each kind
for_each_device() {
	local fn=$1 kind sched dev disk seen
	shift

	# shellcheck disable=SC2053
	[[ $TEST_NAME = ${TEST_PARTS:-*} ]] || return 0
	for sched in $TEST_SCHEDS; do
		for kind in $TEST_KINDS; do
			case $kind in
			null_blk)
				if null_make bt$$ size=256 submit_queues=1 "$@"; then
					one "$fn" "$sched" "$kind" bt$$
				else
					result 1 "$sched on $kind"
				fi
				null_remove_all ;;
			scsi_debug)
				sdebug_make ||
					{ result $? "$sched on $kind"; continue; }
				one "$fn" "$sched" "$kind" "$disk"
				sdebug_reset ;;
			ublk*)
				if ublk_make "${kind#ublk}"; then
					one "$fn" "$sched" "$kind" "$disk"
				else
					result $? "$sched on $kind"
				fi
				ublk_remove || result 1 "$sched on $kind" ;;
			esac
		done
		seen=
		for dev in $TEST_DEVS; do
			disk=$(basename "$dev")
			kind=$(kind_of "$disk")
			[[ " $TEST_KINDS other " == *" $kind "* ]] || continue
			seen+=" $kind "
			unused "$disk" || skip "$dev is in use" ||
				{ result $? "$sched on $kind"; continue; }
			one "$fn" "$sched" "$kind" "$disk"
		done
		for kind in ${TEST_DEVS:+$TEST_KINDS}; do
			[[ $kind = null_blk || $kind = scsi_debug || $kind = ublk* ||
			   $seen = *" $kind "* ]] ||
				{ skip "no such disk in TEST_DEVS"; result $? "$sched on $kind"; }
		done
	done
}

# for_nvme_loop FUNCTION QUEUES: the same on a disk of nvme-loop
for_nvme_loop() {
	local fn=$1 queues=$2 sched

	# shellcheck disable=SC2053
	[[ $TEST_NAME = ${TEST_PARTS:-*} ]] || return 0
	for sched in $TEST_SCHEDS; do
		if nvmet_make blktest 32 "$queues"; then
			one "$fn" "$sched" nvme-loop "$disk"
		else
			result $? "$sched on nvme-loop"
		fi
		nvmet_remove
	done
}

# value_of NAME "ios=5 errors=0 ..."
value_of() {
	local word

	for word in $2; do
		[ "${word%%=*}" != "$1" ] || echo "${word#*=}"
	done
}

# background DISK OPTION...: a load until background_stop (one() does that too)
background() {
	local disk=$1
	shift

	"$BLKLOAD" -s 600 -r 50 "$@" "/dev/$disk" >/dev/null 2>>"$BLK_TMP" &
	bg+=($!)
}

# background_stop: its I/O has ended, without an error
background_stop() {
	local pid status=0

	[ ${#bg[@]} -eq 0 ] || kill "${bg[@]}" 2>/dev/null
	for pid in "${bg[@]}"; do
		if wait_until 30 gone "$pid"; then
			# 5: the machine stood still, the queue need not have
			wait "$pid" || [ $? -eq 5 ] || status=1
		else
			status="no end of its I/O"
		fi
	done
	bg=()
	[ "$status" = 0 ] || fail "a load in the background: $status; $(cat "$BLK_TMP")"
}

gone() {
	local stat

	# "PID (NAME) STATE ..."; one that ended and was not waited for is a zombie
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	[[ ${stat##*) } = Z* ]]
}

# load DISK OPTION...: sets $out to blkload's line.  Again if what was too slow is
# the machine and not the block layer; three times left behind is not the machine.
load() {
	local disk=$1 status try rescued=0
	shift

	for try in 1 2 3; do
		out=$("$BLKLOAD" "$@" "/dev/$disk" 2>&1) && return
		status=$?
		[ $status -eq 5 ] || break
		note "$disk: $* (try $try): ${out//$'\n'/; }"
		[ "$(value_of rescued "$out")" = 0 ] || rescued=$((rescued + 1))
	done
	[ $status -ne 5 ] || [ $rescued -eq 3 ] ||
		skip "the machine is too busy for a latency limit" || return
	fail "blkload $* on $disk: ${out//$'\n'/; }"
}

# read_stat DISK: sets reads and writes, that completed, and merged writes
read_stat() {
	local stat

	read -ra stat <"/sys/block/$1/stat"
	reads=${stat[0]} writes=${stat[4]} merged=${stat[5]}
}

# merged_since DISK: sets $percent to the share of its writes, since the last call,
# that were merged; -1 if it had none
merged_since() {
	local reads writes merged all

	read_stat "$1"
	all=$((writes - writes_before + merged - merged_before))
	percent=$((all > 0 ? 100 * (merged - merged_before) / (all + 1) : -1))
	writes_before=$writes merged_before=$merged
}

# advanced DISK IOS: it has completed more than so many
advanced() {
	local reads writes merged

	read_stat "$1"
	[ $((reads + writes)) -gt "$2" ]
}

# step DISK FILE VALUE: it is taken, and I/O still completes afterwards
step() {
	local reads writes merged

	put "$2" "$3" && read_stat "$1" || return
	wait_until 10 advanced "$1" $((reads + writes)) ||
		fail "nothing completes after $3 was written to $2"
}

# data_is_kept DISK OPTION...: fio reads back what it wrote
data_is_kept() {
	local disk=$1 log reads writes merged
	shift

	read_stat "$disk"
	log=$(fio --filename="/dev/$disk" --direct=1 --ioengine=io_uring --bs=4k \
		--group_reporting --output-format=terse \
		--name=write --rw=randwrite --verify=crc32c --do_verify=1 \
		--verify_fatal=1 --verify_state_save=0 "$@" 2>&1) ||
		{ fail "fio: $(grep -v '^3;' <<<"$log" | head -3 | tr '\n' ' ')"; return; }
	advanced "$disk" $((reads + writes)) || fail "fio has done no I/O"
}

# data_begin DISK SECONDS OPTION..., data_end: the same in the background, by two
# jobs that read back soon; $fio is its process. A busy guest needs three times
# the seconds: what fio has written it still reads back.
data_begin() {
	local disk=$1 secs=$2
	shift 2

	fio_limit=$((60 + 6 * secs))
	( data_is_kept "$disk" --numjobs=2 --size=2m --offset_increment=4m \
		--iodepth=16 --iodepth_batch_submit=8 --verify_backlog=64 \
		--time_based --runtime="$secs" "$@" ||
		{ echo "$reason" >>"$BLK_TMP"; exit 1; } ) &
	fio=$!
}

data_end() {
	wait_until $fio_limit gone $fio || { fail "no end of fio's I/O"; return; }
	wait $fio || fail "$(cat "$BLK_TMP")"
}

# A request that comes back to mq-deadline counts as dispatched each time, but as
# completed once: where requeues is set (to any empty file) what it says the driver
# owns is not looked at.
requeues=

# ---- nothing is held when nothing is in flight

no_inflight() {
	[[ $(<"/sys/block/$1/inflight") != *[1-9]* ]]
}

# what_is_held DISK: names what an idle disk still holds, or what would tell but is
# not there
what_is_held() {
	local disk=$1 dir=/sys/kernel/debug/block/$1 f scsi=/sys/block/$1/device key busy told

	told=("$dir"/{requeue_list,hctx0/{busy,dispatch,tags,active},hctx*/cpu0/default_rq_list})
	case $(<"/sys/block/$disk/queue/scheduler") in
	*"[none]"*) ;;
	*"[mq-deadline]"*)
		told+=("$dir"/{hctx0/sched_tags,sched/{dispatch,queued,owned_by_driver}}) ;;
	*) told+=("$dir"/hctx0/sched_tags) ;;
	esac
	for f in "${told[@]}"; do
		[ -e "$f" ] || echo "there is no $f"
	done
	for f in "$dir"/hctx*/{busy,dispatch,cpu*/*_rq_list} \
			"$dir"/{requeue_list,sched/dispatch}; do
		[ ! -e "$f" ] || [ -z "$(<"$f")" ] || echo "${f#"$dir"/} is not empty"
	done
	for f in "$dir"/hctx*/{tags,sched_tags}; do
		[ -e "$f" ] || continue
		while IFS="=" read -r key busy; do
			[ "$key" != busy ] || [ "$busy" = 0 ] ||
				echo "${f#"$dir"/}: $busy tags in use"
		done <"$f"
	done
	for f in "$dir"/hctx*/active "$dir"/sched/queued \
		 ${requeues:-"$dir/sched/owned_by_driver"} "$scsi"/device_busy; do
		[ ! -e "$f" ] || [[ $(<"$f") != *[1-9]* ]] ||
			echo "${f##*/} is $(<"$f")"
	done
}

is_idle() {
	held=$(what_is_held "$1")
	[ -z "$held" ]
}

all_back() {
	wait_until 20 no_inflight "$1" || { fail "$1: I/O in flight, none wanted"; return; }
	# what frees the last tag may still run
	wait_until 5 is_idle "$1" || fail "$1 is idle, but ${held//$'\n'/; }"
}

# ---- trace, in an instance of our own

TRACE=/sys/kernel/tracing/instances/blktest
PROBES=/sys/kernel/tracing/kprobe_events

trace_make() {
	[ ! -d $TRACE ] || return 0
	mkdir $TRACE 2>/dev/null || { skip "no tracefs"; return; }
	echo 8192 >$TRACE/buffer_size_kb
}

# dev_of DISK: its number, as events have it
dev_of() {
	local major minor

	IFS=: read -r major minor <"/sys/block/$1/dev"
	echo $((major << 20 | minor))
}

# trace_start DISK EVENT...: block events or our probes (blktest/NAME)
trace_start() {
	local event dev

	trace_make || return
	dev=$(dev_of "$1")
	shift
	echo 0 >$TRACE/tracing_on
	echo "${TRACE_CLOCK:-counter}" >$TRACE/trace_clock
	echo >$TRACE/trace
	for event in "$@"; do
		if { [[ $(<"$TRACE/events/$event/format") = *"dev_t dev;"* ]]; } 2>/dev/null; then
			put $TRACE/events/"$event"/filter "dev == $dev" || return
		fi
		put $TRACE/events/"$event"/enable 1 || return
	done
	echo 1 >$TRACE/tracing_on
}

trace_end() {
	echo 0 >$TRACE/tracing_on
	echo 0 >$TRACE/events/enable
}

# no event may be missing from what is judged
trace_complete() {
	grep -h -E '^(overrun|dropped events): [1-9]' $TRACE/per_cpu/cpu*/stats
	# 2: there is nothing to look at
	[ $? -eq 1 ] || fail "trace buffer too small"
}

# The instance is kept: it takes seconds to make one, or to remove it
trace_stop() {
	[ ! -d $TRACE ] || trace_end
	[ ! -e $PROBES ] || [[ $(<$PROBES) != *blktest/* ]] ||
		sed -n 's/^[pr][^:]*:\(blktest[^ ]*\).*/-:\1/p' $PROBES |
		while read -r probe; do echo "$probe" >>$PROBES; done
}

declare -A symbols

# symbol NAME: sets $symbol to what the compiler left of it (NAME, NAME.isra.0...),
# if anything
symbol() {
	[ -n "${symbols[$1]+found}" ] ||
		symbols[$1]=$(awk -v s="$1" '
			$3 == s || index($3, s ".") == 1 { print $3; exit }' /proc/kallsyms)
	symbol=${symbols[$1]}
	[ -n "$symbol" ]
}

# probe_delayed: an event for each run of a queue that is left to a timer, which
# hides that nobody else would do it
probe_delayed() {
	[ -e $PROBES ] || { skip "no kprobe events"; return; }
	echo "p:blktest/delayed blk_mq_delay_run_hw_queue ms=\$arg2:u64" >>$PROBES &&
	echo "p:blktest/delayed_all blk_mq_delay_run_hw_queues ms=\$arg2:u64" >>$PROBES ||
		skip "no probe for delayed runs"
}

# probe_batches KIND: an event for each batch that goes to the driver
probe_batches() {
	local fn symbol

	case $1 in
	null_blk) fn=null_queue_rqs ;;
	nvme) fn=nvme_queue_rqs ;;
	virtio_blk) fn=virtio_queue_rqs ;;
	ublk*) fn=ublk_queue_rqs ;;
	*) skip "$1 has no batches"; return ;;
	esac
	symbol $fn && [ -e $PROBES ] && echo "p:blktest/batch $symbol" >>$PROBES ||
		skip "no probe for batches of $1"
}

# probe_staged: an event when requests are left in a software queue, which with a
# scheduler only those do that find its lock taken
probe_staged() {
	[ -e $PROBES ] && echo "p:blktest/staged blk_mq_add_to_ctx" >>$PROBES ||
		skip "no probe for staged requests"
}

# after the trace
delayed_runs() {
	grep -E ' delayed(_all)?: ' $TRACE/trace | grep -vc ' ms=0$'
}

# those that kblockd does at once: where none is seen, no delayed one would be
prompt_runs() {
	grep -c ' delayed: .* ms=0$' $TRACE/trace
}

stagings() {
	grep -c ' staged: ' $TRACE/trace
}

# trace_awk [-v NAME=VALUE]... PROGRAM: over the trace; sector() is an event's
trace_awk() {
	awk "${@:1:$#-1}" '
	function sector(	i) {
		for (i = NF; i; i--)
			if ($i == "+")
				return $(i - 1)
	}
	'"${!#}" $TRACE/trace
}

# issued_directly [SECTOR [END]]: issued requests (from that sector on), how many of
# these were issued directly, that is, were not inserted; and those that the driver
# gave back of such. Flushes (of no sectors) go their own way.
issued_directly() {
	trace_awk -v from="${1:-0}" -v end="${2:-0}" '
	/ [+] 0 / { next }
	/ block_rq_insert: / { inserted[sector()] = 1 }
	/ block_rq_issue: / {
		s = sector()
		if (s >= from && (!end || s < end)) {
			issued++
			if (!(s in inserted)) direct++
		}
	}
	/ block_rq_requeue: / { s = sector(); if (!(s in inserted)) back++ }
	/ block_rq_complete: / { delete inserted[sector()] }
	END { printf "issued=%d direct=%d back=%d\n", issued, direct, back }'
}
