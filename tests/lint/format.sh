#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# format.sh - C has the layout of .clang-format and one dialect: a condition has !p and p instead of a comparison with NULL, and
# branch.h alone defines macros for __builtin_expect(). Other versions of clang-format give other layouts: only 14 is used.
. "$(dirname "$0")/lib.sh"

formatter=
for name in clang-format-14 clang-format; do
	"$name" --version 2>/dev/null | grep -q 'version 14\.' && formatter=$name && break
done

seed()
{
	cp "$top/.clang-format" "$1"
	printf 'int f(int *p)\n{\n\tif (p == NULL)\n\t\treturn 1;\n\treturn p != NULL;\n}\n' | put "$1/core/base/null.c"
	printf 'int f(int *p)\n{\n\treturn p != NULL && *p;\n}\n' | put "$1/core/base/operand.c"
	printf '#define unlikely(x) __builtin_expect(!!(x), 0)\n' | put "$1/core/base/expect.c"
	printf 'int f(void)\n{\n    return 1;\n}\n' | put "$1/core/base/layout.c"
}

check()
{
	cd "$1" || return
	files . '*.[ch]' | grep -v -e 'unity-shim/' >"$bad/list"
	xargs grep -nE -e '== NULL|!= NULL (&&|\|\|)|(&&|\|\|) [^=&|()]+ != NULL' -e '(if|while) \([^=&|()]+ != NULL\)' \
		/dev/null <"$bad/list" |
		grep -vE '"[^"]*[!=]= NULL[^"]*"|:[[:space:]]*/?\*' | sed 's/$/: compare with NULL by ! or nothing/'
	grep -v -e '^include/gantry/branch.h' -e '^include/doca/' "$bad/list" | xargs grep -nE '__builtin_expect\(' /dev/null |
		sed 's/$/: use gantry_likely() or gantry_unlikely()/'
	xargs "$formatter" -n <"$bad/list" 2>&1 | grep -E '(warning|error):' | sed 's/: warning: code should be/: should be/'
}

if [ -z "$formatter" ]; then
	echo "1..0 # SKIP clang-format 14 is not installed"
	exit 0
fi
run_lint 4 "C has one layout and one dialect"
