#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# names.sh - the core names no plugin. A line with a word that happens to be the name of a plugin says `lint: a word`. A module may
# have the same name as a plugin.
. "$(dirname "$0")/lib.sh"

seed()
{
	mkdir -p "$1/plugins/transport/rope" "$1/plugins/stage/two-words" "$1/plugins/stage/noop"
	put "$1/core/base/x.c" <<-'EOF'
	if (!strcmp(name, "rope")) return 1;
	open("two-words.so");
	puts("noop"); /* lint: a word */
	puts("rope is long");
	EOF
	echo 'struct gantry_plugin *p = &noop_LTX_gantry_plugin;' | put "$1/core/io/y.c"
}

check()
{
	for folder in "$1"/plugins/*/*/; do
		[ -d "$folder" ] || continue
		name=$(basename "$folder")
		under=$(echo "$name" | tr - _)
		(cd "$1" && grep -rnE --include='*.[ch]' "\"$name(\\.so)?\"|\\b${under}_LTX_" core) |
			grep -v "^core/$name/" |
			grep -vE 'lint: a word|:[[:space:]]*(/?\*|//)'
	done
}

run_lint 3 "the core names no plugin"
