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
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -ne 0 ]
	[ "$(completed load)" -eq 0 ]
	stop bridge store
}

over_legs "verified IO with pre-shared keys" verified
vm_legs=rdma-verbs+both
over_legs "the wrong key" wrong_key
vm_done
