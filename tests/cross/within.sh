#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# within.sh ROOT COMMAND... - run it where the kernel starts programs of another machine, that of ROOT, by QEMU, an emulator of
# user programs, and where these find the libraries of ROOT beside those of this machine.
#
# That is so in namespaces of our own, which end with the command: the machine itself learns nothing of it. QEMU is not given
# ROOT by -L: then it would look there first for every path. Where such namespaces are not to be had it says so and exits with 77.
set -u
misc=/proc/sys/fs/binfmt_misc

no()
{
	echo "$*" >&2
	exit 77
}

# is_apart PID - whether that process is in another user namespace than we are
is_apart()
{
	[ "$(readlink "/proc/$1/ns/user")" != "$(readlink /proc/self/ns/user)" ]
}

# as root, all users are themselves there; another user is root there, who can mount, and becomes itself again
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
# as the header of the C library there, but for the ABI of the system, and whether the program lies at one place (2) or not (3)
magic=$(od -An -v -t x1 -N 20 "$root"/usr/lib/*/libc.so.6 | tr -d '\n' | sed 's/ /\\x/g')
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xfe\xff\xff'
echo ":gantry:M::$magic:$mask:$qemu:P" >$misc/register || no "the kernel does not take $qemu"
# root has been given what belongs to it here; the command is run by who asked for it
[ "$uid" -eq 0 ] || exec unshare --user --map-user="$uid" --map-group="$gid" "$@"
exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"
