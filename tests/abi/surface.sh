#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# surface.sh [update] - the headers that plugins include match tests/abi/surface line for line, so that the ABI does not change
# by mistake. update: write the lines of the headers to that file
headers=$top_srcdir/include
list=$top_srcdir/tests/abi/surface
. "$top_srcdir/tests/tap.sh"

# surface DIR - constants, then declarations with their members, of the headers in DIR that plugins include; no comments, and no
# bodies of functions, as these are compiled into the plugin
surface()
{
	printf '#include <gantry/%s.h>\n' stage backend transport role observer >"$tmp/all.c"
	$CC -I"$1" -E -dM "$tmp/all.c" | sed -nE '/_H ?$|GANTRY_ABI_M/d
		s/^#define ((GANTRY|gantry)_[A-Za-z0-9_]*\([^)]*\)).*/define \1/p
		s/^#define (GANTRY_[A-Za-z0-9_]+) +(.*)/define \1 \2/p' | LC_ALL=C sort
	$CC -I"$1" -E "$tmp/all.c" | $AWK -v dir="$1/gantry/" '
		/^# [0-9]/ { ours = index($3, "\"" dir) == 1; next }
		ours { text = text " " $0 }
		END {
			gsub(/__attribute__ *\(\((__)?format(__)? *\([^)]*\)\)\)/, "", text)
			n = split(text, c, "")
			for (i = 1; i <= n; i++) {
				if (c[i] == "{" && (body || word ~ /(^|[ \t])inline /)) { body++; word = ""; continue }
				if (body) { body -= c[i] == "}"; continue }
				if (c[i] == "(") open++
				if (c[i] == ")") open--
				word = word c[i]
				if (open || (c[i] !~ /[;{}]/ && !(c[i] == "," && where ~ /^enum/))) continue
				sub(/[,;{}]$/, "", word)
				gsub(/[ \t]+/, " ", word); sub(/^ /, "", word); sub(/ $/, "", word)
				if (word != "" && word !~ /^_Static_assert/) print where (where == "" ? "" : ": ") word
				if (c[i] == "{") { outer[++depth] = where; where = word == "" ? where : word }
				if (c[i] == "}") where = outer[depth--]
				word = ""
			}
		}'
}

surface "$headers" >"$tmp/now"
if [ "${1:-}" = update ]; then
	{ grep '^#' "$list"; cat "$tmp/now"; } >"$tmp/list" && cat "$tmp/list" >"$list"
	exit
fi
grep -v '^#' "$list" | diff - "$tmp/now" >"$tmp/out" || cat >>"$tmp/out" <<'END'
The headers of the plugin ABI differ from tests/abi/surface. If the change is intended, run tests/abi/surface.sh update (with
top_srcdir, CC and AWK set), and raise GANTRY_ABI_MINOR if the present version was released.
END
none "the headers match the list" "$tmp/out"

# changes that must be detected: a slot, a flag, a member, a constant, another argument
cp -R "$headers/gantry" "$tmp/gantry"
sed -i 's/^\(#define GANTRY_QUEUE_EDGES .*\)/\1\n#define GANTRY_QUEUE_NEW 4u/' "$tmp/gantry/transport.h"
sed -i 's/^\tint (\*rma_poll)(void \*rma, /&int more, /' "$tmp/gantry/transport.h"
sed -i 's/^\tuint32_t flags; .*GANTRY_TRANSPORT_.*/&\n\tint (*later)(void *device);/' "$tmp/gantry/transport.h"
sed -i 's/^\tGANTRY_KIND_STAGE = 4/&, GANTRY_KIND_NEW/; s/^\tuint64_t now_ns;/\tuint32_t extra;\n&/' "$tmp/gantry/plugin.h"
surface "$tmp" | diff "$tmp/now" - | sed -n 's/^> //p' >"$tmp/seen"
diff - "$tmp/seen" >"$tmp/out" <<'END'
define GANTRY_QUEUE_NEW 4u
enum gantry_kind: GANTRY_KIND_NEW
struct gantry_lane: uint32_t extra
struct gantry_transport_ops: int (*rma_poll)(void *rma, int more, struct gantry_rma_done *done, uint32_t max)
struct gantry_transport_ops: int (*later)(void *device)
END
none "seeded changes are detected" "$tmp/out"
done_testing
