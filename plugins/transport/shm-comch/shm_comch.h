/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_comch.h - the objects of the shm-comch transport.
 *
 *   device ---- listener*           a socket in the runtime directory
 *      \------- conn*               a peer: socket, pidfd, frames to send
 *                 |-- imported[64]  regions of the peer, mapped when needed
 *                 |-- exported[64]  regions of this side, mapped by the peer
 *                 |-- consumer*     one credit page, and a ring for each producer of the peer
 *                 |-- remote*       consumers of the peer
 *                 |-- producer*     one ring to a remote
 *                 \-- rma*
 *
 * Threads: the control thread creates, changes and destroys all objects. A lane owns the "lane"
 * part of its queues. Fields that a lane and the control thread access are marked "shared" and are
 * atomic. A lane never frees memory: it marks an object, and the control thread frees it.
 *
 * Memory: each memfd has one writer. Memory that the peer can write is read through gantry/shm.h
 * and checked, and its content can change at any time. A corrupt queue ends its connection; other
 * connections are not affected.
 */
#ifndef COMCH_H
#define COMCH_H

#include <errno.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <gantry/copy.h>
#include <gantry/rundir.h>
#include <gantry/transport.h>

#include "../common/cells.h"
#include "../common/done.h"
#include "shm_ring.h"
#include "shm_wire.h"

#define COMCH_WHY 160u /* bytes of a reason, for the log */
#define COMCH_CONSUMERS 128u
#define COMCH_PRODUCERS 256u
#define COMCH_CONNS 1024u /* limit of connections per device */
/* limit of half-open connections per user: accepted, and no HELLO received */
#define COMCH_HALF_OPEN 64u
#define COMCH_UIDS 16u
#define COMCH_CONSUMER_FDS 3u /* descriptors per consumer: credit page, both ends of the doorbell */
#define COMCH_PRODUCER_FDS 1u /* descriptors per producer: ring */
/*
 * time after which a paused listener accepts again, because not every closed descriptor causes an
 * event
 */
#define COMCH_PAUSE_NS 10000000ull
/*
 * size of the file name of a service, which follows /proc/self/fd/NUMBER/ in the address of its
 * socket
 */
#define COMCH_NAME_BYTES 83u
#define COMCH_HELLO_NS 2000000000ull /* time limit of HELLO after a connect */
/* time limit from the end of the peer's socket to the end of its process */
#define COMCH_DEATH_NS 80000000ull
/* average interval of the checks of imported pages, which take 1 to 2 us per region */
#define COMCH_PAGES_NS 100000000ull
#define COMCH_CTRL_QUEUE 32u /* limit of queued control messages */
/* limit of queued frames of all kinds; beyond it the connection ends */
#define COMCH_FRAME_QUEUE 1024u

struct comch_conf {
	const char *pci, *dir, *uids;
	int64_t max_depth, ring_slots;
	uint64_t max_bytes;
	uint8_t mapped;
};

struct comch_rundir {
	int fd;        /* descriptor of the directory DIR/PCI */
	char path[96]; /* path of the directory, for messages */
};

/* Data of an epoll event. */
struct comch_watch {
	enum { COMCH_W_DEVICE, COMCH_W_LISTENER, COMCH_W_SOCKET, COMCH_W_PROCESS } kind;
	void *self;
};

/* Descriptors that a user makes this process hold. */
struct comch_user {
	struct comch_user *next;
	uint32_t uid;
	unsigned int refs;  /* number of devices that count this user */
	unsigned int n_fds; /* number of these descriptors; control threads and closers change it */
};

/* Connections that a device has accepted from one user. */
struct comch_share {
	struct comch_user *user;
	unsigned int n_conns, n_half_open;
};

LIST_HEAD(comch_listeners, comch_listener);
LIST_HEAD(comch_conns, comch_conn);

/* The body of the loop may remove the current entry from the list, but not the next one. */
#define comch_each(entry, next, list) \
	for (entry = LIST_FIRST(list); entry && (next = LIST_NEXT(entry, link), 1); entry = next)

