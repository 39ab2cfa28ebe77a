/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - objects of the loop transport. Both ends of a connection are in one process and on one
 * device.
 *
 * Listeners and clients find each other in the device. The control thread makes all control calls
 * and delivers all events, so only fields that lanes access are atomic. A queue is a ring of
 * messages in ordinary memory, shared by a producer and a consumer.
 */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <sys/queue.h>

#include <gantry/copy.h>
#include <gantry/transport.h>

#include "../common/cells.h"
#include "../common/done.h"

#define LOOP_REGIONS 64u
#define LOOP_RINGS 63u /* limit of the rings of one consumer */
#define LOOP_INLINE 4096u
#define LOOP_CTRL_QUEUE 64u

struct loop_conf {
	int64_t max_depth;
	uint8_t mapped;
};

enum loop_event_type {
	LOOP_ACCEPT,
	LOOP_CONNECTED,
	LOOP_MESSAGE,
	LOOP_CONSUMER,
	LOOP_REVOKE,
	LOOP_REVOKED,
	LOOP_CLOSED
};

struct loop_event {
	struct loop_event *next;
	struct loop_conn *conn; /* receiver of the event */
	enum loop_event_type type;
	uint32_t id;
	int rc; /* LOOP_CONSUMER: 1 up, 0 down */
	uint32_t length;
	uint8_t data[];
};

struct loop_listener {
	LIST_ENTRY(loop_listener) link;
	struct loop_device *dev;
	const struct gantry_conn_events *events;
	void *arg;
	char name[64];
};

/* Mapping of the file of an exported region, through which its importers access it. */
struct loop_mapping {
	void *at;
	size_t bytes;
	uint32_t refs; /* one for the export and one for each import */
	int hold;      /* of gantry_hold(); -1: none */
};

struct loop_export {
	bool revoking;
	uint32_t handle, generation, rights, refs;
	uint64_t length, fd_offset;
	uint8_t *addr;
	/* NULL: the region has no file, and importers use the exporter's mapping */
	struct loop_mapping *mapping;
	int fd, hold_socket;                /* hold_socket: of the connection or the region */
	const struct gantry_region *region; /* atomic; NULL: unused */
};

struct loop_conn {
	struct loop_conn *next;
	struct loop_device *dev;
	struct loop_conn *peer;         /* NULL: disconnected */
	struct loop_listener *listener; /* server end: listener, until the connection is accepted */
	const struct gantry_conn_events *events;
	void *arg;
	struct gantry_peer self;
	bool open, dead;
	uint32_t n_ctrl;
	uint32_t lost; /* atomic: the connection is lost */
	uint32_t next_consumer;
	uint32_t generation; /* of the last export */
	int hold_socket;     /* of loop_hold_exports(); 0: none */
	LIST_HEAD(, loop_consumer) consumers;
	LIST_HEAD(, loop_rma) rmas;
	struct loop_export exports[LOOP_REGIONS];
};

struct loop_device {
	const struct gantry_host *host;
	const struct loop_conf *conf;
	int wake;
	bool in_progress;
	LIST_HEAD(, loop_listener) listeners;
	struct loop_conn *conns;
	struct loop_event *events, **events_end;
	uint64_t *connections;   /* counter of connections */
	struct tc_cells payload; /* bytes copied, for each queue */
};

/* One cache line. */
struct loop_msg {
	uint8_t imm[GANTRY_IMM_MAX];
	uint32_t imm_len, length;
} __attribute__((aligned(64)));

struct loop_ring {
	unsigned int refs; /* number of ends that use the ring; control thread */
	uint32_t mask, number, max_data;
	uint8_t *inline_data;
	struct loop_msg *msgs;
	/*
	 * indexed by slot: address of the data of the message; NULL: the data is inline, or there
	 * is none
	 */
	const uint8_t **regions;
	int bell;           /* duplicate of the consumer's descriptor */
	const void *thread; /* thread of the producer */
	/* local peer of the consumer; NULL: messages go through the ring. Only `thread` uses it */
	struct gantry_local_peer *peer;
	/* -- atomic, grouped by writer -- */
	uint32_t head __attribute__((aligned(64))); /* written by the producer */
	/* the producer is destroyed: no message follows */
	uint32_t gone;
	/* written by the consumer, like the fields that follow */
	uint32_t tail __attribute__((aligned(64)));
	uint32_t limit, closed, detached, asleep, copying;
};

