/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_share_wire.h - messages between importers and owners of memory, and the socket that they use
 *
 * The protocol is in mmap_share.c.
 */
#ifndef GD_SHARE_WIRE_H
#define GD_SHARE_WIRE_H

#include "mmap/mmap_blob.h"
#include "mmap/mmap_pages.h"

#include <sys/types.h>

#define GD_SHARE_MAGIC 0x324d4447u /* "GDM2" */

struct gd_share_ask {
	uint32_t magic;
	uint32_t kind;   /* enum gd_blob_kind */
	uint32_t access; /* requested rights */
	uint32_t zero;
	struct gd_mmap_id id;
};

/*
 * With status 0, the message carries a descriptor for each run. A descriptor can be mapped for
 * writing only if `access` permits it. The runs follow one another and contain all pages of the
 * range. `from` and `to` are addresses of the owner and offsets in the memfd.
 */
struct gd_share_reply {
	uint32_t magic;
	int32_t status; /* 0 or -errno */
	uint32_t access;
	uint32_t n_runs;
	uint64_t addr, length;
	struct {
		uint64_t from, to;
	} runs[GD_RUNS];
};

/*
 * Later messages. REVOKE: the owner revokes the memory. RELEASED: the importer no longer maps it.
 */
enum gd_share_word { GD_SHARE_REVOKE = 1, GD_SHARE_RELEASED = 2 };

/* A listening socket in the run directory. */
struct gd_listener {
	int fd; /* -1: closed */
	/* spare descriptor, closed to accept and reject a connection when no descriptor is left */
	int reserve;
	pid_t pid;
	char path[GD_BLOB_PATH];
};

/* Returns an id of this machine and its current boot. */
uint64_t gd_host_id(void);

/* Open the socket, and remove sockets that dead processes have left. */
doca_error_t gd_listener_open(struct gd_listener *listener);
void gd_listener_close(struct gd_listener *listener);
/* removes only the file, and only if this process created it */
void gd_listener_remove(const struct gd_listener *listener);
/* in a child of fork(2): closes the descriptors of the parent */
void gd_listener_forget(struct gd_listener *listener);
/* Accept the next connection of the same user or root; < 0: none. Does not block. */
int gd_listener_accept(struct gd_listener *listener);

/*
 * Owner. Read a message without blocking: 0 (a request), or GD_SHARE_RELEASED. -EAGAIN: none.
 * Other: the connection has ended, or the importer violates the protocol.
 */
int gd_wire_read_ask(int fd, struct gd_share_ask *ask);
/*
 * Owner. Send a reply with the memfds of reply->runs. If the importer does not read, shut down the
 * connection.
 */
void gd_wire_reply(int fd, const struct gd_share_reply *reply, const struct gd_run *runs);

/* Either side. Send a message without blocking. */
void gd_wire_say(int fd, enum gd_share_word word);
/*
 * Importer. Read a message without blocking: GD_SHARE_REVOKE. -EAGAIN: none. Other: the owner has
 * ended.
 */
int gd_wire_read_word(int fd);

/*
 * Importer. Connect to the owner of the descriptor, send the request and check the reply. After
 * SUCCESS the caller owns *conn_p and the descriptor of each run. After any result each of them is
 * -1, or the caller closes it. Blocks for a few seconds at most.
 */
doca_error_t gd_wire_ask(const struct gd_blob *blob, const struct gd_share_ask *ask,
			 struct gd_share_reply *reply, int *conn_p, int memfds[GD_RUNS]);

#endif
