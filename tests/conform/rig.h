/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h - two ends of a transport for the conformance suite: `a` connects, `b` listens.
 *
 * The cases use nothing but struct gantry_transport_ops, so they hold for every transport. A driver
 * says which plugin, its settings, and which cases do not apply. The environment adds settings:
 * RIG_A_SETTINGS and RIG_B_SETTINGS, words "name=value" with blanks between.
 *
 * Nothing that crosses from one end to the other is taken to be there at once: whatever is waited
 * for comes within the patience of the rig (ten seconds, or RIG_PATIENCE_MS), while both devices
 * make progress and every queue that the rig opened is polled. What such a poll takes is kept, in
 * order, for rig_poll and rig_done.
 *
 * After each case everything is closed, and the process must have as many open descriptors as
 * before.
 */
#ifndef CONFORM_RIG_H
#define CONFORM_RIG_H

#include <errno.h>
#include <string.h>

#include <gantry/transport.h>

#include "fake/host.h"
#include "unity.h"

#define RIG_SETTINGS 8

/* A case that does not hold, and why. */
struct rig_gap {
	const char *name, *why;
};

struct rig_driver {
	const char *plugin;
	const char *setting[RIG_SETTINGS]; /* of both ends: "name=value", up to a NULL */
	const char *a[RIG_SETTINGS], *b[RIG_SETTINGS]; /* and of one of them */
	int one_device;                                /* both ends must be of one device */
	/* 'a' or 'b': open only this end, the other is elsewhere */
	int one_end;
	/* that b can serve, up to a NULL, the first is the usual one; NULL: any words */
	const char *const *services;
	/* that make no sense, besides those that make none anywhere */
	const char *const *no_services;
	const char *nobody; /* that is not served */
	int uncounted;      /* it need not count payload_bytes */
	/* a peer has an address, but no process and no user that could be known */
	int remote;
	unsigned slower;    /* loops of many turns are made so many times shorter */
	unsigned closed_ms; /* the death of a peer is told within this time */
	/* memory that a peer does not give back is told to be free after it; 0: never */
	unsigned revoke_ms;
	int revoke_rc;                                  /* so */
	void (*wrap)(struct gantry_transport_ops *ops); /* stand between the suite and the plugin */
	void (*begin)(void), (*end)(void);              /* before and after each case */
	void (*turn)(void);                             /* in each turn; what is late comes */
	void (*threads)(void);                          /* from now on nobody may be turning */
	const char *(*missing)(void); /* what this machine lacks for it, or NULL */
	const struct rig_gap *gaps;   /* up to a name NULL */
};

/* In the driver. */
extern struct rig_driver rig_driver;

#define RIG_MSGS 64
#define RIG_CONNS 32
#define RIG_QUEUES 64
#define RIG_LOCAL_BYTES (4u << 20)

struct rig_end {
	struct fake_host host;
	void *conf, *dev, *listener, *conn;
	struct {
		void *conn;
		int registered; /* the local memory */
	} conns[RIG_CONNS];     /* all that are not disconnected; conn is the latest */
	char settings[512];     /* of the environment */
	struct gantry_peer peer;
	int refuse;           /* what accept answers */
	const char *greeting; /* what accept sends, with the zero byte; NULL: nothing */
	int n_accept, n_connected, n_closed, n_msgs, n_up, n_down, n_revoke, n_revoked;
	int reason, revoked_rc;
	uint32_t up[RIG_MSGS], down, revoke, revoked;
	uint8_t msg[GANTRY_CTRL_MAX]; /* the last one */
	size_t msg_len;
	uint32_t msg_seq; /* messages that begin with their number, in order */
	int out_of_order;
	int disconnect_on_close; /* in the callback itself */
};

/* A queue: consumer at one end, producer at the other. */
struct rig_queue {
	uint32_t id;
	void *rx, *tx;
	int used;
	int lent;                         /* to other threads: the rig does not poll it */
	int resting;                      /* the rig does not poll the consumer */
	struct gantry_msg kept[RIG_MSGS]; /* that came while something else was waited for */
	uint64_t cookies[RIG_MSGS];
	uint32_t n_kept, n_cookies;
};

struct rig_rma {
	void *q;
};

struct rig {
	const struct gantry_transport_ops *ops;
	struct rig_end a, b;
	struct gantry_device_info info;
	struct gantry_region local; /* memory of this process that is registered on connections */
	uint32_t local_used;
	uint32_t queue_flags; /* of consumers that are opened */
	struct rig_queue queues[RIG_QUEUES];
	struct rig_rma rmas[RIG_QUEUES];
	int n_fds;
};

extern struct rig rig;

/* Memory that can be exported. */
struct rig_memory {
	struct gantry_region region;
	uint8_t *bytes;
};

/* False, and a line that says why: this machine lacks something. */
int rig_can_run(void);
int rig_fds(void);
uint64_t rig_now_ns(void);
/* The services of the driver, up to NULL. */
const char *rig_service(unsigned i);
/* Open one device, with the settings of the driver and one more, or NULL. */
void rig_open_end(struct rig_end *end, const char *setting);
/*
 * Open the devices; connect them under the usual name, with local memory registered at both ends.
 */
