/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - see judge.h; the algorithm of Gibbons and Korach checks each register by the zones of
 * its values
 */
#include "judge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "topology.h"

#define OPS 8192u
#define BLOCKS 64u /* most blocks of one operation */
#define QUEUES 8u  /* most queues of a client */
#define EVENTS 256u

struct op {
	uint32_t client, session, queue;
	enum sim_op kind;
	uint32_t block, n_blocks;
	uint64_t value;
	uint64_t begin, end; /* counted by `moment`; end 0: the operation has not ended */
	uint64_t began_ns, ended_ns;
	int rc;
	uint64_t words[BLOCKS];
};

static struct op ops[OPS];
/* sessions and volumes are indexed by client */
static uint32_t n_ops, sessions[64], volumes[64], last_session;
static uint64_t opened[64]; /* by client: the moment at which it began to open its session */
static uint64_t moment, last_value;
static struct start {
	uint64_t at;      /* moment */
	uint32_t volumes; /* bit mask */
	uint64_t opened;  /* of a start: the moment at which its client began to open the session */
	uint32_t client;  /* of the start of a guest: the only client that it concerns; 0: all */
} starts[EVENTS], cuts[EVENTS];
static uint32_t n_starts, n_cuts, n_fences;
/* fences that returned 0 */
static struct fence {
	uint32_t session, queue;
	uint64_t begin, end; /* moments */
} fences[EVENTS];
static uint64_t session_ended[EVENTS * 4]; /* by session: when it ended; 0: it has not ended */
static char wrong[512];
static bool writes_repeat, volumes_joined;
static uint32_t guest_client; /* 0: none */

void sim_wrong(const char *format, ...)
{
	va_list ap;

	if (wrong[0] != 0)
		return;
	va_start(ap, format);
	vsnprintf(wrong, sizeof(wrong), format, ap);
	va_end(ap);
	sim_pause();
}

/* The text of a violation that was found at the end of the run. */
static const char *broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *broken(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(wrong, sizeof(wrong), format, ap);
	va_end(ap);
	return wrong;
}

void sim_judge_begin(bool may_repeat, bool joined, uint32_t guest)
{
	writes_repeat = may_repeat || guest != 0;
	volumes_joined = joined;
	guest_client = guest;
	n_ops = n_starts = n_cuts = n_fences = last_session = 0;
	moment = last_value = 0;
	memset(sessions, 0, sizeof(sessions));
	memset(volumes, 0, sizeof(volumes));
	memset(session_ended, 0, sizeof(session_ended));
	wrong[0] = 0;
}

uint64_t sim_new_value(void)
{
	return ++last_value;
}

/* Whether the operation returns contents of blocks. */
static bool reads(const struct op *op)
{
	return op->kind == SIM_READ || op->kind == SIM_READ_LIST || op->kind == SIM_EXTENTS;
}

uint32_t sim_op_begin(uint32_t client, uint32_t queue, enum sim_op kind, uint32_t block,
		      uint32_t n_blocks, uint64_t value)
{
	struct op *op = &ops[n_ops];

	if (n_ops == OPS || n_blocks > BLOCKS)
		sim_fail("the history is full");
	block += volumes[client] * SIM_VOLUME_BLOCKS;
	*op = (struct op){.client = client,
			  .session = sessions[client],
			  .queue = queue,
			  .kind = kind,
			  .block = block,
			  .n_blocks = n_blocks,
			  .value = value,
			  .begin = ++moment,
			  .began_ns = sim_now()};
	sim_note((uint64_t)kind << 32 ^ block << 8 ^ value);
	return n_ops++;
}

void sim_op_end(uint32_t number, int rc, const uint64_t *words)
{
	struct op *op = &ops[number];

	if (op->end != 0) {
		sim_wrong("operation %u completed twice", number);
		return;
	}
	op->end = ++moment;
	op->ended_ns = sim_now();
	op->rc = rc;
	if (reads(op) && rc == 0)
		memcpy(op->words, words, op->n_blocks * sizeof(*words));
	sim_note((uint64_t)number << 16 ^ (uint64_t)(uint32_t)rc);
}

void sim_session_opens(uint32_t client)
{
	opened[client] = ++moment;
}

/*
 * From now on, no session with this volume that ended before the new session was opened has any
 * effect, whichever client it belonged to.
 */
