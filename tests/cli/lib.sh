# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# lib.sh - for the tests in this directory: load it in setup()

need() { # PLUGIN... - skip the test if a plugin is not built
	local plugin
	for plugin; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
}

until_true() { # COMMAND... - repeat the command until it succeeds
	local end=$((SECONDS + 60))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "still fails after 60 s: $*"; logs; return 1; }
		read -rt 0.02 <><(:) || : # waits without using the processor
	done
}

# watch N TEXT COMMAND... - run the command, which runs until a signal, until it has printed N lines with the text; then its output
# is in $output. The signal goes to this process only, and without the SIGCONT of timeout(1): that can undo the stop with which
# the leak check of the address sanitizer begins, which then never ends.
watch() {
	local n=$1 text=$2 file=$BATS_TEST_TMPDIR/watched watched
	shift 2
	"$@" >"$file" 2>&1 3>&- &
	watched=$!
	until_true has_lines "$n" "$text" "$file"
	kill -TERM "$watched"
	wait "$watched" || true
	output=$(cat "$file")
}

has_lines() { # N TEXT FILE
	[ "$(grep -cF -- "$2" "$3")" -ge "$1" ]
}

logs() { # print the output files of the test
	find "$BATS_TEST_TMPDIR" -maxdepth 1 \( -name '*out' -o -name '*err' \) -exec cat {} +
}
