#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A front end of vhost-user-blk uses a volume: the role serves its queue and exports its memory.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	. "$BATS_TEST_DIRNAME/vhost-lib.sh"
	vhost_setup
}

teardown() {
	walk_teardown
}

three_processes() {
	disk_options='serial = "twelve-12";'
	serve_disk
	guest verify
	grep -qx 'serial twelve-12' "$dir/guest.out"
	guest verify # a second front end
	ended
	holds "$dir/disk.json" '.roles.disk.counters.guest_requests_ops > 800' '.roles.disk.counters.guest_lists_ops > 100' \
		'.roles.disk.counters.guest_bounced_ops == 0' '.roles.disk.counters.front_ends_connected == 2'
	holds "$dir/store.json" 'store.list_bounces_ops == 0'
}

@test "reads, writes, flushes and the serial number over three processes" {
	three_processes
}

@test "event index: reads, writes, flushes and the serial number over three processes" {
	event_index three_processes
}

@test "packed ring: reads, writes, flushes and the serial number over three processes" {
	packed three_processes
}

@test "packed ring, event index: reads, writes, flushes and the serial number over three processes" {
	packed event_index three_processes
}

@test "blocks of 4096 bytes in a file, and few slots" {
	need file
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	disk_options='depth = 2;'
	serve_disk
	guest verify
	ended
	# without a serial number of its own the disk has the first digits of the UUID
	grep -qxE 'serial [0-9a-f]{20}' "$dir/guest.out"
	grep -qx "serial $(jq -r .roles.store.volume.uuid "$dir/store.json" | tr -d - | cut -c 1-20)" "$dir/guest.out"
}

@test "the volume grows while a guest uses it" {
	need file
	truncate -s 4M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	serve_disk
	guest resize "$dir/begun" &
	local pid=$!
	until_true test -e "$dir/begun"
	truncate -s 8M "$dir/volume"
	wait $pid
	grep -qx 'capacity 16384' "$dir/guest.out"
	ended
}

@test "the volume grows after its guest has lost the first of two gateways" {
	need file
	truncate -s 4M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	connect_options='resume = "30s"; timeout = "300ms";'
	processes
	two_gateways
	local gateways=$more_roles
	disk_connect=$load_connect
	machine
	more_roles="$more_roles $gateways"
	topology
	serve_all
	serve bridge2
	begin disk
	logged disk ' listening \(socket'
	slay bridge
	logged disk 'session resumed'
	guest resize "$dir/begun" &
	local pid=$!
	until_true test -e "$dir/begun"
	truncate -s 8M "$dir/volume"
	wait $pid
	grep -qx 'capacity 16384' "$dir/guest.out"
	stop disk bridge2 store
}

@test "a front end without a channel: its guest does not learn the new size" {
	need file
	truncate -s 4M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	serve_disk
	guest run "$dir/enough" &
	local pid=$!
	until_true live disk '.roles.disk.counters.guest_requests_ops > 100'
	truncate -s 8M "$dir/volume"
	logged disk 'new size of the volume cannot be reported to the front end: it has no channel .*bytes=8388608'
	touch "$dir/enough"
	wait $pid
	ended
}

