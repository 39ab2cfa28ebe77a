# SPDX-License-Identifier: BSD-3-Clause
# chrome.jq - rules of the trace format of Chrome and Perfetto; each filter yields true or false for a whole trace

# each event has the fields of its phase
def has_fields: .traceEvents | length > 0 and all(
	(.name | type == "string") and (.pid | type == "number") and (.tid | type == "number") and
	(if .ph == "M" then (.args.name | type == "string") else (.ts | type == "number") and (.cat | type == "string") end) and
	(if .ph | IN("b", "e", "s", "f") then (.id | type == "string") else true end) and
	(.ph | IN("M", "b", "e", "i", "s", "f")));

# each track has a name
def has_names: .traceEvents | [.[] | select(.ph != "M") | .tid] - [.[] | select(.name == "thread_name") | .tid] == [];

# each slice that ends has begun, not later
def has_begins: .traceEvents | INDEX(.[] | select(.ph == "b"); .id) as $begun |
	[.[] | select(.ph == "e")] | length > 0 and all($begun[.id] != null and $begun[.id].ts <= .ts);

# times do not decrease
def is_sorted: [.traceEvents[] | select(.ph != "M") | .ts] | . == sort;
