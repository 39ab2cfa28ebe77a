#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh [--quick] - compares gantry over soft-RoCE with perftest and the kernel's NVMe over RDMA, on the same devices and boot,
# and gantry over TCP with the kernel's NVMe over TCP
#
# Absolute times mean little in a virtual machine, and they vary from second to second. So the figures to compare are measured one
# after the other in many short rounds, and a verdict is the median of the ratios of the rounds. Latencies of perftest and gantry
# are medians, because both have outliers. Counts, such as packets and doorbells for each IO, are as valid as on any machine. The
# exit status reports whether all programs ran, not whether gantry was fast.
. "$top_srcdir/tests/vm/guest.sh"
rounds=9 ms=400 io_time=800ms n=400
case ${1:-} in
--quick) rounds=1 ms=200 io_time=400ms n=200 ;;
esac
vm_network
work=$TMPDIR/bench
mkdir -p "$work/runs"
perf=$top_builddir/tests/perf
port=7471

die()
{
	echo "bench: $*" >&2
	exit 1
}

# -- perftest: the limit --

# perftest PROGRAM SIZE COLUMN ITERATIONS - run the server on CPU 1, the client on CPU 0; print one number
perftest()
{
	local arguments=(-s "$2" -n "$4" -F) server
	taskset -c 1 "$1" -d rxe0 -x "$(gid_index rxe0)" "${arguments[@]}" >"$work/server" 2>&1 &
	server=$!
	await tcp_listens 18515
	taskset -c 0 "$1" -d rxe1 -x "$(gid_index rxe1)" "${arguments[@]}" 127.0.0.1 >"$work/client" 2>&1 || return 1
	wait $server
	awk -v size="$2" -v column="$3" '$1 == size { value = $column } END { if (value == "") exit 1; print value }' "$work/client"
}

send_lat() { perftest ib_send_lat 64 5 "$n"; }              # us, half of a round trip
read_lat() { perftest ib_read_lat 4096 5 "$n"; }            # us
write_lat() { perftest ib_write_lat 4096 5 "$n"; }          # us, half of a round trip
write_bw() { perftest ib_write_bw "$1" 4 "$2"; }            # MiB/s
read_bw() { perftest ib_read_bw "$1" 4 "$2"; }

# -- the transport by itself --

# messages MODE - run msgbench between the two devices; print the value of the line MODE
messages()
{
	port=$((port + 1))
	"$perf/msgbench" rdma-verbs "$1" "$ms" "service=${vm_addresses[0]}:$port" server:ibdev=rxe0 client:ibdev=rxe1 \
		"data_qp=${2:-separate}" >"$work/messages" 2>&1 || { cat "$work/messages" >&2; return 1; }
	awk -v name="$1" '$1 == name { print $2 }' "$work/messages"
}

half_us() { messages "$1" | awk '{ print $1 / 2000 }'; }
us() { messages "$1" | awk '{ print $1 / 1000 }'; }
mib() { messages "$1" | awk '{ print $1 * 1e6 / 1048576 }'; }

# -- the cost of an IO in counts, which do not depend on the machine --

# packets - print the packets that both ends have sent so far, with acknowledgements
packets()
{
	local a b
	read -r a </sys/class/net/v0/statistics/tx_packets
	read -r b </sys/class/net/v1/statistics/tx_packets
	echo $((a + b))
}

# counted BEFORE IOS DOORBELLS - write packets since BEFORE and doorbells, for each IO, to $work/counts
counted()
{
	awk -v packets=$(($(packets) - $1)) -v ios="$2" -v doorbells="$3" 'BEGIN {
		if (ios + 0)
			printf "%.4g %s\n", packets / ios, doorbells == "" ? "-" : sprintf("%.4g", doorbells / ios)
	}' >"$work/counts"
}

