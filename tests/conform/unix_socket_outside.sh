#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# unix_socket_outside.sh - the example of a transport is built outside the tree, with the commands of its first comment, against the
# installed headers, and runs with its configuration
example=$top_srcdir/examples/transport
command -v pkg-config >/dev/null || { echo "1..0 # SKIP pkg-config is not installed"; exit 0; }
for plugin in initiator gateway stats target memory; do
	[ -e "$GANTRY_PLUGINS/$plugin.so" ] || { echo "1..0 # SKIP not built: $plugin"; exit 0; }
done
if grep -q '^GANTRY_CFLAGS.*fsanitize' "$top_builddir/tests/Makefile"; then
	echo "1..0 # SKIP the commands are for the plain build"
	exit 0
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/gantry-unix-socket.XXXXXX") || exit 1
server=
trap 'rm -rf "$tmp"; [ -z "$server" ] || kill "$server" 2>/dev/null' EXIT
trap 'exit 1' INT TERM HUP
umask 022
mkdir -m 700 "$tmp/run" "$tmp/bin" "$tmp/pc" "$tmp/work"
XDG_RUNTIME_DIR=$tmp/run
export XDG_RUNTIME_DIR
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GANTRY_PLUGIN_PATH
cd "$tmp/work" || exit 1
n=0

# is WHAT COMMAND... - one line of TAP
is()
{
	n=$((n + 1))
	what=$1
	shift
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$tmp/log" "$tmp"/*.out
	fi
}

# install - the public headers; the plugins and the program stay in the build tree
install()
{
	${MAKE:-make} -s -C "$top_builddir/include" install DESTDIR="$tmp/root" || return
	sed -E "s|^([a-z_]+)=/|\\1=$tmp/root/|; s|^plugindir=.*|plugindir=$GANTRY_PLUGINS|" \
		"$top_builddir/gantry-plugin.pc" >"$tmp/pc/gantry-plugin.pc"
	printf '#!/bin/sh\nexec %s "$@"\n' "$CC" >"$tmp/bin/cc"
	# the configuration, with a name that no other test uses
	printf '#!/bin/sh\nexec "%s" "$@" --set roles.store.listen.name=v%s --set roles.load.connect.name=v%s\n' \
		"$GANTRY" $$ $$ >"$tmp/bin/gantry"
	chmod +x "$tmp/bin/cc" "$tmp/bin/gantry"
}

# commands - those of the comment, with the name of the program at their begin
commands()
{
	sed -n '/^ \*\/$/q; s/^ \*   //p' unix-socket.c
}

# build_and_run - as the comment states
build_and_run()
{
	commands >commands.sh
	grep -q '^cc ' commands.sh && grep -q '^gantry run ' commands.sh && sh -e commands.sh >"$tmp/run.out" 2>&1
}

# separate - the two roles run in two processes
separate()
{
	gantry run unix-socket.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS" --role store >"$tmp/store.out" 2>&1 &
	server=$!
	timeout 60 gantry run unix-socket.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS" --role load >"$tmp/load.out" 2>&1 &&
		kill "$server" && wait "$server" && server= && grep -q 'ops  *10000' "$tmp/load.out"
}

# relayed - a gateway exports the regions of the initiator again
relayed()
{
	"$GANTRY" run "$top_srcdir/conf/one-process.conf" --plugin-dir . --plugin-dir "$GANTRY_PLUGINS" \
		--set devices.wire.transport=unix-socket --set roles.load.workload.ops=1000 \
		--set roles.store.listen.name=s$$ --set roles.bridge.connect.name=s$$ \
		--set roles.bridge.listen.name=v$$ --set roles.load.connect.name=v$$
}

strict()
{
	cc -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "-I$tmp/root/$(pkg-config --variable=prefix gantry-plugin |
		sed "s|^$tmp/root/||")/include" unix-socket.c
}

# exports - the description of the plugin, and nothing else
exports()
{
	[ "$(nm -D --defined-only unix-socket.so | awk '{ print $3 }')" = unix_socket_LTX_gantry_plugin ]
}

cp "$example"/unix-socket.* .
touch "$tmp/run.out" "$tmp/store.out" "$tmp/load.out"
PKG_CONFIG_LIBDIR=$tmp/pc PATH=$tmp/bin:$PATH
export PKG_CONFIG_LIBDIR PATH
is "the headers are installed" install
is "its comment builds it and runs the configuration" build_and_run
is "all IOs were done" grep -q 'ops  *10000' "$tmp/run.out"
is "it runs between two processes" separate
is "it runs with a gateway" relayed
is "it exports its description only" exports
is "it compiles as C11 with all warnings" strict
is "it has at most 800 lines" [ "$(cat "$example"/* | wc -l)" -le 800 ]
echo "1..$n"