struct comch_device {
	const struct gantry_host *host;
	const struct comch_conf *conf;
	struct comch_rundir rundir;
	uint32_t uids[COMCH_UIDS];
	struct comch_share shares[COMCH_UIDS]; /* shares[i] belongs to the user uids[i] */
	struct comch_user *other_users;        /* all users that are not in uids */
	/* limit of the descriptors that one user may make this process hold */
	unsigned int max_fds;
	unsigned int n_uids, n_conns;
	uint64_t refused_ns; /* time of the last logged refusal */
	pid_t pid;           /* process that opened the device: a forked child must not use it */
	int epoll, wake, reserve;
	struct comch_watch watch;
	struct comch_listeners listeners, reap_list_listeners;
	struct comch_conns conns, reap_list;
	int in_progress, events;
	bool membarrier;
	bool only_looks; /* not open: the check compares its directory with this machine */
	bool retry;      /* a region waits until a lane has finished its copy */
	/* shared: a connection must be checked for an event that no file descriptor reports */
	uint32_t unseen;
	uint64_t deadline_ns; /* earliest deadline of a connection; 0: none */
	uint64_t resume_ns;   /* time at which paused listeners accept again; 0: none is paused */
	/*
	 * shared: a listener is paused, so the closer kicks the device after it has closed
	 * descriptors
	 */
	uint32_t paused;
	/* time of the next check of imported pages; 0: no region needs one */
	uint64_t pages_ns;
	uint64_t *protocol_errors, *connections; /* counters */
	/* closes descriptors of other users; NULL: all peers run as the user of this process */
	struct comch_closer *closer;
	struct tc_cells payload; /* bytes copied, for each queue */
};

struct comch_listener {
	/* link in the list of listeners of the device, or in its reap list */
	LIST_ENTRY(comch_listener) link;
	struct comch_watch watch;
	struct comch_device *dev;
	const struct gantry_conn_events *events;
	void *arg;
	int fd, lock;
	bool dead, paused;
	char name[COMCH_NAME_BYTES], lock_name[COMCH_NAME_BYTES];
};

enum comch_state {
	COMCH_S_FAILED = 1, /* connect has failed: `closed` is pending */
	/* client: waits for HELLO of the server; server: waits for HELLO of the client */
	COMCH_S_HELLO,
	COMCH_S_ACCEPT, /* accept of the user is being called; frames are queued */
	COMCH_S_OPEN,
	COMCH_S_DYING,  /* the socket of the peer has ended, its process has not */
	COMCH_S_CLOSED, /* `closed` has been delivered */
	COMCH_S_DEAD    /* the connection is in the reap list */
};

struct comch_out {
	TAILQ_ENTRY(comch_out) link;
	size_t len;
	bool ctrl; /* a control message of the user */
	unsigned int n_fds;
	int fds[COMCH_FDS_MAX]; /* duplicates, which this struct owns */
	uint8_t frame[];        /* len bytes */
};

struct comch_import {
	uint32_t state; /* shared; COMCH_I_*. Stored after the other fields of a new import */
	uint32_t ref, handle, rights;
	uint64_t length;
	void *base; /* start of the mapping */
	size_t base_bytes;
	void *addr;
	int fd;
	uint64_t fd_offset;
	int hold_socket;   /* of the region; 0: none */
	int hold;          /* of gantry_hold(), while the user can access the mapping; -1: none */
	int error;         /* -errno of a failed mapping */
	unsigned int refs; /* import_region calls minus release_region calls */
	bool can_shrink;   /* the peer can free pages, and the user wants that detected */
	/* limits of the number of 512-byte blocks of the file: shm_pages.c */
	uint64_t blocks_min, blocks_max;
	struct comch_conn *conn;
};

enum { COMCH_I_FREE, COMCH_I_LIVE, COMCH_I_REVOKED };

