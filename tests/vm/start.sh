# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# start.sh - the first process of the virtual machine after init.sh; the file `job` of run.sh sources it with a script and its
# arguments. Runs the script, and powers the machine off.
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb USER=root
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
echo "/run/vm/core.%e.%p" >/proc/sys/kernel/core_pattern

. "$top_srcdir/tests/vm/report.sh"
exec busybox poweroff -f
