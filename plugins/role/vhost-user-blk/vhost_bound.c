/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_bound.c - limits the time for which the role lets its front end wait. Control thread.
 *
 * GET_VRING_BASE, SET_MEM_TABLE and REM_MEM_REG are answered when the requests in flight have
 * completed. A front end such as QEMU does nothing else meanwhile. A stalled target could delay the
 * answer by its io_timeout and the time for a resume. So after drain_timeout the role does not wait
 * for the requests any more:
 *
 *      drain_timeout -> revoke_all: the connection to the peer is aborted, the session pauses
 *                    -> the lane takes the IOs of the queue back -> the queue is drained
 *                    -> answer
 *      later         -> the session resumes, or the role ends
 *
 * The contract:
 *
 *      memory     The end of the connection revokes all exports. So no agent reads or writes the
 *                 memory of the guest after the answer, until IO is submitted again.
 *      in flight  A request whose IOs were taken back gets no answer. It stays marked in the memory
 *                 of SET_INFLIGHT_FD, and is taken again when the ring starts again: here, or in
 *                 another process. After REM_MEM_REG of memory that it uses, the queue is suspended
 *                 until ADD_MEM_REG adds that memory. A request that completed before the session
 *                 paused is returned. So each request is returned once.
 *      late       The reply of the peer belongs to the aborted connection, and is dropped.
 *      order      The session resumes when the peer has drained its predecessor. So a write that
 *                 was abandoned takes effect before any IO that follows, or not at all.
 *      volume     A write that was returned is not affected. The target can execute an abandoned
 *                 write twice, with the same data, or once although the guest never asks again.
 *      regions    A session that is paused exports the new regions before it resumes: the answer
 *                 does not wait for that.
 *
 * The limit needs a session with connect.resume, memory for requests in flight, and a transport
 * whose connections revoke the exports when they end. With shared memory the peers have mapped the
 * memory of the guest, and only they can end their accesses: then the role keeps waiting.
 */
#include <errno.h>

#include "vhost.h"

#define NS_PER_MS 1000000ull

static void expired(void *arg);

/*
 * Returns true if the front end waits for IO or for the end of an export. A new export of much
 * memory can take long, so it does not count while the session runs.
 */
static bool is_pending(const struct vhost_role *role)
{
	return role->drains_queue || role->step == VHOST_MEMORY_DRAIN ||
	       role->step == VHOST_MEMORY_UNEXPORT ||
	       (role->step == VHOST_MEMORY_EXPORT && role->queues[0].engine->paused);
}

void vhost_bound_start(struct vhost_role *role)
{
	role->bound = role;
	if (role->conf->drain_timeout_ns == 0)
		return;
	role->rh->after_cancel(role->rh, &role->bound);
	role->rh->after(role->rh, role->conf->drain_timeout_ns, expired, &role->bound);
}

/* Returns NULL; or why requests of a queue that drains cannot be abandoned. */
static const char *find_obstacle(const struct vhost_role *role)
{
	for (uint32_t i = 0; i < role->n_queues; i++) {
		const struct vhost_queue *queue = &role->queues[i];

		if ((queue->is_draining || queue->is_vacating) && !vhost_queue_inflight(queue))
			return "the front end keeps no memory for requests in flight";
	}
	return role->rh->engine->revoke_all(role->engine) == 0
		       ? NULL
		       : "the session cannot be resumed, or its transport cannot revoke memory "
			 "without the peers";
}

/*
 * A queue from which a region goes drains completely, because it cannot go on without the requests
 * that it has abandoned. It starts again at the end of a change when the memory contains them.
 */
static void abandon(struct vhost_queue *queue)
{
	if (queue->is_vacating)
		vhost_queue_drain(queue);
	if (queue->is_draining)
		queue->role->rh->lane_call(queue->lane, vhost_lane_abandon, queue);
}

static void expired(void *arg)
{
	struct vhost_role *role = *(struct vhost_role **)arg;
	const unsigned long long ms = role->conf->drain_timeout_ns / NS_PER_MS;
	const char *obstacle;

	if (role->is_closed || role->is_stopping)
		return;
	if (role->drains_queue || role->step != VHOST_MEMORY_STABLE)
		vhost_bound_start(role); /* the session can resume, and stall again */
	if (!is_pending(role))
		return;
	obstacle = find_obstacle(role);
	if (obstacle) {
		gantry_log_warn(role->host,
				"requests in flight are not completed in time (drain_timeout=%llu "
				"ms): the front end keeps waiting: %s",
				ms, obstacle);
		return;
	}
	gantry_log_warn(
		role->host,
		"requests in flight are not completed in time (drain_timeout=%llu ms): they "
		"are submitted again when the queue starts: check the target",
		ms);
	for (uint32_t i = 0; i < role->n_queues; i++)
		abandon(&role->queues[i]);
	vhost_regions_revoked(role);
}