# in_reports NAME FILE... - print the sum of the numbers with that name in the reports
in_reports()
{
	local name=$1
	shift
	cat "$@" | tr '{,}' '\n\n\n' | awk -F: -v name="\"$name\"" 'index($1, name) { n += $2 } END { print n + 0 }'
}

# -- initiator to target --

# device PATH END - print the device of an end, 0 (the target) or 1. PATH: tcp, or the data_qp of rdma-verbs
device()
{
	case $1 in
	tcp) echo 'transport = "tcp"; auth = "none";' ;;
	*) echo "transport = \"rdma-verbs\"; ibdev = \"rxe$2\"; data_qp = \"$1\"; auth = \"none\";" ;;
	esac
}

# storage PATTERN BLOCK DEPTH PATH - print IOs per second. For short IOs lanes never sleep, like perftest. For longer data they
# may, like the passive end of perftest: a spinning lane takes processor time from the soft-RoCE device, which moves the data.
storage()
{
	local server before spin=20ms
	[ "$2" = 4KiB ] || spin=500us
	port=$((port + 1))
	before=$(packets)
	cat >"$work/conf" <<-END
	runtime = { stat = false; spin = "$spin"; };
	devices = {
		nic0 = { $(device "$4" 0) };
		nic1 = { $(device "$4" 1) };
	};
	roles = {
		store = { role = "target";
			  listen = { device = "nic0"; name = "${vm_addresses[0]}:$port"; sessions = 1; };
			backend = { type = "memory"; size = "16MiB"; populate = true; }; };
		load = { role = "initiator"; connect = { device = "nic1"; name = "${vm_addresses[0]}:$port"; };
			workload = { pattern = "$1"; block = "$2"; depth = $3; time = "$io_time"; ramp = "200ms"; }; };
	};
	END
	taskset -c 1 "$GANTRY" run -p "$GANTRY_PLUGINS" "$work/conf" --role store --json >"$work/store" 2>&1 &
	server=$!
	taskset -c 0 "$GANTRY" run -p "$GANTRY_PLUGINS" "$work/conf" --role load --json >"$work/load" 2>"$work/errors" || {
		kill "$server"
		cat "$work/errors" "$work/store" >&2
		return 1
	}
	wait "$server" || { cat "$work/store" >&2; return 1; }
	counted "$before" "$(in_reports completed "$work/load")" "$(in_reports doorbells "$work/load" "$work/store")"
	tr '{,' '\n\n' <"$work/load" | awk -F: '/"total"/ { inside = 1 } inside && /"iops"/ { printf "%.6g\n", $2; exit }'
}

# typical PATTERN PATH - print the median latency of 4 KiB IOs at depth 1, in us
typical()
{
	local kind=reads
	[ "$1" = randread ] || kind=writes
	storage "$1" 4KiB 1 "$2" >/dev/null &&
		tr '{,' '\n\n' <"$work/load" | awk -F: -v kind="\"$kind\"" 'index($1, kind) { inside = 1 }
			inside && /"p50_ns"/ { print $2 / 1000; exit }'
}

# -- NVMe of the kernel, to a null disk --

declare -A nvme_disk=()