void rig_open(void);
void rig_connect(void);
void rig_close(void);
void rig_disconnect(struct rig_end *end);
void rig_listen(const char *service);
void rig_unlisten(void);
void rig_start_connect(const char *service);
void rig_register(struct rig_end *end);
/* Send a control message, again while it says -EAGAIN. */
int rig_ctrl(struct rig_end *end, const void *msg, size_t len);

/* Progress of both devices, and a poll of all queues of the rig. */
void rig_turn(void);
/* Turns until *what >= n; fails when they do not come in time. */
void rig_until_at(const int *what, int n, const char *file, int line);
#define rig_until(what, n) rig_until_at(&(what), n, __FILE__, __LINE__)
/* Turns until there is nothing to do. */
void rig_settle(void);
/* GANTRY_IMPORT_MAP if the transport maps regions; else 0. */
uint32_t rig_map(void);
/*
 * Both ends are connected: turns until all that either said before has been heard, as far as it is
 * said in order.
 */
void rig_fence(void);
/*
 * In a loop that waits: a turn when nothing has moved in this round; fails when nothing moves for
 * too long. *end is 0 at first. rig_late is the same without a turn, for any thread: true when it
 * is too late.
 */
void rig_wait_at(uint64_t *end, int moved, const char *file, int line);
#define rig_wait(end, moved) rig_wait_at(end, moved, __FILE__, __LINE__)
int rig_late(uint64_t *end, int moved);
/* Rounds of a loop, for this transport. */
uint32_t rig_rounds(uint32_t n);

/* The rig's own, until they are closed. On lane 0 of both ends, or on those that are said. */
struct rig_queue *rig_queue_open(struct rig_end *rx, struct rig_end *tx, uint32_t depth,
				 uint32_t max_data);
struct rig_queue *rig_queue_open_lanes(struct rig_end *rx, uint32_t rx_lane, struct rig_end *tx,
				       uint32_t tx_lane, uint32_t depth, uint32_t max_data);
/* Another producer of a consumer: a queue without rx. */
struct rig_queue *rig_queue_join(const struct rig_queue *of, struct rig_end *tx, uint32_t lane,
				 uint32_t depth);
void rig_queue_close(struct rig_queue *q);
void rig_queue_close_rx(struct rig_queue *q);
void rig_queue_close_tx(struct rig_queue *q);
/* Send, again while it says -EAGAIN. */
int rig_send(struct rig_queue *q, const struct gantry_send *send);
int rig_send_imm(struct rig_queue *q, uint64_t value);
/* What has arrived, and what the rig has kept of it before; as poll_recv. */
int rig_poll(struct rig_queue *q, struct gantry_msg *msgs, uint32_t max);
/* Take exactly one message. */
void rig_take(struct rig_queue *q, struct gantry_msg *msg);
/* Completions of sends; as poll_send. */
int rig_done(struct rig_queue *q, uint64_t *cookies, uint32_t max);
uint64_t rig_take_done(struct rig_queue *q);
/* Post receives, a buffer each or none. */
int rig_post(struct rig_queue *q, void *buf, uint32_t length, uint64_t cookie);
/* To other threads. */
void rig_lend(struct rig_queue *q);
/* A message there and taken, with nothing posted before or after: the queue is connected. */
void rig_warm(struct rig_queue *q);

/* A piece of the local memory; all of it is given back by rig_open. */
uint8_t *rig_local(uint32_t bytes);
void rig_memory_open(struct rig_memory *m, uint64_t bytes, uint32_t rights);
void rig_memory_close(struct rig_memory *m);
/* Bytes that differ at every place and with every seed. */
void rig_fill(uint8_t *p, size_t n, uint32_t seed);
int rig_filled(const uint8_t *p, size_t n, uint32_t seed);
int rig_all(const uint8_t *p, size_t n, uint8_t byte); /* they are this byte */

struct rig_rma *rig_rma_open(struct rig_end *end, uint32_t depth, uint32_t lane);
void rig_rma_close(struct rig_rma *q);
/* Submit, again while it says -EAGAIN; and start. local: from rig_local. */
int rig_rma_submit(struct rig_rma *q, const struct gantry_rma *rma);
int rig_rma(struct rig_rma *q, enum gantry_rma_op op, void *local,
	    const struct gantry_region *remote, uint64_t offset, uint32_t length, uint64_t cookie);
/* Status of the one that ends next, which must be this one. */
int rig_rma_status(struct rig_rma *q, uint64_t cookie);
/* Read or write, to its end: status. */
int rig_rma_move(struct rig_rma *q, enum gantry_rma_op op, void *local,
		 const struct gantry_region *remote, uint64_t offset, uint32_t length);

/*
 * Run a case; one that the driver excludes is ignored, with the reason. RIG_CASE in the
 * environment: run only this one.
 */
int rig_wanted(const char *name);
int rig_applies(const char *name);
void rig_gap(void);
#define RIG_CASE(f) \
	do { \
		if (rig_wanted(#f) && rig_applies(#f)) \
			RUN_TEST(f); \
		else if (rig_wanted(#f)) \
			RUN_TEST(rig_gap); \
	} while (0)

/* The cases, by file. */
void conn_cases(void);
void queue_cases(void);
void data_cases(void);
void region_cases(void);
void rma_cases(void);
void lane_cases(void);
void thread_cases(void);

#endif
