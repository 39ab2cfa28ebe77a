#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh - the corpora of the fuzz targets detect seeded bugs: with each mutant of the source, its target must fail on the
# files of its corpus
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
cc=${CC:-cc}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mutants=$top/tests/fuzz/mutants.txt # target @ file @ sed script @ the bug
tests=$build/tests
# wraps NAME - NAME_LDFLAGS of tests.am, as the Makefile has them; NAME may be a regular expression
wraps()
{
	sed -n "/^\($1\)_LDFLAGS = /,/[^\\\\]\$/p" "$tests/Makefile" | tr ' \t\\' '\n' | grep '^-Wl,--wrap'
}
wraps=$(wraps 'QUICK_FD\|QUICK_MAP\|REWIND')
libs="$tests/libfuzz-main.a $build/core/.libs/libgantry-core.a $tests/libunity.a"
libs="$libs $(sed -n 's/^LIB\(ISAL\|SSL\)_LIBS = //p' "$tests/Makefile" | tr '\n' ' ')"

# compile FILE SOURCE - compile FILE, a mutant of SOURCE, to $dir/mutant.o
compile()
{
	"$cc" -std=gnu11 -D_GNU_SOURCE -O1 -w -fPIC -include "$build/config.h" -I"$top/include" -I"$top/core" \
		-I"$top/$(dirname "$2")" -I"$top/plugins/transport/verbs-common" -c -o "$dir/mutant.o" "$1"
}

# build_whole TARGET SOURCE - a target that includes the sources of its plugin: compile it in a copy of the tree
build_whole()
{
	mkdir -p "$dir/fuzz" "$dir/tree/tests/fuzz" "$dir/tree/$(dirname "$2")" &&
		cp "$top/$(dirname "$2")"/*.[ch] "$dir/tree/$(dirname "$2")" &&
		cp "$dir/mutant.c" "$dir/tree/$2" && cp "$top/tests/fuzz/$1.c" "$dir/tree/tests/fuzz" &&
		"$cc" -std=gnu11 -D_GNU_SOURCE -O1 -w -I"$top/include" -I"$top/tests" -o "$dir/fuzz/$1" \
			"$dir/tree/tests/fuzz/$1.c" "$tests/libfuzz-main.a"
}

# link TARGET - the mutant stands before the archive that has the same object
link()
{
	mkdir -p "$dir/fuzz"
	case $1 in
	session)
		# shellcheck disable=SC2046,SC2086 # words
		"$cc" -rdynamic -o "$dir/fuzz/$1" $wraps "$tests"/fuzz/fuzz_session-*.o "$dir/mutant.o" \
			"$tests/libfakefuzz.a" $libs "$tests/libstateful.a" -lpthread -ldl -lm \
			$(sed -n 's/^LIBS = //p' "$tests/Makefile") ;;
	shm_frames)
		# shellcheck disable=SC2046,SC2086 # words
		"$cc" -o "$dir/fuzz/$1" $wraps $(wraps QUICK_SOCKET) "$tests"/fuzz/$1-*.o \
			"$dir/mutant.o" "$build/plugins/.libs/libshm-comch.a" \
			"$tests/libfakefuzz.a" $libs "$tests/libstateful.a" -lpthread -ldl -lm \
			$(sed -n 's/^LIBS = //p' "$tests/Makefile") ;;
	tcp_*)
		# shellcheck disable=SC2046,SC2086 # words
		"$cc" -o "$dir/fuzz/$1" $wraps $(wraps QUICK_STREAM) "$tests"/fuzz/$1-*.o \
			"$dir/mutant.o" "$build/plugins/.libs/libtcp.a" "$tests/libfakefuzz.a" $libs \
			"$tests/libstreams.a" "$tests/libstateful.a" -lpthread -ldl -lm \
			$(sed -n 's/^LIBS = //p' "$tests/Makefile") ;;
	verbs_*)
		# shellcheck disable=SC2086 # words
		"$cc" -o "$dir/fuzz/$1" $wraps "$tests"/fuzz/$1-*.o \
			"$dir/mutant.o" "$tests/libends.a" \
			"$build/plugins/.libs/libverbs-common.a" "$tests/.libs/libfakeverbs.a" "$tests/libfake.a" \
			$libs "$tests/libstateful.a" -lpthread -ldl -lm ;;
	esac
}

# build TARGET SOURCE - build the target with $dir/mutant.c in place of SOURCE
build()
{
	case $1 in
	vhost_*) build_whole "$1" "$2" ;;
	*) compile "$dir/mutant.c" "$2" && link "$1" ;;
	esac
}

if grep -q "^GANTRY_CFLAGS.*\(fsanitize\|fprofile\)" "$tests/Makefile" || [ ! -x "$tests/fuzz/verbs_msg" ] ||
	[ ! -x "$tests/fuzz/tcp_frames" ]; then
	echo "1..0 # SKIP only for builds with verbs and tcp, without sanitizers"
	exit 0
fi
echo "1..$(wc -l <"$mutants")"
n=0
while IFS="@" read -r target file script what; do
	n=$((n + 1))
	sed "$script" "$top/$file" >"$dir/mutant.c"
	if cmp -s "$top/$file" "$dir/mutant.c" || ! build "$target" "$file" 2>"$dir/out"; then
		echo "not ok $n - $target: $what (the mutant does not apply)"
		sed 's/^/# /' "$dir/out"
	elif MALLOC_PERTURB_=90 timeout 60 "$dir/fuzz/$target" >"$dir/out" 2>&1; then
		echo "not ok $n - $target: $what (not seen)"
	else # one that hangs has failed as well
		echo "ok $n - $target: $what"
	fi
done <"$mutants"
