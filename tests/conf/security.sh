#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# security.sh - runs the recipes of gantry-security(7), between the lines `.\" recipe NAME` and `.\" end`, as processes of this
# machine: their addresses and files are replaced by those of this test.
. "$top_srcdir/tests/tap.sh"
need tcp shm-comch initiator gateway target memory file
command -v openssl >/dev/null || skip "openssl is not installed"
umask 077
mkdir -m 700 "$tmp/run" "$tmp/stat" "$tmp/etc"
export XDG_RUNTIME_DIR=$tmp/run
address=127.$(($$ >> 16)).$(($$ >> 8 & 255)).$(($$ & 255))
pids=()
for name in psk-target gateway x509-target load; do : >"$tmp/$name.err"; shown="$shown $tmp/$name.err"; done
trap 'for p in "${pids[@]}"; do kill -KILL "$p" 2>/dev/null; done; rm -rf "$tmp" "$tmp.log"' EXIT

# recipe NAME [TEXT] - write the configuration NAME.conf from the page; TEXT: more of it
recipe()
{
	{
		sed -n "/^\.\\\\\" recipe $1\$/,/^\.\\\\\" end/p" "$top_srcdir/man/gantry-security.7" | grep -v '^\.'
		printf '%s\n' "${2:-}" "runtime = { stat_dir = \"$tmp/stat\"; log = \"info\"; };"
	} | sed "s|/etc/gantry|$tmp/etc|g; s|/var/lib/gantry|$tmp|; s|192.0.2.[78]|$address|; s|time = \"2s\"|ops = 200|" \
		>"$tmp/$1.conf"
	sed -i "s|path = \"$tmp/disk\"|&; create = true; size = \"16MiB\"|; s|uids = \"0,34\"|uids = \"$(id -u),34\"|" \
		"$tmp/$1.conf"
	sed -i "s|{ uid = 0; }|{ uid = $(id -u); }|" "$tmp/$1.conf"
}

# serve NAME ROLE - start a role of that recipe, and wait until it listens
serve()
{
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$tmp/$1.conf" --role "$2" >"$tmp/$1.out" 2>"$tmp/$1.err" &
	pids+=($!)
	timeout 60 tail -n +1 -s 0.02 -f --pid=$! "$tmp/$1.err" 2>/dev/null | grep -m 1 -q ' listening '
}

# load NAME [ARGUMENT...] - run the initiator of that recipe
load()
{
	local name=$1
	shift
	timeout 60 "$GANTRY" run -p "$GANTRY_PLUGINS" "$tmp/$name.conf" --role load --set roles.load.connect.timeout=100ms "$@" \
		>"$tmp/load.out" 2>"$tmp/load.err"
}

stop_all()
{
	kill -TERM "${pids[@]}"
	wait "${pids[@]}"
	pids=()
}

not() { ! "$@"; }
logged() { grep -qE -- "$2" "$tmp/$1.err"; }

ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

# certificate NAME DNS-NAME
certificate()
{
	openssl req "${ec[@]}" -keyout "$tmp/etc/$1.key" -out "$tmp/$1.csr" -subj "/CN=$1" &&
		printf 'subjectAltName=DNS:%s\n' "$2" >"$tmp/ext" &&
		openssl x509 -req -in "$tmp/$1.csr" -CA "$tmp/etc/ca.pem" -CAkey "$tmp/ca.key" -CAcreateserial -days 2 \
			-extfile "$tmp/ext" -out "$tmp/etc/$1.pem"
}

authority()
{
	openssl req -x509 "${ec[@]}" -keyout "$tmp/ca.key" -out "$tmp/etc/ca.pem" \
		-subj /CN=authority -days 2 &&
		: >"$tmp/index" && echo 01 >"$tmp/number" &&
		printf '%s\n' '[ca]' 'default_ca = d' '[d]' "database = $tmp/index" "crlnumber = $tmp/number" \
			'default_md = sha256' 'default_crl_days = 2' >"$tmp/ca.cnf" &&
		openssl ca -config "$tmp/ca.cnf" -gencrl -keyfile "$tmp/ca.key" -cert "$tmp/etc/ca.pem" -out "$tmp/etc/crl.pem"
}

# -- keys --

recipe psk-target
recipe psk-initiator
for host in host-a host-b host-c; do
	ok "key of $host" "$GANTRY" key new $host "$tmp/etc/keys"
