#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rpm.sh BUILD OUT - builds the RPM packages of the source tree by gantry.spec, checks them with rpmlint, and compares their files
# with those that `make install install-html` installs. BUILD: a configured build directory; OUT: receives the packages, in RPMS
# and SRPMS. rpmbuild looks for no RPM packages (--nodeps), so it works on Debian. Exit status: 0 if everything is as it must be.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
rm -rf "$2"
mkdir -p "$2/SOURCES"
out=$(cd "$2" && pwd)

say()
{
	echo "rpm: $*"
}

# logged LOG COMMAND... - run the command; print the end of its output if it fails
logged()
{
	local log=$1
	shift
	"$@" >"$log" 2>&1 || { tail -n 30 "$log"; return 1; }
}

# common - sort paths without what differs between distributions: the prefix, the directory of libraries, the compression of pages
common()
{
	sed -e 's|^/usr/local/|/usr/|; s|^/usr/lib64/|/usr/lib/|; s|^/usr/lib/[^/]*-linux-gnu/|/usr/lib/|' \
		-e 's|^\(/usr/share/man/.*\)\.gz$|\1|' | sort
}

# packaged - print the files of all packages but licenses and documents, which are files of the source tree
packaged()
{
	rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$out"/RPMS/*/*.rpm |
		sed '/^d/d; s|^[^ ]* ||; \|^/usr/share/licenses/|d; \|^/usr/share/doc/gantry/[^/]*$|d'
}

# installed - print the files that `make install install-html` installs, without those that packages omit: files of libtool, and
# the engine of fio with its page and jobs
installed()
{
	local omitted=(-name '*.la' -o -name gantry-fio.so -o -name gantry-fio.1 -o -path './*/doc/gantry/fio/*')
	(cd "$out/root" && find . ! -type d ! \( "${omitted[@]}" \)) | cut -c 2-
}

say "source archive"
logged "$out/dist.log" make -s -C "$build" dist
cp "$build"/gantry-*.tar.xz "$out/SOURCES"
say "build"
logged "$out/build.log" rpmbuild -ba --nodeps --load "$top/tests/rpm/macros" --define "_topdir $out" "$top/gantry.spec"
say "rpmlint"
rpmlint --config "$top/tests/rpm/rpmlint.toml" "$top/gantry.spec" "$out"/RPMS/*/*.rpm "$out"/SRPMS/*.rpm | tee "$out/rpmlint.log" |
	grep -E '(: [EW]:|checked;)'
grep -q ' 0 errors, 0 warnings,' "$out/rpmlint.log"
say "compare the files with those of make install"
logged "$out/install.log" make -s -C "$build" install install-html DESTDIR="$out/root"
diff <(installed | common) <(packaged | common)
say "packages: $out/RPMS"
