/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch.h - the objects of the shm-comch transport.
 *
 *   device ---- listener*           a socket in the runtime directory
 *      \------- conn*               a peer: socket, pidfd, frames to send
 *                 |-- imported[64]  regions of the peer, mapped when needed
 *                 |-- exported[64]  ours, mapped there
 *                 |-- consumer*     one credit page, and a ring for each producer of the peer
 *                 |-- remote*       consumers of the peer
 *                 |-- producer*     one ring towards a remote
 *                 \-- rma*
 *
 * Threads: all is made, changed and destroyed by the control thread. A lane owns the "lane" part of
 * its queues. What both touch is marked "shared" and accessed by atomics. A lane never frees; it
 * marks, and the control thread follows.
 *
 * Memory: every memfd has one writer. What the peer can write is read through gantry/shm.h,
 * checked, and never trusted to stay the same. A queue that breaks the rules poisons its
 * connection; the others do not notice.
 */
#ifndef COMCH_H
#define COMCH_H

#include <errno.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <gantry/transport.h>

#include "../common/cells.h"
#include "../common/copy.h"
#include "../common/done.h"
#include "list.h"
#include "ring.h"
#include "wire.h"

#define COMCH_WHY 160u /* bytes of a reason, for the log */
#define COMCH_CONSUMERS 128u
#define COMCH_PRODUCERS 256u
#define COMCH_CONNS 1024u   /* of a device */
#define COMCH_HALF_OPEN 64u /* of a user: accepted, no HELLO received */
#define COMCH_UIDS 16u
#define COMCH_CONSUMER_FDS 3u /* of a consumer: credit page, both ends of the doorbell */
#define COMCH_PRODUCER_FDS 1u /* of a producer: ring */
/* without accepting, when a descriptor must be closed first and nothing reports it */
#define COMCH_PAUSE_NS 10000000ull
/* of the file of a service: as the address of a socket it stands behind /proc/self/fd/NUMBER/ */
#define COMCH_NAME_BYTES 83u
#define COMCH_HELLO_NS 2000000000ull /* a peer that connected must have introduced itself */
#define COMCH_DEATH_NS 80000000ull   /* from its socket's end to the end of its process */
/* between two checks of imported pages, on average: 1 to 2 us for each region */
#define COMCH_PAGES_NS 100000000ull
#define COMCH_CTRL_QUEUE 32u    /* control messages that wait for a peer that does not read */
#define COMCH_FRAME_QUEUE 1024u /* frames of all kinds; beyond that the peer is given up */

struct comch_conf {
	const char *pci, *dir, *uids;
	int64_t max_depth, ring_slots;
	uint64_t max_bytes;
	uint8_t mapped;
};

struct comch_rundir {
	int fd;        /* DIR/PCI */
	char path[96]; /* for people */
};

/* What an epoll event points at. */
struct comch_watch {
	enum { COMCH_W_DEVICE, COMCH_W_LISTENER, COMCH_W_SOCKET, COMCH_W_PROCESS } kind;
	void *self;
};

/* What this process holds for a user. */
struct comch_user {
	struct comch_user *next;
	uint32_t uid;
	unsigned int refs;  /* devices */
	unsigned int n_fds; /* shared: control threads and closers */
};

/* The connections that a device accepted from one user. */
struct comch_share {
	struct comch_user *user;
	unsigned int n_conns, n_half_open;
};

