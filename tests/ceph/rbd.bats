#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The backend rbd on a Ceph cluster of this machine: data, kills, stalls, locks, quotas, sizes and snapshots.

setup_file() {
	CLUSTER=$(mktemp -d "${TMPDIR:-/tmp}/gantry-ceph.XXXXXX") || return 1
	export CLUSTER
	[ -e "$GANTRY_PLUGINS/rbd.so" ] || { export REASON="built without the plugin rbd"; return 0; }
	REASON=$(bash "$BATS_TEST_DIRNAME/cluster.sh" start "$CLUSTER" 3>&-) || export REASON="${REASON:-the cluster cannot start}"
}

teardown_file() {
	[ -z "${CLUSTER:-}" ] || bash "$BATS_TEST_DIRNAME/cluster.sh" stop "$CLUSTER" 3>&-
}

setup() {
	[ -z "${REASON:-}" ] || skip "$REASON"
	. "$BATS_TEST_DIRNAME/../walk/lib.sh"
	walk_setup
	export CEPH_CONF=$CLUSTER/ceph.conf
	image=image$BATS_TEST_NUMBER
	ceph_do rbd create --size 32M "$image"
	store_backend="type = \"rbd\"; conf = \"$CEPH_CONF\"; image = \"$image\"; osd_op_timeout = \"4s\";"
	processes
	topology
}

teardown() {
	[ -n "${REASON:-}" ] || walk_teardown
	osds CONT
	return 0
}

ceph_do() { # COMMAND... - run a command of Ceph in bounded time
	timeout 60 "$@" 2>>"$dir/ceph.log" 3>&-
}

osds() { # SIGNAL - send it to all OSDs
	local file
	for file in "$CLUSTER"/run/osd.*.pid; do
		[ ! -e "$file" ] || kill "-$1" "$(cat "$file")" 2>/dev/null || true
	done
}

copy() { # SRC DST [ARGUMENT...]
	timeout 100 "$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" --role load "$@" >"$dir/copy" 2>"$dir/copy.log" 3>&- ||
		{ cat "$dir/copy.log" "$dir/store.log"; return 1; }
}

sum() { # FILE
	sha256sum <"$1" | cut -d' ' -f1
}

backend() { # NAME FILTER - apply the filter to the report of the backend of a running target
	live "$1" ".roles.$1.backend | $2"
}

work() { # [ARGUMENT...] - begin endless verified random writes, of which some flush
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.read_percent=30 \
		--set roles.load.workload.flush_every=50 --set roles.load.workload.deadline=90s "$@"
	busy load 300
}

more_work() { # N - the initiator completes N more IOs
	local before
	before=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((before + $1))
}

end_work() {
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0"
}

first() { # the target that runs is `first` from now on, so that a second one can be `store`
	mv "$dir/store.log" "$dir/first.log"
	pids[first]=${pids[store]}
	unset "pids[store]"
}

@test "an image is copied in and out" {
	head -c 32M /dev/urandom >"$dir/in"
	serve_all
	copy "$dir/in" volume:load
	copy volume:load "$dir/out"
	[ "$(sum "$dir/in")" = "$(sum "$dir/out")" ]
	ceph_do rbd export "$image" "$dir/export"
	[ "$(sum "$dir/in")" = "$(sum "$dir/export")" ]
	stop bridge store
	# what Ceph imports arrives
	ceph_do rbd import "$dir/in" "$image-2"
	serve store --set "roles.store.backend.image=$image-2"
	serve bridge
	rm "$dir/out"
	copy volume:load "$dir/out"
	[ "$(sum "$dir/in")" = "$(sum "$dir/out")" ]
	stop bridge store
}

@test "random writes are verified, with FUA, discard and several lanes" {
	serve_all
	load_well --set roles.load.workload.flush_every=20 --set roles.load.lanes=2
	load_well --set roles.load.workload.fua=true --set roles.load.workload.ops=500
	stop bridge store
	holds "$dir/store.json" 'store.ops_failed == 0' '.roles.store.backend.repeated_ops == 0' '.roles.store.backend.fences == 0'
}

@test "the gateway is killed: the initiator resumes, and nothing is lost" {
	connect_options='resume = "60s";'
	topology
	serve_all
	work
	slay bridge
	serve bridge
	more_work 500
	end_work
	holds "$dir/load.json" 'load.errors == {}'
	stop bridge store
}

@test "the target is killed: another one gets the lock, and nothing is lost" {
	connect_options='resume = "60s"; timeout = "60s";'
	topology
	serve_all
	work
	verifier=$("$GANTRY" stat --dir "$dir/stat" --json store | jq -r '.processes[0].roles.store.backend.verifier')
	slay store
	serve store
	says store 'requesting the lock of the image'
	[ "$("$GANTRY" stat --dir "$dir/stat" --json store | jq -r '.processes[0].roles.store.backend.verifier')" = "$verifier" ]
	more_work 300
	end_work
	holds "$dir/load.json" 'load.errors == {}'
	stop bridge store
}

