# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# nbd.sh - a volume behind nbdkit, for the tests of its plugin; sourced after walk/lib.sh. The initiator `load` of the
# topology names the volume; the roles of other processes run as in walk/lib.sh.

nbd_setup() {
	plugin=$top_builddir/clients/.libs/nbdkit-gantry-plugin.so
	[ -e "$plugin" ] || skip "nbdkit's plugin is not built"
	tool nbdkit nbdkit
	export GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
	nbd_options=()
	# The sanitizer would have to be preloaded into nbdkit, which then hangs after it has printed an error, with any plugin:
	# with gcc's libasan, `nbdkit file /none` waits in exit() for glibc's locale lock.
	! ldd "$plugin" | grep -q 'lib[at]san' || skip "a sanitizer is in the plugin and not in nbdkit"
	# clang's sanitizer has no library that could be preloaded
	! nm -D "$plugin" | grep -q '__[at]san_init' || skip "a sanitizer is in the plugin and not in nbdkit"
}

tool() { # PROGRAM PACKAGE
	command -v "$1" >/dev/null || skip "$1 is not installed (Debian: $2)"
}

# Start nbdkit as pids[NAME], with NAME.sock and NAME.log; set uri. Without PARAMETER: the volume of `load`.
nbd_begin() { # NAME [PARAMETER...]
	local name=$1
	shift
	[ $# -gt 0 ] || set -- config="$conf" volume=load
	rm -f "$dir/$name.pid" "$dir/$name.sock"
	nbdkit -f -U "$dir/$name.sock" -P "$dir/$name.pid" "${nbd_options[@]}" "$plugin" "$@" \
		>>"$dir/$name.log" 2>&1 3>&- &
	pids[$name]=$!
	uri="nbd+unix:///?socket=$dir/$name.sock"
}

nbd_serve() { # NAME [PARAMETER...] - the same, and wait until it listens
	nbd_begin "$@"
	until_true nbd_up "$1" && [ -s "$dir/$1.pid" ] || { cat "$dir"/*.log; return 1; }
}

nbd_up() { # NAME - whether it listens or has ended
	[ -s "$dir/$1.pid" ] || ! kill -0 "${pids[$1]}" 2>/dev/null
}

nbd_all() { # [PARAMETER...] - start target, gateway and nbdkit
	topology
	serve_all
	nbd_serve nbd "$@"
}

nbd_stop() { # [NAME...] - end nbdkit, gateway and target by SIGTERM; each must exit with status 0
	stop "$@" bridge store
	rm "$dir"/*.sock # nbdkit does not remove its socket
	nothing_left
}

calls() { # CALL... - run nbdcalls, and set $output
	[ -x "$top_builddir/tests/clients/nbdcalls" ] || skip "nbdcalls is not built (Debian: libnbd-dev)"
	output=$(timeout "$seconds" "$top_builddir/tests/clients/nbdcalls" "$uri" "$@") || { cat "$dir"/*.log; return 1; }
}

answered() { # LINE... - the output has exactly these lines
	diff <(printf '%s\n' "$@") <(echo "$output")
}

fio_begin() { # ARGUMENT... - start fio as pids[fio]; its output goes to fio.log
	tool fio fio
	fio --name=nbd --ioengine=nbd --uri="$uri" --verify_state_save=0 --rw=randwrite --bs=4k --iodepth=32 --size=8m "$@" \
		>"$dir/fio.log" 2>&1 3>&- &
	pids[fio]=$!
}

fio_nbd() { # ARGUMENT... - run fio, and set status
	fio_begin "$@"
	finish fio
}

# -- examples of the manual --

# prints the lines after `.\" WHAT` in nbdkit-gantry-plugin(1), without roff escapes
shown() { # WHAT
	awk -v what="$1" '
		/^\.\\" / { on = $2 " " $3 == what; found += on }
		/^\.Ed/ { on = 0 }
		on && !/^\./ { sub(/^[$#] /, ""); gsub(/\\e/, "\\"); print }
		END { exit !found }' "$top_srcdir/man/nbdkit-gantry-plugin.1"
}

# Makes the configuration of the manual $conf, and its commands executable as if gantry were installed.
manual_setup() {
	conf=$dir/volume.conf
	shown "check file" >"$conf"
	export dir plugin
	# the pids of the processes that it starts are recorded
	gantry() {
		echo "$BASHPID" >>"$dir/started"
		exec "$GANTRY" "$@" >>"$dir/gantry.log" 2>&1
	}
	nbdkit() {
		command nbdkit "${@/%gantry/$plugin}"
	}
	export -f gantry nbdkit
}

manual() { # NAME - run the commands of that example in $dir, up to the first that fails
	shown "run $1" >"$dir/$1.sh" || { echo "the manual has no example $1"; return 1; }
	(cd "$dir" && timeout "$seconds" bash -ex "./$1.sh") 3>&- || { cat "$dir/gantry.log"; return 1; }
}

manual_teardown() {
	local pid
	for pid in $(cat "$dir/started" "$dir/disk0.pid" 2>/dev/null); do
		kill -KILL "$pid" 2>/dev/null || true
	done
}
