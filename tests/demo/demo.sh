#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh BUILD_DIR [--tcp] - run the whole data path on this machine: write a file system image through it and read it back
#
# --tcp: the leg between gateway and target is TCP. The target runs in a network namespace; without root, on loopback.
#
# DEMO_SIZE, MiB of the image (256); DEMO_SECONDS of random IO at the end (10)
set -u
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
build=${1:?usage: demo.sh BUILD_DIR [--tcp]}
tcp=${2:-}
[ -z "$tcp" ] || [ "$tcp" = --tcp ] || { echo "demo.sh: unknown option $tcp: write --tcp" >&2; exit 2; }
source=$(cd "$(dirname "$0")/../.." && pwd)
gantry=${GANTRY:-$build/core/gantry}
plugins=${GANTRY_PLUGINS:-$build/plugins/.libs}
conf=$source/conf/three-processes${tcp:+-tcp}.conf
mib=${DEMO_SIZE:-256} mib=${mib%MiB}
seconds=${DEMO_SECONDS:-10}
patience=$((seconds + 120)) # limit for each process
work='' pids=''
namespace='' # of the target

# shellcheck disable=SC2317 # called by the trap
clean_up()
{
	# only processes that this script started and that still run
	for pid in $pids; do
		kill "$pid" 2>/dev/null
	done
	wait
	[ -z "$namespace" ] || ip netns delete "$namespace" # the pair of interfaces ends with it
	[ -z "$work" ] || rm -rf "$work"
}

die()
{
	printf '\nFAILED: %s\n' "$*"
	for log in "$work"/*.log; do
		[ -s "$log" ] && printf -- '--- %s\n' "${log##*/}" && tail -n 5 "$log"
	done
	exit 1
}

# say TEXT - print a progress line
say()
{
	printf '     %s\n' "$*"
}

title()
{
	printf '\n%s\n' "$*"
}

