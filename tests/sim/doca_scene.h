/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_scene.h - `./dev sim doca`: a Comch server, clients, their fast path, and what their
 * programs report to the judge
 *
 *     doca_run.c     draws scenarios; starts processes, injects faults
 *     doca_judge.c   the history, and the check against gantry-doca(7) and the headers
 *     doca_image.c   in the image: the programs, which are a server or a client
 *     doca_peer.c    in the image: one connection and its control messages
 *     doca_export.c  in the image: a map that a client exports to the server
 *     doca_lane.c    in the image: one consumer and one producer of a connection, with their memory
 */
#ifndef SIM_DOCA_SCENE_H
#define SIM_DOCA_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_DOCA_CLIENTS 3u
#define SIM_DOCA_LANES 2u  /* lanes of a connection, at each side */
#define SIM_DOCA_MSG 256u  /* bytes of a message, at most */
#define SIM_DOCA_BUF 4096u /* bytes of a buffer, at most */
#define SIM_DOCA_IMM 32u
#define SIM_DOCA_DEPTH 16u /* most tasks of one kind in flight, of a lane or a connection */
#define SIM_DOCA_BLOB 512u /* bytes of an export descriptor, at most */

/*
 * How programs use the library. Both sides of a run have the same values, except for `side`,
 * `sessions` and `threads`.
 */
struct sim_doca_job {
	uint32_t side; /* 0: the server; 1 .. : a client */
	/* connections of a client, one after the other; server: how often its context starts */
	uint32_t sessions;
	uint32_t messages; /* messages of a connection, in each direction */
	uint32_t msg_tasks, recv_queue;
	uint32_t lanes, sends;         /* sends: of each producer */
	uint32_t posts, depth;         /* most posted receives; most sends in flight */
	uint32_t buf_bytes, imm_bytes; /* bytes of a receive: its buffer; most immediate data */
	uint32_t data_bytes;           /* longest send */
	uint32_t think_ns;             /* longest pause */
	/*
	 * each lane has a thread and an engine; else all lanes use the engine of the connection
	 */
	bool threads;
	bool exports;  /* clients export a map, which the server writes */
	uint32_t rude; /* percent of connections that the program breaks at any moment */
	/*
	 * percent of tasks that the program submits wrongly, so that the library must reject them,
	 * or frees while they are in flight
	 */
	uint32_t odd;
	volatile bool stop; /* set by the simulator: the program ends in order */
};

/* In the image: run the program that a struct sim_doca_job describes, then end its process. */
void *sim_image_doca(void *job);

/* -- in the simulator: the history -- */

/* The program has got a connection. Returns the number of this end. */
uint32_t sim_doca_conn(uint32_t side);
/* The program is about to end the connection: it gets no further event of it. */
void sim_doca_leave(uint32_t conn);
/* The program has got a disconnection event, or the context of a client has stopped by itself. */
void sim_doca_lost(uint32_t conn);

enum sim_doca_kind { SIM_DOCA_MESSAGE, SIM_DOCA_SEND, SIM_DOCA_RECV, SIM_DOCA_KINDS };

/* The program is about to submit a message: fills `data`. Returns the number of the task. */
uint32_t sim_doca_message(uint32_t conn, uint8_t *data, uint32_t bytes);
void sim_doca_message_event(uint32_t conn, const uint8_t *data, uint32_t bytes);

/* The program has created a queue; `id` is the id of the library. Returns the queue's number. */
uint32_t sim_doca_queue(uint32_t conn, bool consumer, uint32_t id);
void sim_doca_queue_stop(uint32_t queue);
/* The program has got an event about a consumer of the peer. */
void sim_doca_consumer_event(uint32_t conn, uint32_t id, bool is_new);

/* The program is about to submit a send to the peer's consumer `to`: fills data and imm. */
uint32_t sim_doca_send(uint32_t producer, uint32_t to, uint8_t *data, uint32_t bytes, uint8_t *imm,
		       uint32_t imm_bytes);
uint32_t sim_doca_post(uint32_t consumer);
/* A receive has completed with success; called before sim_doca_done(). */
void sim_doca_arrived(uint32_t task, uint32_t from, const uint8_t *data, uint32_t bytes,
		      const uint8_t *imm, uint32_t imm_bytes);

/* doca_task_submit() has returned this error. A task has completed with this error. */
void sim_doca_refused(uint32_t task, int error);
void sim_doca_done(uint32_t task, int error);
/* The program has freed the task in flight: its callback must not run. */
void sim_doca_dropped(uint32_t task);

/*
 * Publish an export descriptor of this end. Get the export descriptor of the peer; it has 0 bytes
 * until the peer has published one.
 */
void sim_doca_export(uint32_t conn, const void *blob, size_t bytes);
size_t sim_doca_exported(uint32_t conn, uint8_t *blob);

/* A callback has reported the state of a context. key: a constant and unique address. */
void sim_doca_state(const void *key, int before, int after);
void sim_doca_destroyed(const void *key);
/* The program has destroyed all its objects and ends in order. */
void sim_doca_closed(uint32_t side);

#endif
