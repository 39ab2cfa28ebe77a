#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# quick.sh - the soak test as a part of ./dev test: 200 kills and 200,000 acknowledged writes in 3 minutes at most; over TCP, 30
# kills and 10,000 writes in one minute at most
soak=$top_builddir/tests/soak/soak
[ -x "$soak" ] || { echo "1..0 # SKIP built without libgantry"; exit 0; }
[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || { echo "1..0 # SKIP built without shm-comch"; exit 0; }
echo 1..2
"$soak" --kills 200 --writes 200000 --limit 180 | sed 's/^/# /'
[ "${PIPESTATUS[0]}" -eq 0 ] || printf 'not '
echo "ok 1 - no acknowledged write is lost, torn or overtaken, and nothing hangs or leaks"
[ -e "$GANTRY_PLUGINS/tcp.so" ] || { echo "ok 2 - the same over TCP # SKIP built without tcp"; exit 0; }
device='transport = "tcp";' net=127.$(($$ >> 14)).$(($$ >> 6 & 255)) host=$((($$ & 63) * 4)) # addresses of this run only
"$soak" --kills 30 --writes 10000 --limit 60 --near "$device" --far "$device" --near-ip "$net.$((host + 1))" \
	--far-ip "$net.$((host + 2))" | sed 's/^/# /'
[ "${PIPESTATUS[0]}" -eq 0 ] || printf 'not '
echo "ok 2 - the same over TCP"
