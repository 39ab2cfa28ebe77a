#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Stores that are wrong, taken, full or broken: a clear message and an exit status, or the status of each IO.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\";"
	topology
}

teardown() {
	walk_teardown
}

refused() { # PATTERN [ARGUMENT...] - the target does not start and says why, in a line that names the file
	local why=$1
	shift
	begin store "$@"
	finish store
	[ "$status" -eq 1 ]
	says store "$dir/volume: .*$why"
	[ "$(grep -c "$why" "$dir/store.log")" -eq 1 ]
}

@test "a missing file" {
	refused 'create the file, or set create = true'
	[ ! -e "$dir/volume" ]
}

@test "a directory, and a special file that is no block device" {
	mkdir "$dir/volume"
	refused 'is a directory; it must be a regular file or a block device'
	rmdir "$dir/volume"
	mkfifo "$dir/volume"
	refused 'is a special file'
}

@test "the name of a new file is stable before the volume is served" {
	command -v strace >/dev/null || skip "strace is not installed"
	# without the leak sanitizer, which traces its process too
	cat >"$dir/traced" <<-END
	#!/bin/sh
	ASAN_OPTIONS=\$ASAN_OPTIONS:detect_leaks=0
	export ASAN_OPTIONS
	exec strace -D -f -y -e trace=fsync -o "$dir/trace" "$GANTRY" "\$@"
	END
	chmod +x "$dir/traced"
	GANTRY=$dir/traced
	serve store --set roles.store.backend.create=true --set roles.store.backend.size=1MiB
	grep -q "fsync([0-9]*<$dir>) *= 0" "$dir/trace"
	stop store
}

@test "too small, empty, not a multiple of the block" {
	head -c 65536 /dev/zero >"$dir/volume"
	refused 'has 65536 bytes, less than the size of 1048576' --set roles.store.backend.size=1MiB
	[ "$(stat -c %s "$dir/volume")" -eq 65536 ]
	head -c 65537 /dev/zero >"$dir/volume"
	refused 'not a multiple of the block size 4096'
	: >"$dir/volume"
	refused 'is empty'
}

@test "a volume smaller than what the initiator wants to use" {
	head -c 65536 /dev/zero >"$dir/volume"
	walk
	[ "$status" -eq 1 ]
	says walk 'not inside the volume of 65536 bytes'
}

@test "served by another process: the second one is refused, the first goes on" {
	head -c 1048576 /dev/zero >"$dir/volume"
	processes
	topology
	serve_all
	begin load --set roles.load.workload.ops=0
	busy load
	mv "$dir/store.log" "$dir/first.log"
	first=${pids[store]}
	refused 'in use by another process' --set roles.store.listen.name=other
	pids[store]=$first
	n=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load "$((n + 1000))"
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors == {}'
	stop bridge
	stop store
	# and it can be served again at once
	walk
	[ "$status" -eq 0 ]
}

@test "read-only: a write is refused before it is sent, a read goes through" {
	head -c 1048576 /dev/zero >"$dir/volume"
	walk --set roles.store.backend.read_only=true
	[ "$status" -eq 1 ]
	says walk 'the volume does not support the workload'
	walk --set roles.store.backend.read_only=true --set roles.load.workload.pattern=randread \
		--set roles.load.workload.verify=none
	[ "$status" -eq 0 ]
	sound "$report" load
}

@test "full: NOSPC reaches the initiator, the target lives and serves on" {
	[ "$(id -u)" -eq 0 ] || skip "only root can mount a small file system"
	unshare -m true 2>/dev/null || skip "no private mounts here"
	processes
	mkdir "$dir/small"
	store_backend="type = \"file\"; path = \"$dir/small/volume\"; create = true; size = \"8MiB\"; direct = false;"
	topology
	# the file is sparse, and its file system can hold half of it
	cat >"$dir/enter" <<-'END'
		mount -t tmpfs -o size=4m none "$1" || exit 77
		shift
		exec "$@"
	END
	: >"$dir/store.log"
	unshare -m sh "$dir/enter" "$dir/small" "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store --json \
		>"$dir/store.json" 2>"$dir/store.log" 3>&- &
	pids[store]=$!
	logged store ' listening '
	serve bridge
	begin load --set roles.load.continue_on_error=true --set roles.load.workload.pattern=write \
		--set roles.load.workload.size=8MiB --set roles.load.workload.ops=2048
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors | keys == ["NOSPC"]' 'load.errors.NOSPC > 500' "$(findings load) == 0" \
		'load.verify.checked > 500'
	begin load --set roles.load.workload.size=1MiB
	finish load
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	sound "$dir/load.json" load
	stop bridge store
	holds "$dir/store.json" 'store.ops_failed > 500'
}

@test "an input/output error: IO reaches the initiator, the target lives and serves on" {
	need fault
	head -c 1048576 /dev/zero >"$dir/volume"
	processes
	store_stages='{ type = "fault"; error = "io"; error_nth = 100; }'
	topology
	serve_all
	begin load --set roles.load.continue_on_error=true
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors | keys == ["IO"]' 'load.errors.IO > 10' "$(findings load) == 0"
	begin load
	finish load
	[ "$status" -eq 1 ]
	once "$dir/load.json" load
	holds "$dir/load.json" '.result == "failed"' 'load.errors | keys == ["IO"]'
	stop bridge store
	holds "$dir/store.json" 'store.sessions_opened == 2 and store.sessions_lost == 0'
}

@test "a file that shrinks while it is served: errors, no crash" {
	head -c 1048576 /dev/zero >"$dir/volume"
	processes
	topology
	serve_all
	begin load --set roles.load.continue_on_error=true --set roles.load.workload.ops=0 \
		--set roles.load.workload.pattern=randread \
		--set roles.load.workload.verify=none
	busy load
	truncate -s 0 "$dir/volume"
	until_true live load 'load.errors.IO > 10'
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	stop bridge store
}
