/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client JOURNAL-FD INDEX CONF ROLE SEED - a client of the soak test: writes its own blocks, reads
 * all blocks, checks each answer
 *
 * The client has one thread and SOAK_QUEUES queues. It opens the volume, settles the blocks in
 * doubt, then submits random IO until the driver requests a pause, SIGTERM arrives, or the session
 * is lost. The driver can kill the client at any moment. soak.h has the rules.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gantry/client.h>

#include "soak/soak.h"

/* longest time from the failure of an IO until the target has fenced its client for it */
#define FENCE_MS 10000
/* an IO that a stopped service does not answer can have begun so long before the stop */
#define STALL_EARLY_MS 500
/* longest time from a reply that is too short until its read has failed */
#define SHORT_MS 3000

enum op { OP_READ, OP_SETTLE, OP_WRITE, OP_ZEROES, OP_DISCARD, OP_FLUSH, OP_STRAY };

struct slot {
	struct gantry_queue *queue;
	/*
	 * shared: buffer in the memory of the volume. copied: buffer in other memory, which
	 * libgantry copies. buf: the one of these two that the IO uses.
	 */
	void *shared, *copied, *buf;
	unsigned index;
	int busy, tainted; /* tainted: a server can still write to `shared` */
	enum op op;
	int fua;
	uint32_t first, n, seq;
	uint64_t since; /* ms: submission of the IO */
	struct soak_window windows[SOAK_SPAN];
};

static struct soak_journal *journal;
static struct soak_client *self;
static struct soak_block *blocks;
static const char *conf, *role;
static unsigned client_index;
static uint64_t rng;
static struct gantry_volume *volume;
static struct gantry_queue *queues[SOAK_QUEUES];
static struct slot slots[SOAK_SLOTS];
static uint32_t flush_seen[SOAK_OWN]; /* value of `acked` when the flush in flight was submitted */
static int flush_busy, in_doubt, lost, gave_up;
static int n_busy;
static volatile sig_atomic_t ending;

static uint64_t below(uint64_t n)
{
	return soak_random(&rng) % n;
}

static void enter(enum soak_state state)
{
	atomic_store(&self->state, state);
	atomic_store(&self->since, soak_ms());
}

static int bug(const char *name)
{
	return !strcmp(journal->bug, name);
}

static void on_term(int sig)
{
	(void)sig;
	ending = 1;
}

/* -- effects of an IO on the journal -- */

static void acknowledge(const struct slot *s)
{
	for (uint32_t b = s->first; b < s->first + s->n; b++) {
		atomic_store(&blocks[b].acked, s->seq);
		atomic_store(&blocks[b].n_acked, atomic_load(&blocks[b].n_issued));
		if (s->fua)
			soak_raise(&blocks[b].flushed, s->seq);
	}
	atomic_fetch_add(&self->writes, 1);
}

/* The write of this block has had no effect: remove it from the journal. */
static void withdraw(uint32_t b, uint32_t seq)
{
	atomic_store(&blocks[b].issued, seq);
	atomic_store(&blocks[b].n_acked, atomic_load(&blocks[b].n_issued));
	atomic_store(&blocks[b].acked, seq);
}

static void flushed(void)
{
	for (uint32_t i = 0; i < SOAK_OWN; i++)
		soak_raise(&blocks[client_index * SOAK_OWN + i].flushed, flush_seen[i]);
	atomic_fetch_add(&self->flushes, 1);
}

static void check_read(const struct slot *s)
{
	struct soak_window w;
	uint32_t found;

	for (uint32_t i = 0; i < s->n; i++) {
		w = s->windows[i];
		soak_window_end(&w, &blocks[s->first + i]);
		if (soak_check(journal, (char *)s->buf + i * SOAK_BLOCK, s->first + i, &w, &found,
			       "read"))
			continue;
		if (found != SOAK_MIXED && found > w.lo && (!soak_is_zero(found) || w.n <= 1))
			soak_raise(&blocks[s->first + i].seen, found);
	}
	atomic_fetch_add(&self->reads, 1);
	atomic_fetch_add(&self->blocks_read, s->n);
}

