# SPDX-License-Identifier: BSD-3-Clause
# gantry_fio.m4 - --with-fio: the source tree of fio, with which the engine for fio is built
#
# fio does not install its headers, and the layout of its structures depends on the libraries that its configure has found. fio
# does not compare layouts when it loads an engine. So reject a tree whose layout differs from that of the packaged program.

# GANTRY_FIO_REFUSE(TEXT) - end configure. TEXT: what is wrong with the tree, and a remedy
AC_DEFUN([GANTRY_FIO_REFUSE],[AC_MSG_ERROR([--with-fio=$with_fio: $1])])

AC_DEFUN([GANTRY_WITH_FIO],[
AC_ARG_WITH([fio],[AS_HELP_STRING([--with-fio=DIR],
	[engine for fio, with the headers of the configured source tree of fio in DIR @<:@no@:>@])],[],[with_fio=no])
FIO_DIR=
FIO_VERSION=
AS_IF([test "x$with_fio" = xno],
	[GANTRY_ROW([client],[fio],[no],[--with-fio=DIR is not given (a configured source tree of fio)])],
	[AS_IF([test "x$enable_client" = xno],[GANTRY_FIO_REFUSE([the engine needs libgantry; not with --disable-client])])
	 FIO_DIR=$(cd "$with_fio" 2>/dev/null && pwd)
	 AS_IF([test ! -f "$FIO_DIR/ioengines.h"],[GANTRY_FIO_REFUSE([no source tree of fio (Debian: apt-get source fio)])])
	 AS_IF([test ! -f "$FIO_DIR/config-host.h"],[GANTRY_FIO_REFUSE([not configured: run ./configure --disable-native there])])
	 gantry_missing=
	 for gantry_part in LIBAIO POSIXAIO RDMA; do
		grep -q "^#define CONFIG_$gantry_part\$" "$FIO_DIR/config-host.h" || gantry_missing="$gantry_missing $gantry_part"
	 done
	 AS_IF([test -n "$gantry_missing"],[GANTRY_FIO_REFUSE([configured without$gantry_missing, which the packaged fio has: \
struct io_u would have another layout. Install the libraries (Debian: libaio-dev libibverbs-dev librdmacm-dev) and configure \
fio again])])
	 # the version of the built tree; without that file the version of the release
	 FIO_VERSION=$(sed -n 's/^FIO_VERSION = //p' "$FIO_DIR/FIO-VERSION-FILE" 2>/dev/null)
	 test -n "$FIO_VERSION" || FIO_VERSION=$(sed -n 's/^DEF_VER=//p' "$FIO_DIR/FIO-VERSION-GEN" 2>/dev/null)
	 AS_IF([test -z "$FIO_VERSION"],[GANTRY_FIO_REFUSE([no version in FIO-VERSION-GEN])])
	 FIO_CPPFLAGS="-include $FIO_DIR/config-host.h -idirafter $FIO_DIR"
	 gantry_save_CPPFLAGS=$CPPFLAGS
	 CPPFLAGS="$CPPFLAGS $FIO_CPPFLAGS"
	 AC_MSG_CHECKING([whether the headers of fio in $with_fio compile])
	 AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <fio.h>
		struct ioengine_ops ops = { .version = FIO_IOOPS_VERSION };]])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 GANTRY_FIO_REFUSE([its headers do not compile (config.log)])])
	 CPPFLAGS=$gantry_save_CPPFLAGS
	 GANTRY_ROW([client],[fio],[yes],[$FIO_VERSION in $FIO_DIR])])
AC_SUBST([FIO_CPPFLAGS])
AC_SUBST([FIO_VERSION])
AM_CONDITIONAL([FIO],[test -n "$FIO_DIR"])
])
