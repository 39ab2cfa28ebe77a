/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GN_ENGINE_ENGINE_PRIV_H
#define GN_ENGINE_ENGINE_PRIV_H

#include "engine/engine_ops.h"

/*
 * engine_priv.h - the session of the engine, shared by engine_session.c, engine_queue.c,
 * engine_regions.c and engine_resume.c.
 *
 *      OPENING --> RUNNING <--> PAUSED       lost, resume in progress
 *           `---------+-----------+--> CLOSING --> CLOSED
 */
enum gn_engine_state {
	GN_ENGINE_OPENING,
	GN_ENGINE_RUNNING,
	GN_ENGINE_PAUSED,
	GN_ENGINE_CLOSING,
	GN_ENGINE_CLOSED
};

/*
 * States of a further region.
 *
 *     UNUSED --> WANTED --> EXPORTING --> EXPORTED --> UNWANTED --> UNEXPORTING --> UNUSED
 *
 * When the session is lost, EXPORTING and EXPORTED become WANTED, and UNEXPORTING becomes UNWANTED.
 */
enum gn_engine_region_state {
	GN_ENGINE_REGION_UNUSED,
	GN_ENGINE_REGION_WANTED,
	GN_ENGINE_REGION_EXPORTING,
	GN_ENGINE_REGION_EXPORTED,
	GN_ENGINE_REGION_UNWANTED,
	GN_ENGINE_REGION_UNEXPORTING
};

struct gn_engine_region {
	const struct gantry_region *region;
	enum gn_engine_region_state state;
	int is_reported; /* the owner got `exported` */
	int is_exported; /* this client has requested its export */
};

struct gantry_engine {
	const struct gantry_role_host *rh;
	struct gantry_engine_attr attr;
	const struct gantry_engine_events *events;
	void *arg;
	struct gantry_client *client; /* NULL: between two attempts to resume */
	struct gantry_region *region;
	struct gantry_volume_info info;
	enum gn_engine_state phase;
	uint64_t slot_bytes, shared_offset;
	uint64_t pages_at; /* offset in the region: the pages before it are allocated */
	/* -errno with which the engine has closed the session; 0: the owner closed the session */
	int reason;
	int end_rc; /* reason that `closed` reports */
	/*
	 * explains `reason`, or why the session that is being resumed was lost; "" while it runs
	 */
	char text[256];

	/* -- resume -- */
	uint64_t resume_ns; /* longest time for a resume; 0: do not resume */
	uint64_t id, lost_ns;
	uint64_t retry_ns; /* delay before the next attempt */
	uint32_t epoch;
	uint64_t *n_resumed; /* counter of the role */
	uint8_t secret[GANTRY_SECRET_BYTES];
	int changed; /* the verifier has changed; set during a resume */
	/*
	 * 1: no peer of a client that has ended can access the region; see client_regions_released
	 */
	int released;
	/* attr.regions; the handle of the first one is GANTRY_ENGINE_HANDLE + 1 */
	struct gn_engine_region *regions;
	/*
	 * the client accepts requests for them: from the export of the region of the engine on,
	 * except while the session starts
	 */
	int regions_open;
	uint32_t path, n_paths; /* the entry of `connect` is attr.connect + path */
	uint32_t n_stale;       /* paths in a row that led to another volume */
	uint64_t resumed_size;  /* bytes of the volume that the new client has found */
	int is_stale;           /* this path did, and its client is being aborted */
	int is_starting;        /* all regions are exported; the queues are being created */
	int regions_busy;       /* a request for one of them is in flight */
	struct gantry_engine_queue queues[];
};

/* State that is needed to submit a slot again. */
struct gantry_engine_kept {
	uint64_t order;
	uint32_t deadline_us, crc32c;
	uint8_t flags;
	uint8_t again; /* number of resubmissions */
	/*
	 * The last submission was not sent: the peer does not have the buffer, whatever the status
	 * is.
	 */
	uint8_t unsent;
};

