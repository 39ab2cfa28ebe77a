# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# clients.sh - third-party programs on a gantry volume in the memory of another process, compared with their alternatives. Sourced
# by bench.sh (bash). fio runs on the first CPU, its server on the second, and a target behind nbdkit on the third. With only two
# CPUs, that target shares the CPU of fio while fio does one IO at a time and mostly waits; otherwise it shares the CPU of nbdkit.
# If a peer is not installed, its lines are omitted.
#
# Needs: build, tmp, cpu0, cpu1, cpu2, io_time, gantry.

engine=$build/clients/.libs/gantry-fio.so
plugin=$build/clients/.libs/nbdkit-gantry-plugin.so
export GANTRY_PLUGIN_PATH=$build/plugins/.libs

# options of the job; callers add depth and engine
fio_job="taskset -c $cpu0 fio --name=load --thread --rw=randread --bs=4k --norandommap --size=256m --time_based
	--runtime=$io_time --ramp_time=50ms --output-format=terse --terse-version=3 --output=$tmp/fio"

# reads - print thousands of reads and writes per second, from the report of fio
reads()
{
	awk -F';' '/^3;/ { printf "%.5g\n", ($8 + $49) / 1000; found = 1 } END { exit !found }' "$tmp/fio"
}

# beside CONF CPU COMMAND... - run the command while the target of CONF runs
beside()
{
	local server rc conf=$tmp/$1.conf cpu=$2
	shift 2
	"${gantry[@]}" "$conf" --role store --set "runtime.cpus=$cpu" --set roles.store.listen.sessions=0 \
		>/dev/null 2>>"$tmp/errors" &
	server=$!
	"$@"
	rc=$?
	kill -TERM "$server" 2>/dev/null
	wait "$server" || rc=1
	return $rc
}

# over_nbd DEPTH PLUGIN ARGUMENT... - run fio with its NBD engine on nbdkit with that plugin and a Unix socket
over_nbd()
{
	local job
	job="$(echo $fio_job) --iodepth=$1 --ioengine=nbd"
	shift
	taskset -c "$cpu1" nbdkit -U - "$@" --run "$job --uri=\"\$uri\"" >/dev/null 2>>"$tmp/errors" && reads
}

# over_gantry DEPTH CONF - run fio with the engine of gantry
over_gantry()
{
	# shellcheck disable=SC2086 # words
	$fio_job --iodepth="$1" --ioengine="external:$engine" --config="$2" --volume=load >/dev/null 2>>"$tmp/errors" && reads
}

fio_1() { beside two "$cpu1" over_gantry 1 "$tmp/two.conf"; }
fio_32() { beside two "$cpu1" over_gantry 32 "$tmp/two.conf"; }
nbd_1() { over_nbd 1 memory 256M; }
nbd_32() { over_nbd 32 memory 256M; }
nbd_gantry_1() { beside two "${cpu2:-$cpu0}" over_nbd 1 "$plugin" config="$tmp/two.conf" volume=load; }
nbd_gantry_32() { beside two "${cpu2:-$cpu1}" over_nbd 32 "$plugin" config="$tmp/two.conf" volume=load; }

# the same with the target inside nbdkit, like the memory plugin of nbdkit
nbd_inside_1() { over_nbd 1 "$plugin" config="$tmp/one.conf" volume=load; }
nbd_inside_32() { over_nbd 32 "$plugin" config="$tmp/one.conf" volume=load; }

# without WHAT - print once that WHAT is missing, and the lines that need it are omitted
without()
{
	echo "omitted, because it is missing: $1" >&2
}

# clients_list - lines of the available programs, in the format of bench.sh
clients_list()
{
	local nbd=true
	command -v fio >/dev/null || { without fio; return; }
	command -v nbdkit >/dev/null || { without nbdkit; nbd=false; }
	fio --enghelp=nbd >/dev/null 2>&1 || { without "fio's engine nbd"; nbd=false; }
	if [ ! -e "$engine" ]; then
		without "the engine for fio (configure --with-fio=DIR)"
	else
		! $nbd || cat <<-'END'
		fio_1|fio, depth 1, ours to its NBD engine|kIO/s|nbd_1|fio_1|ratio|>5
		fio_32|fio, depth 32, ours to its NBD engine|kIO/s|nbd_32|fio_32|ratio|>5
		END
		cat <<-'END'
		fio_own_1|fio, depth 1, to gantry without fio|kIO/s|ours_1|fio_1|ratio|>0.8
		fio_own_32|fio, depth 32, to gantry without fio|kIO/s|ours_32|fio_32|ratio|>0.8
		END
	fi
	if [ ! -e "$plugin" ]; then
		without "the plugin for nbdkit"
	elif $nbd; then
		cat <<-'END'
		nbd_1|nbdkit, depth 1, ours to its memory|kIO/s|nbd_1|nbd_gantry_1|ratio|>0.9
		nbd_32|nbdkit, depth 32, ours to its memory|kIO/s|nbd_32|nbd_gantry_32|ratio|>0.9
		nbd_in_1|nbdkit, depth 1, ours inside it to its memory|kIO/s|nbd_1|nbd_inside_1|ratio|>0.9
		nbd_in_32|nbdkit, depth 32, ours inside it to its memory|kIO/s|nbd_32|nbd_inside_32|ratio|>0.9
		END
	fi
}
