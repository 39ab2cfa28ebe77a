# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# storage.sh - commands for the rounds of bench.sh, each of which prints one number: gantry, its library for DOCA programs, and the
# limits for them; and the lists of measures. Sourced by bench.sh (bash).
#
# Needs: build, perf, here, tmp, cpu0, cpu1, cpu3, ms, io_time, idle_s, what, value() of measure.sh, peers() of peers.sh.

gantry=("$build/core/gantry" run -p "$build/plugins/.libs")
load_set=() # more arguments for the process with the initiator
volume=$build/tests/perf/volume # in a file system with direct IO

# configuration NAME TRANSPORT BACKEND [STAGES] - write $tmp/NAME.conf
configuration()
{
	cat >"$tmp/$1.conf" <<-END
	runtime = { stat = false; cpus = "$cpu0"; };
	devices = { dpu0 = { transport = "$2"; }; nic0 = { transport = "$2"; }; };
	roles = {
		store = { role = "target"; listen = { device = "nic0"; name = "store"; sessions = 1; };
			stages = ( ${4:-} ); backend = { $3 }; };
		bridge = { role = "gateway"; listen = { device = "dpu0"; name = "volume"; sessions = 1; };
			connect = { device = "nic0"; name = "store"; }; };
		load = { role = "initiator"; connect = { device = "nic0"; name = "store"; };
			workload = { pattern = "randread"; block = "4KiB"; depth = 32; time = "$io_time"; ramp = "50ms"; }; };
	};
	END
}

# the same with the initiator connected to the gateway
with_gateway()
{
	sed -e '/nic0 = {/s/\(nic0.*pci = "\)03/\104/' -e '/load = /s/nic0"; name = "store"/dpu0"; name = "volume"/' "$tmp/$1.conf"
}

# with_lanes NAME - the same with two lanes, on the first two CPUs
with_lanes()
{
	sed -e 's/role = "\(target\|initiator\)";/& lanes = 2;/' -e "s/cpus = \"[^\"]*\"/cpus = \"$cpu0,$cpu1\"/" "$tmp/$1.conf"
}

memory='type = "memory"; size = "256MiB"; populate = true;'
nothing='type = "null"; size = "1GiB";'
noop='{ type = "noop"; }'
shm="shm-comch\"; dir = \"$tmp/run\"; pci = \"03:00.0"
configuration two "$shm" "$memory"
configuration two_null "$shm" "$nothing"
with_gateway two >"$tmp/three.conf"
configuration null loop "$nothing"
with_gateway null >"$tmp/null3.conf"
configuration noop4 loop "$nothing" "$noop, $noop, $noop, $noop"
configuration one loop "$memory"
with_lanes two >"$tmp/two_lanes.conf"
with_lanes null >"$tmp/null_lanes.conf"
with_lanes one >"$tmp/one_lanes.conf"
configuration file loop "type = \"file\"; path = \"$volume\"; engine = \"uring\";"

# out_of GROUP NAME - print NAME of the total or the reads from a report in JSON
out_of()
{
	tr '{,' '\n\n' <"$tmp/report" | awk -F: -v from="$1" -v name="\"$2\"" '
		index($0, "\"" from "\"") { inside = 1 }
		inside && index($0, name) { print $2 + 0; exit }'
}

# iops - print thousands of IOs per second
iops() { out_of total iops | awk '{ printf "%.5g\n", $1 / 1000 }'; }

