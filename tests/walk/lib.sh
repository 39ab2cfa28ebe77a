# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# lib.sh - functions of the walk tests. A bats file defines
#	setup() { . "$BATS_TEST_DIRNAME/lib.sh"; walk_setup; }
#	teardown() { walk_teardown; }
# and then: topology, walk (all roles in one process) or begin, stop, finish (a process for each role), holds (a report).

# inputs of `topology`, to be set before its call
transport=loop
device_options=
# a leg over another transport: the device of the server, the device of the client if it is another one, and the service
front_device=
front_far=
volume_at='name = "volume";'
back_device=
back_far=
store_at='name = "store";'
runtime_options=
store_backend='type = "memory"; size = "16MiB";'
load_stages=
bridge_stages=
store_stages=
connect_options=
listen_options=
more_roles=
bridge_connect=
load_connect=
relays= # data passes through the gateway
seconds=60 # longest wait for an event, on a busy machine

walk_setup() {
	umask 022
	dir=$BATS_TEST_TMPDIR
	conf=$dir/walk.conf
	report=$dir/report.json
	extra=()
	declare -gA pids=() where=() # where: network namespace of a role
	command -v jq >/dev/null || skip "jq is not installed"
	need target gateway initiator memory loop
}

# Ends only processes that this file started, by their pids.
walk_teardown() {
	local name
	for name in "${!pids[@]}"; do
		kill -CONT "${pids[$name]}" 2>/dev/null || true
		kill -KILL "${pids[$name]}" 2>/dev/null || true
	done
	wait 2>/dev/null
}

need() { # PLUGIN...
	local plugin
	for plugin in "$@"; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
}

# Test plugins of this directory, which return wrong data or lose IOs on purpose.
need_liar() {
	[ -e "$top_builddir/tests/.libs/liar.so" ] || skip "built without the test plugin liar"
	extra=(-p "$top_builddir/tests/.libs")
}

processes() { # from here on, run a process for each role
	need shm-comch
	transport=shm-comch
	device_options="dir = \"$dir/run\";"
	# shellcheck disable=SC2086 # words
	[ -z "${WALK_TCP:-}" ] || [ -n "$relays" ] || tcp $WALK_TCP
}

# other_user_setup [PROGRAM]... - walk_setup with a process of another user, which needs root. Sets the uid `nobody`, and puts
# the configuration into the directory `open`, which the other user can reach. Skips the test if that user cannot run PROGRAM.
other_user_setup() {
	local program
	nobody=65534
	walk_setup
	[ "$(id -u)" -eq 0 ] || skip "only root can become another user"
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	for program in "$GANTRY" "$@"; do
		as_other_user test -x "$program" -a -r "$GANTRY_PLUGINS/shm-comch.so" || skip "another user cannot reach the build"
	done
	processes
	open=$(mktemp -d /tmp/gantry-walk.XXXXXX)
	chmod 711 "$open"
	conf=$open/walk.conf
}

other_user_teardown() {
	walk_teardown
	[ -z "${open:-}" ] || rm -r "$open"
}

as_other_user() { # COMMAND... - run the command as the other user
	setpriv --reuid="$nobody" --regid="$nobody" --clear-groups "$@"
}

# tcp LEG... - from here on, run a process for each role, and these legs over TCP: front, back. The address belongs to this test.
tcp() {
	local leg name port=4791 services='' address=127.$((BASHPID >> 16)).$((BASHPID >> 8 & 255)).$((BASHPID & 255))
	relays=true
	processes
	need tcp
	for name in volume store store2 other; do
		services="$services $name = \"$address:$((port++))\";"
	done
	for leg in "$@"; do
		printf -v "${leg}_device" 'transport = "tcp"; auth = "none"; services = { %s };' "$services"
	done
}

