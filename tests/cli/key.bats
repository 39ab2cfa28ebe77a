#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry key: keys for a key file, and what it does with the file.

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	umask 022
}

@test "a key is printed, another one each time" {
	run "$GANTRY" key new host-a
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^host-a:[0-9a-f]{64}$ ]]
	local first=$output
	run "$GANTRY" key new host-a
	[ "$output" != "$first" ]
}

@test "a file is created for its owner only, and gets one line for each identity" {
	run "$GANTRY" key new host-a keys
	[ "$status" -eq 0 ]
	[ "$output" = "keys: a key of host-a" ]
	[ "$(stat -c %a keys)" = 600 ]
	printf '# no newline' >>keys
	"$GANTRY" key new host-b keys
	[ "$(grep -c '^host-[ab]:[0-9a-f]\{64\}$' keys)" -eq 2 ]
	[ "$(wc -l <keys)" -eq 3 ]
}

@test "an identity of the file is rejected, and the file is left alone" {
	"$GANTRY" key new host-a keys
	cp keys before
	run "$GANTRY" key new host-a keys
	[ "$status" -eq 2 ]
	[[ "$output" == "gantry: keys: the file has a key of this identity (identity=host-a): "* ]]
	cmp keys before
}

@test "a file that others can read, or with a wrong line, is rejected" {
	"$GANTRY" key new host-a keys
	chmod 640 keys
	run "$GANTRY" key new host-b keys
	[ "$status" -eq 1 ]
	[[ "$output" == *"other users can access the key (mode=0640): chmod 600"* ]]
	chmod 600 keys
	echo wrong >>keys
	run "$GANTRY" key new host-b keys
	[ "$status" -eq 1 ]
	[[ "$output" == "gantry: keys:2: no colon: write IDENTITY:KEY" ]]
	run "$GANTRY" key new host-b none/keys
	[ "$status" -eq 1 ]
}

@test "wrong words and identities are rejected" {
	run "$GANTRY" key
	[ "$status" -eq 2 ]
	run "$GANTRY" key old host-a
	[ "$status" -eq 2 ]
	run "$GANTRY" key new 'host a'
	[ "$status" -eq 2 ]
	[[ "$output" == *"not an identity (value=host a)"* ]]
}
