#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# reconnect.sh BUILD [SESSIONS] - measure how long all clients of a target that has started again take until their sessions run: a
# target and a process with all clients, over TCP on loopback. Prints
#	reconnect_psk S s       with keys
#	reconnect_x509 S s      with certificates of ECDSA, P-256
#	reconnect_none S s      without encryption
# No thread spins, because the threads of all clients share the processors of this machine.
set -u
build=${1:?usage: reconnect.sh BUILD [SESSIONS]}
sessions=${2:-256}
tmp=$(mktemp -d) || exit 1
pid=
trap '[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null; wait; rm -rf "$tmp"' EXIT
export GANTRY_PLUGIN_PATH=$build/plugins/.libs
ulimit -n "$(ulimit -H -n)"
address=127.$((1 + $$ % 254)).$((1 + $$ / 254 % 254)).1
umask 077

# credentials: a key; an authority, and a certificate of each end
echo "client:$(printf '%064d' 7)" >"$tmp/keys"
certificate() # NAME
{
	openssl req "${ec[@]}" -keyout "$tmp/$1.key" -out "$tmp/$1.csr" -subj "/CN=$1" &&
		openssl x509 -req -in "$tmp/$1.csr" -CA "$tmp/ca.pem" -CAkey "$tmp/ca.key" -CAcreateserial -days 2 \
			-out "$tmp/$1.pem"
}
ec=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
{
	openssl req -x509 "${ec[@]}" -keyout "$tmp/ca.key" -out "$tmp/ca.pem" -days 2 -subj /CN=ca &&
		certificate server && certificate client
} >"$tmp/openssl.log" 2>&1 || { cat "$tmp/openssl.log" >&2; exit 1; }

x509() # NAME - options of the device of an end
{
	echo "auth = \"x509\"; auth_certificate = \"$tmp/$1.pem\"; auth_private_key = \"$tmp/$1.key\";" \
		"auth_authorities = \"$tmp/ca.pem\";"
}

# configuration SERVER CLIENT - options of the devices of both ends
configuration()
{
	local common="transport = \"tcp\"; services = { store = \"$address:4791\"; };"
	common="$common max_connections = $((4 * sessions));"
	cat >"$tmp/conf" <<-END
	runtime = { stat = false; spin = "0"; };
	devices = { near = { $common $1 }; far = { $common $2 }; };
	roles = {
		store = { role = "target"; backend = { type = "null"; size = "64MiB"; };
			listen = { device = "near"; name = "store"; max_sessions = $((2 * sessions));
				max_half_open = $sessions; }; };
		load = { role = "initiator"; connect = { device = "far"; name = "store"; }; };
	};
	END
}

# reconnect NAME SERVER CLIENT - print the measure reconnect_NAME
reconnect()
{
	configuration "$2" "$3"
	"$build/core/gantry" run -v "$tmp/conf" --role store >/dev/null 2>"$tmp/log" &
	pid=$!
	timeout 20 tail -n +1 -s 0.02 -f --pid=$pid "$tmp/log" 2>/dev/null | grep -q -m 1 ' listening ' &&
		"$build/tests/perf/reconnect" "$tmp/conf" load "$sessions" >"$tmp/figure" 2>"$tmp/errors"
	local rc=$?
	[ "$rc" -eq 0 ] && sed "s/^reconnect/reconnect_$1/" "$tmp/figure" || tail -n 3 "$tmp/log" "$tmp/errors" >&2
	kill -TERM "$pid"
	wait "$pid"
	pid=
	return "$rc"
}

key="auth = \"psk\"; auth_keys = \"$tmp/keys\";"
reconnect psk "$key" "$key auth_identity = \"client\";" &&
	reconnect x509 "$(x509 server)" "$(x509 client) auth_peers = \"server\";" &&
	reconnect none 'auth = "none";' 'auth = "none";'
