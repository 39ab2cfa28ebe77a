# SPDX-License-Identifier: BSD-3-Clause
# tunables.awk - prints the tables of man/gantry-performance.7, one line for each table and for each row:
#	table|NUMBER|SETTINGS|METRIC METRIC...	settings of `gantry run FILE` for the reference; the columns
#	row|NUMBER|SETTINGS|RATIO RATIO...	its additional settings; the ratios on the page
# A table is a command in a literal display, and the list that follows it. With got, a file of lines "NUMBER|SETTINGS|RATIO ...",
# it prints the page with these ratios instead. With file=1 it prints the configuration FILE.
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

/^\.It Sy .* Ta Sy set$/ {
	n++
	if (got == "" && !file)
		print "table|" n "|" settings(command) "|" columns(substr($0, 5, length($0) - length(".It  Ta Sy set")))
}

/^\.It [0-9.]+ Ta .*Li / {
	at = index($0, " Ta Li ")
	set = substr($0, at + length(" Ta Li "))
	if (got == "" && !file)
		print "row|" n "|" set "|" columns(substr($0, 5, at - 5))
	else if ((n, set) in ratios) {
		gsub(/ /, " Ta ", ratios[n, set])
		$0 = ".It " ratios[n, set] substr($0, at)
	}
}

got != "" { print }