static void add_session(uint32_t client, uint32_t volume, uint32_t concerned)
{
	if (n_starts == EVENTS || last_session + 1 == EVENTS * 4)
		sim_fail("too many sessions");
	starts[n_starts++] = (struct start){.at = ++moment,
					    .volumes = volumes_joined ? 3 : 1u << volume,
					    .opened = opened[client],
					    .client = concerned};
	volumes[client] = volume;
	sessions[client] = ++last_session;
}

void sim_session_started(uint32_t client, uint32_t volume)
{
	add_session(client, volume, 0);
}

/* A role executes the requests of a guest that was killed until it serves the next guest. */
void sim_guest_started(uint32_t client, uint32_t volume)
{
	sim_judge_ended(client);
	sim_session_opens(client);
	add_session(client, volume, client);
}

uint64_t sim_fence_begin(void)
{
	return ++moment;
}

void sim_fence_end(uint32_t client, uint32_t queue, uint64_t begin)
{
	if (n_fences < EVENTS)
		fences[n_fences++] = (struct fence){.session = sessions[client],
						    .queue = queue,
						    .begin = begin,
						    .end = ++moment};
}

void sim_judge_ended(uint32_t client)
{
	session_ended[sessions[client]] = ++moment;
}

void sim_judge_power_cut(uint32_t of_volumes)
{
	if (n_cuts == EVENTS)
		sim_fail("too many power cuts");
	cuts[n_cuts++] = (struct start){.at = ++moment, .volumes = of_volumes};
}

void sim_judge_store(uint32_t block, uint64_t word)
{
	volumes[0] = 0;
	sim_op_end(sim_op_begin(0, 0, SIM_READ, block, 1, 0), 0, &word);
}

const char *sim_judge_verdict_now(void)
{
	return wrong[0] != 0 ? wrong : NULL;
}

static enum sim_result result_of(const struct op *op)
{
	if (op->end == 0)
		return SIM_R_NONE;
	switch (-op->rc) {
#define SIM_RESULT(name, err) \
	case err: \
		return SIM_R_##name;
		SIM_RESULT_LIST(SIM_RESULT)
#undef SIM_RESULT
	default:
		return SIM_R_OTHER;
	}
}

uint32_t sim_judge_count(enum sim_op kind, enum sim_result result)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_ops; i++)
		n += ops[i].kind == kind && result_of(&ops[i]) == result;
	return n;
}

/* -- the history of one block -- */

static bool has_block(const struct op *op, uint32_t block)
{
	return block >= op->block && block < op->block + op->n_blocks;
}

static bool writes(const struct op *op, uint32_t block)
{
	return !reads(op) && op->kind != SIM_FLUSH && has_block(op, block);
}

static bool concerns(const struct start *event, uint32_t block)
{
	return event->volumes & 1u << (block / SIM_VOLUME_BLOCKS);
}

/* Whether the operation can have taken effect. */
static bool may_count(const struct op *op)
{
	return op->end == 0 || op->rc != -ECANCELED;
}

static bool is_acked(const struct op *op)
{
	return op->end != 0 && op->rc == 0;
}

/* Whether the start of a session ends the writes of another session that has ended. */
static bool ends_writes(const struct start *s, const struct op *w, uint32_t block)
{
	if (!concerns(s, block) || (s->client != 0 && s->client != w->client))
		return false;
	/*
	 * without data, a request ends when it times out: the session of the role delays writes
	 * that overlap it, but not the next guest
	 */
	return w->client != guest_client || w->value != 0;
}

/* Whether an acknowledged write shows that this earlier write does not take effect any more. */
static bool supersedes(const struct op *later, const struct op *w, uint32_t block)
{
	return writes(later, block) && is_acked(later) &&
	       (later->session == w->session ||
		(w->client == guest_client && later->client == guest_client));
}

/* Returns the last moment at which a write can take effect. */
static uint64_t last_moment(const struct op *w, uint32_t block)
{
	uint64_t reported = w->end, ended = session_ended[w->session], last = UINT64_MAX;

	if (is_acked(w))
		return w->end;
	if (reported == 0)
		reported = ended != 0 ? ended : UINT64_MAX;
	for (uint32_t i = 0; i < n_ops; i++)
		if (supersedes(&ops[i], w, block) && ops[i].begin > reported && ops[i].end < last)
			last = ops[i].end;
	for (uint32_t i = 0; w->rc == -ETIMEDOUT && i < n_fences; i++)
		if (fences[i].session == w->session && fences[i].queue == w->queue &&
		    fences[i].begin > reported && fences[i].end < last)
			last = fences[i].end;
	for (uint32_t i = 0; ended != 0 && i < n_starts; i++)
		if (starts[i].opened > ended && starts[i].at < last &&
		    ends_writes(&starts[i], w, block))
			last = starts[i].at;
	return last;
}