# nvme_begin TRANSPORT - set nvme_disk[TRANSPORT] to a disk whose target is reached by rdma or tcp
nvme_begin()
{
	local nvmet=/sys/kernel/config/nvmet host=11111111-1111-1111-1111-111111111111 number=4420
	[ "$1" = rdma ] || number=4421
	modprobe -a "nvmet-$1" "nvme-$1" null_blk 2>/dev/null || return 1
	mount -t configfs none /sys/kernel/config 2>/dev/null
	[ -d $nvmet ] && command -v fio >/dev/null || return 1
	mkdir -p "$nvmet/subsystems/gantry-$1/namespaces/1" $nvmet/ports/$number
	echo 1 >"$nvmet/subsystems/gantry-$1/attr_allow_any_host"
	echo /dev/nullb0 >"$nvmet/subsystems/gantry-$1/namespaces/1/device_path"
	echo 1 >"$nvmet/subsystems/gantry-$1/namespaces/1/enable"
	echo "$1" >$nvmet/ports/$number/addr_trtype
	echo ipv4 >$nvmet/ports/$number/addr_adrfam
	echo "${vm_addresses[0]}" >$nvmet/ports/$number/addr_traddr
	echo $number >$nvmet/ports/$number/addr_trsvcid
	ln -s "$nvmet/subsystems/gantry-$1" $nvmet/ports/$number/subsystems/ || return 1
	echo "transport=$1,traddr=${vm_addresses[0]},trsvcid=$number,nqn=gantry-$1,host_traddr=${vm_addresses[1]},\
hostnqn=nqn.2014-08.org.nvmexpress:uuid:$host,hostid=$host,nr_io_queues=1" >/dev/nvme-fabrics || return 1
	for _ in {1..250}; do
		nvme_found "$1" && return
		read -rt 0.02 <><(:) || :
	done
	return 1
}

