#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run-unity.sh PROGRAM... - run a C test and convert its output to TAP; a crash or a hang is a failure
here=$(dirname "$0")
{
	timeout -k 10 "${TEST_SECONDS:-600}" "$@" 2>&1
	echo "exit status $?"
} | "${AWK:-awk}" -f "$here/unity2tap.awk"
