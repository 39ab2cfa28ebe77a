# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# peers.sh - what others take for the same, and fio's engines as ceilings. Sourced by bench.sh after clients.sh (bash).
#
# Who asks is on our first CPU, who answers on the second, as ours. nbdkit sleeps while it waits, and a wake-up across CPUs is
# dear: it is measured with both on one CPU too. Needs: build, tmp, cpu0, cpu1, ms; fio_job, reads, over_nbd of clients.sh.

port=$((20000 + $$ % 10000))

# listening PORT - does somebody?
listening()
{
	grep -qs "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") .* 0A " /proc/net/tcp /proc/net/tcp6
}

# until_ready PID TEST... - until the test holds or the process has ended, for at most three seconds
until_ready()
{
	local pid=$1 end
	shift
	end=$(($(now_ms) + 3000))
	until "$@"; do
		kill -0 "$pid" 2>/dev/null && [ "$(now_ms)" -lt $end ] || return 1
		sleep 0.01 # lint: allowed, between two looks
	done
}

# both_ends SERVER-ARGUMENT... -- CLIENT-ARGUMENT... - one program at both ends of $port; what the client says
both_ends()
{
	local server=() pid rc
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout 20 taskset -c "$cpu1" "${server[@]}" >/dev/null 2>>"$tmp/errors" &
	pid=$!
	until_ready $pid listening "$port" && timeout 20 taskset -c "$cpu0" "$@" 2>>"$tmp/errors"
	rc=$?
	[ $rc -eq 0 ] || kill -TERM $pid 2>/dev/null
	wait $pid
	return $rc
}

# ucx TEST COUNT - the columns: iterations, typical, average and overall latency, bandwidth twice, messages a second twice
ucx()
{
	export UCX_TLS=posix,cma,self UCX_LOG_LEVEL=error
	both_ends ucx_perftest -p "$port" -- ucx_perftest 127.0.0.1 -p "$port" -t "$1" -s 64 -n "$2" -w 2000 -f
}

# of half a round trip in microseconds, and of messages a second
ucx_rtt() { ucx "$1" $((ms * 300)) | awk 'NF == 8 && $1 + 0 { printf "%.4g\n", $2 * 2000 }'; }
ucx_rate() { ucx "$1" $((ms * 3000)) | awk 'NF == 8 && $1 + 0 { printf "%.4g\n", $8 / 1e6 }'; }
ucx_tag_rtt() { ucx_rtt tag_lat; }
ucx_am_rtt() { ucx_rtt ucp_am_lat; }
ucx_tag_rate() { ucx_rate tag_bw; }
ucx_am_rate() { ucx_rate ucp_am_bw; }

# half a round trip in microseconds is its seventh column
fabric_rtt()
{
	local job=(fi_pingpong -p shm -e rdm -S 64 -I $((ms * 150)))
	both_ends "${job[@]}" -B "$port" -- "${job[@]}" -P "$port" 127.0.0.1 | awk '$1 == 64 { printf "%.4g\n", $7 * 2000 }'
}

nbd_128() { over_nbd 128 memory 256M; }
nbd_write_1() { fio_job="${fio_job/randread/randwrite}" over_nbd 1 memory 256M; }
nbd_write_32() { fio_job="${fio_job/randread/randwrite}" over_nbd 32 memory 256M; }
nbd_null_1() { over_nbd 1 null 256M; }
nbd_null_32() { over_nbd 32 null 256M; }
nbd_here_1() { cpu1=$cpu0 over_nbd 1 memory 256M; }
nbd_here_null_1() { cpu1=$cpu0 over_nbd 1 null 256M; }

# qemu_null DEPTH - qemu-storage-daemon serves its null device over NBD
qemu_null()
{
	local pid rc
	rm -f "$tmp/qemu.sock"
	taskset -c "$cpu1" qemu-storage-daemon --blockdev driver=null-co,node-name=n0,size=268435456,read-zeroes=off \
		--nbd-server "addr.type=unix,addr.path=$tmp/qemu.sock" --export type=nbd,id=e0,node-name=n0,name=v \
		>/dev/null 2>>"$tmp/errors" &
	pid=$!
	until_ready $pid test -S "$tmp/qemu.sock" && $fio_job --iodepth="$1" --ioengine=nbd \
		--uri="nbd+unix:///v?socket=$tmp/qemu.sock" >/dev/null 2>>"$tmp/errors" && reads
	rc=$?
	kill -TERM $pid 2>/dev/null
	wait $pid
	return $rc
}
qemu_null_1() { qemu_null 1; }
qemu_null_32() { qemu_null 32; }

# fio's own engines: null, which does nothing, and io_uring on the file that gantry's file backend has too
fio_null() { $fio_job --iodepth=32 --ioengine=null >/dev/null 2>>"$tmp/errors" && reads; }
uring()
{
	$fio_job --iodepth="$1" --ioengine=io_uring --direct=1 --filename="$volume" >/dev/null 2>>"$tmp/errors" && reads
}
uring_1() { uring 1; }
uring_32() { uring 32; }

absent()
{
	printf '%s\n' "$1" >>"$tmp/absent"
}

# has WORD PROGRAM [PACKAGE] - note whether that program is there
has()
{
	if command -v "$2" >/dev/null; then
		there="$there$1 "
	else
		absent "$2${3:+ ($3)}"
	fi
}

# find_peers - which are there: words of $there; of the others $tmp/absent says why not
find_peers()
{
	there=" "
	: >"$tmp/absent"
	has ucx ucx_perftest ucx-utils
	has fabric fi_pingpong libfabric-bin
	absent "memif of DPDK: its testpmd needs huge pages and a configuration by hand"
	has fio fio
	command -v fio >/dev/null || { absent "all that fio measures"; return; }
	if [ -e "$engine" ]; then there="$there""engine "; else absent "gantry's engine for fio (configure --with-fio=DIR)"; fi
	fio --enghelp=libblkio >/dev/null 2>&1 || absent "vhost-user-blk of qemu-storage-daemon: this fio has no engine libblkio"
	fio --enghelp=nbd >/dev/null 2>&1 || { absent "nbdkit and qemu-storage-daemon: this fio has no engine nbd"; return; }
	has nbd nbdkit
	has qemu qemu-storage-daemon qemu-utils
}

# peers WORD=FUNCTION... - those of them that are there, WORD up to a "-" being what must be
peers()
{
	local pair list=""
	for pair; do
		case $there in *" ${pair%%[-=]*} "*) list="$list $pair" ;; esac
	done
	echo "${list# }"
}
