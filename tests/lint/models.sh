#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# models.sh - each fence of the product has a litmus test in tests/models or a reason in tests/models/reasons, and the code contains
# the texts that litmus tests name
. "$(dirname "$0")/lib.sh"

seed()
{
	sed 's/^\|//' <<-'END' | put "$1/core/base/x.c"
		|/* gantry_shm_fence() of a comment */
		|static int has_test(void)
		|{
		|	__atomic_thread_fence(__ATOMIC_SEQ_CST);
		|}
		|
		|static __attribute__((noinline)) void has_reason(int a,
		|						 int b)
		|{
		|	atomic_store(&a, 1);
		|}
		|
		|static void has_none(void)
		|{
		|	gantry_shm_fence();
		|}
		|
		|#define macro_has_none() __atomic_thread_fence(__ATOMIC_ACQUIRE)
		|
		|static void weaker(void)
		|{
		|	__atomic_store_n(&a, 1, __ATOMIC_RELEASE);
		|}
	END
	printf 'code core/base/%s\n' "x.c has_test __atomic_thread_fence(" "x.c weaker seq_cst" "y.c gone x" |
		put "$1/tests/models/x.litmus"
	printf '# comment\ncore/base/x.c has_reason it has\ncore/base/x.c weaker too many\ncore/base/x.c has_reason\n' |
		put "$1/tests/models/reasons"
}

# functions FILE - print each line within a function or macro, preceded by the name of the function or macro
functions()
{
	$awk '
	{ sub(/\/\*.*\*\//, "") }
	/^ *\/?\*/ { next }
	/^#define [a-z_]+\(/ { split(substr($0, 9), word, "("); print word[1] "\t" substr($0, 9 + length(word[1])); next }
	/^[a-z].*\(/ {
		gsub(/__attribute__\(\([a-z_]*\)\)/, "")
		name = $0
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
	}
	/^}/ { name = "" }
	/^\t/ && name != "" { print name "\t" $0 }' "$1"
}

# fences - print "FILE FUNCTION" for each fence in the tree at $1
fences()
{
	fences='gantry_shm_fence\(|atomic_(thread|signal)_fence|comch_membarrier\(|SYS_membarrier|__ATOMIC_(SEQ_CST|ACQ_REL)'
	plain='\<atomic_(load|store|exchange|fetch_[a-z]+|compare_exchange_[a-z]+)\('
	files "$1" '*.[ch]' | grep -v '^tests/' | while read -r file; do
		functions "$1/$file" | grep -E "$fences|$plain" | cut -f1 | sort -u | sed "s|^|$file |"
	done
}

check()
{
	(
		cd "$1" || exit 1
		cat tests/models/*.litmus | sed -n 's/^code //p' | while read -r file function text; do
			[ -f "$file" ] && functions "$file" | grep "^$function	" | grep -qF -- "$text" ||
				echo "$file: $function: lacks $text, which a litmus test names"
		done
	)
	fences "$1" | sort >"$bad/fences"
	sed -n 's/^code \([^ ]* [^ ]*\) .*/\1/p' "$1"/tests/models/*.litmus | sort -u >"$bad/tested"
	sed -n '/^#/d; s/^\([^ ]* [^ ]*\) .*/\1/p' "$1/tests/models/reasons" | sort >"$bad/reasons"
	sort -u "$bad/tested" "$bad/reasons" | comm -13 - "$bad/fences" | sed 's/$/: a fence without a litmus test or a reason/'
	comm -23 "$bad/reasons" "$bad/fences" | sed 's/$/: a reason without a fence/'
	comm -12 "$bad/tested" "$bad/reasons" | sed 's/$/: a reason and a litmus test/'
	sed -n '/^#/d; /^[^ ]* [^ ]* ./!p' "$1/tests/models/reasons" | sed 's/$/: no reason/'
}

run_lint 7 "each fence has a litmus test or a reason, and each litmus test its fence"
