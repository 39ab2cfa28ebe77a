#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# trace.bats - gantry trace prints, sums up and converts the recordings of a run

setup_file() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	need loop initiator gateway target memory trace fault
	cd "$BATS_FILE_TMPDIR" || return
	cat >conf <<-END
		runtime = { stat = false; };
		devices = { near = { transport = "loop"; }; far = { transport = "loop"; }; };
		roles = {
			store = { role = "target"; listen = { device = "far"; name = "store"; };
			          stages = ( { type = "trace"; path = "store.trace"; },
			                     { type = "fault"; error_nth = 50; error = "nospc"; } );
			          backend = { type = "memory"; size = "16MiB"; }; };
			bridge = { role = "gateway"; listen = { device = "near"; name = "volume"; };
			           connect = { device = "far"; name = "store"; };
			           stages = ( { type = "trace"; path = "bridge.trace"; } ); };
			load = { role = "initiator"; continue_on_error = true; connect = { device = "near"; name = "volume"; };
			         stages = ( { type = "trace"; path = "load.trace"; } );
			         workload = { pattern = "randrw"; depth = 8; time = "0"; ops = 600; flush_every = 16; }; };
		};
	END
	"$GANTRY" run --json conf -p "$GANTRY_PLUGINS" >report
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

# trace ARGUMENT... - set status, output and messages (standard error)
trace() {
	status=0
	"$GANTRY" trace "$@" >out 2>err || status=$?
	output=$(<out) messages=$(<err)
}

# reported KEY - a number of the report of the initiator
reported() {
	jq ".roles.load.$1" report
}

# count PATTERN - the lines of the output that match
count() {
	grep -cE -- "$1" <<<"$output" || :
}

# says TEXT - the command failed with this text in one line
says() {
	echo "$messages"
	[ "$(wc -l <<<"$messages")" -eq 1 ]
	[[ "$messages" == *"$1"* ]]
}

@test "text has a line for each record" {
	trace load.trace
	[ "$status" -eq 0 ]
	[ -z "$messages" ]
	[ "$(count ' submit +')" -eq "$(reported submitted)" ]
	[ "$(count ' complete ')" -eq "$(reported completed)" ]
	[ "$(count ' complete .* OK +[0-9.]+(ns|us|ms|s)$')" -eq "$(reported total.ops)" ]
	[ "$(count ' complete .* NOSPC ')" -eq "$(reported errors.NOSPC)" ]
	[ "$(count ' load .* complete +flush ')" -eq "$(reported flushes.ops)" ]
	[ "$(count '^ +[0-9]+\.[0-9]{9} load ')" -eq "$(reported stages[0].written_records)" ]
}

@test "JSON has an object for each record" {
	"$GANTRY" trace --json load.trace >lines
	completed='select(.status == "OK" and .operation == $op)'
	"$GANTRY" trace --format json load.trace | cmp - lines
	[ "$(jq -s '[.[] | select(.record == "submit")] | length' lines)" -eq "$(reported submitted)" ]
	for op in read write flush; do
		key=${op/flush/flushe}s
		[ "$(jq --arg op $op -s "[.[] | $completed] | length" lines)" -eq "$(reported "$key.ops")" ]
	done
	[ "$(jq --arg op read -s "[.[] | $completed | .length] | add" lines)" -eq "$(reported reads.bytes)" ]
	jq -se '[.[] | select(.record == "complete")] | all(.latency_ns >= 0 and .hop_ns.gateway >= 0)' lines
	jq -se '[.[].time_ns] | . == sort' lines
}

@test "summary has the operations of the workload" {
	"$GANTRY" trace --summary --json load.trace >sums
	for op in read write flush; do
		key=${op/flush/flushe}s
		jq -e --argjson ops "$(reported "$key.ops")" --argjson bytes "$(reported "$key.bytes")" ".roles[0].operations.$op |
			.completed - .errors == \$ops and .bytes == \$bytes and .submitted == .completed" sums
		jq -e ".roles[0].operations.$op | .latency_ns | .p50 <= .p90 and .p90 <= .p99 and .p99 <= .max" sums
	done
	jq -e '.roles[0] | .role == "load" and ([.operations[].errors] | add) == '"$(reported errors.NOSPC)" sums
	jq -e '.roles[0].operations.read | .depth.max >= 1 and .depth.mean >= 1 and .sequential >= 0 and .sequential <= 1' sums
	trace --summary load.trace gate=bridge.trace
	[ "$(count '^(load|gate): .* records in ')" -eq 2 ]
	[ "$(count '^  (read|write|flush) ')" -eq 6 ]
}

