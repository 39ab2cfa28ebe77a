#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# protocol.sh - doc/protocol.md describes the definitions in the headers of the protocol: the layout of each struct, each number of
# an enum, each constant
#
# A line names the subject of the table after it:
#	Layout of `struct NAME` (N bytes):		| offset | bytes | field | meaning |
#	Layout of `struct NAME` (first N bytes):	the same
#	Numbers of `enum NAME`:				| number | name | ...
#	Constants of `HEADER`:				| number | name | ...
# The tables become static assertions, which a compiler checks with the headers. So errors have the line of the document.
. "$(dirname "$0")/lib.sh"

# The document has each struct, enum and constant of these headers.
headers='core/session/frame.h core/io/wire.h plugins/transport/shm-comch/shm_wire.h plugins/transport/shm-comch/shm_ring.h
plugins/transport/verbs-common/vb_wire.h plugins/transport/tcp/tcp_wire.h include/gantry/volume.h'

# Structs that are never sent to a peer: a parsed frame, another view of struct gantry_io, a buffer for any frame.
private='gn_parsed|gn_wire|comch_frame'

seed()
{
	cat <<-'END' | put "$1/core/session/frame.h"
		#include <stdint.h>
		#define GOOD 1
		#define WRONG_CONSTANT 2
		#define MISSING_CONSTANT 3 /* no row */
		#define FUNCTION(x) (x)
		enum good_type { GOOD_A = 1, GOOD_B, GOOD_TYPES };
		enum bad_type {
			BAD_NUMBER = 1,
			BAD_MISSING, /* no row */
			BAD_TYPES
		};
		enum missing_enum { NO_TABLE };
		struct good {
			uint16_t a, b; /* both */
			union {
				uint32_t c;
				uint8_t d[4];
			};
		} __attribute__((packed));
		struct private_part {
			uint32_t shown, hidden;
		};
		struct wrong_offset {
			uint32_t a, b, c;
		};
		struct wrong_bytes {
			uint16_t a;
			uint16_t b[2];
		};
		struct wrong_size {
			uint32_t a;
		};
		struct missing_field {
			uint32_t a;
			uint32_t b; /* no row */
		};
		struct missing_union {
			union {
				uint32_t a;
				uint32_t b; /* no row */
			};
		};
		struct unknown_field {
			uint32_t a;
		};
		struct missing_struct {
			uint32_t a;
		};
	END
	{
		# correct: check prints no line
		table 'struct good' 8 'a 0 2' 'b 2 2' 'c 4 4' 'd 4 4'
		table 'struct wrong_offset' 12 'b 4 4' 'a 4 4' 'c 8 4' # two offsets, of which the first leaves a gap
		table 'struct wrong_bytes' 6 'a 0 2' 'b 2 2'          # and a gap at the end
		table 'struct wrong_size' 8 'a 0 4'                   # and a gap at the end
		table 'struct missing_field' 8 'a 0 4'                # and a gap at the end
		table 'struct missing_union' 4 'a 0 4'
		table 'struct unknown_field' 4 'a 0 4' 'z 0 4'
		table 'struct private_part' 'first 4' 'shown 0 4' # the lint requires a row of the second member, too
		numbers 'Numbers of `enum good_type`:' '1 GOOD_A' '2 GOOD_B'
		numbers 'Numbers of `enum bad_type`:' '7 BAD_NUMBER'
		numbers 'Constants of `core/session/frame.h`:' '1 GOOD' '0x7 WRONG_CONSTANT'
		numbers 'No such line:' '1 GOOD'
		printf '\n| state | meaning |\n|---|---|\n| 1 | no table of ours |\n'
	} | put "$1/doc/protocol.md"
}

table()
{
	# shellcheck disable=SC2016 # backquotes of Markdown
	printf '\nLayout of `%s` (%s bytes):\n\n| offset | bytes | field | meaning |\n|---|---|---|---|\n' "$1" "$2"
	shift 2
	for row; do echo "$row"; done | sed 's/\(.*\) \(.*\) \(.*\)/| \2 | \3 | `\1` | x |/'
}

numbers()
{
	printf '\n%s\n\n| number | name | meaning |\n|---|---|---|\n' "$1"
	shift
	for row; do echo "$row"; done | sed 's/\(.*\) \(.*\)/| \1 | `\2` | x |/'
}

