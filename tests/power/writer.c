/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer CONF ROLE RECORD DM-NAME MARKS DISCARD SEED - writes a volume that lies on a device of
 * dm-log-writes
 *
 * Submits random writes, writes of zeroes, FUA writes and flushes on two queues, with DISCARD=1
 * also discards; one write at a time for each block. When a flush or FUA write is acknowledged, the
 * writer appends the stable writes to RECORD, and a mark to the log of the device DM-NAME
 * (power.h). It ends after MARKS marks. A lost session must resume: an IO that fails is an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <gantry/client.h>

#include "power/power.h"

#define QUEUES 2u
#define DEPTH 4u
#define SLOTS (QUEUES * DEPTH)
#define SPAN 4u /* blocks of the longest IO */

struct slot {
	struct gantry_queue *queue;
	char *buf;
	int busy, flush, fua;
	uint32_t first, n, seq;
};

static struct soak_journal journal = {.run = POWER_RUN};
static struct power_mark mark; /* the current state */
static uint32_t acked[POWER_BLOCKS], n_acked[POWER_BLOCKS];
/* acked and n_acked at the submission of the flush in flight */
static uint32_t flush_acked[POWER_BLOCKS], flush_n[POWER_BLOCKS];
static struct slot slots[SLOTS];
static uint64_t rng;
static uint32_t last_seq;
static int record, control, discards, failed;
/*
 * A flush or a FUA write is in flight. Only one may be: the target executes some FUA writes with a
 * flush of the device. dm-log-writes takes the completed writes when a flush starts, and logs them
 * when it ends. If a second flush starts later and ends first, the log has its newer writes first.
 */
static int sync_busy;
static const char *dm_name;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(soak_random(&rng) % n);
}

static void fail(const char *what, int error)
{
	fprintf(stderr, "writer: %s: %s\n", what, strerror(error));
	failed = 1;
}

/* Write a mark to the log, as `dmsetup message NAME 0 mark NUMBER` does. */
static void put_mark(void)
{
	struct {
		struct dm_ioctl head;
		uint64_t sector; /* field of struct dm_target_msg; the text follows it */
		char text[32];
	} message = {.head = {.version = {4, 0, 0},
			      .data_size = sizeof(message),
			      .data_start = sizeof(struct dm_ioctl)}};

	mark.number++;
	if (write(record, &mark, sizeof(mark)) != (ssize_t)sizeof(mark)) {
		fail("record", errno);
		return;
	}
	snprintf(message.head.name, sizeof(message.head.name), "%s", dm_name);
	_Static_assert(sizeof(message.sector) == offsetof(struct dm_target_msg, message),
		       "the text follows the sector");
	snprintf(message.text, sizeof(message.text), "mark %u", mark.number);
	if (control >= 0 && ioctl(control, DM_TARGET_MSG, &message))
		fail("mark", errno);
}

static void done(void *arg, int result)
{
	struct slot *s = arg;

	s->busy = 0;
	sync_busy &= !(s->flush || s->fua);
	if (result) {
		fail(s->flush ? "flush" : "write", -result);
		fprintf(stderr, "writer: %s\n", gantry_error());
		return;
	}
	for (uint32_t b = s->first; b < s->first + s->n; b++) {
		acked[b] = s->seq;
		n_acked[b] = mark.blocks[b].n_issued;
		if (s->fua) {
			mark.blocks[b].stable = acked[b];
			mark.blocks[b].n_stable = n_acked[b];
		}
	}
	for (uint32_t b = 0; s->flush && b < POWER_BLOCKS; b++) {
		if (flush_n[b] <= mark.blocks[b].n_stable)
			continue; /* a later FUA write is already stable */
		mark.blocks[b].stable = flush_acked[b];
		mark.blocks[b].n_stable = flush_n[b];
	}
	if (s->flush || s->fua)
		put_mark();
}

static int start_flush(struct slot *s)
{
	s->flush = sync_busy = 1;
	s->fua = 0;
	s->n = 0;
	memcpy(flush_acked, acked, sizeof(acked));
	memcpy(flush_n, n_acked, sizeof(n_acked));
	return gantry_queue_flush(s->queue, done, s);
}

/*
 * Returns whether no completed write of these blocks waits for a flush. If a write waits, a FUA
 * write must not follow: it enters the log when it completes, and the older write enters the log
 * only at the next flush. A replay would apply the older write last.
 */
static int all_stable(uint32_t first, uint32_t n)
{
	for (uint32_t b = first; b < first + n; b++)
		if (mark.blocks[b].stable != mark.blocks[b].issued)
			return 0;
	return 1;
}