/* Record the write that the block holds as acknowledged. */
static void settle(const struct slot *s)
{
	struct soak_block *block = &blocks[s->first];
	struct soak_window w = s->windows[0];
	uint32_t found;

	soak_window_end(&w, block);
	if (!w.n)
		w.n = 1;
	if (soak_check(journal, s->buf, s->first, &w, &found, "settle"))
		return;
	if (found == SOAK_MIXED) {
		if (atomic_load(&block->kills) == atomic_load(&journal->target_kills))
			soak_report(
				journal, SOAK_TORN,
				"settle: block %u of client %u has parts of the writes %u and %u",
				s->first, client_index, w.lo, w.hi);
		/* the next write replaces it; until then a read may return either write */
		atomic_fetch_add(&self->mixed, 1);
		return;
	}
	if (found == w.hi) {
		atomic_store(&block->acked, found);
		atomic_store(&block->n_acked, atomic_load(&block->n_issued));
		return;
	}
	withdraw(s->first, found);
	atomic_fetch_add(&self->dropped, 1);
}

/* Another volume is in the place of the volume at the moment, so that sessions can end. */
static int is_replaced(void)
{
	return atomic_load(&journal->exchanged) ||
	       atomic_load(&journal->rejecting) == SOAK_REJECTS_SESSIONS;
}

static int session_lost(int result)
{
	return result == -ENOTCONN || result == -EOWNERDEAD || result == -ESTALE;
}

/* The target can have fenced its client: an IO can have timed out, also one of a killed client. */
static int may_be_fenced(uint64_t now)
{
	const uint64_t stalled = atomic_load(&journal->stalled);

	if (!journal->target_fences)
		return 0;
	return (stalled && now + STALL_EARLY_MS >= stalled + journal->io_error_ms) ||
	       now < atomic_load(&journal->timed_out_at) + FENCE_MS;
}

/*
 * Returns whether this IO may fail with EIO: its service was silent until shortly before the
 * deadline, or serves another volume. A read may also have got a reply that was too short; each
 * such reply fails one read.
 */
static int may_fail(const struct slot *s)
{
	const uint64_t now = soak_ms();

	if (atomic_load(&journal->rejecting) == SOAK_REJECTS_IO)
		return 1;
	if (journal->io_error_ms && now - s->since >= journal->io_error_ms) {
		atomic_store(&journal->timed_out_at, now);
		return 1;
	}
	if (may_be_fenced(now))
		return 1;
	return (s->op == OP_READ || s->op == OP_SETTLE) &&
	       now < atomic_load(&journal->short_at) + SHORT_MS &&
	       atomic_fetch_add(&journal->short_reads, 1) <
		       atomic_load(&journal->lies[SOAK_LIE_SHORT]);
}

static void on_failure(struct slot *s, int result)
{
	if (result == -EIO && s->op == OP_FLUSH && journal->flush_may_fail)
		return;             /* it has made nothing stable */
	if (result == -ECANCELED) { /* the IO was never started */
		for (uint32_t b = s->first; b < s->first + s->n; b++)
			if (s->op == OP_WRITE || s->op == OP_ZEROES || s->op == OP_DISCARD)
				withdraw(b, atomic_load(&blocks[b].acked));
		in_doubt |= s->op == OP_SETTLE;
		atomic_fetch_add(&self->timeouts, 1);
		return;
	}
	if (result == -EIO && s->op != OP_FLUSH)
		atomic_fetch_add(&self->io_errors, 1);
	if (result == -EIO && may_fail(s)) { /* no server uses the buffer any more */
		in_doubt |= s->op != OP_READ && s->op != OP_FLUSH;
		return;
	}
	s->tainted = 1;
	in_doubt = 1;
	if (result == -ETIMEDOUT) {
		atomic_fetch_add(&self->timeouts, 1);
		return;
	}
	lost = session_lost(result) ? result : lost;
	if (result == -ESTALE && is_replaced())
		return;
	if (result == -ENOTCONN && (gave_up || is_replaced()))
		return;
	soak_report(journal, SOAK_STATUS, "client %u: op %d of block %u after %llu ms: %s: %s",
		    client_index, s->op, s->first, (unsigned long long)(soak_ms() - s->since),
		    strerror(-result), gantry_error());
}

