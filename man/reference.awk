# SPDX-License-Identifier: BSD-3-Clause
# reference.awk - make a manual page of headers: their functions, types and constants, from declarations and comments
#
#	awk -v page=gantry-stage.3 -v date='November 25, 2026' -v pages='ALL REFERENCE PAGES' -f reference.awk stage.h
#	awk -v lint=1 -f reference.awk stage.h		print what comments lack instead
#
# A comment is before its declaration, or after it on the same line. It has paragraphs, lists ("  - text"), literal text (lines
# that are indented by two columns or more) and fields: a word at its left margin, two spaces or more, a text. Fields:
#	returns				one line for each value, "VALUE: meaning"
#	thread ownership cost since	`since` is 0.1 if it is missing
#	NULL				what an empty slot of a table means
#	another word			the parameter of this name
# A sentence that begins with "Returns", "Control thread", "Lane's thread", "Any thread", "NULL:" or "Slot NULL:" is a field, too.
# A function has also the fields of the comments above it: of the header, of the struct, and of its section. A section of a
# struct begins with the comment "-- title --". The sections "-- private ... --" do not appear in the page.

# -- text --

# escape what roff would interpret
function escape(s)
{
	gsub(/\\/, "\\e", s)
	gsub(/-(E[A-Z]|errno|[0-9])/, "\\\\&", s)
	return s
}

# plain - text in which `code` is bold
function plain(s,  part, n, i, out)
{
	n = split(escape(s), part, "`")
	for (i = 1; i <= n; i++)
		out = out (i % 2 ? part[i] : "\\fB" part[i] "\\fP")
	return out
}

