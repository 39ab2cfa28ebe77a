#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# coverage.sh BUILD - print the line coverage of sessions and transports by the corpora of the fuzz targets. BUILD: a build with
# --enable-coverage and without --enable-fuzz, in which each target reads the files of its corpus once.
build=${1:?coverage.sh BUILD}
targets="session client frame check shm_frames shm_ring tcp_frames tcp_control verbs_frames verbs_hello verbs_msg networks"
out=$build/coverage
paths="core/session/ core/transport/ plugins/transport/shm-comch/ plugins/transport/verbs-common/ plugins/transport/common/"
rm -rf "$out"
mkdir -p "$out" || exit 1

failed=0 objects=
for target in $targets; do
	program=$build/tests/fuzz/$target
	[ -x "$program" ] || { echo "$target: not built" >&2; continue; }
	LLVM_PROFILE_FILE=$out/$target-%m.profraw timeout 120 "$program" >"$out/$target.log" 2>&1 ||
		{ tail -n 5 "$out/$target.log" >&2; echo "$target: failed ($out/$target.log)" >&2; failed=1; }
	[ -x "$build/tests/fuzz/.libs/$target" ] && program=$build/tests/fuzz/.libs/$target
	objects="$objects -object $program"
done
llvm-profdata merge -sparse -o "$out/all.profdata" "$out"/*.profraw || exit 1

# shellcheck disable=SC2086 # one word per object
llvm-cov export -summary-only -instr-profile "$out/all.profdata" ${objects# -object } 2>"$out/llvm-cov.log" |
	jq -r '.data[0].files[] | [.filename, .summary.lines.covered, .summary.lines.count] | @tsv' |
	awk -v paths="$paths" '
	BEGIN { n = split(paths, path, " "); printf "%-44s %7s %7s %7s\n", "file", "lines", "reached", "percent" }
	function row(name, all, hit) { printf "%-44s %7d %7d %6.1f%%\n", name, all, hit, all ? 100 * hit / all : 0 }
	{
		for (i = 1; i <= n; i++) {
			at = index($1, path[i])
			if (!at || $1 ~ /\.h$/)
				continue
			line[i] = line[i] substr($1, at) "\t" $3 "\t" $2 "\n"
			all[i] += $3
			hit[i] += $2
		}
	}
	END {
		for (i = 1; i <= n; i++) {
			m = split(line[i], rows, "\n")
			for (j = 1; j < m; j++) {
				split(rows[j], f, "\t")
				row(f[1], f[2], f[3])
			}
			if (all[i])
				row(path[i] " total", all[i], hit[i])
			total += all[i]
			reached += hit[i]
		}
		row("total", total, reached)
		exit total == 0
	}' || failed=1
exit $failed
