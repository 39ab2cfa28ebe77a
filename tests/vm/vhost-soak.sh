#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vhost-soak.sh [--tcp] [--lose] [--seconds N] [BUILD] - the checker of the soak test uses the disk of a virtual machine, for N
# seconds (60), while gateway, target and vhost-user-blk are killed in random order. No acknowledged write may be lost.
# --tcp: both legs are TCP on loopback. --lose: the target acknowledges one of 3000 writes without doing it. The checker must report
# that.
#
# SEED=N repeats the order of the kills. Prints TAP. Without options a run takes about 2 minutes.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../.." && pwd)
leg=shm_leg stage='' time=60 begin_options=()
while [ $# -gt 0 ]; do
	case $1 in
	--tcp) leg=tcp_leg ;;
	--lose) stage='{ type = "liar"; lie = "lose"; nth = 3000; }' ;;
	--seconds) time=$2; shift ;;
	*) break ;;
	esac
	shift
done
build=$(realpath -e "${1:-$top/build/gcc}") || exit 2
. "$here/vhost-lib.sh"
[ -x "$build/tests/soak/disk" ] || { echo "1..0 # SKIP tests/soak/disk is not built"; exit 0; }
if [ -n "$stage" ]; then
	[ -e "$build/tests/.libs/liar.so" ] || { echo "1..0 # SKIP built without the test plugin liar"; exit 0; }
	begin_options=(-p "$build/tests/.libs")
fi
RANDOM=${SEED:=$((RANDOM))}
echo "# SEED=$SEED"
truncate -s 64M "$dir/volume"
configure "$($leg)" 'serial = "gantry-vm"; lanes = 2;' "$stage"
begin store "${begin_options[@]}"
begin bridge "${begin_options[@]}"
begin disk "${begin_options[@]}"
seen "$dir/disk.log" ' listening \(socket'
verdict $? "the roles start"
export VM_SECONDS=$time VM_SEED=$SEED
boot $((time + 240)) "$here/vhost-soak-guest.sh"
seen "$dir/vm/output" '^[1-9][0-9]* writes|^checker ends' 240
verdict $? "the machine boots, and the checker writes"

# kill a process, start it again, and wait until the session of the role runs
kill_one()
{
	local name=$1 pattern='session resumed'
	[ "$name" != disk ] || pattern=' front end connected'
	: >"$dir/disk.log"
	restart "$name" "$2" "${begin_options[@]}"
	seen "$dir/disk.log" "$pattern" || { kill -0 "${pids[vm]}" 2>/dev/null && return 1; }
	return 0
}

kills=0 stuck=0
while kill -0 "${pids[vm]}" 2>/dev/null && ! grep -a -q '^checker ends' "$dir/vm/output"; do
	read -rt "0.$((RANDOM % 900 + 100))" <><(:) || :
	read -rt "$((RANDOM % 2))" <><(:) || :
	names=(bridge store disk disk) signals=(KILL KILL KILL TERM) at=$((RANDOM % 4))
	! grep -a -q '^checker ends' "$dir/vm/output" || break
	kill_one "${names[at]}" "${signals[at]}" || { stuck=1; break; }
	kills=$((kills + 1))
done
verdict "$stuck" "after each kill the session of the role runs again"
wait "${pids[vm]}"
status=$?
unset 'pids[vm]'
sed 's/^/# /' "$dir/guest.log" | tail -n 8
echo "# $kills kills"
if [ -n "$stage" ]; then
	grep -a -q '^stale: ' "$dir/guest.log"
	verdict $? "the checker finds the write that is acknowledged and not done"
else
	verdict "$status" "no acknowledged write is lost"
	[ "$kills" -ge $((time / 6)) ]
	verdict $? "processes were killed while the checker ran"
fi
end_disk
done_testing
