/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h - two ends of a transport for the conformance suite: `a` connects, `b` listens.
 *
 * The cases use nothing but struct gantry_transport_ops, so they apply to every transport. A driver
 * selects the plugin and its settings. The environment adds settings: RIG_A_SETTINGS and
 * RIG_B_SETTINGS, words "name=value" separated by spaces. Which cases apply follows from what the
 * plugin states: the capabilities and limits of `info`, its flags, and its NULL slots.
 *
 * The rig calls progress() only when the host would: when the fd is readable, at wake_ns, after
 * open, and after connect.
 *
 * No case assumes that a message or event reaches the other end immediately. Each expected event
 * must occur within the time limit of the rig (ten seconds, or RIG_PATIENCE_MS). A case that waits
 * makes turns: each turn calls progress of both devices and polls every queue that the rig opened.
 * The rig keeps the results of these polls, in order, for rig_poll and rig_done.
 *
 * If `closed` reports -EPROTO, the transport must have logged a warning.
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

struct rig_driver {
	const char *plugin; /* NULL: the cases are not about a transport, and open no rig */
	const char *setting[RIG_SETTINGS]; /* for both ends: "name=value", up to a NULL */
	const char *a[RIG_SETTINGS], *b[RIG_SETTINGS]; /* only for end a; only for end b */
	/* 'a' or 'b': open only this end, the other end is in another process; 0: open both */
	int one_end;
	/* services that b can serve, up to a NULL; the first is the default. NULL: any name */
	const char *const *services;
	/* invalid service names, besides those that are invalid for every transport */
	const char *const *no_services;
	unsigned slower; /* divides the number of rounds of long loops */
	/*
	 * time after which a region is reported as revoked although the peer keeps it, in ms; 0:
	 * never
	 */
	unsigned revoke_ms;
	void (*wrap)(struct gantry_transport_ops *ops); /* replace operations of the plugin */
	void (*begin)(void), (*end)(void); /* called before and after each case; NULL: nothing */
	void (*turn)(void);                /* called in each turn: delivers delayed messages */
	/*
	 * called before other threads use queues. It must stop all delays of messages: these
	 * threads cannot make the turns that would deliver them
	 */
	void (*threads)(void);
	const char *(*missing)(void); /* returns what this machine lacks, or NULL */
	/*
	 * returns the options of an end, instead of `setting`, `a` and `b`; why: out, the faults,
	 * or ""
	 */
	void *(*conf)(int is_a, char *why, size_t size);
	int (*wanted)(const char *name); /* returns whether a case runs, instead of RIG_CASE */
};

/* Each driver defines rig_driver. */
extern struct rig_driver rig_driver;

#define RIG_MSGS 64
#define RIG_CONNS 32
#define RIG_QUEUES 64
#define RIG_MEMORIES 16
#define RIG_LOCAL_BYTES (4u << 20)

struct rig_end {
	struct fake_host host;
	void *conf, *dev, *listener, *conn;
	struct {
		void *conn;
		int registered; /* the local memory is registered */
	} conns[RIG_CONNS];     /* not disconnected yet; rig_end.conn is the latest */
	char settings[512];     /* from the environment */
	struct gantry_peer peer;
	int refuse;           /* return value of accept */
	const char *greeting; /* text that accept sends, with its NUL byte; NULL: none */
	int n_accept, n_connected, n_closed, n_msgs, n_up, n_down, n_revoke, n_revoked;
	int reason, revoked_rc;
	int unexplained; /* `closed` came with -EPROTO, and no warning was logged */
	uint32_t up[RIG_MSGS], down, revoke, revoked;
	uint8_t msg[GANTRY_CTRL_MAX]; /* the last message */
	size_t msg_len;
	uint32_t msg_seq; /* next expected number at the start of a message */
	int out_of_order;
	int disconnect_on_close; /* disconnect inside `closed` */
	int kicked;              /* the host would call progress() now, without an event */
	uint64_t wake_ns;        /* wake_ns() after the last progress() */
	unsigned n_progress;
};

/* Memory that can be exported. rig_close() closes it. */
struct rig_memory {
	struct gantry_region region;
	uint8_t *bytes;
};

/* A queue: consumer at one end, producer at the other. */
struct rig_queue {
	uint32_t id, max_data;
	void *rx, *tx;
	int used;
	int lent;                         /* used by other threads: the rig does not poll it */
	int resting;                      /* the rig does not poll the consumer */
	struct gantry_msg kept[RIG_MSGS]; /* arrived while the rig waited for another event */
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
	struct gantry_region local; /* memory of this process, registered on connections */
	uint32_t local_used;
	uint32_t queue_flags; /* of the consumers that the rig opens */
	struct rig_queue queues[RIG_QUEUES];
	struct rig_rma rmas[RIG_QUEUES];
	struct rig_memory memories[RIG_MEMORIES];
	unsigned n_memories;
	int n_fds;
};

