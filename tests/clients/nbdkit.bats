#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A volume behind nbdkit, with target and gateway in separate processes: third-party programs use it.

setup() {
	. "$BATS_TEST_DIRNAME/../walk/lib.sh"
	. "$BATS_TEST_DIRNAME/nbd.sh"
	walk_setup
	processes
	nbd_setup
}

teardown() {
	manual_teardown
	walk_teardown
}

random_image() { # BYTES
	head -c "$1" /dev/urandom >"$dir/in.img"
}

@test "nbdinfo: sizes and what the volume can do" {
	tool nbdinfo libnbd-bin
	nbd_all
	timeout "$seconds" nbdinfo --json "$uri" >"$report"
	holds "$report" '.exports[0] | ."export-size" == 16777216 and .is_read_only == false and .is_rotational == false' \
		'.exports[0] | [.block_size_minimum, .block_size_preferred, .block_size_maximum] == [4096, 4096, 67108864]' \
		'.exports[0] | .can_flush and .can_fua and .can_trim and .can_zero and .can_fast_zero and .can_multi_conn'
	nbd_stop nbd
}

@test "blocks of 512 bytes and of 64 KiB" {
	tool nbdinfo libnbd-bin
	store_backend='type = "memory"; size = "1MiB"; block = "512";'
	nbd_all
	timeout "$seconds" nbdinfo --json "$uri" >"$report"
	holds "$report" '.exports[0] | .block_size_minimum == 512 and .block_size_preferred == 4096'
	calls write:512:512 read:512:512 read:256:512
	answered "write:512:512 OK" "read:512:512 OK" "read:256:512 EINVAL"
	nbd_stop nbd
	store_backend='type = "memory"; size = "1MiB"; block = "64KiB";'
	nbd_all
	timeout "$seconds" nbdinfo --json "$uri" >"$report"
	holds "$report" '.exports[0] | .block_size_minimum == 65536 and .block_size_preferred == 65536'
	calls write:65536:65536 read:0:65536 read:4096:65536
	answered "write:65536:65536 OK" "read:0:65536 OK" "read:4096:65536 EINVAL"
	nbd_stop nbd
}

@test "nbdcopy in and out" {
	tool nbdcopy libnbd-bin
	random_image 16777216
	nbd_all
	timeout "$seconds" nbdcopy "$dir/in.img" "$uri"
	timeout "$seconds" nbdcopy --flush "$uri" "$dir/out.img"
	[ "$(sha256sum <"$dir/in.img")" = "$(sha256sum <"$dir/out.img")" ]
	timeout "$seconds" nbdcopy --connections=16 --request-size=65536 "$uri" "$dir/out2.img"
	cmp "$dir/in.img" "$dir/out2.img"
	nbd_stop nbd
}

@test "qemu-img convert and compare" {
	tool qemu-img qemu-utils
	random_image 8388608
	truncate -s 16M "$dir/in.img"
	nbd_all
	timeout "$seconds" qemu-img convert -n -f raw -O raw "$dir/in.img" "$uri"
	timeout "$seconds" qemu-img compare -f raw -F raw "$dir/in.img" "$uri"
	timeout "$seconds" qemu-img convert -f raw -O raw "$uri" "$dir/out.img"
	[ "$(sha256sum <"$dir/in.img")" = "$(sha256sum <"$dir/out.img")" ]
	# a disk image of another format on the volume
	timeout "$seconds" qemu-img create -q -f qcow2 "$uri" 8M
	timeout "$seconds" qemu-img convert -n -f raw -O qcow2 "$dir/in.img" "$uri" 2>&1 | grep -q "smaller than"
	timeout "$seconds" qemu-io -f qcow2 -c 'write -P 7 1M 1M' -c 'read -P 7 1M 1M' "$uri" >"$dir/qemu"
	timeout "$seconds" qemu-img check -q -f qcow2 "$uri"
	nbd_stop nbd
}

