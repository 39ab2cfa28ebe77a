#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 25-auth.sh - three processes whose RDMA devices authenticate their peers by pre-shared keys.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
vm_legs="rdma-verbs+both rxe"
ops=1000

# keyed LEG HOST_KEY - set up a test over that leg; HOST_KEY: character of which the key of the initiator consists
keyed()
{
	local options
	leg "$1"
	(
		umask 077
		printf 'host:%064d\ngateway:%064d\n' 1 2 >"$dir/keys"
		printf 'host:%064d\n' "$2" >"$dir/host-keys"
	)
	options="auth = \"psk\"; auth_keys = \"$dir/keys\";"
	front_device=${front_device/'auth = "none";'/$options}
	front_far=${front_far/'auth = "none";'/"auth = \"psk\"; auth_keys = \"$dir/host-keys\"; auth_identity = \"host\";"}
	back_device=${back_device/'auth = "none";'/$options}
	back_far=${back_far/'auth = "none";'/"$options auth_identity = \"gateway\";"}
	topology
	serve_all
}

# verified IO, of which no data passes through the gateway
verified()
{
	keyed "$1" 1
	load_well --set "roles.load.workload.ops=$ops" --set roles.load.lanes=2
	stop bridge store
	agree "$(completed load)"
}

# an initiator with another key than the gateway gets no session, and the log of the gateway has its identity
wrong_key()
{
	keyed "$1" 3
	begin load
	logged bridge 'identity=host'
	finish load
	[ "$status" -ne 0 ]
	[ "$(completed load)" -eq 0 ]
	stop bridge store
}

# large FILE BYTES - the file has more bytes
large()
{
	[ "$(stat -c %s "$1")" -gt "$2" ]
}

# record - run IO over the cable, and set n_ids: how often the frames contain the id of the session, which each request has
record()
{
	local capture=$dir/capture recorder id
	tcpdump -i v0 -s 0 --immediate-mode -U -w "$capture" 2>"$dir/recorder" &
	recorder=$!
	until_true grep -q listening "$dir/recorder"
	load_well --set roles.load.workload.ops=100
	until_true large "$capture" 50000 # 200 descriptors and replies on each leg
	kill -INT "$recorder"
	wait "$recorder" || :
	id=$(sed -n 's/.*session started id=\(................\).*/\1/p' "$dir/load.log" | tail -n 1)
	[[ $id =~ ^[0-9a-f]{16}$ ]]
	id=$(fold -w 2 <<<"$id" | tac | tr -d '\n') # little-endian
	n_ids=$(od -An -v -tx1 "$capture" | tr -d ' \n' | grep -o "$id" | wc -l)
}

# without keys a recorder of the network sees the control messages, which have the secret of the session and the tokens of regions
recorded_in_clear()
{
	command -v tcpdump >/dev/null || skip "no tcpdump"
	leg "$1"
	topology
	serve_all
	record
	[ "$n_ids" -gt 2 ]
	stop bridge store
}

# with keys it does not
recorded_with_keys()
{
	command -v tcpdump >/dev/null || skip "no tcpdump"
	keyed "$1" 1
	record
	[ "$n_ids" -eq 0 ]
	stop bridge store
}

over_legs "verified IO with pre-shared keys" verified
vm_legs=rdma-verbs+both
over_legs "the wrong key" wrong_key
over_legs "a recorder of the network, without keys" recorded_in_clear
over_legs "a recorder of the network" recorded_with_keys
vm_done