# value FILE KEY.PATH - print values of a report in JSON, one on each line
value()
{
	awk -v want="$2" '
	/^ *[]}]/ { depth--; next }
	{
		key = ""
		if (match($0, /^ *"[^"]*": /)) {
			key = substr($0, 1, RLENGTH)
			gsub(/^ *"|": $/, "", key)
			$0 = substr($0, RLENGTH + 1)
		}
		path = depth > 1 ? at[depth] "." key : key
		if ($0 ~ /[[{]$/) { at[++depth] = path; next }
		gsub(/,$|"/, "")
		if (path == want) print
	}' "$1"
}

# ns NUMBER - print nanoseconds with a suitable unit
ns()
{
	awk -v n="${1:-0}" 'BEGIN {
		if (n < 1e3) printf "%d ns", n
		else if (n < 1e6) printf "%.1f us", n / 1e3
		else printf "%.2f ms", n / 1e6
	}'
}

# start ROLE NAME ARGUMENT... - start a process for one role in the background; it writes its report to NAME.json
start()
{
	role=$1 name=$2
	shift 2
	within=
	[ "$role" != store ] || within=${namespace:+ip netns exec "$namespace"}
	# shellcheck disable=SC2086 # words
	$within timeout --foreground -k 5 "$patience" "$gantry" run "$conf" --role "$role" --json "$@" \
		>"$work/$name.json" 2>"$work/$name.log" </dev/null &
	pids="$pids $!"
	say "started  ${within:+$within }gantry run ${conf##*/} --role $role"
}

# make_network - create a network namespace for the target, with a pair of interfaces; fails if this user cannot
make_network()
{
	[ "$(id -u)" -eq 0 ] && command -v ip >/dev/null || return 1
	ip netns add "gantry-demo-$$" 2>/dev/null || return 1
	namespace=gantry-demo-$$
	ip link add "gd$$" type veth peer name eth0 netns "$namespace" 2>/dev/null &&
		ip address add 198.18.47.1/30 dev "gd$$" && ip link set "gd$$" up &&
		ip -n "$namespace" address add 198.18.47.2/30 dev eth0 && ip -n "$namespace" link set eth0 up && return
	ip netns delete "$namespace"
	namespace=
	return 1
}

# use_tcp - set `address` to that of the target, and say where it is
use_tcp()
{
	if make_network; then
		address=198.18.47.2:4791
		say "the target runs in the network namespace $namespace, at $address"
	else
		address=127.$(($$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256)):4791
		say "the target runs on loopback, at $address: a network namespace needs root, and ip (Debian: iproute2)"
	fi
	say "TCP cannot pass on the right to access memory: the data passes through the process of the gateway"
}

# ended NAME... - all processes in the background must end by themselves, with status 0
ended()
{
	for pid in $pids; do
		wait "$pid"
		status=$?
		pids=${pids#" $pid"}
		[ $status -eq 0 ] || die "process $pid ended with status $status"
	done
	for name in "$@"; do
		[ "$(value "$work/$name.json" result)" = ok ] || die "$name: the result in its report is not ok"
	done
}

# foreground ARGUMENT... - run gantry with a time limit
foreground()
{
	timeout --foreground -k 5 "$patience" "$gantry" "$@" </dev/null
}

# choose_files BYTES - print names of small files of this machine, of about that total size in blocks of 4 KiB
choose_files()
{
	find /usr/share /usr/lib -xdev -type f -size -2048k -readable -printf '%s %p\n' 2>/dev/null |
		awk -v room="$1" '{
			need = int(($1 + 4095) / 4096) * 4096
			if (used + need > room || n == 30000) next
			used += need
			n++
			sub(/^[0-9]+ /, "")
			print
		}'
}

make_image()
{
	title "1. A real file system: ext4 of $mib MiB with files of this machine"
	mkdir "$work/files" || die "cannot write to $work"
	choose_files $((mib * 1024 * 1024 * 3 / 4)) >"$work/list"
	tar -cf - -T "$work/list" 2>/dev/null | tar -xf - -C "$work/files" 2>/dev/null
	chmod -R u+rwX "$work/files"
	truncate -s "${mib}M" "$work/in.img"
	mke2fs -q -F -t ext4 -b 4096 -N $(($(find "$work/files" | wc -l) + 1024)) -d "$work/files" "$work/in.img" \
		>"$work/mke2fs.log" 2>&1 || die "mke2fs cannot create the image"
	rm -rf "$work/files"
	sum=$(sha256sum <"$work/in.img")
	say "$(wc -l <"$work/list") files from /usr/share and /usr/lib"
	say "SHA-256  ${sum%% *}"
}

copy_both_ways()
{
	title "2. Three processes from one configuration; servers end after two sessions"
	start store store "$@" --set "roles.store.backend.path=$work/volume.img" --set roles.store.listen.sessions=2
	start bridge bridge "$@" --set roles.bridge.listen.sessions=2

	title "3. The image goes in through initiator, gateway and target, and out again"
	say "gantry copy in.img volume:"
	foreground copy -c "$conf" "$@" "$work/in.img" volume: >"$work/in.log" 2>&1 || die "copy in"
	say "         $(cat "$work/in.log")"
	say "gantry copy volume: out.img"
	foreground copy -c "$conf" "$@" volume: "$work/out.img" >"$work/out.log" 2>&1 || die "copy out"
	say "         $(cat "$work/out.log")"
	ended store bridge
	say "all processes have ended by themselves, with status 0"
	relayed=$(value "$work/bridge.json" roles.bridge.counters.ops_done)
	payload=$(sum_payload bridge)
	expect_payload store
}

# expect_payload NAME - check the bytes that passed through the gateway: none; over TCP, those that the target NAME has moved
expect_payload()
{
	moved=0
	[ -z "$tcp" ] || moved=$(value "$work/$1.json" devices.nic0.counters.payload_bytes)
	[ "$payload" = "$moved" ] || die "payload passed through the gateway: $payload bytes, expected $moved"
}

# sum_payload NAME - print the bytes of data that passed through the devices of that process
sum_payload()
{
	{ value "$work/$1.json" devices.dpu0.counters.payload_bytes; value "$work/$1.json" devices.nic0.counters.payload_bytes; } |
		awk '{ sum += $1; n++ } END { print n == 2 ? sum : "not counted" }'
}

check_copies()
{
	title "4. Is it the same?"
	[ "$(sha256sum <"$work/volume.img")" = "$sum" ] || die "the stored image differs from the sent one"
	[ "$(sha256sum <"$work/out.img")" = "$sum" ] || die "the image that was read back differs from the sent one"
	say "SHA-256 of the stored image, and of the image that was read back: the same"
	e2fsck -fn "$work/volume.img" >"$work/e2fsck.log" 2>&1 || die "e2fsck finds errors in the stored image"
	say "e2fsck -fn on the stored image: clean"
	say "the gateway relayed $relayed IOs for $((2 * mib)) MiB, and $payload bytes of the data passed through it"
	rm -f "$work/in.img" "$work/out.img" "$work/volume.img"
}

random_io()
{
	title "5. Random IO of 4 KiB for $seconds s, 70 % reads, 32 in flight, every block marked and checked"
	start store store2 "$@" --set "roles.store.backend.path=$work/scratch.img" --set roles.store.listen.sessions=1
	start bridge bridge2 "$@" --set roles.bridge.listen.sessions=1
	foreground run "$conf" --role load --json "$@" --set "roles.load.workload.time=${seconds}s" \
		>"$work/load.json" 2>"$work/load.log" || die "random IO: status $?"
	ended store2 bridge2
	checked=$(value "$work/load.json" roles.load.verify.checked)
	wrong=0
	for kind in wrong_block stale torn corrupt missing foreign; do
		wrong=$((wrong + $(value "$work/load.json" roles.load.verify.$kind)))
	done
	payload=$(sum_payload bridge2)
	[ "$wrong" -eq 0 ] || die "$wrong reads returned wrong data"
	[ "$checked" -gt 0 ] || die "no read was checked"
	expect_payload store2
}

# percentiles NAME KEY.PATH - print a line of the table
percentiles()
{
	set -- "$1" "$2" "$(value "$work/load.json" "$2.p50_ns")"
	[ -n "$3" ] || return 0
	printf '     %-28s %12s %12s %12s\n' "$1" "$(ns "$3")" "$(ns "$(value "$work/load.json" "$2.p99_ns")")" \
		"$(ns "$(value "$work/load.json" "$2.p99_9_ns")")"
}

results()
{
	say "$(value "$work/load.json" roles.load.total.iops | awk '{ printf "%.0f", $1 }') IO/s, $(
		value "$work/load.json" roles.load.total.bytes_per_second | awk '{ printf "%.0f MiB/s", $1 / 1048576 }')"
	printf '\n     %-28s %12s %12s %12s\n' latency median "99 %" "99.9 %"
	percentiles "read, seen by initiator" roles.load.reads.latency
	percentiles "write, seen by initiator" roles.load.writes.latency
	percentiles "  on the way to the gateway" roles.load.hops.link
	percentiles "  from the gateway on" roles.load.hops.gateway
	percentiles "  from the target on" roles.load.hops.target
	percentiles "  in the backend (file)" roles.load.hops.backend
	printf '\n'
	say "$checked reads checked, $wrong wrong"
	say "payload bytes that passed through the gateway: $payload"
}

