# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# cpu.sh - CPU time that a process has used so far. Sourced by idle.sh and crowd.sh (bash).

# cpu_ns PID - CPU time of all threads so far; from the scheduler if available, which is exact, otherwise from ticks
cpu_ns()
{
	if [ -r "/proc/$1/schedstat" ]; then
		cat "/proc/$1/task/"*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'
	else
		awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%.0f\n", ($12 + $13) * 1e9 / hz }' "/proc/$1/stat"
	fi
}
