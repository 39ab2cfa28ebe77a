#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tutorial.sh - runs all commands of gantry-tutorial(7) as they are in the page, in their order and in one shell, and compares the
# output with that of the page. tutorial.awk makes the script that does so.
. "$top_srcdir/tests/tap.sh"
need loop shm-comch initiator gateway target memory stats fault
[ -e "$top_builddir/doca/gantry-doca" ] || skip "libgantry-doca is not built"
command -v pkg-config >/dev/null || skip "pkg-config is not installed"
umask 022
mkdir -m 700 "$tmp/run"
mkdir -p "$tmp/bin" "$tmp/steps" "$tmp/home/build"
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
unset PKG_CONFIG_PATH PKG_CONFIG_LIBDIR LD_LIBRARY_PATH GANTRY_PLUGIN_PATH GANTRY_DOCA_CONF GANTRY_DOCA_PROFILE GANTRY_RUNDIR
export XDG_RUNTIME_DIR=$tmp/run HOME=$tmp/home
export steps=$tmp/steps
cd "$tmp/home" || exit 1

# programs of a sanitizer build need its flags; warnings of the code in the page are errors
san=$(sed -n "s/^GANTRY_LDFLAGS = //p" "$top_builddir/doca/Makefile" | tr ' ' '\n' | grep -e -fsanitize | tr '\n' ' ')
printf '#!/bin/sh\nexec %s -Wall -Wextra -Werror %s "$@"\n' "${CC:-cc}" "$san" >"$tmp/bin/cc"
chmod +x "$tmp/bin/cc"
PATH=$tmp/bin:$PATH
# the page says that the shell is in a source tree, with this build
ln -s "$top_builddir" build/gcc
grep -q '^#define HAVE_LIBDW 1' "$top_builddir/config.h" && lines=1 || lines=0

# judge STEP - compare the output of the step, and its exit status, with the page; print the result as a line "STEP STATUS"
judge()
{
	shown "$1" && { [ "$status" -eq 0 ] || [ -e "$steps/$1.status" ]; }
	echo "$1 $?" >>"$steps/results"
}

# shown STEP - whether the output of the step is that of the page
shown()
{
	$AWK -v here="$tmp/home" -v lines="$lines" -f "$top_srcdir/tests/conf/tutorial-compare.awk" \
		"$steps/$1.want" "$steps/$1.seen"
}

# repeated STEP - whether a step that waits for other processes is over: its output is as shown, or a minute has passed
repeated()
{
	shown "$1" >/dev/null && return
	sleep 0.05 # lint: allowed, between two looks
	[ $((SECONDS - begin)) -ge 60 ]
}

sed "s|DOCDIR|$top_srcdir|g" "$top_srcdir/man/gantry-tutorial.7" >"$tmp/page"
if command -v mandoc >/dev/null; then
	wide=$(mandoc -T ascii -O width=78 "$top_srcdir/man/gantry-tutorial.7" | sed 's/.\x08//g' | expand | $AWK 'length($0) > 78')
	is "no line is wider than a terminal" "" "$wide"
else
	skipped "no line is wider than a terminal" "mandoc is not installed"
fi
$AWK -v steps="$steps" -f "$top_srcdir/tests/conf/tutorial.awk" "$tmp/page" >"$tmp/script"
verdict $? "the page has only commands that can be run" "$tmp/script"
is "there are many commands" OK "$([ "$(ls "$steps"/*.command | wc -l)" -ge 30 ] && echo OK)"
export -f judge shown repeated
export tmp lines
timeout 200 bash "$tmp/script" >"$tmp/script.out" 2>&1
verdict $? "the shell has reached the end of the page" "$tmp/script.out"
for file in $(cd "$steps" && printf '%s\n' *.command | sort -n); do
	step=${file%.command}
	touch "$steps/$step.seen" # missing if the shell ended before
	grep -qx "$step 0" "$steps/results"
	verdict $? "$(tr -s '\\\n\t ' ' ' <"$steps/$file")" "$steps/$step.want" "$steps/$step.seen"
done
done_testing
