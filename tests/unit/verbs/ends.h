/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends.h - two ends of the transport over RDMA in one process, on the fake: `a` connects, `b`
 * listens. Tests see the internal state, and can check the invariants of the pipes between the ends
 * at any time.
 */
#ifndef UNIT_VERBS_ENDS_H
#define UNIT_VERBS_ENDS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs.h"

#include "fake/host.h"
#include "fake/verbs/verbs.h"
#include "unity.h"

#define ENDS_TURNS 2000 /* turns after which an expected event counts as missing */
#define ENDS_LOCAL (1u << 20)

struct end {
	struct fake_host host;
	char settings[256];
	struct vb_conf *conf;
	void *device, *listener;
	struct vb_conn *conn;
	int n_connected, n_closed, reason, n_up, n_down, n_revoke, n_revoked, revoked_rc;
	uint32_t up, down;          /* ids of the consumers that were opened and closed last */
	struct gantry_region local; /* registered; local memory of this end's remote accesses */
	uint8_t *bytes;             /* address of that memory */
};

/* A consumer of the end `to`, with a producer of the end `from`. */
struct queue {
	struct end *to, *from;
	struct vb_consumer *rx;
	struct vb_producer *tx;
	uint32_t id;
};

/* Memory that `owner` exports and `user` imports. */
struct shared {
	struct end *owner, *user;
	struct gantry_region region;
	uint8_t *bytes;
	struct gantry_region *imported;
	struct gantry_token token;
};

extern struct end a, b;

/*
 * Open the devices fake0 and fake1, and connect the ends. Each argument has settings "name=value
 * name=value", or is NULL: `both` for both ends, `of_a` for end a, `of_b` for end b. A test that
 * changes the fake devices does so before the call.
 */
void ends_open(const char *both, const char *of_a, const char *of_b);
/* Open the devices, without connecting the ends. */
void ends_open_devices(const char *both, const char *of_a, const char *of_b);
void ends_connect(void); /* after ends_open_devices(), and again after each ends_leave() */
void ends_close(void);
/*
 * Disconnect, let the time limit for last messages pass, and stop listening. The devices stay open.
 */
void ends_leave(void);
/* Call progress of both devices. */
void ends_turn(void);
#define ends_until(what) \
	do { \
		for (int turns_ = 0; !(what); turns_++) { \
			TEST_ASSERT_TRUE_MESSAGE(turns_ < ENDS_TURNS, "timeout: " #what); \
			ends_turn(); \
		} \
	} while (0)
void ends_settle(void); /* enough turns for any operation */

void queue_open(struct queue *q, struct end *to, uint32_t to_lane, struct end *from,
		uint32_t from_lane, uint32_t depth, uint32_t max_data);
/* Open another producer for the consumer of a queue. */
void queue_join(struct queue *q, const struct queue *of, struct end *from, uint32_t lane,
		uint32_t depth);
void queue_close(struct queue *q);
struct vb_pipe *queue_pipe(const struct queue *q);     /* end of the producer */
struct vb_pipe *queue_far_pipe(const struct queue *q); /* end of the consumer */
int queue_send(struct queue *q, uint64_t value, uint32_t flags);
int queue_send_region(struct queue *q, const struct shared *s, uint64_t offset, uint32_t length,
		      uint64_t cookie);
/* Take one message, which must have arrived. Returns its first eight bytes. */
uint64_t queue_take(struct queue *q, struct gantry_msg *msg);
/* Transfer the available credit to the producer, by a poll of each side. */
void queue_transfer_credit(struct queue *q);

void share_begin(struct shared *s, struct end *owner, struct end *user, uint64_t bytes,
		 uint32_t rights);
/* The user must have released the region, or the connection must have ended. */
void share_end(struct shared *s);

struct vb_rma *rma_open(struct end *end, uint32_t lane, uint32_t depth);
/* Submit an operation. at: offset in the local memory of `end`. Returns 0 or -errno. */
int rma_do(struct vb_rma *rma, struct end *end, enum gantry_rma_op op, uint32_t at,
	   const struct shared *s, uint64_t offset, uint32_t length, uint64_t cookie);

/* Returns the pipe at the other end that is connected to this pipe, or NULL. */
struct vb_pipe *pipe_peer(const struct vb_pipe *pipe);
/*
 * Set the counters of a message pipe to the values that they have after `messages` messages in each
 * direction, and after each end has posted `requests` requests.
 */
void pipe_begin_at(struct vb_pipe *pipe, uint32_t messages, uint32_t requests);
/* Check the invariants of all pipes between a and b. Works in any state. */
void pipes_check(void);
/* Check that no send found the receive queue empty, and that no completion was lost. */
void wire_check(void);

/* Pseudo-random numbers: draw returns one below `below`. */
uint32_t draw(uint32_t below);
void draw_seed(uint64_t seed);
void fill(uint8_t *p, size_t n, uint64_t seed);
int filled(const uint8_t *p, size_t n, uint64_t seed);

#endif
