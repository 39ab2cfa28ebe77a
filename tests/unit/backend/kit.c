/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit.c - the rules. kit_check() opens the backend before each rule and closes it afterwards. A
 * rule does IO, and returns the defect as text, or NULL.
 */
#include "kit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fake/chain.h"

#define MAX_IO (1u << 20) /* largest IO of a rule, in bytes */
#define GUARD 64u         /* guard bytes behind the memory of an IO */
#define LATE_TURNS 1000u  /* calls of poll after which every late IO must have reached the store */
#define PAUSE_NS 50000    /* between two calls of quiesce */
#define ROUNDS 10000u     /* calls of quiesce after which a round counts as endless */

static struct fake_host host;
static struct fake_chain chain;
static struct gantry_volume_info volume;
static const struct kit_subject *subject;
static uint8_t out[MAX_IO + GUARD] __attribute__((aligned(4096))),
	in[MAX_IO + GUARD] __attribute__((aligned(4096)));

/* -- steps -- */

static const struct gantry_backend_ops *ops(void)
{
	return subject->plugin->ops;
}

static int open_subject(void)
{
	const char *const *s = subject->settings;
	void *conf = subject->conf ? subject->conf()
				   : fake_conf(subject->plugin, s[0], s[1], s[2], s[3], s[4], s[5],
					       s[6], s[7], NULL);
	int rc;

	fake_host_init(&host, "test");
	host.real_clock = 1;
	fake_chain_init(&chain, &host);
	rc = fake_chain_backend(&chain, subject->plugin, conf);
	memset(&volume, 0, sizeof(volume));
	if (rc == 0)
		ops()->volume(chain.backend, &volume);
	return rc;
}

static void close_subject(void)
{
	fake_chain_fini(&chain);
}

static void turn(unsigned long turns)
{
	while (turns--)
		fake_poll(&chain);
}

/* Submit an IO; poll and retry while the backend returns -EAGAIN. Returns 0 or -errno. */
static int submit(struct gantry_io *io)
{
	for (unsigned long turns = 0; turns < subject->turns; turns++) {
		int rc = gantry_submit(io);

		if (rc == 0)
			return 0;
		if (rc != -EAGAIN) {
			io->busy = 0;
			return rc;
		}
		fake_poll(&chain);
	}
	io->busy = 0;
	return -EAGAIN;
}

static int finish(const struct gantry_io *io)
{
	for (unsigned long turns = 0; io->busy && turns < subject->turns; turns++)
		fake_poll(&chain);
	return io->busy;
}

/* Returns the status of an IO; -errno: rejected; -ETIME: not completed. */
static int run(unsigned opcode, unsigned flags, uint64_t offset, uint32_t length, void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, offset, length, data);
	int rc;

	io->flags = (uint8_t)flags;
	rc = submit(io);
	if (rc)
		return rc;
	return finish(io) ? -ETIME : io->status;
}

static int does(unsigned opcode)
{
	return (volume.ops >> opcode & 1) != 0;
}

static int can_store(void)
{
	return subject->stores && does(GANTRY_OP_WRITE) && does(GANTRY_OP_READ);
}

/*
 * Run a round of quiesce. Pauses between its calls, because a thread of the backend can have to
 * work. Returns 0; -EAGAIN if it takes over ROUNDS calls; or another -errno.
 */
static int round_of_quiesce(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t mark = 0;
	int rc = -EAGAIN;

	if (!ops()->quiesce)
		return 0;
	for (unsigned i = 0; i < ROUNDS && rc == -EAGAIN; i++) {
		rc = ops()->quiesce(chain.backend, &mark);
		fake_poll(&chain);
		if (rc == -EAGAIN)
			nanosleep(&pause, NULL); /* lint: allowed, as the host does */
	}
	return rc;
}

static void give_up(int on)
{
	if (subject->give_up)
		subject->give_up(on);
}

/* Read the block at `offset`. Returns whether every byte has this value. */
static int holds(uint64_t offset, uint8_t byte)
{
	memset(in, ~byte, volume.block_size);
	if (run(GANTRY_OP_READ, 0, offset, volume.block_size, in) != GANTRY_S_OK)
		return 0;
	for (uint32_t i = 0; i < volume.block_size; i++)
		if (in[i] != byte)
			return 0;
	return 1;
}

static int write_block(uint64_t offset, uint8_t byte)
{
	memset(out, byte, volume.block_size);
	return run(GANTRY_OP_WRITE, 0, offset, volume.block_size, out);
}

/* -- rules -- */

static const char *geometry(void)
{
	if (volume.block_size < 512 || volume.block_size > 65536 ||
	    (volume.block_size & (volume.block_size - 1)))
		return "block_size is no power of two in 512..65536";
	if (volume.size == 0 || volume.size % volume.block_size)
		return "size is no multiple of block_size";
	if (volume.max_io < volume.block_size)
		return "max_io is less than a block";
	if (volume.ops == 0 || volume.ops >> GANTRY_OP_COUNT)
		return "ops has no operations, or unknown ones";
	return NULL;
}