done
ok "psk: the target listens" serve psk-target store
ok "psk: host-a reads" load psk-initiator
ok "psk: host-a writes" load psk-initiator --set roles.load.workload.pattern=randwrite
ok "psk: host-b reads" load psk-initiator --set devices.wire.auth_identity=host-b
ok "psk: host-b cannot write" not load psk-initiator --set devices.wire.auth_identity=host-b \
	--set roles.load.workload.pattern=randwrite
ok "psk: host-c has a key, but no row" not load psk-initiator --set devices.wire.auth_identity=host-c
ok "psk: the log has the reason" logged psk-target 'no access \(identity=host-c, service=disk\)'
cp "$tmp/etc/keys" "$tmp/etc/good"
sed 's/^host-a:..../host-a:0000/' "$tmp/etc/good" >"$tmp/etc/bad"
ok "psk: a wrong key is refused" not load psk-initiator --set "devices.wire.auth_keys=\"$tmp/etc/bad\""
ok "psk: the log has identity and reason" logged psk-target 'identity=host-a, reason=wrong key'
ok "psk: a peer without a key is refused" not load psk-initiator --set devices.wire.auth=none
sed -i '/^host-b/d' "$tmp/etc/keys"
ok "psk: reload" "$GANTRY" ctl --dir "$tmp/stat" reload
ok "psk: host-b has no key any more" not load psk-initiator --set devices.wire.auth_identity=host-b \
	--set "devices.wire.auth_keys=\"$tmp/etc/good\""
ok "psk: the log says that it is unknown" logged psk-target 'identity=host-b, reason=unknown identity'
ok "psk: host-a still reads" load psk-initiator
stop_all

# -- a gateway --

recipe gateway
grep '^host-a' "$tmp/etc/good" >"$tmp/etc/host-keys"
"$GANTRY" key new gateway-1 "$tmp/etc/gateway-key"
cat "$tmp/etc/gateway-key" "$tmp/etc/good" >"$tmp/etc/keys"
rows='{ identity = "gateway-1"; relay = true; }, { identity = "host-a"; access = "ro"; }'
sed -i "s|allow = ( { identity = \"host-a\"; access = \"rw\"; },|allow = ( $rows,|" "$tmp/psk-target.conf"
sed "s|name = \"disk\"|name = \"volume0\"|; s|services = { disk = \"[^\"]*\"|services = { volume0 = \"$address:4792\"|" \
	"$tmp/psk-initiator.conf" >"$tmp/through.conf"
ok "gateway: the target listens" serve psk-target store
ok "gateway: the gateway listens" serve gateway bridge
ok "gateway: host-a reads through it" load through
ok "gateway: the target knows the client" logged psk-target 'session started .* identity=host-a access=ro'
ok "gateway: host-a cannot write through it" not load through --set roles.load.workload.pattern=randwrite
stop_all

# -- certificates --

store='roles = { store = { role = "target"; listen = { device = "wire"; name = "disk"; };
	backend = { type = "memory"; size = "16MiB"; }; }; };'
work='roles = { load = { role = "initiator"; connect = { device = "wire"; name = "disk"; };
	workload = { pattern = "randread"; ops = 200; time = "0s"; }; }; };'
recipe x509-target "$store"
recipe x509-initiator "$work"
ok "x509: an authority" authority
ok "x509: a certificate of the target" certificate target target.example
ok "x509: a certificate of host-a" certificate host-a host-a
ok "x509: the target listens" serve x509-target store
ok "x509: host-a reads" load x509-initiator
ok "x509: the target knows it" logged x509-target 'session started .* identity=host-a'
ok "x509: another target is refused" not load x509-initiator --set devices.wire.auth_peers=other.example
openssl x509 -in "$tmp/etc/host-a.pem" -noout -serial | sed 's/serial=//' >"$tmp/serial"
printf 'R\t%s\t%s\t%s\tunknown\t/CN=host-a\n' "$(date -u -d '+1 day' +%y%m%d%H%M%SZ)" "$(date -u +%y%m%d%H%M%SZ)" \
	"$(cat "$tmp/serial")" >"$tmp/index"
ok "x509: the certificate is revoked" openssl ca -config "$tmp/ca.cnf" -gencrl -keyfile "$tmp/ca.key" -cert "$tmp/etc/ca.pem" \
	-out "$tmp/etc/crl.pem"
ok "x509: reload" "$GANTRY" ctl --dir "$tmp/stat" reload
ok "x509: host-a is refused" not load x509-initiator
ok "x509: the log has the reason" logged x509-target 'identity=host-a, reason=.*revoked'
stop_all

# -- users of this machine --

recipe local
ok "local: gantry check" "$GANTRY" check "$tmp/local.conf" -p "$GANTRY_PLUGINS"
done_testing
