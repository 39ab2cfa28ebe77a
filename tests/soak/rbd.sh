#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rbd.sh COMMAND... - run COMMAND with a Ceph cluster of its own. SOAK_CLUSTER in its environment is the directory of the cluster;
# COMMAND runs the OSD 2 of it. If no cluster can start, print the reason, and run COMMAND without SOAK_CLUSTER.
set -u
cluster=$(dirname "$0")/../ceph/cluster.sh
unset SOAK_CLUSTER
dir=$(mktemp -d "${TMPDIR:-/tmp}/gantry-ceph.XXXXXX") || exit 2
trap 'bash "$cluster" stop "$dir"' EXIT
trap : INT TERM # COMMAND ends first, and then the cluster
if reason=$(bash "$cluster" start "$dir" && bash "$cluster" end-osd "$dir" 2); then
	export SOAK_CLUSTER=$dir
	# librados throws exceptions: the address sanitizer needs libstdc++ from the start of the program
	set -- env LD_PRELOAD=libstdc++.so.6 "$@"
else
	echo "$reason" | sed 's/^/# /'
fi
"$@"
