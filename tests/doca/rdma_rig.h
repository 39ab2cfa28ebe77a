/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_rig.h - the RDMA objects of a test program. A side has the objects of one process; a test
 * with two sides runs two processes.
 *
 * $GANTRY_DOCA_CONF configures the devices. $RDMA_TEST_IBDEV and $RDMA_TEST_PEER_IBDEV select the
 * RDMA devices of the two sides; by default mlx5_0 and mlx5_1 of the built-in card.
 */
#ifndef TEST_RDMA_RIG_H
#define TEST_RDMA_RIG_H

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_rdma.h>
#include <doca_sync_event.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RIG_BYTES (4u << 20)
#define RIG_CONNS 8
#define RIG_TASKS 64
#define RIG_WAIT_MS 20000

/* Can be used in any process; a peer whose check fails exits, which fails its test. */
#define CHECK(what) rig_check(!!(what), #what, __FILE__, __LINE__)
#define OK(call) rig_ok((call), #call, __FILE__, __LINE__)
#define FAILS(code, call) rig_fails((code), (call), #call, __FILE__, __LINE__)

void rig_check(bool ok, const char *what, const char *file, int line);
void rig_ok(doca_error_t result, const char *what, const char *file, int line);
void rig_fails(doca_error_t expected, doca_error_t result, const char *what, const char *file,
	       int line);

/* How a task ended. */
struct rig_end {
	uint64_t tag;
	doca_error_t status;
	enum doca_rdma_opcode opcode; /* this and the fields below: only of receives */
	uint32_t imm, length;
	const struct doca_rdma_connection *conn;
};

struct rig_side {
	struct doca_dev *dev;
	struct doca_pe *pe;
	struct doca_rdma *rdma;
	struct doca_ctx *ctx;
	struct doca_mmap *map, *remote; /* own memory; the peer's memory after the import */
	uint8_t *memory;
	struct doca_buf_inventory *inventory;
	struct doca_rdma_connection *conns[RIG_CONNS];
	unsigned n_requests, n_established, n_failed, n_disconnected;
	bool refuses;              /* the side rejects requests of connections */
	struct rig_end ends[4096]; /* ring, in the order in which the tasks have ended */
	unsigned n_ends, n_seen;   /* tasks that have ended; those that rig_end() has returned */
	enum doca_ctx_states states[16]; /* in the order of the callbacks */
	unsigned n_states;
	bool progresses_wait; /* progress waits for the notification handle instead of polling */
	/* called at each end of a task; NULL: none */
	void (*hook)(struct rig_side *s, struct doca_task *task, const struct rig_end *end);
};

/* How rig_open() configures a side. */
struct rig_wish {
	bool is_peer;
	uint16_t max_conns;   /* 0: not set */
	uint32_t access;      /* access of the memory; 0: local and RDMA read and write */
	uint32_t permissions; /* of the context; 0: not set, so all operations are allowed */
	size_t bytes;         /* bytes of memory; 0: RIG_BYTES */
	bool callbacks;       /* set callbacks of connections */
	bool unstarted;
};

struct rig_side *rig_open(const struct rig_wish *wish);
void rig_start(struct rig_side *s); /* only for `unstarted`: else rig_open() has done it */
void rig_close(struct rig_side *s); /* stops, and checks that all objects are released */
void rig_progress(struct rig_side *s);
uint64_t rig_now_ms(void);

/* Progress until `*counter` is at least n. */
void rig_until(struct rig_side *s, const unsigned *counter, unsigned n);
#define UNTIL(s, condition) \
	do { \
		uint64_t until_ = rig_now_ms() + RIG_WAIT_MS; \
		while (!(condition)) { \
			CHECK(rig_now_ms() < until_ || !"in time: " #condition); \
			rig_progress(s); \
		} \
	} while (0)
/* Waits for the next end of a task and returns it. */
const struct rig_end *rig_end(struct rig_side *s);
void rig_end_ok(struct rig_side *s, uint64_t tag);

/* Buffers of the own memory: rig_room() is empty, rig_data() has data. */
struct doca_buf *rig_room(struct rig_side *s, size_t offset, size_t length);
struct doca_buf *rig_data(struct rig_side *s, size_t offset, size_t length);
/* Buffers of the peer's memory, empty or with data. */
struct doca_buf *rig_remote_room(struct rig_side *s, size_t offset, size_t length);
struct doca_buf *rig_remote_data(struct rig_side *s, size_t offset, size_t length);
void rig_put(struct doca_buf *buf);

/* Allocate and submit a task, which is freed when it ends. */
void rig_receive(struct rig_side *s, struct doca_buf *buf, uint64_t tag);
void rig_send(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *buf,
	      uint64_t tag);
void rig_send_imm(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *buf,
		  uint32_t imm, uint64_t tag);
void rig_read(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *src,
	      struct doca_buf *dst, uint64_t tag);
void rig_write(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *src,
	       struct doca_buf *dst, uint64_t tag);
void rig_write_imm(struct rig_side *s, struct doca_rdma_connection *conn,
		   const struct doca_buf *src, struct doca_buf *dst, uint32_t imm, uint64_t tag);
void rig_event_get(struct rig_side *s, struct doca_rdma_connection *conn,
		   const struct doca_sync_event_remote_net *event, struct doca_buf *dst,
		   uint64_t tag);
void rig_event_set(struct rig_side *s, struct doca_rdma_connection *conn,
		   struct doca_sync_event_remote_net *event, const struct doca_buf *src,
		   uint64_t tag);

/* Content of memory: every byte depends on its offset and its generation. */
void rig_fill(void *memory, size_t length, uint32_t generation);
/* Returns the offset of the first wrong byte; length: all bytes are right. */
size_t rig_differs(const void *memory, size_t length, uint32_t generation);

/* -- the other process -- */

/*
 * Run both functions in separate processes, which are connected by fd. Returns after both have
 * ended. True: both exited with status 0, or second_is_killed is set and SIGKILL ended the second.
 */
bool rig_run(void (*first)(int fd), void (*second)(int fd), bool second_is_killed);
/* As rig_run(); the test fails unless both exited with status 0. */
void rig_both(void (*first)(int fd), void (*second)(int fd));
/* Run one function in a separate process, without a peer. */
void rig_alone(void (*program)(int fd));
void rig_say_pid(int fd);
pid_t rig_hear_pid(int fd);
void rig_say(int fd, const void *data, size_t length);
size_t rig_hear(int fd, void *data, size_t max); /* waits */
void rig_sync(int fd); /* send a byte and receive one: both sides have reached this point */
void rig_tell(int fd);
void rig_hark(int fd);

/* Exchange blobs over fd and connect number i. */
void rig_connect(struct rig_side *s, int fd, unsigned i);
/* rig_open() with default values, and rig_connect() of connection 0. */
struct rig_side *rig_begin(int fd, bool is_peer);
/* Export the memory to a peer that calls rig_import(). */
void rig_export(struct rig_side *s, int fd);
void rig_import(struct rig_side *s, int fd);

#endif
