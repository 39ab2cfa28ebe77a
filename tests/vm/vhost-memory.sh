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
. "$here/vhost-lib.sh"

monitor() # COMMAND - send a command to QEMU
{
	printf '%s\n' "$1" >&4
}

count() # REQUEST - how often the front end has sent it
{
	grep -c "front end: $1 " "$dir/disk.log"
}

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
end_disk
! grep -E ' (warn|error) ' "$dir/disk.log" "$dir/store.log"
verdict $? "no role has logged a warning"
sed 's/^/# /' "$dir/guest.log"
done_testing
