#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh [-b BUILD] [-o DIR] [-t SECONDS] [-p] [-r ROOT] SCRIPT [ARGUMENT...] - boot a virtual machine and run SCRIPT in it
#
# The virtual machine has the host's file tree (changes stay in its memory), two CPUs and no network. QEMU emulates all of it, so
# run.sh needs no privileges, and everything is about ten times slower. Prints the output of the script and exits with its
# status, or with
#	77	no kernel or no QEMU: the reason is on standard error
#	99	inconclusive: in both of two boots the guest kernel reported an error, or the machine ended unexpectedly
#	124	no end after SECONDS (600)
# With -r the machine has the file tree ROOT, whose systemd boots and runs SCRIPT; its environment is that of a service, and VM_OUT.
# The words of $VM_QEMU are further arguments of QEMU: memory and devices.
# With -p each virtual CPU is pinned to one CPU of the host, for measurements; otherwise the host schedules them.
# The environment of the script has the variables of `make check` (top_srcdir, top_builddir, GANTRY, GANTRY_PLUGINS, ...; BUILD
# is build/gcc), the caller's VM_... variables, and VM_OUT, a directory that is shared with the host. DIR (BUILD/vm/NAME) keeps
# `console`, `output`, `stderr`, `dmesg` and the files of VM_OUT. An inconclusive first run is kept in DIR.first.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../.." && pwd)
build=$top/build/gcc out='' limit=600 pinned='' root=/
while getopts b:o:t:pr: option; do
	case $option in
	b) build=$OPTARG ;;
	o) out=$OPTARG ;;
	t) limit=$OPTARG ;;
	p) pinned=1 ;;
	r) root=$(realpath -e "$OPTARG") || exit 2 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
script=$(realpath -e "${1:?usage: run.sh [-b BUILD] [-o DIR] [-t SECONDS] [-p] SCRIPT [ARGUMENT...]}") || exit 2
build=$(realpath -e "$build") || exit 2
shift
name=${script##*/}
# hides features that the emulator executes slowly: string moves, carry-less multiplication
cpu=max,-erms,-fsrm,-pclmulqdq
# without address randomisation, since QEMU translates code again at each new address
arguments="console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off tsc=reliable norandmaps ipv6.disable=1"
job=job
if [ "$root" != / ]; then
	job=service_job
	arguments+=' vm_init=/lib/systemd/systemd systemd.run="/bin/bash /run/vm/job"'
	arguments+=' systemd.run_success_action=poweroff-immediate systemd.run_failure_action=poweroff-immediate'
	arguments+=' systemd.mask=serial-getty@ttyS0.service' # without udev systemd would wait for its device
fi
out=$(realpath -m "${out:-$build/vm/${name%.sh}}")
qemu=${QEMU:-qemu-system-x86_64}
command -v "$qemu" >/dev/null || { echo "$qemu is not installed" >&2; exit 77; }
initrd=${VM_INITRD:-$(bash "$here/make-image.sh")} || exit $?
image=${initrd%/*}
# messages of a kernel that has detected an error
trouble='BUG:|kernel BUG at|WARNING: CPU|Oops|general protection fault|Kernel panic|rcu: INFO: |INFO: task .* blocked for more'
trouble="$trouble|soft lockup|hard LOCKUP|Call Trace|Out of memory|page allocation failure"
taints=$((16 | 32 | 128 | 512 | 16384)) # machine check, bad page, oops, warning, lockup

vm=''
# shellcheck disable=SC2317 # called by the trap
end_vm()
{
	[ -z "$vm" ] || kill "$vm" 2>/dev/null
}
trap end_vm EXIT
trap 'exit 130' INT TERM HUP

# job ARGUMENT... - print the shell script that the machine executes
job()
{
	local -x top_srcdir=$top top_builddir=$build GANTRY=$build/core/gantry GANTRY_PLUGINS=$build/plugins/.libs
	local -x AWK=${AWK:-awk} BATS VM_MODULES
	BATS=${BATS:-$(command -v bats)}
	VM_MODULES=$(echo "$image"/lib/modules/*)
	# shellcheck disable=SC2086 # a list of names
	declare -p top_srcdir top_builddir GANTRY GANTRY_PLUGINS AWK BATS ${!VM_@}
	printf 'cd %q\nset --' "$build"
	printf ' %q' "$script" "$@"
	printf '\n. %q\n' "$here/start.sh"
}

# service_job ARGUMENT... - copy the script for a machine with another file tree, and print the shell script that systemd executes
service_job()
{
	cp "$script" "$here/report.sh" "$out" || return 1
	printf 'set --'
	printf ' %q' "/run/vm/$name" "$@"
	printf '\n. /run/vm/report.sh\n'
}

# place PATH - print the path in the syntax of QEMU, with doubled commas
place()
{
	printf '%s' "${1//,/,,}"
}

# pin - wait for the threads that run the virtual CPUs, and pin each to a separate CPU
pin()
{
	local end=$((SECONDS + 10)) task name at=0 pid
	while [ "$at" -lt 2 ]; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "run.sh: the machine's CPUs could not be pinned: figures will be rough" >&2
			return
		fi
		pid=$(pgrep -P "$vm") # of timeout
		for task in "/proc/$pid/task"/*; do
			{ read -r name <"$task/comm"; } 2>/dev/null && [ "$name" = "CPU $at/TCG" ] &&
				taskset -pc "$at" "${task##*/}" >/dev/null && at=$((at + 1))
		done
		read -rt 0.1 <><(:) || :
	done
}

