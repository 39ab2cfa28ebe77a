#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# headers.sh - each header of libgantry-doca compiles alone, in both profiles: as C11 with gcc and clang, as C++17; and
# experimental functions are marked as such
. "$(dirname "$0")/../lint/lib.sh"

seed()
{
	mkdir -p "$1/include/doca/host" "$1/include/doca/dpu"
	printf '#define DOCA_ARCH_HOST\n' | put "$1/include/doca/host/doca_build_config.h"
	printf '#define DOCA_ARCH_DPU\n' | put "$1/include/doca/dpu/doca_build_config.h"
	printf '#include <stdint.h>\nuint32_t fine(uint32_t x);\n' | put "$1/include/doca/doca_fine.h"
	echo 'uint32_t needs_stdint(void);' | put "$1/include/doca/doca_needs.h"
	echo 'static inline char *not_cxx(void *p) { return p; }' | put "$1/include/doca/doca_cxx.h"
	printf '#include <doca_build_config.h>\n#ifdef DOCA_ARCH_DPU\nint f(gone);\n#endif\n' | put "$1/include/doca/doca_dpu.h"
}

# alone HEADER INCLUDES COMPILER... - whether it compiles, also if it is included twice
alone()
{
	header=$1 profile=$2
	shift 2
	folder=.
	case $header in */*) folder=${header%/*} ;; esac # the first include directory of a program
	printf '#include <%s>\n#include <%s>\n' "${header##*/}" "${header##*/}" |
		"$@" -Wall -Wextra -Wpointer-arith -Werror -fsyntax-only -I"$profile/../$folder" -I"$profile/.." -I"$profile" - 2>&1
}

# compilers - print command lines, one on each line
compilers()
{
	for compiler in "gcc -std=c11 -x c" "clang -std=c11 -x c" "g++ -std=c++17 -x c++"; do
		command -v "${compiler%% *}" >/dev/null && echo "$compiler"
	done
}

check()
{
	(cd "$1/include/doca" && ls doca_*.h workq/doca_*.h 2>/dev/null) | while read -r header; do
		for profile in host dpu; do
			compilers | while read -r compiler; do
				# shellcheck disable=SC2086 # words
				text=$(alone "$header" "$1/include/doca/$profile" $compiler) && continue
				echo "$header, $profile, $compiler: $(echo "$text" | grep -m1 error)"
			done
		done | head -n 1
	done
}

# marked OPTIONS... - whether a program that uses an experimental function compiles
marked()
{
	printf '#include <doca_version.h>\nconst char *f(void);\nconst char *f(void) { return doca_version_runtime(); }\n' |
		gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$top/include/doca" -I"$top/include/doca/host" "$@" -x c - 2>&1
}

# profile NAME - print the macros that identify the profile
profile()
{
	echo '#include <doca_error.h>' |
		gcc -dM -E -I"$top/include/doca" -I"$top/include/doca/$1" -x c - |
		sed -n 's/#define \(DOCA_ARCH_[HD][OPSTU]*\) *$/\1/p'
}

# takes COMPILER... - test the declarations that programs rely on
takes()
{
	n=$((n + 1))
	command -v "$1" >/dev/null || { echo "ok $n - $1 # SKIP $1 is not installed"; return; }
	log=$(echo '#include "granted.h"' |
		"$@" -Wall -Wextra -Werror -Wno-cast-function-type -DDOCA_ALLOW_EXPERIMENTAL_API -c -o /dev/null \
			-I"$top/include/doca" -I"$top/include/doca/dpu" -I"$top/tests/doca" - 2>&1)
	[ -z "$log" ] || printf 'not '
	echo "ok $n - what programs take for granted is so with $1 $2"
	[ -z "$log" ] || echo "$log" | sed 's/^/# /'
}

run_lint 3 "each header of libgantry-doca compiles alone, in both profiles" | sed 's/^1\.\.2/1..6/'
if marked -DDOCA_ALLOW_EXPERIMENTAL_API >/dev/null && marked | grep -q deprecated; then
	echo "ok 3 - an experimental function is a warning, unless the program allows it"
else
	echo "not ok 3 - an experimental function is a warning, unless the program allows it"
fi
if [ "$(profile host)" = DOCA_ARCH_HOST ] && [ "$(profile dpu)" = DOCA_ARCH_DPU ]; then
	echo "ok 4 - a profile says which side of the bus it is for"
else
	echo "not ok 4 - a profile says which side of the bus it is for"
fi
n=4
takes gcc -std=gnu11 -x c
takes g++ -std=c++17 -x c++
