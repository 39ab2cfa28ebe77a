#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# deb.sh BUILD OUT [FIO] - builds the Debian packages of the source tree twice, in different directories of a clean root, and
# compares them; checks them with lintian; installs them in another clean root, runs debian/tests there, and boots it with systemd
# in a virtual machine. BUILD: a configured build directory; OUT: receives the packages; FIO: a configured source tree of fio, for
# the package gantry-fio. Only root can create the roots. Exit status: 0 if everything is as it must be.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
fio=${3:-no}
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mapfile -t sources < <(find /etc/apt -maxdepth 2 -type f \( -name sources.list -o -name '*.sources' -o -path '*.d/*.list' \))
version=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
upstream=${version%-*}
: "${SOURCE_DATE_EPOCH:=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Timestamp)}"
export SOURCE_DATE_EPOCH

say()
{
	echo "deb: $*"
}

# depends - print the packages that the build needs, separated by commas
depends()
{
	perl -MDpkg::Control::Info -MDpkg::Deps -e '
	my $source = Dpkg::Control::Info->new($ARGV[0])->get_source();
	print join ",", map { $_->{package} } deps_parse($source->{"Build-Depends"}, reduce_arch => 1)->get_deps();
	' "$top/debian/control"
}

# new_root DIR PACKAGES [SOURCE]... - create a root with these packages
new_root()
{
	local dir=$1 packages=$2
	shift 2
	rm -rf "$dir"
	mmdebstrap --quiet --variant=buildd --mode=root --include="$packages" \
		--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount "$suite" "$dir" "${sources[@]}" "$@"
}

# make_source - create the source package in $out/source
make_source()
{
	rm -rf "$out/source"
	mkdir -p "$out/source"
	make -s -C "$build" dist >"$out/dist.log" 2>&1 || { tail -n 30 "$out/dist.log"; return 1; }
	# the packaging belongs to the other archive of the source package
	xz -dc "$build/gantry-$upstream.tar.xz" | tar -f - --delete "gantry-$upstream/debian" |
		xz -0 >"$out/source/gantry_$upstream.orig.tar.xz"
	tar -C "$out/source" -xf "$out/source/gantry_$upstream.orig.tar.xz"
	cp -R "$top/debian" "$out/source/gantry-$upstream/"
	(cd "$out/source" && dpkg-source -q -b "gantry-$upstream")
}

profile=()
# build_in ROOT RESULT - build the packages in a root, at a path that depends on RESULT, and move them to it
build_in()
{
	local place=/build-${2##*/}
	mkdir -p "$1$place" "$2"
	cp -R "$out/source"/* "$1$place"
	[ "$fio" = no ] || [ -d "$1/fio" ] || cp -R "$fio" "$1/fio"
	[ "$fio" = no ] || profile=(GANTRY_FIO=/fio DEB_BUILD_PROFILES=pkg.gantry.fio)
	chroot "$1" env -C "$place/gantry-$upstream" SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" "${profile[@]}" \
		dpkg-buildpackage -us -uc -j"$(nproc)" >"$2.log" 2>&1 || { tail -n 30 "$2.log"; return 1; }
	find "$1$place" -maxdepth 1 -type f ! -name '*.tar.xz' -exec mv -t "$2" {} +
	cp "$out/source"/*.tar.xz "$2"
	rm -rf "${1:?}$place"
}

# same - compare the packages of both builds
same()
{
	local deb status=0
	for deb in "$out"/first/*.deb; do
		cmp "$deb" "$out/second/${deb##*/}" || status=1
	done
	return $status
}

rm -rf "$out/first" "$out/second" "$out/repository"
say "source package"
make_source
say "root for the build"
packages=$(depends)
new_root "$out/root" "$packages"
for result in first second; do
	say "$result build"
	build_in "$out/root" "$out/$result"
done
say "compare both builds"
same
say "lintian"
lintian --fail-on error,warning "$out"/first/*.changes
mkdir "$out/repository"
cp "$out"/first/*.deb "$out/repository"
(cd "$out/repository" && dpkg-scanpackages -m . >Packages 2>/dev/null)
say "root for the tests"
ours=gantry,gantry-doc,gantry-launcher,gantry-metrics,gantry-nbd,gantry-nbdkit,gantry-rbd,gantry-rdma,gantry-tests,libgantry-dev
ours=$ours,libgantry-doca-dev
[ "$fio" = no ] || ours=$ours,fio,gantry-fio
new_root "$out/root" "$ours,curl,gcc,libc6-dev,libnbd-bin,make,pkgconf,systemd-sysv" \
	"deb [trusted=yes] copy:$out/repository ./"
say "tests of the installed packages"
# shellcheck disable=SC2016 # the inner shell expands it
unshare --mount sh -ec '
	mount -t proc proc "$2/proc"
	mount --rbind /dev "$2/dev"
	exec autopkgtest --no-built-binaries "$1" -- chroot "$2"
' sh "$out"/first/*.dsc "$out/root" >"$out/tests.log" 2>&1 || { tail -n 60 "$out/tests.log"; exit 1; }
grep -E '^[a-z]+ +(PASS|SKIP)' "$out/tests.log"
say "boot with systemd"
bash "$top/tests/vm/run.sh" -b "$build" -o "$out/boot" -t 1200 -r "$out/root" "$top/tests/deb/booted.sh"
rm -rf "$out/root"
say "packages: $out/repository"
