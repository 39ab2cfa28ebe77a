#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nvme.sh [BUILD] - the backend file on a device of NVMe over Fabrics with two paths, which are lost, in a virtual machine:
# nvme-guest.sh.
#
# Prints TAP. A run takes 2 to 4 minutes.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
build=$(realpath -e "${1:-$here/../../build/gcc}") || exit 2
bash "$here/run.sh" -b "$build" -o "$build/vm-disks/nvme" -t 900 "$here/nvme-guest.sh"
status=$?
[ "$status" -ne 77 ] || echo "1..0 # SKIP no virtual machine"
exit "$status"
