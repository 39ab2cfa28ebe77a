# SPDX-License-Identifier: BSD-3-Clause
# json.awk - lines of judge.awk to JSON. Variables: quick (true or false), version, cpus, absent (missing peers).
function text(s)
{
	gsub(/["\\]/, "\\\\&", s)
	return "\"" s "\""
}

# NAME=VALUE ... to members of an object
function members(s,  i, n, word, part, out)
{
	n = split(s, word, " ")
	for (i = 1; i <= n; i++) {
		split(word[i], part, "=")
		out = out (i > 1 ? ", " : "") text(part[1]) ": " part[2]
	}
	return out
}

function strings(s,  i, n, word, out)
{
	n = split(s, word, ";")
	for (i = 1; i <= n; i++)
		out = out (i > 1 ? ", " : "") text(word[i])
	return out
}

BEGIN {
	FS = "|"
	printf "{\n  \"schema\": 3,\n  \"version\": %s,\n  \"quick\": %s,\n  \"cpus\": %s,\n", text(version), quick, text(cpus)
	printf "  \"absent\": [%s],\n  \"measures\": [", strings(absent)
}

{
	printf "%s\n    {\"name\": %s, \"text\": %s, \"unit\": %s, ", (NR > 1 ? "," : ""), text($1), text($2), text($3)
	printf "\"limit\": %s, \"min\": %s, \"median\": %s, \"max\": %s, ", $4, $5, $6, $7
	printf "\"score\": %s, \"goal\": %s, \"verdict\": %s, ", $8, text($9), text($10)
	printf "\"peers\": {%s}, \"best_peer\": %s, \"to_best_peer\": %s, \"peer_goal\": %s, ", members($13), text($14), $15,
		text($16)
	printf "\"rounds\": %d, \"regime\": %s, \"dropped\": {%s}}", $11, text($17), members($18)
}

END {
	print "\n  ]\n}"
}
