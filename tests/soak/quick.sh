#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# quick.sh - the soak test as a part of ./dev test: 200 kills and 200,000 acknowledged writes in 3 minutes at most
soak=$top_builddir/tests/soak/soak
[ -x "$soak" ] || { echo "1..0 # SKIP built without libgantry"; exit 0; }
[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || { echo "1..0 # SKIP built without shm-comch"; exit 0; }
echo 1..1
"$soak" --kills 200 --writes 200000 --limit 180 | sed 's/^/# /'
[ "${PIPESTATUS[0]}" -eq 0 ] || printf 'not '
echo "ok 1 - no acknowledged write is lost, torn or overtaken, and nothing hangs or leaks"
