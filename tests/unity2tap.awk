# SPDX-License-Identifier: BSD-3-Clause
# unity2tap.awk - converts lines of Unity (file:line:test:PASS|FAIL|IGNORE[: text]) to TAP
# The last line of the input is "exit status N", from run-unity.sh.
match($0, /^[^ :]+:[0-9]+:[^ :]+:(PASS|FAIL|IGNORE)/) {
	split($0, f, ":")
	text = substr($0, RLENGTH + 1)
	sub(/^: */, "", text)
	n++
	if (f[4] == "PASS")
		print "ok " n " - " f[3]
	else if (f[4] == "IGNORE")
		print "ok " n " - " f[3] " # SKIP " text
	else {
		bad++
		print "not ok " n " - " f[3]
		print "# " f[1] ":" f[2] ": " text
	}
	next
}
/^[0-9]+ Tests [0-9]+ Failures [0-9]+ Ignored/ {
	complete = 1
	next
}
/^exit status [0-9]+$/ {
	status = $3
	next
}
/^(OK|FAIL|-+)?$/ { next }
{ print "# " $0 }
END {
	if (status == 77 && n == 0) {
		print "1..0 # SKIP the program cannot run on this machine"
		exit
	}
	if (!complete)
		print "not ok " ++n " - ran to its end (exit status " status ")"
	else if (status != 0 && !bad)
		print "not ok " ++n " - exit status " status
	print "1.." n
}