# run_processes NAME [ROLE CPU]... - run the servers on their CPUs in the background, the initiator on the first CPU
run_processes()
{
	local conf=$tmp/$1.conf servers="" rc=0
	shift
	while [ $# -gt 0 ]; do
		"${gantry[@]}" "$conf" --role "$1" --set "runtime.cpus=$2" >/dev/null 2>>"$tmp/errors" &
		servers="$servers $!"
		shift 2
	done
	"${gantry[@]}" "$conf" --role load "${load_set[@]}" --json >"$tmp/report" 2>>"$tmp/errors" || rc=1
	# shellcheck disable=SC2086 # process numbers
	[ $rc -eq 0 ] || kill -TERM $servers 2>/dev/null
	# shellcheck disable=SC2086
	wait $servers
	return $rc
}

# loads WORKLOAD-OPTION=VALUE... - set options for the next run of the initiator
loads()
{
	local option
	load_set=()
	for option; do
		load_set+=(--set "roles.load.workload.$option")
	done
}

# two NAME OPTION... - run target and initiator as two processes
two()
{
	local name=$1
	shift
	loads "$@"
	run_processes "$name" store "$cpu1" && iops
}

# three CPU_OF_TARGET CPU_OF_GATEWAY OPTION... - the same through a gateway; the initiator is on the first CPU
three()
{
	local store=$1 bridge=$2
	shift 2
	loads "$@"
	run_processes three store "$store" bridge "$bridge"
}

# alone NAME OPTION... - run target and initiator in one process, on one CPU
alone()
{
	local name=$1
	shift
	loads "$@"
	"${gantry[@]}" "$tmp/$name.conf" --role store --role load "${load_set[@]}" --json >"$tmp/report" 2>>"$tmp/errors" && iops
}

# together NAME - run all roles of a configuration in one process, on one CPU
together()
{
	"${gantry[@]}" "$tmp/$1.conf" --json >"$tmp/report" 2>>"$tmp/errors" && iops
}

none() { echo 0; }
limit_rings() { "$perf/limits/rings" "$ms" | value rings; }
limit_dirty() { "$perf/limits/memcpy" 50 "dirty:$1" | value "dirty_$1"; }
limit_dirty_64k() { limit_dirty 65536; }
limit_dirty_1m() { limit_dirty 1048576; }
limit_copy() { "$perf/limits/memcpy" 50 "$1" | value "memcpy_$1"; }
limit_copy_4k() { limit_copy 4096; }
limit_copy_64k() { limit_copy 65536; }
limit_copy_1m() { limit_copy 1048576; }
limit_io() { "$perf/limits/iofloor" "$ms" "$1" | value "iofloor_$1"; }
limit_1() { limit_io 1; }
limit_32() { limit_io 32; }
limit_128() { limit_io 128; }
limit_128k() { limit_io 1:read:131072; }
limit_relayed() { limit_io 1:relayed; }
limit_write_1() { limit_io 1:write; }
limit_write_32() { limit_io 32:write; }
limit_write_128() { limit_io 128:write; }
limit_null_1() { limit_io 1:null; }
limit_null_32() { limit_io 32:null; }

messages() { "$perf/msgbench" shm-comch "$1" "$ms" "dir=$tmp/run"; }
message() { messages "$1" | value "$1"; }
# in_turn NAME COMMAND... - run a command that also measures its limit, and print the limit; of_turn NAME prints the figure
in_turn()
{
	local name=$1
	shift
	"$@" >"$tmp/turn" && value "$name" <"$tmp/turn"
}
of_turn() { value "$1" <"$tmp/turn"; }
turn_rtt() { in_turn line messages rtt; }
turn_single() { in_turn ring messages single; }
turn_batch() { in_turn ring messages batch; }
of_rtt() { of_turn rtt; }
of_single() { of_turn single; }
of_batch() { of_turn batch; }
ours_rtt() { message rtt; }
ours_post_4k() { message post:4096; }
ours_post_64k() { message post:65536; }
ours_post_1m() { message post:1048576; }
ours_sum_64k() { message sum:65536; }
ours_sum_1m() { message sum:1048576; }
ours_data_4k() { message 4096; }
ours_data_64k() { message 65536; }
ours_data_1m() { message 1048576; }
ours_copy_1m() { message write:1048576; }

ours_1() { two two depth=1; }
ours_32() { two two; }
ours_128() { two two depth=128; }
ours_write_1() { two two pattern=randwrite depth=1; }
ours_write_32() { two two pattern=randwrite; }
ours_write_128() { two two pattern=randwrite depth=128; }
ours_128k() { two two block=128KiB depth=1; }
ours_null_1() { two two_null depth=1; }
ours_null_32() { two two_null; }
# target and a process on an eventfd block, and are woken alternately; the waking process spins, so both need one wake-up
rouse() { GANTRY_PLUGIN_PATH=$build/plugins/.libs "$perf/rouse" "$tmp/two_null.conf" load $((ms * 8)) >"$tmp/turn"; }
turn_wake() { beside two_null "$cpu1" rouse && of_turn wake; }
of_wake() { of_turn rouse; }
limit_relay() { "$perf/limits/relay" $((idle_s * 1000)) | value relay; }
ours_busy() { bash "$here/idle.sh" "$build" "$idle_s" 1000 2>>"$tmp/errors" | value idle; }
# depth 1: the initiator yields its CPU to the target while the gateway relays; otherwise the process that moves data has a CPU
ours_three_1() { three "$cpu0" "$cpu1" depth=1 && iops; }
ours_beside_1() { three "$cpu1" "$cpu1" depth=1 && iops; }
ours_three_32() { three "$cpu1" "$cpu0" && iops; }
ours_tail()
{
	three "$cpu1" "$cpu0" && echo "$(out_of reads p50_ns) $(out_of reads p99_9_ns)" |
		awk '$1 { printf "%.4g\n", $2 / $1 }'
}
ours_lanes_4() { loads && load_set=(--set roles.load.lanes=4) && run_processes two store "$cpu1" && iops; }
ours_lanes_2()
{
	load_set=(--set "runtime.cpus=$cpu0,$cpu2")
	run_processes two_lanes store "$cpu1,$cpu3" && iops
}
ours_one_null() { alone null; }
# two processes at a time, each on its own CPU
limit_twins()
{
	local one
	loads
	"${gantry[@]}" "$tmp/null.conf" --role store --role load --set "runtime.cpus=$cpu1" --json >"$tmp/twin" 2>>"$tmp/errors" &
	one=$(alone null) && wait $! && mv "$tmp/twin" "$tmp/report" && iops | awk -v one="$one" '{ printf "%.5g\n", $1 + one }'
}
ours_all_null() { together null3; }
ours_one_memory() { alone one; }
ours_null_lanes() { alone null_lanes; }
ours_memory_lanes() { alone one_lanes; }
ours_file_1() { alone file depth=1; }
ours_file_32() { alone file; }
per_io() { awk '{ printf "%.5g\n", 1e6 / $1 }'; }
noop_0() { kiops=$(alone null) && echo "$kiops" | per_io; }
noop_4() { kiops=$(alone noop4) && echo "$kiops" | per_io; }
fio_gantry_null() { beside two_null "$cpu1" over_gantry 32 "$tmp/two_null.conf"; }

transport_rtt() { message inline:64; }
transport_single() { message inlines:64; }
docabench() { GANTRY_PLUGIN_PATH=$build/plugins/.libs GANTRY_RUNDIR=$tmp/run "$perf/docabench" "$1" "$ms"; }
doca() { docabench "$1" | value "$1"; }
turn_doca() { in_turn line docabench rtt; }
doca_rtt() { doca rtt; }
doca_single() { doca single; }
doca_dma() { doca dma:65536; }
doca_idle() { doca idle; }

# measured once: the CPU time of these processes does not include other processes
once_idle() { bash "$here/idle.sh" "$build" "$idle_s" | value idle; }
once_crowd_cpu()
{
	bash "$here/crowd.sh" "$build" 256 $((idle_s + 2)).25 >"$tmp/crowd" 2>>"$tmp/errors" && value crowd_cpu <"$tmp/crowd"
}
once_crowd_memory() { value crowd_memory <"$tmp/crowd"; }
once_flood_4k_read()
{
	bash "$here/flood.sh" "$build" "$io_time" >"$tmp/flood" 2>>"$tmp/errors" && value flood_4k_read <"$tmp/flood"
}
once_flood_4k_write() { value flood_4k_write <"$tmp/flood"; }
once_flood_1m_read() { value flood_1m_read <"$tmp/flood"; }
once_flood_1m_write() { value flood_1m_write <"$tmp/flood"; }
once_flood_16m_read() { value flood_16m_read <"$tmp/flood"; }
once_flood_16m_write() { value flood_16m_write <"$tmp/flood"; }
once_flood_64m_read() { value flood_64m_read <"$tmp/flood"; }
once_flood_64m_write() { value flood_64m_write <"$tmp/flood"; }
once_control_stat()
{
	bash "$here/heckle.sh" "$build" "$io_time" >"$tmp/heckle" 2>>"$tmp/errors" && value control_stat <"$tmp/heckle"
}
once_control_garbage() { value control_garbage <"$tmp/heckle"; }
once_control_stall() { value control_stall <"$tmp/heckle"; }
once_report_path() { value report_path <"$tmp/heckle"; }
once_metrics_half() { value metrics_half <"$tmp/heckle"; }
once_metrics_unread() { value metrics_unread <"$tmp/heckle"; }

# make_volume - write 256 MiB if direct IO is possible; otherwise the lines that need it are omitted
make_volume()
{
	[ ! -f "$volume" ] || return 0
	dd if=/dev/zero of="$volume" bs=1M count=256 oflag=direct conv=fsync 2>/dev/null && return
	rm -f "$volume"
	absent "the file backend: no direct IO in $perf"
	return 1
}

# NAME|TEXT|UNIT|LIMIT|OURS|SCORE|GOAL|PEERS|GOAL TO THE BEST PEER. Score of a round with limit l and ours o: ratio o/l;
# stage (o-l)/4; value o. Goal: <N, >N or empty. Names with once_ are measured once, the others in rounds.
storage_list()
{
	cat <<-END
	rtt|message there and back, 64 B|ns|turn_rtt|of_rtt|ratio|<2.0|$(peers ucx-tag=ucx_tag_rtt ucx-am=ucx_am_rtt \
		fabric=fabric_rtt)|
	rings|the same, to two bare rings|ns|limit_rings|ours_rtt|ratio|<1.3||
	single|messages one way, one by one|M/s|turn_single|of_single|ratio|>0.4|$(peers ucx-tag=ucx_tag_rate \
		ucx-am=ucx_am_rate "$memif_peer=memif")|>2.5
	batch|messages one way, batches of 32|M/s|turn_batch|of_batch|ratio|>0.6|$(peers "$memif_peer=memif")|
	post_4k|name of 4 KiB in a region, to 64 B|ns|ours_rtt|ours_post_4k|ratio|<1.1||
	post_64k|name of 64 KiB in a region, to 64 B|ns|ours_rtt|ours_post_64k|ratio|<1.1||
	post_1m|name of 1 MiB in a region, to 64 B|ns|ours_rtt|ours_post_1m|ratio|<1.1||
	sum_64k|64 KiB written, posted, summed, to a copy|ns|limit_dirty_64k|ours_sum_64k|ratio|<1.2||
	sum_1m|1 MiB written, posted, summed, to a copy|ns|limit_dirty_1m|ours_sum_1m|ratio|<1.2||
	data_4k|4 KiB of a region, and answer|ns|limit_copy_4k|ours_data_4k|ratio|||
	data_64k|64 KiB of a region, and answer|ns|limit_copy_64k|ours_data_64k|ratio|<1.2||
	data_1m|1 MiB of a region, and answer|ns|limit_copy_1m|ours_data_1m|ratio|<1.2||
	copy_1m|remote write of 1 MiB, by copy|ns|limit_copy_1m|ours_copy_1m|ratio|<1.05||
	read_1|random read, 2 processes, depth 1|kIO/s|limit_1|ours_1|ratio|>0.75|$(peers nbd-far=nbd_1 nbd-near=nbd_here_1)|
	read_32|random read, 2 processes, depth 32|kIO/s|limit_32|ours_32|ratio|>0.8|$(peers nbd=nbd_32)|
	read_128|random read, 2 processes, depth 128|kIO/s|limit_128|ours_128|ratio|>0.8|$(peers nbd=nbd_128)|
	write_1|random write, 2 processes, depth 1|kIO/s|limit_write_1|ours_write_1|ratio|>0.75|$(peers nbd=nbd_write_1)|
	write_32|random write, 2 processes, depth 32|kIO/s|limit_write_32|ours_write_32|ratio|>0.8|$(peers nbd=nbd_write_32)|
	write_128|random write, 2 processes, depth 128|kIO/s|limit_write_128|ours_write_128|ratio|>0.8||
	read_128k|random read of 128 KiB, 2 processes|kIO/s|limit_128k|ours_128k|ratio|>0.98||
	null_1|null backend, 2 processes, depth 1|kIO/s|limit_null_1|ours_null_1|ratio|>0.4|$(peers nbd-far=nbd_null_1 \
		nbd-near=nbd_here_null_1 qemu=qemu_null_1 vhost=qemu_vhost_1)|
	null_32|null backend, 2 processes, depth 32|kIO/s|limit_null_32|ours_null_32|value|>8000|$(peers nbd=nbd_null_32 \
		qemu=qemu_null_32 vhost=qemu_vhost_32)|
	three_1|with the gateway between, depth 1|kIO/s|limit_1|ours_three_1|ratio|>0.375||
	relayed_1|the same, to a bare relay|kIO/s|limit_relayed|ours_three_1|ratio|>0.75||
	beside_1|the same, gateway and target on one CPU|kIO/s|limit_1|ours_beside_1|ratio|||
	three_32|with the gateway between, depth 32|kIO/s|limit_32|ours_three_32|ratio|>0.4||
	tail|the same, latency: 99.9 % to median|x|none|ours_tail|value|<20||
	lanes_4|4 lanes on 2 CPUs, to one lane|kIO/s|ours_32|ours_lanes_4|ratio|||
	one_memory|1 process, memory, depth 32|kIO/s|none|ours_one_memory|value|||
	all_null|1 process, 3 roles, null backend, depth 32|kIO/s|none|ours_all_null|value|>15000||
	one_null|the same without the gateway|kIO/s|none|ours_one_null|value|||
	null_lanes|2 lanes on 2 CPUs, null, 1 process, to one|kIO/s|ours_one_null|ours_null_lanes|ratio|>1.8||
	twin_lanes|the same, to two processes of one lane|kIO/s|limit_twins|ours_null_lanes|ratio|>0.9||
	memory_lanes|2 lanes to one with the memory backend|kIO/s|ours_one_memory|ours_memory_lanes|ratio|>1.8||
	stage|a noop stage: 0 and 4 of them|ns/IO|noop_0|noop_4|stage|<4||
	END
	[ ! -x "$perf/rouse" ] || echo "wake|IO that wakes its target, to an eventfd's|us|turn_wake|of_wake|ratio|<1.05||"
	[ ! -x "$perf/docabench" ] || echo "doca_line|64 B by the library for DOCA programs|ns|turn_doca|of_rtt|ratio|<2.5||"
	[ -z "$cpu3" ] || echo "lanes_2|2 lanes, to one lane|kIO/s|ours_32|ours_lanes_2|ratio|>1.8||"
	case $there in *" engine "*)
		echo "fio_null|fio, null backend, to fio's null engine|kIO/s|fio_null|fio_gantry_null|ratio|>0.75||" ;;
	esac
	case $there in *" fio "*)
		make_volume && cat <<-'END'
		file_1|file, direct, depth 1, to fio's io_uring|kIO/s|uring_1|ours_file_1|ratio|>0.95||
		file_32|file, direct, depth 32, to fio's io_uring|kIO/s|uring_32|ours_file_32|ratio|>0.95||
		END
	esac
	cat <<-'END'
	idle|three idle processes, of one CPU|%|none|once_idle|value|<0.5||
	busy|the same, 1000 IO a second; limit: eventfds|%|limit_relay|ours_busy|value|<5||
	END
	cat <<-'END'
	flood_4k_read|99 % of reads beside reads of 256 x 4 KiB|us|none|once_flood_4k_read|value|<10000||
	flood_4k_write|the same beside writes|us|none|once_flood_4k_write|value|<10000||
	flood_1m_read|beside reads of 256 x 1 MiB|us|none|once_flood_1m_read|value|<10000||
	flood_1m_write|beside writes|us|none|once_flood_1m_write|value|<10000||
	flood_16m_read|beside reads of 64 x 16 MiB|us|none|once_flood_16m_read|value|<10000||
	flood_16m_write|beside writes|us|none|once_flood_16m_write|value|<10000||
	flood_64m_read|beside reads of 48 x 64 MiB|us|none|once_flood_64m_read|value|<10000||
	flood_64m_write|beside writes|us|none|once_flood_64m_write|value|<10000||
	END
	[ ! -x "$perf/heckle" ] || cat <<-'END'
	control_stat|IOs beside a flood of control requests, to equal CPU load|x|none|once_control_stat|value|>0.9||
	control_garbage|beside garbage|x|none|once_control_garbage|value|>0.9||
	control_stall|beside 16 clients that do not read|x|none|once_control_stall|value|>0.9||
	report_path|beside runs whose report cannot be written|x|none|once_report_path|value|>0.9||
	END
	[ ! -x "$perf/heckle" ] || [ ! -x "$build/core/gantry-metrics" ] || cat <<-'END'
	metrics_half|beside 16 clients of the exporter that stall|x|none|once_metrics_half|value|>0.9||
	metrics_unread|beside 16 clients of it that do not read|x|none|once_metrics_unread|value|>0.9||
	END
	[ ! -x "$perf/crowd" ] || cat <<-'END'
	crowd_cpu|256 idle sessions of a gateway, of one CPU|%|none|once_crowd_cpu|value|<1||
	crowd_memory|the same, memory of each|KiB|none|once_crowd_memory|value|<256||
	END
}

doca_list()
{
	cat <<-'END'
	doca_rtt|consumer and producer there and back, 64 B|ns|transport_rtt|doca_rtt|ratio|<1.3||
	doca_line|the same, to the line of a cache|ns|turn_doca|of_rtt|ratio|<2.5||
	doca_single|consumer and producer one way, 64 B|M/s|transport_single|doca_single|ratio|>0.5||
	doca_dma|a DMA task of 64 KiB|ns|limit_copy_64k|doca_dma|ratio|<1.11||
	doca_idle|progress of an idle engine|ns|none|doca_idle|value|<30||
	END
}
