#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# probes.bats - the static probes that gantry-probes(7) documents are in the program

setup() {
	grep -q '^#define HAVE_SDT 1' "$top_builddir/config.h" || skip "built without sys/sdt.h (Debian: systemtap-sdt-dev)"
	command -v readelf >/dev/null || skip "readelf is not installed"
	page=$top_srcdir/man/gantry-probes.7
	cd "$BATS_TEST_TMPDIR" || return
}

# found FILE - print each probe of a file with the number of its arguments
found() {
	readelf --notes "$1" | awk '/Provider: / { provider = $2 } /Name: / { name = $2 }
		/Arguments: / && provider == "gantry" { gsub(/, /, ","); print name, NF - 1 }' | sort -u
}

# arguments FILE - print each argument of each probe of a file on a line, such as 8@16(%rbx)
arguments() {
	readelf --notes "$1" | awk '/Provider: / { provider = $2 }
		/Arguments: / && provider == "gantry" { gsub(/, /, ","); for (i = 2; i <= NF; i++) print $i }'
}

# documented - print each probe of the page with the number of its arguments
documented() {
	awk '/^\.Ss Arguments of / { n = 0; names = $0; sub(/.* of /, "", names); gsub(/, | and /, " ", names) }
		/^\.It arg/ { n++ }
		/^\.El/ && n { split(names, name, " "); for (i in name) print name[i], n; n = 0 }' "$page" | sort
}

# scripts - write the scripts of bpftrace in the page to script.1 and so on, for the program under test
scripts() {
	awk -v program="$GANTRY" '/^# bpftrace -e / { out = "script." ++n; next }
		out {
			end = sub(/\047$/, ""); gsub(/\\e/, "\\"); gsub("/usr/bin/gantry", program)
			print >out
			if (end) out = ""
		}' "$page"
	ls script.*
}

@test "the program has the probes of the page, with their arguments" {
	[ "$(documented | wc -l)" -eq 5 ]
	diff <(documented) <(found "$GANTRY")
	library=$top_builddir/clients/.libs/libgantry.so
	[ ! -e "$library" ] || diff <(documented) <(found "$library")
}

@test "a tracer loads all arguments from memory, so that a probe costs one nop" {
	[ "$(arguments "$GANTRY" | wc -l)" -ge 25 ]
	run grep -v '[[(]' <(arguments "$GANTRY")
	[ -z "$output" ]
}

@test "the page names only probes that exist" {
	[ "$(scripts | wc -l)" -eq 3 ]
	cat script.* | grep -oE 'gantry:gantry:[a-z]+' | sort -u | cut -d: -f3 >named
	[ "$(wc -l <named)" -eq 5 ]
	diff named <(found "$GANTRY" | cut -d' ' -f1)
}

@test "bpftrace accepts the scripts of the page" {
	command -v bpftrace >/dev/null || skip "bpftrace is not installed"
	bpftrace -l "usdt:$GANTRY:gantry:*" >listed 2>&1 || skip "bpftrace cannot run here: $(head -n 1 listed)"
	[ "$(sort -u listed | wc -l)" -eq 5 ]
	scripts | while read -r script; do
		timeout 60 bpftrace -d -e "$(<"$script")" >dry 2>&1 || { cat dry; return 1; }
	done
}
