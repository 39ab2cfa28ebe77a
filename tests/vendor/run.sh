#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh - builds the programs of a list from a checkout, runs its cases, and prints a table of the programs. ./dev vendor calls it.
# Exit status: 0 if no program failed, 1 if one did, 2 for a wrong command line.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
. "$top/tests/dev/results.sh"
. "$top/tests/vendor/build.sh"
. "$top/tests/vendor/steps.sh"

usage()
{
	cat <<-'EOF2'
	usage: run.sh [OPTION]... DIR [PATTERN]
	  DIR: a checkout of the programs, which is not changed. PATTERN: only the cases and programs whose names match it
	  --build DIR    the build of gantry; results go to DIR/vendor (default build/gcc)
	  --list FILE    the list of programs (default tests/doca/programs.list)
	  --rounds N     run each case N times (default 1)
	  --parallel N   run up to N cases at the same time (default 1)
	  --no-shim      run also the programs that need it without "gantry doca run --thread-start-shim"
	  --check        run each program with "gantry doca check"
	  --seeds A..B   run each case once for each seed, with "gantry doca check --seed". A program may end with an error:
	                 only a crash or a hang is a failure
	EOF2
}

# die TEXT... - the command line is wrong, or nothing can run
die()
{
	printf 'vendor: %s\n' "$*" >&2
	exit 2
}

build=$top/build/gcc list=$top/tests/doca/programs.list rounds=1 parallel=1 arguments=()
seeds=() doca=() shim=(run --thread-start-shim)
jobs=${JOBS:-$(nproc)}

# numbers OPTION A..B - set `seeds`
numbers()
{
	[[ $2 =~ ^([0-9]+)\.\.([0-9]+)$ ]] || die "$1: not a range A..B (value=$2)"
	mapfile -t seeds < <(seq "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}")
	[ ${#seeds[@]} -gt 0 ] || die "$1: empty range (value=$2)"
}

while [ $# -gt 0 ]; do
	case $1 in
	--build | --list | --rounds | --parallel | --seeds)
		[ $# -gt 1 ] || die "$1 needs a value"
		case $1 in
		--build) build=$2 ;;
		--list) list=$2 ;;
		--rounds) rounds=$2 ;;
		--parallel) parallel=$2 ;;
		--seeds) numbers "$1" "$2" && doca=(check) ;;
		esac
		shift
		;;
	--no-shim) shim=() ;;
	--check) doca=(check) ;;
	--help | -h) usage; exit 0 ;;
	-*) usage >&2; die "unknown option $1" ;;
	*) arguments+=("$1") ;;
	esac
	shift
done
[ ${#arguments[@]} -eq 1 ] || [ ${#arguments[@]} -eq 2 ] || { usage >&2; exit 2; }
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds: not a number above 0 (value=$rounds)"
[[ $parallel =~ ^[1-9][0-9]{0,2}$ ]] || die "--parallel: not a number from 1 to 999 (value=$parallel)"
[ -d "${arguments[0]}" ] || die "${arguments[0]}: no such directory"
source=$(cd "${arguments[0]}" && pwd) pattern=${arguments[1]:-}
build=$(cd "$build" 2>/dev/null && pwd) || die "no build of gantry: ./dev build"
[ -x "$build/core/gantry" ] && [ -e "$build/doca/.libs/libgantry-doca.so" ] || die "$build has no libgantry-doca: ./dev build"
for tool in meson ninja pkg-config pkill setsid stdbuf; do
	command -v $tool >/dev/null || die "$tool is not installed"
done
for tool in ${doca[0]:-} ${shim[0]:-}; do
	"$build/core/gantry" doca $tool --help >/dev/null 2>&1 || die "this gantry has no command \"gantry doca $tool\""
done
out=$build/vendor

# -- the list --

names=() cases=()                                        # in the order of the list; case: "NAME SIDE", SIDE may be "-"
declare -A sides=() directory=() needs=()                # by program
declare -A steps=() limit=()                             # by case name
declare -A members=()                                    # programs of a case, by case name
declare -A shimmed=()                                    # cases whose programs need the shim

# read_list - read $list into these variables
read_list()
{
	local word rest name="" side words
	while read -r word rest; do
		read -ra words <<<"$rest"
		case $word in
		"" | \#*) ;;
		program)
			names+=("${words[0]}")
			sides[${words[0]}]=${words[1]} directory[${words[0]}]=${words[2]} needs[${words[0]}]=${words[3]}
			;;
		case)
			name=${words[0]} limit[$name]=${words[1]} steps[$name]="" members[$name]=""
			for side in "${words[@]:2}"; do
				cases+=("$name $side")
			done
			[ ${#words[@]} -gt 2 ] || cases+=("$name -")
			;;
		shim) shimmed[$name]=yes ;;
		start | until | listens | enter | ends | errors | prints | file | run)
			[ -n "$name" ] || die "$list: \"$word\" before the first case"
			steps[$name]+="$word $rest"$'\n'
			[ "$word" != start ] || members[$name]+=" ${words[2]}"
			;;
		*) die "$list: unknown command \"$word\"" ;;
		esac
	done <"$list"
}

