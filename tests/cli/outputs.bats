#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Files that gantry writes: their mode, and symbolic links of other users at their paths.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	shared=$BATS_TEST_TMPDIR/shared
	pid=
	for plugin in target initiator file trace loop shm-comch; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	mkdir "$shared"
	chmod 1777 "$shared" # as /tmp
	(umask 077 && head -c 1M /dev/urandom >"$BATS_TEST_TMPDIR/volume")
	cat >"$conf" <<-END
		runtime = { stat_dir = "$BATS_TEST_TMPDIR/run"; };
		devices = { d = { transport = "shm-comch"; dir = "$BATS_TEST_TMPDIR/run"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		            backend = { type = "file"; path = "$BATS_TEST_TMPDIR/volume"; }; };
		  load = { role = "initiator"; connect = { device = "d"; name = "v"; timeout = "2s"; };
		           workload = { pattern = "randread"; ops = 10; }; };
		};
	END
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
}

gantry() {
	run "$GANTRY" "$@" -p "$GANTRY_PLUGINS"
	echo "$output"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; return 1; }
}

serve() {
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
	pid=$!
	local end=$((SECONDS + 60))
	until "$GANTRY" stat --dir "$BATS_TEST_TMPDIR/run" store >/dev/null 2>&1; do
		kill -0 "$pid" && [ "$SECONDS" -lt "$end" ] || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
	done
}

plant() { # LINK - make a symbolic link of another user in the shared directory to a file of this user
	[ "$(id -u)" -eq 0 ] || skip "only root can give a link away"
	echo precious >"$BATS_TEST_TMPDIR/precious"
	ln -s "$BATS_TEST_TMPDIR/precious" "$shared/$1"
	chown -h 65534 "$shared/$1"
}

untouched() {
	[ "$(cat "$BATS_TEST_TMPDIR/precious")" = precious ]
}

@test "copy: a new file is for this user alone" {
	serve
	gantry copy volume: "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 0 ]
	[ "$(stat -c %a "$BATS_TEST_TMPDIR/out")" = 600 ]
	umask 277
	gantry copy volume: "$BATS_TEST_TMPDIR/less" -c "$conf"
	[ "$status" -eq 0 ]
	[ "$(stat -c %a "$BATS_TEST_TMPDIR/less")" = 400 ]
}

@test "copy: an existing file keeps its mode, with a warning if other users may read it" {
	serve
	touch "$BATS_TEST_TMPDIR/out"
	gantry copy volume: "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 0 ]
	[ "$(stat -c %a "$BATS_TEST_TMPDIR/out")" = 644 ]
	says "$BATS_TEST_TMPDIR/out: other users may read the copy (mode=0644): chmod go-rwx"
	chmod 600 "$BATS_TEST_TMPDIR/out"
	gantry copy volume: "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 0 ]
	[[ "$output" != *"other users"* ]]
}

@test "copy: a link of another user in a shared directory is not followed, one of this user is" {
	serve
	plant out
	gantry copy volume: "$shared/out" -c "$conf"
	[ "$status" -eq 1 ]
	says "$shared/out: symbolic link of another user in a directory that other users can write to (owner=65534, \
links=1, directory"
	says "mode=1777): remove it, or configure another path"
	untouched
	ln -s "$BATS_TEST_TMPDIR/precious" "$shared/mine"
	gantry copy volume: "$shared/mine" -c "$conf"
	[ "$status" -eq 0 ]
	cmp "$BATS_TEST_TMPDIR/volume" "$BATS_TEST_TMPDIR/precious"
}

@test "copy: a directory of another user's link, a file of another user, a second name" {
	serve
	plant out
	mkdir "$BATS_TEST_TMPDIR/private"
	ln -s "$BATS_TEST_TMPDIR/private" "$shared/dir"
	chown -h 65534 "$shared/dir"
	gantry copy volume: "$shared/dir/out" -c "$conf"
	[ "$status" -eq 1 ]
	says "symbolic link of another user"
	[ ! -e "$BATS_TEST_TMPDIR/private/out" ]
	touch "$shared/foreign"
	chown 65534 "$shared/foreign"
	gantry copy volume: "$shared/foreign" -c "$conf"
	[ "$status" -eq 1 ]
	says "file of another user"
	[ ! -s "$shared/foreign" ]
	ln "$BATS_TEST_TMPDIR/precious" "$shared/second"
	gantry copy volume: "$shared/second" -c "$conf"
	[ "$status" -eq 1 ]
	says "file with several hard links"
	untouched
}

@test "trace: a link of another user is not followed, by check neither; a descriptor is" {
	serve
	plant trace
	sed -i "s|workload = |stages = ( { type = \"trace\"; path = \"$shared/trace\"; } ); &|" "$conf"
	for command in check run; do
		gantry $command "$conf" --role load
		[ "$status" -ne 0 ]
		says "$shared/trace: symbolic link of another user"
	done
	untouched
	sed -i "s|$shared/trace|/dev/fd/9|" "$conf"
	gantry run "$conf" --role load 9>"$BATS_TEST_TMPDIR/trace"
	[ "$status" -eq 0 ]
	[ "$(head -c 8 "$BATS_TEST_TMPDIR/trace")" = GTRYTRC1 ]
}

@test "file: a link of another user is not followed, whether or not the file is to be made" {
	plant volume
	for create in 'create = true; size = "1MiB";' ''; do
		sed -i "s|path = .*; }; };|path = \"$shared/volume\"; $create }; };|" "$conf"
		gantry run "$conf" --role store
		[ "$status" -ne 0 ]
		says "$shared/volume: symbolic link of another user"
	done
	untouched
}

@test "shm-comch: a link of another user does not lead the sockets elsewhere" {
	plant ignored
	mkdir "$BATS_TEST_TMPDIR/private"
	ln -s "$BATS_TEST_TMPDIR/private" "$shared/dir"
	chown -h 65534 "$shared/dir"
	sed -i "s|dir = \"[^\"]*\"|dir = \"$shared/dir/run\"|" "$conf"
	for command in check run; do
		gantry $command "$conf"
		[ "$status" -ne 0 ]
		says "$shared/dir: symbolic link of another user"
	done
	[ ! -e "$BATS_TEST_TMPDIR/private/run" ]
}

@test "stat: a link of another user does not lead the sockets elsewhere" {
	plant ignored
	mkdir "$BATS_TEST_TMPDIR/private"
	ln -s "$BATS_TEST_TMPDIR/private" "$shared/dir"
	chown -h 65534 "$shared/dir"
	sed -i "s|devices = .*|devices = { d = { transport = \"loop\"; }; };|" "$conf"
	gantry run "$conf" --set "runtime.stat_dir=$shared/dir/run"
	[ "$status" -eq 0 ]
	says "cannot open the control socket: $shared/dir: symbolic link of another user"
	[ ! -e "$BATS_TEST_TMPDIR/private/run" ]
}
