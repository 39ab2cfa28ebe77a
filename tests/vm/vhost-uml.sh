#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost-uml.sh [BUILD] - boot user-mode Linux, whose disk is a volume: target, gateway and vhost-user-blk are other processes. Its
# memory is a file without seals, so the role copies the data. While vhost-uml-guest.sh writes, gateway and target are killed and
# started again.
#
# Prints TAP. Needs the program linux of Debian's package user-mode-linux, and busybox; without them it skips. A run takes about
# 10 seconds.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../.." && pwd)
build=$(realpath -e "${1:-$top/build/gcc}") || exit 2
export PATH="$PATH:/usr/sbin:/sbin"
uml=${UML:-linux.uml}
for tool in "$uml" busybox cpio mkfs.ext4 e2fsck; do
	command -v "$tool" >/dev/null || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
modules=$(echo /usr/lib/uml/modules/*/kernel/drivers/block)
[ -e "$modules/virtio_blk.ko" ] || { echo "1..0 # SKIP user-mode Linux has no module virtio_blk"; exit 0; }
. "$here/vhost-lib.sh"

# the processes of user-mode Linux end with its first one, whose number is in a file
end_guest()
{
	[ ! -s "$dir/uml/guest/pid" ] || kill -KILL "$(cat "$dir/uml/guest/pid")" 2>/dev/null
	end_all
}
trap end_guest EXIT

# pack DIR FILE - put busybox into the directory, and pack it into a first file system in memory
pack()
{
	mkdir -p "$1/bin" && cp "$(command -v busybox)" "$1/bin/busybox" && chmod +x "$1/init" &&
		(cd "$1" && find . | cpio -o -H newc --quiet) >"$2"
}

# boot INITRD ARGUMENT... - run user-mode Linux
boot()
{
	timeout -k 5 120 "$uml" mem=128M initrd="$1" con=null con0=fd:0,fd:1 uml_dir="$dir/uml/" "${@:2}" </dev/null
}

# Print the output of a guest without a disk. On some processors the kernel panics when it starts the first program.
boot_without_disk()
{
	mkdir "$dir/small" && printf '#!/bin/busybox sh\necho a program runs\nexec /bin/busybox poweroff -f\n' >"$dir/small/init" &&
		pack "$dir/small" "$dir/small.initrd" && boot "$dir/small.initrd" umid=small 2>&1
}

# a first file system in memory, with the program of the guest and its data
image()
{
	local root=$dir/root
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/disk" || return 1
	cp "$modules/virtio_blk.ko" "$root" && cp "$here/vhost-uml-guest.sh" "$root/init" &&
		dd if=/dev/urandom of="$root/content" bs=1M count=4 status=none && pack "$root" "$dir/initrd"
}

boot_without_disk >"$dir/small.log"
if ! grep -a -q '^a program runs' "$dir/small.log"; then
	reason=$(grep -a -m 1 -o 'Kernel panic.*' "$dir/small.log" | tr -d '\r')
	echo "1..0 # SKIP user-mode Linux starts no program on this processor: ${reason:-no panic in its output}"
	exit 0
fi

truncate -s 128M "$dir/volume"
mkfs.ext4 -q -b 4096 "$dir/volume"
image
verdict $? "an image for the guest"
configure "$(shm_leg)" 'serial = "gantry-uml"; memory = "copy";'
begin_roles
boot "$dir/initrd" umid=guest "virtio_uml.device=$dir/disk.sock:2" >"$dir/guest.log" 2>&1 &
pids[vm]=$!
seen "$dir/guest.log" '^4 written'
verdict $? "the guest boots, and writes to a file system on the disk"
restart bridge
seen "$dir/disk.log" 'session resumed.*epoch=2'
verdict $? "the gateway is killed and started again"
restart store
seen "$dir/disk.log" 'session resumed.*epoch=3' && ! grep -a -q '^40 written' "$dir/guest.log"
verdict $? "the target is killed and started again, while the guest writes"
wait "${pids[vm]}"
unset 'pids[vm]'
grep -a -q '^the guest has found all data' "$dir/guest.log"
verdict $? "the guest finds its data"
end_disk
grep -q '"guest_failed_ops": *0,' "$dir/disk.json" && grep -q '"guest_bounced_bytes": *[1-9]' "$dir/disk.json"
verdict $? "the role has copied data, and no request has failed"
clean_file_system
done_testing