/*
 * The zone of a value, from the operations that wrote the value or returned it. first_end: the
 * earliest end of such an operation; for a write without acknowledgement, its last_moment(). If
 * writes_repeat is set, the ends of reads do not count.
 * last_begin: the latest begin. born: begin of the write.
 *
 * If first_end < last_begin, the block held the value from first_end to last_begin. Otherwise all
 * these operations overlap, and the block held the value at a moment from last_begin to first_end.
 */
struct zone {
	uint64_t value, first_end, last_begin, born;
	bool took_effect; /* a write of it was acknowledged, or a read returned it */
};

static struct zone zones[2 * OPS];
static uint32_t n_zones;

static struct zone *find_zone(uint64_t value)
{
	for (uint32_t i = 0; i < n_zones; i++)
		if (zones[i].value == value)
			return &zones[i];
	return NULL;
}

/* A part of the history, between two power cuts. */
struct epoch {
	uint64_t from, to; /* moments; from 0: the beginning of the run */
};

static void add_writes(uint32_t block, const struct epoch *epoch)
{
	n_zones = 0;
	for (uint32_t i = 0; i < n_ops; i++) {
		const struct op *w = &ops[i];
		uint64_t last;

		if (!writes(w, block) || !may_count(w) || w->value == 0 || w->begin >= epoch->to)
			continue;
		last = last_moment(w, block);
		if (last > epoch->from)
			zones[n_zones++] = (struct zone){w->value, last, w->begin, w->begin,
							 is_acked(w) && w->end < epoch->to};
	}
}

/* -- power cuts -- */

/*
 * Whether a flush with this result reports that writes were lost. A flush that timed out or was
 * canceled does not show whether the writes that it covers are stable; a later flush shows it.
 */
static bool reports_loss(int rc)
{
	return rc != 0 && rc != -ETIMEDOUT && rc != -ECANCELED;
}

/*
 * Whether a flush of this queue after the cut covers `w` and succeeded before any flush of the
 * queue reported a loss.
 */
static bool is_confirmed_by(const struct op *w, uint64_t cut, uint32_t queue)
{
	uint64_t failed = UINT64_MAX, confirmed = UINT64_MAX;

	for (uint32_t i = 0; i < n_ops; i++) {
		const struct op *f = &ops[i];

		if (f->kind != SIM_FLUSH || f->session != w->session || f->queue != queue ||
		    f->end <= cut)
			continue;
		if (reports_loss(f->rc) && f->end < failed)
			failed = f->end;
		if (f->rc == 0 && f->begin > w->end && f->end < confirmed)
			confirmed = f->end;
	}
	return confirmed < failed;
}

/*
 * Whether, after the cut, a flush of any queue of the session of `w` covered `w` and succeeded
 * before a flush of that queue reported a loss. Each queue reports a loss separately: flushes that
 * succeed after the report do not cover the lost writes.
 */
static bool is_confirmed_later(const struct op *w, uint64_t cut)
{
	for (uint32_t queue = 0; queue < QUEUES; queue++)
		if (is_confirmed_by(w, cut, queue))
			return true;
	return false;
}

/*
 * Whether the write was on the medium at the power cut, or a flush after the power cut confirmed
 * that it is.
 */
static bool is_stable(const struct op *w, uint64_t cut)
{
	if (!is_acked(w) || w->end > cut)
		return false;
	if (w->kind == SIM_FUA || w->kind == SIM_ZERO_FUA)
		return true;
	/* a flush after an earlier cut does not cover what that cut has lost */
	for (uint32_t i = 0; i < n_cuts; i++)
		if (cuts[i].at > w->end && cuts[i].at < cut)
			cut = cuts[i].at;
	for (uint32_t i = 0; i < n_ops; i++)
		if (ops[i].kind == SIM_FLUSH && is_acked(&ops[i]) && ops[i].session == w->session &&
		    ops[i].begin > w->end && ops[i].end < cut)
			return true;
	return is_confirmed_later(w, cut);
}

/* Whether the block had a write that a power cut can tear. */
static bool may_be_torn(uint32_t block, uint64_t cut)
{
	for (uint32_t i = 0; i < n_ops; i++)
		if (writes(&ops[i], block) && may_count(&ops[i]) && ops[i].begin < cut &&
		    !is_stable(&ops[i], cut))
			return true;
	return false;
}