static void done(void *arg, int result);

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void leave_file(void)
{
	const char *slash = strrchr(conf, '/');
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%.*s/run/left", (int)(slash - conf), conf);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

/* Seeded bug: leave a child process that ends only after the driver has looked for orphans. */
static void leave_process(void)
{
	if (fork())
		return;
	close_range(0, ~0u, 0);
	alarm(60);
	for (;;)
		pause();
}

/* Seeded bugs, after a write of some block has completed. */
static void stray(struct slot *s)
{
	static int left;
	pthread_t thread;

	if (bug("leak-file"))
		leave_file();
	if (bug("leak-process") && !left++)
		leave_process();
	if (bug("leak-map") && atomic_load(&self->writes) % 10 == 0)
		(void)!mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bug("leak-memory") && atomic_load(&self->writes) % 4 == 0)
		(void)!mmap(NULL, 1 << 18, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
			    -1, 0);
	if (bug("leak-thread") && atomic_load(&self->writes) % 10 == 0)
		pthread_create(&thread, NULL, idle, NULL);
	if (bug("die") && atomic_load(&self->writes) > 2000)
		_exit(0);
	if (atomic_load(&self->writes) % 500)
		return;
	if (bug("twice"))
		done(s, 0);
	if (!bug("doubled") && !bug("late"))
		return;
	s->op = OP_STRAY;
	s->n = 1;
	soak_fill(journal, s->buf, s->first, bug("late") ? s->seq + 1000 : 2);
	if (!gantry_queue_write(s->queue, s->buf, SOAK_BLOCK, (uint64_t)s->first * SOAK_BLOCK, 0,
				done, s)) {
		s->busy = 1;
		n_busy++;
	}
}

static void done(void *arg, int result)
{
	struct slot *s = arg;

	if (!s->busy) {
		soak_report(journal, SOAK_TWICE, "client %u: an IO of block %u completed twice",
			    client_index, s->first);
		return;
	}
	if (bug("forget") && s->op == OP_READ && atomic_load(&self->reads) > 300)
		return;
	s->busy = 0;
	n_busy--;
	atomic_store(&self->slot[s->index], 0);
	if (s->op == OP_FLUSH)
		flush_busy = 0;
	if (result) {
		on_failure(s, result);
		return;
	}
	switch (s->op) {
	case OP_READ:
		check_read(s);
		break;
	case OP_SETTLE:
		settle(s);
		break;
	case OP_FLUSH:
		flushed();
		break;
	case OP_STRAY:
		break;
	default:
		acknowledge(s);
		if (journal->bug[0])
			stray(s);
	}
}

/* -- submission -- */

static int submit(struct slot *s)
{
	const uint64_t offset = (uint64_t)s->first * SOAK_BLOCK,
		       bytes = (uint64_t)s->n * SOAK_BLOCK;
	int rc = 0;

	s->buf = s->tainted || (s->index & 1) ? s->copied : s->shared;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->op == OP_WRITE)
			soak_fill(journal, (char *)s->buf + i * SOAK_BLOCK, s->first + i, s->seq);
		soak_window_begin(&s->windows[i], &blocks[s->first + i]);
	}
	s->busy = 1;
	n_busy++;
	s->since = soak_ms();
	atomic_store(&self->slot[s->index], s->since);
	switch (s->op) {
	case OP_READ:
	case OP_SETTLE:
		memset(s->buf, 0xa5, bytes);
		rc = gantry_queue_read(s->queue, s->buf, bytes, offset, done, s);
		break;
	case OP_WRITE:
		rc = gantry_queue_write(s->queue, s->buf, bytes, offset, s->fua ? GANTRY_IO_FUA : 0,
					done, s);
		break;
	case OP_ZEROES:
		rc = gantry_queue_write_zeroes(s->queue, bytes, offset, s->fua ? GANTRY_IO_FUA : 0,
					       done, s);
		break;
	case OP_DISCARD:
		rc = gantry_queue_discard(s->queue, bytes, offset, done, s);
		break;
	default:
		rc = gantry_queue_flush(s->queue, done, s);
	}
	if (!rc)
		return 0;
	s->busy = 0;
	n_busy--;
	atomic_store(&self->slot[s->index], 0);
	return rc;
}