struct loop_consumer {
	LIST_ENTRY(loop_consumer) link;
	struct loop_conn *conn;
	uint32_t id, depth, max_data, mask, n_posted, n_used, turn;
	struct gantry_recv *posts; /* all zero unless loop_post_recv_data() posts the receives */
	const void *thread;
	struct gantry_local_peer *peer; /* NULL: none */
	int bell;
	bool armed;
	uint64_t *payload; /* counter: bytes copied */
	uint64_t active;   /* atomic: bit mask of rings */
	struct loop_ring *rings[LOOP_RINGS];
};

struct loop_cookie {
	uint64_t cookie;
	uint32_t end; /* position after the message that the cookie belongs to */
};

struct loop_producer {
	struct loop_conn *conn;
	struct loop_ring *ring;
	/*
	 * head: number of the next message. end: first number that cannot be sent, as last loaded
	 */
	uint32_t head, end;
	uint32_t max_data, cookie_head, cookie_tail;
	struct loop_cookie *cookies;
	bool unrung;
};

struct loop_rma {
	LIST_ENTRY(loop_rma) link;
	struct loop_conn *conn;
	uint32_t copying;  /* atomic: the lane copies from a region or to it */
	uint64_t *payload; /* counter: bytes copied */
	struct tc_done done;
	struct {
		const uint8_t *from; /* NULL: no read is held back */
		void *to;
		uint32_t length;
		/*
	 * the read that is held back: prefetched, not yet copied; its entry in `done` is the last
	 */
	} held;
};

/* loop_device.c */
int loop_event(struct loop_conn *conn, enum loop_event_type type, uint32_t id, int rc,
	       const void *data, size_t len);
int loop_usable(const struct loop_conn *conn); /* Returns 0 or -ENOTCONN. */

/* loop_queue.c */
int loop_consumer_create(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
			 void **consumer_p);
void loop_consumer_destroy(void *consumer);
int loop_producer_create(void *conn, uint32_t id, const struct gantry_queue_attr *attr,
			 void **producer_p);
void loop_producer_destroy(void *producer);

/* loop_lane.c */
int loop_post_recv(void *consumer, uint32_t n);
int loop_post_recv_data(void *consumer, const struct gantry_recv *recvs, uint32_t n);
int loop_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max);
int loop_consumer_arm(void *consumer);
void loop_consumer_disarm(void *consumer);
int loop_consumer_fd(void *consumer);
int loop_send(void *producer, const void *imm, uint32_t imm_len, uint32_t flags);
int loop_send_data(void *producer, const struct gantry_send *send, uint32_t flags);
void loop_flush(void *producer);
void loop_ring_set_peer(struct loop_ring *r, const struct loop_consumer *c);
void loop_consumer_set_local_peer(void *consumer, struct gantry_local_peer *peer);
struct gantry_local_peer *const *loop_producer_local_peer(void *producer);
int loop_poll_send(void *producer, uint64_t *cookies, uint32_t max);

/* loop_region.c */
int loop_export(void *conn, const struct gantry_region *region, uint32_t rights, uint32_t handle,
		struct gantry_token *token_p);
int loop_import(void *conn, const struct gantry_token *token, uint32_t flags,
		struct gantry_region **region_p);
void loop_release(void *conn, struct gantry_region *region);
int loop_revoke(void *conn, uint32_t handle);
int loop_hold_exports(void *conn, int socket);
/* *fd_p: 0: none */
void loop_close_socket(int *fd_p);
/* Drop the export of this handle. Returns false if there is no such export. */
bool loop_revoked(struct loop_conn *conn, uint32_t handle);
void loop_regions_free(struct loop_conn *conn);
int loop_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
void loop_rma_destroy(void *rma);
int loop_rma_submit(void *rma, const struct gantry_rma *op);
void loop_rma_flush(void *rma);
int loop_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max);

#endif
