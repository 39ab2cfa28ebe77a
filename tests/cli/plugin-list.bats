#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry plugins: the plugins that it finds, and the reasons for rejected ones.

setup() {
	umask 022
	dir=$BATS_TEST_TMPDIR/plugins
	mkdir "$dir"
	[ -e "$GANTRY_PLUGINS/noop.so" ] || skip "built without the plugin noop"
	cp -L "$GANTRY_PLUGINS/noop.so" "$dir/noop.so"
	chmod 755 "$dir/noop.so"
}

gantry() {
	run "$GANTRY" "$@"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; echo "said: $output"; return 1; }
}

@test "lists every plugin that was built" {
	gantry plugins --plugin-dir "$GANTRY_PLUGINS"
	[ "$status" -eq 0 ]
	for file in "$GANTRY_PLUGINS"/*.so; do says "$(basename "$file" .so)"; done
	[[ "$output" != *unusable* ]]
}

@test "shows options with type, range, default and help" {
	[ -e "$GANTRY_PLUGINS/memory.so" ] || skip "built without the plugin memory"
	gantry plugins --plugin-dir "$GANTRY_PLUGINS" --options memory
	[ "$status" -eq 0 ]
	says "memory       backend"
	says 'default "4KiB"'
}

@test "a missing directory is reported" {
	gantry plugins -p "$dir" -p "$dir/nowhere" frob
	[ "$status" -eq 2 ]
	says "no plugin \"frob\" in $dir, $dir/nowhere (does not exist)"
	gantry plugins -p "$dir" -p "$dir/noop.so" noop
	[ "$status" -eq 0 ]
	says "in $dir, $dir/noop.so (is not a directory):"
}

@test "JSON lists the same plugins and options" {
	gantry plugins -p "$dir" --json --options
	[ "$status" -eq 0 ]
	says '"name": "noop"'
	says "\"path\": \"$dir/noop.so\""
	says '"usable": true'
	says '"kind": "stage"'
	says '"abi": "0.1"'
	says '"options": []'
}

@test "a name that JSON cannot hold is listed all the same" {
	more=$BATS_TEST_TMPDIR/$'\xfc'
	mkdir "$more"
	echo rubbish >"$more/"$'\xff.so'
	gantry plugins -p "$more" --json
	[ "$status" -eq 0 ]
	says "\"searched\": \"$BATS_TEST_TMPDIR/?\""
	says '"name": "?"'
	says 'not the name of a plugin'
}

@test "a relative directory is relative to the current directory" {
	cd "$BATS_TEST_TMPDIR"
	gantry plugins -p plugins
	[ "$status" -eq 0 ]
	says "$dir/noop.so"
}

@test "a name that does not exist" {
	gantry plugins -p "$dir" nix
	[ "$status" -eq 2 ]
	says "gantry: no plugin \"nix\" in $dir"
}

@test "a name in capitals, or nearly right" {
	gantry plugins -p "$dir" Noop
	[ "$status" -eq 2 ]
	says "gantry: no plugin \"Noop\" in $dir; did you mean \"noop\"?"
	gantry options -p "$dir" nop
	[ "$status" -eq 2 ]
	says "gantry: no plugin \"nop\" in $dir; did you mean \"noop\"?"
	gantry options -p "$dir" Listen
	[ "$status" -eq 2 ]
	says 'gantry: no section "Listen"; did you mean "listen"?'
}

@test "files that are no plugins are listed with the reason" {
	echo rubbish >"$dir/broken.so"
	cp "$dir/noop.so" "$dir/renamed.so"
	gantry plugins -p "$dir"
	[ "$status" -eq 0 ]
	says "broken       unusable   $dir/broken.so: does not load: "
	says "renamed      unusable   $dir/renamed.so: not a gantry plugin of that name:"
	says "it has no symbol renamed_LTX_gantry_plugin, which GANTRY_PLUGIN(renamed) defines"
	for command in plugins options; do
		run bash -c '"$@" 2>&1 >/dev/null' sh "$GANTRY" $command -p "$dir" broken
		[ "$status" -eq 2 ]
		says "gantry: $dir/broken.so: does not load: "
	done
}

@test "a file with a wrong byte in its headers, and one that crashes when it is loaded" {
	# p_flags of the first PT_LOAD header: byte 4 of 56; ld.lld puts PT_PHDR before it
	local index
	index=$(LC_ALL=C readelf -lW "$dir/noop.so" |
		awk '/^  Type +Offset/ { table = 1; next } table && $1 == "LOAD" { print n + 0; exit } table { n++ }')
	printf '\0' | dd of="$dir/noop.so" bs=1 seek=$((64 + 56 * index + 4)) conv=notrunc status=none
	gantry plugins -p "$dir"
	[ "$status" -eq 0 ]
	says "noop         unusable   $dir/noop.so: the file is corrupt: "
	echo '__attribute__((constructor)) static void f(void) { __builtin_trap(); }' >"$dir/crash.c"
	"${CC:-cc}" -shared -fPIC -o "$dir/crash.so" "$dir/crash.c" || skip "no compiler"
	echo 'roles = { store = { role = "crash"; }; };' >"$dir/t.conf"
	for command in "plugins crash" "check $dir/t.conf" "run $dir/t.conf"; do
		# shellcheck disable=SC2086 # two words
		gantry $command -p "$dir"
		echo "$output"
		[ "$status" -eq 2 ]
		says "$dir/crash.so: a process that loads it crashes (signal="
	done
}

@test "control characters in the name of a file are not printed" {
	echo rubbish >"$dir/"$'a\e[31m\nb.so'
	gantry plugins -p "$dir"
	[ "$status" -eq 0 ]
	says "a?[31m?b     unusable   $dir/a?[31m?b.so: not the name of a plugin"
}

@test "a file that others may write is not loaded" {
	chmod 777 "$dir/noop.so"
	gantry plugins -p "$dir" noop
	[ "$status" -eq 2 ]
	says "$dir/noop.so: the file is writable by all users (owner=$(id -u), mode=0777): fix its owner or mode"
}

@test "a directory that others may write is not trusted" {
	chmod 777 "$dir"
	gantry plugins -p "$dir" noop
	[ "$status" -eq 2 ]
	says "the directory $dir is writable by all users (owner=$(id -u), mode=0777): fix its owner or mode"
}

@test "a symbolic link is not followed" {
	mv "$dir/noop.so" "$BATS_TEST_TMPDIR/noop.so"
	ln -s "$BATS_TEST_TMPDIR/noop.so" "$dir/noop.so"
	gantry plugins -p "$dir" noop
	[ "$status" -eq 2 ]
	says "the file is a symbolic link"
}

@test "the first directory wins, the second is listed as hidden" {
	mkdir "$BATS_TEST_TMPDIR/more"
	cp "$dir/noop.so" "$BATS_TEST_TMPDIR/more/"
	gantry plugins -p "$BATS_TEST_TMPDIR/more" -p "$dir"
	[ "$status" -eq 0 ]
	says "$dir/noop.so: hidden by the plugin in $BATS_TEST_TMPDIR/more"
	gantry plugins -p "$BATS_TEST_TMPDIR/more" -p "$dir" noop
	[ "$status" -eq 0 ]
}

@test "a directory without plugins is reported" {
	mkdir "$BATS_TEST_TMPDIR/empty"
	gantry plugins -p "$BATS_TEST_TMPDIR/empty"
	[ "$status" -eq 0 ]
	[ "$output" = "in $BATS_TEST_TMPDIR/empty:
none; use --plugin-dir DIR to search another directory" ]
	gantry devices -p "$dir"
	[ "$status" -eq 0 ]
	[ "$output" = "no transport plugin in $dir; use --plugin-dir DIR to search another directory" ]
}

@test "the environment names directories, the command line wins" {
	GANTRY_PLUGIN_PATH=/nonexistent:$dir gantry plugins
	says "$dir/noop.so"
	GANTRY_PLUGIN_PATH=/nonexistent gantry plugins -p "$dir"
	says "$dir/noop.so"
}

@test "the search path of libltdl is ignored" {
	mkdir "$BATS_TEST_TMPDIR/empty"
	LTDL_LIBRARY_PATH=$dir gantry plugins -p "$BATS_TEST_TMPDIR/empty" noop
	[ "$status" -eq 2 ]
}

@test "directories come from the configuration" {
	echo "runtime = { plugin_dirs = [ \"$dir\" ]; };" >"$BATS_TEST_TMPDIR/dirs.conf"
	gantry plugins -c "$BATS_TEST_TMPDIR/dirs.conf"
	[ "$status" -eq 0 ]
	says "$dir/noop.so"
}

@test "options of sections and plugins, as text, for a manual page and as JSON" {
	gantry options -p "$dir"
	[ "$status" -eq 0 ]
	says "listen: the group listen of a role"
	says "heartbeat            time, 1ms to 1m; default \"500ms\""
	gantry options -p "$dir" --mdoc role
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = ".It Cm lanes Pq number" ]
	gantry options -p "$dir" --json connect noop
	[ "$status" -eq 0 ]
	says '"name": "timeout"'
	says '"name": "noop"'
	gantry options -p "$dir" frob
	[ "$status" -eq 2 ]
	says "no plugin \"frob\" in $dir"
	says 'the sections are runtime, role, listen and connect, gantry plugins lists the plugins'
}

@test "options of a configuration, named as --set takes them" {
	cat >"$BATS_TEST_TMPDIR/a.conf" <<-'EOF'
	devices = { wire = { transport = "loop"; }; };
	roles = { bridge = {
		role = "nix";
		lanez = 2;
		stages = ( { type = "noop"; }, { type = "frob"; } );
		connect = ( { device = "wire"; name = "a"; }, { device = "wire"; name = "b"; } );
	}; };
	EOF
	gantry options -p "$dir" -c "$BATS_TEST_TMPDIR/a.conf"
	[ "$status" -eq 0 ]
	says "  runtime.spin         time, 0ns to 1s; default \"100us\""
	says "roles.bridge: an entry of roles"
	says "  roles.bridge.lanes   number"
	says "roles.bridge.stages.0: "
	says "  roles.bridge.connect.1.timeout time, "
	[[ "$output" != *roles.bridge.listen* && "$output" != *stages.1* && "$output" != *"  lanes"* ]]
	gantry options -p "$dir" -c "$BATS_TEST_TMPDIR/a.conf" --json
	[ "$status" -eq 0 ]
	[ "$(jq -r '.sections[].name' <<<"$output" | tr '\n' ' ')" = \
		"runtime roles.bridge roles.bridge.connect.0 roles.bridge.connect.1 roles.bridge.stages.0 " ]
	gantry options -c "$BATS_TEST_TMPDIR/a.conf" listen
	[ "$status" -eq 2 ]
	says "not both"
	gantry options -p "$dir" -c "$BATS_TEST_TMPDIR/nix.conf"
	[ "$status" -eq 2 ]
	says "nix.conf"
}

@test "a missing mount of /proc is reported" {
	[ "$(id -u)" -eq 0 ] || skip "where only root is somebody, / is a stranger's, and plugins below are not loaded"
	run unshare -m sh -c 'mount -t tmpfs none /proc || exit 77; exec "$GANTRY" plugins -p "$GANTRY_PLUGINS" noop'
	echo "$output"
	[[ "$status" -ne 77 && "$output" != unshare:* ]] || skip "no mount of our own"
	[[ "$output" == *"does not load: /proc is not mounted, and the loader needs it to load an open file"* ]]
}