for tool in mke2fs e2fsck sha256sum timeout; do
	command -v "$tool" >/dev/null || die "$tool is missing (Debian: e2fsprogs, coreutils)"
done
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
work=$(mktemp -d "${TMPDIR:-/tmp}/gantry-demo.XXXXXX") || exit 1
free=$(df -Pk "$work" | awk 'NR == 2 { print int($4 / 1024) }')
[ "$free" -ge $((mib * 4)) ] || die "$work has $free MiB free, but the demo needs $((mib * 4)) MiB: set TMPDIR"

cat <<'END'
gantry: a storage path of three processes on this machine

     initiator "load"   --64-byte descriptors-->   gateway "bridge"   -->   target "store"
     the host                                      the DPU                  the storage server
            \______________________ data, in one step ______________________/
END
[ -z "$tcp" ] || use_tcp
make_image
# all files of the demo are in $work
set -- --plugin-dir "$plugins" --set "runtime.stat_dir=$work/run" --set "devices.dpu0.dir=$work/run" \
	--set "roles.store.backend.size=${mib}MiB"
if [ -z "$tcp" ]; then
	set -- "$@" --set "devices.nic0.dir=$work/run"
else
	set -- "$@" --set "devices.nic0.services.volume0-store=$address"
fi
copy_both_ways "$@"
check_copies
random_io "$@"
results
if [ -z "$tcp" ]; then
	title "ok: everything came through, and nothing of the data through the gateway"
else
	title "ok: everything came through, over TCP"
fi