/* Queue functions of struct gantry_engine_ops. */
int gn_engine_submit_kept(struct gantry_engine_queue *queue, struct gantry_io *io);
int gn_engine_refused(struct gantry_engine_queue *queue, struct gantry_io *io, int rc);
int gn_engine_failed(struct gantry_engine_queue *queue, struct gantry_io *io);
int gn_engine_poll_more(struct gantry_engine_queue *queue);
void gn_engine_put_doubtful(struct gantry_engine_queue *queue, struct gantry_io *io);
uint32_t gn_engine_late_writes(const struct gantry_engine_queue *queue);
struct gantry_io *gn_engine_take_back(struct gantry_engine_queue *queue);
int gn_engine_reclaim(struct gantry_engine_queue *queue);

/* Control thread. */
int gn_engine_queue_init(struct gantry_engine *session, uint32_t index);
void gn_engine_queue_fini(struct gantry_engine_queue *queue);
/* Let the stages of the queue see the size in session->info. */
void gn_engine_queue_resize(struct gantry_engine_queue *queue);
/* Create the descriptors and their chain. */
int gn_engine_queue_make_chain(struct gantry_engine_queue *queue);
/*
 * Start or resume a queue: the lane uses the requester `next`. IOs that were in flight when the
 * last session was lost are submitted first. Returns their number.
 */
uint32_t gn_engine_queue_up(struct gantry_engine_queue *queue);
/* Detach the queue from its requester. IOs wait until the resume. */
void gn_engine_queue_pause(struct gantry_engine_queue *queue);
/* End a queue: waiting IOs fail with down_rc. */
void gn_engine_queue_down(struct gantry_engine_queue *queue);

/* -- engine_resume.c -- */
/*
 * The client has ended. Returns 1 if a resume has begun or continues; 0: the session ends. text:
 * reason of the loss.
 */
int gn_engine_resume_begin(struct gantry_engine *session, int reason, const char *text);
/*
 * The new client is ready: compare its volume with that of the lost session.
 *
 * returns  0
 *          -EAGAIN: they differ, and another path has not been tried: abort the client
 *          -ESTALE: they differ; session->text has the difference
 */
int gn_engine_resume_check(struct gantry_engine *session, const struct gantry_volume_info *info);
/* The new client has started. n_again: IOs that are submitted again. */
void gn_engine_resume_done(struct gantry_engine *session, uint32_t n_again);

/* -- engine_regions.c -- */
int gn_engine_regions_init(struct gantry_engine *session);
void gn_engine_regions_fini(struct gantry_engine *session);
/* region_export and region_unexport of struct gantry_engine_ops */
int gn_engine_export(struct gantry_engine *session, const struct gantry_region *region,
		     uint32_t handle);
int gn_engine_unexport(struct gantry_engine *session, uint32_t handle);
/* The session is lost, and will be resumed. */
void gn_engine_regions_lost(struct gantry_engine *session);
/* No peer can access the regions of the lost session: report those whose export was to end. */
void gn_engine_regions_drained(struct gantry_engine *session);
/* The client has exported or unexported a region. Not for the region of the engine. */
void gn_engine_region_exported(struct gantry_engine *session, const struct gantry_region *region);
void gn_engine_region_unexported(struct gantry_engine *session, uint32_t handle);
/* Make the next request for a region, if there is one. Returns 1: a request is in flight; 0. */
int gn_engine_regions_advance(struct gantry_engine *session);

/* -- engine_session.c -- */
/* End the session because of an error of this end; during a resume, make another attempt. */
__attribute__((format(printf, 3, 4))) void gn_engine_give_up(struct gantry_engine *session,
							     int reason, const char *fmt, ...);
/* Returns the text for an error of client_export or client_unexport. */
const char *gn_engine_export_error(int rc);
/* Store a new size of the volume, in bytes, and call `resized`. */
void gn_engine_resized(struct gantry_engine *session, uint64_t size);
extern const struct gantry_client_events gn_engine_client_events;
/* End the session and call `closed`. */
void gn_engine_end(struct gantry_engine *session, int reason, const char *text);

#endif
