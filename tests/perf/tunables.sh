# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# tunables.sh - measures the tables of gantry-performance(7): the effect of each tunable on IOs a second, latency and CPU time.
# Sourced by bench.sh (bash).
#
# In each round the command of a table runs unchanged, and then once for each of its rows with the settings of that row. The figure
# of a row is the median of the ratios within the rounds. Needs: gantry, here, tmp, pairs, io_time, out_of() of storage.sh,
# wait_quiet() to verdict_of_round() of measure.sh. Writes the figures to $tmp/got, in the format of tunables.awk.

page=$here/../../man/gantry-performance.7

# metric NAME - print NAME from $tmp/report
metric()
{
	local value
	case $1 in
	IO/s) value=$(out_of total iops) ;;
	CPU) value=$(echo "$(out_of command cpu_ns) $(out_of command elapsed_ns)" | awk '$2 { print $1 / $2 }') ;;
	p50 | p99.9)
		value=p${1#p}_ns value=${value/./_}
		value=$(echo "$(out_of reads "$value") $(out_of writes "$value")" | awk '{ print $1 ? $1 : $2 }')
		;;
	esac
	echo "${value:-0}"
}

# ran COLUMNS SETTING... - run `gantry run FILE` with these settings, and set $figures
ran()
{
	local columns=$1 column setting set=()
	shift
	for setting; do
		set+=(--set "$setting")
	done
	(cd "$tmp" && timeout 20 "${gantry[@]}" FILE "${set[@]}" --set "roles.load.workload.time=$io_time" --json \
		>report 2>>errors) || { echo "gantry run FILE $* failed" >>"$tmp/errors"; return 1; }
	figures=
	for column in $columns; do
		figures="$figures $(metric "$column")"
	done
}

# one_round NUMBER SETTINGS COLUMNS - do one round of the table: print a line "NUMBER|SETTINGS|BASE...|FIGURE..." for each row
one_round()
{
	local base kind number set
	# shellcheck disable=SC2086 # words, here and below
	ran "$3" $2 || return 1
	base=$figures
	while IFS='|' read -r kind number set _; do
		[ "$kind $number" = "row $1" ] || continue
		ran "$3" $2 $set || return 1
		echo "$1|$set|$base|$figures"
	done <"$tmp/tables"
}

# ratios - print the medians of the output of one_round: "NUMBER|SETTINGS|RATIO ..."
ratios()
{
	awk -F'|' '
	function median(a, n,  i, j, t) {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && a[j - 1] > a[j]; j--) {
				t = a[j]; a[j] = a[j - 1]; a[j - 1] = t
			}
		return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
	}
	{
		key = $1 "|" $2
		if (!rounds[key]++)
			keys[++n_keys] = key
		columns = split($3, base, " ")
		split($4, figure, " ")
		for (i = 1; i <= columns; i++)
			all[key, i, rounds[key]] = base[i] ? figure[i] / base[i] : 0
		width[key] = columns
	}
	END {
		for (k = 1; k <= n_keys; k++) {
			line = ""
			for (i = 1; i <= width[keys[k]]; i++) {
				for (r = 1; r <= rounds[keys[k]]; r++)
					a[r] = all[keys[k], i, r]
				x = median(a, rounds[keys[k]])
				line = line (i > 1 ? " " : "") sprintf(x >= 9.95 ? "%.0f" : x >= 0.095 ? "%.2f" : "%.2g", x)
			}
			print keys[k] "|" line
		}
	}' "$tmp/rounds"
}

# tunables TEXT - measure the tables with TEXT in their command or in a row; print the figures of the page and the measured ones
tunables()
{
	local kind number set columns round tries alike low high
	awk -f "$here/tunables.awk" "$page" >"$tmp/tables"
	awk -v file=1 -f "$here/tunables.awk" "$page" >"$tmp/FILE"
	export XDG_RUNTIME_DIR=$tmp
	: >"$tmp/rounds"
	while IFS='|' read -r kind number set columns; do
		[ "$kind" = table ] && grep -qF -e "$1" <(grep "|$number|" "$tmp/tables") || continue
		alike=""
		for ((round = tries = 0; round < pairs && tries < 4 * pairs; tries++)); do
			wait_quiet 500
			watch_begin
			low=$alike high=$alike
			stamp && one_round "$number" "$set" "$columns" >"$tmp/round" && stamp ||
				{ tail -n 5 "$tmp/errors" >&2; return 1; }
			watch_end
			case $(verdict_of_round 2) in
			cores) round=$((round + 1)) alike=$low; cat "$tmp/round" >>"$tmp/rounds" ;;
			regime) [ $round -gt 0 ] || alike="" ;;
			esac
		done
		[ $round -eq "$pairs" ] || echo "gantry run FILE $set: $round undisturbed rounds of $pairs"
	done <"$tmp/tables"
	ratios >"$tmp/got"
	awk -F'|' '
	NR == FNR { got[$1, $2] = $3; next }
	$1 == "table" { head = sprintf("\nFILE %s\n%-60s %-24s %s\n", $3, "  with", "the page: " $4, "here"); next }
	($2, $3) in got { printf "%s  %-58s %-24s %s\n", head, $3, $4, got[$2, $3]; head = "" }' "$tmp/got" "$tmp/tables"
}