extern struct rig rig;

/* Returns false and prints the reason if this machine lacks something. */
int rig_can_run(void);
int rig_fds(void);
uint64_t rig_now_ns(void);
uint64_t rig_patience_ns(void); /* the time limit of the rig */
/* Returns whether the check of the plugin accepts the text of a service. */
int rig_serves(const char *service);
/* Returns service i that b can serve, and that the plugin accepts; NULL: there are no more. */
const char *rig_service(unsigned i);
/* Open the device of one end, with the settings of the driver and `setting`, if not NULL. */
void rig_open_end(struct rig_end *end, const char *setting);
/*
 * rig_open opens the devices. rig_connect connects them through the default service, and registers
 * the local memory at both ends.
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

/* Make a turn: call progress of the devices that need it, and poll all queues of the rig. */
void rig_turn(void);
/* Make turns until *what >= n. The case fails if the time limit passes. */
void rig_until_at(const int *what, int n, const char *file, int line);
#define rig_until(what, n) rig_until_at(&(what), n, __FILE__, __LINE__)
/* Make turns until no work is left. */
void rig_settle(void);
/* Wait up to ms milliseconds. Returns whether a device needs progress(). */
int rig_stirs(int ms);
/* Returns GANTRY_IMPORT_MAP if the transport maps regions, else 0. */
uint32_t rig_map(void);
/* Flags of an import with access to the memory: 0 with remote access, else GANTRY_IMPORT_MAP. */
uint32_t rig_access(void);
/*
 * Make turns until each end has received all control messages that the other end sent before. Both
 * ends must be connected.
 */
void rig_fence(void);
/*
 * Call rig_wait in each round of a loop that waits, with *end = 0 before the loop. moved: whether
 * this round made progress. Without progress it makes a turn; without progress until the time limit
 * the case fails. what: what the loop waits for, and which call should have caused it. rig_late
 * makes no turn and can run on any thread: at the limit it returns true.
 */
void rig_wait_at(uint64_t *end, int moved, const char *what, const char *file, int line);
#define rig_wait(end, moved, what) rig_wait_at(end, moved, what, __FILE__, __LINE__)
int rig_late(uint64_t *end, int moved);
/* Returns n, divided by rig_driver.slower: the number of rounds of a long loop. */
uint32_t rig_rounds(uint32_t n);

/*
 * Open a queue on lane 0 of both ends, or on the given lanes. The rig polls it until it is closed.
 */
struct rig_queue *rig_queue_open(struct rig_end *rx, struct rig_end *tx, uint32_t depth,
				 uint32_t max_data);
struct rig_queue *rig_queue_open_lanes(struct rig_end *rx, uint32_t rx_lane, struct rig_end *tx,
				       uint32_t tx_lane, uint32_t depth, uint32_t max_data);
/* Open one more producer for the consumer of a queue. The result has no rx. */
struct rig_queue *rig_queue_join(const struct rig_queue *of, struct rig_end *tx, uint32_t lane,
				 uint32_t depth);
void rig_queue_close(struct rig_queue *q);
void rig_queue_close_rx(struct rig_queue *q);
void rig_queue_close_tx(struct rig_queue *q);
/* Send a message; retry while send returns -EAGAIN. */
int rig_send(struct rig_queue *q, const void *imm, uint32_t imm_len);
int rig_send_data(struct rig_queue *q, const struct gantry_send *send);
int rig_send_imm(struct rig_queue *q, uint64_t value);
/* Do poll_recv; messages that the rig has kept come first. */
int rig_poll(struct rig_queue *q, struct gantry_msg *msgs, uint32_t max);
/* Wait for one message and take it. */
void rig_take(struct rig_queue *q, struct gantry_msg *msg);
/* Do poll_send; completions that the rig has kept come first. */
int rig_done(struct rig_queue *q, uint64_t *cookies, uint32_t max);
uint64_t rig_take_done(struct rig_queue *q);
/* Post a receive. buf: its buffer, or NULL. */
int rig_post_data(struct rig_queue *q, void *buf, uint32_t length, uint64_t cookie);
/* Other threads use the queue from now on: the rig no longer polls it. */
void rig_lend(struct rig_queue *q);
/* Connect the queue: exchange one message. No receive stays posted. */
void rig_warm(struct rig_queue *q);

