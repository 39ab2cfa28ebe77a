#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make-image.sh - makes the kernel and initrd that run.sh boots, in the cache. The kernel is Debian's, downloaded but not installed.
#
# Prints the path of the initrd; `kernel` and lib/modules are in the same directory. Reuses files in the cache that are still valid.
# If there is no such kernel, or no tool to make the initrd, the script prints the reason and exits with 77. Needs no root.
set -u
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
here=$(cd "$(dirname "$0")" && pwd) || exit 1
cache=${XDG_CACHE_HOME:-${HOME:?needs HOME or XDG_CACHE_HOME}/.cache}/gantry/vm
meta=linux-image-amd64
early="virtio_pci 9pnet_virtio 9p overlay virtio_console" # modules that are needed before the root file system is mounted
# modules for hardware that the machine does not have: four fifths of the package
unwanted="kernel/sound drivers/gpu drivers/media drivers/net/wireless drivers/net/ethernet drivers/staging drivers/iio
	drivers/usb drivers/hwmon drivers/input drivers/platform drivers/mfd drivers/isdn drivers/hid"

no()
{
	echo "$*" >&2
	exit 77
}

for tool in apt-cache apt-get dpkg cpio depmod modprobe busybox xz tar; do
	command -v "$tool" >/dev/null || no "$tool is not installed"
done
[ "$(dpkg --print-architecture)" = amd64 ] || no "the machine is $(dpkg --print-architecture), the tests know only amd64"
mkdir -p "$cache" && tmp=$(mktemp -d "$cache/new.XXXXXX") || no "cannot write to $cache"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
options=(-qq -o APT::Sandbox::User=root)

# candidate - set $package and $version to the kernel that apt would install now
candidate()
{
	package=$(apt-cache "${options[@]}" depends "$meta" | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
	version=$(apt-cache "${options[@]}" show --no-all-versions "${package:-none}" | sed -n 's/^Version: //p')
	[ -n "$package" ] && [ -n "$version" ]
}

# own_lists - from here on, use fresh package lists in the cache, from the sources of the machine
own_lists()
{
	mkdir -p "$tmp/lists/partial" "$tmp/archives/partial"
	options+=(-o "Dir::State::lists=$tmp/lists" -o "Dir::Cache=$tmp")
	apt-get "${options[@]}" update >>"$tmp/log" 2>&1
}

# unpack DEB DIR - unpack modules, and the kernel uncompressed: an emulated CPU would need seconds for that
unpack()
{
	local path exclude=() packed
	for path in $unwanted; do
		exclude+=(--exclude "*/$path")
	done
	rm -rf "${2:?}"
	mkdir "$2" || return 1
	dpkg --fsys-tarfile "$1" | tar -x -C "$2" --wildcards "${exclude[@]}" './boot/vmlinuz*' './lib/modules' || return 1
	depmod -b "$2" "$(ls "$2/lib/modules")" || return 1
	packed=$(echo "$2"/boot/vmlinuz-*)
	payload "$packed" | xz -dcq >"$2/kernel" 2>/dev/null || cp "$packed" "$2/kernel" || return 1
	rm -rf "${2:?}/boot"
}

# payload BZIMAGE - print its compressed part without the trailing size; the header has its offset (Documentation/x86/boot.rst)
payload()
{
	local start
	start=$((($(word "$1" 497 1) + 1) * 512 + $(word "$1" 584 4)))
	tail -c +$((start + 1)) "$1" | head -c $(($(word "$1" 588 4) - 4))
}

# word FILE OFFSET BYTES - print the number at this offset
word()
{
	od -An -v -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# get - create $kernel, the directory of the package
get()
{
	kernel=$cache/${package}_$version
	[ -d "$kernel" ] && return 0
	(cd "$tmp" && apt-get "${options[@]}" download "$package=$version") >>"$tmp/log" 2>&1 || return 1
	unpack "$tmp/$package"_*.deb "$tmp/unpacked" 2>>"$tmp/log" || return 1
	# two processes may do this at the same time; the second uses the result of the first
	mv -T "$tmp/unpacked" "$kernel" 2>/dev/null || [ -d "$kernel" ]
}

# newest - set $kernel to the newest existing directory
newest()
{
	# shellcheck disable=SC2012 # names of packages
	kernel=$(ls -dt "$cache"/linux-image-* 2>/dev/null | head -n 1)
	[ -n "$kernel" ]
}

# pack - create $initrd from busybox, init.sh and the modules that are needed early
pack()
{
	local root=$tmp/initrd module file
	mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/rw" "$root/root"
	cp "$(command -v busybox)" "$root/bin/busybox" && cp "$here/init.sh" "$root/init" && chmod +x "$root/init" || return 1
	for module in $early; do
		modprobe -d "$kernel" -S "$(ls "$kernel/lib/modules")" --show-depends "$module" || return 1
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' >"$tmp/order"
	awk '!seen[$0]++' "$tmp/order" | while read -r file; do
		module=${file##*/} module=${module%.xz}
		case $file in
		*.xz) xz -dc "$file" >"$root/modules/$module" ;;
		*) cp "$file" "$root/modules/$module" ;;
		esac || return 1
		echo "$module" >>"$root/modules/order"
	done || return 1
	(cd "$root" && find . | cpio -o -H newc --quiet) >"$tmp/packed" && mv "$tmp/packed" "$initrd"
}

if candidate 2>>"$tmp/log" && get; then
	:
elif own_lists && candidate 2>>"$tmp/log" && get; then
	:
elif ! newest; then
	no "apt has no kernel for us${package:+ ($package $version)}: $(tail -n 1 "$tmp/log" 2>/dev/null)"
fi
sum=$(cat "$here/init.sh" "$0" | cksum)
initrd=$kernel/initrd-${sum%% *}
[ -f "$initrd" ] || pack || { echo "make-image: cannot make $initrd" >&2; exit 1; }
touch "$kernel" "$initrd"
# remove images that were not used for a month
find "$cache" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
find "$kernel" -maxdepth 1 -name 'initrd-*' -mtime +30 -delete
echo "$initrd"