@test "holes of a file are holes of the NBD export, and are not copied" {
	need file
	tool nbdinfo libnbd-bin
	tool nbdcopy libnbd-bin
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"80MiB\";"
	store_stages='{ type = "stats"; }'
	truncate -s 80M "$dir/volume"
	head -c 1048576 /dev/urandom | dd of="$dir/volume" bs=64K seek=1072 conv=notrunc status=none # at 67 MiB
	sync "$dir/volume"
	nbd_all
	timeout "$seconds" nbdinfo --json --map "$uri" >"$report"
	jq -e '.[0] == {"offset": 0, "length": 70254592, "type": 3, "description": "hole,zero"}' "$report" || {
		jq -e 'length == 1 and .[0].type == 0' "$report" && skip "the file system does not report holes"
		cat "$report"
		false
	}
	jq -e '.[1] == {"offset": 70254592, "length": 1048576, "type": 0, "description": "data"}' "$report"
	timeout "$seconds" nbdcopy "$uri" "$dir/out.img"
	cmp "$dir/volume" "$dir/out.img"
	nbd_stop nbd
	# the holes were not read
	holds "$dir/store.json" '.roles.store.stages[0] | .extents.done_ops > 0 and .read.done_bytes < 8 * 1048576'
}

@test "an export without extents is copied whole" {
	tool nbdinfo libnbd-bin
	store_backend='type = "memory"; size = "16MiB"; populate = true;'
	nbd_all
	timeout "$seconds" nbdinfo --json --map "$uri" >"$report"
	jq -e 'length == 1 and .[0].type == 0' "$report"
	nbd_stop nbd
}

@test "qemu-io: patterns, zeroes, discard, FUA, flush" {
	tool qemu-io qemu-utils
	nbd_all
	timeout "$seconds" qemu-io -f raw -c 'write -P 0x11 0 2M' -c 'write -P 0x22 -f 4k 4k' -c 'write -z 8k 8k' \
		-c 'write -P 0x33 1M 64k' -c 'write -z -u 1M 32k' -c 'discard 4M 64k' -c flush \
		-c 'read -P 0x11 0 4k' -c 'read -P 0x22 4k 4k' -c 'read -P 0 8k 8k' -c 'read -P 0x11 16k 1008k' \
		-c 'read -P 0 1M 32k' -c 'read -P 0x33 1056k 32k' -c 'read -P 0x11 1088k 960k' -c 'read -P 0 2M 14M' \
		"$uri" >"$dir/qemu" || { cat "$dir/qemu"; false; }
	run ! grep -i -E 'fail|error' "$dir/qemu"
	nbd_stop nbd
}

@test "each operation is that of the volume: read, write, FUA, flush, write zeroes, discard" {
	need stats
	store_stages='{ type = "stats"; }'
	nbd_all
	calls read:0:4096 write:0:4096 write:4096:4096:fua flush zero:0:4096 zero:8192:4096:fua trim:0:65536
	run ! grep -v OK <<<"$output"
	calls trim:0:65536:fua fast:65536:4096
	run ! grep -v OK <<<"$output"
	nbd_stop nbd
	# one of these flushes replaces the FUA of a discard, which volumes do not support
	holds "$dir/store.json" '.roles.store.stages[0] | .read.done_ops == 1 and .write.done_ops == 2 and .flush.done_ops == 2' \
		'.roles.store.stages[0] | .write_zeroes.done_ops == 3 and .discard.done_ops == 2'
}

@test "fio: random writes at depth 32, verified" {
	nbd_all
	fio_nbd --verify=crc32c
	[ "$status" -eq 0 ] || { cat "$dir/fio.log"; false; }
	fio_nbd --verify=crc32c --bsrange=4k-1m --numjobs=4 --size=2m --offset_increment=4m
	[ "$status" -eq 0 ]
	nbd_stop nbd
}

@test "requests outside the volume, not in whole blocks, of no length, too long" {
	nbd_all
	calls read:16777216:4096 read:16773120:8192 read:18446744073709547520:4096 write:16777216:4096 \
		read:512:4096 read:0:512 write:4096:100 trim:512:512 zero:0:100 read:0:0 write:0:0 read:0:4096 flush
	answered "read:16777216:4096 EINVAL" "read:16773120:8192 EINVAL" "read:18446744073709547520:4096 EINVAL" \
		"write:16777216:4096 ENOSPC" "read:512:4096 EINVAL" "read:0:512 EINVAL" "write:4096:100 EINVAL" \
		"trim:512:512 EINVAL" "zero:0:100 EINVAL" "read:0:0 EINVAL" "write:0:0 ENOSPC" "read:0:4096 OK" "flush OK"
	says nbd '4096 bytes at 512: not in whole blocks of 4096 bytes.*--filter=blocksize'
	nbd_stop nbd
}

