#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# seen-link.sh COMPILER ARGUMENT... - link a test so that its own objects call the stubs of $SEEN; see errors.sh
n=$#
while [ "$n" -gt 0 ]; do
	arg=$1
	shift
	case $arg in
	doca/*.o | lib*rig*.a)
		object=$SEEN/$$.${arg##*/}
		objcopy --redefine-syms="$SEEN/map" "$arg" "$object" || exit 1
		arg=$object
		;;
	esac
	set -- "$@" "$arg"
	n=$((n - 1))
done
compiler=$1
shift
"$compiler" "$SEEN/stubs.o" "$SEEN/seen.o" "$@"
rc=$?
rm -f "$SEEN/$$".*
exit $rc
