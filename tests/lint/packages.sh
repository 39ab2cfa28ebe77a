#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh - gantry.spec and debian/ have the same version, the same date and the same files in each package, and NEWS and
# configure.ac have this version; each manual page and each plugin is in a package
. "$(dirname "$0")/lib.sh"

seed()
{
	echo 'AC_INIT([gantry],[2.0])' | put "$1/configure.ac"
	echo 'gantry 1.9 (unreleased)' | put "$1/NEWS" # error
	printf 'gantry (2.0-0gantry1) x; urgency=medium\n\n -- A <a@b>  Fri, 27 Nov 2026 12:00:00 +0000\n' |
		put "$1/debian/changelog"
	{
		printf 'Version: 2.0\n%%files\n%%{_bindir}/gantry\n%%{_libdir}/gantry/1/extra.so\n' # error: Debian lacks extra
		printf '%%files -n libgantry-devel\n%%dir %%{_includedir}/gantry\n%%{_mandir}/man7/a.7*\n'
		printf '%%files doc\n%%doc NEWS\n' # error: Debian has README
		printf '%%changelog\n* Thu Nov 26 2026 A <a@b> - 2.0-1\n' # error: date
	} | put "$1/gantry.spec"
	echo 'usr/bin/gantry' | put "$1/debian/gantry.install"
	echo 'usr/share/man/man7/a.7' | put "$1/debian/libgantry-dev.install"
	printf 'NEWS\nREADME\n' | put "$1/debian/gantry-doc.docs"
	printf 'man_MANS += a.7\nman_MANS += b.7\n' | put "$1/man/Makefile.am" # error: b.7
	echo 'GANTRY_PLUGIN([stage],[lost])' >>"$1/configure.ac" # error
}

# debian_files ROOT - print "PACKAGE PATH" for each line of debian/*.install and *.docs, with RPM's names of the packages. The spec
# omits gantry-fio: it needs a source tree of fio.
debian_files()
{
	(
		cd "$1/debian" || exit 1
		for file in *.install *.docs; do
			[ -e "$file" ] && [ "$file" != gantry-fio.install ] && sed "s|^|${file%.*} |" "$file"
		done
	) | sed 's|^\([^ ]*\)-dev |\1-devel |; s|^\([^ ]*\)0 |\1 |'
}

# spec_files ROOT - print the same of the sections %files, with Debian's directories; without directories and licenses
spec_files()
{
	$awk '
	/^%[a-z]/ && !/^%(dir|doc|license) / { package = "" }
	/^%files/ { package = $2 == "-n" ? $3 : $2 ? "gantry-" $2 : "gantry"; next }
	package && NF && !/^%(dir|license) / { sub(/^%doc /, ""); print package, $0 }
	' "$1/gantry.spec" | sed 's|%{_bindir}|usr/bin|; s|%{_libdir}|usr/lib/*|; s|%{_includedir}|usr/include|
		s|%{_mandir}/\(.*\)\*$|usr/share/man/\1|; s|%{_docdir}|usr/share/doc|; s|%{_datadir}|usr/share|
		s|%{_unitdir}|lib/systemd/system|; s|%{_sysusersdir}|usr/lib/sysusers.d|
		s|\(usr/share/man/man3/\)$|\1*|'
}

# in_package FILE ROOT - a line of debian/*.install matches this path
in_package()
{
	cat "$2"/debian/*.install | while read -r pattern; do
		# shellcheck disable=SC2254 # a pattern
		case $1 in
		$pattern) echo found ;;
		esac
	done | grep -q found
}

check()
{
	version=$(sed -n 's/^AC_INIT(\[gantry\],\[\(.*\)\])$/\1/p' "$1/configure.ac")
	grep -qE "^Version: +$version\$" "$1/gantry.spec" || echo "gantry.spec does not have the version $version"
	head -n 1 "$1/NEWS" | grep -qF "gantry $version " || echo "NEWS does not begin with the version $version"
	head -n 1 "$1/debian/changelog" | grep -qF "gantry ($version-" ||
		echo "debian/changelog does not begin with the version $version"
	# "Fri, 27 Nov 2026 ..." and "* Fri Nov 27 2026 ..."
	date=$($awk '/^ -- / { sub(/.*>  /, ""); sub(/,/, ""); print $1, $3, $2, $4; exit }' "$1/debian/changelog")
	sed -n '/^%changelog/{n;p;}' "$1/gantry.spec" | grep -q "^\* $date .* $version-" ||
		echo "gantry.spec has no change of $date with the version $version"
	{
		spec_files "$1" | sort -u
		debian_files "$1" | sort -u
	} | sort | uniq -u | sed 's/$/ is only in gantry.spec, or only in debian/'
	sed -n 's/^man_MANS += //p' "$1/man/Makefile.am" | while read -r page; do
		in_package "usr/share/man/man${page##*.}/$page" "$1" || echo "$page is in no package"
	done
	sed -n 's/^GANTRY_PLUGIN(\[[a-z]*\],\[\([^]]*\)\].*/\1/p' "$1/configure.ac" | while read -r plugin; do
		in_package "usr/lib/x/gantry/1/$plugin.so" "$1" || echo "plugin $plugin is in no package"
	done
}

run_lint 6 "packages of RPM and Debian agree"
