/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote.h - a storage server
 *
 * The doubles of librbd (image_rbd.c) and libnbd (image_nbd.c) use it. The store is a file of the
 * simulated disk. An operation takes a drawn time, so operations of one connection are executed in
 * any order.
 *
 * When a change is durable depends on the kind of the server:
 *
 *     SIM_RBD   when the server has executed it: the cluster never loses its power
 *     SIM_NBD   when the server has executed it with FUA, or when a flush covers it. The server
 *               loses its power with the targets, or alone
 *
 * When a connection ends, also with its process, the server has operations that it has not
 * executed. As the kind of the server determines, it executes each of them later, or never:
 *
 *     SIM_RBD   at any time, until the client is fenced; after that, until the server executes, on
 *               the same blocks, an operation of a client that has the map with the fence
 *     SIM_NBD   within SIM_REMOTE_LATE_NS, or never
 */
#ifndef SIM_REMOTE_H
#define SIM_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SIM_REMOTE_LATE_NS 100000000u
#define SIM_REMOTE_FAST_NS 320000u /* an operation is fast if it takes at most this long */
#define SIM_REMOTE_PIECES 16       /* most pieces of the data of an operation */

enum sim_remote_kind { SIM_NO_REMOTE, SIM_RBD, SIM_NBD };

enum sim_remote_op {
	SIM_REMOTE_READ,
	SIM_REMOTE_WRITE,
	SIM_REMOTE_ZERO, /* write zeroes */
	SIM_REMOTE_DISCARD,
	SIM_REMOTE_FLUSH,
	SIM_REMOTE_STATUS, /* SIM_NBD: has no effect; see sim_remote_is_hole() */
};

/* -- for the doubles: functions of the running process -- */

/*
 * Connect to the server of the file at `path`. Returns a descriptor: poll(2) reports POLLIN while
 * the connection has an event (sim_remote_event()) or a greeting to take, POLLHUP when it is lost,
 * and always POLLOUT. close(2) ends the connection. Returns -1 with errno set: ECONNREFUSED, the
 * server does not run; ENOENT, there is no such file.
 */
int sim_remote_connect(const char *path);

struct sim_remote_request {
	enum sim_remote_op op;
	bool fua; /* SIM_NBD: of an operation that changes the store */
	uint64_t offset;
	size_t bytes;
	const struct iovec *data; /* of a read and a write */
	int n;                    /* its pieces, at most SIM_REMOTE_PIECES */
};
/*
 * Submit an operation. The bytes of a write are copied, those of a read are stored when
 * sim_remote_event() returns its completion. Returns the number of the operation, never 0 and never
 * used again.
 */
uint64_t sim_remote_submit(int fd, const struct sim_remote_request *request);
/* Forget an operation: it completes without an event, and its data is not used any more. */
void sim_remote_forget(int fd, uint64_t number);

enum sim_remote_event {
	SIM_REMOTE_NOTHING,
	SIM_REMOTE_DONE,    /* an operation has completed */
	SIM_REMOTE_RESIZED, /* the size of the store has changed */
	SIM_REMOTE_LOST,    /* the connection is lost; each further call returns this */
};
/* A result: the reply to a read lacks a part of the data. The buffers are not changed. */
#define SIM_REMOTE_SHORT 1
/*
 * Take the next event. DONE: sets *number, and *result: 0, SIM_REMOTE_SHORT or -errno. Does not
 * block.
 */
enum sim_remote_event sim_remote_event(int fd, uint64_t *number, int *result);
/*
 * SIM_NBD only: take the greeting of the server, which begins the connection. Returns false if the
 * server has not sent it.
 */
bool sim_remote_take_greeting(int fd);
/* Returns the size of the store in bytes, or -errno. */
int64_t sim_remote_size(int fd);
/* Whether the range has no data. Operations in flight have no effect on the answer. */
bool sim_remote_is_hole(int fd, uint64_t offset, size_t bytes);

/* SIM_RBD only: the number of the connection, which names a client. Never 0. */
uint32_t sim_remote_client(int fd);
/* SIM_RBD only: fence this client by a new map: its operations fail with ESHUTDOWN. */
void sim_remote_fence(uint32_t client);
/* SIM_RBD only: get the newest map. A client has the map that was the newest when it connected. */
void sim_remote_update(int fd);
/* SIM_RBD only: return the lock, if this client has it and is not fenced. */
void sim_remote_unlock(int fd);
/*
 * SIM_RBD only: get the exclusive lock of the store. A client that has it and has ended is fenced;
 * then the caller has the map with this fence. Returns 0, or the client that has the lock and runs.
 */
uint32_t sim_remote_lock(int fd);

/* -- for the run -- */

struct sim_remote_faults {
	enum sim_remote_kind kind;
	uint64_t slowest_ns;   /* longest time of an operation; the shortest is 1/16 of it */
	uint32_t fails_one_in; /* one in this many operations fails with EIO; 0: none */
	/* SIM_NBD: one operation in this many; 0: none */
	uint32_t silent_one_in;  /* is executed, but has no reply */
	uint32_t garbled_one_in; /* has an invalid reply: the connection is lost */
	uint32_t short_one_in;   /* of the reads: has a reply that lacks a part of the data */
};
/* Begin a run. */
void sim_remote_begin(const struct sim_remote_faults *faults);
/* From now on, the server runs, and operations are fast and do not fail by themselves. */
void sim_remote_repair(void);
/*
 * The server executes nothing for a time. SIM_RBD: a new connection waits, too; SIM_NBD: it is
 * accepted, and waits for its greeting. part < SIM_REMOTE_PARTS: only operations on blocks whose
 * number modulo SIM_REMOTE_PARTS is this number wait, as if one server of a cluster were down.
 */
#define SIM_REMOTE_PARTS 3u
void sim_remote_stall(uint64_t ns, uint32_t part);
/* SIM_NBD: the server is killed, and refuses connections for a time. */
void sim_remote_kill(uint64_t ns);
/*
 * SIM_NBD: the machine of the server loses its power, and refuses connections for a time. Of the
 * changes that are not durable, some are lost or torn. No operation is executed late.
 */
void sim_remote_power_cut(uint64_t ns);
/* SIM_RBD: the store does not exist for a time: operations fail with ENOENT. */
void sim_remote_remove(uint64_t ns);
/* Execute everything that is due, for a caller that reads the store. */
void sim_remote_settle(void);

#endif