/* Returns whether the plugin has the counter payload_bytes; *sum_p: its sum over both ends. */
int rig_payload(uint64_t *sum_p);
/* Allocate a piece of the local memory; rig_open frees all pieces. */
uint8_t *rig_local(uint32_t bytes);
void rig_memory_open(struct rig_memory *m, uint64_t bytes, uint32_t rights);
/* Fill memory with a pattern of position and seed; rig_filled: whether it has this pattern. */
void rig_fill(uint8_t *p, size_t n, uint32_t seed);
int rig_filled(const uint8_t *p, size_t n, uint32_t seed);
int rig_all(const uint8_t *p, size_t n, uint8_t byte); /* whether all bytes have this value */

/* NULL if the device has no remote access. */
struct rig_rma *rig_rma_open(struct rig_end *end, uint32_t depth, uint32_t lane);
void rig_rma_close(struct rig_rma *q);
/*
 * rig_rma_submit submits an operation, and retries while that returns -EAGAIN. rig_rma does the
 * same, and then calls rma_flush. Its `local` must be from rig_local.
 */
int rig_rma_submit(struct rig_rma *q, const struct gantry_rma *rma);
int rig_rma(struct rig_rma *q, enum gantry_rma_op op, void *local,
	    const struct gantry_region *remote, uint64_t offset, uint32_t length, uint64_t cookie);
/* Returns the status of the next completion, which must have this cookie. */
int rig_rma_status(struct rig_rma *q, uint64_t cookie);
/* Read or write, wait for the completion and return its status. */
int rig_rma_move(struct rig_rma *q, enum gantry_rma_op op, void *local,
		 const struct gantry_region *remote, uint64_t offset, uint32_t length);

/* What a case needs, and what the plugin states. */
enum rig_need {
	RIG_MAPPED,
	RIG_RMA,
	RIG_WRITE_IMM,
	RIG_PINS,
	RIG_INLINE_DATA, /* data inside a queue entry */
	RIG_DATA,        /* data queues */
	RIG_SLEEP,       /* consumers that wake a lane */
	RIG_NETWORK,     /* peers on other machines */
};
int rig_has(enum rig_need need);
/* Skip the case, with a reason, if the device lacks what the case needs. */
void rig_need(enum rig_need need);
__attribute__((noreturn, format(printf, 1, 2))) void rig_skip(const char *fmt, ...);

/*
 * Assertions. `what` says what the contract demands; a failure also reports what was seen:
 *     import_region of a revoked export: expected -ENOENT, got 0
 * RIG_OK: a call that must return 0. RIG_RC: a result with an errno. RIG_NUM: another number.
 * RIG_HOLDS: a condition. RIG_SAME: n bytes.
 */
#define RIG_OK(call) rig_rc_at(0, call, #call, __FILE__, __LINE__)
#define RIG_RC(want, got, what) rig_rc_at(want, got, what, __FILE__, __LINE__)
#define RIG_NUM(want, got, what) rig_num_at(want, got, what, __FILE__, __LINE__)
#define RIG_SAME(want, got, n, what) rig_same_at(want, got, n, what, __FILE__, __LINE__)
#define RIG_HOLDS(condition, what) \
	do { \
		if (!(condition)) \
			rig_fail_at(__FILE__, __LINE__, "%s: expected %s, which does not hold", \
				    what, #condition); \
	} while (0)
void rig_rc_at(int64_t want, int64_t got, const char *what, const char *file, int line);
void rig_num_at(uint64_t want, uint64_t got, const char *what, const char *file, int line);
void rig_same_at(const void *want, const void *got, size_t n, const char *what, const char *file,
		 int line);
__attribute__((noreturn, format(printf, 3, 4))) void rig_fail_at(const char *file, int line,
								 const char *fmt, ...);
/* Fail because nothing came until the time limit. counter: of struct rig_end, or NULL. */
__attribute__((noreturn)) void rig_fail_wait(const char *file, int line, const char *what,
					     const int *counter, int n);

/* RIG_CASE runs a case. If the environment has RIG_CASE=NAME, only the case with this name runs. */
int rig_wanted(const char *name);
#define RIG_CASE(f) \
	do { \
		if (rig_wanted(#f)) \
			RUN_TEST(f); \
	} while (0)

/* Each runs the cases of one file. */
void conn_cases(void);
void queue_cases(void);
void data_cases(void);
void region_cases(void);
void hold_cases(void);
void rma_cases(void);
void lane_cases(void);
void thread_cases(void);

#endif