struct comch_export {
	uint32_t state; /* shared; COMCH_E_* */
	uint32_t ref, handle, rights;
	uint64_t length;
	const struct gantry_region *region; /* compared, never dereferenced */
};

enum { COMCH_E_FREE, COMCH_E_SENT, COMCH_E_LIVE, COMCH_E_REVOKING };

struct comch_conn {
	LIST_ENTRY(comch_conn) link;
	struct comch_watch watch, death;
	struct comch_device *dev;
	/* server end: listener, until the connection is accepted */
	struct comch_listener *listener;
	/* server end: connections of the peer's user; client end: NULL */
	struct comch_share *share;
	struct comch_user *user; /* user of the peer; NULL: not known yet */
	const struct gantry_conn_events *events;
	void *arg;
	struct gantry_peer peer;
	enum comch_state state;
	int fd, pidfd;
	int hold_socket;                  /* of comch_hold_exports(); 0: none */
	char service[64];                 /* client end: the requested service */
	char refusal[COMCH_REFUSED_TEXT]; /* client end: the reason in REFUSED; "": none received */
	int reason;                       /* reason that `closed` reports */
	/*
	 * -EMFILE or -ENOMEM: this process lacked a resource, and `closed` reports this error
	 * instead of -EPROTO. 0: no such error.
	 */
	int lack;
	bool said_bye, is_dead, membarrier, half_open;
	uint64_t deadline_ns; /* next deadline of this connection; 0: none */
	TAILQ_HEAD(, comch_out) out;
	unsigned int n_out, n_out_ctrl;
	bool want_out;
	bool touches;          /* a queue of this side accesses data of regions */
	uint32_t lost;         /* shared: not 0 after the connection is lost; sends then fail */
	uint32_t poison;       /* shared: enum comch_corruption that a lane has found; 0: none */
	uint32_t export_epoch; /* shared: increases with each change of exported[] */
	uint32_t next_consumer, next_producer;
	unsigned int n_consumers, n_producers, n_remotes, n_rings;
	unsigned int n_checked; /* number of imported regions whose pages are checked */
	uint64_t imported_bytes, exported_bytes;
	uint64_t peer_room;  /* limit of the bytes that this side can export to the peer */
	char why[COMCH_WHY]; /* why the connection is dropped */
	/* reason of the last failed import_region; "": only its error number */
	char import_error[COMCH_WHY];
	LIST_HEAD(, comch_consumer) consumers;
	LIST_HEAD(, comch_producer) producers;
	LIST_HEAD(, comch_remote) remotes;
	LIST_HEAD(, comch_rma) rmas;
	struct comch_import imported[COMCH_REGIONS];
	struct comch_export exported[COMCH_REGIONS];
	/*
	 * highest consumer id of the peer; the next one must be higher. seen_producers: the same
	 * for producers
	 */
	uint32_t seen_consumers;
	uint32_t seen_producers;
};

/* Receiving end of a ring of the peer. */
struct comch_in {
	/* -- set before the lane sees the ring -- */
	const struct comch_slot *slots;
	struct comch_line *line; /* line of this ring in the credit page of this side */
	uint32_t mask, producer; /* producer: the peer's id */
	/* -- lane -- */
	uint64_t position;
	uint32_t taken;                   /* messages that the lane has taken */
	uint32_t given_tail, given_limit; /* credit that was last published */
	uint32_t last_slots;              /* slots of the last message */
	/* data of a region has been read, and the producer has not been notified */
	bool copied;
	/* -- shared -- */
	uint32_t gone;     /* the producer has been destroyed: no message follows */
	uint32_t detached; /* the lane does not use the ring any more */
};

