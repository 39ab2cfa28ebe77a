# SPDX-License-Identifier: BSD-3-Clause
# json.awk - lines of judge.awk to JSON. Variables: quick (true or false), version, cpus.
function text(s)
{
	gsub(/["\\]/, "\\\\&", s)
	return "\"" s "\""
}

BEGIN {
	FS = "|"
	printf "{\n  \"schema\": 1,\n  \"version\": %s,\n  \"quick\": %s,\n  \"cpus\": %s,\n", text(version), quick, text(cpus)
	printf "  \"measures\": ["
}

{
	printf "%s\n    {\"name\": %s, \"text\": %s, \"unit\": %s, ", (NR > 1 ? "," : ""), text($1), text($2), text($3)
	printf "\"limit\": %s, \"min\": %s, \"median\": %s, \"max\": %s, ", $4, $5, $6, $7
	printf "\"score\": %s, \"goal\": %s, \"verdict\": %s, ", $8, text($9), text($10)
	printf "\"pairs\": %d, \"dropped\": %d}", $11, $12 - $11
}

END {
	print "\n  ]\n}"
}