/* A rejected write has no effect: restore the journal. */
static void refused(struct slot *s, int rc, const uint32_t *before)
{
	for (uint32_t i = 0; before && i < s->n; i++)
		withdraw(s->first + i, before[i]);
	if (s->op == OP_FLUSH)
		flush_busy = 0;
	if (rc == -EAGAIN)
		return;
	lost = session_lost(rc) ? rc : lost;
	if (rc == -ENOTCONN && (gave_up || in_doubt || is_replaced()))
		return;
	if (rc == -ESTALE && is_replaced())
		return;
	soak_report(journal, SOAK_STATUS, "client %u: op %d of block %u was rejected: %s: %s",
		    client_index, s->op, s->first, strerror(-rc), gantry_error());
}

static uint32_t span(uint32_t first, uint32_t end)
{
	uint32_t n = below(10) < 6 ? 1 : 2 + (uint32_t)below(SOAK_SPAN - 1);

	return first + n > end ? end - first : n;
}

/* Every second IO goes to a small part of the blocks, so that they are soon written again. */
static uint32_t place(uint32_t begin)
{
	return begin + (uint32_t)below(below(2) ? 64 : SOAK_OWN);
}

static void start_read(struct slot *s)
{
	uint32_t begin = (uint32_t)below(SOAK_CLIENTS) * SOAK_OWN;
	int rc;

	s->op = OP_READ;
	s->first = place(begin);
	s->n = span(s->first, begin + SOAK_OWN);
	rc = submit(s);
	if (rc)
		refused(s, rc, NULL);
}

static void start_flush(struct slot *s)
{
	int rc;

	s->op = OP_FLUSH;
	s->first = s->n = 0;
	flush_busy = 1;
	for (uint32_t i = 0; i < SOAK_OWN; i++)
		flush_seen[i] = atomic_load(&blocks[client_index * SOAK_OWN + i].acked);
	rc = submit(s);
	if (rc)
		refused(s, rc, NULL);
}

/* Returns the number of blocks from `first` on, at most n, with no write in flight or in doubt. */
static uint32_t at_rest(uint32_t first, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (atomic_load(&blocks[first + i].issued) != atomic_load(&blocks[first + i].acked))
			break;
	return i;
}

static void start_write(struct slot *s)
{
	uint32_t before[SOAK_SPAN], zero = below(100) < 12;
	struct soak_block *block;
	int rc;

	s->first = place(client_index * SOAK_OWN);
	s->n = at_rest(s->first, span(s->first, (client_index + 1) * SOAK_OWN));
	if (!s->n)
		return;
	s->fua = below(1000) < journal->sync_permille;
	s->op = !zero                                         ? OP_WRITE
		: below(2) && journal->can_discard && !s->fua ? OP_DISCARD
							      : OP_ZEROES;
	s->seq = (atomic_load(&self->seq) & ~1u) + 2 + zero;
	atomic_store(&self->seq, s->seq);
	for (uint32_t i = 0; i < s->n; i++) {
		block = &blocks[s->first + i];
		before[i] = atomic_load(&block->acked);
		atomic_fetch_add(&block->n_issued, 1);
		if (zero)
			atomic_store(&block->zeroed, s->seq);
		atomic_store(&block->kills, atomic_load(&journal->target_kills));
		atomic_store(&block->issued, s->seq);
	}
	rc = submit(s);
	if (rc)
		refused(s, rc, before);
}

static void start(struct slot *s)
{
	uint64_t draw = below(1000);

	if (draw < 500)
		start_read(s);
	else if (!flush_busy && draw < 500 + journal->sync_permille / 2)
		start_flush(s);
	else
		start_write(s);
}

/* -- the session -- */

static int poll_all(void)
{
	int n = 0;

	for (unsigned i = 0; i < SOAK_QUEUES; i++)
		n += gantry_queue_poll(queues[i]);
	return n;
}

/* Sleep until a queue has work, at most for 20 ms: the driver sends commands without a signal. */
static void wait_all(void)
{
	struct pollfd fds[SOAK_QUEUES];

	for (unsigned i = 0; i < SOAK_QUEUES; i++) {
		if (gantry_queue_arm(queues[i]))
			return;
		fds[i] = (struct pollfd){.fd = gantry_queue_fd(queues[i]), .events = POLLIN};
	}
	poll(fds, SOAK_QUEUES, 20);
}

