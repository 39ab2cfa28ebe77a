#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run-bats.sh FILE - run a bats file, print TAP; a hang is a failure
if [ -z "$BATS" ]; then
	echo "1..0 # SKIP bats is not installed"
	exit 0
fi
exec timeout -k 10 "${TEST_SECONDS:-600}" "$BATS" --tap "$@"
