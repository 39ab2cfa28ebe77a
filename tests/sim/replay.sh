#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# replay.sh SYSTEM IMAGE - a seed has the same trace in each environment. Only in runs with plain accesses as points, such as these,
# an address of the simulator itself could change it.
failed=0
for seed in 37 1104; do
	traces=$(for bytes in 1 100 1000; do
		PADDING=$(printf "%${bytes}s" | tr ' ' x) "$1" --image "$2" --seed "$seed" | grep '^trace'
	done | sort -u)
	[ "$(wc -l <<<"$traces")" -eq 1 ] && continue
	echo "seed $seed: the trace depends on the environment:"
	echo "$traces"
	failed=1
done
exit $failed
