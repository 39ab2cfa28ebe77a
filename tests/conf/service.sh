#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# service.sh - systemd accepts the unit gantry@.service, and the unit restricts the service
. "$top_srcdir/tests/tap.sh"
unit=$top_builddir/systemd/gantry@.service
[ -e "$unit" ] || skip "built without the unit"
command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed"
# the unit names the installed program, which need not exist
sed "s|^ExecStart=[^ ]*|ExecStart=$GANTRY|" "$unit" >"$tmp/gantry@.service"
is "its command is gantry run" 1 "$(grep -c "^ExecStart=$GANTRY run " "$tmp/gantry@.service")"
systemd-analyze verify --man=no "$tmp/gantry@.service" >"$tmp/out" 2>&1
verdict $? "systemd accepts the unit" "$tmp/out"
is "it has nothing to remark" "" "$(cat "$tmp/out")"
systemd-analyze security --offline=true --no-pager "$tmp/gantry@.service" >"$tmp/security" 2>&1
sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p' "$tmp/security" >"$tmp/level"
awk '{ found = 1; bad = $1 > 2.0 } END { exit !found || bad }' "$tmp/level"
verdict $? "its exposure is at most 2.0" "$tmp/security"
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers --dry-run "$(realpath "$top_srcdir")/systemd/gantry.conf" >"$tmp/users" 2>&1
	verdict $? "systemd accepts the file of users" "$tmp/users"
fi
# the page explains the unit
page=$top_srcdir/man/gantry.1
for word in XDG_RUNTIME_DIR RuntimeDirectoryPreserve WatchdogSec LimitMEMLOCK StateDirectory DeviceAllow; do
	grep -qE "^(Environment=)?$word=" "$unit" && grep -q "$word" "$page"
	verdict $? "unit and page have $word"
done
done_testing
