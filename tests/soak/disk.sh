#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# disk.sh - the checker for disks accepts a file, and finds a write that is acknowledged and not done
. "$top_srcdir/tests/tap.sh"
disk=$top_builddir/tests/soak/disk
truncate -s 16M "$tmp/file"
dd if=/dev/zero of="$tmp/file" bs=4K count=1 oflag=direct conv=notrunc status=none 2>/dev/null ||
	skip "the file system of TMPDIR has no direct IO"
ok "a file has no errors" timeout 60 "$disk" "$tmp/file" 2 1
timeout 60 "$disk" "$tmp/file" 20 1 lose >"$tmp/out"
verdict $(($? != 1)) "a lost write ends the program with status 1" "$tmp/out"
ok "it is reported as stale data" grep -q '^stale: ' "$tmp/out"
done_testing
