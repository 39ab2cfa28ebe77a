#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# headers.sh - each installed header compiles alone: as C11 with gcc and clang, as C++17
# The headers of libgantry-doca need a profile: tests/doca/headers.sh checks them.
. "$(dirname "$0")/lib.sh"

seed()
{
	printf '#include <stdint.h>\nuint32_t fine(uint32_t x);\n' | put "$1/include/gantry/fine.h"
	echo 'uint32_t needs_stdint(void);' | put "$1/include/gantry/needs.h"
	command -v g++ >/dev/null || return 0
	echo 'static inline char *not_cxx(void *p) { return p; }' | put "$1/include/gantry/cxx.h"
}

# alone COMPILER... - whether the header on standard input compiles
alone()
{
	"$@" -Wall -Wextra -Wpedantic -Wpointer-arith -Werror -D_GNU_SOURCE -fsyntax-only - 2>&1
}

check()
{
	(cd "$1/include" && find . -name doca -prune -o -name '*.h' -print | sed 's|^\./||' | sort) | while read -r header; do
		for compiler in "gcc -std=c11 -x c" "clang -std=c11 -x c" "g++ -std=c++17 -x c++"; do
			command -v "${compiler%% *}" >/dev/null || continue
			# shellcheck disable=SC2086 # words
			text=$(printf "#include <%s>\nextern int used;\n" "$header" | alone $compiler -I"$1/include") && continue
			echo "$header, $compiler: $(echo "$text" | grep -m1 error)"
			break
		done
	done
}

bugs=2
command -v g++ >/dev/null || bugs=1
run_lint $bugs "each installed header compiles alone, as C and as C++"
