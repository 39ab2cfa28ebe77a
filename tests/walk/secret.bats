#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A peer that knows the id of a session cannot end it: resume needs the secret, through each path to the target.

refusal='session: already open, with another secret .id=[0-9a-f]+.: close it there first'

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	processes
	[ -e "$top_builddir/tests/.libs/thief.so" ] || skip "built without the test plugin thief"
	extra=(-p "$top_builddir/tests/.libs")
}

teardown() {
	walk_teardown
}

to() { # NAME... - a connect entry for each service
	local name
	for name in "$@"; do
		echo "${sep:-}{ device = \"$(case $name in store*) echo back ;; *) echo front ;; esac)\"; name = \"$name\"; }"
		local sep=,
	done
}

thief() { # CONNECT [NAME] - the configuration of the role thief
	echo "${2:-thief} = { role = \"thief\"; connect = ( $1 ); };"
}

# The three attempts without the right secret, each with the reason.
rejected() { # NAME
	local refused='refused at hello: '
	[ "$(grep -c -E "thief: (no|a) secret.*: .*$refused(target: .*$refused)?$refusal" "$dir/$1.log")" -eq 3 ] ||
		{ cat "$dir"/*.log; return 1; }
}

steal() { # - of a session of its own, which the right secret does take over
	begin thief
	finish thief
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	rejected thief
	says thief 'thief: the right secret: accepted'
	says thief 'its client has connected again, with epoch 1003'
}

@test "a target rejects a wrong secret from a client that has a session there" {
	more_roles=$(thief "$(to store)")
	topology
	serve store
	steal
	stop store
	holds "$dir/store.json" 'store.sessions_refused == 3 and store.sessions_lost == 4'
}

@test "a gateway rejects a wrong secret and sends no request to its target" {
	more_roles=$(thief "$(to volume)")
	topology
	serve_all
	steal
	stop bridge store
	holds "$dir/bridge.json" 'bridge.sessions_refused == 3'
	holds "$dir/store.json" 'store.sessions_refused == 0 and store.sessions_opened == 2'
}

@test "a session resumes through a second gateway with the right secret, and not with a wrong one" {
	more_roles="bridge2 = { role = \"gateway\"; listen = { device = \"front\"; name = \"volume2\"; };
	            connect = $(to store); };
	            $(thief "$(to volume volume2)")"
	topology
	serve_all
	serve bridge2
	steal
	stop bridge2 bridge store
	holds "$dir/store.json" 'store.sessions_refused == 3 and store.sessions_opened == 5'
}

@test "a target rejects a wrong secret that does not come through the gateway of the session" {
	more_roles=$(thief "$(to volume store)")
	topology
	serve_all
	steal
	stop bridge store
}

@test "the second of two targets behind a gateway rejects a wrong secret" {
	bridge_connect="( $(to store store2) )"
	more_roles="store2 = { role = \"target\"; listen = { device = \"back\"; name = \"store2\"; };
	                     backend = { $store_backend }; };
	            $(thief "$(to volume store2)")"
	topology
	serve store
	serve store2
	serve bridge
	steal
	stop bridge store2 store
	holds "$dir/store2.json" '.roles.store2.counters | .sessions_refused == 3 and .sessions_opened == 5'
}

@test "two targets reject a wrong secret through a second gateway" {
	bridge_connect="( $(to store store2) )"
	more_roles="store2 = { role = \"target\"; listen = { device = \"back\"; name = \"store2\"; };
	                     backend = { $store_backend }; };
	            bridge2 = { role = \"gateway\"; listen = { device = \"front\"; name = \"volume2\"; };
	                      connect = ( $(to store store2) ); };
	            $(thief "$(to volume volume2)")"
	topology
	serve store
	serve store2
	serve bridge
	serve bridge2
	steal
	stop bridge2 bridge store2 store
}

@test "a wrong secret does not disturb a client that writes, and the client resumes after its gateway was killed" {
	connect_options='resume = "60s";'
	more_roles="$(thief "$(to volume)") $(thief "$(to store)" thief2)"
	topology
	serve_all
	hammer
	id=$("$GANTRY" stat --dir "$dir/stat" --json bridge | jq -r '.processes[0].roles.bridge.sessions[0].id')
	for role in thief thief2; do
		begin "$role" --set "roles.$role.id=$id"
		finish "$role"
		[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
		rejected "$role"
	done
	done=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((done + 1000))
	[ "$(grep -c -E 'session (lost|resumed)' "$dir/load.log")" -eq 0 ]
	slay bridge
	serve bridge
	logged load 'session resumed .*epoch=[2-9]'
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors == {}'
	stop bridge store
}

@test "a secret is in no log and in no report" {
	more_roles=$(thief "$(to volume)")
	topology
	serve_all
	begin thief
	finish thief
	stop bridge store
	secret=$(sed -n 's/.*thief: the session has the secret //p' "$dir/thief.log")
	[ "${#secret}" -eq 32 ]
	[ "$(cat "$dir"/*.log "$dir"/*.json | grep -c "$secret")" -eq 1 ] # only in what the test plugin logs
}