/*
 * Returns a stable write that follows every write of this value. NULL: there is none, so the block
 * can have this value after the power cut.
 */
static const struct op *stable_after(uint64_t value, uint32_t block, uint64_t cut)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < n_ops; i++)
		if (writes(&ops[i], block) && ops[i].value == value && may_count(&ops[i]) &&
		    ops[i].begin < cut) {
			uint64_t at = last_moment(&ops[i], block);

			last = at > last ? at : last;
		}
	for (uint32_t i = 0; i < n_ops; i++)
		if (writes(&ops[i], block) && ops[i].value != value && ops[i].begin > last &&
		    is_stable(&ops[i], cut))
			return &ops[i];
	return NULL;
}

/*
 * Returns a write of zeroes that was acknowledged while the block held this value. NULL: there is
 * none.
 */
static const struct op *zeroes_within(const struct zone *z, uint32_t block)
{
	for (uint32_t i = 0; i < n_ops; i++)
		if (ops[i].value == 0 && writes(&ops[i], block) && is_acked(&ops[i]) &&
		    ops[i].begin > z->first_end && ops[i].end < z->last_begin)
			return &ops[i];
	return NULL;
}

static const char *compare_zones(uint32_t block)
{
	for (uint32_t i = 0; i < n_zones; i++) {
		const struct op *zeroes = zones[i].took_effect ? zeroes_within(&zones[i], block)
							       : NULL;

		if (zeroes)
			return broken(
				"block %u: value %llu is still read after zeroes (operation %u) were acknowledged",
				block, (unsigned long long)zones[i].value,
				(unsigned)(zeroes - ops));
	}
	for (uint32_t i = 0; i < n_zones; i++)
		for (uint32_t k = 0; k < n_zones; k++) {
			const struct zone *a = &zones[i], *b = &zones[k];

			if (i == k || !a->took_effect || !b->took_effect ||
			    a->first_end >= a->last_begin)
				continue;
			/*
			 * The block held the value of `a` during the whole zone of `a`. First
			 * error: it held the value of `b` during the whole zone of `b`, which
			 * overlaps the zone of `a`. Second error: all operations of `b` overlap,
			 * and the time that they have in common, in which the block held the value
			 * of `b`, lies within the zone of `a`.
			 */
			if (b->first_end < b->last_begin && b->first_end < a->last_begin &&
			    a->first_end < b->last_begin && i < k)
				return broken("block %u: values %llu and %llu were both there",
					      block, (unsigned long long)a->value,
					      (unsigned long long)b->value);
			if (b->first_end >= b->last_begin && b->last_begin > a->first_end &&
			    b->first_end < a->last_begin)
				return broken(
					"block %u: value %llu is still read after value %llu was acknowledged",
					block, (unsigned long long)a->value,
					(unsigned long long)b->value);
		}
	return NULL;
}

/* Whether a write of zeroes, or the initial state, explains that this read returned 0. */
static bool zero_is_possible(const struct op *r, uint32_t block, const struct epoch *epoch)
{
	for (int z = -1; z < (int)n_ops; z++) {
		uint64_t last = 0;
		bool hidden = false;

		if (z >= 0 && (!writes(&ops[z], block) || ops[z].value != 0 ||
			       !may_count(&ops[z]) || ops[z].begin > r->end))
			continue;
		if (z >= 0)
			last = last_moment(&ops[z], block);
		if (last < epoch->from) {
			if (stable_after(0, block, epoch->from))
				continue;
			last = epoch->from;
		}
		for (uint32_t i = 0; i < n_ops && !hidden; i++)
			hidden = writes(&ops[i], block) && is_acked(&ops[i]) && ops[i].value != 0 &&
				 ops[i].begin > last && ops[i].end < r->begin;
		if (!hidden)
			return true;
	}
	return false;
}

/*
 * Add a value that the power cut before this epoch has left. Returns NULL, or the reason why the
 * power cut cannot have left it.
 */
static const char *add_left(const struct op *r, uint32_t block, uint64_t value,
			    const struct epoch *epoch)
{
	const struct op *w;
	struct zone *z;

	if (epoch->from == 0)
		return broken(
			"block %u: a read (operation %u) returned value %llu, which was not written there",
			block, (unsigned)(r - ops), (unsigned long long)value);
	w = stable_after(value, block, epoch->from);
	if (w)
		return broken(
			"block %u: a power cut has lost value %llu (operation %u), which was stable: value %llu is there",
			block, (unsigned long long)w->value, (unsigned)(w - ops),
			(unsigned long long)value);
	z = &zones[n_zones++];
	*z = (struct zone){value, epoch->from, r->begin, 0, true};
	return NULL;
}