struct comch_device {
	const struct gantry_host *host;
	const struct comch_conf *conf;
	struct comch_rundir rundir;
	uint32_t uids[COMCH_UIDS];
	struct comch_share shares[COMCH_UIDS]; /* parallel to uids */
	struct comch_user *strangers;          /* all users that are not in uids */
	unsigned int max_fds;                  /* that one user may have this process hold */
	unsigned int n_uids, n_conns;
	uint64_t refused_ns; /* when a refusal was logged last */
	pid_t pid;           /* of the process that opened it: children may not use it */
	int epoll, wake, reserve;
	struct comch_watch watch;
	struct comch_list listeners, conns, reap_list, reap_list_listeners;
	int in_progress, events;
	bool membarrier;
	bool retry; /* some region waits for a lane to finish its copy */
	/* shared: something has happened to a connection that its file descriptors do not tell */
	uint32_t unseen;
	uint64_t deadline_ns; /* none of a connection is earlier; 0: none */
	uint64_t resume_ns;   /* when listeners that pause accept again; 0: none pauses */
	uint32_t paused;      /* shared: the closer kicks when it has closed some */
	/* when the pages of imported regions are checked next; 0: no region has to be */
	uint64_t pages_ns;
	uint64_t *protocol_errors, *connections; /* counters */
	struct comch_closer *closer;             /* NULL: all peers are of this user */
	struct tc_cells payload;                 /* bytes copied, by queue */
};

struct comch_listener {
	struct comch_link link; /* of the device, or its reap_list */
	struct comch_watch watch;
	struct comch_device *dev;
	const struct gantry_conn_events *events;
	void *arg;
	int fd, lock;
	bool dead, paused;
	char name[COMCH_NAME_BYTES], lock_name[COMCH_NAME_BYTES];
};

enum comch_state {
	COMCH_S_FAILED = 1, /* connect went wrong: `closed` is to be told */
	COMCH_S_HELLO,      /* client: waits for the server's HELLO; server: for the client's */
	COMCH_S_ACCEPT,     /* the user is being asked; frames are held back */
	COMCH_S_OPEN,
	COMCH_S_DYING,  /* the socket has ended; the process has not yet */
	COMCH_S_CLOSED, /* `closed` was told */
	COMCH_S_DEAD    /* in the reap_list */
};

struct comch_out {
	struct comch_link link;
	size_t len;
	bool ctrl; /* it is one of the user's messages */
	unsigned int n_fds;
	int fds[COMCH_FDS_MAX]; /* duplicates, ours */
	uint8_t frame[];        /* len bytes */
};

struct comch_import {
	uint32_t state; /* shared; enum below, stored last */
	uint32_t ref, handle, rights;
	uint64_t length;
	void *base; /* of the mapping */
	size_t base_bytes;
	void *addr;
	int fd;
	uint64_t fd_offset;
	int error;         /* why it could not be mapped */
	unsigned int refs; /* handed out by import_region */
	bool can_shrink;   /* the peer can free pages, and the user wants them checked */
	uint64_t blocks_min, blocks_max; /* of 512 bytes, that the file may have: pages.c */
	struct comch_conn *conn;
};

enum { COMCH_I_FREE, COMCH_I_LIVE, COMCH_I_REVOKED };

struct comch_export {
	uint32_t state; /* shared */
	uint32_t ref, handle, rights;
	uint64_t length;
	const struct gantry_region *region; /* compared, never followed */
};

enum { COMCH_E_FREE, COMCH_E_SENT, COMCH_E_LIVE, COMCH_E_REVOKING };

struct comch_conn {
	struct comch_link link;
	struct comch_watch watch, death;
	struct comch_device *dev;
	struct comch_listener *listener; /* server, until accepted */
	struct comch_share *share;       /* server: of the user of the peer */
	struct comch_user *user;         /* of the peer; NULL: not known yet */
	const struct gantry_conn_events *events;
	void *arg;
	struct gantry_peer peer;
	enum comch_state state;
	int fd, pidfd;
	char service[64]; /* of a client: what it asked for */
	char refusal
		[COMCH_REFUSED_TEXT]; /* of a client: the reason in REFUSED; "": none received */
	int reason;                   /* of `closed` */
	int lack; /* -EPROTO, but by what this process lacks: told is that, -EMFILE or -ENOMEM */
	bool said_bye, is_dead, membarrier, half_open;
	uint64_t deadline_ns; /* 0: none */
	struct comch_list out;
	unsigned int n_out, n_out_ctrl;
	bool want_out;
	bool touches;          /* a queue of this side reads or writes the data of regions */
	uint32_t lost;         /* shared: sends fail from now on */
	uint32_t poison;       /* shared: a lane found that the peer broke a queue */
	uint32_t export_epoch; /* shared: grows with each change of exported[] */
	uint32_t next_consumer, next_producer;
	unsigned int n_consumers, n_producers, n_remotes, n_rings;
	unsigned int n_checked; /* imported regions whose pages are checked */
	uint64_t imported_bytes, exported_bytes;
	uint64_t peer_room;           /* bytes that the peer takes of exports */
	char why[COMCH_WHY];          /* it is dropped */
	char import_error[COMCH_WHY]; /* of the last import_region; "": only its error number */
	struct comch_list consumers, producers, remotes, rmas;
	struct comch_import imported[COMCH_REGIONS];
	struct comch_export exported[COMCH_REGIONS];
	uint32_t seen_consumers; /* the peer's ids must grow */
	uint32_t seen_producers;
};