# selected - keep only the cases and programs that match $pattern
select_matching()
{
	local entry name kept=() used=" "
	for entry in "${cases[@]}"; do
		name=${entry% *}
		[[ "$name${members[$name]}" == *$pattern* ]] || continue
		kept+=("$entry")
		used+="${members[$name]} "
	done
	cases=("${kept[@]}")
	kept=()
	for name in "${names[@]}"; do
		[[ $used != *" $name "* && $name != *$pattern* ]] || kept+=("$name")
	done
	names=("${kept[@]}")
	[ ${#names[@]} -gt 0 ] || die "no program matches \"$pattern\""
}

# -- runs --

number=0 # of the current run; it selects TCP ports and names directories

# side_words TEXT SIDE - replace the words of a line that depend on the side
side_words()
{
	local text=$1 port=$((20000 + (number * 7 + $$ * 13) % 12000))
	if [ "$2" = dpu ]; then
		text=${text//@other-ib/mlx5_1} text=${text//@other/host} text=${text//@pci/03:00.0} text=${text//@ib/mlx5_0}
	else
		text=${text//@other-ib/mlx5_0} text=${text//@other/dpu} text=${text//@pci/b1:00.0} text=${text//@ib/mlx5_1}
	fi
	text=${text//@side/$2} text=${text//@port1/$port} text=${text//@port2/$((port + 1))}
	echo "${text//@port3/$((port + 2))}"
}

# not_runnable NAME SIDE - print why the case cannot run: a program of it is not built, or needs what is missing
not_runnable()
{
	local word rest words state
	while read -r word rest; do
		[ "$word" = start ] || continue
		read -ra words <<<"$rest"
		state=${built[${words[1]} ${words[2]}]:-no}
		case $state in
		yes) ;;
		skip*) echo "skip ${state#skip }"; return ;;
		*) echo "no ${words[2]} is not built for ${words[1]}"; return ;;
		esac
	done <<<"$(side_words "${steps[$1]}" "$2")"
}

# run_steps NAME SIDE - run the commands of a case. Returns non-zero at the first that fails, with the reason.
run_steps()
{
	local word rest args
	while read -r word rest; do
		[ -n "$word" ] || continue
		case $word in
		start | enter) read -ra args <<<"$rest" ;;
		run) args=("$rest") ;;
		*) args=("${rest%% *}" "${rest#"${rest%% *}"}") && args[1]=${args[1]# } ;;
		esac
		"step_$word" "${args[@]}" || return 1
	done <<<"$(side_words "${steps[$1]}" "$2")"
}

# record NAME RESULT SECONDS REASON - add the result of a case to those of each of its programs. RESULT: pass, fail, or none if the
# case did not run.
record()
{
	local program
	for program in ${members[$1]}; do
		printf '%s %s %s %s\n' "$program" "$2" "$3" "$4"
	done >>"$out/results"
}

