/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_peer.c - in the image: one connection, its control messages, and the consumers of the peer
 */
#include "doca_image.h"

#include <string.h>

void peer_open(struct program *program, struct peer *peer, struct doca_comch_connection *conn)
{
	const struct sim_doca_job *job = program->job;

	memset(peer, 0, sizeof(*peer));
	peer->program = program;
	peer->conn = conn;
	peer->number = sim_doca_conn(job->side);
	peer->rude_ns = sim_draw(100) < job->rude ? sim_now() + sim_draw(1u << (14 + sim_draw(9)))
						  : SIM_NEVER;
	export_open(peer);
}

struct peer *peer_of(struct program *program, struct doca_comch_connection *conn)
{
	for (struct peer *peer = program->peers; peer < program->peers + PEERS; peer++)
		if (peer->conn == conn)
			return peer;
	return NULL;
}

/* -- messages -- */

void peer_sent(struct doca_comch_task_send *task, union doca_data task_data,
	       union doca_data ctx_data)
{
	struct doca_task *t = doca_comch_task_send_as_task(task);
	struct program *program = ctx_data.ptr;
	uint32_t number = (uint32_t)task_data.u64, slot = (uint32_t)(task_data.u64 >> 32) & 0xff;
	struct peer *peer = &program->peers[task_data.u64 >> 40];

	sim_doca_done(number, (int)doca_task_get_status(t));
	peer->busy[slot] = false;
	peer->n_sending--;
	doca_task_free(t);
}

static doca_error_t alloc(struct peer *peer, const uint8_t *text, uint32_t bytes,
			  struct doca_comch_task_send **task)
{
	struct program *program = peer->program;

	if (program->server)
		return doca_comch_server_task_send_alloc_init(program->server, peer->conn, text,
							      bytes, task);
	return doca_comch_client_task_send_alloc_init(program->client, peer->conn, text, bytes,
						      task);
}

/* Submit one message. Returns false if the library has no resources at the moment. */
static bool submit(struct peer *peer, uint32_t slot)
{
	uint32_t least = peer->n_submitted == 0 ? 8 : 1,
		 bytes = least + sim_draw(1 + sim_draw(SIM_DOCA_MSG - 8)), number;
	struct doca_comch_task_send *task;
	doca_error_t result = alloc(peer, peer->texts[slot], bytes, &task);
	struct doca_task *t;

	if (result == DOCA_ERROR_NO_MEMORY || result == DOCA_ERROR_NOT_CONNECTED)
		return false;
	doca_must("alloc_init of a message", result);
	t = doca_comch_task_send_as_task(task);
	number = sim_doca_message(peer->number, peer->texts[slot], bytes);
	doca_task_set_user_data(
		t, (union doca_data){.u64 = (uint64_t)(peer - peer->program->peers) << 40 |
					    (uint64_t)slot << 32 | number});
	peer->busy[slot] = true;
	peer->n_sending++;
	peer->n_submitted++;
	result = doca_task_submit(t);
	if (result == DOCA_SUCCESS)
		return true;
	sim_doca_refused(number, (int)result);
	peer->busy[slot] = false;
	peer->n_sending--;
	peer->n_submitted--;
	doca_task_free(t);
	return false;
}

void peer_message(struct peer *peer, const uint8_t *data, uint32_t bytes)
{
	sim_doca_message_event(peer->number, data, bytes);
	peer->n_received++;
	peer->greeted = true;
}

void peer_consumer(struct peer *peer, uint32_t id, bool is_new)
{
	sim_doca_consumer_event(peer->number, id, is_new);
	for (uint32_t i = 0; i < IDS; i++)
		if (__atomic_load_n(&peer->ids[i], __ATOMIC_RELAXED) == (is_new ? 0 : id)) {
			__atomic_store_n(&peer->ids[i], is_new ? id : 0, __ATOMIC_RELAXED);
			return;
		}
}

/* -- begin and end -- */

static void step_lanes(struct peer *peer)
{
	const struct sim_doca_job *job = peer->program->job;

	if (!peer->has_lanes && peer->greeted && !peer->lost && !peer->left && job->lanes != 0) {
		peer->has_lanes = true;
		for (; peer->n_lanes < job->lanes; peer->n_lanes++)
			lane_open(&peer->lanes[peer->n_lanes], peer, peer->n_lanes);
	}
	for (uint32_t i = 0; i < peer->n_lanes; i++)
		if (!peer->lanes[i].own_pe)
			lane_step(&peer->lanes[i]);
}

void peer_step(struct peer *peer)
{
	const struct sim_doca_job *job = peer->program->job;

	step_lanes(peer);
	export_step(peer);
	if (peer->lost || peer->left)
		return;
	for (uint32_t slot = 0; slot < job->msg_tasks && peer->n_submitted < job->messages; slot++)
		if (!peer->busy[slot] && (!submit(peer, slot) || sim_draw(3) == 0))
			return;
}

bool peer_is_satisfied(const struct peer *peer)
{
	const struct sim_doca_job *job = peer->program->job;
	uint32_t sent = 0, received = 0;

	if (peer->n_submitted < job->messages || peer->n_sending != 0 ||
	    peer->n_received < job->messages)
		return false;
	for (uint32_t i = 0; i < peer->n_lanes; i++) {
		sent += __atomic_load_n(&peer->lanes[i].n_sent, __ATOMIC_RELAXED);
		received += __atomic_load_n(&peer->lanes[i].n_received, __ATOMIC_RELAXED);
	}
	return sent == job->lanes * job->sends && received == job->lanes * job->sends;
}

bool peer_lanes_end(struct peer *peer)
{
	for (uint32_t i = 0; i < peer->n_lanes; i++) {
		lane_stop(&peer->lanes[i]);
		if (!peer->lanes[i].own_pe)
			lane_step(&peer->lanes[i]);
	}
	for (uint32_t i = 0; i < peer->n_lanes; i++)
		if (!__atomic_load_n(&peer->lanes[i].is_done, __ATOMIC_ACQUIRE))
			return false;
	for (uint32_t i = 0; i < peer->n_lanes; i++)
		lane_join(&peer->lanes[i]);
	peer->n_lanes = 0;
	return true;
}

void peer_close(struct peer *peer)
{
	if (peer->n_sending != 0)
		sim_wrong("a server or client is idle, and %u messages have not completed",
			  peer->n_sending);
	export_close(peer);
	peer->conn = NULL;
}
