/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit_fake.c - a memory backend that can complete a write before it reaches the store, as a network
 * client does after a timeout. It meets the contract: quiesce waits for such writes, and a newer
 * write that overlaps such a write is held back. With a seeded bug it breaks one rule of the
 * contract.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <string.h>

#include "kit.h"

#define SIZE (1u << 20)
#define BLOCK 512u
#define LATE 64u /* turns between the early completion of a write and its effect on the store */
#define QUEUED 256u
#define FIRST_VERIFIER 0x1000u

/* A write that has completed early, or a write that such a write holds back. */
struct queued {
	struct gantry_io *io; /* NULL: the IO has completed */
	uint64_t number;
	uint64_t due; /* turn in which the write reaches the store */
	uint64_t offset;
	uint8_t data[BLOCK];
};

static struct {
	enum kit_bug bug;
	int gives_up;
	uint64_t turn, number, n_opened, n_asked;
	struct queued queue[QUEUED];
	unsigned n_queued;
	uint8_t store[SIZE + 1];
} fake;

void kit_fake_bug(enum kit_bug bug)
{
	memset(&fake, 0, sizeof(fake));
	fake.bug = bug;
}

void kit_fake_give_up(int on)
{
	fake.gives_up = on;
}

static int fake_open(const struct gantry_host *host, const void *conf, void **backend_p)
{
	(void)host;
	(void)conf;
	memset(fake.store, 0, sizeof(fake.store));
	fake.n_queued = 0;
	fake.n_opened++;
	*backend_p = &fake;
	return 0;
}

static void fake_volume(void *backend, struct gantry_volume_info *volume)
{
	(void)backend;
	*volume = (struct gantry_volume_info){
		.size = SIZE,
		.block_size = BLOCK,
		.ops = (1u << GANTRY_OP_COUNT) - 1,
		.flags = GANTRY_VOLUME_VOLATILE,
		.max_io = fake.bug == KIT_GEOMETRY ? BLOCK - 1 : SIZE,
		.uuid = {1},
		.verifier = FIRST_VERIFIER + fake.n_opened,
	};
	fake.n_asked++;
	switch (fake.bug) {
	case KIT_UNKNOWN:
		volume->verifier = 0;
		break;
	case KIT_RESTLESS:
		volume->verifier += fake.n_asked << 32;
		break;
	case KIT_RENAMED:
		volume->uuid[1] = (uint8_t)fake.n_opened;
		break;
	case KIT_STALE:
		volume->verifier = FIRST_VERIFIER;
		break;
	default:
		break;
	}
}

static void end(struct gantry_io *io, enum gantry_status status)
{
	io->status = (uint16_t)status;
	if (fake.bug == KIT_CHANGES)
		io->length ^= BLOCK;
	if (fake.bug == KIT_LOSES && io->opcode == GANTRY_OP_FLUSH)
		return;
	gantry_complete(io);
	if (fake.bug == KIT_TWICE && io->opcode == GANTRY_OP_FLUSH)
		gantry_complete(io);
}

static int overlaps_queued(const struct gantry_io *io)
{
	for (unsigned i = 0; i < fake.n_queued; i++)
		if (fake.queue[i].offset < io->offset + io->length &&
		    io->offset < fake.queue[i].offset + BLOCK)
			return 1;
	return 0;
}

static void report_extents(const struct gantry_io *io)
{
	struct gantry_extents extents = {.count = 0};

	gantry_extents_add(&extents, io->length,
			   fake.bug == KIT_HIDES ? GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO : 0);
	gantry_extents_finish(io, &extents);
}

static void execute(struct gantry_io *io)
{
	switch (io->opcode) {
	case GANTRY_OP_READ:
		memcpy(io->data, fake.store + io->offset, io->length);
		if (fake.bug == KIT_READS_BEYOND)
			((uint8_t *)io->data)[io->length] = 0;
		break;
	case GANTRY_OP_WRITE:
		memcpy(fake.store + io->offset, io->data, io->length);
		if (fake.bug == KIT_BEYOND)
			fake.store[io->offset + io->length] = 0;
		break;
	case GANTRY_OP_WRITE_ZEROES:
	case GANTRY_OP_DISCARD:
		memset(fake.store + io->offset, 0, io->length);
		break;
	case GANTRY_OP_EXTENTS:
		report_extents(io);
		break;
	default:
		break;
	}
}

static int enqueue(struct gantry_io *io, int early)
{
	struct queued *q = &fake.queue[fake.n_queued];

	if (fake.n_queued == QUEUED)
		return -EAGAIN;
	*q = (struct queued){.io = early ? NULL : io,
			     .number = ++fake.number,
			     .due = fake.turn + LATE,
			     .offset = io->offset};
	memcpy(q->data, io->data, BLOCK);
	fake.n_queued++;
	if (early)
		end(io, GANTRY_S_TIMEOUT);
	return 0;
}

static int fake_submit_io(void *self, struct gantry_io *io)
{
	int one_block = io->opcode == GANTRY_OP_WRITE && io->length == BLOCK;

	(void)self;
	if (fake.bug == KIT_REFUSES_FUA && (io->flags & GANTRY_IO_FUA))
		return -EOPNOTSUPP;
	if (one_block && fake.gives_up)
		return enqueue(io, 1);
	if (one_block && fake.bug != KIT_OVERTAKES && overlaps_queued(io))
		return enqueue(io, 0);
	if (gantry_op_writes(io->opcode) && fake.bug != KIT_OVERTAKES && overlaps_queued(io))
		return -EAGAIN;
	execute(io);
	end(io, GANTRY_S_OK);
	return 0;
}

/* Queued writes reach the store in order. */
static int fake_poll_lane(void *self)
{
	int n = 0;

	(void)self;
	fake.turn++;
	while (fake.n_queued && fake.queue[0].due <= fake.turn) {
		struct gantry_io *io = fake.queue[0].io;

		memcpy(fake.store + fake.queue[0].offset, fake.queue[0].data, BLOCK);
		memmove(fake.queue, fake.queue + 1, --fake.n_queued * sizeof(*fake.queue));
		if (io)
			end(io, GANTRY_S_OK);
		n++;
	}
	return n;
}

static int fake_quiesce(void *backend, uint64_t *mark)
{
	(void)backend;
	if (fake.bug == KIT_LIES)
		return 0;
	if (fake.bug == KIT_NEVER_AT_REST)
		return -EAGAIN;
	if (*mark == 0 || fake.bug == KIT_ROUND_GROWS)
		*mark = fake.number;
	return fake.n_queued && fake.queue[0].number <= *mark ? -EAGAIN : 0;
}

static const struct gantry_backend_ops ops = {
	.open = fake_open,
	.volume = fake_volume,
	.submit = fake_submit_io,
	.poll = fake_poll_lane,
	.quiesce = fake_quiesce,
};

const struct gantry_plugin kit_fake = {
	GANTRY_PLUGIN_HEAD, .kind = GANTRY_KIND_BACKEND,         .name = "kit-fake",
	.version = "1",     .summary = "completes writes early", .ops_size = sizeof(ops),
	.ops = &ops,
};