topology() {
	local same="transport = \"$transport\"; $device_options"
	local load_on=front${front_far:+_far} bridge_on=back${back_far:+_far}
	local to=${bridge_connect:-"{ device = \"$bridge_on\"; $store_at $connect_options }"}
	cat >"$conf" <<-END
		runtime = { stat_dir = "$dir/stat"; log = "info"; $runtime_options };
		devices = {
		  front = { ${front_device:-$same} };
		  back = { ${back_device:-$same} };
		  ${front_far:+front_far = { $front_far \};}
		  ${back_far:+back_far = { $back_far \};}
		};
		roles = {
		  store = { role = "target"; listen = { device = "back"; $store_at $listen_options };
		            backend = { $store_backend }; stages = ( $store_stages ); };
		  bridge = { role = "gateway"; listen = { device = "front"; $volume_at $listen_options };
		             connect = $to; stages = ( $bridge_stages ); };
		  load = { role = "initiator"; connect = ${load_connect:-"{ device = \"$load_on\"; $volume_at $connect_options \}"};
		           workload = { pattern = "randrw"; depth = 16; time = "0s"; ops = 5000; size = "1MiB"; verify = "stamp"; };
		           stages = ( $load_stages ); };
		  $more_roles
		};
	END
}

# The initiator connects to the gateways bridge and bridge2, which both connect to the target.
two_gateways() {
	load_connect="( { device = \"front\"; name = \"volume\"; $connect_options },"
	load_connect+=' { device = "front"; name = "other"; timeout = "300ms"; } )'
	more_roles='bridge2 = { role = "gateway"; listen = { device = "front"; name = "other"; };
	            connect = { device = "back"; name = "store"; }; };'
	topology
}

# The gateway bridge has two paths to the target: by the gateways bridge2 and bridge3.
two_paths() {
	bridge_connect='( { device = "front"; name = "other"; timeout = "300ms"; },'
	bridge_connect+=' { device = "front"; name = "store2"; timeout = "300ms"; } )'
	more_roles='bridge2 = { role = "gateway"; listen = { device = "front"; name = "other"; };
	            connect = { device = "back"; name = "store"; }; };
	            bridge3 = { role = "gateway"; listen = { device = "front"; name = "store2"; };
	            connect = { device = "back"; name = "store"; }; };'
	topology
	sed -i '/role = "gateway"; listen = .*"volume"/s/role = "gateway";/& mode = "failover";/' "$conf"
}

# -- one process --

walk() { # ARGUMENT... - run all roles; sets status
	status=0
	timeout -k 5 "$seconds" "$GANTRY" run -p "$GANTRY_PLUGINS" "${extra[@]}" "$conf" --json "$@" \
		>"$report" 2>"$dir/walk.log" 3>&- || status=$?
}

# -- a process for each role --

begin() { # NAME [ARGUMENT...] - start the role NAME; its report goes to NAME.json, its log to NAME.log
	local name=$1
	shift
	: >"$dir/$name.log"
	# shellcheck disable=SC2086 # words
	${where[$name]:+ip netns exec ${where[$name]}} "$GANTRY" run -p "$GANTRY_PLUGINS" "${extra[@]}" "$conf" \
		--role "$name" --json "$@" \
		>"$dir/$name.json" 2>>"$dir/$name.log" 3>&- &
	pids[$name]=$!
}

serve() { # NAME [ARGUMENT...] - begin a server and wait until it listens
	begin "$@"
	logged "$1" ' listening '
}

serve_all() {
	serve store
	serve bridge
}

logged() { # NAME PATTERN - wait until the log of a role that runs has it
	timeout "$seconds" tail -n +1 -s 0.02 -f --pid="${pids[$1]}" "$dir/$1.log" 2>/dev/null | grep -m1 -E -q -- "$2" && return 0
	echo "no \"$2\" in the log of $1:"
	cat "$dir/$1.log"
	return 1
}

finish() { # NAME - wait until it ends; sets status
	status=0
	timeout "$seconds" tail -s 0.02 -f --pid="${pids[$1]}" /dev/null 3>&- || { echo "$1 does not end"; stuck; return 1; }
	wait "${pids[$1]}" || status=$?
	unset "pids[$1]"
}

