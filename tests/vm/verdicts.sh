#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# verdicts.sh - checks that failures in the virtual machine are reported: run.sh and all.sh get fake machines and scripts with known
# outcomes. Boots no machine.
set -u
vm=$top_srcdir/tests/vm
. "$top_srcdir/tests/tap.sh"

# A fake machine that follows a plan: lines `CONSOLE|STATUS|SECONDS`, one for each boot.
cat >"$tmp/qemu" <<'END'
#!/bin/bash
IFS='|' read -r console status wait < <(head -n 1 "$0.boots")
sed -i 1d "$0.boots"
for word; do
	case $word in
	file:*) echo "$console" >"${word#file:}" ;;
	file,id=output,path=*) echo "output: $status" >"${word#*path=}" ;;
	file,id=status,path=*) [ -z "$status" ] || echo "$status" >"${word#*path=}" ;;
	esac
done
[ -z "$wait" ] || exec tail --pid=$$ -f /dev/null
END
chmod +x "$tmp/qemu"
mkdir -p "$tmp/image/lib/modules/x"
: >"$tmp/script.sh"

# machine BOOT... - sets out and rc
machine()
{
	printf '%s\n' "$@" >"$tmp/qemu.boots"
	out=$(QEMU=$tmp/qemu VM_INITRD=$tmp/image/initrd bash "$vm/run.sh" -b "$top_builddir" -o "$tmp/out" -t 2 \
		"$tmp/script.sh" 2>"$tmp/err")
	rc=$?
}

# boots WHAT EXPECTED BOOT... - EXPECTED: exit status, unused boots, and output
boots()
{
	local what=$1 expected=$2
	shift 2
	machine "$@"
	is "$what" "$expected" "$rc, $(wc -l <"$tmp/qemu.boots") left: $out"
}

# A directory of scripts with the layout of tests/vm.
mkdir "$tmp/scripts"
cp "$vm/all.sh" "$tmp/scripts"

# script NAME LINE... - write a script with these lines
script()
{
	printf '%s\n' "${@:2}" >"$tmp/scripts/$1.sh"
}

# failed - print the lines of all.sh for failed tests
failed()
{
	all 20
	grep not <<<"$out"
}

# all [PATTERN]
all()
{
	out=$(VM_OUT=$tmp VM_SCRIPT_LIMIT=1 bash "$tmp/scripts/all.sh" "$@" 2>&1)
	rc=$?
}

good='|status 0 taint 0|'
boots "a good end" "0, 1 left: output: status 0 taint 0" "$good" "$good"
boots "the status of the script is ours" "7, 1 left: output: status 7 taint 0" "|status 7 taint 0|" "$good"
boots "trouble in the kernel once: the second run counts" "0, 1 left: output: status 0 taint 0" \
	"[ 3.1] WARNING: CPU: 0 PID: 7|status 1 taint 512|" "$good" "$good"
boots "trouble twice: inconclusive, even where the tests pass" "99, 1 left: output: status 0 taint 0" \
	"BUG: soft lockup - CPU#1 stuck|status 0 taint 0|" "Kernel panic - not syncing|status 0 taint 0|" "$good"
boots "a tainted kernel is trouble too" "0, 0 left: output: status 0 taint 0" "|status 1 taint 128|" "$good"
boots "a machine that ends without a word is inconclusive" "99, 0 left: output: " "||" "||"
boots "no end within the time is a failure, at once" "124, 1 left: output: " "||wait" "$good"
is "and says so" yes "$(grep -q 'no end after 2 s' "$tmp/err" && echo yes)"

script environment 'echo "ok 1 - devices"; echo 1..1'
script 10-good 'echo "ok 1 - a # SKIP b"; echo "ok 2 - b"; echo 1..2'
script 20-bad 'echo "ok 1 - a"; echo "not ok 2 - b"; echo 1..2; exit 1'
all
is "one stream, with numbers of its own" "ok 1 - environment: devices
ok 2 - 10-good: a # SKIP b
ok 3 - 10-good: b
ok 4 - 20-bad: a
not ok 5 - 20-bad: b
1..5, 1" "$out, $rc"
all 10
is "a pattern chooses" "1..3, 0" "$(tail -n 1 <<<"$out"), $rc"
script 20-bad 'echo "ok 1 - a"; kill -KILL $$'
is "a script that dies is a failure" \
	"not ok 3 - 20-bad: ran to its end (exit status 137, no tests planned, 1 seen)" "$(failed)"
script 20-bad 'echo "ok 1 - a"; echo 1..2'
is "a test that is missing is a failure" \
	"not ok 3 - 20-bad: ran to its end (exit status 0, 2 tests planned, 1 seen)" "$(failed)"
script 20-bad 'echo "ok 1 - a"; echo 1..1; exit 3'
is "an exit status is a failure" \
	"not ok 3 - 20-bad: exit status 3" "$(failed)"
script 20-bad 'tail -f /dev/null'
is "a script without an end is a failure" \
	"not ok 2 - 20-bad: ran to its end (exit status 124, no tests planned, 0 seen)" "$(failed)"
script environment 'echo "not ok 1 - devices"; echo 1..1; exit 1'
all 10
is "nothing runs in a broken environment" "not ok 1 - environment: devices
ok 2 - 10-good # SKIP the environment is broken
1..2, 1" "$out, $rc"
done_testing
