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
gantry="$build/core/gantry"
export PATH="$PATH:/usr/sbin:/sbin"
uml=${UML:-linux.uml}
for tool in "$uml" busybox cpio mkfs.ext4 e2fsck; do
	command -v "$tool" >/dev/null || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
modules=$(echo /usr/lib/uml/modules/*/kernel/drivers/block)
[ -e "$modules/virtio_blk.ko" ] || { echo "1..0 # SKIP user-mode Linux has no module virtio_blk"; exit 0; }
dir=$(mktemp -d) || exit 1
declare -A pids=()
n=0 failed=0

end_all()
{
	[ "${#pids[@]}" -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
	# the processes of user-mode Linux end with its first one, whose number is in this file
	[ ! -s "$dir/uml/guest/pid" ] || kill -KILL "$(cat "$dir/uml/guest/pid")" 2>/dev/null
	rm -rf "$dir"
}
trap end_all EXIT

verdict() # STATUS WHAT
{
	n=$((n + 1))
	[ "$1" -eq 0 ] && echo "ok $n - $2" && return
	failed=$((failed + 1))
	echo "not ok $n - $2"
	tail -n 30 "$dir"/*.log 2>/dev/null | sed 's/^/# /'
}

begin() # NAME
{
	: >"$dir/$1.log"
	"$gantry" run -p "$build/plugins/.libs" "$dir/vm.conf" --role "$1" --json >"$dir/$1.json" 2>>"$dir/$1.log" &
	pids[$1]=$!
}

seen() # FILE PATTERN - wait until the file has a line that matches
{
	timeout 60 tail -n +1 -s 0.05 -F "$1" 2>/dev/null | grep -a -m1 -E -q -- "$2"
}

restart() # NAME
{
	kill -KILL "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	begin "$1"
}

# a first file system in memory, with the program of the guest and its data
image()
{
	local root=$dir/root
	mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/disk" || return 1
	cp "$(command -v busybox)" "$root/bin/busybox" && cp "$modules/virtio_blk.ko" "$root" &&
		cp "$here/vhost-uml-guest.sh" "$root/init" && chmod +x "$root/init" &&
		dd if=/dev/urandom of="$root/content" bs=1M count=4 status=none &&
		(cd "$root" && find . | cpio -o -H newc --quiet) >"$dir/initrd"
}

chmod 700 "$dir"
truncate -s 128M "$dir/volume"
mkfs.ext4 -q -b 4096 "$dir/volume"
image
verdict $? "an image for the guest"
cat >"$dir/vm.conf" <<END
runtime = { log = "info"; stat_dir = "$dir/stat"; };
devices = { leg = { transport = "shm-comch"; dir = "$dir/run"; }; };
roles = {
	store = { role = "target"; listen = { device = "leg"; name = "store"; };
	          backend = { type = "file"; path = "$dir/volume"; direct = false; lock_wait = "30s"; }; };
	bridge = { role = "gateway"; listen = { device = "leg"; name = "volume"; };
	           connect = { device = "leg"; name = "store"; }; };
	disk = { role = "vhost-user-blk"; connect = { device = "leg"; name = "volume"; resume = "1m"; };
	         socket = "$dir/disk.sock"; serial = "gantry-uml"; memory = "copy"; };
};
END
begin store
begin bridge
begin disk
seen "$dir/disk.log" ' listening \(socket'
verdict $? "the roles start"
timeout -k 5 120 "$uml" mem=128M initrd="$dir/initrd" con=null con0=fd:0,fd:1 umid=guest uml_dir="$dir/uml/" \
	"virtio_uml.device=$dir/disk.sock:2" </dev/null >"$dir/guest.log" 2>&1 &
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
kill -TERM "${pids[disk]}"
wait "${pids[disk]}"
verdict $? "the role ends"
unset 'pids[disk]'
grep -o '"guest_[a-z_]*":[ 0-9]*' "$dir/disk.json" | sed 's/^/# /'
grep -q '"guest_failed_ops": *0,' "$dir/disk.json" && grep -q '"guest_bounced_bytes": *[1-9]' "$dir/disk.json"
verdict $? "the role has copied data, and no request has failed"
e2fsck -fn "$dir/volume" >"$dir/fsck.log" 2>&1
verdict $? "the file system in the volume is clean"
echo "1..$n"
exit $((failed != 0))
