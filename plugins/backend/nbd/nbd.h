/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd.h - internal interface of the nbd backend, which serves the export of an NBD server.
 *
 *     nbd_uri.c      checks the URI; derives from it a text without credentials, and the UUID
 *     nbd_dial.c     connects one handle of libnbd, and compares the export with the first one
 *     nbd_connect.c  thread that connects the handles of all lanes, with a growing delay
 *     nbd_loss.c     verifier; which flushes must fail after a loss; writes that a server can still
 *                    execute after the loss of its connection
 *     nbd_command.c  submits one IO as a command of libnbd, and evaluates the reply
 *     nbd_lane.c     the lane: waiting IOs, deadlines, events of the sockets
 *     nbd.c          plugin interface
 *
 * Life of a connection:
 *
 *      wanted --- thread: dials ---> fresh --- lane: takes it ---> connected
 *        ^                                                           |
 *        +--- lane: lost by close, error, deadline or incarnation ---+
 *
 * When one connection is lost, all connections of the store are replaced, because another server
 * process may answer from now on. The incarnation of the store counts these losses.
 */
#ifndef NB_NBD_H
#define NB_NBD_H

#include <libnbd.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#include <gantry/backend.h>

#define NB_MAX_IO (16u << 20)
#define NB_MAX_REQUESTS 4096u       /* limit of requests per lane */
#define NB_MAX_CONNECTIONS 16       /* limit of the option connections */
#define NB_MAX_LATE 1024u           /* limit of late writes; beyond it, all further ones are one */
#define NB_MARKS 1024u              /* size of a table of sessions or queues; a power of two */
#define NB_TEXT_BYTES 512           /* size of a buffer for the URI without credentials */
#define NB_NEVER UINT64_MAX         /* a time that is not reached */
#define NB_DEADLINE_NS 30000000000u /* of an IO without a deadline */
#define NB_FIRST_DELAY_NS 50000000u /* before the next attempt to connect */

struct nb_conf {
	const char *uri;
	const char *uuid;
	const char *tls_certificates;
	const char *tls_psk_file;
	const char *tls_username;
	int64_t connections;
	uint64_t block;
	uint64_t connect_timeout_ns;
	uint64_t quiesce_time_ns;
	uint8_t read_only;
};

/* The properties of an export that must stay the same. */
struct nb_export {
	uint64_t size;
	uint64_t block; /* smallest block that the server permits, at least 512 */
	uint64_t max_io;
	uint8_t read_only, flush, fua, trim, zero, multi_conn, extents;
};

enum nb_use { NB_FREE, NB_WAITS, NB_SENT, NB_DONE };

/* One IO in progress. */
struct nb_request {
	TAILQ_ENTRY(nb_request) link; /* in the list that `use` names */
	struct nb_lane *lane;
	struct nb_conn *conn; /* of NB_SENT and NB_DONE */
	struct gantry_io *io;
	uint64_t serial; /* differs for each IO of the store */
	uint64_t start_ns, deadline_ns;
	uint64_t n_written; /* of a flush: acknowledged writes of the store when it was sent */
	uint64_t got;       /* of a read: bytes that chunks of the reply have filled */
	uint32_t use;       /* enum nb_use */
	int error;          /* of NB_DONE */
	uint8_t flushing;   /* a write with FUA is done, and its flush is in progress */
	uint8_t held;       /* waits for a late write */
};

TAILQ_HEAD(nb_list, nb_request);

/* A connection. `handle` belongs to the lane; the thread passes a new handle through `fresh`. */
struct nb_conn {
	struct nb_lane *lane;
	struct nbd_handle *handle; /* NULL: not connected */
	int fd;                    /* of the handle */
	uint32_t events;           /* for which epoll watches the fd; 0: it does not */
	int broken;                /* the lane must close it at the next poll */
	uint32_t n_sent;
	uint64_t incarnation;     /* of the store when the handle began to connect */
	uint64_t since_ns;        /* when the lane took the handle */
	struct nb_list sent;      /* NB_SENT */
	struct nbd_handle *fresh; /* __atomic */
	uint64_t fresh_incarnation;
	/* protected by store->lock */
	int wanted;
	LIST_ENTRY(nb_conn) wanted_link;
};

/* A write whose connection was lost before the reply: the server can execute it until end_ns. */
struct nb_late {
	uint64_t offset, length, serial, end_ns;
};

/*
 * An epoch of the store: of a session, when it submitted its first IO; of a queue, when it last
 * flushed.
 */
struct nb_mark {
	const void *key; /* session or io->owner, not used as a pointer; NULL: the entry is free */
	uint64_t epoch;
};

struct nb_store {
	const struct gantry_host *host;
	const struct nb_conf *conf;
	char text[NB_TEXT_BYTES]; /* URI without credentials, for messages and the UUID */
	uint8_t uuid[16];
	struct nb_export export;
	uint32_t block_size, max_io;

	pthread_mutex_t lock;
	pthread_cond_t wake; /* of the thread */
	pthread_t thread;
	int ending; /* __atomic; changed under lock */
	LIST_HEAD(, nb_conn) wanted;
	struct nbd_handle *first; /* that open has connected; NULL: a lane has taken it */

	/* protected by lock */
	uint64_t delay_ns; /* until the next attempt to connect */
	int delayed;       /* the next attempt must wait, although no attempt has failed */
	LIST_HEAD(, nb_lane) lanes;
	struct nb_mark sessions[NB_MARKS];
	int forgot; /* an unknown session can be an old one */

