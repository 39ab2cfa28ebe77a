#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# booted.sh - runs in a virtual machine that systemd has booted, with the packages gantry, gantry-doc and gantry-metrics installed:
# the units of gantry do what gantry(1) says under SERVICES. The volume is that of three-processes.conf, with each role in an
# instance. Prints TAP; ends after the first failure, with what systemd and the instances have logged.
set -u
example=/usr/share/doc/gantry/conf/three-processes.conf
n=0 tmp=$(mktemp -d) || exit 1

# ok WHAT COMMAND... - the command succeeds
ok()
{
	local what=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $n - $what"
		return
	fi
	echo "not ok $n - $what"
	{
		cat "$tmp/log"
		ls -la /run/gantry
		systemctl status --no-pager --lines 0 'gantry*'
		journalctl --no-pager --boot --lines 60
	} 2>&1 | sed 's/^/# /'
	exit 1
}

# await COMMAND... - wait until the command succeeds, for at most two minutes
await()
{
	local end=$((SECONDS + 120))
	until "$@"; do
		[ $SECONDS -lt $end ] || return
		read -rt 0.1 <><(:) || :
	done
}

# property UNIT NAME - print a property of the unit
property()
{
	systemctl show --property "$2" --value "$1"
}

# is UNIT NAME VALUE - the property of the unit has this value
is()
{
	echo "$1: $2=$(property "$1" "$2")"
	[ "$(property "$1" "$2")" = "$3" ]
}

# role NAME - print the example with this role alone
role()
{
	sed "/^roles = {\$/,\$ { /^roles = {\$/b; /^};\$/b; /^\t$1 = {/,/^\t};/!d }" $example
}

# as_gantry COMMAND... - run the command as the user of the units, with their runtime directory
as_gantry()
{
	runuser -u gantry -- env XDG_RUNTIME_DIR=/run "$@"
}

# works - an initiator of the user gantry writes, reads and verifies data of the volume, through the instances bridge and store
works()
{
	role load >/etc/gantry/load.conf
	as_gantry gantry run /etc/gantry/load.conf --json --set roles.load.workload.time=2s >"$tmp/report" &&
		grep '"result": "ok"' "$tmp/report" && grep '"corrupt": 0' "$tmp/report"
}

# logs LEVEL - the instance store has this log level
logs()
{
	as_gantry gantry ctl --pid "$(property gantry@store MainPID)" options >"$tmp/options" &&
		sed -n '/"path": "runtime.log",/{n;p;}' "$tmp/options" | grep "\"$1\""
}

# reloads LEVEL - write this log level to the configuration of the instance store, and reload it
reloads()
{
	sed -i "s/log = \".*\"/log = \"$1\"/" /etc/gantry/store.conf
	systemctl reload gantry@store || return
	logs "$1" && is gantry@store NRestarts 0
}

# keeps_options - a reload of a configuration with a fault fails, and changes nothing
keeps_options()
{
	cp /etc/gantry/store.conf "$tmp/store.conf"
	sed -i 's/log = ".*"/log = "loud"/' /etc/gantry/store.conf
	! systemctl reload gantry@store && logs debug || return
	cp "$tmp/store.conf" /etc/gantry/store.conf
	journalctl --boot --unit gantry@store | grep 'write one of'
}

# restricts UNIT - the running unit has a filter of system calls, and its exposure is at most 2.0
restricts()
{
	local pid
	pid=$(property "$1" MainPID)
	grep -x 'Seccomp:.*2' "/proc/$pid/status" && grep -x 'NoNewPrivs:.*1' "/proc/$pid/status" &&
		grep -x 'CapBnd:.*0000000000000000' "/proc/$pid/status" || return
	systemd-analyze security --no-pager "$1" | grep Overall | tee "$tmp/exposure"
	awk '{ found = 1; bad = $(NF - 2) > 2.0 } END { exit !found || bad }' "$tmp/exposure"
}

# drop_in UNIT KEY VALUE - set a key in the section Service of the unit
drop_in()
{
	mkdir -p "/run/systemd/system/$1.service.d"
	printf '[Service]\n%s=%s\n' "$2" "$3" >"/run/systemd/system/$1.service.d/$2.conf"
	systemctl daemon-reload
}

