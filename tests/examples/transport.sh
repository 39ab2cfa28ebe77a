#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# transport.sh - the example of a transport runs in one process, between two processes, and with a gateway. conform/unix_socket
# runs the conformance suite over it.
. "$(dirname "$0")/lib.sh"
need initiator gateway stats target memory
example transport unix-socket.c unix-socket.conf

# at_name COMMAND... - run it with a service that no other test uses: names are visible in the whole network namespace
at_name()
{
	"$@" --set roles.store.listen.name=v$$ --set roles.load.connect.name=v$$
}

# separate - the two roles run in two processes; the target ends after SIGTERM
separate()
{
	at_name start unix-socket.c --role store
	at_name run_load || return
	kill "$pid" && wait "$pid"
	rc=$?
	pid=
	return $rc
}

# run_load - the initiator, with its report in the file `load`
run_load()
{
	run unix-socket.c --role load --json "$@" >load && grep -q '"checked": [1-9]' load
}

# relayed - a gateway exports the regions of the initiator again
relayed()
{
	cat "$top_srcdir/conf/one-process.conf" >unix-socket.conf
	run unix-socket.c --set devices.wire.transport=unix-socket --set roles.load.workload.ops=1000 \
		--set roles.store.listen.name=s$$ --set roles.bridge.connect.name=s$$ \
		--set roles.bridge.listen.name=v$$ --set roles.load.connect.name=v$$
}

# exported - the symbols of the plugin
exported()
{
	nm -D --defined-only unix-socket.so | awk '{ print $3 }'
}

# lines - of all files of the example
lines()
{
	cat "$top_srcdir"/examples/transport/* | wc -l
}

ok "it is built" build unix-socket.c
ok "it has at most 800 lines" [ "$(lines)" -le 800 ]
ok "gantry check accepts the configuration" gantry check unix-socket.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS"
ok "it runs" at_name run_json unix-socket.c
ok "the data is right" output_has '"checked": [1-9]'
ok "it runs between two processes" separate
ok "it runs with a gateway" relayed
case ${CC:-cc} in
*sanitize*) skipped "it exports its description, and nothing else" "a sanitizer exports more" ;;
*) is "it exports its description, and nothing else" "$(exported)" unix_socket_LTX_gantry_plugin ;;
esac
done_testing
