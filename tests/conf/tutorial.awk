# SPDX-License-Identifier: BSD-3-Clause
# tutorial.awk - make a script for bash of the displays in gantry-tutorial(7)
#
#	awk -v steps=DIR -f tutorial.awk PAGE >SCRIPT
#
# A display is a file, if the comment `file NAME` is before it, or else a list of commands: lines that begin with "$ ", with those
# that continue them, and their output. The comment `repeat` is before a display whose commands wait for other processes. DIR
# receives each command (N.command), its output in the page (N.want), and for a command whose exit status the next one prints
# N.status. The script writes the output of a command to N.seen, and calls `judge N`. It repeats a command after the comment
# `repeat` until `repeated N` succeeds.
function put_step(  place)
{
	if (!step || !command)
		return
	place = steps "/" step
	printf "%s", command >(place ".command")
	printf "%s", want >(place ".want")
	close(place ".command")
	close(place ".want")
	if (repeat)
		print "begin=$SECONDS; while :; do"
	print "(exit $status)\n{\n" command "} >\"$steps/" step ".seen\" 2>&1"
	print "status=$?"
	if (repeat)
		print "repeated " step " && break; done"
	print "judge " step
	command = want = ""
}

function wrong(text)
{
	print "line " NR ": " text
	failed = 1
}

BEGIN { print "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\nstatus=0" }
/^\.Dl / { wrong("a command that is not in a display") }
/^\.\\" file / { file = $3; next }
/^\.\\" repeat$/ { next_repeats = 1; next }
/^\.Bd / { inside = 1; repeat = next_repeats; next_repeats = 0; next }
/^\.Ed/ {
	put_step()
	if (file) {
		close(steps "/" file)
		print "cat \"$steps/" file "\" >" file
	}
	file = inside = repeat = ""
	next
}
!inside || /^\./ { next }
{ gsub(/\\e/, "\\"); gsub(/\\&/, "") }
file { print >(steps "/" file); next }
/^\$ / && !continued {
	if ($0 == "$ echo $?" && step)
		printf "" >(steps "/" step ".status")
	put_step()
	step++
	sub(/^\$ /, "")
	command = $0 "\n"
	continued = /\\$/
	next
}
continued { command = command $0 "\n"; continued = /\\$/; next }
!command { wrong("output without a command"); next }
{ want = want $0 "\n" }
END { exit failed }