static int start_write(struct slot *s)
{
	uint32_t draw = below(100), zero = draw < 16;
	uint64_t offset, bytes;

	s->flush = 0;
	s->first = below(below(2) ? 16 : POWER_BLOCKS - SPAN);
	for (s->n = 0; s->n < 1 + below(SPAN); s->n++)
		if (mark.blocks[s->first + s->n].issued != acked[s->first + s->n])
			break;
	if (!s->n)
		return 1;
	s->fua = below(100) < 12 && !sync_busy && all_stable(s->first, s->n);
	sync_busy |= s->fua;
	s->seq = last_seq = (last_seq & ~1u) + 2 + zero;
	offset = (uint64_t)s->first * SOAK_BLOCK;
	bytes = (uint64_t)s->n * SOAK_BLOCK;
	for (uint32_t b = s->first; b < s->first + s->n; b++) {
		mark.blocks[b].issued = s->seq;
		mark.blocks[b].n_issued++;
		if (zero)
			mark.blocks[b].zeroed = s->seq;
		soak_fill(&journal, s->buf + (size_t)(b - s->first) * SOAK_BLOCK, b, s->seq);
	}
	if (discards && draw < 8 && !s->fua)
		return gantry_queue_discard(s->queue, bytes, offset, done, s);
	if (zero)
		return gantry_queue_write_zeroes(s->queue, bytes, offset,
						 s->fua ? GANTRY_IO_FUA : 0, done, s);
	return gantry_queue_write(s->queue, s->buf, bytes, offset, s->fua ? GANTRY_IO_FUA : 0, done,
				  s);
}

static void start(struct slot *s)
{
	int rc;

	s->busy = 1;
	rc = !sync_busy && below(100) < 4 ? start_flush(s) : start_write(s);
	if (!rc)
		return;
	s->busy = 0;
	if (rc < 0)
		fail("submission", -rc); /* also if full: the queues have an entry for each slot */
}

static int n_busy(void)
{
	int n = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		n += slots[i].busy;
	return n;
}

static void run(struct gantry_queue *const *queues, uint32_t marks)
{
	struct pollfd fds[QUEUES];
	int n;

	while (!failed && (mark.number < marks || n_busy())) {
		for (unsigned i = 0; i < SLOTS; i++)
			if (!slots[i].busy && !failed && mark.number < marks)
				start(&slots[i]);
		n = 0;
		for (unsigned i = 0; i < QUEUES; i++)
			n += gantry_queue_poll(queues[i]);
		for (unsigned i = 0; i < QUEUES && !n; i++) {
			n |= gantry_queue_arm(queues[i]) != 0;
			fds[i] = (struct pollfd){.fd = gantry_queue_fd(queues[i]),
						 .events = POLLIN};
		}
		if (!n)
			poll(fds, QUEUES, 1000);
	}
}

static int open_all(const char *conf, const char *role, struct gantry_volume **volume,
		    struct gantry_queue **queues)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	char *memory;
	uint64_t bytes;
	int rc;

	attr.queues = QUEUES;
	attr.depth = DEPTH;
	attr.buffer_bytes = (uint64_t)SLOTS * SPAN * SOAK_BLOCK;
	rc = gantry_volume_open_role(conf, role, &attr, volume);
	for (unsigned i = 0; !rc && i < QUEUES; i++)
		rc = gantry_queue_open(*volume, &queues[i]);
	if (rc) {
		fail(gantry_error(), -rc);
		return -1;
	}
	memory = gantry_volume_buffers(*volume, &bytes);
	for (unsigned i = 0; i < SLOTS; i++) {
		slots[i].queue = queues[i % QUEUES];
		slots[i].buf = memory + (size_t)i * SPAN * SOAK_BLOCK;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct gantry_queue *queues[QUEUES] = {NULL};
	struct gantry_volume *volume = NULL;

	if (argc != 8) {
		fprintf(stderr, "usage: writer CONF ROLE RECORD DM-NAME MARKS DISCARD SEED\n");
		return 2;
	}
	record = open(argv[3], O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	dm_name = argv[4];
	control = *dm_name ? open("/dev/mapper/control", O_RDWR | O_CLOEXEC) : -1;
	if (record < 0 || (*dm_name && control < 0)) {
		perror("writer");
		return 2;
	}
	discards = atoi(argv[6]);
	rng = strtoull(argv[7], NULL, 10);
	if (open_all(argv[1], argv[2], &volume, queues))
		return 1;
	run(queues, (uint32_t)strtoul(argv[5], NULL, 10));
	for (unsigned i = 0; i < QUEUES; i++)
		gantry_queue_close(&queues[i]);
	gantry_volume_close(&volume);
	/* the final state, for writes that were logged after the last mark */
	mark.number++;
	if (write(record, &mark, sizeof(mark)) != (ssize_t)sizeof(mark))
		fail("record", errno);
	printf("writer: marks=%u writes=%u\n", mark.number - 1, last_seq / 2);
	return failed;
}