/* Receiving end of one ring of the peer. */
struct comch_in {
	/* set before the lane sees it */
	const struct comch_slot *slots;
	struct comch_line *line; /* ours, in the credit page */
	uint32_t mask, producer; /* the peer's id of it */
	/* lane */
	uint64_t position;
	uint32_t taken;                   /* messages */
	uint32_t given_tail, given_limit; /* as last published */
	uint32_t last_slots;              /* of the last message */
	/* data of a region has been read, which its producer has not been told */
	bool copied;
	/* shared */
	uint32_t gone;     /* the producer will write no more */
	uint32_t detached; /* the lane has let go of it */
};

struct comch_consumer {
	/* lane */
	struct gantry_recv *posts; /* two at least */
	/* 0 until there are buffers: posts[] is all zero, and the first of it speaks for all */
	uint32_t post_mask;
	uint32_t posts_last, depth, max_data;
	/* counts that wrap; the control thread reads them when a ring comes */
	uint32_t n_posted, n_used;
	uint32_t credit_batch; /* receives of which the peer is told together */
	uint32_t next;         /* ring to look at first */
	uint64_t known;        /* rings that have been given credit at least once */
	bool dirty;            /* credit that has not been published */
	bool broken;
	/* to be rung for: 0: no; else 1 + how often messages have come since it was armed */
	uint8_t asks;
	uint8_t unsure; /* wakes for which no message was there */
	bool clears;    /* the bell, when it has been rung */
	struct comch_page *page;
	struct comch_conn *conn;
	uint64_t *payload; /* counter: bytes copied */
	/* shared */
	uint64_t active __attribute__((aligned(64))); /* rings that the lane polls */
	uint32_t copying; /* slot + 1 of the imported region being read */
	/* control */
	struct comch_link link __attribute__((aligned(64)));
	uint32_t id;
	/* the lane waits on bell; bell_ring is the end that is given away */
	int page_fd, bell, bell_ring;
	struct comch_in *in[COMCH_RINGS];
};

/* A consumer of the peer. */
struct comch_remote {
	struct comch_link link;
	uint32_t id, max_data;
	bool up;
	unsigned int refs; /* producers */
	const struct comch_page *page;
	int bell;
};

struct comch_cookie {
	uint64_t cookie;
	uint64_t end; /* position behind its last slot */
};

struct comch_producer {
	/* lane: the first line of it is all that a short message needs */
	struct comch_slot *slots;
	const uint32_t *asleep;
	struct comch_conn *conn;
	uint64_t position;
	uint64_t tail; /* slots that the consumer is done with, as last seen */
	uint32_t mask;
	/* slots behind the first ones of their messages: position - more messages have been sent */
	uint32_t more;
	uint32_t limit; /* messages, as last seen */
	bool unrung, fence;
	uint32_t gone; /* shared: the consumer went away */
	struct comch_cookie *cookies;
	uint32_t cookie_mask, cookie_head, cookie_tail;
	const struct gantry_region *last_region; /* where it stands in exported[] */
	uint32_t last_epoch, last_slot, max_data;
	int bell;
	/* shared */
	const struct comch_line *line; /* NULL until the consumer has attached the ring */
	/* control */
	struct comch_link link;
	struct comch_remote *remote;
	uint32_t id, n_slots;
	int ring_fd;
};

