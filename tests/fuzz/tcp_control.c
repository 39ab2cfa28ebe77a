/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_control.c - a device of tcp that connects to a hostile server. The first byte of the input
 * says whether WELCOME has been sent; see tcp_victim.h.
 */
#include "fuzz/tcp_victim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void setup(void)
{
	victim_connect();
	victim.control = quick_stream_dialed();
	victim.n_links = 0;
	victim_turn();
	require(victim.conns[0] && victim.control >= 0);
}

/* The server accepts, and asks for a link, which the device connects. */
static void welcome(void)
{
	static const struct {
		struct tcp_ctrl head;
		struct tcp_welcome body;
	} __attribute__((packed)) msg = {{TCP_CTRL_WELCOME, 0, sizeof(struct tcp_welcome)}, {"x"}};
	static const struct {
		struct tcp_ctrl head;
		struct tcp_ctrl_link body;
	} link = {{TCP_CTRL_LINK, 0, sizeof(struct tcp_ctrl_link)}, {0, 0}};
	static const struct tcp_frame ready = {.kind = TCP_READY, .ops = 8};

	quick_stream_send(victim.control, &msg, sizeof(msg));
	victim_turn();
	require(victim.conns[0] != NULL);
	victim_equip();
	quick_stream_send(victim.control, &link, sizeof(link));
	victim_turn();
	victim.link = victim.links[0] = quick_stream_dialed();
	require(victim.link >= 0);
	victim.n_links = 1;
	victim_turn();
	quick_stream_send(victim.link, &ready, sizeof(ready));
	victim_turn();
}

/* Let the device create what it keeps. */
static void warm(void)
{
	setup();
	welcome();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	victim_begin(warm, setup);
	if (size && data[0] & 1)
		welcome();
	for (size_t at = 1; at + 4 <= size;)
		at += victim_step(data + at, size - at);
	victim_end();
	return 0;
}
