/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_image.h - types and functions that the files of the simulated DOCA programs share */
#ifndef SIM_DOCA_IMAGE_H
#define SIM_DOCA_IMAGE_H

#include <pthread.h>

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include "doca_scene.h"
#include "image.h"
#include "sim.h"

#define PEERS 16u /* most connections of a server at a time */
#define IDS 16u   /* most consumers of a peer */

/* A call that must return SUCCESS. */
#define OK(call) doca_must(#call, call)
void doca_must(const char *what, doca_error_t result);

struct program;
struct peer;

struct slot {
	struct lane *lane;
	struct doca_buf *buf;
	uint8_t *at;
	uint32_t task; /* number that the judge gave the task */
	struct doca_task *handle;
	bool busy, is_dropped;
};

/* A consumer and a producer. */
struct lane {
	struct peer *peer;
	uint32_t number;
	struct doca_pe *pe;
	bool own_pe, runs_thread;
	pthread_t thread;
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	struct doca_ctx *in, *out;                 /* NULL: not created, or destroyed */
	uint32_t in_queue, out_queue, consumer_id; /* numbers of the judge; id of the library */
	bool is_bad;   /* the connection ended before the lane was created */
	bool is_reset; /* a receive has failed: receives that are posted later fail, too */
	uint8_t *memory;
	size_t bytes;
	struct slot posts[SIM_DOCA_DEPTH], sends[SIM_DOCA_DEPTH];
	uint64_t again_ns; /* time at which to repeat a send that found no credit */
	uint32_t n_posted, n_sending, n_sent, n_received;
	/* two threads access wants_stop, is_done, n_sent and n_received, by __atomic */
	bool wants_stop, stops, is_done;
};

/* A map that a client exports, and the server imports. */
struct export
{
	struct doca_mmap *mmap; /* NULL: none */
	uint8_t *memory;        /* memory of the client that the map covers */
	uint64_t stop_ns;
	bool is_stopped, is_tried;
};

/* One connection. */
struct peer {
	struct program *program;
	struct doca_comch_connection *conn;          /* NULL: free */
	uint32_t number;                             /* number of the connection, from the judge */
	uint32_t n_submitted, n_sending, n_received; /* messages */
	uint8_t texts[SIM_DOCA_DEPTH][SIM_DOCA_MSG];
	bool busy[SIM_DOCA_DEPTH];
	bool greeted, lost, left, has_lanes;
	uint32_t n_lanes;
	struct lane lanes[SIM_DOCA_LANES];
	struct export export;
	uint32_t ids[IDS]; /* consumers of the peer; 0: none; accessed by __atomic */
	uint64_t rude_ns;  /* when the program breaks the connection; SIM_NEVER: it ends in order */
};

struct program {
	struct sim_doca_job *job;
	struct doca_dev *dev;
	struct doca_dev_rep *rep;
	struct doca_pe *pe;
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_ctx *ctx;
	struct peer peers[PEERS];
	doca_notification_handle_t handle; /* notification handle of the engine */
};

enum doca_ctx_states state_of(struct doca_ctx *ctx);
void on_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states before,
	      enum doca_ctx_states after);
bool is_odd(const struct sim_doca_job *job);
void pause_ns(uint64_t ns);

/* doca_peer.c */
void peer_open(struct program *program, struct peer *peer, struct doca_comch_connection *conn);
struct peer *peer_of(struct program *program, struct doca_comch_connection *conn);
/* Callbacks of the library. */
void peer_sent(struct doca_comch_task_send *task, union doca_data task_data,
	       union doca_data ctx_data);
void peer_message(struct peer *peer, const uint8_t *data, uint32_t bytes);
void peer_consumer(struct peer *peer, uint32_t id, bool is_new);
/* One step of the connection: submit messages, begin and end lanes. */
void peer_step(struct peer *peer);
/* Whether all messages were sent and received. */
bool peer_is_satisfied(const struct peer *peer);
/* End the lanes. Returns true when all lanes have ended. */
bool peer_lanes_end(struct peer *peer);
/* Free a peer whose lanes have ended and that has no message in flight. */
void peer_close(struct peer *peer);

/* doca_export.c */
void export_open(struct peer *peer);
void export_step(struct peer *peer);
void export_close(struct peer *peer);

/* doca_lane.c */
void lane_open(struct lane *lane, struct peer *peer, uint32_t number);
/*
 * One step of a lane. Called by the thread of the lane, or, if the lane has none, by the thread of
 * the connection. Returns true when the lane has ended.
 */
bool lane_step(struct lane *lane);
void lane_stop(struct lane *lane);
/* Join the thread of a lane that has ended. */
void lane_join(struct lane *lane);

#endif
