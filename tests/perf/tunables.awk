# SPDX-License-Identifier: BSD-3-Clause
# tunables.awk - the tables of man/gantry-performance.7, one line each for a table and for its rows:
#	table|NUMBER|SETTINGS|METRIC METRIC...	what `gantry run FILE` is given for the row to compare with; the columns
#	row|NUMBER|SETTINGS|RATIO RATIO...	what it is given besides; what the page says
# A table is the command in a literal display, and the list that follows. With got, a file of lines "NUMBER|SETTINGS|RATIO ...",
# the page is printed instead, with those ratios. With file=1 the configuration FILE is.
function settings(text)
{
	sub(/^.*FILE */, "", text)
	gsub(/--set |\\e/, " ", text)
	gsub(/[ \t]+/, " ", text)
	gsub(/^ | $/, "", text)
	return text
}

function columns(text)
{
	gsub(/(Ta|Sy) /, "", text)
	return text
}

BEGIN {
	while (got != "" && (getline line < got) > 0) {
		split(line, part, "|")
		ratios[part[1], part[2]] = part[3]
	}
}

/^\.Ed/ { example = 0 }
file && example && !/^\.Bd/ { print }
/^\.\\" check file$/ { example = 1 }

/^\$ gantry run FILE/ { command = $0; open = 1 }
open && !/^\$/ { command = command " " $0 }
open && !/\\e$/ { open = 0 }

/^\.It Sy set Ta / {
	n++
	if (got == "" && !file)
		print "table|" n "|" settings(command) "|" columns(substr($0, length(".It Sy set Ta ") + 1))
}

/^\.It Li .* Ta / {
	at = index($0, " Ta ")
	set = substr($0, length(".It Li ") + 1, at - length(".It Li ") - 1)
	if (got == "" && !file)
		print "row|" n "|" set "|" columns(substr($0, at + 4))
	else if ((n, set) in ratios) {
		gsub(/ /, " Ta ", ratios[n, set])
		$0 = substr($0, 1, at) "Ta " ratios[n, set]
	}
}

got != "" { print }
