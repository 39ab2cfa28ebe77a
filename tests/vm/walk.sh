# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# walk.sh - the functions of tests/walk/lib.sh for tests in the virtual machine, over legs of RDMA.
#
# The gateway has the end v0 of the cable, with rxe0; all other roles have v1, with rxe1. So all traffic of an RDMA leg passes the
# cable.
. "$top_srcdir/tests/vm/guest.sh"
. "$top_srcdir/tests/walk/lib.sh"

# an emulated processor starts jq in a fifth of a second, and gojq, if installed, in a tenth of that
! command -v gojq >/dev/null || jq() { gojq "$@"; }

# limits for an emulated machine, perhaps on a busy host
vm_limit=120
seconds=60

# the tested legs: of each topology, only the storage leg uses RDMA, or (both) also the leg to the host. rxe and rdma-verbs send the
# same packets, so most tests use one of them. VM_LEGS names others
vm_legs=${VM_LEGS:-rdma-verbs+both}

# leg NAME [OPTIONS] - set up a test over that leg; OPTIONS: options of the devices in configuration syntax
leg()
{
	local direct_networks="direct_networks = \"${vm_addresses[1]}/32\";"
	local kind=${1%+both} near far
	BATS_TEST_TMPDIR=$vm_dir
	walk_setup
	processes
	need "$kind"
	runtime_options='spin = "20us";' # two CPUs for three processes
	# a long keepalive limit, because memory registration takes seconds in an emulated machine
	connect_options='heartbeat = "5s";'
	listen_options='heartbeat = "5s";'
	case $kind in
	rdma-verbs) near='ibdev = "rxe0";' far='ibdev = "rxe1";' ;;
	rxe) near='netdev = "v0";' far='netdev = "v1";' ;;
	*) return 0 ;;
	esac
	# the roles name their services as on other transports
	services="services = { store = \"${vm_addresses[1]}:7471\"; volume = \"${vm_addresses[0]}:7472\"; }; auth = \"none\";"
	near="transport = \"$kind\"; $near $services ${2:-}" far="transport = \"$kind\"; $far $services ${2:-}"
	back_device=$far back_far=$near
	[ "$kind" != "$1" ] || return 0
	front_device=$near front_far=$far
	back_device="$far $direct_networks" # the target connects to the initiator, whose address it gets from the gateway
}

vm_teardown()
{
	[ -z "${conf:-}" ] || walk_teardown
}

# over_legs WHAT FUNCTION [ARGUMENT...] - run a test for each leg; the function gets the leg as its first argument
over_legs()
{
	local leg
	for leg in $vm_legs; do
		vm_test "$leg: $1" "$2" "$leg" "${@:3}"
	done
}