@test "filters select records" {
	trace --operation flush load.trace
	[ "$(count ' (submit|complete) ')" -eq $((2 * $(reported flushes.ops))) ]
	trace --status nospc store.trace
	[ "$(count ' (submit|complete) ')" -eq "$(reported errors.NOSPC)" ]
	trace --status error --operation read,write --lane 0 --offset 0-16MiB --time 0ns-1h --min-latency 1ns store.trace
	[ "$(count ' complete ')" -eq "$(reported errors.NOSPC)" ]
	trace --lane 1 load.trace
	[ "$(count ' (submit|complete) ')" -eq 0 ]
	trace --min-latency 1h load.trace
	[ "$(count ' (submit|complete) ')" -eq 0 ]
	trace --offset 16MiB- load.trace
	[ "$(count ' (submit|complete) ')" -eq 0 ]
}

@test "fio replays the iolog" {
	trace --format fio load.trace
	[ "$status" -eq 0 ]
	[ "$(head -n 3 <<<"$output" | cut -d' ' -f2-)" = "$(printf '%s\n' "version 3 iolog" "load add" "load open")" ]
	[ "$(count '^[0-9]+ load (read|write|sync) [0-9]+ [0-9]+$')" -eq "$(reported submitted)" ]
	[ "$(count '^[0-9]+ load close$')" -eq 1 ]
	command -v fio >/dev/null || skip "fio is not installed"
	fio --version | awk -F'[-.]' '{ exit !($2 > 3 || ($2 == 3 && $3 >= 31)) }' || skip "this fio knows no iolog of version 3"
	echo "$output" >iolog
	submitted() { grep -cE "^[0-9]+ load $1 " iolog; }
	timeout 60 fio --name=replay --read_iolog=iolog --ioengine=null --replay_redirect=any --output-format=json >fio.json
	jq -e --argjson reads "$(submitted read)" --argjson writes "$(submitted write)" '.jobs[0] | .error == 0 and
		.read.total_ios == $reads and .write.total_ios == $writes' fio.json
}

@test "fio has no action for some operations" {
	"$top_builddir/tests/walk/maketrace" made.trace 1 0 0 4096 2 1 4096 4096 3 0 0 0 4 0 8192 4096 5 0 0 4096 6 0 0 4096
	trace --format fio made.trace
	[ "$status" -eq 0 ]
	[ "$(count ' (read|write|sync|trim) ')" -eq 4 ]
	[[ "$messages" == *"operation=write_zeroes, records=1"*"operation=extents, records=1"* ]]
}

@test "blkparse has a D and a C for each IO" {
	trace --format blkparse load.trace bridge.trace
	[ "$status" -eq 0 ]
	line='^  0,0    0 +[0-9]+ +[0-9]+\.[0-9]{9}     0 '
	n_flushes=$(reported flushes.ops)
	n_others=$(($(reported submitted) - n_flushes))
	[ "$(count "$line D   [RW] [0-9]+ \+ 8 \[load\]$")" -eq "$n_others" ]
	[ "$(count "$line C   [RW] [0-9]+ \+ 8 \[[0-9]+\]$")" -eq "$n_others" ]
	[ "$(count "$line D  FN \[load\]$")" -eq "$n_flushes" ]
	[ "$(count "$line C  .* \[28\]$")" -eq "$(reported errors.NOSPC)" ]
	[ "$(count '^  0,1 .* D .* \[bridge\]$')" -eq "$(reported submitted)" ]
}

