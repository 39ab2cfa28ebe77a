# SPDX-License-Identifier: BSD-3-Clause
# gantry_unity.m4 - find the Unity test framework for the unit tests, or use the shim
#
# Do not search by pkg-config: its module "unity" is a desktop library that has the same name and the same header name.

AC_DEFUN([GANTRY_WITH_UNITY],[
AC_ARG_VAR([GANTRY_UNITY],[directory with unity.c and unity.h of the Unity test framework, or "shim"])
AC_ARG_WITH([unity],[AS_HELP_STRING([--with-unity=DIR|shim],
	[unity.c and unity.h for the unit tests @<:@$GANTRY_UNITY or the shim in tests/unity-shim@:>@])],
	[],[with_unity=${GANTRY_UNITY:-shim}])
AS_CASE([$with_unity],
	[no|shim],[UNITY_DIR='$(top_srcdir)/tests/unity-shim'
	 GANTRY_ROW([tests],[unity],[yes],[shim (tests/unity-shim)])],
	[UNITY_DIR=$(cd "$with_unity" 2>/dev/null && pwd)
	 gantry_save_CPPFLAGS=$CPPFLAGS
	 CPPFLAGS="$CPPFLAGS -I$UNITY_DIR"
	 AC_MSG_CHECKING([for Unity in $with_unity])
	 AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include "unity.h"
		void setUp(void) {} void tearDown(void) {}]],[[UNITY_BEGIN(); return UNITY_END();]])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([no unity.h with UNITY_BEGIN in '$with_unity'])])
	 CPPFLAGS=$gantry_save_CPPFLAGS
	 AS_IF([test ! -f "$UNITY_DIR/unity.c"],[AC_MSG_ERROR([no unity.c in '$with_unity'])])
	 GANTRY_ROW([tests],[unity],[yes],[$UNITY_DIR])])
AC_SUBST([UNITY_DIR])
])
