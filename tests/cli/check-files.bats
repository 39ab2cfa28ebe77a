#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry check: files and directories of a configuration that are missing, too small, or not readable or writable; and
# volumes that two targets share. Each is reported with file, line and key, and nothing is changed.

setup() {
	umask 022
	for plugin in target initiator memory file trace loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	dir=$BATS_TEST_TMPDIR/files
	conf=$BATS_TEST_TMPDIR/t.conf
	mkdir "$dir"
	cd "$dir" || return
	truncate -s 1MiB disk
	loop=
}

teardown() {
	[ -z "$loop" ] || losetup -d "$loop"
}

# roles BACKEND [LOAD] - write a configuration: backend on line 4, the initiator's options on line 6
roles() {
	cat >"$conf" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		    backend = { $1 }; };
		  load = { role = "initiator"; connect = { device = "d"; name = "v"; };
		    $2 };
		};
	END
}

file() { # OPTIONS
	roles "type = \"file\"; $1"
}

# check STATUS [ARGUMENT]... - the exit status, and no file changes
check() {
	local before
	before=$(find "$BATS_TEST_TMPDIR" -printf '%p %y %s %T@ %C@ %m\n' | sort)
	run $drop "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" "${@:2}"
	echo "$output"
	[ "$status" -eq "$1" ]
	[ "$(find "$BATS_TEST_TMPDIR" -printf '%p %y %s %T@ %C@ %m\n' | sort)" = "$before" ]
}

says() {
	[[ "$output" == *"gantry: $conf:$1"* ]] || { echo "expected: gantry: $conf:$1"; return 1; }
}

warns() {
	[[ "$output" == *"warning: $conf:$1"* ]] || { echo "expected: warning: $conf:$1"; return 1; }
}

# unprivileged - run gantry without the right to read and write any file
unprivileged() {
	drop=
	[ "$(id -u)" -eq 0 ] || return 0
	setpriv --bounding-set=-all true 2>/dev/null || skip "cannot give up capabilities"
	drop="setpriv --inh-caps=-all --bounding-set=-all"
}

@test "a volume that can be opened" {
	file 'path = "disk";'
	check 0
	file 'path = "disk"; size = "512KiB";'
	check 0
	file 'path = "disk"; size = "2MiB"; create = true;'
	check 0
	file 'path = "new"; size = "2MiB"; create = true;'
	check 0
	ln -s new link # open(2) would create the target of the link
	file 'path = "link"; size = "2MiB"; create = true;'
	check 0
}

@test "a volume that is missing" {
	file 'path = "new"; size = "1MiB";'
	check 2
	says '4: roles.store.backend.path: "new": No such file or directory; create the file, or set create = true and a size'
	file 'path = "new"; size = "1MiB"; create = true; read_only = true;'
	check 2
	says '4: roles.store.backend.path: "new": No such file or directory; create'
	file 'path = "no/such/new"; size = "1MiB"; create = true;'
	check 2
	says '4: roles.store.backend.path: "no/such/new" cannot be created: its directory is missing (no/such/)'
	file 'path = "new"; create = true;'
	check 2
	says '4: roles.store.backend.size: is 0, and the file "new" is missing: write its size'
	ln -s no/such/new link
	file 'path = "link"; size = "1MiB"; create = true;'
	check 2
	says '4: roles.store.backend.path: "link" cannot be created: its directory is missing (no/such/)'
	file 'path = "disk/new"; size = "1MiB"; create = true;'
	check 2
	says '4: roles.store.backend.path: "disk/new": Not a directory'
}

@test "a volume of the wrong size" {
	file 'path = "disk"; size = "2MiB";'
	check 2
	says '4: roles.store.backend.size: "disk" has 1048576 bytes, less than the size of 2097152; set create = true'
	: >empty
	file 'path = "empty";'
	check 2
	says '4: roles.store.backend.path: "empty" is empty; set create = true and a size'
	truncate -s 5000 odd
	file 'path = "odd";'
	check 2
	says '4: roles.store.backend.path: "odd" 5000 bytes are not a multiple of the block size 4096; set size or block'
	check 0 --set roles.store.backend.size=4096
}

