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

logs() { # print the output files of the test
	find "$BATS_TEST_TMPDIR" -maxdepth 1 \( -name '*out' -o -name '*err' \) -exec cat {} +
}