static const char *add_read(const struct op *r, uint32_t block, const struct epoch *epoch)
{
	uint64_t value = r->words[block - r->block];
	struct zone *z = find_zone(value);

	if (value == UINT64_MAX && (epoch->from == 0 || !may_be_torn(block, epoch->from)))
		return broken("block %u: a read (operation %u) returned parts of several writes",
			      block, (unsigned)(r - ops));
	if (value == 0 && zero_is_possible(r, block, epoch))
		return NULL;
	if (value == 0)
		return broken("block %u: a read (operation %u) returned 0 after a write", block,
			      (unsigned)(r - ops));
	if (!z)
		return value == UINT64_MAX ? NULL : add_left(r, block, value, epoch);
	if (z->born > r->end)
		return broken(
			"block %u: a read (operation %u) returned value %llu before it was written",
			block, (unsigned)(r - ops), (unsigned long long)value);
	z->took_effect = true;
	if (r->end < z->first_end && !writes_repeat)
		z->first_end = r->end;
	if (r->begin > z->last_begin)
		z->last_begin = r->begin;
	return NULL;
}

static const char *judge_epoch(uint32_t block, const struct epoch *epoch)
{
	const char *bad = NULL;

	add_writes(block, epoch);
	for (uint32_t i = 0; i < n_ops && !bad; i++) {
		const struct op *r = &ops[i];

		if (reads(r) && is_acked(r) && has_block(r, block) &&
		    r->words[block - r->block] != SIM_UNKNOWN && r->begin >= epoch->from &&
		    r->end <= epoch->to)
			bad = add_read(r, block, epoch);
	}
	return bad ? bad : compare_zones(block);
}

static const char *judge_block(uint32_t block)
{
	struct epoch epoch = {0, 0};
	const char *bad = NULL;

	for (uint32_t k = 0; k <= n_cuts && !bad; k++) {
		if (k < n_cuts && !concerns(&cuts[k], block))
			continue;
		epoch.to = k < n_cuts ? cuts[k].at : UINT64_MAX;
		bad = judge_epoch(block, &epoch);
		epoch.from = epoch.to;
	}
	return bad;
}

const char *sim_judge_verdict(void)
{
	uint32_t blocks = 0;

	if (wrong[0] != 0)
		return wrong;
	for (uint32_t i = 0; i < n_ops; i++)
		if (ops[i].block + ops[i].n_blocks > blocks)
			blocks = ops[i].block + ops[i].n_blocks;
	for (uint32_t block = 0; block < blocks; block++) {
		const char *bad = judge_block(block);

		if (bad)
			return bad;
	}
	return NULL;
}

const char *sim_judge_calm(uint32_t of_volumes, uint64_t most_ns)
{
	for (uint32_t i = 0; i < n_ops; i++) {
		const struct op *op = &ops[i];

		if (!(of_volumes & 1u << (op->block / SIM_VOLUME_BLOCKS)))
			continue;
		if (op->end == 0 || op->rc != 0)
			return broken("operation %u failed with %d, although nothing was wrong", i,
				      op->end != 0 ? op->rc : 1);
		if (op->ended_ns - op->began_ns > most_ns)
			return broken("operation %u took %.3f ms, although nothing was wrong", i,
				      (double)(op->ended_ns - op->began_ns) / 1e6);
	}
	return NULL;
}

void sim_judge_print(void)
{
	static const char *const names[SIM_OPS] = {
		"read",    "write",     "write FUA",  "flush",  "write zeroes", "write zeroes FUA",
		"discard", "read list", "write list", "extents"};

	for (uint32_t i = 0; i < n_ops; i++) {
		const struct op *op = &ops[i];

		fprintf(sim_out, "%4u %10.3f us - ", i, (double)op->began_ns / 1e3);
		if (op->end != 0)
			fprintf(sim_out, "%10.3f us", (double)op->ended_ns / 1e3);
		else
			fprintf(sim_out, "             ");
		fprintf(sim_out, " client %u queue %u %s blocks %u+%u value %llu rc %d", op->client,
			op->queue, names[op->kind], op->block, op->n_blocks,
			(unsigned long long)op->value, op->end != 0 ? op->rc : 1);
		for (uint32_t k = 0; reads(op) && op->rc == 0 && k < op->n_blocks; k++)
			fprintf(sim_out, " [%lld]", (long long)op->words[k]);
		fputc('\n', sim_out);
	}
}
