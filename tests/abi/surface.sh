#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# surface.sh - the headers that plugins include match tests/abi/surface line for line. It has the plugin ABI version that
# introduced each line: a new slot, flag or constant raises the minor version, and needs an entry in the history
headers=$top_srcdir/include
list=$top_srcdir/tests/abi/surface
tmp=$(mktemp -d "${TMPDIR:-/tmp}/gantry-surface.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0

# none NAME FILE - the test passes if the file is empty
none()
{
	n=$((n + 1))
	if [ -s "$2" ]; then
		echo "not ok $n - $1"
		sed 's/^/# /' "$2"
	else
		echo "ok $n - $1"
	fi
}

# surface DIR - constants, then declarations with their members, of the headers in DIR that plugins include; no comments, and no
# bodies of functions, as these are compiled into the plugin
surface()
{
	printf '#include <gantry/%s.h>\n' stage backend transport role >"$tmp/all.c"
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

# numbered - the lines of a list without their versions
numbered()
{
	sed -nE 's/^[0-9]+\.[0-9]+ //p' "$@"
}

number=$(sed -nE 's/^#define GANTRY_ABI_M[AI][JN]OR ([0-9]+)$/\1/p' "$headers/gantry/plugin.h" | paste -sd.)
surface "$headers" >"$tmp/now"
numbered "$list" | diff - "$tmp/now" >"$tmp/out" || cat >>"$tmp/out" <<END
The plugin ABI (now $number) is not what tests/abi/surface says. What was added (>): raise GANTRY_ABI_MINOR, unless this number
is newer than the last release, describe it in the history of gantry/plugin.h, and add the lines to the list, with that number.
What went or has changed (<), unless it says the same in other words, needs another GANTRY_ABI_MAJOR.
END
none "the headers match the list" "$tmp/out"
sed -nE 's/^([0-9]+\.[0-9]+) .*/\1/p' "$list" | sort -u -t. -k1n -k2n >"$tmp/versions"
sed -nE 's/^ \*   ([0-9]+\.[0-9]+)  .*/\1/p' "$headers/gantry/plugin.h" | diff "$tmp/versions" - >"$tmp/out"
none "the history has exactly the versions that added lines" "$tmp/out"
[ "$(tail -n 1 "$tmp/versions")" = "$number" ] || echo "the headers are $number" >"$tmp/out"
none "the last version is that of the headers" "$tmp/out"
sed -nE 's/^# ([0-9.]+ [0-9]+) lines$/\1/p' "$list" >"$tmp/counts"
while read -r version lines; do
	is=$(grep -c "^$version " "$list")
	[ "$is" -eq "$lines" ] || echo "$version: $is lines, but $lines before the next version"
done <"$tmp/counts" >"$tmp/out"
[ "$(wc -l <"$tmp/counts")" -ge $(($(wc -l <"$tmp/versions") - 1)) ] || echo "a version before $number has no count" >>"$tmp/out"
none "no line was added to an earlier version" "$tmp/out"

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
echo "1..$n"
