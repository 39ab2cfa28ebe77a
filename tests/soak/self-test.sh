#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# self-test.sh - the soak test finds each kind of error
soak=$top_builddir/tests/soak/soak
[ -x "$soak" ] || { echo "1..0 # SKIP built without libgantry"; exit 0; }
[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || { echo "1..0 # SKIP built without shm-comch"; exit 0; }
exec bash "$top_srcdir/tests/soak/rbd.sh" "$soak" --self-test
