# SPDX-License-Identifier: BSD-3-Clause
# gantry_warnings.m4 - flags for warnings and hardening; only those that this compiler accepts without a warning are used
#
# -falign-functions=64: when a function grows, the functions after it could begin in the middle of a cache line, and an IO then
# takes up to 3 % longer.

# GANTRY_TRY_CFLAG(FLAG) - add FLAG to GANTRY_CFLAGS if it compiles without a warning with the user's CFLAGS
AC_DEFUN([GANTRY_TRY_CFLAG],[
AC_MSG_CHECKING([whether $CC takes $1])
gantry_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $GANTRY_CFLAGS $1 -Werror"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>]])],
	[AC_MSG_RESULT([yes])
	 CFLAGS=$gantry_save_CFLAGS
	 GANTRY_CFLAGS="$GANTRY_CFLAGS $1"],
	[AC_MSG_RESULT([no])
	 CFLAGS=$gantry_save_CFLAGS])])

# GANTRY_TRY_LDFLAG(FLAG, VARIABLE) - add FLAG to VARIABLE if the linker accepts it without a warning
AC_DEFUN([GANTRY_TRY_LDFLAG],[
AC_MSG_CHECKING([whether the linker takes $1])
gantry_save_LDFLAGS=$LDFLAGS
LDFLAGS="$LDFLAGS $1 -Werror"
AC_LINK_IFELSE([AC_LANG_PROGRAM],
	[AC_MSG_RESULT([yes])
	 $2="$$2 $1"],
	[AC_MSG_RESULT([no])])
LDFLAGS=$gantry_save_LDFLAGS])

AC_DEFUN([GANTRY_WARNINGS],[
GANTRY_CFLAGS=-std=gnu11
GANTRY_LDFLAGS=
GANTRY_PIE_CFLAGS=
GANTRY_PIE_LDFLAGS=
m4_foreach_w([gantry_flag],[-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
	-Wwrite-strings -Wundef -fno-common -fvisibility=hidden -fstack-protector-strong -falign-functions=64],
	[GANTRY_TRY_CFLAG(gantry_flag)])
AC_ARG_ENABLE([werror],[AS_HELP_STRING([--enable-werror],[treat warnings as errors (./dev does)])],[],[enable_werror=no])
AS_IF([test "x$enable_werror" = xyes],[GANTRY_CFLAGS="$GANTRY_CFLAGS -Werror"])
GANTRY_TRY_LDFLAG([-Wl,-z,relro],[GANTRY_LDFLAGS])
GANTRY_TRY_LDFLAG([-Wl,-z,now],[GANTRY_LDFLAGS])
GANTRY_TRY_LDFLAG([-pie],[GANTRY_PIE_LDFLAGS])
AS_IF([test -n "$GANTRY_PIE_LDFLAGS"],[GANTRY_PIE_CFLAGS=-fPIE])
AC_SUBST([GANTRY_CFLAGS])
AC_SUBST([GANTRY_LDFLAGS])
AC_SUBST([GANTRY_PIE_CFLAGS])
AC_SUBST([GANTRY_PIE_LDFLAGS])
])
