#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# soak.sh SECONDS [TRANSPORT] - the soak test of tests/soak over a network of soft-RoCE: rxe (the default) or rdma-verbs.
# ./dev soak --vm runs it in the virtual machine.
. "$top_srcdir/tests/vm/guest.sh"
vm_network
case ${2:-rxe} in
rxe) near='netdev = "v0";' far='netdev = "v1";' ;;
rdma-verbs) near='ibdev = "rxe0";' far='ibdev = "rxe1";' ;;
*) echo "soak.sh: transport $2: rxe or rdma-verbs" >&2; exit 2 ;;
esac
# a file system with user attributes and direct IO, which the root file system of the virtual machine lacks
modprobe brd rd_nr=1 rd_size=131072
modprobe ext4
mkfs.ext4 -q -b 4096 /dev/ram0
mkdir "$TMPDIR/disk"
mount /dev/ram0 "$TMPDIR/disk"
export TMPDIR=$TMPDIR/disk
# three polling processes for each CPU: a pace leaves time to processes that start and end
"$top_builddir/tests/soak/soak" --seconds "$1" --pace 20 --hang-ms 240000 --verbose \
	--near "transport = \"${2:-rxe}\"; $near" --far "transport = \"${2:-rxe}\"; $far" \
	--near-ip "${vm_addresses[0]}" --far-ip "${vm_addresses[1]}"
status=$?
# copies the results to the host
[ "$status" -eq 0 ] || cp -r "$TMPDIR"/gantry-soak.* "$VM_OUT"
exit "$status"