@test "Chrome JSON has a track for each role and a slice for each hop" {
	"$GANTRY" trace --format chrome load.trace bridge.trace target=store.trace >chrome.json
	for rule in has_fields has_names has_begins is_sorted; do
		jq -L "$top_srcdir/tests" -e "include \"chrome\"; $rule" chrome.json
	done
	jq -e '[.traceEvents[] | select(.name == "thread_name") | .args.name] == ["load", "bridge", "target"]' chrome.json
	for pid in 1 2 3; do
		jq -e "[.traceEvents[] | select(.ph == \"b\" and .pid == $pid)] | length == $(reported submitted)" chrome.json
		jq -e "[.traceEvents[] | select(.ph == \"e\" and .pid == $pid)] | length == $(reported completed)" chrome.json
	done
	"$GANTRY" trace --format chrome --status error load.trace >errors.json
	jq -L "$top_srcdir/tests" -e 'include "chrome"; has_fields and has_names and has_begins' errors.json
	jq -e "[.traceEvents[] | select(.ph == \"b\")] | length == $(reported errors.NOSPC)" errors.json
}

@test "an invalid file gives one line" {
	trace nowhere
	[ "$status" -eq 2 ]
	says "gantry: nowhere: cannot open the file: No such file"
	trace conf
	[ "$status" -eq 1 ]
	says "gantry: conf: not a trace"
	trace /dev/null
	[ "$status" -eq 1 ]
	says "gantry: /dev/null: not a trace"
	trace .
	[ "$status" -eq 1 ]
	says "gantry: .: cannot read the file: Is a directory"
	{ head -c 8 load.trace; printf '\2'; tail -c +10 load.trace; } >other
	trace other
	[ "$status" -eq 1 ]
	says "gantry: other: trace of another version"
	{ head -c 280 load.trace; head -c 72 /dev/zero | tr '\0' '\7'; } >damaged
	trace damaged
	[ "$status" -eq 1 ]
	says "gantry: damaged: damaged record (time_ns="
	[ "$(count ' (submit|complete) ')" -eq 3 ]
	echo >>damaged # bytes after the damaged record are not named
	for option in --summary --format=text --format=json --format=fio --format=blkparse --format=chrome; do
		trace "$option" damaged
		[ "$status" -eq 1 ]
		says "gantry: damaged: damaged record (time_ns="
		[ "$(wc -l <<<"$output")" -ge 3 ] # what precedes it
	done
}

@test "a truncated file is printed as far as it goes" {
	head -c 700 load.trace >short
	for format in text json fio blkparse chrome; do
		trace --format $format short
		[ "$status" -eq 1 ]
		says "gantry: short: ends inside a record (bytes=60)"
	done
	trace short
	[ "$(count ' (submit|complete) ')" -eq 8 ]
	"$GANTRY" trace --format chrome short 2>/dev/null | jq -e '.traceEvents | length > 2'
}

@test "options that do not fit are refused" {
	trace --format xml load.trace
	[ "$status" -eq 2 ]
	says "--format: unknown (value=xml): give one of text|json|fio|blkparse|chrome"
	trace --summary --format fio load.trace
	[ "$status" -eq 2 ]
	says "--summary: not in this format (format=fio)"
	trace --json --format fio load.trace
	[ "$status" -eq 2 ]
	says "only one of --json and --format can be used"
	trace --format fio --status IO load.trace
	[ "$status" -eq 2 ]
	says "format fio has only submissions"
	trace --time 5 load.trace
	[ "$status" -eq 2 ]
	says "--time: invalid (value=5): give FROM-TO"
	trace
	[ "$status" -eq 2 ]
}

@test "names of roles" {
	cp load.trace a=b
	trace ./a=b
	[ "$(count ' load ')" -gt 0 ]
	trace 'x "y=load.trace'
	[ "$(count ' x__y ')" -gt 0 ]
	mapfile -t many < <(yes load.trace | head -n 65)
	trace "${many[@]}"
	[ "$status" -eq 2 ]
	says "too many files (limit 64)"
}

@test "output that cannot be written is an error" {
	[ -w /dev/full ] || skip "there is no /dev/full"
	run bash -c '"$GANTRY" trace load.trace >/dev/full'
	[ "$status" -eq 1 ]
	[[ "$output" == "gantry: cannot write the output"* ]]
}
