#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# init.sh - the first program in the virtual machine: mounts the host's tree read-only under an overlay in memory, makes that its
# root, and continues there with the file `job` that run.sh has written, or with the init system $vm_init, which starts the job.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
while read -r module; do
	$b insmod "/modules/$module" || echo "init: no $module" >/dev/console
done </modules/order
# the guest caches the tree of the host, which does not change except where the host builds
$b mount -t tmpfs rw /rw
$b mkdir /rw/host /rw/upper /rw/work
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /rw/host
$b mount -t overlay -o lowerdir=/rw/host,upperdir=/rw/upper,workdir=/rw/work root /root
# a directory that host and guest can write
$b mount -t tmpfs -o mode=755 run /root/run
$b mkdir /root/run/vm
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 out /root/run/vm
for place in proc sys dev; do
	$b mkdir -p "/root/$place"
	$b mount --move "/$place" "/root/$place"
done
# shellcheck disable=SC2086 # words
exec $b switch_root /root ${vm_init:-/bin/bash /run/vm/job}
