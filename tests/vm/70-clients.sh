#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 70-clients.sh - a volume as a disk of the kernel, by the plugin of nbdkit: a file system on the disk, and a database on the file
# system. The test kills the writer of the database, or the disk.
. "$top_srcdir/tests/vm/walk.sh"
. "$top_srcdir/tests/clients/nbd.sh"
vm_network
vm_limit=240
seconds=100
disk=/dev/nbd0
place=$TMPDIR/disk
mkdir -p "$place"

vm_teardown()
{
	local name
	for name in writer nbd; do
		[ -z "${pids[$name]:-}" ] || kill -KILL "${pids[$name]}" 2>/dev/null || :
	done
	umount "$place" /mnt/disk0 2>/dev/null || :
	[ ! -e /sys/block/nbd0/pid ] || nbd-client -d "$disk" || :
	manual_teardown
	[ -z "${conf:-}" ] || walk_teardown
}

# -- the disk --

# attach - make the volume the disk /dev/nbd0
attach()
{
	nbd-client -unix "$dir/nbd.sock" "$disk" -b 4096 -t 20
	until_true has_size
}

has_size()
{
	[ "$(cat /sys/block/nbd0/size)" -gt 0 ]
}

# disk_over LEG - start a volume over that leg, and attach it
disk_over()
{
	leg "$1"
	nbd_setup
	tool nbd-client nbd-client
	tool mkfs.ext4 e2fsprogs
	modprobe nbd
	store_backend='type = "memory"; size = "96MiB";'
	few=(config="$conf" volume=load queues=2) # an emulated device takes seconds for each queue pair
	nbd_all "${few[@]}"
	attach
}

# with_files LEG - the same, with a mounted file system
with_files()
{
	disk_over "$1"
	mkfs.ext4 -q -b 4096 "$disk"
	mount "$disk" "$place"
}

# sound_disk - unmount, and check the file system
sound_disk()
{
	umount "$place"
	e2fsck -f -n "$disk"
}

disk_off()
{
	nbd-client -d "$disk"
	nbd_stop nbd
}

files_come_back()
{
	with_files "$1"
	mkdir "$dir/files"
	cp "$GANTRY" "$GANTRY_PLUGINS"/*.so "$top_srcdir"/man/*.[157] "$dir/files"
	cp -r "$top_srcdir/tests/walk" "$dir/files/more"
	cp -r "$dir/files" "$place"
	sound_disk
	mount "$disk" "$place"
	diff -r "$dir/files" "$place/files"
	rm -r "$place/files/more"
	fstrim "$place"
	sound_disk
	disk_off
	holds "$dir/bridge.json" 'front_bytes + back_bytes == 0' 'bridge.ops_failed == 0'
}

# -- a database on it --

# transactions - print endless transactions; each selects its number, for the log of acknowledged ones. EXTRA also syncs the removal
# of the journal; without it, a power cut may undo the last transaction.
transactions()
{
	local n=0
	echo "PRAGMA synchronous = EXTRA;"
	while n=$((n + 1)); do
		echo "INSERT INTO t VALUES($n, hex(randomblob(400))); SELECT $n;"
	done
}

# writing JOURNAL - start a writer as pids[writer], and wait until some transactions are acknowledged
writing()
{
	tool sqlite3 sqlite3
	sqlite3 "$place/db" "PRAGMA journal_mode = $1; CREATE TABLE t(n INTEGER PRIMARY KEY, what TEXT)"
	: >"$dir/acknowledged"
	stdbuf -oL sqlite3 -bail "$place/db" < <(transactions 2>/dev/null) >"$dir/acknowledged" 2>"$dir/writer.log" &
	pids[writer]=$!
	until_true acknowledged 40
}

acknowledged() # N
{
	[ "$(wc -l <"$dir/acknowledged")" -ge "$1" ]
}

# intact - run the check of the database; each acknowledged transaction must exist
intact()
{
	local last
	[ "$(sqlite3 "$place/db" 'PRAGMA integrity_check')" = ok ]
	last=$(tail -n 1 "$dir/acknowledged")
	[ "$last" -ge 40 ]
	[ "$(sqlite3 "$place/db" "SELECT count(*) FROM t WHERE n <= $last")" -eq "$last" ]
	echo "# $last transactions were acknowledged, $(sqlite3 "$place/db" 'SELECT count(*) FROM t') are there" >&3
}

writer_killed()
{
	with_files "$1"
	writing "$2"
	slay writer
	sound_disk
	mount "$disk" "$place"
	intact
	sound_disk
	disk_off
}

disk_killed()
{
	with_files "$1"
	writing "$2"
	slay nbd
	nbd-client -d "$disk" # requests in flight fail now, not after the timeout of the kernel
	finish writer
	[ "$status" -ne 0 ]
	cat "$dir/writer.log"
	umount "$place"
	# another disk replaces it; the file system recovers from its journal
	nbd_serve nbd "${few[@]}"
	attach
	mount "$disk" "$place"
	intact
	sound_disk
	disk_off
}

# -- the same, with the commands of the manual --

in_the_manual()
{
	leg shm-comch
	nbd_setup
	tool nbd-client nbd-client
	tool sqlite3 sqlite3
	need file
	manual_setup
	manual serve
	until_true test -s "$dir/disk0.pid"
	manual disk
	manual crash
	manual again
}

over_legs "a file system: filled, checked, mounted again, compared" files_come_back
over_legs "a database whose writer is killed" writer_killed DELETE
over_legs "a database whose disk is killed" disk_killed WAL
vm_legs=shm-comch
over_legs "a database with a log, whose writer is killed" writer_killed WAL
over_legs "a database without a log, whose disk is killed" disk_killed DELETE
vm_test "a database on a volume, as the manual shows it" in_the_manual
vm_done
