/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_frames.c - a device of tcp that listens. The peer has a connection and a link, on which the
 * input sends frames and control messages; see tcp_victim.h.
 */
#include "fuzz/tcp_victim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void setup(void)
{
	victim_dial(TCP_CONTROL, 0, 0);
	victim.control = victim.links[0];
	victim.n_links = 0;
	victim_turn();
	require(victim.conns[0] != NULL);
	victim_equip();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	victim_begin(setup, setup);
	for (size_t at = 0; at + 4 <= size;)
		at += victim_step(data + at, size - at);
	victim_end();
	return 0;
}
