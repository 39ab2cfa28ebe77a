#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost-memory-guest.sh - uses the disk /dev/vda in the virtual machine while memory is plugged and unplugged; see vhost-memory.sh
set -eu
modprobe virtio_blk
for _ in $(seq 600); do [ ! -b /dev/vda ] || break; read -rt 0.05 <><(:) || :; done
# the kernel must not put memory of its own there, so that the memory can be unplugged again
echo online_movable >/sys/devices/system/memory/auto_online_blocks

memory() # in KiB
{
	awk '/^MemTotal:/ { print $2 }' /proc/meminfo
}

# until_memory CONDITION - wait until the size of the memory in KiB, kib, satisfies an arithmetic condition
until_memory()
{
	local kib
	for _ in $(seq 1200); do
		kib=$(memory)
		((! ($1))) || return 0
		read -rt 0.05 <><(:) || :
	done
	echo "MemTotal $kib KiB"
	return 1
}

# write and verify the first half of the disk all the time
dd if=/dev/urandom of="$TMPDIR/content" bs=1M count=8 status=none
work()
{
	local i
	for ((i = 0; ; i++)); do
		[ ! -e "$TMPDIR/end" ] || break
		dd if="$TMPDIR/content" of=/dev/vda bs=64K seek=$((i % 4 * 128)) oflag=direct conv=notrunc status=none
		dd if=/dev/vda bs=64K skip=$((i % 4 * 128)) count=128 iflag=direct status=none | cmp - "$TMPDIR/content"
	done
	echo "$i rounds"
}
work &
worker=$!
before=$(memory)
echo "writing: $before KiB"
until_memory 'kib >= before + 250000'
echo "plugged: $(memory) KiB"
dmesg | tail -n 5

# IO whose pages are in the new memory, above 4 GiB: the kernel takes pages of programs from there first
python3 - <<'P'
import mmap, os, struct
size = 8 << 20
m = mmap.mmap(-1, size)
m.write(os.urandom(size))
with open("/proc/self/maps") as maps, open("/proc/self/pagemap", "rb") as pages:
    import ctypes
    at = ctypes.addressof(ctypes.c_char.from_buffer(m))
    pages.seek(at // 4096 * 8)
    entries = struct.unpack("<2048Q", pages.read(2048 * 8))
high = sum(1 for e in entries if e >> 63 and (e & (1 << 55) - 1) >= 1 << 20)
print(high, "of 2048 pages are above 4 GiB")
assert high > 1000
content = bytes(m)
disk = os.open("/dev/vda", os.O_RDWR | os.O_DIRECT)
half = 32 << 20
assert os.pwritev(disk, [m], half) == size
for i in range(0, size, 4096):
    m[i:i + 4096] = b"\xee" * 4096
assert os.preadv(disk, [m], half) == size
assert bytes(m) == content
P
dd if=/dev/vda of="$TMPDIR/copy" bs=1M skip=32 count=8 iflag=direct status=none
echo "used"
until_memory 'kib <= before + 1000'
echo "unplugged: $(memory) KiB"
dd if=/dev/vda bs=1M skip=32 count=8 iflag=direct status=none | cmp - "$TMPDIR/copy"
: >"$TMPDIR/end"
wait $worker
