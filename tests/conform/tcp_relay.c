/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_relay.c - a lane relays accesses over TCP while another thread holds the lock of the front
 * lane. This file replaces pthread_mutex_trylock() of libc, so that it fails with EBUSY.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "conform/rig.h"

#define EXPORT __attribute__((visibility("default")))
#define BYTES 4096u
#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)

static int (*real_trylock)(pthread_mutex_t *);
static unsigned n_granted = UINT32_MAX; /* calls that succeed before one fails */
static unsigned n_rejected;

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex);

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	if (n_granted == 0) {
		n_rejected++;
		return EBUSY;
	}
	n_granted--;
	return real_trylock(mutex);
}

/*
 * End a owns the memory. End b imports it over one connection, as *mid_p, and exports it to end a
 * over another one.
 */
static struct gantry_region *relayed(struct rig_memory *m, struct gantry_region **mid_p,
				     void **near_p)
{
	struct gantry_region *far = NULL;
	struct gantry_token token;

	rig_connect();
	rig_memory_open(m, BYTES, BOTH);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m->region, BOTH, 3, &token));
	rig_settle();
	*near_p = rig.b.conn;
	RIG_OK(rig.ops->import_region(*near_p, &token, 0, mid_p));
	rig_connect();
	RIG_OK(rig.ops->export_region(rig.b.conn, *mid_p, BOTH, 30, &token));
	rig_settle();
	RIG_OK(rig.ops->import_region(rig.a.conn, &token, 0, &far));
	return far;
}

/*
 * Arm the lane until it has received an access. Each time, only the first trylock of the front lane
 * succeeds: the lane appends the access, but cannot send it. Returns what consumer_arm returned.
 */
static int arm_without_the_lock(struct rig_queue *q)
{
	uint64_t end = 0;
	int work = 0;

	/* without time, the control thread does not poll the lane */
	rig.b.host.now_ns = rig_now_ns();
	rig.b.host.real_clock = 0;
	rig.ops->progress(rig.b.dev);
	for (n_rejected = 0; n_rejected == 0;) {
		rig_wait(&end, 0, "an access of the peer");
		n_granted = 1;
		work = rig.ops->consumer_arm(q->rx);
		n_granted = UINT32_MAX;
		rig.ops->consumer_disarm(q->rx);
	}
	return work;
}

static void lane_with_an_unsent_access_does_not_sleep(void)
{
	struct gantry_region *mid = NULL, *far;
	struct rig_memory m;
	struct rig_queue *q;
	struct rig_rma *rma;
	uint8_t *local;
	void *near_b;

	far = relayed(&m, &mid, &near_b);
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	q->resting = 1;
	rma = rig_rma_open(&rig.a, 4, 0);
	local = rig_local(BYTES);
	rig_fill(m.bytes, BYTES, 5);
	RIG_OK(rig_rma(rma, GANTRY_RMA_READ, local, far, 0, BYTES, 7));
	RIG_RC(1, arm_without_the_lock(q), "consumer_arm with an access that is not sent");
	q->resting = 0;
	rig.b.host.real_clock = 1;
	RIG_RC(0, rig_rma_status(rma, 7), "status of the access");
	RIG_HOLDS(rig_filled(local, BYTES, 5), "memory that was read");
	rig_rma_close(rma);
	rig_queue_close(q);
	rig.ops->release_region(rig.a.conn, far);
	rig_disconnect(&rig.a);
	rig_disconnect(&rig.b);
	rig.ops->release_region(near_b, mid);
}

int main(void)
{
	*(void **)&real_trylock = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
	UNITY_BEGIN();
	RIG_CASE(lane_with_an_unsent_access_does_not_sleep);
	return UNITY_END();
}