struct comch_rma {
	struct comch_link link;
	struct comch_conn *conn;
	struct tc_done done;
	struct {
		const struct comch_import *from; /* NULL: none */
		void *to;
		uint64_t offset;
		uint32_t ref, length;
	} held; /* a read whose first lines are under way; of those in `done` it is the last */
	uint64_t *payload; /* counter: bytes copied */
};

/* rundir.c: where sockets live */
#define COMCH_DIR_BYTES 256u /* of the path of a runtime directory */
/* The directory that is used when the option `dir` is empty. */
void comch_rundir_default(char *out, size_t bytes);
void comch_rundir_check(const struct comch_conf *conf, const struct gantry_option_faults *faults);
const char *comch_check_service(const char *service);
int comch_rundir_open(const struct comch_device *dev, struct comch_rundir *rundir);
void comch_rundir_close(struct comch_rundir *rundir);
int comch_rundir_bind(const struct comch_device *dev, const char *service,
		      struct comch_listener *l);
void comch_rundir_unbind(struct comch_device *dev, struct comch_listener *l);
/* Remove the socket of a service without a listener; of all such services. */
void comch_rundir_sweep(const struct comch_device *dev, const char *service);
void comch_rundir_sweep_all(const struct comch_device *dev);
/*
 * A connected socket, or -errno: -ECONNREFUSED when there is no listener, -EBUSY when the
 * listener's backlog is full.
 */
int comch_rundir_connect(const struct comch_device *dev, const char *service);

/* socket.c: one frame in, one frame out; who is there */
ssize_t comch_socket_send(int fd, const void *frame, size_t len, const int *fds,
			  unsigned int n_fds);
/*
 * Returns bytes, 0 at the end, -EAGAIN, or -EPROTO, -EMFILE with *why_p. fds: COMCH_FDS_MAX, of
 * which the first *n_fds_p are the caller's to close, whatever is returned. A message with more
 * descriptors stays in the socket.
 */
ssize_t comch_socket_recv(int fd, struct comch_frame *frame, int *fds, unsigned int *n_fds_p,
			  const char **why_p);
int comch_socket_peer(int fd, struct gantry_peer *peer);
/* A descriptor of the peer's process; -1: there is no way to get one. */
int comch_socket_pidfd(int fd, int32_t pid);
void comch_close_fds(const int *fds, unsigned int n);          /* those that are not -1 */
unsigned int comch_count_open(const int *fds, unsigned int n); /* so many are not -1 */
uint64_t comch_now(const struct comch_device *dev);

/* share.c */
int comch_shares_open(struct comch_device *dev); /* 0 or -errno; close in any case */
void comch_shares_close(struct comch_device *dev);
/* The share of a user; NULL: the user is not in uids. */
struct comch_share *comch_share(struct comch_device *dev, uint32_t uid);
/*
 * Count n more descriptors for a user. False: these are more than the user may have. NULL: not
 * counted, true.
 */
bool comch_fds_add(const struct comch_device *dev, struct comch_user *user, unsigned int n);
void comch_fds_sub(struct comch_user *user, unsigned int n); /* any thread */
unsigned int comch_fds_held(const struct comch_user *user);
/* What a user reads that has reached max_fds. */
void comch_fds_text(const struct comch_device *dev, const struct comch_user *user,
		    char text[COMCH_REFUSED_TEXT]);

/* closer.c */
int comch_closer_open(struct comch_device *dev, struct comch_closer **closer_p);
/* after what is queued has been closed; may be NULL */
void comch_closer_close(struct comch_closer *closer);
/*
 * Close descriptors that another user has or had, without waiting for it. Those of -1 are left out.
 * They count until then.
 */
void comch_close_foreign(struct comch_device *dev, struct comch_user *user, const int *fds,
			 unsigned int n);

/* device.c */
void comch_watch_end(struct comch_device *dev, int fd);
int comch_watch_add(struct comch_device *dev, int fd, uint32_t events, struct comch_watch *watch);
void comch_watch_close(struct comch_device *dev, int fd);
/* any thread: progress has to look at all connections */
void comch_device_kick(struct comch_device *dev);
/*
 * All threads of processes that registered pass a full fence, and so does the caller. 0, or -errno
 * without dev->membarrier.
 */
