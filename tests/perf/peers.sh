# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# peers.sh - figures of other programs for the same task, and fio's engines as upper bounds. Sourced by bench.sh after clients.sh
# (bash).
#
# As with gantry, the client runs on the first CPU and the server on the second. nbdkit sleeps while it waits, and a wake-up across
# CPUs is expensive, so nbdkit is also measured with both on one CPU. Needs: build, tmp, cpu0, cpu1, ms; fio_job, reads, over_nbd
# of clients.sh.

port=$((20000 + $$ % 10000))

# listening PORT - succeeds if a process listens on the port
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
		sleep 0.01 # lint: allowed, between two checks
	done
}

# both_ends SERVER-ARGUMENT... -- CLIENT-ARGUMENT... - run a program at both ends of $port; print the output of the client
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

# ucx TEST COUNT - print columns: iterations, typical, average and overall latency, bandwidth twice, messages per second twice
ucx()
{
	export UCX_TLS=posix,cma,self UCX_LOG_LEVEL=error
	both_ends ucx_perftest -p "$port" -- ucx_perftest 127.0.0.1 -p "$port" -t "$1" -s 64 -n "$2" -w 2000 -f
}

# column 2: half a round trip in us; column 8: messages per second
ucx_rtt() { ucx "$1" $((ms * 300)) | awk 'NF == 8 && $1 + 0 { printf "%.4g\n", $2 * 2000 }'; }
ucx_rate() { ucx "$1" $((ms * 3000)) | awk 'NF == 8 && $1 + 0 { printf "%.4g\n", $8 / 1e6 }'; }
ucx_tag_rtt() { ucx_rtt tag_lat; }
ucx_am_rtt() { ucx_rtt ucp_am_lat; }
ucx_tag_rate() { ucx_rate tag_bw; }
ucx_am_rate() { ucx_rate ucp_am_bw; }

# column 7: half a round trip in us
fabric_rtt()
{
	local job=(fi_pingpong -p shm -e rdm -S 64 -I $((ms * 150)))
	both_ends "${job[@]}" -B "$port" -- "${job[@]}" -P "$port" 127.0.0.1 | awk '$1 == 64 { printf "%.4g\n", $7 * 2000 }'
}

# testpmd ROLE CPU EAL-ARGUMENT... -- ARGUMENT... - run DPDK's test program with one port, a memif; its second thread sleeps on the
# same CPU
testpmd()
{
	local role=$1 cpu=$2
	shift 2
	RUNTIME_DIRECTORY=$tmp exec timeout 20 stdbuf -oL dpdk-testpmd --lcores "0@$cpu,1@$cpu" --no-pci --no-telemetry \
		--file-prefix="$role" \
		--vdev="net_memif0,role=$role,socket=$tmp/memif.sock,socket-abstract=no,rsize=10$memif_device" -m 64 \
		"${memif_pages[@]}" -- --total-num-mbufs=8192 --no-mlockall "$@" 2>>"$tmp/errors"
}

# memif - packets of 64 bytes, one way, in bursts of 32: rate that the receiver prints, millions per second
memif()
{
	local server client turn report
	rm -f "$tmp/memif".*
	mkfifo "$tmp/memif.in"
	(testpmd server "$cpu1" -i --forward-mode=rxonly <"$tmp/memif.in" >"$tmp/memif.out") &
	server=$!
	exec 8>"$tmp/memif.in"
	echo start >&8
	until_ready $server test -S "$tmp/memif.sock" || { exec 8>&-; wait $server; return 1; }
	(testpmd client "$cpu0" --forward-mode=txonly --stats-period=60 >/dev/null 8>&-) &
	client=$!
	for ((turn = 0; turn < 3000 / ms; turn++)); do
		echo "show port stats 0" >&8 # a rate covers the time since the last output
		sleep "$(printf 0.%03d "$ms")" # lint: allowed, the time that is measured
		report=$(awk '/Rx-pps:/ && $2 { n++; rate = $2 } END { if (n >= 3) printf "%.4g\n", rate / 1e6 }' "$tmp/memif.out")
		[ -z "$report" ] || break
	done
	exec 8>&-
	kill -TERM $client $server 2>/dev/null
	wait $client $server
	echo "$report"
	[ -n "$report" ]
}