	/* written under lock; read with __atomic relaxed or acquire */
	uint64_t incarnation;
	uint64_t epoch; /* number of losses of acknowledged writes */
	uint64_t verifier;
	uint32_t n_late;
	struct nb_late late[NB_MAX_LATE];
	/* until then the server can execute writes of a former process of the target */
	uint64_t former_end_ns;
	int changed; /* the export differs from the first one: every IO fails */

	/* __atomic, from any lane */
	uint64_t n_written; /* acknowledged writes, without those with FUA */
	uint64_t n_flushed; /* value of n_written that a flush covers */
	uint64_t n_losses, n_reconnects, n_failed_dials, n_resent, n_timeouts, n_held, n_errors,
		n_failed_flushes;
};

struct nb_lane {
	LIST_ENTRY(nb_lane) link; /* in store->lanes */
	struct nb_store *store;
	uint32_t index;
	uint32_t n_requests;
	struct nb_request *requests;
	struct nb_list free, waiting, done;
	uint32_t n_waiting, n_sent;
	uint64_t next_deadline_ns; /* no deadline of a request is earlier */
	uint64_t next_serial;
	uint64_t held_until_ns; /* when the first of the held requests can be sent */
	int retry;              /* a waiting request might be sent now */
	uint32_t next_conn;
	int look;    /* examine idle connections at the next poll */
	int closing; /* replies are not evaluated */
	int sending; /* libnbd is in the call that submits a command */
	int epoll_fd, event_fd, timer_fd;
	uint64_t timer_ns; /* when the timer expires; 0: it is not set */
	uint32_t n_conns;
	struct nb_conn conns[NB_MAX_CONNECTIONS];
	const void *known[NB_MARKS]; /* sessions that are noted, at their hashes */
	struct nb_mark queues[NB_MARKS];
};

static inline uint64_t nb_get(const uint64_t *cell)
{
	return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

static inline void nb_count(uint64_t *cell)
{
	__atomic_fetch_add(cell, 1, __ATOMIC_RELAXED);
}

/* nbd_uri.c */

/* Returns NULL if libnbd could use the URI; else the problem, as a text that follows its name. */
const char *nb_uri_fault(const char *uri);

/* Copy the URI without user name and without parameters other than `socket`. */
void nb_uri_text(const char *uri, char text[NB_TEXT_BYTES]);

/* Derive the UUID from the text of the URI. */
void nb_uri_uuid(const struct gantry_host *host, const char *text, uint8_t uuid[16]);

/* nbd_dial.c */

/*
 * Connect a handle and get the properties of its export. Ends early when store->ending is set.
 * Returns the handle; NULL: failed, and `why` has the cause. Blocks up to connect_timeout, and for
 * as long as the name service takes to resolve the host name.
 */
struct nbd_handle *nb_dial(struct nb_store *store, struct nb_export *export, char *why,
			   size_t bytes);

/* Returns NULL if the export is the one that open found; else the property that differs. */
const char *nb_export_differs(const struct nb_export *first, const struct nb_export *now);

/* nbd_connect.c */

/* Start and stop the thread. Returns 0 or -errno. Control thread. */
int nb_connector_start(struct nb_store *store);
void nb_connector_stop(struct nb_store *store);

/* Let the thread connect. Lane's or control thread. */
void nb_connector_want(struct nb_conn *conn);
/* End that; closes a handle that the lane has not taken. Control thread. */
void nb_connector_forget(struct nb_conn *conn);

/* nbd_loss.c */

/* Record the loss of a connection. All replies that the lane has got are evaluated. */
void nb_loss_note(struct nb_conn *conn);

/* Record a write whose connection was lost before the reply. */
void nb_late_add(struct nb_store *store, const struct nb_request *request);
/* Returns the time until which the request must wait for late writes that it overlaps; 0: none. */
uint64_t nb_late_blocks(struct nb_store *store, const struct nb_request *request);
/* As `quiesce` of struct gantry_backend_ops. */
int nb_late_quiesce(struct nb_store *store, uint64_t *mark);

/* Note that a session has submitted an IO. */
void nb_session_note(struct nb_lane *lane, const struct gantry_io *io);
/* Returns 1 if this flush must fail, because the store has lost writes. The next one need not. */
int nb_queue_takes_loss(struct nb_lane *lane, const struct gantry_io *io);

/* nbd_command.c */

/* Returns 0: sent, or completed; -EAGAIN: the request must wait. The request is in no list. */
int nb_command_send(struct nb_lane *lane, struct nb_request *request);
/* Evaluate the replies that libnbd has received. Returns the number of completed IOs. */
unsigned nb_command_finish(struct nb_lane *lane);
/* Complete the IO, and free the request, which is in no list. */
void nb_command_complete(struct nb_lane *lane, struct nb_request *request,
			 enum gantry_status status);

/* nbd_lane.c */

int nb_lane_start(struct nb_store *store, struct gantry_lane *host_lane, uint32_t depth,
		  struct nb_lane **lane_p);
void nb_lane_stop(struct nb_lane *lane);
int nb_lane_submit(struct nb_lane *lane, struct gantry_io *io);
int nb_lane_poll(struct nb_lane *lane);
int nb_lane_arm(struct nb_lane *lane);
/* Let the request wait: it is in no list. */
void nb_lane_wait(struct nb_lane *lane, struct nb_request *request);
/* Let a request wait that was sent on a connection which is now lost: it is in no list. */
void nb_lane_again(struct nb_lane *lane, struct nb_request *request);

#endif