static inline int comch_membarrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) ? -errno : 0;
}
static inline bool comch_only_looks(const struct comch_device *dev)
{
	return dev->host->flags & GANTRY_HOST_DRY_RUN;
}

/* scan.c */
int comch_scan(const struct gantry_host *host, struct gantry_writer *w);

/* listener.c */
int comch_listen(void *device, const char *service, const struct gantry_conn_events *events,
		 void *arg, void **listener_p);
void comch_unlisten(void *listener);
void comch_listener_ready(struct comch_listener *l);
void comch_listener_free(struct comch_listener *l);
void comch_listeners_resume(struct comch_device *dev); /* those that pause accept again */
void comch_send_refused(int fd, uint32_t reason, const char *text);
/* Log at most one refusal in a second, because a refused client may reconnect at once. */
void comch_log_refusal(struct comch_device *dev, const char *text);

/* conn.c */
/* takes over fd when it returns 0 */
int comch_conn_accept(struct comch_listener *l, int fd, struct comch_share *share);
/* End a connection that was not accepted: its client gets ECONNREFUSED. */
void comch_conn_drop(struct comch_conn *conn);
const char *comch_refusal(void *conn);
int comch_connect(void *device, const char *service, const struct gantry_conn_events *events,
		  void *arg, void **conn_p);
int comch_send_ctrl(void *conn, const void *msg, size_t len);
void comch_disconnect(void *conn);
void comch_conn_ready(struct comch_conn *conn, uint32_t events);
/* deadlines, poison, failed connects */
void comch_conn_check(struct comch_conn *conn, uint64_t now_ns);
void comch_conn_free(struct comch_conn *conn);
/* The peer broke the rules: one line in the log; `closed` follows in this progress. */
void comch_conn_broken(struct comch_conn *conn, const char *why);
/* The same, and a client reads why. */
void comch_conn_expel(struct comch_conn *conn, const char *why);
/* The user of the peer has reached max_fds: the peer reads so, and the connection ends. */
void comch_conn_full(struct comch_conn *conn);
/*
 * Count n descriptors that are about to be made for the peer. False: they are too many, and the
 * connection ends.
 */
bool comch_conn_take_fds(struct comch_conn *conn, unsigned int n);
/* Close what the peer sent, or sends to; it was counted. */
void comch_conn_close_fds(const struct comch_conn *conn, const int *fds, unsigned int n);
/* 0 or -EPERM, -ENOTCONN: may the user use it for something new? */
int comch_conn_usable(const struct comch_conn *conn);

/* outbox.c */
int comch_out_send(struct comch_conn *conn, const struct comch_frame *frame, const int *fds,
		   unsigned int n_fds);
/* What the peer waits for: a connection over which it cannot be said ends. */
void comch_out_must(struct comch_conn *conn, const struct comch_frame *frame);
void comch_out_id(struct comch_conn *conn, enum comch_type type, uint32_t id);
void comch_out_flush(struct comch_conn *conn);
void comch_out_drop(struct comch_conn *conn);

/* memory.c */
struct comch_memory {
	const char *what; /* for messages: "region" 3 */
	uint32_t number;
	int fd;
	uint64_t offset, bytes; /* of the part that is exported */
	uint64_t quota_bytes;   /* the most that the file may have */
};

/*
 * Check memory that comes from the peer, or goes to it: seals, size, and allocated pages. Returns
 * 0; or -errno as from gantry_memfd_check and gantry_memfd_check_pages, with the reason in `why`.
 */
int comch_memory_check(const struct comch_conn *conn, const struct comch_memory *m,
		       char why[COMCH_WHY]);
/*
 * The same, and -EPERM unless a seal against writing keeps the peer from freeing the pages later.
 */
int comch_memory_check_frozen(const struct comch_conn *conn, const struct comch_memory *m,
			      char why[COMCH_WHY]);

/* pages.c */
/*
 * Check that the file of a region has all its pages, and from now on that it keeps them. 0 or
 * -errno; see conn->import_error.
 */