nbd_128() { over_nbd 128 memory 256M; }
nbd_write_1() { fio_job="${fio_job/randread/randwrite}" over_nbd 1 memory 256M; }
nbd_write_32() { fio_job="${fio_job/randread/randwrite}" over_nbd 32 memory 256M; }
nbd_null_1() { over_nbd 1 null 256M; }
nbd_null_32() { over_nbd 32 null 256M; }
nbd_here_1() { cpu1=$cpu0 over_nbd 1 memory 256M; }
nbd_here_null_1() { cpu1=$cpu0 over_nbd 1 null 256M; }

# qemu_null EXPORT FIO-ARGUMENT... - run fio on the null device of qemu-storage-daemon with this export; socket $tmp/qemu.sock
qemu_null()
{
	local pid rc export=$1
	shift
	rm -f "$tmp/qemu.sock"
	# shellcheck disable=SC2086 # words
	taskset -c "$cpu1" qemu-storage-daemon --blockdev driver=null-co,node-name=n0,size=268435456,read-zeroes=off $export \
		>/dev/null 2>>"$tmp/errors" &
	pid=$!
	until_ready $pid test -S "$tmp/qemu.sock" && $fio_job "$@" >/dev/null 2>>"$tmp/errors" && reads
	rc=$?
	kill -TERM $pid 2>/dev/null
	wait $pid
	return $rc
}

qemu_nbd()
{
	qemu_null "--nbd-server addr.type=unix,addr.path=$tmp/qemu.sock --export type=nbd,id=e0,node-name=n0,name=v" \
		--iodepth="$1" --ioengine=nbd --uri="nbd+unix:///v?socket=$tmp/qemu.sock"
}

qemu_vhost()
{
	qemu_null "--export type=vhost-user-blk,id=e0,node-name=n0,addr.type=unix,addr.path=$tmp/qemu.sock" \
		--iodepth="$1" --ioengine=libblkio --libblkio_driver=virtio-blk-vhost-user --libblkio_path="$tmp/qemu.sock"
}

qemu_null_1() { qemu_nbd 1; }
qemu_null_32() { qemu_nbd 32; }
qemu_vhost_1() { qemu_vhost 1; }
qemu_vhost_32() { qemu_vhost 32; }

# engines of fio: null, which does nothing, and io_uring on the same file as the file backend of gantry
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

# has WORD PROGRAM [PACKAGE] - record whether the program is installed
has()
{
	if command -v "$2" >/dev/null; then
		there="$there$1 "
	else
		absent "$2${3:+ ($3)}"
	fi
}

# also WORD OTHER - WORD is available if OTHER is
also()
{
	case $there in *" $2 "*) there="$there$1 " ;; esac
}

# find_pages - set $memif_peer, the name of the memif peer: with huge pages and without a copy if 64 of them are free
find_pages()
{
	memif_peer=memif memif_pages=(--in-memory --single-file-segments) memif_device=,zero-copy=yes
	awk '/^HugePages_Free/ { free = $2 } /^Hugepagesize/ { size = $2 } END { exit free < 64 || size != 2048 }' /proc/meminfo &&
		return
	memif_peer=memif-4k memif_pages=(--no-huge --no-shconf) memif_device=
	absent "memif of DPDK without a copy: no 64 huge pages are free (vm.nr_hugepages); with small ones: memif-4k"
}

# find_peers - put the names of the available peers into $there, and the reasons for missing ones into $tmp/absent
find_peers()
{
	there=" "
	: >"$tmp/absent"
	has ucx ucx_perftest ucx-utils
	has fabric fi_pingpong libfabric-bin
	has memif dpdk-testpmd dpdk-dev
	find_pages
	has fio fio
	command -v fio >/dev/null || { absent "all that fio measures"; return; }
	if [ -e "$engine" ]; then there="$there""engine "; else absent "gantry's engine for fio (configure --with-fio=DIR)"; fi
	has daemon qemu-storage-daemon qemu-utils
	if fio --enghelp=libblkio >/dev/null 2>&1; then
		also vhost daemon
	else
		absent "vhost-user-blk of qemu-storage-daemon: this fio has no libblkio, and other clients are virtual machines"
	fi
	fio --enghelp=nbd >/dev/null 2>&1 || { absent "nbdkit and qemu-storage-daemon: this fio has no engine nbd"; return; }
	has nbd nbdkit
	also qemu daemon
}

# peers WORD=FUNCTION... - print the available ones: the part of WORD before a "-" must be available
peers()
{
	local pair list=""
	for pair; do
		case $there in *" ${pair%%[-=]*} "*) list="$list $pair" ;; esac
	done
	echo "${list# }"
}
