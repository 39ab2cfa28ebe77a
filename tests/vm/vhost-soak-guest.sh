#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost-soak-guest.sh - runs the checker on the disk /dev/vda in the virtual machine; see vhost-soak.sh
modprobe virtio_blk
for _ in $(seq 600); do [ ! -b /dev/vda ] || break; read -rt 0.05 <><(:) || :; done
"$top_builddir/tests/soak/disk" /dev/vda "$VM_SECONDS" "$VM_SEED"
status=$?
echo "checker ends"
exit $status
