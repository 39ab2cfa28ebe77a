/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * litmus.c - explores every execution of a litmus test in C11, where herd7 is not installed
 *
 *     litmus FILE prints "Yes" if an execution reaches the condition `exists`, else "No"; then the
 *     numbers of executions that reached it, and that ended
 *
 * The model: each location has its stores in modification order. The view of a thread has the
 * oldest store of each location that the thread may read. A release store carries the view of its
 * thread; an acquire load merges it into the view of the loading thread. All seq_cst fences and
 * accesses share one more view. Operations run in program order: like RC11, the model has no load
 * buffering.
 *
 * The language is the subset of herd7's that the tests need, with one statement on a line, plus
 * membarrier(), a fence of all threads at once.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS = 4,
	OPS = 12,
	LOCS = 6,
	STORES = THREADS * OPS + 1,
	REGS = 8,
	TERMS = 8,
	NAME = 24,
	LINE = 256
};
enum kind { LOAD, STORE, EXCHANGE, ADD, FENCE, BARRIER, IF };
enum order { RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };

struct op {
	enum kind kind;
	enum order order;
	int loc, value, reg, end; /* reg: -1: none; end: for IF, the operation after its block */
};

struct view {
	unsigned char at[LOCS]; /* index of a store, for each location */
};

struct store {
	int value, place; /* place: position in modification order */
	bool updated;     /* an atomic update follows it directly */
	struct view view;
};

struct state {
	struct store stores[LOCS][STORES];
	int n_stores[LOCS];
	struct view now[THREADS], acquired[THREADS], released[THREADS], shared;
	int pc[THREADS], regs[THREADS][REGS];
};

static struct op program[THREADS][OPS];
static int n_ops[THREADS], n_threads, n_locs, n_regs[THREADS], n_terms, initial[LOCS];
static char locs[LOCS][NAME], regs[THREADS][REGS][NAME], line[LINE];
static struct term {
	int thread, reg, value;
} terms[TERMS];
static unsigned long n_ended, n_reached;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "litmus: %s %s\n", what, line);
	exit(2);
}

/* The index of a word in a list. max: capacity, to add the word; 0: the list must have it. */
static int find(char (*list)[NAME], int *n, int max, const char *word)
{
	for (int i = 0; i < *n; i++)
		if (strcmp(list[i], word) == 0)
			return i;
	if (*n >= max)
		fail("unknown word, or too many");
	strcpy(list[*n], word);
	return (*n)++;
}

static enum order order(const char *words)
{
	static char orders[][NAME] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"};
	char word[NAME];
	int n = SEQ_CST + 1;

	if (!words || sscanf(words, "memory_order_%23[a-z_]", word) != 1)
		fail("no order");
	return (enum order)find(orders, &n, 0, word);
}

static void access(int t, struct op *op, const char *words)
{
	static char kinds[][NAME] = {"load_explicit", "store_explicit", "exchange_explicit",
				     "fetch_add_explicit"};
	char kind[NAME], loc[NAME], reg[NAME];
	int n = ADD + 1;

	op->reg = -1;
	if (sscanf(words, "int %23[a-z0-9_] =", reg) == 1) {
		op->reg = find(regs[t], &n_regs[t], REGS, reg);
		words = strchr(words, '=') + 2;
	}
	if (sscanf(words, "atomic_%23[a-z_](%23[a-z0-9_], %d", kind, loc, &op->value) < 2)
		fail("unknown statement");
	op->kind = (enum kind)find(kinds, &n, 0, kind);
	op->loc = find(locs, &n_locs, LOCS, loc);
	op->order = order(strstr(words, "memory_order_"));
}

static void statement(int t, const char *words)
{
	static int open[OPS], n_open;
	struct op *op = &program[t][n_ops[t]];
	char reg[NAME];

	if (words[0] == '}') {
		if (n_open > 0)
			program[t][open[--n_open]].end = n_ops[t];
		return;
	}
	if (++n_ops[t] > OPS)
		fail("too many operations");
	if (sscanf(words, "if (%23[a-z0-9_] == %d) {", reg, &op->value) == 2) {
		op->kind = IF;
		op->reg = find(regs[t], &n_regs[t], 0, reg);
		open[n_open++] = n_ops[t] - 1;
	} else if (strncmp(words, "membarrier", 10) == 0) {
		op->kind = BARRIER;
	} else if (strncmp(words, "atomic_thread_fence(", 20) == 0) {
		op->kind = FENCE;
		op->order = order(words + 20);
	} else {
		access(t, op, words);
	}
}

static void condition(const char *words)
{
	for (; words; words = strchr(words + 1, '\\')) {
		int t, value;
		char reg[NAME];

		if (n_terms == TERMS ||
		    sscanf(words + 1, "%d:%23[a-z0-9_]=%d", &t, reg, &value) != 3)
			fail("unknown condition");
		terms[n_terms++] = (struct term){t, find(regs[t], &n_regs[t], 0, reg), value};
	}
}

static void read_test(FILE *file)
{
	bool comment = false;
	char loc[NAME];
	int value;

	while (fgets(line, sizeof(line), file)) {
		const char *words = line + strspn(line, "\t\n");

		if (comment || strncmp(words, "(*", 2) == 0)
			comment = !strstr(words, "*)");
		else if (strncmp(words, "exists (", 8) == 0)
			condition(words + 7);
		else if (strncmp(words, "P", 1) == 0 && n_threads < THREADS)
			n_threads++;
		else if (n_threads == 0 &&
			 sscanf(words, "{ %23[a-z0-9_] = %d; }", loc, &value) == 2)
			initial[find(locs, &n_locs, LOCS, loc)] = value;
		else if (n_threads > 0 && words[0] != '\0' && words[0] != '{')
			statement(n_threads - 1, words);
	}
}

