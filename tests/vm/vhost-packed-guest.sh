#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost-packed-guest.sh - uses the disk /dev/vda, which has a file system, by packed rings; see vhost.sh
set -eu
modprobe -a virtio_blk ext4
for _ in $(seq 600); do [ ! -b /dev/vda ] || break; read -rt 0.05 <><(:) || :; done
grep -H . /sys/block/vda/serial /sys/block/vda/device/features
[ "$(cat /sys/block/vda/serial)" = gantry-vm ]
[ "$(cut -c35 /sys/block/vda/device/features)" = 1 ] # bit 34, packed rings
[ "$(cut -c30 /sys/block/vda/device/features)" = 1 ] # bit 29, the event index
place=$TMPDIR/vhost
mkdir -p "$place"
mount /dev/vda "$place"
[ ! -e "$place/12" ] || cmp "$place/1" "$place/12" # of the former guest
dd if=/dev/urandom of="$TMPDIR/content" bs=1M count=16 status=none
echo writing
for i in $(seq 24); do
	dd if="$TMPDIR/content" of="$place/$((i % 8 + 1))" bs=1M conv=fsync status=none
	dd if="$place/$((i % 8 + 1))" bs=4K iflag=direct status=none | cmp - "$TMPDIR/content"
	echo "$i written"
done
umount "$place"
echo 3 >/proc/sys/vm/drop_caches
mount /dev/vda "$place"
for i in $(seq 8); do
	cmp "$place/$i" "$TMPDIR/content"
done
umount "$place"
e2fsck -fn /dev/vda
