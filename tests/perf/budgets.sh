#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# budgets.sh [--write] - compares the instructions of one IO from submit to complete, counted by callgrind, with tests/perf/budgets,
# and the instructions of both ends for one message of the library for DOCA programs
#
# A case is one process with one lane, so the load of the machine does not change the count. The count is the difference of two
# runs with different numbers of IOs, in the thread of the lane only. A deviation of more than 3 % from the budget, above or below,
# is a failure: explain or repair an increase, and record a decrease. --write prints the file with the measured figures.
#
# The figures are valid for the compiler and flags that the file names. With others, or without valgrind, all cases are skipped.
set -u
export LC_ALL=C
top=${top_srcdir:?} gantry=${GANTRY:?} plugins=${GANTRY_PLUGINS:?}
file=$top/tests/perf/budgets docabench=${top_builddir:?}/tests/perf/docabench
few=40000 many=50000 # enough that the lane executes more instructions than the thread that starts the roles
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# compiler and flags of this build, in the notation of the file
made_with()
{
	local version name=gcc
	${CC:-gcc} --version 2>/dev/null | grep -q clang && name=clang
	version=$(${CC:-gcc} -dumpfullversion -dumpversion 2>/dev/null)
	echo "$name ${version%%.*} $(uname -m) ${CFLAGS:--g -O2}"
}

compiler=$(made_with)
cases=$(sed -n 's/^\([a-z].*[^ ]\)  *\([0-9][0-9]*\)$/\1/p' "$file")

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

# configuration TRANSPORT STAGES GATEWAY OPTIONS DEPTH - into $tmp/conf; one lane, the null backend, 4 KiB random reads
configuration()
{
	local to=store bridge=""
	if [ "$3" = yes ]; then
		to=volume
		bridge="bridge = { role = \"gateway\"; listen = { device = \"near\"; name = \"volume\"; sessions = 1; };
			connect = { device = \"far\"; name = \"store\"; }; };"
	fi
	cat >"$tmp/conf" <<-END
	runtime = { stat = false; };
	devices = { near = { transport = "$1"; $4 }; far = { transport = "$1"; ${4/03:/04:} }; };
	roles = {
		store = { role = "target"; listen = { device = "far"; name = "store"; sessions = 1; };
			stages = ( $2 ); backend = { type = "null"; size = "1GiB"; }; };
		$bridge
		load = { role = "initiator"; connect = { device = "$([ $to = store ] && echo far || echo near)"; name = "$to"; };
			workload = { pattern = "randread"; block = "4KiB"; depth = $5; time = "0"; ops = $few; }; };
	};
	END
}

# counted COMMAND... - print the instructions of its busiest thread
counted()
{
	rm -f "$tmp"/count*
	valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file="$tmp/count" "$@" >"$tmp/out" 2>&1 || return 1
	cat "$tmp"/count-* | awk '/^totals:/ && NR > 1 { if ($2 > most) most = $2 } END { print most }'
}

# ios N - run the last written configuration with N IOs
ios() { counted "$gantry" run "$tmp/conf" -p "$plugins" --set "roles.load.workload.ops=$1"; }

# messages N - send N messages through the library for DOCA programs
messages() { GANTRY_PLUGIN_PATH=$plugins GANTRY_RUNDIR=$tmp/run counted "$docabench" "count:$1"; }

# per_one ios|messages - print the instructions of one IO or message
per_one()
{
	local less more
	less=$("$1" $few) && more=$("$1" $many) || return 1
	echo $(((more - less) / (many - few)))
}

# of NAME - print those of a case of the file: TRANSPORT[, gateway][, N stages][, qos][, depth N], or doca
of()
{
	local transport=${1%%,*} stages="" gateway=no options="" depth n
	# many messages, since the instructions until both ends are connected vary
	[ "$transport" != doca ] || { many=$((few + 100000)) per_one messages; return; }
	case $1 in *gateway*) gateway=yes ;; esac
	n=$(sed -n "s/.* \([0-9]*\) stages.*/\1/p" <<<"$1")
	for (( ; n > 0; n--)); do
		stages="$stages${stages:+, }{ type = \"noop\"; }"
	done
	# four limits that no IO waits for
	case $1 in *qos*) stages='{ type = "qos"; iops = 1000000000; bandwidth = "64TiB"; session_iops = 1000000000;
		session_bandwidth = "64TiB"; }' ;; esac
	[ "$transport" = loop ] || options="dir = \"$tmp/run\"; pci = \"03:00.0\";"
	depth=$(sed -n "s/.*depth //p" <<<"$1")
	configuration "$transport" "$stages" $gateway "$options" "${depth:-32}"
	per_one ios
}

if [ "${1:-}" = --write ]; then
	sed '/^[a-z]/d' "$file" | sed "s/^# compiler: .*/# compiler: $compiler/"
	while read -r name; do
		printf '%-32s %6d\n' "$name" "$(of "$name")"
	done <<<"$cases"
	exit 0
fi

[ -x "$docabench" ] || cases=$(grep -v '^doca' <<<"$cases") # built without docabench
command -v valgrind >/dev/null || skip_all "valgrind is missing (Debian: valgrind)"
grep -qx "# compiler: $compiler" "$file" ||
	skip_all "the budgets are those of $(sed -n 's/^# compiler: //p' "$file"), this is $compiler"
echo "1..$(wc -l <<<"$cases")"
n=0
while read -r name; do
	n=$((n + 1))
	budget=$(awk -v name="$name" 'index($0, name " ") == 1 { print $NF }' "$file")
	if ! took=$(of "$name"); then
		echo "not ok $n - $name: the program failed"
		sed 's/^/# /' "$tmp/out" | tail -n 5
	elif [ $((took * 100)) -gt $((budget * 103)) ]; then
		echo "not ok $n - $name: $took instructions, the budget is $budget"
	elif [ $((took * 100)) -lt $((budget * 97)) ]; then
		echo "not ok $n - $name: $took instructions, the budget of $budget is too high (budgets.sh --write)"
	else
		echo "ok $n - $name: $took instructions, the budget is $budget"
	fi
done <<<"$cases"