static const char *every_operation(void)
{
	const uint64_t places[] = {0, volume.size - volume.block_size};
	uint32_t most = volume.max_io < MAX_IO ? volume.max_io : MAX_IO;

	if (most > volume.size)
		most = (uint32_t)volume.size;
	for (unsigned opcode = 0; opcode < GANTRY_OP_COUNT; opcode++) {
		unsigned flags = gantry_op_writes(opcode) ? GANTRY_IO_FUA : 0;
		int range = gantry_op_has_range(opcode);
		int rc = GANTRY_S_OK;

		if (!does(opcode))
			continue;
		for (unsigned i = 0; i < 2 && rc == GANTRY_S_OK; i++)
			rc = run(opcode, i ? flags : 0, range ? places[i] : 0,
				 range ? volume.block_size : 0,
				 gantry_op_has_buffer(opcode) ? out + 8 * i : NULL);
		if (rc == GANTRY_S_OK && range)
			rc = run(opcode, 0, 0, most, gantry_op_has_buffer(opcode) ? out : NULL);
		if (rc == -ETIME)
			return "an IO never completes";
		if (rc != GANTRY_S_OK)
			return flags ? "a write that is in ops is rejected or fails"
				     : "an operation that is in ops fails";
	}
	return NULL;
}

static const char *once_each(void)
{
	struct gantry_io *ios[FAKE_IOS], before[FAKE_IOS];

	for (unsigned i = 0; i < FAKE_IOS; i++) {
		unsigned opcode = i % GANTRY_OP_COUNT;
		int range = gantry_op_has_range(opcode);

		if (!does(opcode))
			opcode = GANTRY_OP_READ, range = 1;
		ios[i] = fake_io(&chain, opcode, range ? i % 4 * volume.block_size : 0,
				 range ? volume.block_size : 0,
				 gantry_op_has_buffer(opcode) ? out + i * volume.block_size % MAX_IO
							      : NULL);
		before[i] = *ios[i];
	}
	for (unsigned i = 0; i < FAKE_IOS; i++)
		if (submit(ios[i]))
			return "an IO is never accepted";
	for (unsigned i = 0; i < FAKE_IOS; i++)
		if (finish(ios[i]))
			return "an IO never completes";
	turn(LATE_TURNS);
	if (chain.n_done != FAKE_IOS || chain.n_stray)
		return "an IO completes more than once";
	for (unsigned i = 0; i < FAKE_IOS; i++)
		if (ios[i]->opcode != before[i].opcode || ios[i]->offset != before[i].offset ||
		    ios[i]->length != before[i].length || ios[i]->data != before[i].data)
			return "a completed descriptor has another operation or place";
	return NULL;
}

static const char *data_at_its_place(void)
{
	uint32_t block = volume.block_size;

	if (!can_store())
		return NULL;
	for (unsigned i = 0; i < 3; i++)
		if (write_block(i * block, 0x11) != GANTRY_S_OK)
			return "a write fails";
	/* memory that is not aligned */
	memset(out, 0x22, sizeof(out));
	if (run(GANTRY_OP_WRITE, 0, block, block, out + 8) != GANTRY_S_OK)
		return "a write from memory that is not aligned fails";
	if (!holds(0, 0x11) || !holds(block, 0x22) || !holds(2 * block, 0x11))
		return "a write changes more or less than its range";
	memset(in, 0x33, block + GUARD);
	if (run(GANTRY_OP_READ, 0, block, block, in + 8) != GANTRY_S_OK)
		return "a read into memory that is not aligned fails";
	if (in[7] != 0x33 || in[8] != 0x22 || in[block + 7] != 0x22 || in[block + 8] != 0x33)
		return "a read changes more or less than the memory of the IO";
	if (does(GANTRY_OP_WRITE_ZEROES) &&
	    (run(GANTRY_OP_WRITE_ZEROES, 0, block, block, NULL) != GANTRY_S_OK || !holds(0, 0x11) ||
	     !holds(block, 0) || !holds(2 * block, 0x11)))
		return "write_zeroes changes more or less than its range";
	return NULL;
}

/* Holes read as zeroes, and a block that was written is no hole. */
static const char *extents(void)
{
	struct gantry_extents e;
	uint32_t block = volume.block_size, length = 3 * block;
	uint64_t at = 0;

	if (!can_store() || !does(GANTRY_OP_EXTENTS))
		return NULL;
	if (write_block(block, 0x3c) != GANTRY_S_OK)
		return "a write fails";
	memset(&e, 0xee, sizeof(e));
	if (run(GANTRY_OP_EXTENTS, 0, 0, length, &e) != GANTRY_S_OK ||
	    !gantry_extents_are_valid(&e, length, block))
		return "extents fail, or break a rule";
	for (uint32_t i = 0; i < e.count; at += e.extent[i++].length)
		if (e.extent[i].flags != 0 && at <= block && block < at + e.extent[i].length)
			return "extents report data as a hole";
	return NULL;
}

