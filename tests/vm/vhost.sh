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
leg=shm_leg
[ "${1:-}" != --tcp ] || { leg=tcp_leg; shift; }
build=$(realpath -e "${1:-$top/build/gcc}") || exit 2
. "$here/vhost-lib.sh"

split_rings()
{
	boot 300 "$here/vhost-guest.sh"
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
	device_options="packed=on,"
	boot 300 "$here/vhost-packed-guest.sh"
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

truncate -s 256M "$dir/volume"
[ "${2:-}" != packed ] || mkfs.ext4 -q -b 4096 "$dir/volume" || exit 1
configure "$($leg)" 'serial = "gantry-vm"; lanes = 2;'
begin_roles
[ "${2:-}" = packed ] || split_rings
packed_rings
end_disk
sed 's/^/# /' "$dir/guest.log"
clean_file_system
done_testing
