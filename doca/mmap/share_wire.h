/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share_wire.h - what importers and owners of memory say to each other, and the socket that they
 * meet at.
 */
#ifndef GD_SHARE_WIRE_H
#define GD_SHARE_WIRE_H

#include "mmap/blob.h"
#include "mmap/pages.h"

#include <sys/types.h>

#define GD_SHARE_MAGIC 0x324d4447u /* "GDM2" */

struct gd_share_ask {
	uint32_t magic;
	uint32_t kind;   /* enum gd_blob_kind */
	uint32_t access; /* what is wanted */
	uint32_t zero;
	struct gd_mmap_id id;
};

/*
 * With status 0, a descriptor comes with it for each run; it can be mapped for writing only if the
 * access says so. The runs follow one another and are all pages of the range. `from` and `to` are
 * the owner's addresses, and the offsets in the memfd.
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
 * What comes after that: the owner wants its memory back, and the importer has mapped it for the
 * last time.
 */
enum gd_share_word { GD_SHARE_REVOKE = 1, GD_SHARE_RELEASED = 2 };

/* A socket in the run directory. */
struct gd_listener {
	int fd;      /* -1: closed */
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

/*
 * Owner, without waiting: 0, or GD_SHARE_RELEASED; -EAGAIN: nothing yet; else the importer does not
 * keep to the protocol.
 */
int gd_wire_read_ask(int fd, struct gd_share_ask *ask);
/* runs: the memfds of reply->runs. An importer that does not read gets no reply. */
void gd_wire_reply(int fd, const struct gd_share_reply *reply, const struct gd_run *runs);

/* Either side, without waiting. */
void gd_wire_say(int fd, enum gd_share_word word);
/* Importer, without waiting: GD_SHARE_REVOKE; -EAGAIN: nothing yet; else the owner is gone. */
int gd_wire_read_word(int fd);

/*
 * Importer: connect to the owner that the descriptor names, ask, and check the answer. SUCCESS:
 * *conn_p, and the descriptor of each run of the reply, are the caller's. All of them are set to -1
 * or to what the caller has to close in any case. Waits a few seconds at most.
 */
doca_error_t gd_wire_ask(const struct gd_blob *blob, const struct gd_share_ask *ask,
			 struct gd_share_reply *reply, int *conn_p, int memfds[GD_RUNS]);

#endif