static void wait_ms(uint64_t ms)
{
	uint64_t end = soak_ms() + ms;

	while (soak_ms() < end)
		if (!poll_all())
			wait_all();
}

static void drain(void)
{
	while (n_busy)
		if (!poll_all())
			wait_all();
}

/*
 * Read each own block in doubt. Precondition: no write of this client is in flight or can reach the
 * volume later.
 */
static void settle_all(void)
{
	struct slot *s = &slots[0];
	int rc;

	enter(SOAK_SETTLING);
	in_doubt = 0;
	for (uint32_t b = client_index * SOAK_OWN;
	     b < (client_index + 1) * SOAK_OWN && !lost && !in_doubt; b++) {
		if (at_rest(b, 1))
			continue;
		s->op = OP_SETTLE;
		s->first = b;
		s->n = 1;
		rc = submit(s);
		if (rc)
			refused(s, rc, NULL);
		drain();
		if (!lost && !in_doubt && !at_rest(b, 1)) { /* torn: write it again */
			uint32_t seq = (atomic_load(&self->seq) & ~1u) + 2;

			s->op = OP_WRITE;
			s->fua = 0;
			s->seq = seq;
			atomic_store(&self->seq, seq);
			atomic_fetch_add(&blocks[b].n_issued, 1);
			atomic_store(&blocks[b].kills, atomic_load(&journal->target_kills));
			atomic_store(&blocks[b].issued, seq);
			rc = submit(s);
			if (rc)
				refused(s, rc, NULL);
			drain();
		}
	}
}

/*
 * Settle the blocks in doubt after an IO failed, such as by a timeout. What they hold is unknown as
 * long as a late write can reach the volume. So wait first until the queues have no late write.
 */
static void resolve(void)
{
	int rc;

	enter(SOAK_SETTLING);
	drain();
	for (unsigned i = 0; i < SOAK_QUEUES && !lost; i++) {
		rc = gantry_queue_fence(queues[i], -1);
		if (!rc)
			continue;
		lost = rc;
		if (!session_lost(rc) || (rc == -ESTALE && !is_replaced()))
			soak_report(journal, SOAK_STATUS, "client %u: fence: %s: %s", client_index,
				    strerror(-rc), gantry_error());
	}
	if (!lost)
		wait_ms(journal->late_ms);
	if (!lost)
		settle_all();
	if (!in_doubt && !lost)
		enter(SOAK_RUNNING);
}

static int open_queues(void)
{
	uint64_t bytes;
	char *memory = gantry_volume_buffers(volume, &bytes);
	int rc;

	for (unsigned i = 0; i < SOAK_QUEUES; i++) {
		rc = gantry_queue_open(volume, &queues[i]);
		if (rc)
			return rc;
	}
	for (unsigned i = 0; i < SOAK_SLOTS; i++) {
		slots[i].index = i;
		slots[i].queue = queues[i % SOAK_QUEUES];
		slots[i].shared = memory + (size_t)i * SOAK_SPAN * SOAK_BLOCK;
		slots[i].tainted = 0;
	}
	return 0;
}

/*
 * Open the volume. If a server ends or stops meanwhile, try again, up to the time limit for a hang.
 */
static int open_volume(void)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	int rc;

	attr.queues = SOAK_QUEUES;
	attr.depth = SOAK_DEPTH;
	attr.copy_bytes = SOAK_SPAN * SOAK_BLOCK;
	attr.buffer_bytes = (uint64_t)SOAK_SLOTS * SOAK_SPAN * SOAK_BLOCK;
	do
		rc = gantry_volume_open_role(conf, role, &attr, &volume);
	while (rc && !ending &&
	       (rc == -ENOTCONN || rc == -ETIMEDOUT || rc == -ECANCELED || rc == -EBUSY ||
		atomic_load(&journal->rejecting)));
	return rc;
}

