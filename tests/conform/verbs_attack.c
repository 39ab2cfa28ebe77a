/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_attack.c - attacks a listener of rdma-verbs, and prints the result of each attack.
 *
 *     verbs_attack ADDRESS PORT FROM
 *
 * ADDRESS and PORT are those of the listener. FROM is the address of the attacker.
 *
 * Exit status 0: each attack got the expected answer. The table lists the attacks and their
 * expected answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/verbs_raw.h"

static struct raw evil, more;

static void garbage(void)
{
	uint8_t bytes[56];

	raw_open(&evil);
	memset(bytes, 0xa5, sizeof(bytes));
	raw_ask(&evil, bytes, sizeof(bytes));
}

static void no_secret(void)
{
	struct vb_hello hello;

	raw_connect(&more);
	raw_open(&evil);
	hello = raw_hello(&evil, VB_MESSAGES, &more);
	hello.secret ^= 1;
	raw_ask(&evil, &hello, sizeof(hello));
}

static void wrong_key(void)
{
	raw_connect(&evil);
	raw_move(&evil, IBV_WR_RDMA_WRITE, evil.hello.credit_addr, evil.hello.credit_key ^ 1, 8);
}

static void other_key(void)
{
	raw_connect(&more);
	raw_connect(&evil);
	raw_move(&evil, IBV_WR_RDMA_WRITE, more.hello.credit_addr, more.hello.credit_key, 8);
}

static void beyond(void)
{
	raw_connect(&evil);
	raw_move(&evil, IBV_WR_RDMA_WRITE, evil.hello.credit_addr, evil.hello.credit_key, RAW_SLOT);
}

static void no_words(void)
{
	raw_connect(&evil);
	memset(evil.out, 0xa5, RAW_SLOT);
	raw_send(&evil, 16);
}

static void no_frame(void)
{
	raw_connect(&evil);
	memset(evil.out, 0xa5, RAW_SLOT);
	raw_ctrl(&evil, VB_CTRL_USER, evil.out + 1024, 48);
}

static void credit_jumps(void)
{
	const struct vb_ctrl head = {.kind = VB_CTRL_BYE, .allowed = 1000000};

	raw_connect(&evil);
	memcpy(evil.out, &head, sizeof(head));
	raw_send(&evil, sizeof(head));
}

static void silence(void)
{
	raw_connect(&evil);
}

enum due { REFUSED, NO_ACCESS, DROPPED };

static const struct {
	const char *what;
	void (*attack)(void);
	enum due due;
} attacks[] = {
	{"a request of garbage", garbage, REFUSED},
	{"a queue pair with a wrong secret", no_secret, REFUSED},
	{"a write with a wrong key", wrong_key, NO_ACCESS},
	{"a write with the key of another connection", other_key, NO_ACCESS},
	{"a write beyond what it may", beyond, NO_ACCESS},
	{"words that are none", no_words, DROPPED},
	{"a frame of a session that is none", no_frame, DROPPED},
	{"credit that jumps", credit_jumps, DROPPED},
	{"silence", silence, DROPPED},
};

static int as_due(enum due due)
{
	if (due == REFUSED)
		return evil.refused && !evil.up && evil.refusal.magic == VB_MAGIC;
	return raw_lost(&evil) && (due == DROPPED || evil.bad == IBV_WC_REM_ACCESS_ERR);
}

int main(int argc, char **argv)
{
	int bad = 0;

	if (argc != 4)
		return 2;
	raw_place =
		(struct raw_place){.at = argv[1], .port = (uint16_t)atoi(argv[2]), .from = argv[3]};
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		int good;

		attacks[i].attack();
		good = as_due(attacks[i].due);
		printf("%s: %s, %s%.120s\n", attacks[i].what, good ? "as due" : "NOT AS DUE",
		       ibv_wc_status_str(evil.bad), evil.refusal.text);
		fflush(stdout);
		bad += !good;
		raw_close(&more);
		raw_close(&evil);
	}
	return bad != 0;
}
