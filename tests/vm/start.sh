# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# start.sh - the first process of the virtual machine after init.sh; the file `job` of run.sh sources it with a script and its
# arguments. Runs the script, passes its exit status to the host, and powers the machine off.
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb USER=root
export VM_OUT=/run/vm # a directory that is shared with the host
export HOME=/run/home TMPDIR=/run/tmp XDG_RUNTIME_DIR=/run/user XDG_CACHE_HOME=/run/home/.cache XDG_CONFIG_HOME=/run/home/.config
umask 022
mkdir -p "$HOME" "$TMPDIR" "$XDG_CACHE_HOME" "$XDG_CONFIG_HOME"
mkdir -m 700 "$XDG_RUNTIME_DIR"
mkdir -p /dev/shm /dev/pts "/lib/modules/$(uname -r)"
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
ln -sf /proc/self/fd /dev/fd
mount --bind "$VM_MODULES" "/lib/modules/$(uname -r)"
ulimit -l unlimited
ulimit -c unlimited
echo "$VM_OUT/core.%e.%p" >/proc/sys/kernel/core_pattern

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
exec busybox poweroff -f
