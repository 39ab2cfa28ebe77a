#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# backend.sh - the example of a backend serves its pattern on two lanes, and rejects writes
. "$(dirname "$0")/lib.sh"
need loop initiator target
example backend pattern.c pattern.conf

# check ARGUMENT... - gantry check, with the directories of the plugins
check()
{
	gantry check pattern.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS" "$@"
}

# is_pattern SEED - each word of pattern.img is its offset plus SEED
is_pattern()
{
	od -A n -v -t u8 -w8 pattern.img | tr -d ' ' >words
	seq "$1" 8 $((8388608 - 8 + $1)) | cmp - words
}

ok "it is built" build pattern.c
ok "gantry check accepts the configuration" check
ok "it runs" run pattern.c
ok "each word is its offset" is_pattern 0
ok "it runs with a seed" run pattern.c --set roles.store.backend.seed=12345
ok "the seed is added" is_pattern 12345
ok "a size with a part of a block is rejected" fails 2 check --set roles.store.backend.size=10000
ok "the message names the option and the problem" output_has 'size: is not a multiple of 4096 bytes'
sed 's/copy = { .*/workload = { pattern = "randwrite"; };/' pattern.conf >write.conf && mv write.conf pattern.conf
ok "gantry check reports that the volume is read-only" fails 2 check
ok "it names the role that writes" output_has 'roles.copy.*read-only'
ok "a write is rejected" fails 1 run pattern.c
done_testing