# fill - a paragraph: each sentence begins on its own line. level: the fields to which sentences can belong, or nothing
function fill(s, level,  out, end)
{
	while (match(s, /[.?!][)"]? +[A-Z(*`-]/)) {
		end = RSTART + (substr(s, RSTART + 1, 1) != " ")
		out = out sentence_of(substr(s, 1, end), level)
		s = trim(substr(s, end + 1))
	}
	return out sentence_of(s, level)
}

# sentence_of - a line of text; nothing if it has become a field
function sentence_of(s, level,  key, value)
{
	value = s
	if (sub(/^[Rr]eturns /, "", value))
		key = "returns"
	else if (s ~ /^([Ll]ane's|[Cc]ontrol|[Aa]ny) thread/) {
		key = "thread"
		value = tolower(substr(s, 1, 1)) substr(s, 2)
	} else if (sub(/^(Slot )?NULL: /, "", value))
		key = "NULL"
	if (level == "" || key == "")
		return begin_line(plain(s)) "\n"
	sub(/\.$/, "", value)
	if (!((level, key) in field))
		field[level, key] = value
	return ""
}

function begin_line(s) { return s ~ /^[.']/ ? "\\&" s : s }
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
function capital(s) { return toupper(substr(s, 1, 1)) substr(s, 2) }

# quote - one argument of a macro
function quote(s)
{
	s = plain(s)
	gsub(/"/, "\\(dq", s)
	return "\"" s "\""
}

# -- comments --

function forget(level,  key, part)
{
	for (key in field) {
		split(key, part, SUBSEP)
		if (part[1] >= level)
			delete field[key]
	}
}

# close_block - the end of the paragraph, list or literal text that is open
function close_block(level,  out)
{
	if (block == "text" && buffer !~ /[.:!?]$/)
		buffer = buffer "."
	if (block == "text" || block == "item")
		out = fill(buffer, level)
	if (block == "text" && out != "")
		out = gap out
	if (block == "item")
		out = out ".El\n"
	if (block == "literal")
		out = ".Ed\n"
	block = buffer = ""
	return out
}

# open_block - begin a list or literal text, or else a paragraph. before: the text before it
function open_block(kind, before)
{
	block = kind
	gap = before == "" ? "" : ".Pp\n"
	return kind == "item" ? ".Bl -bullet -compact\n" : kind == "literal" ? ".Bd -literal\n" : ""
}

# read_comment - store the fields of the last comment for a level, and return the rest of the text as mdoc
function read_comment(level,  i, j, n, line, keys, out)
{
	forget(level)
	n = 0
	for (i = 1; i <= n_lines; i++) {
		line = comment[i]
		if (line == "") {
			out = out close_block(level)
			n = 0
		} else if (match(line, /^[A-Za-z_]+(, [A-Za-z_.]+)*  +/)) {
			out = out close_block(level)
			n = split(trim(substr(line, 1, RLENGTH)), keys, ", ")
			for (j = 1; j <= n; j++)
				field[level, keys[j]] = substr(line, RLENGTH + 1)
		} else if (n && line ~ /^  /) {
			for (j = 1; j <= n; j++)
				field[level, keys[j]] = field[level, keys[j]] "\n" trim(line)
		} else if (line ~ /^ *- /) {
			if (block == "item")
				out = out fill(buffer, level)
			else {
				out = out close_block(level)
				out = out open_block("item", out)
			}
			sub(/^ *- /, "", line)
			out = out ".It\n"
			buffer = line
		} else if (block == "item" && line ~ /^  /) {
			buffer = buffer " " trim(line)
		} else if (line ~ /^  /) {
			if (block != "literal") {
				out = out close_block(level)
				out = out open_block("literal", out)
			}
			out = out begin_line(escape(substr(line, 3))) "\n"
		} else if (block == "text") {
			buffer = buffer " " line
		} else {
			out = out close_block(level)
			open_block("text", out)
			buffer = line
		}
	}
	out = out close_block(level)
	n_lines = 0
	return out
}

# find - a field of the innermost level that has it
function find(name,  level)
{
	for (level = 3; level >= 0; level--)
		if ((level, name) in field)
			return field[level, name]
	return ""
}

# -- functions --

# split_arguments - the arguments of a declaration, without commas of arguments that are functions
function split_arguments(s, arg,  i, c, depth, n)
{
	n = 1
	arg[1] = ""
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		depth += (c == "(") - (c == ")")
		if (c == "," && depth == 0)
			arg[++n] = ""
		else
			arg[n] = arg[n] c
	}
	for (i = 1; i <= n; i++)
		arg[i] = trim(arg[i])
	return n
}

# name_of - the name that an argument declares
function name_of(arg)
{
	if (match(arg, /\(\*[a-z_0-9]+\)/))
		return substr(arg, RSTART + 2, RLENGTH - 3)
	sub(/\[.*/, "", arg)
	sub(/.*[ *]/, "", arg)
	return arg
}

function is_value(s)
{
	return s ~ /^("[^"]*"|-?[0-9]+|[A-Z][A-Z0-9_]+|-E[A-Z]+(, -E[A-Z]+)*|another value|(another )?-errno( (as|of) [^:]*)?)$/
}

# field_text - the text of a field; a list, if it has several values with their meanings
function field_text(s,  line, n, i, at, items, n_items, value, out)
{
	n = split(s, line, "\n")
	for (i = 1; i <= n; i++) {
		sub(/; or /, "; ", line[i])
		if (i == 1 || is_value(value_of(line[i])))
			n_items++
		while ((at = index(line[i], "; ")) && is_value(value_of(substr(line[i], at + 2)))) {
			items[n_items] = items[n_items] " " substr(line[i], 1, at - 1)
			n_items++
			line[i] = substr(line[i], at + 2)
		}
		items[n_items] = items[n_items] " " line[i]
	}
	for (i = 1; i <= n_items; i++) {
		items[i] = trim(items[i])
		sub(/;$/, "", items[i])
		value = is_value(value_of(items[i])) ? value_of(items[i]) : items[i]
		out = out ".It " quote(value) "\n"
		if (length(items[i]) > length(value))
			out = out fill(trim(substr(items[i], length(value) + 2)))
	}
	if (n_items == 1 && value == items[1])
		return fill(value)
	return ".Bl -tag -width 10n -compact\n" out ".El\n"
}

# value_of - the part of an item before its meaning
function value_of(s) { sub(/: .*|:$/, "", s); return s }

function item(title, name)
{
	return find(name) == "" ? "" : ".It " title "\n" field_text(find(name))
}

function problem(text) { problems = problems where ": " text "\n" }

# parameters - a list of the arguments
function parameters(name, arg, n,  i, key, part, known, out, text)
{
	for (i = 1; i <= n; i++) {
		key = name_of(arg[i])
		if (arg[i] == "void" || arg[i] == "...")
			continue
		known[key]
		text = find(key)
		if (text == "")
			problem(name ": no description of the parameter " key)
		out = out ".It Fa " key "\n" (text == "" ? "" : field_text(text))
	}
	for (key in field) {
		split(key, part, SUBSEP)
		if (part[1] == 3 && !(part[2] in known) && part[2] !~ /^(returns|thread|ownership|NULL|since|cost|\.\.\.)$/)
			problem(name ": has no parameter " part[2])
	}
	return out == "" ? "" : ".It Parameters\n.Bl -tag -width 10n -compact\n" out ".El\n"
}

# describe_function - the subsection of a function. text: its description
function describe_function(type, name, args, text,  arg, n, i, out)
{
	n = split_arguments(args, arg)
	out = ".Ss " name "\n.Ft " quote(type) "\n.Fo " name "\n"
	for (i = 1; i <= n; i++)
		out = out ".Fa " quote(arg[i]) "\n"
	out = out ".Fc\n" (text == "" ? "" : ".Pp\n" text) ".Bl -tag -width Ownership\n" parameters(name, arg, n)
	if (text == "")
		problem(name ": no description")
	if (find("thread") == "")
		problem(name ": no thread")
	if (type != "void" && find("returns") == "")
		problem(name ": no returns")
	if (type != "void")
		out = out item("Returns", "returns")
	out = out item("Thread", "thread") item("Ownership", "ownership") item("Cost", "cost") item("Empty slot", "NULL")
	return out ".It Since\n" (find("since") == "" ? "0.1" : find("since")) "\n.El\n"
}

# -- declarations --

# strip_trailing - the code of a line; a comment after it becomes the last comment
function strip_trailing(line,  text)
{
	if (match(line, /\/\*.*\*\//)) {
		text = substr(line, RSTART + 2, RLENGTH - 4)
		line = substr(line, 1, RSTART - 1)
		trailing = trim(text)
	}
	return trim(line)
}

# take_comment - the text of the trailing comment, or else of the comment above, of a declaration
function take_comment(level)
{
	if (trailing != "") {
		n_lines = 1
		comment[1] = trailing
		trailing = ""
	}
	return read_comment(level)
}

# member - one declaration of a struct
function member(code,  text, type, name, args)
{
	gsub(/__attribute__\(\([^;]*\)\)/, "", code)
	sub(/[ \t]*;$/, "", code)
	gsub(/[ \t]+/, " ", code)
	where = FILENAME ":" FNR
	text = take_comment(3)
	if (skipping)
		return
	if (match(code, /\(\*[a-z_0-9]+\)\(/)) {
		type = trim(substr(code, 1, RSTART - 1))
		name = substr(code, RSTART + 2, RLENGTH - 4)
		args = substr(code, RSTART + RLENGTH)
		sub(/\)$/, "", args)
		functions = functions describe_function(type, name, args, sentence(text))
	} else
		members = members ".It Vt " quote(code) "\n" sentence(text)
}

# sentence - a description begins with a capital, unless its first word is a name
function sentence(text) { return text ~ /^[a-z]+[ ,.]/ && text !~ /^(const|enum|struct) / ? capital(text) : text }

function end_struct(  name, list)
{
	name = struct_name
	list = members == "" ? "" : ".Bl -tag -width Ds\n" members ".El\n"
	if (functions == "")
		types = types ".Ss " name "\n" struct_text list
	else
		tables = tables ".Sh FUNCTIONS OF " name "\n" struct_text list functions
	struct_name = members = functions = ""
	forget(1)
}

function constant(code,  name, value, text, alone)
{
	alone = code
	sub(/^#define /, "", code)
	if (!match(code, /^[A-Za-z_0-9]+(\([^)]*\))?/))
		return
	name = substr(code, 1, RLENGTH)
	value = trim(substr(code, RLENGTH + 1))
	if (name ~ /_H$/ || name in defined)
		return
	defined[name]
	text = sentence(take_comment(3))
	if (name ~ /\)/ && value ~ /\n/) {
		gsub(/\t/, "    ", alone)
		text = text ".Bd -literal\n" escape(alone) "\n.Ed\n"
	} else if (name !~ /\)/) {
		gsub(/ *\\?\n[ \t]*/, " ", value)
		name = name " = " trim(value)
	}
	constants = constants ".It Dv " quote(name) "\n" text
}

function enumerator(code,  n, i, name)
{
	n = split(code, name, ",")
	text = sentence(take_comment(3))
	for (i = 1; i <= n; i++)
		if (trim(name[i]) ~ /^[A-Z0-9_]+( = .*)?$/)
			members = members ".It Dv " quote(trim(name[i])) "\n" (i == 1 ? text : "")
}

function end_enum()
{
	if (members != "")
		types = types ".Ss " enum_name "\n" enum_text (enum_text == "" ? "" : ".Pp\n") \
			".Bl -tag -width Ds -compact\n" members ".El\n"
	enum_name = members = ""
}

# read_header - the first comment of a header: its first paragraph is the summary of the page
function read_header(  i, first, text)
{
	text = comment[1]
	sub(/^[^ ]* - /, "", text)
	for (first = 2; first <= n_lines && comment[first] != ""; first++)
		text = text " " comment[first]
	for (i = first + 1; i <= n_lines; i++)
		comment[i - first] = comment[i]
	n_lines = n_lines > first ? n_lines - first : 0
	if (n_files == 1) {
		sub(/\.$/, "", text)
		summary = text
		text = ""
	} else
		text = ".Ss " FILENAME "\n" fill(capital(text))
	description = description text read_comment(0)
}

# end_comment - recognise the comment of a header, and a title inside a struct
function end_comment()
{
	if (comment[1] ~ /^[a-z0-9_]+\.h - /)
		read_header()
	else if (struct_name != "" && comment[1] ~ /^-- /) {
		skipping = comment[1] ~ /^-- private/
		sub(/^-- /, "", comment[1])
		read_comment(2)
	}
}

function inline_function(code,  name, type)
{
	where = FILENAME ":" FNR
	sub(/^static inline /, "", code)
	gsub(/[ \t]+/, " ", code)
	match(code, /[a-z_0-9]+\(/)
	name = substr(code, RSTART, RLENGTH - 1)
	type = trim(substr(code, 1, RSTART - 1))
	code = substr(code, RSTART + RLENGTH)
	sub(/\)$/, "", code)
	if (n_lines && sub("^" name " - ", "", comment[1]))
		comment[1] = capital(comment[1])
	inlines = inlines describe_function(type, name, code, sentence(take_comment(3)))
	forget(3)
}

# -- lines --

BEGIN { sub(/\.3$/, "", page) }

FNR == 1 {
	files[++n_files] = FILENAME
	sub(/.*\//, "", files[n_files])
	n_lines = 0
	forget(0)
}

in_comment {
	in_comment = !sub(/[ \t]*\*\/[ \t]*$/, "")
	sub(/^[ \t]*\*? ?/, "")
	if (in_comment || $0 != "")
		comment[++n_lines] = $0
	if (!in_comment)
		end_comment()
	next
}

/^[ \t]*\/\*/ {
	in_comment = !sub(/[ \t]*\*\/[ \t]*$/, "")
	sub(/^[ \t]*\/\* ?/, "")
	n_lines = 0
	if ($0 != "" && !/^(SPDX|clang-format)/)
		comment[++n_lines] = $0
	if (!in_comment)
		end_comment()
	next
}

# the body of a function
in_body { in_body = !/^}/; next }

/^#if/ { depth++ }
/^#endif/ { depth-- }

# a macro. One inside a condition depends on the compiler, or belongs to another declaration
pending != "" || (/^#define / && depth == 1) {
	if (pending == "" && !/\\$/)
		constant(strip_trailing($0))
	else {
		pending = pending (pending == "" ? "" : "\n") $0
		if (!/\\$/) {
			constant(pending)
			pending = ""
		}
	}
	next
}

/^#/ { next }

inline_code != "" || /^static inline / {
	if ($0 == "{") {
		inline_function(inline_code)
		inline_code = ""
		in_body = 1
	} else
		inline_code = inline_code (inline_code == "" ? "" : " ") trim($0)
	next
}

/^struct [a-z_0-9]+ \{$/ {
	struct_name = $1 " " $2
	struct_text = read_comment(1)
	forget(2)
	skipping = 0
	next
}

/^struct [a-z_0-9]+;/ {
	line = strip_trailing($0)
	sub(/;$/, "", line)
	opaque = opaque ".It Vt " quote(line) "\n" sentence(take_comment(3))
	next
}

/^enum [a-z_]+ \{/ {
	enum_name = $1 " " $2
	enum_text = read_comment(3)
	if (sub(/\};$/, "")) {
		sub(/^[^{]*\{/, "")
		enumerator($0)
		end_enum()
	}
	next
}

/^\}/ {
	if (struct_name != "")
		end_struct()
	else if (enum_name != "")
		end_enum()
	next
}

enum_name != "" { enumerator(strip_trailing($0)); next }

struct_name != "" && $0 != "" {
	code = code (code == "" ? "" : " ") strip_trailing($0)
	if (code ~ /;$/) {
		member(code)
		code = ""
	}
	next
}

{ n_lines = 0 }

# print a section, if it has text
function section(title, text)
{
	if (text != "")
		printf ".Sh %s\n%s", title, text
}

function list(text) { return text == "" ? "" : ".Bl -tag -width Ds\n" text ".El\n" }

function print_page(  i, n, other)
{
	printf ".\\\" Made by reference.awk.\n.Dd %s\n.Dt %s 3\n.Os\n", date, toupper(page)
	printf ".Sh NAME\n.Nm %s\n.Nd %s\n", page, plain(summary)
	printf ".Sh SYNOPSIS\n.Fd \"#define GANTRY_API_VERSION 1\"\n"
	for (i = 1; i <= n_files; i++)
		print ".In gantry/" files[i]
	section("DESCRIPTION", description)
	printf "%s", tables
	section("FUNCTIONS", inlines)
	section("DATA TYPES", list(opaque) types)
	section("CONSTANTS", list(constants))
	print ".Sh SEE ALSO"
	n = split(pages, other, " ")
	for (i = 1; i <= n; i++)
		if (sub(/\.3$/, "", other[i]) && other[i] != page)
			print ".Xr " other[i] " 3 ,"
	print ".Xr gantry-plugin 7"
}

END {
	if (lint)
		printf "%s", problems
	else
		print_page()
}
