/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane begins to fetch from a region, while the peer revokes the region, and the control thread
 * releases it and can import the next one. The test runs every interleaving of the accesses of lane
 * and control thread to shared words. Both are coroutines on one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "verbs.h"
#include "unity.h"

#define STACK 65536u
#define STEPS 64u /* more than the steps of both sides together */

static ucontext_t turns, sides[2];
static bool ended[2];
static bool switches[STEPS]; /* whether the other side continues after step n */
static unsigned now, n_steps, n_orders;
static struct vb_conn *one;

/*
 * Called before each access to a shared word. The other side can continue first, unless the word is
 * in an import other than imports[0].
 */
static void step(const void *word)
{
	if ((const char *)word < (const char *)&one->imports[1] ||
	    (const char *)word >= (const char *)&one->imports[VB_REGIONS])
		swapcontext(&sides[now], &turns);
}

#define __atomic_load_n(p, order) (step(p), __atomic_load_n(p, order))
#define __atomic_store_n(p, v, order) (step(p), __atomic_store_n(p, v, order))
#define __atomic_fetch_add(p, n, order) (step(p), __atomic_fetch_add(p, n, order))
#define __atomic_fetch_sub(p, n, order) (step(p), __atomic_fetch_sub(p, n, order))
#include "../plugins/transport/verbs-common/vb_import.c"
#undef __atomic_load_n
#undef __atomic_store_n
#undef __atomic_fetch_add
#undef __atomic_fetch_sub

static bool released, woken, reads, reads_released, again;

int vb_control_send(struct vb_conn *c, enum vb_ctrl_kind kind, const void *body, size_t len)
{
	(void)c;
	(void)body;
	(void)len;
	released = kind == VB_CTRL_RELEASED;
	reads_released |= reads;
	return 0;
}

void vb_transport_wake(struct vb_transport *t)
{
	(void)t;
	woken = true;
}

void vb_conn_fail(struct vb_conn *c, int reason)
{
	(void)c;
	(void)reason;
}

bool vb_usable(const struct vb_transport *t)
{
	(void)t;
	return true;
}

bool vb_conn_usable(const struct vb_conn *c)
{
	(void)c;
	return true;
}

int vb_pipe_want_direct(struct vb_conn *c, struct vb_import_peer *peer, uint32_t lane)
{
	(void)c;
	(void)peer;
	(void)lane;
	return 0;
}

int vb_mr_create(struct ibv_pd *pd, void *addr, uint64_t length, uint32_t rights, int local,
		 struct ibv_mr **mr_p)
{
	(void)pd;
	(void)addr;
	(void)length;
	(void)rights;
	(void)local;
	*mr_p = NULL;
	return -ENOMEM;
}

int vb_mr_destroy(struct ibv_mr **mr_p)
{
	(void)mr_p;
	return 0;
}

void vb_explain_memory(const struct vb_transport *t, const char *what, uint64_t bytes, int rc)
{
	(void)t;
	(void)what;
	(void)bytes;
	(void)rc;
}

void setUp(void)
{
	one = malloc(sizeof(*one));
	TEST_ASSERT_NOT_NULL(one);
	n_orders = 0;
	memset(switches, 0, sizeof(switches));
}

void tearDown(void)
{
	free(one);
}

static const struct vb_ctrl_region first = {
	.length = 4096, .handle = 7, .generation = 1, .rights = GANTRY_REMOTE_READ};

static void lane(void)
{
	const struct vb_msg_region ref = {
		.handle = first.handle, .generation = first.generation, .length = 64};
	struct vb_import *import = NULL;

	if (vb_fetch_begin(one, &ref, &import) == 0) {
		reads = true;
		reads_released |= released;
		step(&reads);
		reads = false;
		vb_fetch_end(import);
	}
}

static void control(void)
{
	const struct vb_ctrl_handle h = {.handle = first.handle, .generation = first.generation};
	struct vb_ctrl_keyed_region next = {.region = first};

	vb_on_revoke(one, &h);
	next.region.generation++;
	if (again && released)
		vb_on_region(one, &next);
}

/* Run both sides to their ends, and switch between them as `switches` selects. */
static void run_all(void)
{
	while (!ended[0] || !ended[1]) {
		swapcontext(&turns, &sides[now]);
		if (ended[!now])
			continue;
		TEST_ASSERT_TRUE(n_steps < STEPS);
		if (ended[now] || switches[n_steps])
			now = !now;
		n_steps++;
	}
}

static void side(unsigned i)
{
	if (i == 0)
		lane();
	else
		control();
	ended[i] = true;
	swapcontext(&sides[i], &turns);
}

static void one_order(void)
{
	static char stacks[2][STACK] __attribute__((aligned(64)));

	memset(one, 0, sizeof(*one));
	one->announced = first.generation;
	one->imports[0] = (struct vb_import){
		.conn = one, .name = name_of(first.handle, first.generation), .wire = first};
	ended[0] = ended[1] = released = woken = reads = reads_released = false;
	n_steps = now = 0;
	for (unsigned i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, getcontext(&sides[i]));
		sides[i].uc_stack = (stack_t){.ss_sp = stacks[i], .ss_size = STACK};
		makecontext(&sides[i], (void (*)(void))side, 1, i);
	}
	run_all();
	TEST_ASSERT_FALSE_MESSAGE(
		reads_released,
		"a lane reads from a region that the peer has been told is its own again");
	TEST_ASSERT_TRUE_MESSAGE(released || woken,
				 "the peer waits for its region, and nobody will look again");
	n_orders++;
}

/*
 * Select the next interleaving, like an odometer: set the last step that is false, and drop the
 * later steps. Returns false after the last interleaving.
 */
static bool next_order(void)
{
	while (n_steps > 0 && switches[n_steps - 1])
		switches[--n_steps] = false;
	if (n_steps == 0)
		return false;
	switches[n_steps - 1] = true;
	return true;
}

static void in_all_orders(bool with_another)
{
	again = with_another;
	do
		one_order();
	while (next_order());
	TEST_ASSERT_TRUE(n_orders > 1000);
}

static void fetch_and_revoke_in_all_orders(void)
{
	in_all_orders(false);
}

static void fetch_revoke_and_next_region_in_all_orders(void)
{
	in_all_orders(true);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(fetch_and_revoke_in_all_orders);
	RUN_TEST(fetch_revoke_and_next_region_in_all_orders);
	return UNITY_END();
}