# restarted - systemd has restarted the instance store once, and it is active
restarted()
{
	is gantry@store NRestarts 1 && is gantry@store ActiveState active
}

# survives_stop - the watchdog restarts the stopped process of the instance store
survives_stop()
{
	kill -STOP "$(property gantry@store MainPID)"
	await restarted && journalctl --boot --unit gantry@store | grep 'Watchdog timeout'
}

# stops UNIT - the unit stops with exit status 0
stops()
{
	systemctl stop "$1" && is "$1" ActiveState inactive && is "$1" Result success && is "$1" ExecMainStatus 0
}

# serves - the exporter has the size of the volume
serves()
{
	curl -sS http://127.0.0.1:9464/metrics >"$tmp/metrics"
	grep 'gantry_volume_size_bytes{.*} 67108864' "$tmp/metrics"
}

# others_see_nothing - a user who is neither root nor gantry cannot reach the instances
others_see_nothing()
{
	! runuser -u nobody -- gantry stat --dir /run/gantry
}

# reports COMMAND... - the command prints reports of the target and of the gateway
reports()
{
	"$@" >"$tmp/stat" && grep store "$tmp/stat" && grep bridge "$tmp/stat"
}

# only_kept - the runtime directory has only what gantry(1) says
only_kept()
{
	[ -d /run/gantry ] && [ -z "$(find /run/gantry ! -type d ! -name 'generation-*')" ]
}

# quiet - the instances have logged no refused system call, and no warning
quiet()
{
	! journalctl --boot --unit 'gantry*' --output cat | grep -iE 'EPERM|not permitted|warning'
}

mkdir -p /etc/gantry
role store | sed 's/create = true;/& engine = "uring";/' >/etc/gantry/store.conf
echo 'runtime = { log = "info"; };' >>/etc/gantry/store.conf
role bridge >/etc/gantry/bridge.conf
ok "two instances are enabled" systemctl enable gantry@store gantry@bridge
ok "the machine boots" systemctl start multi-user.target
ok "the instance store has notified systemd, and is active" is gantry@store ActiveState active
ok "the instance bridge is active" is gantry@bridge ActiveState active
ok "an initiator verifies data through both" works
ok "gantry stat reports both instances to root" reports gantry stat --dir /run/gantry
ok "gantry stat reports both instances to the user gantry" reports as_gantry gantry stat
ok "other users do not see them" others_see_nothing
ok "systemctl reload changes an option" reloads debug
ok "systemctl reload rejects a fault" keeps_options
ok "root changes an option by gantry ctl" gantry ctl --dir /run/gantry --pid "$(property gantry@store MainPID)" set runtime.log info
ok "gantry@store is restricted" restricts gantry@store
ok "the exporter starts" systemctl start gantry-metrics
ok "it serves the metrics of the instances" serves
ok "gantry-metrics is restricted" restricts gantry-metrics
ok "the instances have logged nothing that was refused" quiet
ok "gantry@bridge stops" stops gantry@bridge
ok "gantry@store stops" stops gantry@store
ok "gantry-metrics stops" stops gantry-metrics
ok "the runtime directory has only what the page says" only_kept
# a refused system call ends the process
for unit in gantry@ gantry-metrics; do
	drop_in $unit SystemCallErrorNumber kill
done
ok "the filter refuses no system call: start" systemctl start gantry@store gantry@bridge gantry-metrics
ok "the filter refuses no system call: data" works
ok "the filter refuses no system call: reload" reloads debug
ok "the filter refuses no system call: metrics" serves
drop_in gantry@store WatchdogSec 5s
systemctl restart gantry@store
ok "the watchdog restarts a stopped process" survives_stop
ok "data arrives again" await works
ok "the filter refuses no system call: stop" stops gantry@bridge
ok "the filter refuses no system call: stop of the target" stops gantry@store
ok "the filter refuses no system call: stop of the exporter" stops gantry-metrics
echo "1..$n"
