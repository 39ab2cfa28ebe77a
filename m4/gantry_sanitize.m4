# SPDX-License-Identifier: BSD-3-Clause
# gantry_sanitize.m4 - --enable-asan, --enable-ubsan, --enable-tsan, --enable-fuzz, --enable-coverage

AC_DEFUN([GANTRY_SANITIZE],[
AC_ARG_ENABLE([asan],[AS_HELP_STRING([--enable-asan],[build with the address sanitizer])],[],[enable_asan=no])
AC_ARG_ENABLE([ubsan],[AS_HELP_STRING([--enable-ubsan],[build with the undefined behaviour sanitizer])],[],[enable_ubsan=no])
AC_ARG_ENABLE([tsan],[AS_HELP_STRING([--enable-tsan],[build with the thread sanitizer])],[],[enable_tsan=no])
AC_ARG_ENABLE([fuzz],[AS_HELP_STRING([--enable-fuzz],[build the fuzz targets with libFuzzer (clang)])],[],[enable_fuzz=no])
AC_ARG_ENABLE([coverage],[AS_HELP_STRING([--enable-coverage],[count which source lines run (clang)])],[],[enable_coverage=no])
AS_IF([test "x$enable_asan$enable_tsan" = xyesyes],[AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
gantry_san=
AS_IF([test "x$enable_asan" = xyes],[gantry_san="$gantry_san -fsanitize=address"])
AS_IF([test "x$enable_ubsan" = xyes],[gantry_san="$gantry_san -fsanitize=undefined -fno-sanitize-recover=undefined"])
AS_IF([test "x$enable_tsan" = xyes],[gantry_san="$gantry_san -fsanitize=thread"])
FUZZ_LDFLAGS=
AS_IF([test "x$enable_fuzz" = xyes],[gantry_san="$gantry_san -fsanitize=fuzzer-no-link" FUZZ_LDFLAGS=-fsanitize=fuzzer])
AS_IF([test "x$enable_coverage" = xyes],[gantry_san="$gantry_san -fprofile-instr-generate -fcoverage-mapping"])
AC_SUBST([FUZZ_LDFLAGS])
AM_CONDITIONAL([FUZZ],[test "x$enable_fuzz" = xyes])

# A plugin must not use symbols of the program: with -z defs the linker rejects it. clang with a sanitizer is an exception: its
# plugins use the sanitizer's symbols of the program.
GANTRY_PLUGIN_DEFS=
GANTRY_TRY_LDFLAG([-Wl,-z,defs],[GANTRY_PLUGIN_DEFS])
AS_IF([test -n "$gantry_san"],
	[gantry_save_LDFLAGS=$LDFLAGS
	 LDFLAGS="$LDFLAGS $gantry_san"
	 AC_MSG_CHECKING([whether $CC links with$gantry_san])
	 AC_LINK_IFELSE([AC_LANG_PROGRAM],[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([$CC cannot link with$gantry_san (Debian, clang: libclang-rt-dev)])])
	 LDFLAGS=$gantry_save_LDFLAGS
	 GANTRY_CFLAGS="$GANTRY_CFLAGS$gantry_san -g1 -fno-omit-frame-pointer"
	 GANTRY_LDFLAGS="$GANTRY_LDFLAGS$gantry_san"
	 AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#ifndef __clang__
#error not clang
#endif]])],[GANTRY_PLUGIN_DEFS=])
	 AC_DEFINE([GANTRY_SANITIZED],[1],[built with a sanitizer])
	 GANTRY_ROW([build],[sanitizers],[yes],[$gantry_san])],
	[# keep the level that CFLAGS or the compiler sets
	 AC_MSG_CHECKING([whether _FORTIFY_SOURCE is set already])
	 AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#ifndef _FORTIFY_SOURCE
#error not set
#endif]])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 GANTRY_TRY_CFLAG([-D_FORTIFY_SOURCE=2])])])
AC_SUBST([GANTRY_PLUGIN_DEFS])
AM_CONDITIONAL([SANITIZED],[test -n "$gantry_san"])
])
