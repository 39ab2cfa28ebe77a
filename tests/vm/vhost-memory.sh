#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost-memory.sh [BUILD] - memory is plugged into a virtual machine and unplugged while it uses a disk of vhost-user-blk.
# vhost-memory-guest.sh uses the disk, with its data in the new memory, too.
#
# Prints TAP. A run takes about 1 minute.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../.." && pwd)
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
	tail -n 30 "$dir"/*.log "$dir/qmp.log" "$dir/vm/output" "$dir/vm/qemu" 2>/dev/null | sed 's/^/# /'
}

begin() # NAME
{
	: >"$dir/$1.log"
	"$gantry" run -p "$build/plugins/.libs" "$dir/vm.conf" --role "$1" --json >"$dir/$1.json" 2>>"$dir/$1.log" &
	pids[$1]=$!
}

# seen FILE PATTERN [SECONDS] - wait until the file has a line that matches
seen()
{
	timeout "${3:-60}" tail -n +1 -s 0.05 -F "$1" 2>/dev/null | grep -m1 -E -q -- "$2"
}

monitor() # COMMAND - send a command to QEMU
{
	printf '%s\n' "$1" >&4
}

count() # REQUEST - how often the front end has sent it
{
	grep -c "front end: $1 " "$dir/disk.log"
}

chmod 700 "$dir"
cat >"$dir/vm.conf" <<END
runtime = { log = "debug"; stat_dir = "$dir/stat"; };
devices = { back = { transport = "shm-comch"; dir = "$dir/run"; }; };
roles = {
	store = { role = "target"; listen = { device = "back"; name = "store"; };
	          backend = { type = "memory"; size = "64MiB"; }; };
	disk = { role = "vhost-user-blk"; connect = { device = "back"; name = "store"; resume = "1m"; };
	         socket = "$dir/disk.sock"; };
};
END
begin store
begin disk
seen "$dir/disk.log" ' listening \(socket'
verdict $? "the roles start"

mkfifo "$dir/qmp.in" "$dir/qmp.out" || exit 1
VM_QEMU=$("$gantry" vm -p "$build/plugins/.libs" "$dir/vm.conf" 512MiB --role disk |
	sed 's/^-m 512M$/&,slots=2,maxmem=2G/' | tr '\n' ' ')
VM_QEMU+=" -chardev pipe,id=qmp,path=$dir/qmp -mon chardev=qmp,mode=control"
export VM_QEMU
cat "$dir/qmp.out" >"$dir/qmp.log" &
pids[qmp]=$!
exec 4<>"$dir/qmp.in"
bash "$here/run.sh" -b "$build" -o "$dir/vm" -t 250 "$here/vhost-memory-guest.sh" >"$dir/guest.log" 2>&1 &
pids[vm]=$!
seen "$dir/vm/output" '^writing' 200
verdict $? "the machine boots, and uses the disk"
before=$(count ADD_MEM_REG)
monitor '{"execute": "qmp_capabilities"}'
monitor '{"execute": "object-add", "arguments": {"qom-type": "memory-backend-memfd", "id": "more", "size": 268435456,
	"share": true, "seal": true}}'
monitor '{"execute": "device_add", "arguments": {"driver": "pc-dimm", "id": "dimm", "memdev": "more"}}'
seen "$dir/vm/output" '^plugged' 100
verdict $? "the guest has more memory"
[ "$before" -gt 0 ] && [ "$(count ADD_MEM_REG)" -eq $((before + 1)) ] && [ "$(count SET_MEM_TABLE)" -eq 0 ]
verdict $? "the monitor has added one region"
seen "$dir/vm/output" '^used' 100
verdict $? "requests have their data in the new memory"
before=$(count REM_MEM_REG)
monitor '{"execute": "device_del", "arguments": {"id": "dimm"}}'
seen "$dir/vm/output" '^unplugged' 100
verdict $? "the memory is unplugged"
seen "$dir/qmp.log" 'DEVICE_DELETED.*dimm' && [ "$(count REM_MEM_REG)" -eq $((before + 1)) ]
verdict $? "the monitor has removed one region"
wait "${pids[vm]}"
verdict $? "the guest finds its data"
unset 'pids[vm]'
kill -TERM "${pids[disk]}"
wait "${pids[disk]}"
verdict $? "the role ends"
! grep -E ' (warn|error) ' "$dir/disk.log" "$dir/store.log"
verdict $? "no role has logged a warning"
grep -o '"guest_[a-z_]*":[ 0-9]*' "$dir/disk.json" | sed 's/^/# /'
sed 's/^/# /' "$dir/guest.log"
echo "1..$n"
exit $((failed != 0))