struct comch_consumer {
	/* -- lane -- */
	struct gantry_recv *posts; /* ring of posted receives, of at least two entries */
	/*
	 * size of posts[] - 1; 0 until a receive has a buffer: until then posts[] is all zero, and
	 * its first entry is used for all receives
	 */
	uint32_t post_mask;
	uint32_t posts_last, depth, max_data;
	/* free-running counts; the control thread reads them when it attaches a ring */
	uint32_t n_posted, n_used;
	uint32_t credit_batch; /* receives that are returned together */
	uint32_t next;         /* ring to poll first */
	uint64_t known;        /* bit mask of rings that have been given credit at least once */
	bool dirty;            /* there is unpublished credit */
	bool broken;
	/*
	 * State of the request to ring the bell. 0: no request; else 1 + the number of polls that
	 * have returned messages since the request.
	 */
	uint8_t asks;
	uint8_t unsure; /* wake-ups that found no message */
	bool clears;    /* the bell must be cleared after it has been rung */
	struct comch_page *page;
	struct comch_conn *conn;
	uint64_t *payload; /* counter: bytes copied */
	/* -- shared -- */
	uint64_t active __attribute__((aligned(64))); /* bit mask of rings that the lane polls */
	uint32_t copying; /* index + 1 of the imported region that the lane copies from; 0: none */
	/* -- control -- */
	LIST_ENTRY(comch_consumer) link __attribute__((aligned(64)));
	uint32_t id;
	/* bell: end of the doorbell on which the lane waits. bell_ring: end that the peer gets */
	int page_fd, bell, bell_ring;
	struct comch_in *in[COMCH_RINGS];
};

/* A consumer of the peer. */
struct comch_remote {
	LIST_ENTRY(comch_remote) link;
	uint32_t id, max_data;
	bool up;
	unsigned int refs; /* number of producers */
	const struct comch_page *page;
	int bell;
};

struct comch_cookie {
	uint64_t cookie;
	uint64_t end; /* position after the last slot of the message */
};

struct comch_producer {
	/* -- lane; the first cache line has all fields that a short message needs -- */
	struct comch_slot *slots;
	const uint32_t *asleep;
	struct comch_conn *conn;
	uint64_t position;
	uint64_t tail; /* number of slots that the consumer has consumed, as last loaded */
	uint32_t mask;
	/*
	 * number of slots that are not the first of their message; position - more is the number of
	 * sent messages
	 */
	uint32_t more;
	/* number of messages that can be sent, counted from the first one, as last loaded */
	uint32_t limit;
	bool unrung, fence;
	uint32_t gone; /* shared: the consumer has been destroyed */
	struct comch_cookie *cookies;
	uint32_t cookie_mask, cookie_head, cookie_tail;
	const struct gantry_region *last_region; /* its index in exported[] is last_slot */
	uint32_t last_epoch, last_slot, max_data;
	int bell;
	/* -- shared -- */
	const struct comch_line *line; /* NULL until the consumer has attached the ring */
	/* -- control -- */
	LIST_ENTRY(comch_producer) link;
	struct comch_remote *remote;
	uint32_t id, n_slots;
	int ring_fd;
};

struct comch_rma {
	LIST_ENTRY(comch_rma) link;
	struct comch_conn *conn;
	struct tc_done done;
	struct {
		const struct comch_import *from; /* NULL: no read is held back */
		void *to;
		uint64_t offset;
		uint32_t ref, length;
	} held;            /* the read that is held back; its entry in `done` is the last one */
	uint64_t *payload; /* counter: bytes copied */
};

/* -- shm_rundir.c: the directory of the sockets -- */
#define COMCH_DIR_BYTES 256u /* size of a buffer for the path of a runtime directory */
void comch_rundir_check(const struct comch_conf *conf, const struct gantry_check *check);
int comch_rundir_open(const struct comch_device *dev, struct comch_rundir *rundir);
void comch_rundir_close(struct comch_rundir *rundir);
int comch_rundir_bind(const struct comch_device *dev, const char *service,
		      struct comch_listener *l);
void comch_rundir_unbind(struct comch_device *dev, struct comch_listener *l);
/*
 * Remove the socket of `service` if no process listens at it. comch_rundir_sweep_all() does so for
 * all services of the directory.
 */
