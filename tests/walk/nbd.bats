#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Targets that serve the export of nbdkit or qemu-nbd: copies, verified workloads, and servers that are killed, slow or broken.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need nbd
	command -v nbdkit >/dev/null || skip "nbdkit is not installed"
	socket=$dir/s
	options='quiesce_time = "100ms";'
}

teardown() {
	walk_teardown
}

server_begin() { # ARGUMENT... - start nbdkit on $socket, and wait until it listens
	rm -f "$socket" "$dir/kit.pid"
	nbdkit -f -U "$socket" -P "$dir/kit.pid" "$@" >>"$dir/kit.log" 2>&1 3>&- &
	pids[kit]=$!
	until_true test -s "$dir/kit.pid"
}

serves() { # OPTION... - the topology with this backend
	store_backend="type = \"nbd\"; uri = \"nbd+unix:///?socket=$socket\"; $options $*"
	topology
}

copy() { # FROM TO [ARGUMENT...]
	local from=$1 to=$2
	shift 2
	run timeout "$seconds" "$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" "$from" "$to" "$@"
	[ "$status" -eq 0 ] || { echo "$output"; cat "$dir"/*.log; return 1; }
}

same() { # FILE FILE
	[ "$(sha256sum <"$1")" = "$(sha256sum <"$2")" ]
}

copies_in_and_out() {
	head -c 16M /dev/urandom >"$dir/in"
	processes
	serves "$@"
	serve_all
	copy "$dir/in" volume:load
	copy volume:load "$dir/out"
	same "$dir/in" "$dir/out"
	stop bridge store
}

@test "copies in and out of a memory export" {
	server_begin memory 16M
	copies_in_and_out
}

@test "copies in and out of a file export, over several connections" {
	truncate -s 16M "$dir/volume"
	server_begin file "$dir/volume"
	copies_in_and_out 'connections = 4;'
	same "$dir/in" "$dir/volume"
	holds "$dir/store.json" '.roles.store.backend.multi_conn'
}

@test "copies in and out of a qcow2 image of qemu-nbd" {
	command -v qemu-nbd >/dev/null || skip "qemu-nbd is not installed (Debian: qemu-utils)"
	qemu-img create -q -f qcow2 "$dir/disk" 16M
	qemu-nbd -t -f qcow2 -k "$socket" "$dir/disk" >"$dir/kit.log" 2>&1 3>&- &
	pids[kit]=$!
	until_true test -S "$socket"
	copies_in_and_out
	kill -TERM "${pids[kit]}"
	finish kit
	qemu-img convert -f qcow2 -O raw "$dir/disk" "$dir/raw"
	same "$dir/in" "$dir/raw"
}

@test "holes of the export, seen by an NBD client of the volume" {
	. "$BATS_TEST_DIRNAME/../clients/nbd.sh"
	tool nbdinfo libnbd-bin
	server_begin memory 16M
	head -c 64K /dev/urandom >"$dir/in"
	nbd_setup
	processes
	serves
	serve_all
	copy "$dir/in" volume:load
	nbd_serve front
	timeout "$seconds" nbdinfo --map "$uri" >"$dir/map"
	cat "$dir/map"
	[ "$(awk '{ print $1, $2, $3 }' "$dir/map")" = $'0 65536 0\n65536 16711680 3' ]
	stop front bridge store
}

@test "a verified workload with flushes and FUA" {
	server_begin memory 16M
	serves
	walk --set roles.load.workload.flush_every=50 --set roles.load.workload.fua=true
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	sound "$report" load
	holds "$report" '.roles.store.backend.connection_losses == 0'
}

@test "two lanes" {
	server_begin memory 16M
	serves 'connections = 2;'
	walk --set roles.load.lanes=2 --set roles.bridge.lanes=2 --set roles.store.lanes=2
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	sound "$report" load
}

@test "several connections to a server that does not allow them" {
	server_begin --filter=multi-conn memory 16M multi-conn-mode=disable
	serves 'connections = 2;'
	begin store
	finish store
	[ "$status" -eq 1 ]
	says store 'the server does not allow several connections \(connections=2'
}

@test "nbdkit is killed and started again: no IO fails but one flush, and no data is lost" {
	truncate -s 16M "$dir/volume"
	server_begin file "$dir/volume"
	processes
	serves
	serve_all
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.read_percent=30 \
		--set roles.load.continue_on_error=true --set roles.load.workload.flush_every=400 \
		--set roles.load.workload.size=8MiB
	for round in 1 2 3; do
		busy load $((round * 1000))
		slay kit
		logged store 'cannot connect'
		server_begin file "$dir/volume"
		until_true live store ".roles.store.backend.connects >= $round"
	done
	busy load 6000
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	stop bridge store
	# each loss with unflushed writes fails one flush of the one queue
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors | keys - ["IO"] == []' 'load.verify.checked > 500'
	holds "$dir/store.json" '.roles.store.backend | .connection_losses == 3 and .write_losses >= 1' \
		'.roles.store.backend | .failed_flush_ops <= .write_losses' \
		".roles.store.backend.failed_flush_ops == $(jq '.roles.load.errors.IO // 0' "$dir/load.json")"
	says store 'connection lost \(.*\): connecting again; check the NBD server'
}

@test "a server that is down for longer than the deadline: IOs fail, and later succeed again" {
	server_begin memory 16M
	processes
	serves
	serve_all
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.verify=none \
		--set roles.load.workload.pattern=randread --set roles.load.continue_on_error=true \
		--set roles.load.workload.deadline=3s
	busy load
	slay kit
	until_true live load '.roles.load.errors.IO > 10'
	server_begin memory 16M
	n=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((n + 3000))
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors | keys == ["IO"]' 'load.quarantined == 0'
	stop bridge store
}

@test "a server that has another size after its restart: every IO fails, and the log says why" {
	server_begin memory 16M
	processes
	serves
	serve_all
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.verify=none \
		--set roles.load.workload.pattern=randread --set roles.load.continue_on_error=true
	busy load
	slay kit
	server_begin memory 8M
	until_true live load '.roles.load.errors.IO > 10'
	says store 'another export after a reconnect \(size changed\): every IO fails'
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	stop bridge store
}

@test "errors of the server: they reach the initiator, and the connection stays" {
	server_begin --filter=error memory 16M error-pread-rate=10% error-pread=EIO
	serves
	walk --set roles.load.workload.pattern=randread --set roles.load.workload.verify=none \
		--set roles.load.continue_on_error=true
	once "$report" load
	holds "$report" 'load.errors | keys == ["IO"]' 'load.errors.IO > 100' \
		'.roles.store.backend | .connection_losses == 0 and .error_ops > 100'
}

@test "a slow server" {
	server_begin --filter=delay memory 16M rdelay=5ms wdelay=10ms
	serves
	walk --set roles.load.workload.ops=500
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	sound "$report" load
}

@test "a read-only server" {
	server_begin -r memory 16M
	serves
	walk
	[ "$status" -eq 1 ]
	says walk 'the volume does not support the workload'
	walk --set roles.load.workload.pattern=randread --set roles.load.workload.verify=none
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	sound "$report" load
}

@test "TLS with a pre-shared key" {
	printf 'alice:%064d\n' 17 >"$dir/psk"
	chmod 600 "$dir/psk"
	server_begin --tls=require --tls-psk="$dir/psk" memory 16M
	store_backend="type = \"nbd\"; uri = \"nbds+unix://alice@/?socket=$socket\"; tls_psk_file = \"$dir/psk\";"
	topology
	walk --set roles.load.workload.ops=2000
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	sound "$report" load
	holds "$report" '.roles.store.backend.uri | contains("alice") | not'
	serves # without TLS
	walk
	[ "$status" -eq 1 ]
	says walk 'cannot connect \(.*\): check the NBD server and the uri'
}

@test "no server: the target does not start" {
	serves
	walk
	[ "$status" -eq 1 ]
	says walk "socket=$socket: cannot connect \\(.*\\): check the NBD server and the uri"
}
