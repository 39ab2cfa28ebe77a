#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# new-plugin.sh - gantry new-plugin writes a plugin of each kind, which is built outside the tree with make and with the GNU build
# system, passes its own test and gantry conform; and it leaves nothing after an error
. "$(dirname "$0")/lib.sh"
need loop memory file initiator target
example stage
GANTRY_TRUST_UID=${GANTRY_TRUST_UID:-}
mkdir "$tmp/tmp"
TMPDIR=$tmp/tmp
export TMPDIR
limit=

# new KIND NAME [DIR] - the command
new()
(
	exec >"$tmp/new" 2>&1
	[ -z "$limit" ] || ulimit -f "$limit"
	exec gantry new-plugin "$@"
)

# plainly NAME - build and test it with make
plainly()
{
	${MAKE:-make} -s -C "$1" CC="$CC" CFLAGS='-O2 -Wall -Wextra -Werror' check
}

# passes FILE - the output of a test is TAP of a test that has passed, without skipped cases
passes()
{
	cat "$1" && grep -qx '1\.\.4' "$1" && [ "$(grep -c '^ok ' "$1")" -eq 4 ]
}

# with_autotools NAME - build and test it with the GNU build system, in another directory
with_autotools()
(
	(cd "$1" && autoreconf -fi) && mkdir "$1-build" && cd "$1-build" &&
		"../$1/configure" CC="$CC" CFLAGS='-O2 -Wall -Wextra -Werror' && ${MAKE:-make} -s && ${MAKE:-make} -s check &&
		passes test.log
)

# in_place NAME - configure rejects the directory of the source, and the Makefile there stays
in_place()
(
	cd "$1" || exit 1
	cp Makefile before
	! ./configure >out 2>&1 && grep -q 'mkdir build && cd build' out && cmp Makefile before
)

# says STATUS TEXT ARGUMENT... - the command fails, says why, and leaves nothing
says()
{
	status=$1 text=$2
	shift 2
	find . | sort >"$tmp/before"
	new "$@"
	[ $? -eq "$status" ] && cat "$tmp/new" && grep -q "$text" "$tmp/new" && find . | sort | diff "$tmp/before" -
}

# installed - the templates are installed as they are in the tree
installed()
{
	${MAKE:-make} -s -C "$top_builddir/examples" install DESTDIR="$tmp/root" || return
	templates=$(find "$tmp/root" -type d -name templates)
	(cd "$templates" && find . -type f) | while read -r file; do
		cmp "$templates/$file" "$top_srcdir/examples/$file" || echo "$file differs"
	done >"$tmp/differ"
	[ ! -s "$tmp/differ" ] && [ "$(find "$templates" -type f | wc -l)" -ge 15 ]
}

# the name of the transport is visible in the whole network namespace
wire=wire-$$
for plugin in "transport $wire" "role my-scan" "stage my-limit" "backend words" "observer my-steps"; do
	kind=${plugin% *} name=${plugin#* }
	# shellcheck disable=SC2086 # two words
	ok "$kind: it is written" new $plugin
	ok "$kind: it is built and tested with make" plainly "$name"
	ok "$kind: the name of the example has gone" [ -z "$(grep -rlwE 'unix_socket|throttle|milestone' "$name" --include='*.c')" ]
	# all kinds have the same configure.ac and Makefile.am, and autoreconf is slow: test it with one kind
	[ "$kind" = stage ] || continue
	if command -v autoreconf >/dev/null && command -v libtoolize >/dev/null; then
		ok "$kind: it is built and tested with the GNU build system" with_autotools "$name"
	else
		skipped "$kind: it is built and tested with the GNU build system" "autoconf or libtool is not installed"
	fi
done
if [ -e my-limit/configure ]; then
	ok "configure keeps the plain Makefile" in_place my-limit
fi
ok "the directory of the new one" new stage other words
ok "it is there" [ -e words/other/other.c ]
ok "a directory that exists" says 2 'the directory exists (path=\./my-scan)' role my-scan
ok "a kind that does not exist" says 2 'no such kind of plugin (kind=filter)' filter x
ok "a name with a slash" says 2 'not a name of a plugin (name=\.\./x)' stage ../x
ok "a name in upper case" says 2 'not a name of a plugin (name=Big)' stage Big
ok "a word of C" says 2 'is a word of C (name=union)' stage union
ok "a word of the source" says 2 'the source of the plugin uses the name (name=pass)' stage pass
ok "a directory that is missing" says 1 'cannot create a directory (path=none/x)' stage x none
ok "no arguments" says 2 'usage: gantry new-plugin'
limit=1 # KiB: less than the source of the plugin
ok "a file that cannot be written" says 1 'cannot write a file .*: File too large' stage large
ok "the templates are installed" installed
done_testing
