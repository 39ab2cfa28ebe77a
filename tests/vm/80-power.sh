#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 80-power.sh - power cuts: after each one, writes that were acknowledged as stable are intact, on a block device and on ext4.
#
# The store lies on a device of dm-log-writes, which logs a write when a flush or FUA has made it stable. The writer adds a mark to
# the log for each acknowledged flush and FUA. Then replay creates the disk of each prefix of the log, lets the file system recover,
# and compares the volume with the record of the writer. tests/power has both programs.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
vm_limit=280
export DM_DISABLE_UDEV=1 GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
power=$top_builddir/tests/power
sectors=$((24 << 11)) # size of the disk

# disks - set up ram0 as the disk of /dev/mapper/power, ram1 as its log, ram2 as /dev/mapper/copy, on which replay recovers
disks()
{
	[ -x "$power/replay" ] || skip "built without libgantry"
	command -v dmsetup >/dev/null || skip "dmsetup is not installed (Debian: dmsetup)"
	modprobe brd rd_nr=3 rd_size=262144
	modprobe -a dm_log_writes ext4 || skip "the kernel has no dm-log-writes"
	dmsetup create power --table "0 $sectors log-writes /dev/ram0 /dev/ram1"
	dmsetup create copy --table "0 $sectors linear /dev/ram2 0"
}

vm_teardown()
{
	[ -z "${conf:-}" ] || walk_teardown
	umount "$vm_dir/place" "$vm_dir/copy" 2>/dev/null || :
	dmsetup remove power 2>/dev/null || :
	dmsetup remove copy 2>/dev/null || :
	modprobe -r brd || :
}

marks() # N - whether the record has N marks
{
	[ "$(stat -c %s "$dir/record" 2>/dev/null || echo 0)" -ge $(($1 * 5128)) ]
}

# recorded PLACE MARKS OPTIONS - run the writer, and set `replay` to the arguments of the program replay. Kills the target when the
# log has half of the marks.
recorded()
{
	leg shm-comch
	need file
	disks
	connect_options='resume = "100s"; heartbeat = "5s";'
	replay=(/dev/ram1 "$dir/record")
	store_backend="type = \"file\"; path = \"/dev/mapper/power\"; size = \"1MiB\"; $3"
	if [ "$1" = ext4 ]; then
		mkfs.ext4 -q -b 4096 -J size=4 -E nodiscard,lazy_itable_init=0 /dev/mapper/power
		mkdir "$dir/place" "$dir/copy"
		mount /dev/mapper/power "$dir/place"
		store_backend="type = \"file\"; path = \"$dir/place/volume\"; create = true; size = \"1MiB\"; $3"
		replay+=(--mount /dev/mapper/copy "$dir/copy" volume)
	fi
	topology
	serve store
	serve bridge
	"$power/writer" "$conf" load "$dir/record" power "$2" "$([ "$1" = ext4 ] && echo 1 || echo 0)" $RANDOM 3>&- &
	pids[writer]=$!
	until_true marks $(($2 / 2))
	slay store
	serve store
	finish writer
	[ "$status" -eq 0 ]
	stop bridge store
	[ "$1" != ext4 ] || umount "$dir/place"
	dmsetup remove power
}

# replayed - run replay, and set status
replayed()
{
	status=0
	"$power/replay" "${replay[@]}" >"$dir/replay.txt" || status=$?
	cat "$dir/replay.txt"
	sed -n 's/^replay: /# /p' "$dir/replay.txt" >&3
}

nothing_lost()
{
	recorded "$@"
	replayed
	[ "$status" -eq 0 ]
}

# A target that ignores flush and FUA.
found()
{
	recorded "$1" "$2" "$3 fsync = false;"
	replayed
	[ "$status" -eq 1 ]
	grep -q '^stale: after mark' "$dir/replay.txt"
}

vm_test "a block device, io_uring, direct IO" nothing_lost raw 300 ''
vm_test "a block device, system calls, page cache" nothing_lost raw 300 'direct = false; engine = "sync";'
vm_test "ext4, io_uring, direct IO" nothing_lost ext4 40 ''
vm_test "ext4, system calls, page cache" nothing_lost ext4 40 'direct = false; engine = "sync";'
vm_test "seeded bug: flush does nothing on a block device" found raw 20 ''
vm_test "seeded bug: flush does nothing in ext4" found ext4 20 ''
vm_done