static const char *identity(void)
{
	static const uint8_t unknown[16];
	struct gantry_volume_info again = {0};

	if (memcmp(volume.uuid, unknown, 16) == 0 || volume.verifier == 0)
		return "uuid or verifier is unknown";
	if (does(GANTRY_OP_WRITE))
		write_block(0, 0x44);
	if (does(GANTRY_OP_FLUSH))
		run(GANTRY_OP_FLUSH, 0, 0, 0, NULL);
	ops()->volume(chain.backend, &again);
	return memcmp(&volume, &again, sizeof(again)) ? "volume is not always the same" : NULL;
}

static const char *next_life(void)
{
	struct gantry_volume_info before = volume;

	if (can_store() &&
	    (write_block(0, 0x55) != GANTRY_S_OK ||
	     (does(GANTRY_OP_FLUSH) && run(GANTRY_OP_FLUSH, 0, 0, 0, NULL) != GANTRY_S_OK)))
		return "a write or flush fails";
	close_subject();
	if (open_subject())
		return "it cannot be opened a second time";
	if (memcmp(before.uuid, volume.uuid, 16))
		return "another uuid after close and open";
	if (subject->any_verifier && before.verifier == volume.verifier && can_store() &&
	    !holds(0, 0x55))
		return "the same verifier, though data was lost";
	if (!subject->any_verifier &&
	    subject->verifier_stays != (before.verifier == volume.verifier))
		return subject->verifier_stays ? "another verifier, though nothing was lost"
					       : "the same verifier, though data was lost";
	if (can_store() && subject->keeps && !holds(0, 0x55))
		return "flushed data is lost after close and open";
	return NULL;
}

static const char *rest_is_rest(void)
{
	int first;

	if (!can_store())
		return round_of_quiesce() ? "quiesce does not come to rest" : NULL;
	if (write_block(0, 0x66) != GANTRY_S_OK || round_of_quiesce())
		return "quiesce does not come to rest";
	give_up(1);
	write_block(0, 0x77);
	give_up(0);
	if (round_of_quiesce())
		return "quiesce does not come to rest";
	first = holds(0, 0x77);
	if (!first && !holds(0, 0x66))
		return "a block is neither old nor new";
	turn(LATE_TURNS);
	return first == holds(0, 0x77) ? NULL : "a write lands after quiesce";
}

static const char *newer_write_wins(void)
{
	if (!can_store())
		return NULL;
	give_up(1);
	write_block(0, 0x88);
	give_up(0);
	if (write_block(0, 0x99) != GANTRY_S_OK)
		return "a write fails behind one that was given up";
	if (!holds(0, 0x99))
		return "a write that was given up overtakes a newer one";
	if (round_of_quiesce())
		return "quiesce does not come to rest";
	turn(LATE_TURNS);
	return holds(0, 0x99) ? NULL : "a write that was given up overtakes a newer one";
}

/* Other IOs are submitted during the round. */
static const char *a_round_ends(void)
{
	uint64_t mark = 0;
	int rc = ops()->quiesce ? -EAGAIN : 0;

	if (!does(GANTRY_OP_WRITE))
		return NULL;
	give_up(1);
	for (unsigned i = 0; i < ROUNDS && rc == -EAGAIN; i++) {
		write_block(i % 4 * volume.block_size, 0xaa);
		rc = ops()->quiesce(chain.backend, &mark);
		fake_poll(&chain);
	}
	give_up(0);
	if (round_of_quiesce())
		return "quiesce does not come to rest";
	return rc ? "a round of quiesce waits for what was submitted after its start" : NULL;
}

static const struct {
	const char *name;
	const char *(*broken)(void);
} rules[] = {
	{"geometry", geometry},
	{"every_operation", every_operation},
	{"once_each", once_each},
	{"data_at_its_place", data_at_its_place},
	{"extents", extents},
	{"identity", identity},
	{"next_life", next_life},
	{"rest_is_rest", rest_is_rest},
	{"newer_write_wins", newer_write_wins},
	{"a_round_ends", a_round_ends},
};

#define N_RULES (sizeof(rules) / sizeof(rules[0]))

const char *kit_rule_name(unsigned i)
{
	return i < N_RULES ? rules[i].name : NULL;
}

const char *kit_check_rule(const struct kit_subject *checked, unsigned i)
{
	static char why[512];
	const char *broken;
	int rc;

	subject = checked;
	rc = open_subject();
	if (rc) {
		snprintf(why, sizeof(why), "cannot be opened: %s: %.400s", strerror(-rc), host.log);
		return why;
	}
	broken = rules[i].broken();
	close_subject();
	return broken;
}

const char *kit_check(const struct kit_subject *checked)
{
	const char *broken = NULL;

	for (unsigned i = 0; i < N_RULES && !broken; i++)
		broken = kit_check_rule(checked, i);
	return broken;
}