void comch_rundir_sweep(const struct comch_device *dev, const char *service);
void comch_rundir_sweep_all(const struct comch_device *dev);
/*
 * Returns a connected socket, or
 *
 *     -ECONNREFUSED  there is no listener
 *     -EBUSY         the backlog of the listener is full
 *     -errno         of a system call
 */
int comch_rundir_connect(const struct comch_device *dev, const char *service);

/* -- shm_socket.c: sends and receives frames, identifies the peer -- */
ssize_t comch_socket_send(int fd, const void *frame, size_t len, const int *fds,
			  unsigned int n_fds);
/*
 * Receive a frame. Returns its bytes, or
 *
 *     0        the end of the socket
 *     -EAGAIN  no frame
 *     -EPROTO  invalid frame; reason in *why_p
 *     -EMFILE  this process has no free descriptor; reason in *why_p
 *
 * fds: COMCH_FDS_MAX entries. The caller must close the first *n_fds_p, whatever is returned. A
 * message with more descriptors stays in the socket.
 */
ssize_t comch_socket_recv(int fd, struct comch_frame *frame, int *fds, unsigned int *n_fds_p,
			  const char **why_p);
int comch_socket_peer(int fd, struct gantry_peer *peer);
/* Returns a pidfd of the peer's process; -1: not available. */
int comch_socket_pidfd(int fd, int32_t pid);
void comch_close_fds(const int *fds, unsigned int n); /* ignores entries of -1 */
/* counts the entries other than -1 */
unsigned int comch_count_open(const int *fds, unsigned int n);
uint64_t comch_now(const struct comch_device *dev);

/* -- shm_share.c -- */
int comch_shares_open(struct comch_device *dev); /* 0 or -errno; call close in either case */
void comch_shares_close(struct comch_device *dev);
/* Returns the share of a user; NULL: the user is not in uids. */
struct comch_share *comch_share(struct comch_device *dev, uint32_t uid);
/*
 * Count n more descriptors for a user. Returns false if that exceeds the limit of the user. A NULL
 * user is not counted, and the function returns true.
 */
bool comch_fds_add(const struct comch_device *dev, struct comch_user *user, unsigned int n);
void comch_fds_sub(struct comch_user *user, unsigned int n); /* any thread */
unsigned int comch_fds_held(const struct comch_user *user);
/* Write the reason why a user that has reached max_fds is refused. */
void comch_fds_text(const struct comch_device *dev, const struct comch_user *user,
		    char text[COMCH_REFUSED_TEXT]);

/* -- shm_closer.c -- */
int comch_closer_open(struct comch_device *dev, struct comch_closer **closer_p);
/* returns after all queued descriptors have been closed; ignores NULL */
void comch_closer_close(struct comch_closer *closer);
/*
 * Close descriptors whose open files another user also holds or has held, without blocking. Ignores
 * entries of -1. The descriptors count until they are closed.
 */
void comch_close_foreign(struct comch_device *dev, struct comch_user *user, const int *fds,
			 unsigned int n);

/* -- shm_device.c -- */
void comch_watch_end(struct comch_device *dev, int fd);
int comch_watch_add(struct comch_device *dev, int fd, uint32_t events, struct comch_watch *watch);
void comch_watch_close(struct comch_device *dev, int fd);
/* Make the control thread check all connections. Any thread. */
void comch_device_kick(struct comch_device *dev);
/*
 * Issue a full fence in all threads of all registered processes, and in the caller. Returns 0;
 * -errno without dev->membarrier.
 */
static inline int comch_membarrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) ? -errno : 0;
}

/* -- shm_scan.c -- */
int comch_scan(const struct gantry_host *host, struct gantry_writer *w);

/* -- shm_listener.c -- */
int comch_listen(void *device, const char *service, const struct gantry_conn_events *events,
		 void *arg, void **listener_p);