int comch_pages_begin(struct comch_conn *conn, struct comch_import *r);
void comch_pages_end(struct comch_conn *conn, struct comch_import *r);
/* Check all regions, and end the connections of peers that freed pages. */
void comch_pages_check(struct comch_device *dev, uint64_t now_ns);

/* region.c. on_*: a frame came; they return NULL or what is wrong with it */
uint64_t comch_export_limit(void *conn);
int comch_export(void *conn, const struct gantry_region *region, uint32_t rights, uint32_t handle,
		 struct gantry_token *token_p);
int comch_import(void *conn, const struct gantry_token *token, uint32_t flags,
		 struct gantry_region **region_p);
const char *comch_import_error(void *conn);
void comch_release(void *conn, struct gantry_region *region);
int comch_revoke(void *conn, uint32_t handle);
const char *comch_on_region(struct comch_conn *conn, const struct comch_region_up *up, int *fds);
const char *comch_on_region_ok(struct comch_conn *conn, uint32_t ref);
const char *comch_on_revoke(struct comch_conn *conn, uint32_t ref);
const char *comch_on_released(struct comch_conn *conn, uint32_t ref);
void comch_regions_retry(struct comch_conn *conn); /* sign off what no lane reads any more */
/* tell `revoked` for all that are still out */
void comch_regions_closed(struct comch_conn *conn, int rc);
/* Map all imported regions, now and from now on; 0 or -errno. */
int comch_regions_map(struct comch_conn *conn);
/*
 * Put private pages in place of the memory of the peer, so that no lane waits for it any more. The
 * peer is being expelled.
 */
void comch_regions_cut_off(struct comch_conn *conn);
void comch_regions_free(struct comch_conn *conn);

/* queues.c: the control side of consumers and producers */
int comch_consumer_create(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
			  void **consumer_p);
void comch_consumer_destroy(void *consumer);
int comch_producer_create(void *conn, uint32_t consumer_id, const struct gantry_queue_attr *attr,
			  void **producer_p);
void comch_producer_destroy(void *producer);
const char *comch_on_consumer(struct comch_conn *conn, const struct comch_consumer_up *up,
			      int *fds);
const char *comch_on_consumer_gone(struct comch_conn *conn, uint32_t id);
const char *comch_on_producer(struct comch_conn *conn, const struct comch_producer_up *up,
			      int *fds);
const char *comch_on_producer_ok(struct comch_conn *conn, const struct comch_producer_ok *ok);
const char *comch_on_producer_gone(struct comch_conn *conn, uint32_t id);
void comch_queues_free(struct comch_conn *conn);

/* bell.c */
int comch_bell_create(const struct comch_conn *conn, int *wait_p, int *ring_p);
bool comch_bell_ok(const struct comch_conn *conn, int fd); /* may what the peer sent be rung? */
void comch_bell_ring(const struct comch_conn *conn, int fd);
void comch_bell_clear(struct comch_conn *conn, int fd);
/* unless it is cleared it will not ring any more */
bool comch_bell_fills(const struct comch_conn *conn);

/* consumer.c, producer.c, rma.c: the lanes */
int comch_post_recv(void *consumer, const struct gantry_recv *recvs, uint32_t n);
int comch_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max);
int comch_consumer_arm(void *consumer);
void comch_consumer_disarm(void *consumer);
int comch_consumer_fd(void *consumer);
int comch_send(void *producer, const struct gantry_send *send, uint32_t flags);
void comch_flush(void *producer);
void comch_send_prefetch(void *producer);
int comch_poll_send(void *producer, uint64_t *cookies, uint32_t max);
/*
 * Control thread, the lane has stopped: the consumer delivers no message of a region that it has
 * not read completely by now.
 */
void comch_withdraw(struct comch_producer *p);
int comch_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
void comch_rma_destroy(void *rma);
int comch_rma_submit(void *rma, const struct gantry_rma *op);
void comch_rma_flush(void *rma);
int comch_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max);
/* A lane found that the peer broke a queue. Any thread. */
void comch_conn_poison(struct comch_conn *conn);

#endif
