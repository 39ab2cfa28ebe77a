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
ok "it is built" build scan.c
ok "gantry check accepts the configuration" gantry check scan.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS"
ok "it reads an empty volume" run_json scan.c
ok "there are 1024 blocks of 64 KiB" output_has '"zero_blocks": 1024'
put 0
put 65535
put 1000000
put 67108863
ok "it reads a volume with data" run_json scan.c
ok "three blocks hold data" output_has '"data_blocks": 3'
ok "all others do not" output_has '"zero_blocks": 1021'
if [ -e "$GANTRY_PLUGINS/shm-comch.so" ]; then
	ok "it reads over shared memory" run_json scan.c --set devices.wire.transport=shm-comch
	ok "it counts the same blocks" output_has '"data_blocks": 3'
fi
ok "without a target it fails" fails 2 run scan.c --role count
ok "the host logs the reason" output_has 'no role that this process runs listens there'
if [ -e "$GANTRY_PLUGINS/fault.so" ]; then
	cp scan.conf plain.conf
	with '{ type = "fault"; error_nth = 100; }'
	ok "it fails if a read fails" fails 1 run scan.c --json
	ok "it does not count that block" output_has '"zero_blocks": [0-9]{1,3}(,|$)'
	cp plain.conf scan.conf
	with '{ type = "fault"; delay_nth = 100; delay = "1h"; }'
	start scan.c --json --set runtime.stat_dir="$tmp/stat"
	ok "a stage holds a read" appears '"delayed_ops": [1-9]' gantry stat --dir "$tmp/stat" --json
	ok "it ends when a signal stops it" interrupted
fi
done_testing
