#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh - each plugin exports exactly one symbol, NAME_LTX_gantry_plugin, and imports no symbol of the core
. "$(dirname "$0")/lib.sh"

seed()
{
	mkdir -p "$1"
	echo 'int two_words_LTX_gantry_plugin;' | ${CC:-cc} -shared -fPIC -x c -o "$1/two-words.so" -
	echo 'int more_LTX_gantry_plugin, another;' | ${CC:-cc} -shared -fPIC -x c -o "$1/more.so" -
	echo 'int wrong_LTX_gantry_plugin;' | ${CC:-cc} -shared -fPIC -x c -o "$1/name.so" -
	echo 'int gn_x(void); int ask_LTX_gantry_plugin(void) { return gn_x(); }' |
		${CC:-cc} -shared -fPIC -x c -o "$1/ask.so" -
}

check()
{
	plugins=$1
	[ "$1" = "$top" ] && plugins=$GANTRY_PLUGINS
	for plugin in "$plugins"/*.so; do
		[ -f "$plugin" ] || continue
		name=$(basename "$plugin" .so | tr - _)
		symbols=$(nm -D --defined-only "$plugin" | $awk '{ print $3 }' | tr '\n' ' ')
		[ "$symbols" = "${name}_LTX_gantry_plugin " ] || echo "$name exports: $symbols"
		nm -D --undefined-only "$plugin" | $awk -v name="$name" '$2 ~ /^(gn|gantry)_/ { print name " needs " $2 }'
	done
}

case ${CC:-cc} in
*sanitize*) echo "1..0 # SKIP a sanitizer adds symbols"; exit 0 ;;
esac
[ -d "${GANTRY_PLUGINS:-}" ] || { echo "1..0 # SKIP no plugins are built"; exit 0; }
run_lint 3 "each plugin exports one symbol"
