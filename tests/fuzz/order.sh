#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# order.sh TESTS TARGET - no state leaks from one input of a fuzz target to the next: one process runs the corpus forwards,
# backwards and forwards. After each run of one input, the memory of the target must have the same contents. TESTS: the directory
# tests of a build with --enable-fuzz. TARGET: a target that links rewind.c.
tests=${1:?order.sh TESTS TARGET} target=${2:?order.sh TESTS TARGET}
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
files=$(find "$top/tests/fuzz/corpus/$target" -type f | sort)
backwards=$(echo "$files" | sort -r)

# shellcheck disable=SC2086 # names have no whitespace
GANTRY_FUZZ_STATE=1 "$tests/fuzz/$target" -runs=1 $files $backwards $files 2>&1 | awk '
	/^Running: / { file = $2; n++; next }
	/^state / {
		states++
		last = $2
		if ((file in first) && first[file] != last) {
			print file ": its state depends on the inputs before it"
			bad = 1
		}
		first[file] = last
	}
	END {
		if (n == 0 || states < n) {
			print "state of " states + 0 " runs, of " n + 0
			bad = 1
		}
		exit bad
	}'