@test "a client that does not ask for the block size is served by the filter blocksize" {
	tool qemu-io qemu-utils
	nbd_options=(--filter=blocksize)
	nbd_all "config=$conf" volume=load minblock=4096
	calls write:100:1000 read:100:1000
	answered "write:100:1000 OK" "read:100:1000 OK"
	nbd_stop nbd
}

@test "a request longer than an IO is cut; what it wrote is read by requests that are not" {
	tool nbdcopy libnbd-bin
	random_image 16777216
	nbd_all "config=$conf" volume=load piece=64K depth=6 queues=2
	timeout "$seconds" nbdcopy --request-size=16777216 "$dir/in.img" "$uri"
	timeout "$seconds" nbdcopy --request-size=65536 "$uri" "$dir/out.img"
	cmp "$dir/in.img" "$dir/out.img"
	timeout "$seconds" nbdcopy --request-size=16777216 "$uri" "$dir/out.img"
	cmp "$dir/in.img" "$dir/out.img"
	nbd_stop nbd
}

@test "a hundred connections at once, with few queues" {
	nbd_all "config=$conf" volume=load queues=3
	calls 100 write:0:4096 read:65536:65536 flush
	[ "$(grep -c OK <<<"$output")" -eq 300 ]
	nbd_stop nbd
}

@test "requests that find a queue full wait, and are done once" {
	need stats
	store_stages='{ type = "stats"; }'
	nbd_all "config=$conf" volume=load queues=1 depth=1
	calls 100 write:0:4096 flush zero:4096:4096
	[ "$(grep -c OK <<<"$output")" -eq 300 ]
	nbd_stop nbd
	holds "$dir/store.json" '.roles.store.stages[0] | .write.done_ops == 100 and .flush.done_ops == 100' \
		'.roles.store.stages[0] | .write_zeroes.done_ops == 100'
}

@test "a flush on one connection covers what was written on another" {
	need file
	tool nbdcopy libnbd-bin
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"16MiB\";"
	random_image 16777216
	nbd_all
	timeout "$seconds" nbdcopy --connections=4 --flush "$dir/in.img" "$uri"
	cmp "$dir/in.img" "$dir/volume"
	nbd_stop nbd
}

size_is() { # BYTES - a new connection sees this size
	[ "$(timeout "$seconds" nbdinfo --size "$uri")" -eq "$1" ]
}

@test "a volume that grows and shrinks behind two gateways: the next connections see its size" {
	need file
	tool nbdinfo libnbd-bin
	truncate -s 4M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	connect_options='resume = "30s"; timeout = "300ms";'
	two_gateways
	serve_all
	serve bridge2
	nbd_serve nbd
	calls write:4190208:4096 read:4194304:4096
	answered "write:4190208:4096 OK" "read:4194304:4096 EINVAL"
	truncate -s 8M "$dir/volume"
	until_true size_is 8388608
	calls write:8384512:4096 read:8384512:4096
	answered "write:8384512:4096 OK" "read:8384512:4096 OK"
	slay bridge
	calls read:0:4096 # waits until the session runs again: a change of the size before that would end it
	answered "read:0:4096 OK"
	truncate -s 4M "$dir/volume"
	until_true size_is 4194304
	calls read:4190208:4096 read:4194304:4096
	answered "read:4190208:4096 OK" "read:4194304:4096 EINVAL"
	stop nbd bridge2 store
}

@test "a volume that shrinks: a request of an open connection beyond the end fails with EIO" {
	need file
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	nbd_all
	fio_begin --rw=randread --size=16m --loops=100000 --continue_on_error=none
	until_true live store 'store.ops_done > 500'
	truncate -s 4M "$dir/volume"
	finish fio
	grep -q 'error=Input/output error' "$dir/fio.log"
	nbd_stop nbd
}