# nvme_found TRANSPORT - set nvme_disk[TRANSPORT]. Each path of a disk is a block device as well, without a file in /dev.
nvme_found()
{
	local nqn disk
	for nqn in $(grep -lx "gantry-$1" /sys/block/nvme*/device/subsysnqn 2>/dev/null); do
		disk=${nqn#/sys/block/}
		nvme_disk[$1]=/dev/${disk%%/*}
		[ ! -b "${nvme_disk[$1]}" ] || return 0
	done
	unset "nvme_disk[$1]"
	return 1
}

# nvme TRANSPORT PATTERN BLOCK DEPTH - print IOs per second
nvme()
{
	local before column=8
	before=$(packets)
	[ "$2" = randread ] || column=49
	fio --name=x --filename="${nvme_disk[$1]}" --ioengine=libaio --direct=1 --rw="$2" --bs="$3" --iodepth="$4" \
		--runtime="${io_time%ms}ms" --time_based --size=64m --cpus_allowed=0 --output-format=terse \
		>"$work/fio" 2>&1 || return 1
	counted "$before" "$(awk -F';' -v column=$column '{ print $column * $(column + 1) / 1000 }' "$work/fio")" ""
	awk -F';' -v column=$column '{ print $column }' "$work/fio"
}

nvme_us() { nvme "$1" "$2" "$3" 1 | awk '{ print 1e6 / $1 }'; }

# -- rounds --

# take NAME COMMAND... - record one value of NAME; `-`: none
take()
{
	local name=$1 value packets doorbells
	shift
	: >"$work/counts"
	value=$("$@") && [ -n "$value" ] || { echo "bench: $name: failed" >&2; failed=1; value=-; }
	echo "$value" >>"$work/runs/$name"
	read -r packets doorbells <"$work/counts" || return 0
	echo "$packets" >>"$work/runs/$name.packets"
	echo "$doorbells" >>"$work/runs/$name.doorbells"
}

# in_rounds FORMULA RUN... - print the median over the rounds of the formula of the values of the runs, $1 and so on
in_rounds()
{
	local formula=$1
	shift
	[ -f "$work/runs/$1" ] || return 0
	paste "${@/#/$work/runs/}" | awk "!/(^|\t)-/ { printf \"%.4g\\n\", $formula }" | sort -g |
		awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

median() { in_rounds '$1' "$1"; }

# both NAME COMMAND... - take the value of our command, with each kind of queue pair as the last argument
both()
{
	local name=$1 data_qp
	shift
	for data_qp in shared separate; do
		take "our.$data_qp.$name" "$@" $data_qp
	done
}

# after each limit the values that are compared with it
one_round()
{
	take limit.send send_lat
	take our.send half_us rtt
	take limit.read read_lat
	take our.read us read:4096
	both rw1 typical randwrite
	take limit.write write_lat
	take our.write half_us pong:4096
	take our.wrote us write:4096
	both rr1 typical randread
	take limit.wbw64 write_bw 65536 $((n / 2))
	take our.wbw64 mib writes:65536
	both rr64k storage randread 64KiB 32
	take limit.rbw64 read_bw 65536 $((n / 2))
	both rw64k storage randwrite 64KiB 32
	take limit.wbw4 write_bw 4096 $((n * 4))
	both rr32 storage randread 4KiB 32
	take limit.rbw4 read_bw 4096 $((n * 4))
	both rw32 storage randwrite 4KiB 32
	[ -z "${nvme_disk[rdma]:-}" ] || kernel kernel rdma
	[ -z "${nvme_disk[tcp]:-}" ] || over_tcp
}

# kernel NAME TRANSPORT - the runs of the kernel's NVMe
kernel()
{
	take "$1.rr1" nvme_us "$2" randread 4k
	take "$1.rw1" nvme_us "$2" randwrite 4k
	take "$1.rr32" nvme "$2" randread 4k 32
	take "$1.rw32" nvme "$2" randwrite 4k 32
	take "$1.rr64k" nvme "$2" randread 64k 32
	take "$1.rw64k" nvme "$2" randwrite 64k 32
}

# gantry and the kernel's NVMe, both over TCP
over_tcp()
{
	kernel kernel.tcp tcp
	take our.tcp.rr1 typical randread tcp
	take our.tcp.rw1 typical randwrite tcp
	take our.tcp.rr32 storage randread 4KiB 32 tcp
	take our.tcp.rw32 storage randwrite 4KiB 32 tcp
	take our.tcp.rr64k storage randread 64KiB 32 tcp
	take our.tcp.rw64k storage randwrite 64KiB 32 tcp
}

# row TEXT LIMIT OURS RATIO GOAL - GOAL: <=X or >=X
row()
{
	local verdict=-
	case $5 in
	"<="*) verdict=$(awk -v r="$4" -v g="${5#<=}" 'BEGIN { print (r <= g) ? "reached" : "missed" }') ;;
	">="*) verdict=$(awk -v r="$4" -v g="${5#>=}" 'BEGIN { print (r >= g) ? "reached" : "missed" }') ;;
	esac
	printf '%-56s %10s %10s %7s  %-7s %s\n' "$1" "$2" "$3" "$4" "$5" "$verdict"
	json="$json${json:+,}
 {\"measure\":\"$1\",\"limit\":${2/-/null},\"ours\":${3/-/null},\"ratio\":${4/-/null},\"goal\":\"$5\",\"verdict\":\"$verdict\"}"
}

# against TEXT GOAL LIMIT OURS RUN... - print a row; LIMIT and OURS are formulas of the values of these runs in a round
against()
{
	local text=$1 goal=$2 limit=$3 ours=$4
	shift 4
	[ -n "$(in_rounds "$ours" "$@")" ] || { row "$text" - - - "$goal"; return; }
	row "$text" "$(in_rounds "$limit" "$@")" "$(in_rounds "$ours" "$@")" "$(in_rounds "($ours) / ($limit)" "$@")" "$goal"
}

# storage_rows WHO TEXT GOALS... - print the rows of the runs WHO.rr1 and so on
storage_rows()
{
	local who=$1 text=$2
	[ -n "$(median "$who.rr1")" ] || return 0
	# one 4 KiB read: request, data, answer; one write: request, fetch, answer
	against "$text, 4 KiB random read, depth 1, us" "$3" '2 * $1 + $2' '$3' limit.send limit.write "$who.rr1"
	against "$text, 4 KiB random write, depth 1, us" "$4" '2 * $1 + $2' '$3' limit.send limit.read "$who.rw1"
	against "$text, 4 KiB random read, depth 32, MiB/s" "$5" '$1' '$2 * 4 / 1024' limit.wbw4 "$who.rr32"
	against "$text, 4 KiB random write, depth 32, MiB/s" "$6" '$1' '$2 * 4 / 1024' limit.rbw4 "$who.rw32"
	against "$text, 64 KiB read, depth 32, MiB/s" "$7" '$1' '$2 * 64 / 1024' limit.wbw64 "$who.rr64k"
	against "$text, 64 KiB write, depth 32, MiB/s" "$8" '$1' '$2 * 64 / 1024' limit.rbw64 "$who.rw64k"
}

# tcp_rows - print the rows of gantry over TCP, with the kernel's NVMe over TCP as the limit
tcp_rows()
{
	against "TCP and kernel NVMe, 4 KiB random read, depth 1, us" - '$1' '$2' kernel.tcp.rr1 our.tcp.rr1
	against "TCP and kernel NVMe, 4 KiB random write, depth 1, us" - '$1' '$2' kernel.tcp.rw1 our.tcp.rw1
	against "TCP and kernel NVMe, 4 KiB random read, depth 32, IO/s" - '$1' '$2' kernel.tcp.rr32 our.tcp.rr32
	against "TCP and kernel NVMe, 4 KiB random write, depth 32, IO/s" - '$1' '$2' kernel.tcp.rw32 our.tcp.rw32
	against "TCP and kernel NVMe, 64 KiB read, depth 32, IO/s" - '$1' '$2' kernel.tcp.rr64k our.tcp.rr64k
	against "TCP and kernel NVMe, 64 KiB write, depth 32, IO/s" - '$1' '$2' kernel.tcp.rw64k our.tcp.rw64k
}

# count_rows - print the counts for each IO of all storage runs
count_rows()
{
	local who name packets doorbells
	json_counts=""
	printf '\n%-46s %10s %10s\n' "for each IO" packets doorbells
	for who in our.shared our.separate kernel; do
		for name in rr1 rw1 rr32 rw32 rr64k rw64k; do
			packets=$(median "$who.$name.packets")
			[ -n "$packets" ] || continue
			doorbells=$(median "$who.$name.doorbells")
			doorbells=${doorbells:--}
			printf '%-46s %10s %10s\n' "$who.$name" "$packets" "$doorbells"
			json_counts="$json_counts${json_counts:+,}
 {\"run\":\"$who.$name\",\"packets\":$packets,\"doorbells\":${doorbells/#-/null}}"
		done
	done
}

failed=0 json=
[ -x "$perf/msgbench" ] || die "no $perf/msgbench: make perf-programs"
for program in ib_send_lat ib_read_lat ib_write_lat ib_write_bw ib_read_bw; do
	command -v $program >/dev/null || die "$program is not installed (Debian: perftest)"
done
for kind in rdma tcp; do
	nvme_begin $kind || echo "the kernel's NVMe over $kind is not available: omitted"
done
for round in $(seq $rounds); do
	one_round
	echo "round $round of $rounds: $SECONDS s" >&2
done
printf '%-56s %10s %10s %7s  %-7s\n' measure limit ours ratio goal
against "64 bytes, half a round trip, us" "<=1.10" '$1' '$2' limit.send our.send
against "4 KiB remote read, us" "<=1.10" '$1' '$2' limit.read our.read
against "4 KiB remote write, half a round trip, us" "<=1.10" '$1' '$2' limit.write our.write
against "4 KiB remote write, to its completion, us" - '$1' '$2' limit.write our.wrote
against "64 KiB remote writes, MiB/s" ">=0.95" '$1' '$2' limit.wbw64 our.wbw64
storage_rows our.shared "shared" "<=1.5" "<=1.5" ">=0.75" ">=0.75" ">=0.92" ">=0.92"
storage_rows our.separate "separate" "<=1.5" "<=1.5" ">=0.75" ">=0.75" ">=0.92" ">=0.92"
storage_rows kernel "kernel NVMe" - - - - - -
tcp_rows
count_rows
printf '{"schema":2,"rounds":%d,"rows":[%s\n],"for_each_io":[%s\n]}\n' "$rounds" "$json" "$json_counts" >"$VM_OUT/bench.json"
exit $failed
