/* SPDX-License-Identifier: BSD-3-Clause */
/* kit_backend.c - cases of backends: the rules of unit/backend/kit.c, and what close leaves. */
#include <stdio.h>
#include <stdlib.h>

#include "fake/chain.h"
#include "fake/shortage.h"
#include "kit/kit_program.h"
#include "unit/backend/kit.h"

#define TURNS 100000000ul
#define BLOCKS 16u

static void keep_rule(const char *name)
{
	const struct kit_subject subject = {
		.plugin = kit_program.plugin,
		.conf = kit_conf_copy,
		.stores = !kit_program.discards,
		.any_verifier = 1,
		.turns = TURNS,
	};
	unsigned i = 0;
	const char *broken;

	while (strcmp(kit_rule_name(i), name) != 0)
		i++;
	broken = kit_check_rule(&subject, i);
	if (broken)
		rig_fail_at(__FILE__, __LINE__, "expected that the rule holds, but %s", broken);
}

#define RULE(name) \
	static void name(void) \
	{ \
		keep_rule(#name); \
	}
RULE(geometry)
RULE(every_operation)
RULE(once_each)
RULE(data_at_its_place)
RULE(extents)
RULE(identity)
RULE(next_life)
RULE(rest_is_rest)
RULE(newer_write_wins)
RULE(a_round_ends)

/* Submit many IOs before a poll, wait for them, and close. */
static void load_and_close(void)
{
	static uint8_t data[BLOCKS << 16] __attribute__((aligned(4096)));
	static struct fake_host host;
	static struct fake_chain chain;
	struct gantry_volume_info volume = {0};
	unsigned accepted = 0;

	fake_host_init(&host, "test");
	host.real_clock = 1;
	fake_chain_init(&chain, &host);
	RIG_RC(0, fake_chain_backend(&chain, kit_program.plugin, kit_conf_copy()), host.log);
	chain.backend_ops->volume(chain.backend, &volume);
	for (unsigned i = 0; i < BLOCKS; i++)
		accepted += fake_submit(fake_io(&chain, GANTRY_OP_READ, 0, volume.block_size,
						data + ((size_t)i << 16))) == 0;
	for (unsigned long i = 0; chain.n_done < accepted && i < TURNS; i++)
		fake_poll(&chain);
	RIG_NUM(accepted, chain.n_done, "completions of the accepted IOs");
	if (chain.backend_ops->report) {
		struct fake_report report;

		fake_chain_report(&chain, -1, &report);
	}
	fake_chain_fini(&chain);
	RIG_NUM(0, chain.n_stray, "second completions of an IO");
}

static void close_after_load_leaves_nothing(void)
{
	long blocks, fds;

	load_and_close(); /* do not count what libraries allocate once and keep */
	blocks = shortage_blocks();
	fds = shortage_entries("/proc/self/fd");
	load_and_close();
	RIG_NUM((uint64_t)fds, (uint64_t)shortage_entries("/proc/self/fd"),
		"open descriptors after close");
	RIG_NUM((uint64_t)blocks, (uint64_t)shortage_blocks(), "blocks of memory after close");
}

void kit_backend_cases(void)
{
	RIG_CASE(geometry);
	RIG_CASE(every_operation);
	RIG_CASE(once_each);
	RIG_CASE(data_at_its_place);
	RIG_CASE(extents);
	RIG_CASE(identity);
	RIG_CASE(next_life);
	RIG_CASE(rest_is_rest);
	RIG_CASE(newer_write_wins);
	RIG_CASE(a_round_ends);
	RIG_CASE(close_after_load_leaves_nothing);
}
