# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# vhost-lib.sh - functions of tests that boot a guest whose disk is a volume; the roles run outside of the guest. A script sets
# `build`, sources this file, writes the configuration $dir/vm.conf, and then: begin, seen, restart, verdict, done_testing.
gantry=$build/core/gantry
dir=$(mktemp -d) || exit 1
chmod 700 "$dir"
declare -A pids=()
n=0 failed=0

end_all()
{
	[ "${#pids[@]}" -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
	rm -rf "$dir"
}
trap end_all EXIT

verdict() # STATUS WHAT
{
	n=$((n + 1))
	[ "$1" -eq 0 ] && echo "ok $n - $2" && return
	failed=$((failed + 1))
	echo "not ok $n - $2"
	tail -n 30 "$dir"/*.log "$dir/vm/output" "$dir/vm/qemu" 2>/dev/null | sed 's/^/# /'
}

done_testing()
{
	echo "1..$n"
	exit $((failed != 0))
}

begin() # NAME [ARGUMENT...]
{
	: >"$dir/$1.log" # here, not in the new process: `seen` must not find a line of the former one
	"$gantry" run -p "$build/plugins/.libs" "$dir/vm.conf" --role "$1" --json "${@:2}" >"$dir/$1.json" 2>>"$dir/$1.log" &
	pids[$1]=$!
}

# seen FILE PATTERN [SECONDS] - wait until the file has a line that matches
seen()
{
	timeout "${3:-60}" tail -n +1 -s 0.05 -F "$1" 2>/dev/null | grep -a -m1 -E -q -- "$2"
}

restart() # NAME [SIGNAL [ARGUMENT...]]
{
	kill -"${2:-KILL}" "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	begin "$1" "${@:3}"
}

# configure LEG [OPTIONS [STAGE]] - write the configuration: both devices with the settings LEG, the role vhost-user-blk with
# OPTIONS, and the target with STAGE
configure()
{
	cat >"$dir/vm.conf" <<-END
		runtime = { log = "info"; stat_dir = "$dir/stat"; };
		devices = { front = { $1 }; back = { $1 }; };
		roles = {
			store = { role = "target"; listen = { device = "back"; name = "store"; };
			          backend = { type = "file"; path = "$dir/volume"; direct = false; lock_wait = "30s"; };
			          stages = ( ${3:-} ); };
			bridge = { role = "gateway"; listen = { device = "front"; name = "volume"; };
			           connect = { device = "back"; name = "store"; }; };
			disk = { role = "vhost-user-blk"; connect = { device = "front"; name = "volume"; resume = "1m"; };
			         socket = "$dir/disk.sock"; ${2:-} };
		};
	END
}

shm_leg()
{
	echo "transport = \"shm-comch\"; dir = \"$dir/run\";"
}

tcp_leg() # on an address of loopback that belongs to this process
{
	local address=127.$(($$ >> 16)).$(($$ >> 8 & 255)).$(($$ & 255))
	echo "transport = \"tcp\"; auth = \"none\"; services = { store = \"$address:4791\"; volume = \"$address:4792\"; };"
}

begin_roles()
{
	begin store
	begin bridge
	begin disk
	seen "$dir/disk.log" ' listening \(socket'
	verdict $? "the roles start"
}

# progress WHAT - wait until the guest has written another line: the role serves requests, and does not end while the machine still
# sets up the connection
progress()
{
	local before
	before=$(wc -l <"$dir/vm/output")
	for _ in $(seq 2400); do
		[ "$(wc -l <"$dir/vm/output")" -le "$before" ] || break
		read -rt 0.05 <><(:) || :
	done
	[ "$(wc -l <"$dir/vm/output")" -gt "$before" ]
	verdict $? "the guest continues after $1"
}

device_options="" # further options of the device of QEMU, each with a comma at its end

# boot SECONDS SCRIPT [ARGUMENT...] - run the script in a virtual machine with the disk of the role
boot()
{
	rm -rf "$dir/vm" # `seen` must not find a line of the former machine
	VM_QEMU=$("$gantry" vm -p "$build/plugins/.libs" "$dir/vm.conf" 1GiB --role disk | tr '\n' ' ')
	export VM_QEMU=${VM_QEMU/-device vhost-user-blk-pci,/-device vhost-user-blk-pci,$device_options}
	bash "$here/run.sh" -b "$build" -o "$dir/vm" -t "$@" >>"$dir/guest.log" 2>&1 &
	pids[vm]=$!
}

end_disk() # the role ends in order; print its counters
{
	kill -TERM "${pids[disk]}"
	wait "${pids[disk]}"
	verdict $? "the role ends"
	unset 'pids[disk]'
	grep -o '"guest_[a-z_]*":[ 0-9]*' "$dir/disk.json" | sed 's/^/# /'
}

clean_file_system()
{
	e2fsck -fn "$dir/volume" >"$dir/fsck.log" 2>&1
	verdict $? "the file system in the volume is clean"
}
