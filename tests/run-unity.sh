#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run-unity.sh PROGRAM... - run a C test and turn what it prints into TAP; a crash is a failure, and so is a hang
here=$(dirname "$0")
{
	timeout -k 10 "${TEST_SECONDS:-600}" "$@" 2>&1
	echo "exit status $?"
} | "${AWK:-awk}" -f "$here/unity2tap.awk"
