#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost.sh [--tcp] [BUILD] [packed] - boot a virtual machine whose disk is a volume: target, gateway and vhost-user-blk are
# processes outside of the machine. vhost-guest.sh uses the disk. While it writes, each of them is killed and started again;
# vhost-user-blk is stopped, too. A second machine then uses packed rings, by vhost-packed-guest.sh, while vhost-user-blk is killed
# and stopped. With `packed` only that machine boots. --tcp: both legs are TCP on loopback.
#
# Prints TAP. A run takes about 3 minutes.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../.." && pwd)
over_tcp=''
[ "${1:-}" != --tcp ] || { over_tcp=1; shift; }
build=$(realpath -e "${1:-$top/build/gcc}") || exit 2
gantry="$build/core/gantry"
dir=$(mktemp -d) || exit 1
declare -A pids=()
n=0 failed=0

end_all()
{
	[ "${#pids[@]}" -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
	rm -rf "$dir"
}
trap end_all EXIT

verdict() # STATUS WHAT
{
	n=$((n + 1))
	[ "$1" -eq 0 ] && echo "ok $n - $2" && return
	failed=$((failed + 1))
	echo "not ok $n - $2"
	tail -n 30 "$dir"/*.log "$dir/vm/output" "$dir/vm/qemu" 2>/dev/null | sed 's/^/# /'
}

begin() # NAME
{
	: >"$dir/$1.log" # here, not in the new process: `seen` must not find a line of the former one
	"$gantry" run -p "$build/plugins/.libs" "$dir/vm.conf" --role "$1" --json >"$dir/$1.json" 2>>"$dir/$1.log" &
	pids[$1]=$!
}

# seen FILE PATTERN [SECONDS] - wait until the file has a line that matches
seen()
{
	timeout "${3:-60}" tail -n +1 -s 0.05 -F "$1" 2>/dev/null | grep -m1 -E -q -- "$2"
}

restart() # NAME [SIGNAL]
{
	kill -"${2:-KILL}" "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	begin "$1"
}

# progress WHAT - wait until the guest has written another line: the role serves requests, and does not end while the machine still
# sets up the connection
progress()
{
	local before
	before=$(wc -l <"$dir/vm/output")
	for _ in $(seq 2400); do
		[ "$(wc -l <"$dir/vm/output")" -le "$before" ] || break
		read -rt 0.05 <><(:) || :
	done
	[ "$(wc -l <"$dir/vm/output")" -gt "$before" ]
	verdict $? "the guest continues after $1"
}

boot() # SCRIPT - of the guest
{
	rm -rf "$dir/vm" # `seen` must not find a line of the former machine
	bash "$here/run.sh" -b "$build" -o "$dir/vm" -t 300 "$here/$1" >>"$dir/guest.log" 2>&1 &
	pids[vm]=$!
}

split_rings()
{
	boot vhost-guest.sh
	seen "$dir/vm/output" '^writing' 240
	verdict $? "the machine boots, and uses a file system on the disk"
	restart bridge
	seen "$dir/disk.log" 'session resumed.*epoch=2'
	verdict $? "the gateway is killed and started again"
	restart store
	seen "$dir/disk.log" 'session resumed.*epoch=3'
	verdict $? "the target is killed and started again"
	restart disk
	seen "$dir/disk.log" ' front end connected'
	verdict $? "the role is killed and started again, and the machine connects to it"
	progress "the role was killed"
	restart disk TERM
	seen "$dir/disk.log" ' front end connected'
	verdict $? "the role is stopped and started again, and the machine connects to it"
	seen "$dir/vm/output" '^growing' 240
	truncate -s 320M "$dir/volume"
	seen "$dir/disk.log" 'size of the volume changed'
	verdict $? "the volume grows"
	wait "${pids[vm]}"
	verdict $? "the guest finds its data, and the file system is clean"
	unset 'pids[vm]'
}

packed_rings()
{
	VM_QEMU=${VM_QEMU/-device vhost-user-blk-pci,/-device vhost-user-blk-pci,packed=on,}
	boot vhost-packed-guest.sh
	seen "$dir/vm/output" '^writing' 240
	verdict $? "a machine with packed rings uses the file system"
	restart disk
	seen "$dir/disk.log" ' front end connected'
	verdict $? "the role is killed and started again, and the machine with packed rings connects to it"
	progress "the role was killed"
	restart disk TERM
	seen "$dir/disk.log" ' front end connected'
	verdict $? "the role is stopped and started again, and the machine with packed rings connects to it"
	progress "the role was stopped"
	restart disk
	seen "$dir/disk.log" ' front end connected'
	verdict $? "the role is killed once more"
	wait "${pids[vm]}"
	verdict $? "the guest with packed rings finds its data, and the file system is clean"
	unset 'pids[vm]'
}

chmod 700 "$dir"
truncate -s 256M "$dir/volume"
[ "${2:-}" != packed ] || mkfs.ext4 -q -b 4096 "$dir/volume" || exit 1
leg="transport = \"shm-comch\"; dir = \"$dir/run\";"
address=127.$((BASHPID >> 16)).$((BASHPID >> 8 & 255)).$((BASHPID & 255)) # of this run
[ -z "$over_tcp" ] ||
	leg="transport = \"tcp\"; auth = \"none\"; services = { store = \"$address:4791\"; volume = \"$address:4792\"; };"
cat >"$dir/vm.conf" <<END
runtime = { log = "info"; stat_dir = "$dir/stat"; };
devices = { front = { $leg }; back = { $leg }; };
roles = {
	store = { role = "target"; listen = { device = "back"; name = "store"; };
	          backend = { type = "file"; path = "$dir/volume"; direct = false; lock_wait = "30s"; }; };
	bridge = { role = "gateway"; listen = { device = "front"; name = "volume"; };
	           connect = { device = "back"; name = "store"; }; };
	disk = { role = "vhost-user-blk"; connect = { device = "front"; name = "volume"; resume = "1m"; };
	         socket = "$dir/disk.sock"; serial = "gantry-vm"; lanes = 2; };
};
END
begin store
begin bridge
begin disk
seen "$dir/disk.log" ' listening \(socket'
verdict $? "the roles start"

VM_QEMU=$("$gantry" vm -p "$build/plugins/.libs" "$dir/vm.conf" 1GiB --role disk | tr '\n' ' ')
export VM_QEMU
[ "${2:-}" = packed ] || split_rings
packed_rings
kill -TERM "${pids[disk]}"
wait "${pids[disk]}"
verdict $? "the role ends"
grep -o '"guest_[a-z_]*":[ 0-9]*' "$dir/disk.json" | sed 's/^/# /'
sed 's/^/# /' "$dir/guest.log"
e2fsck -fn "$dir/volume" >"$dir/fsck.log" 2>&1
verdict $? "the file system in the volume is clean"
echo "1..$n"
exit $((failed != 0))
