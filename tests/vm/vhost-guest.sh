#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost-guest.sh - uses the disk /dev/vda in the virtual machine; see vhost.sh
set -eu
modprobe -a virtio_blk ext4
for _ in $(seq 600); do [ ! -b /dev/vda ] || break; read -rt 0.05 <><(:) || :; done
grep -H . /sys/block/vda/serial /sys/block/vda/queue/{logical_block_size,max_segments} /sys/block/vda/cache_type
[ "$(cat /sys/block/vda/serial)" = gantry-vm ]
[ "$(cut -c30 /sys/block/vda/device/features)" = 1 ] # bit 29, the event index
place=$TMPDIR/vhost
mkdir -p "$place"

# what is read directly is what was written
dd if=/dev/urandom of="$TMPDIR/content" bs=1M count=16 status=none
dd if="$TMPDIR/content" of=/dev/vda bs=128K oflag=direct conv=fsync status=none
dd if=/dev/vda bs=4K count=4096 iflag=direct status=none | cmp - "$TMPDIR/content"

# discards and writes of zeroes change their range, and nothing else; the store is a file, which has holes afterwards
grep -H . /sys/block/vda/queue/{discard_granularity,discard_max_bytes,write_zeroes_max_bytes}
[ "$(cat /sys/block/vda/queue/discard_max_bytes)" -gt 0 ]
[ "$(cat /sys/block/vda/queue/write_zeroes_max_bytes)" -gt 0 ]
cp "$TMPDIR/content" "$TMPDIR/expected"
wipe() # FIRST COUNT OPTION... - blocks of 64 KiB
{
	blkdiscard -f -o $(($1 * 65536)) -l $(($2 * 65536)) "${@:3}" /dev/vda
	dd if=/dev/zero of="$TMPDIR/expected" bs=64K seek="$1" count="$2" conv=notrunc status=none
}
if command -v blkdiscard >/dev/null; then
	wipe 3 5
	wipe 20 64 -z
	wipe 100 1 -z
	dd if=/dev/vda bs=4K count=4096 iflag=direct status=none | cmp - "$TMPDIR/expected"
	echo "blkdiscard: $(cat /sys/block/vda/stat)"
fi
mkfs.ext4 -q /dev/vda
mount /dev/vda "$place"
# a database prints the number of each transaction after it is committed
for i in $(seq 400); do echo "INSERT INTO t VALUES ($i, randomblob(3000)); SELECT $i;"; done >"$TMPDIR/transactions"
sqlite3 "$place/db" 'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (i INTEGER PRIMARY KEY, data BLOB)' \
	>"$TMPDIR/mode"
grep -qx wal "$TMPDIR/mode"
sqlite3 -cmd 'PRAGMA synchronous = FULL' "$place/db" <"$TMPDIR/transactions" >"$TMPDIR/committed" &
database=$!
# fio writes blocks with checksums, and reads all of them afterwards
checker=""
if command -v fio >/dev/null; then
	fio --name=verify --directory="$place" --size=8M --rw=randwrite --bsrange=4k-64k --blockalign=4k --ioengine=libaio \
		--direct=1 --iodepth=16 --verify=crc32c --verify_fatal=1 --do_verify=1 >"$TMPDIR/fio" 2>&1 &
	checker=$!
fi
echo writing
for i in $(seq 24); do
	dd if="$TMPDIR/content" of="$place/$((i % 12 + 1))" bs=1M conv=fsync status=none
	echo "$i written"
done
wait $database || { df "$place"; exit 1; }
if [ -n "$checker" ]; then
	wait "$checker" || { cat "$TMPDIR/fio"; df "$place"; exit 1; }
	grep -E 'err=|READ:|WRITE:' "$TMPDIR/fio"
	grep -q 'err= 0' "$TMPDIR/fio"
	rm "$place"/verify*
fi
umount "$place"
echo 3 >/proc/sys/vm/drop_caches
mount /dev/vda "$place"
[ "$(wc -l <"$TMPDIR/committed")" -eq 400 ]
sqlite3 "$place/db" 'SELECT i FROM t ORDER BY i' | cmp - "$TMPDIR/committed"
[ "$(sqlite3 "$place/db" 'PRAGMA integrity_check')" = ok ]
echo "400 transactions"
for i in $(seq 12); do
	cmp "$place/$i" "$TMPDIR/content"
done
! command -v fstrim >/dev/null || fstrim -v "$place"
umount "$place"
echo 3 >/proc/sys/vm/drop_caches
mount /dev/vda "$place"
cmp "$place/12" "$TMPDIR/content"
# the volume grows, and the file system with it
echo growing
size=$(cat /sys/block/vda/size)
for _ in $(seq 1200); do [ "$(cat /sys/block/vda/size)" -eq "$size" ] || break; read -rt 0.05 <><(:) || :; done
[ "$(cat /sys/block/vda/size)" -eq $((size + 64 * 2048)) ]
resize2fs /dev/vda
dd if="$TMPDIR/content" of="$place/grown" bs=1M conv=fsync status=none
umount "$place"
e2fsck -fn /dev/vda
[ "$(dd if=/dev/vda bs=512 skip=1 count=1 status=none | wc -c)" -eq 512 ]