@test "a read-only volume" {
	need file
	tool nbdinfo libnbd-bin
	random_image 1048576
	store_backend="type = \"file\"; path = \"$dir/in.img\"; read_only = true;"
	nbd_all
	timeout "$seconds" nbdinfo --json "$uri" >"$report"
	holds "$report" '.exports[0] | .is_read_only and ."export-size" == 1048576'
	calls write:0:4096 read:0:4096
	answered "write:0:4096 EPERM" "read:0:4096 OK"
	timeout "$seconds" nbdcopy "$uri" "$dir/out.img"
	cmp "$dir/in.img" "$dir/out.img"
	nbd_stop nbd
}

@test "nbdkit -r: a volume that could be written is not" {
	nbd_options=(-r)
	nbd_all
	calls write:0:4096 read:0:4096
	answered "write:0:4096 EPERM" "read:0:4096 OK"
	nbd_stop nbd
}

@test "the examples of the manual" {
	need file
	tool nbdcopy libnbd-bin
	tool qemu-img qemu-utils
	tool fio fio
	export XDG_RUNTIME_DIR=$dir
	manual_setup
	random_image 67108864
	manual serve
	until_true test -s "$dir/disk0.pid"
	manual copy
	cmp "$dir/in.img" "$dir/disk0.img"
	manual fio
}

# -- parameters --

# refused PATTERN PARAMETER... - nbdkit fails to start as a daemon, and prints the reason to its caller
refused() {
	local pattern=$1
	shift
	run timeout "$seconds" nbdkit -U "$dir/nbd.sock" -P "$dir/nbd.pid" "$plugin" "$@"
	[ "$status" -eq 1 ]
	grep -q -E -- "$pattern" <<<"$output" || { echo "not said: $pattern"; echo "$output"; return 1; }
}

@test "parameters that are wrong" {
	topology
	refused 'either config=FILE, or uri=URI'
	refused 'either config=FILE, or uri=URI' config="$conf" uri=gantry:///volume
	refused 'volume=load is a role of config=FILE' uri=gantry:///volume volume=load
	refused 'queues=0: out of range .limits 1 and 64.' config="$conf" queues=0
	refused 'unknown parameter colour=red' config="$conf" colour=red
	refused 'nowhere.conf' config="$dir/nowhere.conf"
	refused 'no.*role.*nobody|nobody' config="$conf" volume=nobody
	echo 'devices = { broken' >"$dir/broken.conf"
	refused 'broken.conf:1' config="$dir/broken.conf"
	nbdkit "$plugin" --help >"$dir/help"
	grep -q 'volume=NAME' "$dir/help"
}

@test "a volume that no process serves" {
	connect_options='timeout = "100ms";'
	topology
	refused 'cannot open the volume' config="$conf" volume=load
	serve store # the gateway is not started yet
	refused 'cannot open the volume' config="$conf" volume=load
	stop store
}

@test "as a daemon it serves after its parent has gone" {
	topology
	serve_all
	nbdkit -U "$dir/nbd.sock" -P "$dir/nbd.pid" "$plugin" config="$conf" volume=load 3>&-
	until_true test -s "$dir/nbd.pid"
	pids[daemon]=$(cat "$dir/nbd.pid")
	uri="nbd+unix:///?socket=$dir/nbd.sock"
	calls write:0:4096 read:0:4096 flush
	answered "write:0:4096 OK" "read:0:4096 OK" "flush OK"
	kill -TERM "${pids[daemon]}"
	until_true gone "${pids[daemon]}"
	unset "pids[daemon]"
	nbd_stop
}

gone() { # PID
	! kill -0 "$1" 2>/dev/null
}

# -- errors while nbdkit serves --

@test "the target is killed under load: each request ends with EIO, and so does each after that" {
	nbd_all
	fio_begin --rw=randrw --loops=50 --continue_on_error=all --error_dump=0 --output-format=json
	until_true live store 'store.ops_done > 500'
	slay store
	finish fio
	sed -n '/^{/,$p' "$dir/fio.log" >"$report"
	holds "$report" '.jobs[0] | .error == 5 and .total_err > 1000 and .read.total_ios + .write.total_ios > 500'
	stop nbd bridge
	says nbd 'the volume is lost.*connect.resume'
	[ "$(grep -c 'the volume is lost' "$dir/nbd.log")" -eq 1 ]
}