/* Returns 0; 1: another volume has this name at the moment, or the client must end. */
static int open_session(void)
{
	static const uint8_t none[16];
	struct gantry_volume_info info;
	int rc;

	enter(SOAK_OPENING);
	rc = open_volume();
	if (rc && ending)
		return 1;
	if (!rc) {
		gantry_volume_get_info(volume, &info);
		if (memcmp(journal->uuid, none, sizeof(none)) &&
		    (info.size != (uint64_t)SOAK_BLOCKS * SOAK_BLOCK ||
		     memcmp(journal->uuid, info.uuid, sizeof(none)) ||
		     ((info.flags & GANTRY_VOLUME_VOLATILE) &&
		      journal->verifier != info.verifier))) {
			gantry_volume_close(&volume);
			if (!atomic_load(&journal->exchanged))
				soak_report(journal, SOAK_STATUS,
					    "client %u: the name has another volume", client_index);
			enter(SOAK_FOREIGN_VOLUME);
			return 1;
		}
		journal->verifier = info.verifier;
		memcpy(journal->uuid, info.uuid, sizeof(info.uuid));
		rc = open_queues();
	}
	if (rc) {
		soak_report(journal, SOAK_STATUS, "client %u: open: %s: %s", client_index,
			    strerror(-rc), gantry_error());
		enter(SOAK_ENDED);
		exit(1);
	}
	atomic_fetch_add(&self->sessions, 1);
	lost = in_doubt = gave_up = 0;
	return 0;
}

static void close_session(void)
{
	enter(SOAK_CLOSING);
	if (below(2)) {
		gave_up = 1;
		gantry_volume_give_up(volume);
	}
	for (unsigned i = 0; i < SOAK_QUEUES; i++)
		gantry_queue_close(&queues[i]);
	if (gantry_volume_close(&volume))
		soak_report(journal, SOAK_STATUS, "client %u: close: %s", client_index,
			    gantry_error());
	if (n_busy && !bug("forget"))
		soak_report(journal, SOAK_STATUS,
			    "client %u: %d IOs did not complete before the queues were closed",
			    client_index, n_busy);
}

static void run_session(void)
{
	uint64_t next = 0;
	uint32_t state;

	settle_all();
	if (!in_doubt && !lost)
		enter(SOAK_RUNNING);
	while (!lost && !ending) {
		state = atomic_load(&self->state);
		if (in_doubt) {
			resolve();
			continue;
		}
		if (atomic_load(&journal->command) == SOAK_RUN) {
			if (state == SOAK_PAUSED)
				enter(SOAK_RUNNING);
			for (unsigned i = 0;
			     i < SOAK_SLOTS && !lost && !in_doubt && soak_ms() >= next; i++)
				if (!slots[i].busy)
					start(&slots[i]);
			if (journal->pace && soak_ms() >= next)
				next = soak_ms() + journal->pace;
		} else if (!n_busy && state != SOAK_PAUSED) {
			enter(SOAK_PAUSED);
		}
		if (!poll_all())
			wait_all();
	}
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_term};

	if (argc != 6) {
		fprintf(stderr, "usage: client JOURNAL-FD INDEX CONF ROLE SEED\n");
		return 2;
	}
	journal = mmap(NULL, sizeof(*journal), PROT_READ | PROT_WRITE, MAP_SHARED,
		       (int)strtol(argv[1], NULL, 10), 0);
	if (journal == MAP_FAILED) {
		perror("journal");
		return 2;
	}
	client_index = (unsigned)strtoul(argv[2], NULL, 10) % SOAK_CLIENTS;
	conf = argv[3];
	role = argv[4];
	rng = strtoull(argv[5], NULL, 10);
	self = &journal->clients[client_index];
	blocks = journal->blocks[atomic_load(&journal->store) % SOAK_STORES];
	for (unsigned i = 0; i < SOAK_SLOTS; i++) {
		atomic_store(&self->slot[i], 0);
		slots[i].copied = aligned_alloc(SOAK_BLOCK, SOAK_SPAN * SOAK_BLOCK);
		if (!slots[i].copied)
			return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	while (!ending) {
		if (open_session()) {
			while (!ending && atomic_load(&journal->exchanged))
				poll(NULL, 0, 5);
			continue;
		}
		run_session();
		close_session();
		if (lost == -ESTALE) {
			atomic_fetch_add(&self->stale, 1);
			enter(SOAK_FOREIGN_VOLUME);
			while (!ending && atomic_load(&journal->exchanged))
				poll(NULL, 0, 5);
		}
	}
	enter(SOAK_ENDED);
	for (unsigned i = 0; i < SOAK_SLOTS; i++)
		free(slots[i].copied);
	return 0;
}
