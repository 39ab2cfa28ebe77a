#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh - each seeded bug in the lists of tests still applies: its sed expression changes its file. A bug that does not apply
# is otherwise noticed only in a run of mutants.sh
. "$(dirname "$0")/lib.sh"

# lists - LIST, the field that names the file, and its directories; {1} stands for field 1
lists()
{
	cat <<-'END'
		tests/sim/mutants.txt 1 .
		tests/sim/mutants-doca.txt 1 .
		tests/sim/mutants-component.txt 2 . plugins
		tests/conform/mutants.txt 2 plugins/transport/{1}
		tests/fuzz/mutants.txt 2 .
		tests/unit/verbs/mutants.txt 1 plugins/transport/verbs-common
		tests/unit/vhost/mutants.txt 2 plugins/role/vhost-user-blk
		tests/unit/backend/rbd_mutants.txt 1 plugins/backend/rbd
	END
}

seed()
{
	printf 'one\ntwo\n' | put "$1/core/here.c"
	printf '%s\n' '# comment' 'core/here.c@s/one/1/@applies' 'core/here.c@s/three/3/@does not apply' |
		put "$1/tests/sim/mutants.txt"
	printf '%s\n' 'rope@gone.c@s/one/1/@x@has no file' | put "$1/tests/conform/mutants.txt"
}

# source_of DIR TARGET FILE DIRECTORY... - the path of the file below DIR; nothing if no directory has it
source_of()
{
	root=$1 target=$2 name=$3
	shift 3
	for directory; do
		path=$(echo "$directory" | sed "s|{1}|$target|")/$name
		[ -f "$root/$path" ] && echo "$path" && return
	done
}

check()
{
	lists | while read -r list field directories; do
		[ -f "$1/$list" ] || continue
		grep -v '^#' "$1/$list" | while IFS= read -r bug; do
			target=${bug%%@*} rest=$bug
			[ "$field" -eq 1 ] || rest=${bug#*@}
			name=${rest%%@*} rest=${rest#*@}
			# shellcheck disable=SC2086 # words
			file=$(source_of "$1" "$target" "$name" $directories)
			[ -n "$file" ] || { echo "$list: no file: $bug"; continue; }
			sed "${rest%%@*}" "$1/$file" | cmp -s - "$1/$file" && echo "$list: does not apply: $bug"
		done
	done
}

run_lint 2 "each seeded bug applies"