stuck() { # print the state of roles that make no progress: two reports of each, and where their threads wait
	local name
	for _ in 1 2; do
		"$GANTRY" stat --dir "$dir/stat" --json | jq -c '.processes[] | .roles, .threads'
	done
	for name in "${!pids[@]}"; do
		(cd "/proc/${pids[$name]}/task" && grep -s . ./*/wchan ./*/schedstat) | sed "s/^/$name /"
	done
	tail -n 20 "$dir"/*.log
	cat /proc/loadavg
}

stop() { # NAME... - end each by SIGTERM; it must exit with status 0
	local name
	for name in "$@"; do
		kill -TERM "${pids[$name]}"
		finish "$name"
		[ "$status" -eq 0 ] || { echo "$name: exit status $status"; cat "$dir/$name.log"; return 1; }
	done
}

until_true() { # COMMAND... - repeat the command until it succeeds
	local end=$((SECONDS + seconds))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "still fails after $seconds s: $*"; return 1; }
		read -rt 0.02 <><(:) || : # waits without using the processor
	done
}

live() { # NAME FILTER - apply the filter to the report of a running role
	"$GANTRY" stat --dir "$dir/stat" --json "$1" 2>/dev/null | jq -e "$defs .processes[0] | $2" >/dev/null
}

busy() { # NAME [N] - wait until that initiator has completed N IOs
	until_true live "$1" ".roles.$1.completed > ${2:-1000}"
}

# -- checks --

# Definitions for jq filters: `server` selects the counters of a server.
defs='def load: .roles.load; def load2: .roles.load2; def store: .roles.store.counters; def store2: .roles.store2.counters;
	def bridge: .roles.bridge.counters; def front_bytes: (.devices.front // .devices.front_far).counters.payload_bytes;
	def back_bytes: (.devices.back // .devices.back_far).counters.payload_bytes; '

holds() { # FILE FILTER... - the report must satisfy each filter
	local file=$1 filter all=true
	shift
	for filter in "$@"; do
		all="$all and ($filter)"
	done
	jq -e "$defs $all" "$file" >/dev/null 2>&1 && return 0
	for filter in "$@"; do
		jq -e "$defs $filter" "$file" >/dev/null 2>&1 || echo "does not hold: $filter"
	done
	jq . "$file" || cat "$file"
	tail -n 20 "$dir"/*.log
	return 1
}

# The initiator NAME in report FILE has no failed and no doubled IO, and no wrong answer.
sound() { # FILE NAME
	once "$1" "$2"
	holds "$1" '.result == "ok"' ".roles.$2.errors == {}" ".roles.$2.quarantined == 0" "$(findings "$2") == 0" \
		".roles.$2.verify == null or .roles.$2.verify.checked > 0"
}

findings() { # NAME - print a filter: the number of wrong answers of that initiator
	echo "(.roles.$1.verify // {} | .wrong_block + .stale + .torn + .corrupt + .missing + .foreign // 0)"
}

# Each IO completed exactly once, with any status.
once() { # FILE NAME
	holds "$1" ".roles.$2.submitted == .roles.$2.completed" ".roles.$2.submitted > 0" \
		".roles.$2.counters.double_completions == 0"
}

says() { # NAME PATTERN - the log has a matching line
	grep -E -q -- "$2" "$dir/$1.log" || { echo "not in the log: $2"; cat "$dir/$1.log"; return 1; }
}

# -- a workload, and the reports of all processes about it --

load_well() { # [ARGUMENT...] - run the initiator to its end
	begin load "$@"
	finish load
	[ "$status" -eq 0 ] || { tail -n 20 "$dir"/*.log; return 1; }
	sound "$dir/load.json" load
}

# Print a filter: no data passed through the gateway; over TCP, each byte that the target moved passed through it once.
passed() {
	local bytes=0
	[ -z "$relays" ] || bytes=$(jq "$defs back_bytes" "$dir/store.json")
	echo "front_bytes == 0 and back_bytes == $bytes"
}

# After the end of all processes: both ends counted the same IOs, and the data took the shortest way.
agree() { # COUNT - the number of IOs that the initiators completed
	holds "$dir/store.json" "store.ops_done == $1" 'store.ops_failed == 0' 'store.double_completions == 0' \
		'store.sessions_lost == 0'
	holds "$dir/bridge.json" "bridge.ops_done == $1" 'bridge.ops_failed == 0' \
		'bridge.double_completions == 0' 'bridge.late_replies == 0' 'bridge.sessions_lost == 0' \
		"$(passed)"
	nothing_left
	[ -z "$(ls "$dir/stat")" ]
}

completed() { # NAME
	jq ".roles.$1.completed" "$dir/$1.json"
}

# -- one of the processes is killed --

hammer() { # run endless verified random writes on two lanes
	begin load --set roles.load.lanes=2 --set roles.load.workload.ops=0 --set roles.load.workload.read_percent=10 \
		--set roles.load.workload.depth=32
	busy load
}

slay() { # NAME - kill it, and set died
	died=$(now_ms)
	kill -KILL "${pids[$1]}"
	wait "${pids[$1]}" || true
	unset "pids[$1]"
}

# Kill each gateway of two_gateways when the stage fault of the target holds N more writes, which are all that the client has in
# flight. The client makes progress only on the path of the other gateway: a killed one starts again when the next N are held.
kill_in_turn() { # N NAME...
	local n=$1 held=0 name last=
	shift
	for name in "$@"; do
		held=$((held + n))
		until_true live store ".roles.store.stages[0].delayed_ops >= $held"
		[ -z "$last" ] || serve "$last"
		slay "$name"
		last=$name
	done
}

# The initiator reports the loss: exit status 1, each IO completed once, those in flight as failed. On a busy machine all answers
# may have arrived without being polled yet: then no IO was in flight.
load_lost() {
	finish load
	[ "$status" -eq 1 ]
	once "$dir/load.json" load
	holds "$dir/load.json" '.result == "failed"' 'load.completed > 1000' \
		"$(findings load) == 0" 'load.errors | keys - ["SESSION_LOST", "refused"] == []'
}

# -- times, and resources of a process --

now_ms() {
	echo "${EPOCHREALTIME%???}" | tr -d .
}

# The first line of NAME's log that matches PATTERN was written at most LIMIT ms after BEGIN; prints the time that it took.
within() { # NAME PATTERN BEGIN LIMIT
	local stamp took
	logged "$1" "$2" || return 1
	stamp=$(grep -m1 -E -- "$2" "$dir/$1.log" | cut -d' ' -f1)
	took=$(($(date -d "$stamp" +%s%3N) - $3))
	echo "# $1 knew after $took ms" >&3
	[ "$took" -le "$4" ] || { echo "$1 knew after $took ms only"; return 1; }
}

fds() { # NAME
	find "/proc/${pids[$1]}/fd" -type l -printf '%l\n' 2>/dev/null | sed 's/[0-9]*//g' | sort
}

maps() { # NAME - how many mappings of memory that is shared
	grep -c memfd "/proc/${pids[$1]}/maps" || true
}

# Remember what servers hold; later: they hold no more than that.
mark() { # NAME...
	local name
	for name in "$@"; do
		fds "$name" >"$dir/$name.fds"
		maps "$name" >"$dir/$name.maps"
	done
}

as_marked() { # NAME
	[ "$(fds "$1")" = "$(cat "$dir/$1.fds")" ] && [ "$(maps "$1")" = "$(cat "$dir/$1.maps")" ]
}

clean() { # NAME... - they hold what they held
	local name
	for name in "$@"; do
		until_true as_marked "$name" || { fds "$name" | diff "$dir/$name.fds" -; maps "$name"; return 1; }
	done
}

nothing_left() { # after all have ended: no sockets, no locks
	[ -z "$(find "$dir" -type s)" ] || { find "$dir" -type s; return 1; }
}

# recovers - work goes on after an event: a thousand more IOs complete, and all roles end, the initiator with verified data
recovers() {
	local before
	before=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((before + 1000))
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors == {}' 'load.quarantined == 0'
	stop bridge store
	nothing_left
}