@test "a second target is rejected while the first is alive, and the first goes on" {
	serve_all
	work
	owner=$(ceph_do rbd lock ls --format json "$image" | jq -r '.[0].address')
	first
	begin store --set roles.store.listen.name=other
	finish store
	[ "$status" -eq 1 ]
	says store "rbd/$image: another client serves the image \\(owner=$owner\\)"
	more_work 300
	end_work
	holds "$dir/load.json" 'load.errors == {}'
	# readers need no lock
	serve store --set roles.store.listen.name=other --set roles.store.backend.read_only=true
	stop store
	stop bridge first
}

@test "a cluster that stalls: IO fails in bounded time; then the target fences its old client and goes on" {
	head -c 32M /dev/urandom >"$dir/in"
	serve_all
	copy "$dir/in" volume:load
	# the load changes the first MiB
	work --set roles.load.continue_on_error=true
	osds STOP
	begin_ms=$(now_ms)
	until_true live load '.roles.load.errors.IO > 0'
	took=$(($(now_ms) - begin_ms))
	echo "# the first error after $took ms" >&3
	[ "$took" -lt 15000 ]
	backend store '.state == "fencing"'
	osds CONT
	until_true backend store '.state == "open"'
	backend store '.fences >= 1'
	more_work 300
	end_work
	holds "$dir/load.json" 'load.errors | keys == ["IO"]'
	copy volume:load "$dir/out"
	[ "$(tail -c 31M "$dir/in" | sha256sum)" = "$(tail -c 31M "$dir/out" | sha256sum)" ]
	stop bridge store
	# no other client is locked out
	serve_all
	load_well
	stop bridge store
}

@test "an administrator fences the client: all IO fails until the target restarts" {
	serve_all
	work --set roles.load.continue_on_error=true
	owner=$(ceph_do rbd lock ls --format json "$image" | jq -r '.[0].address')
	ceph_do ceph osd blocklist add "$owner"
	until_true backend store '.state == "lost"'
	says store 'another client has fenced this one: restart the target'
	until_true live load '.roles.load.errors.IO > 0'
	end_work
	stop bridge store
	serve_all
	load_well
	stop bridge store
}

@test "a full pool: NOSPC reaches the initiator, and the target serves on" {
	ceph_do ceph osd pool create small 8
	ceph_do rbd pool init small
	ceph_do rbd create --size 32M small/full
	ceph_do ceph osd pool set-quota small max_bytes 4194304
	serve store --set roles.store.backend.pool=small --set roles.store.backend.image=full
	serve bridge
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.size=32MiB --set roles.load.continue_on_error=true \
		--set roles.load.workload.pattern=write --set roles.load.workload.verify=none --set roles.load.workload.rate=400
	until_true live load '.roles.load.errors.NOSPC > 0'
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors | keys - ["NOSPC"] == []'
	ceph_do ceph osd pool set-quota small max_bytes 0
	until_true eval '! ceph_do ceph osd pool ls detail | grep -q "small.*full_quota"'
	load_well
	stop bridge store
}

@test "an image that is missing, a pool, a configuration and a cluster" {
	refused() { # PATTERN ARGUMENT...
		local why=$1
		shift
		begin store "$@"
		finish store
		[ "$status" -eq 1 ]
		says store "$why"
	}
	refused 'rbd/none: cannot open the image: No such file' --set roles.store.backend.image=none
	refused 'none/.*: cannot open the pool: No such file' --set roles.store.backend.pool=none
	refused "cannot read the configuration of Ceph .conf=$dir/none.: No such file" --set "roles.store.backend.conf=$dir/none"
	sed 's/^mon_host = .*/mon_host = v2:127.0.0.1:1/' "$CEPH_CONF" >"$dir/wrong.conf"
	refused 'cannot connect to the cluster .*timed out' --set "roles.store.backend.conf=$dir/wrong.conf"
	ceph_do rbd feature disable "$image" fast-diff object-map exclusive-lock
	refused 'no exclusive lock: enable it'
	# Ceph does not remove an image that is served
	ceph_do rbd feature enable "$image" exclusive-lock
	serve store
	run ceph_do rbd rm "$image"
	[ "$status" -ne 0 ]
	stop store
	ceph_do rbd rm "$image"
	refused 'cannot open the image: No such file'
}

copy_skips() { # BYTES IMAGE [ARGUMENT...] - a copy from a target with these arguments reads BYTES, and equals IMAGE
	serve store "${@:3}"
	serve bridge
	rm -f "$dir/out" "$dir/export"
	copy volume:load "$dir/out" --json
	stop bridge store
	ceph_do rbd export "$2" "$dir/export"
	[ "$(sum "$dir/export")" = "$(sum "$dir/out")" ]
	[ "$(stat -c %s "$dir/out")" -eq 134217728 ]
	holds "$dir/copy" "load.reads.bytes == $1"
}