void comch_unlisten(void *listener);
void comch_listener_ready(struct comch_listener *l);
void comch_listener_free(struct comch_listener *l);
void comch_listeners_resume(struct comch_device *dev); /* paused listeners accept again */
void comch_send_refused(int fd, uint32_t reason, const char *text);
/* Log at most one refusal in a second, because a refused client can reconnect immediately. */
void comch_log_refusal(struct comch_device *dev, const char *text);

/* -- shm_conn.c -- */
/* Takes ownership of fd if it returns 0. */
int comch_conn_accept(struct comch_listener *l, int fd, struct comch_share *share);
/* End a connection that was not accepted: its client gets ECONNREFUSED. */
void comch_conn_drop(struct comch_conn *conn);
const char *comch_refusal(void *conn);
int comch_connect(void *device, const char *service, const struct gantry_conn_events *events,
		  void *arg, void **conn_p);
int comch_send_ctrl(void *conn, const void *msg, size_t len);
void comch_disconnect(void *conn);
void comch_conn_ready(struct comch_conn *conn, uint32_t events);
/* Check deadlines, corrupt queues and failed connects. */
void comch_conn_check(struct comch_conn *conn, uint64_t now_ns);
void comch_conn_free(struct comch_conn *conn);
/* The peer has violated the protocol. Logs one line; `closed` follows in this progress. */
void comch_conn_broken(struct comch_conn *conn, const char *why);
/* As comch_conn_broken(). If the peer is a client, send it the reason. */
void comch_conn_expel(struct comch_conn *conn, const char *why);
/*
 * The user of the peer has reached max_fds: end the connection. If the peer is a client, send it
 * the reason first.
 */
void comch_conn_full(struct comch_conn *conn);
/*
 * Count n descriptors that are about to be created for the peer. Returns false if they exceed the
 * limit; then the connection ends.
 */
bool comch_conn_take_fds(struct comch_conn *conn, unsigned int n);
/* Close descriptors that were counted, and whose open files the peer also holds or has held. */
void comch_conn_close_fds(const struct comch_conn *conn, const int *fds, unsigned int n);
/*
 * Check whether the user can use the connection. Returns 0; -EPERM: the device belongs to a parent
 * process; -ENOTCONN: the connection is not up.
 */
int comch_conn_usable(const struct comch_conn *conn);

/* -- shm_outbox.c -- */
int comch_out_send(struct comch_conn *conn, const struct comch_frame *frame, const int *fds,
		   unsigned int n_fds);
/* Send a frame that the peer waits for. If it cannot be sent or queued, the connection ends. */
void comch_out_must(struct comch_conn *conn, const struct comch_frame *frame);
void comch_out_id(struct comch_conn *conn, enum comch_type type, uint32_t id);
void comch_out_flush(struct comch_conn *conn);
void comch_out_drop(struct comch_conn *conn);

/* -- shm_memory.c -- */
struct comch_memory {
	const char *what; /* name of the memory in messages, such as "region" */
	uint32_t number;
	int fd;
	uint64_t offset, bytes; /* offset and length of the exported part of the file */
	uint64_t quota_bytes;   /* limit of the size of the file */
};

/*
 * Check memory that the peer exports, or that is exported to it: seals, size, and allocated pages.
 * Returns 0; or -errno as gantry_memfd_check() and gantry_memfd_check_pages(), with the reason in
 * `why`.
 */
int comch_memory_check(const struct comch_conn *conn, const struct comch_memory *m,
		       char why[COMCH_WHY]);
/*
 * As comch_memory_check(); also -EPERM unless a seal against writing prevents the peer from freeing
 * pages later.
 */
int comch_memory_check_frozen(const struct comch_conn *conn, const struct comch_memory *m,
			      char why[COMCH_WHY]);

/* -- shm_pages.c -- */
/*
 * Check that the file of a region has all its pages, and start regular checks that it keeps them.
 * Returns 0 or -errno, with the reason in conn->import_error.
 */
int comch_pages_begin(struct comch_conn *conn, struct comch_import *r);
void comch_pages_end(struct comch_conn *conn, struct comch_import *r);
/* Check all regions, and end the connections of peers that freed pages. */
void comch_pages_check(struct comch_device *dev, uint64_t now_ns);

