#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# conf.sh - each shipped configuration passes `gantry check` and, if one process can run it, a run of a few hundred IOs; the
# commands in its comment work
conf=$top_srcdir/conf
. "$top_srcdir/tests/tap.sh"
chmod 700 "$tmp"
loopback=127.$(($$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
cd "$tmp" || exit 1

gantry()
{
	"$GANTRY" "$@" --plugin-dir "$GANTRY_PLUGINS" >"$tmp/out" 2>&1
}

# members FILE SECTION - names in that group of a configuration
members()
{
	awk -v s="$2" '$0 ~ "^" s " = " { on = 1; next } /^};/ { on = 0 } on && /^\t[a-z0-9]+ = / { print $1 }' "$1"
}

# overrides FILE - arguments that limit a run, and place its sockets in the directory of the test
overrides()
{
	for role in $(members "$1" roles); do
		grep -A 2 "^	$role = " "$1" | grep -q '"initiator"' && echo "--set roles.$role.workload.ops=400"
	done
	for device in $(members "$1" devices); do
		grep "^	$device = " "$1" | grep -q '"shm-comch"' && echo "--set devices.$device.dir=$tmp"
	done
	# an address of this test only: other builds can run the same configuration
	sed -n "s/.*services = { \([a-z0-9-]*\) = \"127\.0\.0\.1:\([0-9]*\)\".*/\1 \2/p" "$1" | while read -r service port; do
		echo "--set devices.nic0.services.$service=$loopback:$port"
	done
}

# commands FILE - the commands of its comment, as arguments of gantry, without their explanations
commands()
{
	sed -n 's/^#	gantry //p' "$1" | sed 's/    *[^ -].*//'
}

# try_command FILE WORD... - one command of the comment: "run" is only checked
try_command()
{
	file=$1 name=${1##*/} command=$2
	shift 2
	# the loop keeps the order of the arguments and drops the name of the file
	seen=no
	for word in "$@"; do
		shift
		if [ "$word" = "$name" ]; then seen=yes; else set -- "$@" "$word"; fi
	done
	case $command in
	run | check) [ $seen = yes ] && gantry check "$file" "$@" $sockets ;;
	copy) [ $seen = yes ] && [ "$1" = -c ] && [ $# -eq 3 ] ;;
	stat | devices) gantry "$command" --help ;;
	*) false ;;
	esac
}

# run_servers FILE ARGUMENT... - run a configuration without an initiator until its disk can be used; then stop it
run_servers()
{
	: >"$tmp/out"
	"$GANTRY" run "$@" --plugin-dir "$GANTRY_PLUGINS" >"$tmp/out" 2>&1 &
	timeout 60 tail -n +1 -s 0.02 -f --pid=$! "$tmp/out" 2>/dev/null | grep -m1 -q ' listening (socket='
	kill -TERM $!
	wait $!
}

for file in "$conf"/*.conf; do
	name=${file##*/}
	missing=
	for plugin in $(sed -nE 's/#.*//; s/.*(role|transport|type) = "([a-z-]+)".*/\2/p' "$file"); do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || missing="$missing $plugin"
	done
	if [ -n "$missing" ]; then
		skipped "$name" "not built:$missing"
		continue
	fi
	args=$(overrides "$file")
	sockets=$(echo "$args" | grep 'devices\.' | tr '\n' ' ')
	gantry check "$file" $sockets
	verdict $? "$name passes gantry check" "$tmp/out"
	if grep -q '^[^#]*192\.0\.2\.' "$file"; then
		skipped "$name runs" "its addresses and its RDMA device are examples"
	elif grep -q 'role = "initiator"' "$file"; then
		gantry run "$file" $args
		verdict $? "$name runs" "$tmp/out"
	else
		run_servers "$file" $args
		verdict $? "$name runs until it is stopped" "$tmp/out"
	fi
	commands "$file" >"$tmp/commands"
	while read -r line; do
		# shellcheck disable=SC2086 # words
		try_command "$file" $line </dev/null
		verdict $? "$name: gantry $line" "$tmp/out"
	done <"$tmp/commands"
done

# roles FILE - its section roles, without comments
roles()
{
	sed -n '/^	*#/d; /^roles = {/,/^};/p' "$1"
}

for other in rdma rxe tcp; do
	[ "$(roles "$conf/three-processes.conf")" = "$(roles "$conf/three-processes-$other.conf")" ]
	verdict $? "three-processes-$other.conf has the roles of three-processes.conf"
done
done_testing
