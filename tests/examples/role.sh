#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# role.sh - the example of a role counts the blocks of a volume that hold data, and reports a scan that is not complete
. "$(dirname "$0")/lib.sh"
need loop file target
example role scan.c scan.conf

# with TEXT - the configuration with stages of the role: one line of it
with()
{
	sed "s/role = \"scan\";/& stages = ( $1 );/" scan.conf >staged.conf && mv staged.conf scan.conf
}

# put OFFSET - a byte of data
put()
{
	printf x | dd of=volume.img bs=1 seek="$1" conv=notrunc 2>/dev/null
}

truncate -s 64MiB volume.img
is "it is built" build scan.c
is "gantry check accepts the configuration" gantry check scan.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS"
is "it reads an empty volume" run_json scan.c
is "there are 1024 blocks of 64 KiB" output_has '"zero_blocks": 1024'
put 0
put 65535
put 1000000
put 67108863
is "it reads a volume with data" run_json scan.c
is "three blocks hold data" output_has '"data_blocks": 3'
is "all others do not" output_has '"zero_blocks": 1021'
if [ -e "$GANTRY_PLUGINS/shm-comch.so" ]; then
	is "it reads over shared memory" run_json scan.c --set devices.wire.transport=shm-comch
	is "it counts the same blocks" output_has '"data_blocks": 3'
fi
is "without a target it fails" fails 1 run scan.c --role count --set roles.count.connect.timeout=10ms
is "the host logs the reason" output_has 'no listener'
if [ -e "$GANTRY_PLUGINS/fault.so" ]; then
	cp scan.conf plain.conf
	with '{ type = "fault"; error_nth = 100; }'
	is "it fails if a read fails" fails 1 run scan.c --json
	is "it does not count that block" output_has '"zero_blocks": [0-9]{1,3},'
	cp plain.conf scan.conf
	with '{ type = "fault"; delay_nth = 100; delay = "1h"; }'
	start scan.c --json --set runtime.stat_dir="$tmp/stat"
	is "a stage holds a read" appears '"delayed_ops": [1-9]' gantry stat --dir "$tmp/stat" --json
	is "it ends when a signal stops it" interrupted
fi
done_testing
