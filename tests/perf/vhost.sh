# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost.sh - the disk of a virtual machine: the role vhost-user-blk, compared with the export of qemu-storage-daemon. The guest is
# virtiobench, which polls, on the first CPU; the process that serves the disk is on the second one. Sourced by bench.sh after
# storage.sh and peers.sh (bash).

# disk_configuration NAME BACKEND - write $tmp/NAME.conf: target and disk in one process
disk_configuration()
{
	cat >"$tmp/$1.conf" <<-END
	runtime = { stat = false; cpus = "$cpu1"; };
	devices = { wire = { transport = "loop"; }; };
	roles = {
		store = { role = "target"; listen = { device = "wire"; name = "store"; }; backend = { $2 }; };
		disk = { role = "vhost-user-blk"; connect = { device = "wire"; name = "store"; }; socket = "$tmp/disk.sock"; };
	};
	END
}
disk_configuration disk_null "$nothing"
disk_configuration disk_ram "$memory"

# guest DEPTH SERVER-ARGUMENT... - run the guest on a server; print thousands of requests per second. $tmp/disk_us gets the CPU time
# of the server for a request, in microseconds
guest()
{
	local depth=$1 pid rc ticks
	shift
	rm -f "$tmp/disk.sock"
	taskset -c "$cpu1" "$@" >/dev/null 2>>"$tmp/errors" &
	pid=$!
	until_ready $pid test -S "$tmp/disk.sock" &&
		timeout 20 taskset -c "$cpu0" "$perf/virtiobench" "$tmp/disk.sock" "$depth" "$ms" 256 >"$tmp/guest" 2>>"$tmp/errors"
	rc=$?
	ticks=$(awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$pid/stat")
	kill -TERM $pid 2>/dev/null
	wait $pid
	[ $rc -eq 0 ] || return 1
	awk -v us="$((ticks * tick_ms * 1000))" '$1 == "virtio_requests" && $2 { printf "%.4g\n", us / $2 }' \
		"$tmp/guest" >"$tmp/disk_us"
	value virtio_rate <"$tmp/guest"
}

disk_null() { guest "$1" "${gantry[@]}" "$tmp/disk_null.conf"; }
disk_ram() { guest "$1" "${gantry[@]}" "$tmp/disk_ram.conf"; }

# qemu_disk DEPTH BLOCKDEV - qemu-storage-daemon, with a thread for the disk that polls for up to a millisecond
qemu_disk()
{
	guest "$1" qemu-storage-daemon --object iothread,id=t0,poll-max-ns=1000000 --blockdev "node-name=n0,$2" \
		--export "type=vhost-user-blk,id=e0,node-name=n0,iothread=t0,addr.type=unix,addr.path=$tmp/disk.sock"
}
qemu_disk_null() { qemu_disk "$1" driver=null-co,size=1073741824,read-zeroes=off; }
qemu_disk_ram()
{
	[ -f "/dev/shm/gantry-bench.$$" ] || head -c 256M /dev/zero >"/dev/shm/gantry-bench.$$"
	qemu_disk "$1" "driver=file,filename=/dev/shm/gantry-bench.$$"
}

disk_null_1() { disk_null 1; }
disk_null_32() { disk_null 32; }
disk_ram_1() { disk_ram 1; }
disk_ram_32() { disk_ram 32; }
qemu_disk_null_1() { qemu_disk_null 1; }
qemu_disk_null_32() { qemu_disk_null 32; }
qemu_disk_ram_1() { qemu_disk_ram 1; }
qemu_disk_ram_32() { qemu_disk_ram 32; }
disk_cpu() { disk_null 32 >/dev/null && cat "$tmp/disk_us"; }
qemu_disk_cpu() { qemu_disk_null 32 >/dev/null && cat "$tmp/disk_us"; }

vhost_list()
{
	command -v qemu-storage-daemon >/dev/null || { absent "qemu-storage-daemon (package qemu-system-common)"; return; }
	cat <<-END
	vhost_null_1|random read of a guest, null, depth 1|kIO/s|qemu_disk_null_1|disk_null_1|ratio|>1||
	vhost_null_32|random read of a guest, null, depth 32|kIO/s|qemu_disk_null_32|disk_null_32|ratio|>1.2||
	vhost_cpu|the same, CPU time of a request|us|qemu_disk_cpu|disk_cpu|ratio|<1||
	vhost_ram_1|random read of a guest, RAM, depth 1|kIO/s|qemu_disk_ram_1|disk_ram_1|ratio|>1||
	vhost_ram_32|random read of a guest, RAM, depth 32|kIO/s|qemu_disk_ram_32|disk_ram_32|ratio|>1.2||
	END
}