@test "a copy reads only the data: an image, a snapshot, a clone, stripes" {
	head -c 8M /dev/urandom >"$dir/in"
	truncate -s 100M "$dir/in"
	head -c 1M /dev/urandom >>"$dir/in"
	truncate -s 128M "$dir/in"
	ceph_do rbd import "$dir/in" "$image-h"
	copy_skips $((9 << 20)) "$image-h" --set "roles.store.backend.image=$image-h"
	[ "$(sum "$dir/in")" = "$(sum "$dir/out")" ]
	ceph_do rbd snap create "$image-h@old"
	ceph_do rbd snap protect "$image-h@old"
	# the clone has one object of its own, and the data of its parent
	ceph_do rbd clone "$image-h@old" "$image-c"
	ceph_do rbd bench --io-type write --io-size 64K --io-total 64K --io-threads 1 "$image-c"
	copy_skips $((9 << 20)) "$image-c" --set "roles.store.backend.image=$image-c"
	# the snapshot does not have what was written later
	ceph_do rbd bench --io-type write --io-size 4M --io-total 128M --io-threads 4 "$image-h"
	copy_skips $((9 << 20)) "$image-h@old" --set "roles.store.backend.image=$image-h" --set roles.store.backend.snapshot=old
	# the parts of an object are not together in the image
	ceph_do rbd import --object-size 1M --stripe-unit 64K --stripe-count 4 "$dir/in" "$image-s"
	copy_skips $((9 << 20)) "$image-s" --set "roles.store.backend.image=$image-s"
	# with a cache, all is data
	copy_skips $((128 << 20)) "$image-s" --set "roles.store.backend.image=$image-s" --set roles.store.backend.cache=true
}

@test "a cluster that stalls while a diff runs: the copy fails in bounded time, and the next one does not" {
	head -c 1M /dev/urandom >"$dir/in"
	truncate -s 32M "$dir/in"
	ceph_do rbd import "$dir/in" "$image-x"
	serve store --set "roles.store.backend.image=$image-x"
	serve bridge
	osds STOP
	run copy volume:load "$dir/out"
	[ "$status" -ne 0 ]
	osds CONT
	backend store '.timeout_ops >= 1 and .state == "open"'
	copy volume:load "$dir/out"
	[ "$(sum "$dir/in")" = "$(sum "$dir/out")" ]
	# the target ends while a diff runs
	osds STOP
	"$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" --role load volume:load "$dir/none" >"$dir/copy.log" 2>&1 3>&- &
	pids[copy]=$!
	until_true backend store '.held_ops > 0'
	kill -TERM "${pids[store]}"
	finish store
	osds CONT
	[ "$status" -eq 0 ]
}

@test "a new size reaches the initiator" {
	serve_all
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.pattern=randread \
		--set roles.load.workload.verify=none --set roles.load.continue_on_error=true
	busy load 100
	ceph_do rbd resize --size 64M "$image"
	logged load 'size of the volume changed id=[0-9a-f]* bytes=67108864'
	ceph_do rbd resize --size 1M --allow-shrink "$image"
	logged load 'size of the volume changed id=[0-9a-f]* bytes=1048576'
	more_work 100
	kill -TERM "${pids[load]}"
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors | keys - ["RANGE", "IO"] == []'
	stop bridge store
}

@test "a snapshot keeps its data, and is read-only" {
	head -c 32M /dev/urandom >"$dir/in"
	ceph_do rbd import "$dir/in" "$image-s"
	ceph_do rbd snap create "$image-s@old"
	head -c 32M /dev/urandom >"$dir/new"
	serve store --set "roles.store.backend.image=$image-s"
	serve bridge
	copy "$dir/new" volume:load
	uuid=$("$GANTRY" stat --dir "$dir/stat" --json store | jq -r '.processes[0].roles.store.backend.uuid')
	stop bridge store
	serve store --set "roles.store.backend.image=$image-s" --set roles.store.backend.snapshot=old
	serve bridge
	[ "$("$GANTRY" stat --dir "$dir/stat" --json store | jq -r '.processes[0].roles.store.backend.uuid')" != "$uuid" ]
	copy volume:load "$dir/out"
	[ "$(sum "$dir/in")" = "$(sum "$dir/out")" ]
	begin load
	finish load
	[ "$status" -eq 1 ]
	says load 'the volume does not support the workload'
	stop bridge store
}

@test "a namespace" {
	ceph_do rbd namespace create --pool rbd --namespace tenant
	ceph_do rbd create --size 32M rbd/tenant/volume
	serve store --set roles.store.backend.namespace=tenant --set roles.store.backend.image=volume
	serve bridge
	load_well
	stop bridge store
}

@test "one of three OSDs is killed: IO goes on" {
	serve_all
	work --set roles.load.workload.deadline=60s
	pid=$(cat "$CLUSTER/run/osd.2.pid")
	kill -KILL "$pid"
	more_work 500
	end_work
	holds "$dir/load.json" 'load.errors == {}'
	stop bridge store
	holds "$dir/store.json" '.roles.store.backend.fences == 0'
}
