#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# within.sh ROOT COMMAND... - run the command in namespaces in which the kernel starts programs of the architecture of ROOT with
# QEMU's user-mode emulator. These programs find the libraries of ROOT beside those of this machine.
#
# The namespaces end with the command and do not change the machine. QEMU does not get ROOT by -L, because it would then search
# ROOT first for every path. If the namespaces cannot be created, the script prints the reason and exits with 77.
set -u
misc=/proc/sys/fs/binfmt_misc

no()
{
	echo "$*" >&2
	exit 77
}

# is_apart PID - whether that process is in another user namespace than this script
is_apart()
{
	[ "$(readlink "/proc/$1/ns/user")" != "$(readlink /proc/self/ns/user)" ]
}

# root maps all users to themselves; another user maps itself to root in order to mount, and later maps itself back
if [ "$1" != --inside ]; then
	how=(--user --mount --keep-caps) me=$$
	unshare "${how[@]}" true 2>/dev/null || no "no namespaces for users like this one"
	if [ "$(id -u)" -eq 0 ]; then
		(
			until is_apart $me; do :; done
			for map in uid_map gid_map; do
				read -r _ _ all </proc/self/$map
				echo "0 0 $all" >/proc/$me/$map || kill $me
			done
		) &
	else
		how+=(--map-root-user)
	fi
	exec unshare "${how[@]}" bash "$0" --inside "$(id -u)" "$(id -g)" "$@"
fi
uid=$2 gid=$3 root=$4
shift 4
machine=$(sed 's/-.*//; s/^powerpc/ppc/' "$root/triplet")
qemu=$(command -v "qemu-$machine" || command -v "qemu-$machine-static") || no "there is no qemu-$machine"
until grep -q . /proc/self/gid_map; do :; done
mount -t overlay -o "ro,lowerdir=$root/usr/lib:/usr/lib" overlay /usr/lib || no "no overlay over /usr/lib"
mount -t binfmt_misc none $misc 2>/dev/null && [ ! -e $misc/gantry ] || no "no binfmt_misc of our own: that takes Linux 6.7"
# match the ELF header of its C library, but accept any OS ABI, and both fixed (2) and position-independent (3) programs
magic=$(od -An -v -t x1 -N 20 "$root"/usr/lib/*/libc.so.6 | tr -d '\n' | sed 's/ /\\x/g')
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xfe\xff\xff'
echo ":gantry:M::$magic:$mask:$qemu:P" >$misc/register || no "the kernel does not take $qemu"
# this namespace maps the caller to root, so run the command under the uid of the caller
[ "$uid" -eq 0 ] || exec unshare --user --map-user="$uid" --map-group="$gid" "$@"
exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"
