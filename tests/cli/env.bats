#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry env: a shell can use its output, in the build tree and after installation.

setup() {
	unset PKG_CONFIG_PATH LD_LIBRARY_PATH GANTRY_DOCA_PROFILE GANTRY_PLUGIN_PATH
	pc=$top_builddir/doca/dpu/pkgconfig
}

# needs_doca - skip the test if the library is not built
needs_doca() {
	[ -d "$pc" ] || skip "built with --disable-doca"
}

@test "a profile must be named, and be one" {
	run "$GANTRY" env
	[ "$status" -eq 2 ]
	run "$GANTRY" env both
	[ "$status" -eq 2 ]
	[[ "$output" == *'no profile "both"; there are host and dpu'* ]]
}

@test "a shell can evaluate the output, and every directory exists" {
	needs_doca
	eval "$("$GANTRY" env dpu)"
	[ "$GANTRY_DOCA_PROFILE" = dpu ]
	[ "${PKG_CONFIG_PATH%%:*}" -ef "$pc" ]
	[ -e "${LD_LIBRARY_PATH%%:*}/libgantry-doca.so" ]
	local dirs
	IFS=: read -ra dirs <<<"$PKG_CONFIG_PATH:$LD_LIBRARY_PATH"
	[ ${#dirs[@]} -eq 5 ]
	for dir in "${dirs[@]}"; do [ -d "$dir" ]; done
	[ "$GANTRY_PLUGIN_PATH" -ef "$GANTRY_PLUGINS" ]
}

@test "new paths precede existing ones; a second profile replaces the first" {
	needs_doca
	PKG_CONFIG_PATH=/mine LD_LIBRARY_PATH=/mine
	eval "$("$GANTRY" env dpu)"
	eval "$("$GANTRY" env host)"
	[ "$GANTRY_DOCA_PROFILE" = host ]
	[[ "$PKG_CONFIG_PATH" == */host/pkgconfig:*/dpu/pkgconfig:*:/mine ]]
	[[ "$LD_LIBRARY_PATH" == *:/mine ]]
}

@test "a directory with a quote in its name" {
	needs_doca
	odd="$BATS_TEST_TMPDIR/it's \$HOME"
	mkdir -p "$odd/core" "$odd/doca/host/pkgconfig"
	cp "$GANTRY" "$odd/core/gantry"
	touch "$odd/core/libgantry-core.la"
	eval "$("$odd/core/gantry" env host)"
	[ "${PKG_CONFIG_PATH%%:*}" -ef "$odd/doca/host/pkgconfig" ]
}

@test "the profile as JSON" {
	needs_doca
	run "$GANTRY" env host --json
	[ "$status" -eq 0 ]
	[ "$(jq -r .profile <<<"$output")" = host ]
	[ "$(jq -r .schema <<<"$output")" = 1 ]
	[ "$(jq -r '.pkg_config_path | split(":")[0]' <<<"$output")" -ef "$top_builddir/doca/host/pkgconfig" ]
}

@test "without a built or installed DOCA library: an error" {
	mkdir -p "$BATS_TEST_TMPDIR/core"
	cp "$GANTRY" "$BATS_TEST_TMPDIR/core/gantry"
	touch "$BATS_TEST_TMPDIR/core/libgantry-core.la"
	run "$BATS_TEST_TMPDIR/core/gantry" env dpu
	[ "$status" -eq 1 ]
	[[ "$output" == *"without --disable-doca"* ]]
}

@test "pkg-config finds each module, in both profiles" {
	needs_doca
	for profile in host dpu; do
		eval "$("$GANTRY" env "$profile")"
		for module in common argp comch dma rdma dpa aes-gcm compress erasure-coding sha; do
			pkg-config --exists "doca-$module >= 3.0"
			[[ "$(pkg-config --cflags "doca-$module")" == *"/include/doca/$profile"* ]]
			[[ "$(pkg-config --libs "doca-$module")" == *-lgantry-doca* ]]
		done
		[[ "$(pkg-config --cflags doca-dma-workq)" == -I*/doca/workq\ *"/include/doca/$profile"* ]]
	done
}

@test "in the build tree: examples of a plugin and of a client build with the commands in them" {
	needs_doca
	[ -e "$top_builddir/clients/.libs/libgantry.so" ] || skip "built without libgantry"
	! grep -q -e -fsanitize "$top_builddir/clients/Makefile" || skip "only for builds without sanitizers"
	eval "$("$GANTRY" env host)"
	cd "$BATS_TEST_TMPDIR"
	cp "$top_srcdir"/examples/stage/throttle.c "$top_srcdir"/examples/client/put.c .
	for file in throttle.c put.c; do
		command=$(sed -n 's/^ \*     \(cc .*\)/\1/p' $file)
		[ -n "$command" ]
		eval "${command/#cc/${CC:-cc}}"
	done
	[ "$(pkg-config --variable=plugindir gantry-plugin)" -ef "$GANTRY_PLUGINS" ]
	"$GANTRY" options throttle --plugin-dir . | grep -q rate
	run ./put
	[[ "$output" == *"URI"* || "$output" == *"usage"* ]]
}
