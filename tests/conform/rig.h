/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h - two ends of a transport for the conformance suite: `a` connects, `b` listens.
 *
 * The cases use nothing but struct gantry_transport_ops, so they apply to every transport. A driver
 * selects the plugin, its settings, and the cases that do not apply. The environment adds settings:
 * RIG_A_SETTINGS and RIG_B_SETTINGS, words "name=value" separated by spaces.
 *
 * No case assumes that a message or event reaches the other end at once. Each expected event must
 * occur within the time limit of the rig (ten seconds, or RIG_PATIENCE_MS), while both devices make
 * progress and every queue that the rig opened is polled. The rig keeps the results of such polls,
 * in order, for rig_poll and rig_done.
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

/* A case that does not apply, and why. */
struct rig_gap {
	const char *name, *why;
};

struct rig_driver {
	const char *plugin;
	const char *setting[RIG_SETTINGS]; /* of both ends: "name=value", up to a NULL */
	const char *a[RIG_SETTINGS], *b[RIG_SETTINGS]; /* and of one of them */
	int one_device;                                /* both ends must use one device */
	/* 'a' or 'b': open only this end, the other one is in another process */
	int one_end;
	/* services that b can serve, up to a NULL, the first is the usual one; NULL: any name */
	const char *const *services;
	/* invalid service names, besides those that are invalid for every transport */
	const char *const *no_services;
	const char *nobody; /* a service without a listener */
	int uncounted;      /* it need not count payload_bytes */
	/* a peer has an address, but its process and user are unknown */
	int remote;
	unsigned slower;    /* divides the number of rounds of long loops */
	unsigned closed_ms; /* limit of the time from the death of a peer to `closed`, in ms */
	/*
	 * time after which a region is reported as revoked although the peer keeps it, in ms; 0:
	 * never
	 */
	unsigned revoke_ms;
	int revoke_rc;                                  /* the status of that report */
	void (*wrap)(struct gantry_transport_ops *ops); /* replace operations of the plugin */
	void (*begin)(void), (*end)(void);              /* before and after each case */
	void (*turn)(void);                             /* in each turn; delivers delayed work */
	void (*threads)(void);        /* from now on several threads run: there may be no turns */
	const char *(*missing)(void); /* what this machine lacks for the transport, or NULL */
	const struct rig_gap *gaps;   /* up to a name NULL */
};

/* Defined by the driver. */
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
	int refuse;           /* result of accept */
	const char *greeting; /* data that accept sends, with the zero byte; NULL: none */
	int n_accept, n_connected, n_closed, n_msgs, n_up, n_down, n_revoke, n_revoked;
	int reason, revoked_rc;
	uint32_t up[RIG_MSGS], down, revoke, revoked;
	uint8_t msg[GANTRY_CTRL_MAX]; /* the last control message */
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
	int lent;                         /* used by other threads: the rig does not poll it */
	int resting;                      /* the rig does not poll the consumer */
	struct gantry_msg kept[RIG_MSGS]; /* that arrived while the rig waited for another event */
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
	uint32_t queue_flags; /* of open consumers */
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

/* Returns false and prints the reason if this machine lacks something. */
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
/* Send a control message; retry while send_ctrl returns -EAGAIN. */
int rig_ctrl(struct rig_end *end, const void *msg, size_t len);

/* One turn: progress of both devices, and a poll of all queues of the rig. */
void rig_turn(void);
/* Turns until *what >= n; fails if that takes too long. */
void rig_until_at(const int *what, int n, const char *file, int line);
#define rig_until(what, n) rig_until_at(&(what), n, __FILE__, __LINE__)
/* Turns until no work is left. */
void rig_settle(void);
/* GANTRY_IMPORT_MAP if the transport maps regions; else 0. */
uint32_t rig_map(void);
/* True if the device has remote read and write. */
int rig_has_rma(void);
/* Flags of an import with access to the memory: 0 with remote access, else GANTRY_IMPORT_MAP. */
uint32_t rig_access(void);
/*
 * Both ends are connected: turns until each has received what the other sent before, as far as it
 * is sent in order.
 */
void rig_fence(void);
/*
 * In a loop that waits: makes a turn if this round made no progress; fails after too long without
 * progress. *end is 0 at first. rig_late is the same without a turn, for any thread: returns true
 * after too long.
 */
void rig_wait_at(uint64_t *end, int moved, const char *file, int line);
#define rig_wait(end, moved) rig_wait_at(end, moved, __FILE__, __LINE__)
int rig_late(uint64_t *end, int moved);
/* Number of rounds of a loop, for this transport. */
uint32_t rig_rounds(uint32_t n);

/*
 * Queues that the rig polls until they are closed. On lane 0 of both ends, or on the given lanes.
 */
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
/* Send; retry while it returns -EAGAIN. */
int rig_send(struct rig_queue *q, const struct gantry_send *send);
int rig_send_imm(struct rig_queue *q, uint64_t value);
/* Messages that arrived, including those that the rig has kept; as poll_recv. */
int rig_poll(struct rig_queue *q, struct gantry_msg *msgs, uint32_t max);
/* Take exactly one message. */
void rig_take(struct rig_queue *q, struct gantry_msg *msg);
/* Completions of sends; as poll_send. */
int rig_done(struct rig_queue *q, uint64_t *cookies, uint32_t max);
uint64_t rig_take_done(struct rig_queue *q);
/* Post receives, a buffer each or none. */
int rig_post(struct rig_queue *q, void *buf, uint32_t length, uint64_t cookie);
/* Leave the queue to other threads: the rig does not poll it. */
void rig_lend(struct rig_queue *q);
/* Exchange one message, with no receive left: the queue is connected. */
void rig_warm(struct rig_queue *q);

/* A piece of the local memory; rig_open makes all of it free again. */
uint8_t *rig_local(uint32_t bytes);
void rig_memory_open(struct rig_memory *m, uint64_t bytes, uint32_t rights);
void rig_memory_close(struct rig_memory *m);
/* Bytes that differ by position and by seed. */
void rig_fill(uint8_t *p, size_t n, uint32_t seed);
int rig_filled(const uint8_t *p, size_t n, uint32_t seed);
int rig_all(const uint8_t *p, size_t n, uint8_t byte); /* they are this byte */

/* NULL if the device has no remote access. */
struct rig_rma *rig_rma_open(struct rig_end *end, uint32_t depth, uint32_t lane);
void rig_rma_close(struct rig_rma *q);
/* Submit, retrying while it returns -EAGAIN, and flush. local: from rig_local. */
int rig_rma_submit(struct rig_rma *q, const struct gantry_rma *rma);
int rig_rma(struct rig_rma *q, enum gantry_rma_op op, void *local,
	    const struct gantry_region *remote, uint64_t offset, uint32_t length, uint64_t cookie);
/* Status of the next completion, which must be this one. */
int rig_rma_status(struct rig_rma *q, uint64_t cookie);
/* Read or write, and wait for the completion: returns its status. */
int rig_rma_move(struct rig_rma *q, enum gantry_rma_op op, void *local,
		 const struct gantry_region *remote, uint64_t offset, uint32_t length);

/*
 * Run a case. A case that the driver excludes is ignored, with the reason. RIG_CASE in the
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
