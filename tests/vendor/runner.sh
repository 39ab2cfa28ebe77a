#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# runner.sh - tests run.sh with a small checkout: the pair hello of the examples, and programs that fail. Stubs replace meson
# and ninja.
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/doca/.libs/libgantry-doca.so" ] || skip "libgantry-doca is not built"
for tool in pkg-config setsid stdbuf; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
unset PKG_CONFIG_PATH LD_LIBRARY_PATH GANTRY_PLUGIN_PATH GANTRY_DOCA_CONF GANTRY_DOCA_PROFILE
shown=$tmp/out

# the stubs compile all C files of the source directory into the program doca_NAME
mkdir "$tmp/bin"
cat >"$tmp/bin/meson" <<'END'
#!/bin/bash
mkdir -p "${@: -2:1}" && echo "${@: -1}" >"${@: -2:1}/source"
END
cat >"$tmp/bin/ninja" <<'END'
#!/bin/bash
source=$(cat "$2/source")
# shellcheck disable=SC2046,SC2086 # lists of words
$CC -o "$2/doca_${source##*/}" "$source"/*.c $LDFLAGS $(pkg-config --cflags --libs doca-common doca-comch)
END
chmod +x "$tmp"/bin/*
PATH=$tmp/bin:$PATH

# program NAME FILE... - add a program to the checkout
program()
{
	mkdir -p "$tmp/checkout/samples/$1"
	: >"$tmp/checkout/samples/$1/meson.build.public"
	name=$1
	shift
	cp "$@" "$tmp/checkout/samples/$name"
}

examples=$top_srcdir/examples/doca
program hello_dpu "$examples/hello-dpu.c" "$examples/hello.h" "$examples/comch.h"
program hello_host "$examples/hello-host.c" "$examples/hello.h" "$examples/comch.h"
cat >"$tmp/tool.c" <<'END'
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2)
		return 3;
	puts(argv[1]);
	fflush(stdout);
	if (!strcmp(argv[1], "crash"))
		raise(SIGSEGV);
	if (!strcmp(argv[1], "hang"))
		pause();
	if (!strcmp(argv[1], "enter"))
		return getchar() != '\n';
	return strcmp(argv[1], "fail") == 0;
}
END
program tool "$tmp/tool.c"
echo "this does not compile" >"$tmp/broken.c"
program broken "$tmp/broken.c"

cat >"$tmp/list" <<'END'
# a comment
program hello_dpu dpu samples/hello_dpu doca-comch
program hello_host host samples/hello_host doca-comch
program tool dpu,host samples/tool doca-common
program broken dpu samples/broken doca-common
program absent dpu samples/absent doca-common
program needy dpu samples/tool doca-common,no-such-module

case hello 60
start server dpu hello_dpu
until server waiting
listens hello
start client host hello_host good morning
ends client DPU received: good
ends server client disconnected

case enter 60 dpu host
shim
file input.txt text
start it @side tool enter
until it enter
enter it
ends it
run [ "$(wc -l <input.txt)" -eq 1000 ]

case exits 60
start it dpu tool fail
ends it

case crashes 20
start other dpu tool hang
start it dpu tool crash
until other crash

case hangs 2
start it dpu tool hang
ends it

case errors 60
start it dpu tool [DOCA][ERR]one
ends it

case permitted 60
start it dpu tool [DOCA][ERR]one
errors it ]one
ends it

case silent 60
start it dpu tool text
ends it other words

case broken 60
start it dpu broken

case needy 60
start it dpu needy
END

# vendor ARGUMENT... - run the runner with the list
vendor()
{
	JOBS=1 bash "$top_srcdir/tests/vendor/run.sh" --build "$tmp/build" --list "$tmp/list" "$@" >"$tmp/out" 2>&1
}

# fails STATUS TEXT ARGUMENT... - the runner has this exit status and prints the text
fails()
{
	status=$1 text=$2
	shift 2
	vendor "$@"
	[ $? -eq "$status" ] && grep -q -e "$text" "$tmp/out"
}

# in_table PROGRAM BUILD RUNS VERDICT - the table has this line
in_table()
{
	awk -v p="$1" -v b="$2" -v r="$3" -v v="$4" '
	$1 == p && $2 == b && $3 == r && $5 == v { found = 1 } END { exit !found }' "$tmp/out"
}

# lacks_check - a build whose gantry does not have the command check
lacks_check()
{
	mkdir -p "$tmp/old/core" && ln -s "$top_builddir/doca" "$tmp/old" || return 1
	printf '#!/bin/sh\nexit 2\n' >"$tmp/old/core/gantry"
	chmod +x "$tmp/old/core/gantry"
	bash "$top_srcdir/tests/vendor/run.sh" --build "$tmp/old" --check "$tmp/checkout" >"$tmp/out" 2>&1
	[ $? -eq 2 ] && grep -qx 'vendor: this gantry has no command "gantry doca check"' "$tmp/out"
}

# a build directory of its own for the results
mkdir "$tmp/build"
for name in core doca plugins clients config.h; do
	ln -s "$top_builddir/$name" "$tmp/build/$name"
done

ok "a pair passes" vendor "$tmp/checkout" hello
ok "the table has the server" in_table hello_dpu yes 1/1 pass
ok "the table has the client" in_table hello_host yes 1/1 pass
ok "the last line has the numbers" grep -qx "2 passed, 0 failed, 0 skipped, 0 flaky" "$tmp/out"
ok "the checkout is not changed" [ ! -e "$tmp/checkout/samples/tool/meson.build" ]
ok "a case runs once for each side, in each round" vendor --rounds 2 "$tmp/checkout" enter
ok "the table has all runs" in_table tool yes 4/4 pass
ok "processes share the runs" vendor --rounds 4 --parallel 3 "$tmp/checkout" enter
ok "the table has the runs of all" in_table tool yes 8/8 pass
ok "a failure of any is counted" fails 1 "^failed: exits .* run 3): it: exit status 1" --rounds 3 --parallel 3 "$tmp/checkout" exits
ok "an exit status is a failure" fails 1 "^failed: exits .* it: exit status 1" "$tmp/checkout" exits
ok "the table has it" in_table tool yes 0/1 fail
ok "a signal is the reason, not what follows" fails 1 "^failed: crashes .* it: ended by signal [0-9]" "$tmp/checkout" crashes
ok "a hang ends with its case" fails 1 "^failed: hangs .* it: time over" "$tmp/checkout" hangs
ok "no process is left" sh -c '! pgrep -f "$1/build/vendor"' sh "$tmp"
ok "the output of a failed case is kept" grep -qx hang "$tmp"/build/vendor/failed/1-hangs/it.out
ok "a line of the level error is a failure" fails 1 "^failed: errors .* it: \[DOCA\]\[ERR\]one" "$tmp/checkout" errors
ok "unless the list permits it" vendor "$tmp/checkout" permitted
ok "missing output is a failure" fails 1 "^failed: silent .* \"other words\" is not printed" "$tmp/checkout" silent
ok "a program that does not compile is a failure" fails 1 "^FAILED: broken (build failed)" "$tmp/checkout" broken
ok "so is one that the checkout does not have" fails 1 "^FAILED: absent (build failed)" "$tmp/checkout" absent
ok "a missing module skips a program" vendor "$tmp/checkout" needy
ok "it prints the reason" grep -qx "skipped: needy (there is no module no-such-module)" "$tmp/out"
ok "a command of gantry doca that does not exist is an error" lacks_check
if [ -e "$top_builddir/doca/gantry-doca" ]; then
	ok "with seeds, a program may end with an error" vendor --seeds 1..2 "$tmp/checkout" silent
	ok "it is printed" grep -q "^gave up: silent (.*, seed 2): it: \"other words\" is not printed" "$tmp/out"
	ok "a crash is a failure" fails 1 "^failed: crashes .* seed 1): it: exit status 3" --seeds 1..1 "$tmp/checkout" crashes
	ok "so is a hang" fails 1 "^failed: hangs .* seed 1): it: time over" --seeds 1..1 "$tmp/checkout" hangs
fi
ok "an unknown option is rejected" fails 2 "unknown option --nothing" --nothing "$tmp/checkout"
ok "so is a directory without programs" fails 2 "not a checkout of the samples" "$tmp/bin"
ok "so is a wrong number" fails 2 "not a number from 1 to 999 (value=0)" --parallel 0 "$tmp/checkout"
ok "and a wrong range of seeds" fails 2 "not a range A..B (value=3)" --seeds 3 "$tmp/checkout"
done_testing
