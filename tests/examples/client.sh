#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# client.sh - the example of a client stores a file in a volume, and continues after late writes and after the loss of writes
. "$(dirname "$0")/lib.sh"
[ -e "$top_builddir/clients/.libs/libgantry.so" ] || skip "libgantry is not built"
need shm-comch file fault target initiator
example client put.c put.conf
san=$(sed -n "s/^GANTRY_LDFLAGS = //p" "$top_builddir/clients/Makefile" | tr ' ' '\n' | grep -e -fsanitize | tr '\n' ' ')
wrap cc "${CC:-cc} -std=c11 -Wall -Wextra -Werror $san"
GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
export GANTRY_PLUGIN_PATH

# install - the library, and its file for pkg-config with the paths of $tmp. The target `install` would link plugins again in the
# build directory, perhaps at the same time as another test.
install()
{
	${MAKE:-make} -s -C "$top_builddir/clients" install-libLTLIBRARIES install-pkgconfigDATA DESTDIR="$tmp/root" || return
	libdir=$(dirname "$(find "$tmp/root" -name libgantry.so)")
	sed -E "s|^libdir=.*|libdir=$libdir|; s|^includedir=.*|$(grep ^includedir "$tmp/pc/gantry-plugin.pc")|" \
		"$libdir/pkgconfig/gantry.pc" >"$tmp/pc/gantry.pc"
}

plus()
{
	# shellcheck disable=SC2046 # words
	c++ -std=c++17 -Wall -Wextra -Werror -x c++ -c -o /dev/null $(pkg-config --cflags gantry) put.c
}

# serve [ARGUMENT]... - start the target and wait until it listens
serve()
{
	start put.c --set runtime.stat_dir="$tmp/stat" "$@"
	appears '"store"' gantry stat --dir "$tmp/stat" --json
}

# stages TEXT - give the target of put.conf these stages
stages()
{
	sed "s/role = \"target\";/& stages = ( $1 );/" plain.conf >put.conf
}

# quit - end the target
quit()
{
	kill "$pid"
	wait "$pid"
	pid=
}

# die - kill the target; $pid is the process that waits for it
die()
{
	kill -KILL "$(gantry stat --dir "$tmp/stat" --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')"
	wait "$pid" 2>/dev/null
	pid=
}

put()
{
	LD_LIBRARY_PATH=$libdir timeout 120 ./put "$@" >"$tmp/out" 2>&1
}

stored()
{
	cmp -n "$(wc -c <file)" file volume.img
}

truncate -s 64MiB volume.img
seq 1000000 | head -c 5000000 >file
cp put.conf plain.conf
ok "libgantry is installed" install
ok "it is built" build put.c
if command -v c++ >/dev/null; then
	ok "it compiles as C++17" plus
fi
ok "a target serves the volume" serve
ok "it stores a file in the volume that a URI names" put gantry:///volume0 file
ok "it prints the length" output_has '^stored 500[0-9]{4} bytes$'
ok "the volume has the data" stored
tac file | head -c 5000000 >other && mv other file
ok "it stores a file in the volume of a role" put plain.conf app file
ok "that data has replaced the other" stored
ok "a missing volume is an error" fails 1 put "gantry:///nowhere?connect.timeout=10ms" file
ok "the message states the cause" output_has '^put: cannot open the volume: .*no listener there'
truncate -s 65MiB long
ok "a file longer than the volume is an error" fails 1 put gantry:///volume0 long
ok "the message states that" output_has '^put: cannot store the file: it is longer than the volume'
quit

# with this seed the target drops one of the first five writes, and none of the next five
stages '{ type = "fault"; only = "write"; drop_rate = "20%"; seed = 10; }'
ok "a target drops writes" serve
ok "it stores the file" put "gantry:///volume0?connect.io_timeout=2s" file
ok "it has repeated the writes" output_has '^put: write again after an error: Connection timed out'
quit

stages '{ type = "fault"; only = "flush"; error_nth = 1; }'
ok "the flushes of a target fail" serve
ok "it does not repeat writes: no data is lost" fails 1 put gantry:///volume0 file
ok "it reports the error" output_has '^put: cannot write: Input/output error'
quit

# A crash of the machine loses writes that were not flushed. Here a copy of the volume without data replaces it: the copy has the
# UUID of the volume, and the target gives it another verifier.
stages '{ type = "fault"; only = "flush"; delay_nth = 1; delay = "1h"; }'
ok "a target does not finish a flush" serve
if output_has 'cannot store a UUID'; then
	echo "# no user attributes in $tmp: a target cannot recognise a copy of its volume"
	quit
	done_testing
	exit
fi
LD_LIBRARY_PATH=$libdir timeout 120 ./put "gantry:///volume0?connect.resume=60s" file >"$tmp/put.out" 2>&1 &
client=$!
ok "the flush waits" appears '"delayed_ops": 1' gantry stat --dir "$tmp/stat" --json
die
cp --preserve=xattr volume.img crashed.img && truncate -s 0 crashed.img && truncate -s 64MiB crashed.img
mv crashed.img volume.img
cp plain.conf put.conf
ok "the target starts again, after the loss of writes" serve
wait "$client"
rc=$?
quit
cp "$tmp/put.out" "$tmp/out"
ok "the program resumes its session and stores the file" [ $rc -eq 0 ]
ok "it has repeated the writes that were lost" output_has '^put: write again after an error: Input/output error'
ok "the volume has the data" stored
done_testing
