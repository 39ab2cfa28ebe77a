#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run-bats.sh FILE - run a bats file, print TAP
if [ -z "$BATS" ]; then
	echo "1..0 # SKIP bats is not installed"
	exit 0
fi
exec "$BATS" --tap "$@"