# boot - run the machine until its end; sets rc
boot()
{
	# shellcheck disable=SC2086 # words
	timeout -k 5 "$limit" "$qemu" -accel tcg,thread=multi -cpu "$cpu" -machine q35 -smp 2 -m 2048 \
		-name gantry,debug-threads=on \
		-nodefaults -no-user-config -no-reboot -display none -serial "file:$(place "$out/console")" \
		-kernel "$image/kernel" -initrd "$initrd" \
		-append "$arguments" \
		-fsdev local,id=host,path="$(place "$root")",security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=host,mount_tag=host \
		-fsdev local,id=out,path="$(place "$out")",security_model=none -device virtio-9p-pci,fsdev=out,mount_tag=out \
		-device virtio-serial-pci \
		-chardev file,id=output,path="$(place "$out/output")" -device virtserialport,chardev=output,name=output \
		-chardev file,id=status,path="$(place "$out/status")" -device virtserialport,chardev=status,name=status \
		${VM_QEMU:-} \
		</dev/null >"$out/qemu" 2>&1 &
	vm=$!
	[ -z "$pinned" ] || pin
	wait "$vm"
	rc=$?
	vm=''
}

# attempt ARGUMENT... - boot once; sets rc to the status of the script, or to a status of run.sh
attempt()
{
	local taint found
	rm -rf "$out"
	mkdir -p "$out" && "$job" "$@" >"$out/job" && : >"$out/console" && : >"$out/output" && : >"$out/status" || exit 1
	boot
	found=$(grep -aE -m 3 "$trouble" "$out/console")
	[ -z "$found" ] || { why=$found; rc=99; return; }
	[ "$rc" -ne 124 ] || { why="no end after $limit s"; return; }
	read -r _ rc _ taint <"$out/status" || { why="the machine ended by itself: $(tail -n 1 "$out/qemu")"; rc=99; return; }
	[ $((taint & taints)) -eq 0 ] || { why="the kernel is tainted ($taint)"; rc=99; }
}

why=''
attempt "$@"
if [ "$rc" -eq 99 ]; then
	echo "run.sh: inconclusive, repeating: $why" >&2
	rm -rf "$out.first" && mv -T "$out" "$out.first"
	attempt "$@"
	[ "$rc" -ne 99 ] || why="inconclusive: $why"
fi
cat "$out/output"
case $rc in
99 | 124)
	echo "run.sh: $name: $why" >&2
	tail -n 20 "$out/console" >&2
	;;
esac
exit "$rc"