/*
 * -- shm_region.c. on_*: handle a received frame; return NULL, or the reason why it is invalid --
 */
uint64_t comch_export_limit(void *conn);
int comch_export(void *conn, const struct gantry_region *region, uint32_t rights, uint32_t handle,
		 struct gantry_token *token_p);
int comch_import(void *conn, const struct gantry_token *token, uint32_t flags,
		 struct gantry_region **region_p);
const char *comch_import_error(void *conn);
void comch_release(void *conn, struct gantry_region *region);
int comch_revoke(void *conn, uint32_t handle);
int comch_hold_exports(void *conn, int socket);
/* fds: the memory, and hold_socket or -1 */
const char *comch_on_region(struct comch_conn *conn, const struct comch_region_up *up, int *fds);
const char *comch_on_region_ok(struct comch_conn *conn, uint32_t ref);
const char *comch_on_revoke(struct comch_conn *conn, uint32_t ref);
const char *comch_on_released(struct comch_conn *conn, uint32_t ref);
/* releases revoked regions that no lane copies from */
void comch_regions_retry(struct comch_conn *conn);
/* Deliver `revoked` for all remaining exports. */
void comch_regions_closed(struct comch_conn *conn, int rc);
/* Map all imported regions, and from now on each new one. Returns 0 or -errno. */
int comch_regions_map(struct comch_conn *conn);
/*
 * Replace the memory of a peer that is being expelled by private pages, so that no lane waits for
 * that memory.
 */
void comch_regions_cut_off(struct comch_conn *conn);
void comch_regions_free(struct comch_conn *conn);

/* -- shm_queues.c: consumers and producers, control thread -- */
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

/* -- shm_bell.c -- */
int comch_bell_create(const struct comch_conn *conn, int *wait_p, int *ring_p);
/* Returns true if fd, which the peer sent as a doorbell, is of a kind that can be one. */
bool comch_bell_ok(const struct comch_conn *conn, int fd);
void comch_bell_ring(const struct comch_conn *conn, int fd);
void comch_bell_clear(struct comch_conn *conn, int fd);
/* Returns true if a bell that is never cleared becomes full and then loses rings. */
bool comch_bell_fills(const struct comch_conn *conn);

/* -- shm_consumer.c, shm_producer.c, shm_rma.c: the lanes -- */
int comch_post_recv(void *consumer, uint32_t n);
int comch_post_recv_data(void *consumer, const struct gantry_recv *recvs, uint32_t n);
int comch_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max);
int comch_consumer_arm(void *consumer);
void comch_consumer_disarm(void *consumer);
int comch_consumer_fd(void *consumer);
int comch_send(void *producer, const void *imm, uint32_t imm_len, uint32_t flags);
int comch_send_data(void *producer, const struct gantry_send *send, uint32_t flags);
void comch_flush(void *producer);
void comch_send_prefetch(void *producer);
int comch_poll_send(void *producer, uint64_t *cookies, uint32_t max);
/*
 * Withdraw the sends of regions whose data has not been read completely: the consumer does not
 * deliver them. Thread: control, after the lane has stopped.
 */
void comch_withdraw(struct comch_producer *p);
int comch_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
void comch_rma_destroy(void *rma);
int comch_rma_submit(void *rma, const struct gantry_rma *op);
void comch_rma_flush(void *rma);
int comch_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max);

/* What the peer has corrupted. */
enum comch_corruption {
	COMCH_CORRUPT_RECEIVE = 1, /* ring that the peer fills */
	COMCH_CORRUPT_SEND,        /* credit for a ring that this process fills */
	COMCH_CORRUPT_BELL,        /* doorbell socket */
};

/*
 * Record a corruption that a lane has found. The control thread then logs it and ends the
 * connection. Thread: any.
 */
void comch_conn_poison(struct comch_conn *conn, enum comch_corruption what);

#endif