# The document as C, with a line that begins with // for each error that needs no compiler.
# shellcheck disable=SC2016 # backquotes of Markdown
as_c='
BEGIN { FS = " *[|] *" }
function bug(text) { print "// " FILENAME ":" FNR ": " text }
function at() { print "#line " FNR " \"" FILENAME "\"" }
function quoted(text) {
	if (text !~ /^`[A-Za-z_][A-Za-z0-9_]*`$/) bug("no name in backquotes: " text)
	gsub(/`/, "", text)
	return text
}
# the rows since the heading: a struct is covered without a gap, an enum has each enumerator
function end_table() {
	if (kind == "struct" && end != bytes) bug(name ": the rows end at byte " end " of " bytes)
	if (kind == "enum")
		print "#line " heading " \"" FILENAME "\"\nint all_of_" name "(enum " name " x) { switch (x) {" cases \
			"return 1; } return 0; }"
	kind = ""
	rows = 0
}
/^[|]/ && rows == 0 && kind != "" {
	if ($2 != (kind == "struct" ? "offset" : "number")) bug("the table has no column " (kind == "struct" ? "offset" : "number"))
	rows = 1
	next
}
/^[|] (offset|number) [|]/ && rows == 0 { bug("the line before the table does not name what it describes"); next }
/^[|]-/ { next }
/^[|]/ && kind == "struct" {
	field = quoted($4)
	if ($2 != end && $2 != last) bug(name "." field " begins at byte " $2 " instead of " end)
	last = $2
	if (end < $2 + $3) end = $2 + $3
	at()
	print "_Static_assert(offsetof(struct " name ", " field ") == " $2 " && sizeof(((struct " name " *)0)->" field ") == " $3 \
		", \"" name "." field "\");"
	print "// field " name "." field
	next
}
/^[|]/ && kind != "" {
	constant = quoted($3)
	cases = cases " case " constant ":"
	at()
	print "_Static_assert(" constant " == " $2 ", \"" constant "\");"
	print "// constant " constant
	next
}
rows { end_table() }
/^Layout of `struct [a-z_0-9]+` [(](first )?[0-9]+ bytes[)]:$/ {
	kind = "struct"
	name = $0
	sub(/^Layout of `struct /, "", name)
	sub(/`.*/, "", name)
	bytes = $0
	gsub(/.*[(](first )?| bytes[)]:/, "", bytes)
	end = last = 0
	at()
	print "_Static_assert(sizeof(struct " name ") " (/[(]first / ? ">= " : "== ") bytes ", \"size of struct " name "\");"
	print "// struct " name
}
/^Numbers of `enum [a-z_0-9]+`:$/ {
	kind = "enum"
	name = $0
	gsub(/^Numbers of `enum |`:$/, "", name)
	cases = ""
	heading = FNR
	print "// enum " name
}
/^Constants of `[^`]+`:$/ { kind = "constants" }
END { if (rows) end_table() }'

# The definitions of a header, a line for each: "struct NAME", "field NAME.MEMBER", "enum NAME", "constant NAME".
defined='
function members(name, text,  n, i, part, m, j, word) {
	gsub(/__attribute__ *[(][(][^)]*[)]+|union|[{}]/, " ", text)
	n = split(text, part, ";")
	for (i = 1; i <= n; i++) {
		gsub(/\[[^]]*\]/, "", part[i])
		m = split(part[i], word, ",")
		for (j = 1; j <= m; j++) {
			gsub(/^[ \t\n]+|[ \t\n]+$/, "", word[j])
			sub(/.*[ \t\n*]/, "", word[j])
			if (word[j] != "") print "field " name "." word[j]
		}
	}
}
{ text = text $0 "\n" }
END {
	gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", text)
	n = split(text, line, "\n")
	for (i = 1; i <= n; i++) {
		if (line[i] ~ /^struct [a-z_0-9]+ [{]/) {
			split(line[i], word, " ")
			print "struct " word[2]
			body = ""
			while (++i <= n && line[i] !~ /^[}]/) body = body line[i] "\n"
			members(word[2], body)
		} else if (line[i] ~ /^enum [a-z_0-9]+ [{]/) {
			split(line[i], word, " ")
			print "enum " word[2]
		} else if (line[i] ~ /^#define [A-Z_0-9]+ +[^ ]/) {
			split(line[i], word, " ")
			print "constant " word[2]
		}
	}
}'

# includes DIR - print #include for the headers in DIR, and for further headers that the document names
includes()
{
	echo '#include <stddef.h>'
	for header in $headers include/gantry/role.h include/gantry/transport.h; do
		[ ! -e "$1/$header" ] || echo "#include <$header>"
	done
}

# compile FILE DIR - print the errors of the document, one for each line of it
compile()
{
	LC_ALL=C ${CC:-cc} -std=gnu11 -Werror=switch -D_GNU_SOURCE -I"$2" -I"$2/include" -I"$2/core" -x c -fsyntax-only \
		"$1" >"$1.out" 2>&1 && return
	# the last enumerator is the number of the others
	grep -E 'error: ' "$1.out" | grep -vE "value '[A-Z_0-9]*_(TYPES|STATES|COUNT|FRAMES)' not" | sort -t: -k1,2 -u
	grep -q 'error: ' "$1.out" || echo "the compiler failed: $(head -n 1 "$1.out")"
}

check()
{
	[ -e "$1/doc/protocol.md" ] || {
		echo "doc/protocol.md does not exist"
		return
	}
	(cd "$1" && $awk "$as_c" doc/protocol.md) >"$bad/tables"
	sed -n 's|^// \(doc/.*\)|\1|p' "$bad/tables"
	{
		includes "$1"
		grep -v '^//' "$bad/tables"
	} >"$bad/tables.c"
	compile "$bad/tables.c" "$1"
	for header in $headers; do
		[ ! -e "$1/$header" ] || $awk "$defined" "$1/$header" | grep -vE "^(struct|field) ($private)([.]|\$)" |
			while read -r what; do
				grep -qxF "// $what" "$bad/tables" || echo "$header: doc/protocol.md has no $what"
			done
	done
}

run_lint 19 "the tables of doc/protocol.md agree with the headers"
