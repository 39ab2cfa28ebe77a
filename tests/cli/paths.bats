#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# One option replaces a file that another option uses: check and run reject that before they open any file.

setup() {
	dir=$BATS_TEST_TMPDIR
	conf=$dir/t.conf
	for plugin in target initiator memory file trace loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	cd "$dir" || return
	echo "what was recorded" >"$dir/old"
	truncate -s 1MiB "$dir/disk"
	cp "$dir/old" "$dir/copy"
}

roles() { # WORK STAGES [BACKEND] - write a configuration: backend on line 4, initiator on line 5, its stages on line 6
	cat >"$conf" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		    backend = { ${3:-type = \"memory\"; size = \"1MiB\";} }; };
		  load = { role = "initiator"; connect = { device = "d"; name = "v"; }; $1
		    stages = ( $2 ); };
		};
	END
}

trace() { # PATH
	echo "{ type = \"trace\"; path = \"$1\"; }"
}

refused() { # TEXT - check and run fail with this line number and text, and change no file
	local command
	for command in check run; do
		run "$GANTRY" "$command" -p "$GANTRY_PLUGINS" "$conf"
		[ "$status" -eq 2 ] && [[ "$output" == *"gantry: $conf:$1"* ]] ||
			{ echo "$command: status $status, expected: $1"; echo "$output"; return 1; }
		[ "${#lines[@]}" -eq 1 ]
		cmp "$dir/old" "$dir/copy"
	done
}

accepted() {
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "a trace over the recording that is replayed" {
	roles "replay = { path = \"$dir/old\"; };" "$(trace "$dir/old")"
	refused "6: roles.load.stages[0].path: \"$dir/old\" would be replaced, and roles.load.replay.path ($conf:5) uses the same"
}

@test "over links, and from another directory" {
	ln -s old soft
	ln old hard
	mkdir sub
	for name in soft hard ./old sub/../old "$dir/sub/../soft"; do
		roles 'replay = { path = "old"; };' "$(trace "$name")"
		refused "6: roles.load.stages[0].path: \"$name\" would be replaced"
	done
}

@test "two traces in one file, also if it does not exist yet" {
	ln -s . again
	roles "" "$(trace new), $(trace again/new)"
	refused "6: roles.load.stages[1].path: \"again/new\" would be replaced, and roles.load.stages[0].path ($conf:6) replaces"
	[ ! -e new ]
	roles "" "$(trace new), $(trace newer)"
	accepted
}

@test "a trace over a volume, or over what is copied" {
	roles "" "$(trace disk)" 'type = "file"; path = "disk";'
	refused '6: roles.load.stages[0].path: "disk" would be replaced, and roles.store.backend.path'
	roles 'copy = { from = "old"; };' "$(trace old)"
	refused '6: roles.load.stages[0].path: "old" would be replaced, and roles.load.copy.from'
}

@test "a copy over the volume that is copied" {
	roles 'copy = { to = "disk"; };' "" 'type = "file"; path = "disk";'
	refused '5: roles.load.copy.to: "disk" would be replaced, and roles.store.backend.path'
	[ "$(stat -c %s disk)" -eq 1048576 ]
	roles 'copy = { to = "out"; };' "" 'type = "file"; path = "disk";'
	accepted
}

@test "files that have no content may be named twice" {
	roles "" "$(trace /dev/null), $(trace /dev/null)"
	accepted
}
