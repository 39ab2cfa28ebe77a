#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# vhost-uml-guest.sh - the first program of user-mode Linux, which uses the disk /dev/vda; see vhost-uml.sh
b=/bin/busybox

failed() # WHAT
{
	echo "failed: $1"
	$b poweroff -f
}

$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b insmod /virtio_blk.ko || failed insmod
[ "$($b cat /sys/block/vda/serial)" = gantry-uml ] || failed serial
$b mount -t ext4 /dev/vda /disk || failed mount
for i in $($b seq 1 40); do
	$b dd if=/content of="/disk/$((i % 8))" bs=64k conv=fsync 2>/dev/null || failed "write $i"
	echo "$i written"
done
$b umount /disk || failed umount
echo 3 >/proc/sys/vm/drop_caches
$b mount -t ext4 /dev/vda /disk || failed "second mount"
for i in $($b seq 0 7); do
	$b cmp /content "/disk/$i" || failed "data of file $i"
done
$b umount /disk
echo "the guest has found all data"
$b poweroff -f
