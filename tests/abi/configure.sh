#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# configure.sh - the output of configure: it reports all missing dependencies at once, prints nothing on standard error on
# success, and does not weaken the hardening flags of a distribution
. "$top_srcdir/tests/tap.sh"
# the flags that the environment exports would influence the tests
unset CPPFLAGS LDFLAGS
shown="$tmp/out $tmp/err"

# configure rejects a source tree that was configured in place, so the test uses a copy of the files that configure needs
source=$top_srcdir
if [ -e "$source/config.status" ]; then
	source=$tmp/source
	mkdir "$source"
	(cd "$top_srcdir" && find configure build-aux include ./*.in ./*/*.in -type f -print0 2>/dev/null |
		tar -c --null -T - -f -) | tar -x -C "$source" -f -
fi

# configure ARGUMENT... - in $tmp/build, with the compiler results of this build, but no results of pkg-config
configure()
{
	sed -n '/^## Cache variables/,/^## Output variables/s/^\([a-z_]*_cv_.*\)/\1/p' "$top_builddir/config.log" |
		grep -vE '^(ac_cv_env_|pkg_cv_|ac_cv_path_|ac_cv_header_ltdl|ac_cv_search_epoll_pwait2)' >"$tmp/cache"
	(cd "$tmp/build" && "$source/configure" CC="$CC" --cache-file="$tmp/cache" "$@") >"$tmp/out" 2>"$tmp/err"
}

# flags - the flags that the project itself passes to the compiler
flags()
{
	sed -n 's/^GANTRY_CFLAGS = //p' "$tmp/build/core/Makefile"
}

case $CC in
*sanitize*) skip "only for builds without sanitizers" ;;
esac
mkdir -p "$tmp/build"

mv "$tmp/build" "$tmp/a build"
(cd "$tmp/a build" && "$source/configure") >"$tmp/out" 2>"$tmp/err"
[ $? -eq 1 ] &&
	grep -q '^configure: error: the path of this directory has a blank, which libtool does not support: .*/a build$' "$tmp/err"
verdict $? "the path of a build directory with a blank is rejected"
mv "$tmp/a build" "$tmp/build"

configure PKG_CONFIG=false
[ $? -eq 1 ] && grep -q '^configure: error: pkg-config .* not found (Debian: pkg-config)' "$tmp/err"
verdict $? "without pkg-config the error names pkg-config, not the libraries"

# a pkg-config that works and finds no library
printf '#!/bin/sh\ncase "$*" in *atleast-pkgconfig*) exit 0 ;; esac\nexit 1\n' >"$tmp/pkg-config"
chmod +x "$tmp/pkg-config"
configure PKG_CONFIG="$tmp/pkg-config" ac_cv_header_ltdl_h=no
[ $? -eq 1 ] && [ "$(grep -cE 'not found \(Debian: (lib(config|jansson|ltdl|ssl)|uuid)-dev\)' "$tmp/err")" -eq 5 ]
verdict $? "libraries that are missing are named all at once"

# the installed libraries do not matter: this tests flags and standard error
set -- PKG_CONFIG="$tmp/pkg-config" LIBCONFIG_CFLAGS=' ' LIBCONFIG_LIBS=-lconfig JANSSON_CFLAGS=' ' JANSSON_LIBS=-ljansson \
	LIBUUID_CFLAGS=' ' LIBUUID_LIBS=-luuid LIBSSL_CFLAGS=' ' LIBSSL_LIBS='-lssl -lcrypto'
configure "$@" ac_cv_search_epoll_pwait2=no
[ $? -eq 1 ] && grep -q '^configure: error: epoll_pwait2() not found: .*glibc 2\.35 or later' "$tmp/err"
verdict $? "a C library without epoll_pwait2() is rejected, with the version that is needed"

mkdir -p "$tmp/build/core"
configure "$@" CFLAGS='-O2 -D_FORTIFY_SOURCE=3' && [ -z "$(flags | grep -o FORTIFY)" ]
verdict $? "a level of _FORTIFY_SOURCE in CFLAGS is left alone"

[ ! -s "$tmp/err" ] && [ ! -e "$tmp/build/confdefs.h" ]
verdict $? "configure does not stumble over the folder core"

configure "$@" CFLAGS=-O2 && flags | grep -q -- '-D_FORTIFY_SOURCE='
verdict $? "without one there is one"
done_testing
