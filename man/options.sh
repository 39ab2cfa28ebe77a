#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# options.sh PAGE - print a manual page with its option lists made anew from the tables of the program $GANTRY and the
# plugins in $GANTRY_PLUGINS. A list stands between the lines `.\" options NAME` and `.\" end`; NAME is a plugin, or a
# section of the configuration. The list of a plugin that is not built stays as it is.
exec "${AWK:-awk}" '
/^\.\\" options [a-z-]+$/ {
	print
	command = "\"$GANTRY\" options --mdoc --plugin-dir \"$GANTRY_PLUGINS\" " $3 " 2>/dev/null || echo missing"
	list = missing = ""
	while ((command | getline line) > 0)
		if (line == "missing") missing = 1
		else list = list line "\n"
	close(command)
	if (missing) next
	if (list == "") print "None."
	else printf ".Bl -tag -width Ds\n%s.El\n", list
	inside = 1
	next
}
/^\.\\" end$/ { inside = 0 }
!inside' "$1"
