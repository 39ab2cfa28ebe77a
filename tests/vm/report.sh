# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# report.sh - runs the script of run.sh in the virtual machine, with its arguments; passes its output and exit status to the host
export VM_OUT=/run/vm # a directory that is shared with the host

# port NAME - print the device of the port NAME to the host
port()
{
	local name
	for name in /sys/class/virtio-ports/*/name; do
		[ "$(cat "$name")" = "$1" ] && name=${name%/name} && echo "/dev/${name##*/}"
	done
}

status_port=$(port status)
bash "$@" >"$(port output)" 2>"$VM_OUT/stderr" </dev/null
status=$?
dmesg >"$VM_OUT/dmesg"
echo "status $status taint $(cat /proc/sys/kernel/tainted)" >"$status_port"
