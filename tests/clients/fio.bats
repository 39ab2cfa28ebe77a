#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# fio on a gantry volume through gantry's ioengine: verification by fio, the kinds of jobs, and failures. The volume is behind a
# gateway and a target, each in a separate process.

setup() {
	. "$BATS_TEST_DIRNAME/../walk/lib.sh"
	walk_setup
	engine=$top_builddir/clients/.libs/gantry-fio.so
	[ -e "$engine" ] || skip "built without the engine for fio (configure --with-fio=DIR)"
	command -v fio >/dev/null || skip "fio is not installed"
	store_backend='type = "memory"; size = "64MiB";'
	processes
	export GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
	cd "$dir" || return
}

teardown() {
	walk_teardown
}

volume() { # start the servers of the volume
	topology
	serve store
	serve bridge
}

# Runs a job on the volume; sets status. Its report goes to fio.json, its messages to fio.log.
job() { # ARGUMENT...
	status=0
	timeout -k 5 "$seconds" fio --name=job --ioengine="external:$engine" --output-format=json --output="$dir/fio.json" \
		"$@" >"$dir/fio.log" 2>&1 3>&- || status=$?
}

on_volume() { # ARGUMENT...
	job --config="$conf" --volume=load "$@"
}

# the job succeeded, and its report satisfies each filter
well() { # FILTER...
	[ "$status" -eq 0 ] || { echo "exit status $status"; cat "$dir"/fio.* "$dir"/*.log; return 1; }
	sed -n '/^{/,$p' "$dir/fio.json" >"$dir/report.json"
	holds "$dir/report.json" 'all(.jobs[]; .error == 0)' "$@"
}

refused() { # PATTERN - the job failed with a matching message
	[ "$status" -ne 0 ] && [ "$status" -lt 124 ] || { echo "exit status $status"; cat "$dir"/fio.*; return 1; }
	cat "$dir/fio.log" "$dir/fio.json" | grep -E -q -- "$1" || { cat "$dir/fio.log" "$dir/fio.json"; return 1; }
}

# fio reports that the session is lost: for an IO in flight, or for the next one if all were already answered.
knows_of_loss() {
	grep -E -q 'io_u error .*: Transport endpoint is not connected|gantry: the session is lost: ' fio.log && return 0
	cat fio.log fio.json
	return 1
}

all_answered() { # the target has completed no IO since the last check, and the gateway has returned all answers
	local before=$done
	done=$("$GANTRY" stat --dir "$dir/stat" --json | jq -c '[.processes[].roles[].counters.ops_done]')
	[ "$done" = "$before" ] && jq -e 'length == 2 and .[0] == .[1]' <<<"$done" >/dev/null
}

@test "random writes, 32 at a time, all of them verified; the counters of the target agree" {
	volume
	on_volume --rw=randwrite --bs=4k --size=32m --iodepth=32 --verify=crc32c
	well '.jobs[0].write.total_ios == 8192' '.jobs[0].read.total_ios == 8192' '.jobs[0].iodepth_level["32"] > 90'
	stop bridge store
	agree 16384
}

@test "writes of all sizes and orders, verified, each stable before it is done" {
	volume
	on_volume --rw=randwrite --bsrange=4k-256k --size=32m --iodepth=16 --verify=crc32c --sync=1 --direct=1
	well
	on_volume --rw=write --bs=1m --size=64m --iodepth=4 --verify=sha256 --verify_async=2
	well '.jobs[0].write.total_ios == 64'
	stop bridge store
}

@test "reads, writes, fsync and trim in one" {
	volume
	on_volume --rw=randrw --bs=4k --size=16m --iodepth=32 --fsync=16 --end_fsync=1
	well '.jobs[0].sync.total_ios > 50'
	on_volume --rw=trimwrite --bs=16k --size=16m --iodepth=8 --verify=crc32c --fdatasync=8
	well '.jobs[0].trim.total_ios == 1024' '.jobs[0].write.total_ios == 1024'
	on_volume --rw=randtrim --bs=64k --size=16m --iodepth=8
	well '.jobs[0].trim.total_ios == 256'
	stop bridge store
}

@test "two jobs in two processes, and in two threads" {
	volume
	on_volume --rw=randwrite --bs=4k --size=16m --offset_increment=16m --numjobs=2 --iodepth=16 --verify=crc32c
	well '.jobs | length == 2' 'all(.jobs[]; .write.total_ios == 4096 and .read.total_ios == 4096)'
	on_volume --thread --rw=randwrite --bs=4k --size=16m --offset_increment=16m --numjobs=2 --iodepth=16 --verify=crc32c
	well '.jobs | length == 2' 'all(.jobs[]; .write.total_ios == 4096 and .read.total_ios == 4096)'
	stop bridge store
}

@test "files and sizes are made by the job, not before it" {
	volume
	on_volume --rw=randread --bs=4k --iodepth=4 --number_ios=1000 --create_serialize=0
	well '.jobs[0].read.total_ios == 1000'
	on_volume --rw=write --bs=64k --iodepth=4 --unlink=1
	well '.jobs[0].write.io_bytes == 67108864'
	stop bridge store
}

@test "the options are those of the manual" {
	run fio --enghelp="$engine"
	[ "$status" -eq 0 ]
	for option in config volume uri; do
		grep -q "^$option  *: " <<<"$output"
		grep -q "^\.It Cm $option " "$top_srcdir/man/gantry-fio.1"
	done
	[ "$(grep -c ' : ' <<<"$output")" -eq 3 ]
}

@test "the examples run" {
	store_backend='type = "memory"; size = "128MiB";'
	volume
	for example in "$top_srcdir"/clients/fio/examples/*.fio; do
		sed 's/^\(runtime\|ramp_time\)=.*/\1=200ms/' "$example" >"${example##*/}"
		status=0
		GANTRY_ENGINE=$engine GANTRY_URI="gantry:///?config=$conf&role=load" timeout -k 5 "$seconds" \
			fio --output-format=json --output="$dir/fio.json" "${example##*/}" >"$dir/fio.log" 2>&1 3>&- || status=$?
		well 'all(.jobs[]; .read.total_ios + .write.total_ios + .trim.total_ios > 0)'
	done
	stop bridge store
}

@test "missing and wrong options are reported" {
	topology
	job --rw=read
	refused 'gantry: no volume: config=FILE or uri='
	job --rw=read --config="$conf" --uri=gantry:///volume
	refused 'gantry: uri= excludes config= and volume='
	job --rw=read --config="$dir/none.conf"
	refused 'gantry: .*none\.conf'
	job --rw=read --config="$conf" --volume=nobody
	refused 'gantry: .*nobody'
	echo 'roles = { x = ' >broken.conf
	job --rw=read --config=broken.conf
	refused 'gantry: .*broken\.conf:[12]: '
	job --rw=read --uri='nbd://somewhere'
	refused 'gantry: .*nbd://'
}

@test "no process serves the volume: fio reports that and ends" {
	connect_options='timeout = "100ms";'
	topology
	on_volume --rw=read
	refused 'gantry: .*no listener there'
}

@test "jobs that the volume cannot do are refused" {
	need file
	truncate -s 1M volume.img
	store_backend="type = \"file\"; path = \"$dir/volume.img\"; read_only = true;"
	volume
	on_volume --rw=randwrite --bs=4k --size=1m
	refused 'gantry: the volume is read-only'
	on_volume --rw=randread --bs=4k --size=1m --mem=mmap
	refused 'mem/iomem'
	on_volume --rw=randread --bs=512 --size=1m
	[ "$status" -eq 0 ] || refused 'gantry: bs=512 is not a multiple of the volume.s block of [0-9]+ bytes'
	on_volume --rw=randread --bs=4k --size=1m
	well
	stop bridge store
}

@test "another release of fio is refused" {
	# the same length, so that offsets do not change
	sed "s/$(fio --version)/fio-9.99/" "$engine" >other.so
	cmp -s other.so "$engine" && skip "fio --version is not what the engine was built for"
	topology
	engine=$dir/other.so
	on_volume --rw=read
	refused 'built for fio-9\.99 and cannot be used with fio-3'
}

@test "the target is killed: fio ends with an error, at once" {
	volume
	on_volume --rw=randwrite --bs=4k --iodepth=32 --time_based --runtime=1h &
	local fio=$!
	until_true live store '.roles.store.counters.ops_done > 2000'
	died=$(now_ms)
	slay store
	wait "$fio"
	[ "$(($(now_ms) - died))" -lt 10000 ]
	knows_of_loss
	grep -q '"error" : 107' fio.json
	stop bridge
}

@test "the target is killed while no IO is under way: the next one is refused, fio says why and ends" {
	volume
	fio --name=job --ioengine="external:$engine" --output-format=json --output=fio.json --config="$conf" --volume=load \
		--thread --rw=randwrite --bs=4k --iodepth=32 --time_based --runtime=1h >fio.log 2>&1 3>&- &
	pids[fio]=$!
	until_true live store '.roles.store.counters.ops_done > 2000'
	kill -STOP "${pids[fio]}"
	until_true all_answered
	slay store
	logged bridge 'session lost'
	kill -CONT "${pids[fio]}"
	finish fio
	[ "$status" -eq 1 ]
	knows_of_loss
	grep -q '"error" : 107' fio.json
	stop bridge
}

@test "the target is killed, and the job continues after errors: no memory is reused, fio ends" {
	volume
	on_volume --rw=randwrite --bs=4k --iodepth=32 --size=64m --loops=1000 --continue_on_error=all \
		--ignore_error=,107 &
	local fio=$!
	until_true live store '.roles.store.counters.ops_done > 2000'
	slay store
	wait "$fio"
	grep -q 'gantry: an IO has no answer and may still use its memory' fio.log || knows_of_loss
	stop bridge
}

@test "the gateway is killed and started again: with resume the job goes on, and all of its writes are verified" {
	need fault
	connect_options='resume = "1m";'
	# one of the last 400 writes is held until the gateway is killed, so that the job cannot end before
	store_stages='{ type = "fault"; only = "write"; delay = "1h"; delay_nth = 16000; }'
	bridge_connect='{ device = "back"; name = "store"; }'
	volume
	on_volume --rw=randwrite --bs=4k --size=32m --io_size=128m --iodepth=16 --verify=crc32c &
	local fio=$!
	until_true live store '.roles.store.stages[0].delayed_ops > 0'
	slay bridge
	serve bridge
	wait "$fio"
	status=0
	well '.jobs[0].write.total_ios > 8000' '.jobs[0].read.total_ios > 8000'
	stop bridge store
	holds store.json 'store.sessions_lost == 1'
}

# Each of 8 writes in flight is held by the target before a gateway is killed, and the other gateway has no other work: the job ends
# only if its session resumes on the other path each time.
@test "two gateways, each killed in turn: with resume the job goes on, and all of its writes are verified" {
	need fault
	connect_options='resume = "1m"; timeout = "300ms";'
	store_stages='{ type = "fault"; only = "write"; delay = "1h"; delay_nth = 512; }'
	two_gateways
	serve_all
	serve bridge2
	on_volume --rw=randwrite --bs=4k --size=64m --iodepth=8 --verify=crc32c &
	local fio=$!
	kill_in_turn 8 bridge bridge2 bridge bridge2
	wait "$fio"
	status=0
	well '.jobs[0].write.total_ios == 16384' '.jobs[0].read.total_ios == 16384'
	stop bridge store
	holds store.json 'store.sessions_lost == 4'
}

@test "IO that is never answered: the deadline of the connection ends it" {
	need fault
	connect_options='io_timeout = "500ms";'
	store_stages='{ type = "fault"; drop_nth = 1000; }'
	volume
	on_volume --rw=randread --bs=4k --iodepth=8 --time_based --runtime=1h
	refused 'Connection timed out'
	stop bridge store
}

@test "an error of the backend is an error of the job, or counted when the job says so" {
	need fault
	store_stages='{ type = "fault"; error_nth = 1000; error = "nospc"; }'
	volume
	on_volume --rw=randwrite --bs=4k --size=16m --iodepth=8
	refused 'No space left on device'
	stop bridge store
	store_stages='{ type = "fault"; error_nth = 1000; }'
	volume
	on_volume --rw=randwrite --bs=4k --size=16m --iodepth=8 --continue_on_error=io
	holds fio.json '.jobs[0].total_err == 4 and .jobs[0].first_error == 5 and .jobs[0].write.total_ios == 4096'
	stop bridge store
}

@test "a bit that is wrong in the target is found by --verify" {
	need fault
	store_stages='{ type = "fault"; only = "write"; corrupt_nth = 1000; }'
	volume
	on_volume --rw=randwrite --bs=4k --size=16m --iodepth=32 --verify=crc32c
	refused 'verify: bad .*(checksum|crc|magic|header)|crc32c: verify failed'
	stop bridge store
}
