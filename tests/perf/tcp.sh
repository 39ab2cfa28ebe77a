# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# tcp.sh - the path over TCP, compared with bare sockets (limits/tcpfloor, limits/tlsfloor) and with NBD over TCP; all on the
# loopback interface.
# Sourced by bench.sh after storage.sh, clients.sh and peers.sh (bash).

cat >"$tmp/tcp.conf" <<-END
	runtime = { stat = false; cpus = "$cpu0"; };
	devices = { nic0 = { transport = "tcp"; auth = "none"; services = { store = "127.0.0.1:$((port + 1))"; }; }; };
	roles = {
		store = { role = "target"; listen = { device = "nic0"; name = "store"; sessions = 1; }; backend = { $memory }; };
		load = { role = "initiator"; connect = { device = "nic0"; name = "store"; };
			workload = { pattern = "randread"; block = "4KiB"; depth = 32; time = "$io_time"; ramp = "50ms"; }; };
	};
END

# the same with encryption; the limit is limits/tlsfloor
(umask 077 && echo "bench:$(printf '%064d' 7)" >"$tmp/keys")
sed "s|auth = \"none\";|auth = \"psk\"; auth_identity = \"bench\"; auth_keys = \"$tmp/keys\";|" "$tmp/tcp.conf" >"$tmp/tls.conf"

# floor SPEC - run the limit; floor_cpu prints the CPU time of an IO of that run
floor() { "$perf/limits/tcpfloor" "$ms" "$1" >"$tmp/floor" && value "tcpfloor_$1" <"$tmp/floor"; }
tls_floor() { "$perf/limits/tlsfloor" "$ms" "$1" >"$tmp/floor" && value "tlsfloor_$1" <"$tmp/floor"; }
floor_rtt() { floor rtt; }
floor_1() { floor 1; }
floor_32() { floor 32; }
floor_128k() { floor 8:131072; }
tls_floor_32() { tls_floor 32; }
tls_floor_128k() { tls_floor 8:131072; }
floor_cpu() { floor 32 >/dev/null && value tcpfloor_32.cpu <"$tmp/floor"; }

tcp_rtt() { "$perf/msgbench" tcp rtt "$ms" "service=127.0.0.1:$((port + 2))" | value rtt; }
tcp_1() { two tcp depth=1; }
tcp_32() { two tcp; }
tcp_128k() { two tcp block=128KiB depth=8; }
tls_32() { two tls; }
tls_128k() { two tls block=128KiB depth=8; }

# cpu_of COMMAND... - run a command, and print the CPU time of its processes in microseconds
cpu_of()
{
	local before
	cpu_times
	before=$own_ms
	"$@" >/dev/null || return 1
	cpu_times
	echo $(((own_ms - before) * 1000))
}

# per_operation COMMAND... - the CPU time of a run of gantry, for each IO of its report
per_operation()
{
	local us
	us=$(cpu_of "$@") && out_of total ops | awk -v us="$us" '$1 { printf "%.4g\n", us / $1 }'
}
tcp_cpu() { per_operation two tcp ramp=0s; }

# over_nbd_tcp DEPTH - run fio with its NBD engine on nbdkit over TCP; over_qemu_tcp: on qemu-storage-daemon
fio_tcp() { $fio_job --iodepth="$1" --ioengine=nbd --uri="$2" >/dev/null 2>>"$tmp/errors" && reads; }

# served COMMAND... -- COMMAND... - run the second command while the first one listens at $port + 3
served()
{
	local server=() pid rc
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	taskset -c "$cpu1" "${server[@]}" >/dev/null 2>>"$tmp/errors" &
	pid=$!
	until_ready $pid listening $((port + 3)) && "$@"
	rc=$?
	kill -TERM $pid 2>/dev/null
	wait $pid
	return $rc
}

nbdkit_tcp()
{
	served nbdkit -f -i 127.0.0.1 -p $((port + 3)) memory 256M -- fio_tcp "$1" "nbd://127.0.0.1:$((port + 3))"
}

qemu_tcp()
{
	served qemu-storage-daemon --blockdev driver=null-co,node-name=n0,size=268435456,read-zeroes=on \
		--nbd-server "addr.type=inet,addr.host=127.0.0.1,addr.port=$((port + 3))" \
		--export type=nbd,id=e0,node-name=n0,name=v -- \
		fio_tcp "$1" "nbd://127.0.0.1:$((port + 3))/v"
}
nbdkit_tcp_1() { nbdkit_tcp 1; }
nbdkit_tcp_32() { nbdkit_tcp 32; }
qemu_tcp_1() { qemu_tcp 1; }
qemu_tcp_32() { qemu_tcp 32; }

# all sessions of a target that has started again; the first measure runs them all
once_reconnect_psk()
{
	taskset -c "$cpu0,$cpu1" bash "$here/reconnect.sh" "$build" >"$tmp/reconnect" 2>>"$tmp/errors"
	value reconnect_psk <"$tmp/reconnect"
}
once_reconnect_x509() { value reconnect_x509 <"$tmp/reconnect"; }
once_reconnect_none() { value reconnect_none <"$tmp/reconnect"; }

tcp_list()
{
	cat <<-END
	tcp_rtt|message there and back, 64 B|ns|floor_rtt|tcp_rtt|ratio|<1.15||
	tcp_1|random read, 2 processes, depth 1|kIO/s|floor_1|tcp_1|ratio|>0.8|$(peers nbd=nbdkit_tcp_1 qemu=qemu_tcp_1)|
	tcp_32|random read, 2 processes, depth 32|kIO/s|floor_32|tcp_32|ratio|>0.85|$(peers nbd=nbdkit_tcp_32 qemu=qemu_tcp_32)|>1.5
	tcp_cpu|the same, CPU time of an IO|us|floor_cpu|tcp_cpu|ratio|||
	tcp_128k|random read of 128 KiB, depth 8|kIO/s|floor_128k|tcp_128k|ratio|>0.9||
	tls_32|random read, encrypted, depth 32|kIO/s|tls_floor_32|tls_32|ratio|>0.85||
	tls_128k|random read of 128 KiB, encrypted, depth 8|kIO/s|tls_floor_128k|tls_128k|ratio|>0.85||
	END
	[ ! -x "$perf/reconnect" ] || cat <<-'END'
	reconnect_psk|256 sessions with keys open at once|s|none|once_reconnect_psk|value|<2||
	reconnect_x509|the same with certificates|s|none|once_reconnect_x509|value|<5||
	reconnect_none|the same without encryption|s|none|once_reconnect_none|value|||
	END
}