static void join(const struct state *s, struct view *into, const struct view *from)
{
	for (int i = 0; i < n_locs; i++)
		if (s->stores[i][into->at[i]].place < s->stores[i][from->at[i]].place)
			into->at[i] = from->at[i];
}

/* Update the view of thread t, which has read the store or made it. */
static void see(struct state *s, int t, const struct op *op, int index)
{
	const struct store *stores = s->stores[op->loc];

	s->now[t].at[op->loc] = (unsigned char)index;
	if (op->order == SEQ_CST)
		s->shared.at[op->loc] = (unsigned char)index;
	if (stores[s->acquired[t].at[op->loc]].place < stores[index].place)
		s->acquired[t].at[op->loc] = (unsigned char)index;
}

static void fence(struct state *s, int t, enum order order)
{
	if (order != RELEASE)
		s->now[t] = s->acquired[t];
	if (order == SEQ_CST) {
		join(s, &s->now[t], &s->shared);
		s->shared = s->now[t];
	}
	if (order != ACQUIRE)
		s->released[t] = s->now[t];
	join(s, &s->acquired[t], &s->now[t]);
}

static void explore(const struct state *before);

static void load(struct state *s, int t, const struct op *op, int from)
{
	const struct store *store = &s->stores[op->loc][from];

	if (op->reg >= 0)
		s->regs[t][op->reg] = store->value;
	see(s, t, op, from);
	join(s, &s->acquired[t], &store->view);
	if (op->order != RELAXED && op->order != RELEASE)
		join(s, &s->now[t], &store->view);
}

/* Add a store directly after the store `behind`. */
static void put(struct state *s, int t, const struct op *op, int behind)
{
	int index = s->n_stores[op->loc]++;
	struct store *stores = s->stores[op->loc], *store = &stores[index], *old = &stores[behind];

	for (int i = 0; i < index; i++)
		if (stores[i].place > old->place)
			stores[i].place++;
	*store = (struct store){.value = op->value + (op->kind == ADD ? old->value : 0),
				.place = old->place + 1};
	see(s, t, op, index);
	store->view = op->order >= RELEASE ? s->now[t] : s->released[t];
	store->view.at[op->loc] = (unsigned char)index;
	if (op->kind != STORE) { /* the release sequence continues */
		old->updated = true;
		join(s, &store->view, &old->view);
	}
}

/* Try each store that thread t may read, or may put its own store after. */
static void choose(const struct state *before, int t, const struct op *op)
{
	const struct store *stores = before->stores[op->loc];
	struct state s;

	for (int i = 0; i < before->n_stores[op->loc]; i++) {
		if (stores[i].place < stores[before->now[t].at[op->loc]].place ||
		    (op->order == SEQ_CST &&
		     stores[i].place < stores[before->shared.at[op->loc]].place) ||
		    (op->kind != LOAD && stores[i].updated))
			continue;
		s = *before;
		if (op->kind != STORE)
			load(&s, t, op, i);
		if (op->kind != LOAD)
			put(&s, t, op, i);
		explore(&s);
	}
}

static void step(const struct state *before, int t)
{
	const struct op *op = &program[t][before->pc[t]];
	struct state s = *before;

	s.pc[t]++;
	if (op->kind <= ADD)
		choose(&s, t, op);
	else if (op->kind == FENCE)
		fence(&s, t, op->order);
	for (int i = 0; op->kind == BARRIER && i <= n_threads; i++) /* the caller first and last */
		fence(&s, (t + i) % n_threads, SEQ_CST);
	if (op->kind > ADD)
		explore(&s);
}

static void explore(const struct state *before)
{
	struct state s = *before;
	bool ended = true, reached = true; /* all threads have ended; the condition holds */

	for (int t = 0; t < n_threads; t++) {
		for (; s.pc[t] < n_ops[t] && program[t][s.pc[t]].kind == IF; s.pc[t]++) {
			const struct op *op = &program[t][s.pc[t]];

			if (s.regs[t][op->reg] != op->value)
				s.pc[t] = op->end - 1;
		}
		ended = ended && s.pc[t] == n_ops[t];
	}
	for (int t = 0; t < n_threads; t++)
		if (s.pc[t] < n_ops[t])
			step(&s, t);
	for (int i = 0; i < n_terms; i++)
		reached = reached && s.regs[terms[i].thread][terms[i].reg] == terms[i].value;
	n_ended += ended;
	n_reached += ended && reached;
}

int main(int argc, char **argv)
{
	static struct state s;
	FILE *file = argc == 2 ? fopen(argv[1], "re") : NULL;

	if (!file)
		fail("usage: litmus FILE");
	read_test(file);
	for (int i = 0; i < LOCS; i++) {
		s.stores[i][0].value = initial[i];
		s.n_stores[i] = 1;
	}
	memset(s.regs, 0xff, sizeof(s.regs)); /* -1: not loaded */
	explore(&s);
	printf("%s %lu %lu\n", n_reached ? "Yes" : "No", n_reached, n_ended);
	return 0;
}