@test "a path that is no volume" {
	file 'path = ".";'
	check 2
	says '4: roles.store.backend.path: "." is a directory; it must be a regular file or a block device'
	mkfifo pipe
	file 'path = "pipe";'
	check 2
	says '4: roles.store.backend.path: "pipe" is a special file; it must be'
}

@test "a volume that may not be written" {
	unprivileged
	chmod 444 disk
	file 'path = "disk";'
	check 2
	says '4: roles.store.backend.path: "disk" cannot be opened for reading and writing: Permission denied; change its mode, or'
	check 0 --set roles.store.backend.read_only=true
	chmod 000 disk
	check 2 --set roles.store.backend.read_only=true
	says '4: roles.store.backend.path: "disk" cannot be opened for reading: Permission denied'
	mkdir -m 555 closed
	file 'path = "closed/new"; size = "1MiB"; create = true;'
	check 2
	says '4: roles.store.backend.path: "closed/new" cannot be created: Permission denied'
}

@test "two targets on one file" {
	ln -s disk soft
	ln disk hard
	mkdir sub
	ln -s no-file dangling
	two() { # PATH OPTIONS PATH OPTIONS
		cat >"$conf" <<-END
			devices = { d = { transport = "loop"; }; };
			roles = {
			  a = { role = "target"; listen = { device = "d"; name = "a"; };
			    backend = { type = "file"; path = "$1"; $2 }; };
			  b = { role = "target"; listen = { device = "d"; name = "b"; };
			    backend = { type = "file"; path = "$3"; $4 }; };
			};
		END
	}
	for name in disk soft hard ./disk sub/../disk "$dir/disk"; do
		two disk "" "$name" ""
		check 2
		says "6: roles.b.backend.path: \"$name\" is the volume of roles.a.backend.path ($conf:4) as well; write another"
		run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf"
		[ "$status" -eq 2 ]
		says "6: roles.b.backend.path: \"$name\" is the volume of roles.a.backend.path"
		check 0 --role a
		check 0 --role b
	done
	# a file that does not exist yet
	new='create = true; size = "1MiB";'
	for name in no-file ./no-file sub/../no-file dangling; do
		two no-file "$new" "$name" "$new"
		check 2
		says "6: roles.b.backend.path: \"$name\" is the volume of roles.a.backend.path ($conf:4) as well"
	done
	two no-file "$new" sub/no-file "$new"
	check 0
	# read-only volumes may be shared, but not with a writer
	two disk "read_only = true;" soft "read_only = true;"
	check 0
	two disk "read_only = true;" soft ""
	check 2
	two disk "" soft "read_only = true;"
	check 2
}

@test "a block device: its size, and two names of it" {
	loop=$(losetup -f --show disk 2>/dev/null) || skip "no loop device can be attached here"
	file "path = \"$loop\"; size = \"1MiB\";"
	check 0
	file "path = \"$loop\"; size = \"1028KiB\"; create = true;"
	check 2
	says "4: roles.store.backend.size: \"$loop\" has 1048576 bytes, less than the size of 1052672"
	ln -s "$loop" name
	cat >"$conf" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = {
		  a = { role = "target"; listen = { device = "d"; name = "a"; }; backend = { type = "file"; path = "name"; }; };
		  b = { role = "target"; listen = { device = "d"; name = "b"; }; backend = { type = "file"; path = "$loop"; }; };
		};
	END
	check 2
	says "4: roles.b.backend.path: \"$loop\" is the volume of roles.a.backend.path ($conf:3) as well"
}

