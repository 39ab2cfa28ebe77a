# SPDX-License-Identifier: BSD-3-Clause
# gantry_plugin.m4 - optional parts, and the table of the parts that are built

# GANTRY_ROW(KIND, NAME, yes|no, TEXT) - add a line to the table
AC_DEFUN([GANTRY_ROW],[gantry_table="$gantry_table
$(printf '  %-10s %-14s %-4s %s' "$1" "$2" "$3" "$4")"])

# GANTRY_MISSES(LIBRARY, DEBIAN-PACKAGE) - record that a required library is missing
AC_DEFUN([GANTRY_MISSES],[gantry_misses="$gantry_misses
  $1 not found (Debian: $2)"])

# GANTRY_NEED(VAR, MODULES, DEBIAN-PACKAGE) - find a required library
AC_DEFUN([GANTRY_NEED],[PKG_CHECK_MODULES([$1],[$2],[GANTRY_ROW([library],[m4_bpatsubst([$2],[ .*])],[yes],[])],
	[GANTRY_MISSES([$2],[$3])])])

# GANTRY_NEEDED - after the last GANTRY_NEED: if required libraries are missing, end configure with their names
AC_DEFUN([GANTRY_NEEDED],[AS_IF([test -n "$gantry_misses"],[AC_MSG_ERROR([gantry cannot be built here:$gantry_misses])])])

# GANTRY_WANT(VAR, MODULES, DEBIAN-PACKAGE, PURPOSE) - find an optional library
# Defines --without-VAR, HAVE_VAR in config.h, VAR_CFLAGS and VAR_LIBS, and the conditional HAVE_VAR.
AC_DEFUN([GANTRY_WANT],[
m4_pushdef([gantry_lower],m4_tolower([$1]))dnl
AC_ARG_WITH(gantry_lower,[AS_HELP_STRING([--without-]gantry_lower,[do not use $2 ($4)])],[],[AS_VAR_SET([with_]gantry_lower,[auto])])
gantry_have_$1=no
gantry_why_$1="switched off"
AS_IF([test "x$with_[]gantry_lower" != xno],[PKG_CHECK_MODULES([$1],[$2],[gantry_have_$1=yes],
	[gantry_why_$1="missing (Debian: $3)"
	 AS_IF([test "x$with_[]gantry_lower" = xyes],[AC_MSG_ERROR([$2 not found (Debian: $3)])])])])
AS_IF([test $gantry_have_$1 = yes],
	[AC_DEFINE([HAVE_$1],[1],[$4])
	 GANTRY_ROW([library],gantry_lower,[yes],[$4])],
	[GANTRY_ROW([library],gantry_lower,[no],[$gantry_why_$1; without it: no $4])])
AM_CONDITIONAL([HAVE_$1],[test $gantry_have_$1 = yes])
m4_popdef([gantry_lower])dnl
])

# GANTRY_WANT_RBD - find librbd, which has no module of pkg-config
# Defines what GANTRY_WANT([LIBRBD]) would define.
AC_DEFUN([GANTRY_WANT_RBD],[
AC_ARG_WITH([librbd],[AS_HELP_STRING([--without-librbd],[do not use librbd (images of Ceph)])],[],[with_librbd=auto])
gantry_have_LIBRBD=no
gantry_why_LIBRBD="switched off"
LIBRBD_LIBS=
AS_IF([test "x$with_librbd" != xno],[
	gantry_why_LIBRBD="missing (Debian: librbd-dev)"
	AC_CHECK_HEADERS([rbd/librbd.h],
		[AC_CHECK_LIB([rados],[rados_blocklist_add],
			[AC_CHECK_LIB([rbd],[rbd_aio_write_zeroes],[gantry_have_LIBRBD=yes LIBRBD_LIBS="-lrbd -lrados"],[],[-lrados])])])
	AS_IF([test "$gantry_have_LIBRBD-$with_librbd" = no-yes],[AC_MSG_ERROR([librbd 16 or later not found (Debian: librbd-dev)])])])
AC_SUBST([LIBRBD_LIBS])
AS_IF([test $gantry_have_LIBRBD = yes],
	[AC_DEFINE([HAVE_LIBRBD],[1],[images of Ceph])
	 GANTRY_ROW([library],[librbd],[yes],[images of Ceph])],
	[GANTRY_ROW([library],[librbd],[no],[$gantry_why_LIBRBD; without it: no images of Ceph])])
AM_CONDITIONAL([HAVE_LIBRBD],[test $gantry_have_LIBRBD = yes])
])

# GANTRY_PLUGIN(KIND, NAME, [VAR...]) - a plugin in plugins/KIND/NAME that needs the libraries VAR of GANTRY_WANT
AC_DEFUN([GANTRY_PLUGIN],[
m4_pushdef([gantry_upper],m4_translit([$2],[a-z-],[A-Z_]))dnl
m4_pushdef([gantry_var],m4_translit([$2],[-],[_]))dnl
AC_ARG_ENABLE([plugin-$2],[AS_HELP_STRING([--disable-plugin-$2],[do not build plugins/$1/$2])],[],[enable_plugin_[]gantry_var=yes])
gantry_why=
AS_IF([test "x$enable_plugin_[]gantry_var" = xno],[gantry_why="switched off"])
m4_foreach_w([gantry_lib],[$3],[
AS_IF([test "x$gantry_why" = x && test "x$gantry_have_[]gantry_lib" != xyes],
	[gantry_why="m4_tolower(gantry_lib) is $gantry_why_[]gantry_lib"])])
AM_CONDITIONAL([PLUGIN_]gantry_upper,[test "x$gantry_why" = x])
AS_IF([test "x$gantry_why" = x],[GANTRY_ROW([$1],[$2],[yes],[])],[GANTRY_ROW([$1],[$2],[no],[$gantry_why])])
m4_popdef([gantry_var])dnl
m4_popdef([gantry_upper])dnl
])

# GANTRY_TABLE - print the table; call it last
AC_DEFUN([GANTRY_TABLE],[
AS_ECHO(["
gantry $PACKAGE_VERSION for $host, plugin ABI $GANTRY_ABI
$gantry_table

  compiler   $CC $CFLAGS
  flags      $GANTRY_CFLAGS
"])])
