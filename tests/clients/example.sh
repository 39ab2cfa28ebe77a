#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# example.sh - builds the programs of gantry-client(3) from installed files only, with the command of the page, and runs it
# with the configuration of the page; and checks that libgantry exports what its header declares, with a version
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/clients/.libs/libgantry.so" ] || skip "libgantry is not built"
command -v pkg-config >/dev/null || skip "pkg-config is not installed"
mkdir -m 700 "$tmp/run"
XDG_RUNTIME_DIR=$tmp/run
GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
export XDG_RUNTIME_DIR GANTRY_PLUGIN_PATH
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES PKG_CONFIG_PATH LD_LIBRARY_PATH
umask 022
cd "$tmp" || exit 1
san=$(sed -n "s/^GANTRY_LDFLAGS = //p" "$top_builddir/clients/Makefile" | tr ' ' '\n' | grep -e -fsanitize | tr '\n' ' ')
page=$top_srcdir/man/gantry-client.3
lib=$top_builddir/clients/.libs/libgantry.so
touch server.out out
shown="out server.out"

# said WHAT - print the text of the page after this mark
said()
{
	awk -v mark=".\\\\\" client $1" '
	$0 == mark { on = 1; next } /^\.Ed/ { on = 0 } on && !/^\./
	' "$page" | sed 's/\\e/\\/g; s/\\&//g'
}

# install - install library and headers below root/, with that prefix in their pkg-config files
install()
{
	for folder in include clients; do
		${MAKE:-make} -s -C "$top_builddir/$folder" install DESTDIR="$tmp/root" || return
	done
	libdir=$(dirname "$(find root -name libgantry.so)")
	sed -i -E "s|^([a-z_]+)=/|\\1=$tmp/root/|" "$libdir/pkgconfig/gantry.pc"
}

# compile NAME MARK - compile the program after this mark with the command of the page
compile()
{
	said "$2" >"$1.c"
	grep -q "^\\$ cc -o $1 $1.c \$(pkg-config --cflags --libs gantry)$" "$page" || return
	PKG_CONFIG_LIBDIR=$libdir/pkgconfig
	export PKG_CONFIG_LIBDIR
	# shellcheck disable=SC2046,SC2086 # words
	${CC:-cc} -Wall -Wextra -Werror $san -o "$1" "$1.c" $(pkg-config --cflags --libs gantry)
}

# hello URI - run the program
hello()
{
	LD_LIBRARY_PATH=$tmp/$libdir timeout 60 ./hello "$1" >out 2>&1
}

# as_said - the program prints the output that the page shows
as_said()
{
	sed -n '/^67108864 bytes/p' "$page" | diff - out
}

own()
{
	LD_LIBRARY_PATH=$tmp/$libdir timeout 60 ./own "$1" >out 2>&1
}

own_as_said()
{
	grep '^block 1 says: .*; 0 bytes copied$' "$page" | diff - out
}

declared()
{
	sed -nE 's/^[a-z].*[ *](gantry_(volume|queue|memory)_[a-z_]+|gantry_error)\(.*/\1/p' \
		"$top_srcdir/include/gantry/client.h" | sort -u
}

exported()
{
	nm -D --defined-only "$lib" | awk '$2 == "T" { print $3 }' | sort -u
}

# with the version that introduced it
declared | sed 's/$/@@GANTRY_1/; s/^gantry_\(queue_\(extents\|fence\|readv\|writev\)\|volume_give_up\)@.*/&.1/
	s/^gantry_\(memory_.*\|queue_copied_bytes\)@.*/&.2/' >declared
exported >exported
ok "there are many functions" [ "$(wc -l <declared)" -gt 15 ]
case ${CC:-cc}$san in
*sanitize*) ok "a sanitizer exports more # SKIP" true ;;
*) ok "what is declared is exported, with its version, and nothing else" diff declared exported ;;
esac
nm -D --undefined-only "$lib" | awk '$NF ~ /^(gn|gc|gantry)_/' >missing
ok "nothing of our own is missing" [ ! -s missing ]
ok "it is installed" install
ok "the program of the page is built" compile hello program
ok "the program with memory of its own is built" compile own memory
said conf >volume.conf
"$GANTRY" run volume.conf >server.out 2>&1 &
pid=$!
ok "it runs" hello gantry:///volume0
ok "and says what the page says" as_said
own gantry:///volume0
ok "the program with memory of its own says what the page says, without a copy" own_as_said
if [ "$(setarch --uname-2.6 uname -r 2>/dev/null | cut -c 1-4)" = 2.6. ]; then
	LD_LIBRARY_PATH=$tmp/$libdir timeout 60 setarch --uname-2.6 ./hello gantry:///volume0 >out 2>&1
	ok "an old kernel is a warning" grep -q 'warn libgantry: Linux 2\.6.* is too old (minimum=5\.14)' out
fi
hello gantry:///nowhere?connect.timeout=10ms
ok "without that volume it fails" [ $? -eq 1 ]
ok "and says why" grep -q '^hello: cannot open the volume: .*no listener there' out
kill "$pid"
wait "$pid"
ok "the target ends well" [ $? -eq 0 ]
pid=
done_testing