@test "the target is killed while requests wait for room in a queue: they end with EIO too" {
	nbd_all "config=$conf" volume=load queues=1 depth=1
	fio_begin --rw=randrw --loops=50 --continue_on_error=all --error_dump=0 --output-format=json
	until_true live store 'store.ops_done > 500'
	slay store
	finish fio
	sed -n '/^{/,$p' "$dir/fio.log" >"$report"
	holds "$report" '.jobs[0] | .error == 5 and .total_err > 1000'
	stop nbd bridge
}

@test "with resume, requests wait for a target that is killed and started again" {
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"16MiB\";"
	store_backend+=' lock_wait = "30s";' # the killed target may hold the lock for a moment
	topology
	sed -i '/load = /s/connect = {/& resume = "60s";/' "$conf"
	serve_all
	nbd_serve nbd
	fio_begin --verify=crc32c --rate_iops=2000
	until_true live store 'store.ops_done > 500'
	slay store
	serve store
	finish fio
	[ "$status" -eq 0 ] || { cat "$dir/fio.log" "$dir/nbd.log"; false; }
	says nbd 'session'
	nbd_stop nbd
}

@test "two gateways, each killed in turn: with resume no request fails, and all of fio's writes are verified" {
	need fault
	connect_options='resume = "1m"; timeout = "300ms";'
	store_stages='{ type = "fault"; only = "write"; delay = "1h"; delay_nth = 128; }'
	two_gateways
	serve_all
	serve bridge2
	nbd_serve nbd
	fio_begin --verify=crc32c --size=16m --iodepth=8
	kill_in_turn 8 bridge bridge2 bridge bridge2
	finish fio
	[ "$status" -eq 0 ] || { cat "$dir/fio.log" "$dir/nbd.log"; false; }
	nbd_stop nbd
	holds "$dir/store.json" 'store.sessions_lost == 4'
}

refused() { # a connection that arrives before nbdkit has detected the loss still shares the old session
	run timeout "$seconds" "$top_builddir/tests/clients/nbdcalls" "$uri" read:0:4096
	[ "$status" -eq 2 ]
}

@test "a later client gets a new session after the target has started again" {
	connect_options='timeout = "100ms";'
	nbd_all
	calls write:0:4096 read:0:4096
	slay store
	calls read:0:4096
	answered "read:0:4096 EIO"
	until_true refused
	says nbd 'cannot open the volume'
	serve store
	calls read:0:4096 write:0:4096
	answered "read:0:4096 OK" "write:0:4096 OK"
	nbd_stop nbd
}

@test "a target that does not answer: the request ends when its time is over" {
	connect_options='io_timeout = "500ms";'
	nbd_all
	calls read:0:4096
	answered "read:0:4096 OK"
	kill -STOP "${pids[store]}"
	calls read:0:4096
	answered "read:0:4096 EIO"
	kill -CONT "${pids[store]}"
	stop nbd bridge store
}

@test "a full store and a failing medium: the client gets ENOSPC or EIO" {
	need fault
	store_stages='{ type = "fault"; only = "write"; error_nth = 1; error = "nospc"; },
	              { type = "fault"; only = "read"; error_nth = 1; }'
	nbd_all
	calls write:0:4096 read:0:4096 flush
	answered "write:0:4096 ENOSPC" "read:0:4096 EIO" "flush OK"
	says nbd 'write of 4096 bytes at 0: No space left'
	nbd_stop nbd
}

# -- the tests detect errors: a target with a seeded bug --

@test "writes that go to the block beside it are found by fio and by qemu-img" {
	need_liar
	store_stages='{ type = "liar"; lie = "misdirect"; nth = 200; }'
	nbd_all
	fio_nbd --verify=crc32c
	[ "$status" -ne 0 ]
	grep -q -i verify "$dir/fio.log"
	stop nbd bridge store
}