@test "to two targets as one volume, which takes no lists: pieces that are no whole blocks are copied" {
	bridge_connect="( { device = \"back\"; name = \"store\"; }, { device = \"back\"; name = \"store2\"; } )"
	store_backend='type = "memory"; size = "512KiB"; block = "4KiB";'
	processes
	machine
	more_roles="$more_roles
		store2 = { role = \"target\"; listen = { device = \"back\"; name = \"store2\"; };
		           backend = { type = \"memory\"; size = \"16MiB\"; block = \"4KiB\"; }; };"
	topology
	serve store
	serve store2
	serve bridge
	begin disk
	logged disk ' listening \(socket'
	guest verify
	stop disk bridge store2 store
	holds "$dir/disk.json" '.roles.disk.counters.guest_bounced_ops > 100' '.roles.disk.counters.guest_lists_ops == 0'
}

zeroes() {
	serve_disk
	guest zeroes
	ended
	# the longest IO; a target that cannot map the memory has buffers, and limits it to 1 MiB
	grep -qx "$([ -n "$relays" ] && echo 2048 || echo 131072) sectors" "$dir/guest.out"
	holds "$dir/disk.json" '.roles.disk.counters.guest_failed_ops == 0' \
		'.roles.disk.counters | .guest_discards_ops > 30 and .guest_write_zeroes_ops > 30' \
		'.roles.disk.counters | .guest_discards_ops + .guest_write_zeroes_ops == 100'
}

@test "discards and writes of zeroes" {
	zeroes
}

@test "packed ring: discards and writes of zeroes" {
	packed zeroes
}

@test "discards and writes of zeroes of blocks of 4096 bytes in a file" {
	need file
	truncate -s 16M "$dir/volume"
	fallocate -n -p -o 0 -l 4096 "$dir/volume" || skip "the file system punches no holes"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	serve_disk
	guest zeroes
	guest segments
	ended
}

@test "discards and writes of zeroes that break the rules change nothing" {
	serve_disk
	guest segments
	grep -qx '23 segments' "$dir/guest.out"
	ended
	holds "$dir/disk.json" '.roles.disk.counters | .guest_discards_ops == 0 and .guest_write_zeroes_ops == 0'
}

@test "a disk that is read-only offers neither discards nor writes of zeroes" {
	disk_options='read_only = true;'
	serve_disk
	guest no-zeroes
	ended
	holds "$dir/disk.json" '.roles.disk.counters | .guest_discards_ops == 0 and .guest_write_zeroes_ops == 0'
}

broken_rings() {
	serve_disk
	guest hostile
	grep -qx '20 rings' "$dir/guest.out"
	[ "$(grep -c 'queue stopped: invalid ring: ' "$dir/disk.log")" -ge 10 ] # the log is limited
	ended
	holds "$dir/disk.json" '.roles.disk.counters.guest_broken_rings == 20'
}

@test "rings that break the rules" {
	broken_rings
}

@test "event index: rings that break the rules" {
	event_index broken_rings
}

@test "packed ring: rings that break the rules" {
	packed broken_rings
}

@test "packed ring, event index: rings that break the rules" {
	packed event_index broken_rings
}

@test "messages that break the rules" {
	serve_disk
	guest messages
	grep -qx '22 messages' "$dir/guest.out"
	says disk 'front end: features that were not offered \(request=SET_FEATURES, type=2\): connection closed'
	ended
}

@test "descriptors that are no eventfds fail, and the former ones stay in use" {
	serve_disk
	guest descriptors
	says disk 'front end: descriptor is not an eventfd \(request=SET_VRING_KICK, type=12\): request failed'
	ended
}

copied() {
	serve_disk
	mark store bridge disk
	guest verify
	guest zeroes
	guest replace
	guest short
	clean store bridge disk
	ended
	holds "$dir/disk.json" '.roles.disk.counters.guest_lists_ops == 0' '.roles.disk.counters.guest_bounced_ops > 500' \
		'.roles.disk.counters.guest_bounced_bytes > 1000000'
	holds "$dir/store.json" 'store.list_bounces_ops == 0'
}

@test "memory that is not sealed is copied" {
	copies copied
}

@test "event index: memory that is not sealed is copied" {
	copies event_index copied
}

@test "packed ring, event index: memory that is not sealed is copied" {
	copies packed event_index copied
}

@test "packed ring: memory that is not sealed is copied" {
	copies packed copied
}

@test "memory that is not sealed is copied: rings that break the rules" {
	copies broken_rings
}

@test "memory that is not sealed is not exported" {
	disk_options='memory = "copy";'
	serve_disk
	VIRTIO_UML=1 "$program" "$disk" run "$dir/end" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true live disk '.roles.disk.counters.guest_requests_ops > 100'
	grep -q memfd:guest "/proc/${pids[disk]}/maps"
	run ! grep memfd:guest "/proc/${pids[bridge]}/maps" "/proc/${pids[store]}/maps"
	: >"$dir/end"
	finish guest
	[ "$status" -eq 0 ]
	ended
}

late_call() {
	serve_disk
	guest late-call
	ended
}

@test "a descriptor for interrupts that arrives after the queue has started" {
	late_call
}

@test "event index: a descriptor for interrupts that arrives after the queue has started" {
	event_index late_call
}

@test "packed ring: a descriptor for interrupts that arrives after the queue has started" {
	packed late_call
}

@test "packed ring, event index: a descriptor for interrupts that arrives after the queue has started" {
	packed event_index late_call
}

blocking() {
	serve_disk
	guest blocking
	ended
}

@test "eventfds that block do not stop a lane" {
	blocking
}

@test "event index: eventfds that block do not stop a lane" {
	event_index blocking
}

@test "packed ring: eventfds that block do not stop a lane" {
	packed blocking
}

events() {
	serve_disk
	event_index guest events
	ended
}

@test "event index: kicks and interrupts only when they are asked for" {
	events
}

@test "packed ring, event index: kicks and interrupts only when they are asked for" {
	packed events
}

@test "memory without the ring of a queue that runs ends the connection" {
	serve_disk
	guest lost-ring
	says disk 'front end: .* not in one region \(request=SET_MEM_TABLE, type=5\): connection closed'
	ended
}

@test "a front end that ends while its memory is allocated is noticed" {
	serve_disk
	guest gone
	ended
}

@test "memory for requests in flight is created once" {
	serve_disk
	mark disk
	guest inflight
	clean disk
	ended
}

half_broken() {
	serve_disk
	guest half-broken
	ended
}

@test "a request before a broken one is signalled" {
	half_broken
}

@test "event index: a request before a broken one is signalled" {
	event_index half_broken
}

@test "packed ring: a request before a broken one is signalled" {
	packed half_broken
}

@test "packed ring, event index: a request before a broken one is signalled" {
	packed event_index half_broken
}

needs_reset() {
	serve_disk
	guest status
	says disk 'front end: protocol feature was not accepted \(request=GET_STATUS, type=40\): connection closed'
	ended
	holds "$dir/disk.json" '.roles.disk.counters.guest_broken_rings == 2'
}

@test "a device with a broken ring needs a reset, and works after it" {
	needs_reset
}

@test "packed ring, event index: a device with a broken ring needs a reset, and works after it" {
	packed event_index needs_reset
}

left_over() {
	serve_disk
	guest left-over
	ended
}

@test "a queue that stops returns requests that an earlier role left in flight" {
	left_over
}

@test "event index: a queue that stops returns requests that an earlier role left in flight" {
	event_index left_over
}

@test "packed ring: a queue that stops returns requests that an earlier role left in flight" {
	packed left_over
}

@test "packed ring, event index: a queue that stops returns requests that an earlier role left in flight" {
	packed event_index left_over
}

@test "memory that is not sealed is refused, with the option of QEMU" {
	serve_disk
	guest memory
	says disk 'not sealed against shrinking and growing.*memory-backend-memfd,share=on'
	ended
}

@test "memory in a file that is too large gets no pages" {
	processes
	if [ -n "$relays" ]; then
		front_device="$front_device max_region_bytes = \"64MiB\";"
	else
		device_options="$device_options max_bytes = \"64MiB\";"
	fi
	machine
	serve_all
	begin disk
	logged disk ' listening \(socket'
	guest large
	says disk 'guest memory rejected: .*larger than a server accepts.*limit='
	ended
}

@test "memory that is larger than the last server accepts gets no pages" {
	processes
	machine
	serve store --set roles.store.listen.max_region_bytes=64MiB
	serve bridge
	begin disk
	logged disk ' listening \(socket'
	guest slots-large
	says disk 'a server accepts less .*bytes=1073741824, limit=5[0-9]{7}\): raise listen.max_region_bytes'
	ended
}

@test "a server that accepts fewer regions than the role needs says so" {
	processes
	disk_options='memory_slots = 20;'
	machine
	serve_all
	begin disk
	finish disk
	[ "$status" -eq 1 ]
	says disk 'too many regions \(regions=21, limit listen.max_regions=16\)'
	stop bridge store
}

replaced() {
	serve_disk
	mark store bridge disk
	guest replace
	clean store bridge disk
	ended
}

@test "the guest memory is replaced while the queue runs" {
	replaced
}

@test "event index: the guest memory is replaced while the queue runs" {
	event_index replaced
}

@test "packed ring: the guest memory is replaced while the queue runs" {
	packed replaced
}

@test "packed ring, event index: the guest memory is replaced while the queue runs" {
	packed event_index replaced
}

slots() {
	serve_disk
	mark store bridge disk
	guest slots
	clean store bridge disk
	ended
}

@test "regions of the guest memory come and go while the queue runs" {
	slots
}

@test "event index: regions of the guest memory come and go while the queue runs" {
	event_index slots
}

@test "packed ring: regions of the guest memory come and go while the queue runs" {
	packed slots
}

@test "a region goes when its requests are returned, and others continue" {
	store_stages='{ type = "fault"; only = "write"; delay = "1s"; delay_nth = 1; }'
	need fault
	serve_disk
	guest slots-busy
	ended
}

@test "a region goes when the requests that wait for a slot are returned" {
	store_stages='{ type = "fault"; delay = "500ms"; delay_nth = 1; }'
	need fault
	disk_options='depth = 1; drain_timeout = "50ms";'
	serve_disk
	guest slots-waiting
	says disk 'drain_timeout=50 ms\): the front end keeps waiting: the front end keeps no memory for requests in flight'
	ended
}

@test "regions that break the rules" {
	serve_disk
	mark store bridge disk
	guest slots-hostile
	says disk 'guest memory rejected: too many regions \(limit memory_slots=8\)'
	says disk 'front end: regions overlap \(request=ADD_MEM_REG, type=37\): request failed'
	clean store bridge disk
	ended
}

lowest_free_fd() { # of the role
	local fd=0
	while [ -e "/proc/${pids[disk]}/fd/$fd" ]; do fd=$((fd + 1)); done
	echo "$fd"
}

ticks() { # processor time of the role
	awk '{ print $14 + $15 }' "/proc/${pids[disk]}/stat"
}

@test "a role without a free descriptor waits, and accepts the front end later" {
	command -v prlimit >/dev/null || skip "prlimit is not installed"
	serve_disk
	prlimit --pid "${pids[disk]}" --nofile="$(lowest_free_fd):"
	"$program" "$disk" verify >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	logged disk 'front end cannot be accepted \(socket=.*\): Too many open files'
	before=$(ticks)
	sleep 2 # lint: allowed, the time in which the role must not use the processor
	echo "ticks: $(($(ticks) - before))"
	[ $(($(ticks) - before)) -lt 50 ]
	[ "$(grep -c 'cannot be accepted' "$dir/disk.log")" -le 5 ]
	prlimit --pid "${pids[disk]}" --nofile=1024:
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
	ended
}

turns() { # turns of the lane of the role
	"$GANTRY" stat --dir "$dir/stat" --json disk | jq '[.processes[0].threads[].turns] | add'
}

waiting_lane() {
	disk_options='depth = 2;'
	connect_options='resume = "60s";'
	serve_disk
	"$program" "$disk" many "$dir/end" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true live disk '.roles.disk.counters.guest_requests_ops > 30'
	slay bridge
	logged disk 'session lost'
	until_true live disk '.roles.disk.client_sessions[0].state != "running"'
	before=$(turns)
	sleep 2 # lint: allowed, the time in which the lane must not turn
	echo "turns: $(($(turns) - before))"
	[ $(($(turns) - before)) -lt 200 ]
	serve bridge
	logged disk 'session resumed'
	: >"$dir/end"
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
	stop disk bridge store
}

@test "a lane whose requests wait for a slot sleeps" {
	waiting_lane
}

@test "event index: a lane whose requests wait for a slot sleeps" {
	event_index waiting_lane
}

@test "packed ring: a lane whose requests wait for a slot sleeps" {
	packed waiting_lane
}

@test "the session is lost while requests wait for a slot: the role ends" {
	store_stages='{ type = "fault"; delay = "20ms"; delay_nth = 1; }'
	need fault
	disk_options='depth = 2;'
	serve_disk
	"$program" "$disk" many "$dir/end" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true live disk '.roles.disk.counters.guest_requests_ops > 30'
	slay bridge
	finish disk
	[ "$status" -eq 1 ]
	finish guest
	[ "$status" -eq 0 ]
	grep -q ' then the device has disconnected$' "$dir/guest.out"
	stop store
}

@test "over loop, in one process" {
	machine
	begin disk --role bridge --role store
	logged disk ' listening \(socket'
	guest verify
	guest hostile
	stop disk
	holds "$dir/disk.json" '.roles.disk.counters.guest_broken_rings == 20' 'store.ops_failed == 0'
}
