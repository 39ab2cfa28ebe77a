/* SPDX-License-Identifier: BSD-3-Clause */
/* share_wire.h - what importers and owners of memory say to each other, and the socket that they meet at. */
#ifndef GD_SHARE_WIRE_H
#define GD_SHARE_WIRE_H

#include "mmap/blob.h"

#include <sys/types.h>

#define GD_SHARE_MAGIC 0x314d4447u /* "GDM1" */

struct gd_share_ask {
	uint32_t magic;
	uint32_t kind;   /* enum gd_blob_kind */
	uint32_t access; /* what is wanted */
	uint32_t zero;
	struct gd_mmap_id id;
};

/* With status 0, one descriptor comes with it; it can be mapped for writing only if the access says so. */
struct gd_share_reply {
	uint32_t magic;
	int32_t status; /* 0 or -errno */
	uint32_t access;
	uint32_t zero;
	uint64_t addr, length, offset;
};

/* A socket in the run directory. */
struct gd_listener {
	int fd; /* -1: closed */
	int reserve; /* given up to get rid of who connects when there are no more descriptors */
	pid_t pid;
	char path[GD_BLOB_PATH];
};

/* This machine, as it has booted. */
uint64_t gd_host_id(void);

/* Clears away sockets that dead processes have left, too. */
doca_error_t gd_listener_open(struct gd_listener *listener);
void gd_listener_close(struct gd_listener *listener);
void gd_listener_remove(const struct gd_listener *listener); /* the file only, and only our own */
void gd_listener_forget(struct gd_listener *listener);       /* in a child: it is the parent's */
/* The next one of our user who connects; < 0: nobody. Does not wait. */
int gd_listener_accept(struct gd_listener *listener);

/* Owner, without waiting: 0; -EAGAIN: nothing yet; else this importer is not to be heard any more. */
int gd_wire_read_ask(int fd, struct gd_share_ask *ask);
/* An importer that does not read gets none. */
void gd_wire_reply(int fd, const struct gd_share_reply *reply, int memfd);

/*
 * Importer: connect to the owner that the descriptor names, ask, and look at what it answers. SUCCESS: *conn_p and *memfd_p are
 * the caller's. They are set to -1 or to what the caller has to close in any case. Waits a few seconds at most.
 */
doca_error_t gd_wire_ask(const struct gd_blob *blob, const struct gd_share_ask *ask, struct gd_share_reply *reply, int *conn_p,
			 int *memfd_p);

#endif
