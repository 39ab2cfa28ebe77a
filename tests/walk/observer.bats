#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Observers receive the progress of each role with work, and its end once. The test plugin watcher writes its calls to a file.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	[ -e "$top_builddir/tests/.libs/watcher.so" ] || skip "built without the test plugin watcher"
	extra=(-p "$top_builddir/tests/.libs")
	watch=(--set observers.0.type=watcher --set observers.0.path="$dir/calls")
}

teardown() {
	walk_teardown
}

# saw FILE STATE FILTER - the calls in FILE: the values grow; exactly one call reports an end, the last one, with this state
saw() {
	jq -es --arg state "$2" "def ends: .state == \"done\" or .state == \"failed\"; def grow(key): map(key) | . == sort;
		.[0].call == \"open\" and .[-1].call == \"close\" and (.[1:-1] |
			all(.call == \"progress\" and .role == \"load\") and grow(.elapsed_ns) and grow(.done) and grow(.ops) and
			map(select(ends)) == [.[-1]] and .[-1].state == \$state and ($3))" "$1" >/dev/null ||
		{ cat "$1" "$dir"/*.log; return 1; }
}

grows='length > 1 and .[-1].done > .[0].done and any(.state == "working")'

working() { # N - the observer has N calls about a role that works
	[ "$(grep -cs '"state": "working"' "$dir/calls" || true)" -ge "$1" ]
}

@test "a workload, with two observers: both see it to its end" {
	topology
	walk "${watch[@]}" --set observers.1.type=watcher --set observers.1.path="$dir/calls2" \
		--set roles.load.workload.ops=0 --set roles.load.workload.time=2500ms
	[ "$status" -eq 0 ]
	for file in calls calls2; do
		saw "$dir/$file" "done" "$grows and .[-1].unit == \"ns\" and .[-1].done == 2500000000"
		saw "$dir/$file" "done" ".[-1].target == 2500000000"
	done
	grep -qx '{"call": "open", "name": "observers\[1\]"}' "$dir/calls2"
	diff <(sed 1d "$dir/calls") <(sed 1d "$dir/calls2")
	holds "$report" ".roles.load.total.ops == $(jq -s '.[-2].ops' "$dir/calls")" \
		".roles.load.total.bytes == $(jq -s '.[-2].bytes' "$dir/calls")"
}

@test "a run of less than a second: the observer sees only its end" {
	topology
	walk "${watch[@]}" --set roles.load.workload.ops=10
	[ "$status" -eq 0 ]
	saw "$dir/calls" "done" '.[-1].done == 10 and .[-1].unit == "ops"'
}

@test "gantry copy: the unit is bytes" {
	need fault
	processes
	load_stages='{ type = "fault"; delay_nth = 1; delay = "50ms"; }'
	topology
	serve_all
	head -c 4M /dev/urandom >"$dir/in"
	run "$GANTRY" copy -p "$GANTRY_PLUGINS" "${extra[@]}" -c "$conf" "$dir/in" volume:load "${watch[@]}" \
		--set roles.load.copy.depth=1 --set roles.load.copy.block=64KiB
	echo "$output"
	[ "$status" -eq 0 ]
	saw "$dir/calls" "done" "$grows and .[-1].unit == \"bytes\" and .[-1].done == 4194304 and .[-1].target == 4194304"
	stop bridge store
}

@test "a run that fails" {
	need fault
	load_stages='{ type = "fault"; error_nth = 1500; }'
	topology
	walk "${watch[@]}" --set roles.load.workload.rate=1000
	[ "$status" -eq 1 ]
	saw "$dir/calls" failed "$grows and .[-1].unit == \"ops\" and .[-1].done < .[-1].target"
}

@test "a role without a session: it waits, then it has failed" {
	processes
	topology
	begin load "${watch[@]}" --set roles.load.connect.timeout=2s
	finish load
	[ "$status" -eq 1 ]
	saw "$dir/calls" failed 'length > 1 and (.[:-1] | all(.state == "waiting")) and all(.done == 0)'
}

@test "a run that a signal ends: done, before the target" {
	topology
	: >"$dir/calls"
	"$GANTRY" run -p "$GANTRY_PLUGINS" "${extra[@]}" "$conf" --json "${watch[@]}" --set roles.load.workload.ops=1000000000000 \
		>"$dir/load.json" 2>"$dir/load.log" 3>&- &
	pids[load]=$!
	until_true working 2
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	saw "$dir/calls" "done" "$grows and .[-1].done < .[-1].target"
}

@test "an observer that cannot be opened ends the run, and closes those before it" {
	topology
	walk "${watch[@]}" --set observers.1.type=watcher --set observers.1.path="$dir/missing/calls"
	[ "$status" -eq 1 ]
	[ ! -s "$report" ]
	says walk ': observers\[1\]: cannot open the observer: No such file or directory$'
	says walk "^gantry: $conf: cannot set up: No such file or directory$"
	[ "$(jq -r .call "$dir/calls" | tr '\n' ' ')" = "open close " ]
}

checked() { # TEXT STATUS OBSERVER... - gantry check reports TEXT for these observers, and opens none
	local text=$1 expected=$2
	shift 2
	topology
	printf 'observers = (\n%s\n);\n' "$*" >>"$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "${extra[@]}" "$conf"
	[[ "$status" -eq "$expected" && "$output" == *"$text"* && ! -e "$dir/calls" ]] || { echo "$status: $output"; return 1; }
}

@test "gantry check: faults have file and line, and no observer is opened" {
	topology
	local line=$(($(wc -l <"$conf") + 2)) path="path = \"$dir/calls\";"
	checked ': ok' 0 "{ type = \"watcher\"; $path }"
	checked "$conf:$line: observers[0]: \"watcher\" cannot be opened here: Input/output error" 2 \
		"{ type = \"watcher\"; $path fails_check = true; }"
	checked "$conf:$line: observers[0].colour: unknown key" 2 "{ type = \"watcher\"; $path colour = 1; }"
	checked "$conf:$line: observers[0].type: no plugin \"watchr\"" 2 "{ type = \"watchr\"; $path }"
	checked 'did you mean "watcher"? observer plugins there: ' 2 "{ type = \"watchr\"; $path }"
	checked 'memory.so: is a backend, not an observer' 2 '{ type = "memory"; }'
	checked "$conf:$line: observers[1].path: \"$dir/calls\" would be replaced" 2 \
		"{ type = \"watcher\"; $path }, { type = \"watcher\"; $path }"
	checked 'cannot use the directory' 2 "{ type = \"watcher\"; path = \"$dir/missing/calls\"; }"
	printf 'observers = { };\n' >"$dir/group"
	topology
	cat "$dir/group" >>"$conf"
	run -2 "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[[ "$output" == *": observers: is not a list; write ( { type = \"NAME\"; }, ... )"* ]]
}

@test "gantry plugins and gantry options list observers" {
	topology
	printf 'observers = ( { type = "watcher"; path = "x"; } );\n' >>"$conf"
	run -0 "$GANTRY" plugins -p "$top_builddir/tests/.libs" watcher
	[[ "$output" =~ watcher\ +observer\ +1\ +ABI ]]
	run -0 "$GANTRY" options -c "$conf" -p "$GANTRY_PLUGINS" "${extra[@]}"
	[[ "$output" == *"observers.0: writes its calls to a file"*"observers.0.path"* ]]
}