# run_case NAME SIDE SEED - run a case once in a directory of its own
run_case()
{
	local name=$1 side=$2 seed=$3 before=$SECONDS rc why
	why=$(not_runnable "$name" "$side")
	if [ -n "$why" ]; then
		[ "${why%% *}" = skip ] || record "$name" none 0 "${why#* }"
		return
	fi
	reason=""
	dir=$(mktemp -d "${TMPDIR:-/tmp}/gantry-vendor.XXXXXX") || die "no temporary directory"
	mkdir -m 700 "$dir/run" "$dir/case"
	wrapper=()
	[ -z "${shimmed[$name]:-}" ] || [ ${#shim[@]} -eq 0 ] || wrapper=("$build/core/gantry" doca "${shim[@]}" --)
	[ ${#doca[@]} -eq 0 ] || wrapper+=("$build/core/gantry" doca "${doca[@]}" ${seed:+--seed "$seed"} --)
	deadline=$((SECONDS + ${limit[$name]}))
	cd "$dir/case" || die "no temporary directory"
	XDG_RUNTIME_DIR=$dir/run run_steps "$name" "$side"
	rc=$?
	[ $rc -eq 0 ] || find_crash
	if [ $rc -ne 0 ] && [ -n "$seed" ] && gave_up; then
		echo "gave up: $name ($side, run $number, seed $seed): $reason"
		rc=0
	fi
	end_processes
	cd "$top" || exit 2
	if [ $rc -eq 0 ]; then
		record "$name" pass $((SECONDS - before)) ""
	else
		record "$name" fail $((SECONDS - before)) "$reason"
		echo "failed: $name ($side, run $number${seed:+, seed $seed}): $reason (output: $out/failed/$number-$name)"
		mkdir -p "$out/failed/$number-$name"
		find "$dir/case" -name '*.out' -exec cp -t "$out/failed/$number-$name" {} +
	fi
	rm -rf "$dir"
}

# run_share K - run every case whose number modulo $parallel is K, in all rounds or with all seeds. A signal ends this after the
# current case.
run_share()
{
	local entry round turns=("${seeds[@]}")
	[ ${#turns[@]} -gt 0 ] || mapfile -t turns < <(yes - | head -n "$rounds")
	number=0
	for round in "${turns[@]}"; do
		for entry in "${cases[@]}"; do
			[ -z "$interrupted" ] || return 0
			number=$((number + 1))
			[ $((number % parallel)) -ne "$1" ] || run_case "${entry% *}" "${entry#* }" "${round#-}"
		done
	done
}

# run_cases - run all cases; $parallel processes share them. Each writes a file at its end: bash can lose the exit status of one
run_cases()
{
	local k
	for ((k = 1; k < parallel; k++)); do
		(
			trap end_processes EXIT
			trap 'interrupted=yes' INT TERM
			run_share $k
			: >"$out/share.$k"
		) &
		shares+=($!)
	done
	run_share 0
	for k in "${shares[@]}"; do
		wait "$k"
		while [ $? -gt 128 ] && kill -0 "$k" 2>/dev/null; do # a signal has ended the wait
			wait "$k"
		done
	done
	for ((k = 1; k < parallel; k++)); do
		[ -e "$out/share.$k" ] || die "a process that runs cases has failed (share $k of $parallel)"
	done
}

# interrupt - let each process that runs cases end after its current case
interrupt()
{
	interrupted=yes
	[ ${#shares[@]} -eq 0 ] || kill -TERM "${shares[@]}" 2>/dev/null
}

# -- results --

declare -A runs=() passes=() spent=() first_reason=() # by program

# read_results - sum up the results of the cases by program
read_results()
{
	local program verdict seconds why
	while read -r program verdict seconds why; do
		[ "$verdict" = none ] || runs[$program]=$((${runs[$program]:-0} + 1))
		[ "$verdict" != pass ] || passes[$program]=$((${passes[$program]:-0} + 1))
		spent[$program]=$((${spent[$program]:-0} + seconds))
		[ -z "$why" ] || first_reason[$program]=${first_reason[$program]:-$why}
	done <"$out/results"
}

# state_of NAME - print how the builds of a program ended: yes, no, or skip with a reason
state_of()
{
	local side state last=yes
	for side in ${sides[$1]//,/ }; do
		state=${built[$side $1]}
		[ "$state" = yes ] || last=$state
	done
	echo "$last"
}

# print_table - print a line for each program, and count its result
print_table()
{
	local name state verdict why
	printf '%-36s %-6s %-9s %8s  %s\n' program build runs seconds verdict
	for name in "${names[@]}"; do
		state=$(state_of "$name") verdict=pass why=""
		if [[ $state == skip* ]]; then
			verdict=skip why=${state#skip }
		elif [ "$state" = no ]; then
			verdict=fail why="build failed"
		elif [ "${runs[$name]:-0}" -eq 0 ]; then
			verdict=fail why=${first_reason[$name]:-no case runs it}
		elif [ "${passes[$name]:-0}" -ne "${runs[$name]}" ]; then
			verdict=fail why=${first_reason[$name]}
		fi
		printf '%-36s %-6s %-9s %8s  %s\n' "$name" "${state%% *}" "${passes[$name]:-0}/${runs[$name]:-0}" \
			"${spent[$name]:--}" "$verdict"
		reasons+=("$verdict $name $why")
	done
}

reasons=() shares=() interrupted=""
read_list
select_matching
trap end_processes EXIT
trap interrupt INT TERM
mkdir -p "$out" || exit 2
rm -rf "$out/failed" "$out"/share.*
: >"$out/results"
prepare_sides || die "$build has no environment for programs: ./dev build"
copy_source "$source" || die "$source: not a checkout of the samples: there are neither samples nor applications"
release=$(cat "$source/VERSION" 2>/dev/null || echo unknown)
echo "== build ${#names[@]} programs of $source (release $release, logs: $out/SIDE/*.log)"
build_programs
echo "== run ${#cases[@]} cases"
run_cases
read_results
print_table
for line in "${reasons[@]}"; do
	read -r verdict name why <<<"$line"
	result "$verdict" "$name" "${why:+($why)}"
done
summary
