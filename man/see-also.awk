# SPDX-License-Identifier: BSD-3-Clause
# see-also.awk - copy a manual page without the entries of SEE ALSO that name a page of gantry that is not installed
#
#	awk -v pages='ALL PAGES' -v installed='THOSE INSTALLED' -f see-also.awk PAGE
BEGIN {
	n = split(pages, name, " ")
	for (i = 1; i <= n; i++)
		missing[name[i]] = 1
	n = split(installed, name, " ")
	for (i = 1; i <= n; i++)
		delete missing[name[i]]
}

# print the last entry that was kept. end: after it, " ," or nothing
function put_entry(end)
{
	if (entry != "")
		print entry end
	entry = ""
}

/^\.Sh / { put_entry(""); in_list = $0 == ".Sh SEE ALSO" }
in_list && /^\.Xr / {
	if (!(($2 "." $3) in missing)) {
		put_entry(" ,")
		entry = $1 " " $2 " " $3
	}
	next
}
{ put_entry(""); print }
END { put_entry("") }
