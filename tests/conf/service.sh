#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# service.sh - systemd accepts the units gantry@.service and gantry-metrics.service, and they restrict the services
. "$top_srcdir/tests/tap.sh"
units=$top_builddir/systemd
[ -e "$units/gantry@.service" ] || skip "built without the units"
command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed"

# judge UNIT COMMAND - the unit starts that command of gantry, and systemd accepts and restricts it
judge()
{
	# the unit names the installed program, which need not exist
	sed "s|^\(Exec[A-Z][a-z]*\)=[^ ]*|\1=$GANTRY|" "$units/$1" >"$tmp/$1"
	is "$1: its command is gantry $2" 1 "$(grep -c "^ExecStart=$GANTRY $2 " "$tmp/$1")"
	systemd-analyze verify --man=no "$tmp/$1" >"$tmp/out" 2>&1
	verdict $? "$1: systemd accepts the unit" "$tmp/out"
	is "$1: it has nothing to remark" "" "$(cat "$tmp/out")"
	systemd-analyze security --offline=true --no-pager "$tmp/$1" >"$tmp/security" 2>&1
	sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p' "$tmp/security" >"$tmp/level"
	awk '{ found = 1; bad = $1 > 2.0 } END { exit !found || bad }' "$tmp/level"
	verdict $? "$1: its exposure is at most 2.0" "$tmp/security"
}

# explains UNIT PAGE WORD... - the page explains these words of the unit
explains()
{
	unit=$1 page=$2
	shift 2
	for word; do
		grep -qE "^(Environment=)?$word=" "$units/$unit" && grep -q "$word" "$top_srcdir/man/$page"
		verdict $? "$unit and $page have $word"
	done
}

judge gantry@.service run
explains gantry@.service gantry.1 XDG_RUNTIME_DIR RuntimeDirectoryPreserve WatchdogSec LimitMEMLOCK StateDirectory DeviceAllow
if [ -e "$units/gantry-metrics.service" ]; then
	judge gantry-metrics.service metrics
	explains gantry-metrics.service gantry-metrics.1 Type UMask ExecStart
	for word in User Group RuntimeDirectory RuntimeDirectoryMode RuntimeDirectoryPreserve; do
		is "both units have the same $word" "$(grep "^$word=" "$units/gantry@.service")" \
			"$(grep "^$word=" "$units/gantry-metrics.service")"
	done
fi
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers --dry-run "$(realpath "$top_srcdir")/systemd/gantry.conf" >"$tmp/users" 2>&1
	verdict $? "systemd accepts the file of users" "$tmp/users"
fi
done_testing
