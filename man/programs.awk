# SPDX-License-Identifier: BSD-3-Clause
# programs.awk LIST PAGE - print a manual page with its table of programs made anew from the list of programs, which
# tests/doca/programs.list describes. The table stands between the lines `.\" programs` and `.\" end`.
# A program has a line for each side on which a case runs it; the first case decides.
FNR == NR && $1 == "case" { order = 0 }
FNR == NR && $1 == "start" {
	order++
	side = $3 ~ /^@/ ? "both" : $3
	device = rep = ""
	for (i = 5; i < NF; i++) {
		word = $(i + 1)
		if ($i == "-r" && word ~ /^[0-9a-f]+:/) rep = ", " word
		else if (device == "" && ($i == "-p" || $i == "-d") && word ~ /^([0-9a-f]+:|@)/) device = word
	}
	if (device == "") device = "the first"
	if (device == "@pci") device = "its PCI address"
	if (device ~ /^@.*ib$/) device = "its RDMA device"
	if (!(($4, side) in row) && !(($4, "both") in row)) {
		row[$4, side]
		lines[++n] = sprintf(".It %s Ta %s Ta %d Ta %s%s\n", $4, side, order, device, rep)
	}
}
FNR == NR { next }
/^\.\\" programs$/ {
	print
	print ".Bl -column \"storage_comch_to_rdma_gga_offload\" \"side\" \"order\" \"03:00.0, b1:00.0\""
	print ".It Em program Ta Em side Ta Em order Ta Em device, representor"
	for (i = 1; i <= n; i++) printf "%s", lines[i]
	print ".El"
	inside = 1
	next
}
/^\.\\" end$/ { inside = 0 }
!inside