@test "a file to read, and a file to write" {
	roles 'type = "memory";' 'copy = { from = "no-file"; };'
	check 2
	says '6: roles.load.copy.from: "no-file": No such file or directory; create the file, or write another path'
	roles 'type = "memory";' 'replay = { path = "."; };'
	check 2
	says '6: roles.load.replay.path: "." is a directory; write the path of a file'
	roles 'type = "memory";' 'copy = { to = "no/such/out"; };'
	check 2
	says '6: roles.load.copy.to: "no/such/out": cannot use the directory no/such: No such file or directory; create it, or'
	roles 'type = "memory";' 'copy = { to = "out"; };'
	check 0
	roles 'type = "memory";' 'workload = { ops = 1; }; stages = ( { type = "trace"; path = "no/such/trace"; } );'
	check 2
	says '6: roles.load.stages[0].path: "no/such/trace": cannot use the directory no/such: No such file or directory'
	ln -s no/such link
	roles 'type = "memory";' 'workload = { ops = 1; }; stages = ( { type = "trace"; path = "link/trace"; } );'
	check 2
	roles 'type = "memory";' 'workload = { ops = 1; }; stages = ( { type = "trace"; path = "/dev/null"; } );'
	check 0
	unprivileged
	touch old
	chmod 444 old
	roles 'type = "memory";' 'workload = { ops = 1; }; stages = ( { type = "trace"; path = "old"; } );'
	check 2
	says '6: roles.load.stages[0].path: "old" cannot be written: Permission denied; change its mode, or write another path'
	mkdir -m 555 closed
	roles 'type = "memory";' 'workload = { ops = 1; }; stages = ( { type = "trace"; path = "closed/trace"; } );'
	check 2
	says '6: roles.load.stages[0].path: "closed/trace": cannot create it in the directory closed: Permission denied'
	chmod 000 disk
	roles 'type = "memory";' 'copy = { from = "disk"; };'
	check 2
	says '6: roles.load.copy.from: "disk" cannot be read: Permission denied'
}

@test "run directories" {
	[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || skip "built without the plugin shm-comch"
	roles 'type = "memory";'
	sed -i '1s|transport = "loop";|transport = "shm-comch"; dir = "no/such/run";|' "$conf"
	check 2
	says '1: devices.d.dir: "no/such/run": cannot use the directory no/such: No such file or directory; create it, or write'
	check 2 --set devices.d.dir=disk
	[[ "$output" == *'gantry: --set: devices.d.dir: "disk" is not a directory; write another path'* ]]
	check 0 --set devices.d.dir=run
	roles 'type = "memory";'
	sed -i '1s|^|runtime = { stat_dir = "no/such/stat"; }; |' "$conf"
	check 0 # gantry run continues without gantry stat
	warns '1: runtime.stat_dir: "no/such/stat": cannot use the directory no/such: No such file or directory; create it, or'
	check 0 --set runtime.stat=false
	[[ "$output" != *warning* ]]
}

@test "all of them together, beside errors in the syntax of options" {
	cat >"$conf" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = {
		  a = { role = "target"; listen = { device = "d"; name = "a"; }; lanes = 0;
		    backend = { type = "file"; path = "absent"; }; };
		  b = { role = "target"; listen = { device = "d"; name = "b"; };
		    stages = ( { type = "trace"; path = "no/such"; } );
		    backend = { type = "file"; path = "disk"; size = "2MiB"; }; };
		};
	END
	check 2
	says '3: roles.a.lanes: 0 is out of range'
	says '4: roles.a.backend.path: "absent": No such file'
	says '7: roles.b.backend.size: "disk" has 1048576 bytes'
	says '6: roles.b.stages[0].path: "no/such": cannot use the directory no'
	[ "$(grep -c '^gantry: ' <<<"$output")" -eq 4 ]
}

@test "files of a role for another machine are a warning" {
	[ -e "$GANTRY_PLUGINS/rxe.so" ] || skip "built without the plugin rxe"
	cat >"$conf" <<-END
		devices = { nic = { transport = "rxe"; netdev = "none0"; auth = "none"; }; };
		roles = {
		  a = { role = "target"; listen = { device = "nic"; name = "192.0.2.7:4791"; };
		    backend = { type = "file"; path = "absent"; }; };
		};
	END
	check 0
	warns '4: roles.a.backend.path: "absent": No such file'
}
