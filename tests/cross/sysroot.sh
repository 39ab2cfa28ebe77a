#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sysroot.sh ARCH PACKAGE... - make a cache directory with headers and libraries of these Debian packages and their dependencies,
# for another architecture. The packages come from the APT sources of this machine and are unpacked, not installed. tools/ has
# compilers and a pkg-config that use only this directory. programs/ has programs of that architecture that tests call by name.
#
# Prints the path of the directory. A directory for the same packages is reused for a week, or longer if no download is possible.
# If neither is possible, prints the reason and exits with 77. Needs no root and does not change the database of dpkg.
set -u
export LC_ALL=C
cache=${XDG_CACHE_HOME:-${HOME:?needs HOME or XDG_CACHE_HOME}/.cache}/gantry/cross
arch=${1:?ARCH}
shift

no()
{
	echo "$*" >&2
	exit 77
}

for tool in apt-get dpkg-architecture dpkg-deb tar; do
	command -v "$tool" >/dev/null || no "$tool is not installed"
done
triplet=$(dpkg-architecture -f -a "$arch" -q DEB_HOST_GNU_TYPE 2>/dev/null) || no "$arch is no architecture of Debian"
sum=$(echo "$*" | cat "$0" - | cksum)
root=$cache/$arch-${sum%% *}
mkdir -p "$cache" && tmp=$(mktemp -d "$cache/new.XXXXXX") || no "cannot write to $cache"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# download PACKAGE... - into $tmp/archives, with separate package lists, status and architectures of apt
download()
{
	local options=(-qq -y -o APT::Sandbox::User=root -o "APT::Architecture=$arch" -o "APT::Architectures::=$arch"
		-o "Dir::State=$tmp/state" -o "Dir::State::status=$tmp/status" -o "Dir::Cache=$tmp" -o Debug::NoLocking=true)
	mkdir -p "$tmp/state/lists/partial" "$tmp/archives/partial"
	: >"$tmp/status"
	# removes the list of architectures of the machine, which apt would add
	printf '#clear APT::Architectures;\n' >"$tmp/apt.conf"
	export APT_CONFIG=$tmp/apt.conf
	apt-get "${options[@]}" update && apt-get "${options[@]}" --no-install-recommends --download-only install "$@"
}

# unpack - unpack the archives; top-level directories are links as on real machines, and no link leads out of the root
unpack()
{
	local deb link to folder
	mkdir -p "$tmp/root/usr"
	for folder in bin lib lib64 sbin; do
		mkdir "$tmp/root/usr/$folder" && ln -s "usr/$folder" "$tmp/root/$folder" || return 1
	done
	for deb in "$tmp"/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$tmp/root" \
			--exclude './usr/share/doc/*' --exclude './usr/share/locale/*' --exclude './usr/share/man/*' \
			--exclude './dev/*' || return 1
	done
	while read -r link; do
		to=$(readlink "$link")
		ln -sfn -r "$tmp/root$to" "$link" || return 1
	done < <(find "$tmp/root" -lname '/*')
}

# tool NAME COMMAND... - make a program with that name, which passes more arguments to the command
tool()
{
	printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$tmp/root/tools/$1"
	chmod +x "$tmp/root/tools/$1"
}

# equip - make the tools, which refer to the final place of the root
equip()
{
	local lib=$root/usr/lib/$triplet
	mkdir "$tmp/root/tools" "$tmp/root/programs" && echo "$triplet" >"$tmp/root/triplet" || return 1
	tool cc "$triplet-gcc '--sysroot=$root'"
	tool c++ "$triplet-g++ '--sysroot=$root'"
	tool pkg-config "env 'PKG_CONFIG_LIBDIR=$lib/pkgconfig:$root/usr/share/pkgconfig' 'PKG_CONFIG_SYSROOT_DIR=$root' pkg-config"
	find "$tmp/root/usr" -path '*bin/nbdkit' -exec cp {} "$tmp/root/programs" \;
}

if [ -z "$(find "$root" -maxdepth 0 -mtime -7 2>/dev/null)" ]; then
	if download "$@" >"$tmp/log" 2>&1 && { unpack && equip; } >>"$tmp/log" 2>&1; then
		# two processes may do this at the same time; the second uses the result of the first
		rm -rf "$root"
		touch "$tmp/root"
		mv -T "$tmp/root" "$root" 2>/dev/null || [ -d "$root" ]
	elif [ ! -d "$root" ]; then
		no "no packages for $arch: $(grep -E '^E:' "$tmp/log" | head -n 3 | tr '\n' ' ')$(tail -n 1 "$tmp/log")"
	fi
fi
# removes directories for other lists that were not used for long
find "$cache" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
echo "$root"
