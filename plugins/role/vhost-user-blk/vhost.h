/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost.h - internal interface of the role vhost-user-blk.
 *
 *      vhost_message.c  checks messages                        no IO
 *      vhost_device.c   state of the device                    no IO
 *      vhost_memory.c   look-ups in the guest memory           no IO
 *      vhost_ring.c     walks a virtqueue                      no IO
 *      vhost_split.c    split virtqueues                       no IO
 *      vhost_packed.c   packed virtqueues                      no IO
 *      vhost_map.c      maps memory that is not exported       control thread
 *      vhost_role.c     options, session, report               control thread
 *      vhost_socket.c   socket of the front end                control thread
 *      vhost_queue.c    queues of a device                     control thread
 *      vhost_regions.c  guest memory of a device               control thread
 *      vhost_bound.c    limits the time for draining           control thread
 *      vhost_known.c    what the guest knows of the disk       control thread
 *      vhost_lane.c     polls a virtqueue                      lane's thread
 *      vhost_request.c  requests of a virtqueue to IOs         lane's thread
 *
 * The guest memory is exported. So the data of a request whose pieces are whole blocks moves
 * between the store and the guest without a copy here. With memory = "copy" it is not exported, and
 * all data passes through the buffers of the slots.
 */
#ifndef VHOST_H
#define VHOST_H

#include <gantry/engine.h>
#include <gantry/role.h>

#include "vhost_ring.h"

#define VHOST_SERIAL_BYTES 20u  /* VIRTIO_BLK_ID_BYTES */
#define VHOST_SLOT_BYTES 65536u /* bounce buffer or list of one IO */
#define VHOST_FIRST_HANDLE (GANTRY_ENGINE_HANDLE + 1)

struct vhost_conf {
	const char *socket, *serial;
	int64_t depth, memory_slots;
	uint64_t drain_timeout_ns;
	uint32_t memory; /* enum vhost_memory_mode */
	uint8_t read_only;
};

/* The option `memory`. */
enum vhost_memory_mode { VHOST_MEMORY_EXPORTED, VHOST_MEMORY_COPIED };

/* Counters of a queue; its lane writes them. */
struct vhost_counters {
	uint64_t *requests, *failed, *lists, *bounced, *bounced_bytes, *broken, *discards, *zeroes;
};

/* A request of the guest. */
struct vhost_request {
	uint16_t id;
	uint8_t opcode;       /* enum gantry_opcode */
	uint8_t is_submitted; /* all IOs of the request are submitted */
	uint8_t is_doubtful;  /* a peer might still access the guest memory: return it later */
	uint8_t is_lost;      /* the session has ended: do not return the request to the guest */
	uint8_t is_taken;     /* not in the list of free requests */
	uint8_t is_vacating;  /* uses the region that goes */
	uint8_t is_abandoned; /* stays in the memory for requests in flight */
	uint8_t reports_loss; /* a flush after a change of the verifier: it fails */
	uint16_t status;      /* enum gantry_status: the first error */
	uint32_t n_ios;       /* in flight */
	uint8_t *status_addr;
	uint64_t offset;      /* bytes, in the volume */
	uint64_t bytes, done; /* of the data; done: submitted */
	uint64_t in_bytes;    /* before the status byte, of the pieces that the device writes */
	uint32_t n, at, skip; /* pieces; at: next piece; skip: bytes of it already submitted */
	struct vhost_request *next;
	struct vhost_piece piece[VHOST_PIECES_MAX];
};

/* An IO of a request; indexed by slot. */
struct vhost_io {
	struct vhost_request *request;
	uint32_t at, skip; /* at: first piece of its data; skip: bytes of it before the data */
	uint8_t is_bounced;
};

struct vhost_list {
	struct vhost_request *first, **last_p;
};

struct vhost_role;

/* A queue: one virtqueue, on one lane. */
struct vhost_queue {
	struct vhost_role *role;
	struct gantry_lane *lane;
	uint32_t index;
	struct vhost_counters counters;

	/* -- the control thread changes these fields; the lane uses them while it polls -- */
	bool is_polled;   /* the poller is registered */
	bool is_draining; /* vhost_queue_drained() is expected */
	bool is_vacating; /* vhost_queue_vacated() is expected */
	/*
	 * not polled, although its vring is started: its ring, or a request that is taken again, is
	 * not in the guest memory
	 */
	bool is_suspended;
	int kick; /* of the registered poller */

	/* -- lane's thread -- */
	struct gantry_engine_queue *engine;
	struct vhost_ring ring;
	struct vhost_memory memory;
	int call, err;
	bool fua;        /* writes must be stable before they complete */
	bool is_enabled; /* take requests */
	bool is_broken;
	bool has_lost;        /* the loss of a request was reported */
	bool reports_drained; /* post vhost_queue_drained() when n_requests is 0 */
	bool is_reclaiming;   /* IOs that complete now were taken back */
	bool abandons;        /* the time for draining is over: see vhost_bound.c */
	bool reports_vacated; /* post vhost_queue_vacated() when n_vacating is 0 */
	uint32_t n_vacating;  /* requests that use the region that goes */
	bool wants_call;      /* requests were returned since the last interrupt */
	/*
	 * in the memory for requests in flight: the verifier of the volume when this queue has last
	 * reported a loss of writes, or began; NULL: there is no such memory
	 */
	uint64_t *verifier;
	bool is_armed;
	uint32_t n_requests;        /* taken and not returned */
	struct vhost_list waiting;  /* not all of their IOs are submitted */
	struct vhost_list doubtful; /* complete, but a peer might access the memory */
	struct vhost_request *free;
	struct vhost_io *ios;         /* indexed by slot */
	struct gantry_pieces *pieces; /* indexed by slot; for stages */
	struct vhost_request *requests;
	uint8_t busy[VHOST_RING_MAX]; /* by id: the request is taken */
	struct vhost_chain chain;
};

/* What happens to the connection of the front end. */
enum vhost_phase {
	VHOST_IDLE, /* no front end */
	VHOST_CONNECTED,
	VHOST_LEAVING /* the front end has gone: queues are drained, and memory is released */
};

/* Steps of a change of the guest memory. */
enum vhost_memory_step {
	VHOST_MEMORY_STABLE,
	VHOST_MEMORY_ALLOCATE,
	VHOST_MEMORY_DRAIN,
	VHOST_MEMORY_UNEXPORT,
	VHOST_MEMORY_EXPORT
};

/* What a change does to the regions. */
enum vhost_memory_change {
	VHOST_MEMORY_REPLACE, /* all regions go; next_memory replaces them */
	VHOST_MEMORY_ADD,     /* next_memory has one more */
	VHOST_MEMORY_REMOVE   /* the region `going` goes */
};

struct vhost_role {
	const struct gantry_role_host *rh;
	const struct gantry_host *host;
	const struct vhost_conf *conf;
	struct gantry_engine *engine;
	struct gantry_volume_info volume;
	char serial[VHOST_SERIAL_BYTES + 1];
	struct vhost_device device;
	bool is_started; /* the session runs */
	bool is_closed;  /* the session has ended */
	bool is_stopping, has_failed, is_finished;
	uint64_t *connections;

	/* -- socket -- */
	int listen_fd, fd; /* -1: none */
	bool is_foreign;   /* the front end has another uid than this process and root */
	enum vhost_phase phase;
	bool is_waiting; /* for vhost_device_continue(); the socket is not read meanwhile */
	/* the message that is being received */
	uint8_t header[VHOST_HEADER_BYTES];
	uint32_t received; /* bytes, with the header */
	uint32_t n_fds;
	int fds[VHOST_FDS_MAX];
	struct vhost_message message;

	/* -- guest memory -- */
	enum vhost_memory_step step;
	enum vhost_memory_change change; /* unless `step` is VHOST_MEMORY_STABLE */
	uint32_t going;                  /* handle of the region to remove */
	uint64_t pending; /* a bit for each region whose export or unexport is not answered */
	int memory_rc;    /* of the exports */
	struct vhost_memory memory, next_memory; /* in use; of the change in progress */
	struct gantry_region *region[VHOST_SLOTS_MAX], *next_region[VHOST_REGIONS_MAX];
	uint32_t allocating;            /* region whose file gets its missing pages */
	uint64_t allocated_at;          /* offset in this file */
	struct gantry_region *inflight; /* of SET_INFLIGHT_FD; NULL: none */
	uint32_t inflight_num;          /* entries of each ring in it */
	uint32_t inflight_queues;
	uint64_t inflight_bytes;       /* that the rings and what follows them need */
	struct gantry_region *offered; /* of the last GET_INFLIGHT_FD; NULL: none */
	uint64_t offered_bytes;        /* that the front end needs */
	uint32_t n_offered;            /* created for this front end */
	bool drains_queue;             /* for GET_VRING_BASE or SET_STATUS */
	uint32_t n_reports;            /* that vhost_known.c may still send */
	struct vhost_role *reporter;   /* this role; the argument of the timer of vhost_known.c */
	bool is_revoked;               /* the change in progress has taken too long */
	struct vhost_role *bound;      /* this role; the argument of the timer of vhost_bound.c */

	uint32_t n_queues;
	struct vhost_queue *queues;
};

/* Returns the limit of a discard or a write of zeroes, in bytes: a multiple of the block size. */
static inline uint32_t vhost_segment_max(const struct gantry_volume_info *volume)
{
	return volume->max_io & ~(volume->block_size - 1);
}

/* Returns true if no peer accesses the guest memory: all data is copied. */
static inline bool vhost_copies(const struct vhost_role *role)
{
	return role->conf->memory == VHOST_MEMORY_COPIED;
}

static inline bool vhost_is_read_only(const struct vhost_role *role)
{
	return role->conf->read_only || (role->volume.flags & GANTRY_VOLUME_READ_ONLY) != 0;
}

/* -- vhost_role.c -- */
/* End the role if the front end has gone and the session has ended. */
void vhost_role_check_end(struct vhost_role *role);
/*
 * Posted by a lane: a request has ended with the status of a lost session. If the session does not
 * end, the role does. arg: the role
 */
void vhost_role_request_lost(void *arg);
/* Posted by a lane: a guest has broken a ring. arg: the role */
void vhost_role_ring_broken(void *arg);
/* Copy bytes of the configuration space. */
void vhost_role_config(struct vhost_device *device, uint32_t offset, void *to, uint32_t bytes);

/* -- vhost_socket.c -- */
/* Create the socket and wait for a front end. Returns 0 or -errno; logs the cause. */
int vhost_socket_open(struct vhost_role *role);
/* Close the listener and remove its path. */
void vhost_socket_close(struct vhost_role *role);
/*
 * End the connection of the front end, if there is one: read no more messages, release its memory,
 * then close the connection.
 */
void vhost_socket_hang_up(struct vhost_role *role);
/* While an action is pending, the socket is not watched: notice the end of the connection. */
void vhost_socket_check(struct vhost_role *role);
/*
 * Report to the front end that the configuration space has changed. Returns NULL; or why it cannot
 * be reported, as text.
 */
const char *vhost_socket_config_changed(const struct vhost_role *role);
/* An action that returned -EINPROGRESS has ended. */
void vhost_socket_continue(struct vhost_role *role, int rc);
/* Queues and memory are released: wait for the next front end. */
void vhost_socket_released(struct vhost_role *role);

/* -- vhost_queue.c -- */
extern const struct vhost_device_ops vhost_queue_ops;
int vhost_queue_open(struct vhost_role *role, uint32_t index);
void vhost_queue_close(struct vhost_queue *queue);
/* Returns the memory for the requests in flight of a queue; NULL: there is none. */
void *vhost_queue_inflight(const struct vhost_queue *queue);
/* Start to poll the virtqueue. Returns 0 or -errno, with the fault of the device. */
int vhost_queue_start(struct vhost_queue *queue);
/*
 * Start a queue when a region has come or gone. A queue whose ring, or a request that is taken
 * again, is not in the memory is suspended instead.
 */
void vhost_queue_resume(struct vhost_queue *queue);
/* Take no more requests, and complete those in flight; vhost_queue_drained() follows. */
void vhost_queue_drain(struct vhost_queue *queue);
/* Let a queue that runs use the regions in role->memory. */
void vhost_queue_use_memory(struct vhost_queue *queue);
/*
 * Take no more requests in this region, and complete those in flight: vhost_queue_vacated()
 * follows. A queue whose ring is in the region is drained and suspended instead.
 */
void vhost_queue_vacate(struct vhost_queue *queue, uint32_t handle);
/* Unmap the memory of SET_INFLIGHT_FD and GET_INFLIGHT_FD, if there is any. No queue runs. */
void vhost_queue_drop_inflight(struct vhost_role *role);
/* Posted by the lane: a queue that drains has no request any more. arg: the queue */
void vhost_queue_drained(void *arg);
/* Posted by the lane: no request uses the region that goes. arg: the queue */
void vhost_queue_vacated(void *arg);

/* -- vhost_regions.c -- */
/* Actions of the device. */
int vhost_regions_set(struct vhost_device *device, struct vhost_message *m);
int vhost_regions_add(struct vhost_device *device, struct vhost_message *m);
int vhost_regions_remove(struct vhost_device *device, const struct vhost_msg_region *region);
/*
 * Map memory of a descriptor. A process that can write to memory can punch holes into it, and an
 * access to a hole in huge pages raises SIGBUS if no huge page is free. So huge pages of another
 * user are rejected. Parameters as region_map.
 */
int vhost_regions_map(const struct vhost_role *role, int fd, uint64_t offset, uint64_t bytes,
		      struct gantry_region **region_p, const char **why_p);
/* Stop all queues, then release the memory; vhost_socket_released() follows. */
void vhost_regions_release_all(struct vhost_role *role);
/* Make the next steps of a change of the memory, as far as they are possible now. */
void vhost_regions_advance(struct vhost_role *role);
/* Events of the engine. */
void vhost_regions_exported(void *arg, uint32_t handle);
void vhost_regions_unexported(void *arg, uint32_t handle);
/* The session has ended: no event of the engine follows. */
void vhost_regions_session_ended(struct vhost_role *role);
/* The session is paused, and exports the new regions before it resumes: do not wait for that. */
void vhost_regions_revoked(struct vhost_role *role);

/* -- vhost_bound.c -- */
/* Queues drain, or regions come or go: limit the time. */
void vhost_bound_start(struct vhost_role *role);

/* -- vhost_known.c -- */
/*
 * Compare the disk with the one that the guest knows, before a queue starts. Returns 0; -ESTALE:
 * they differ, see device.fault.
 */
int vhost_known_check(struct vhost_role *role);
/* Read the configuration space for the front end. An action of the device. */
void vhost_known_read(struct vhost_device *device, uint32_t offset, void *to, uint32_t bytes);
/* Clear memory for requests in flight, except for what the guest knows. */
void vhost_known_clear(const struct gantry_region *inflight);

/* -- vhost_map.c -- */
/*
 * Map guest memory of a role that copies it. Parameters as region_map; the region owns fd after
 * success. vhost_unmap() destroys the region.
 */
int vhost_map(int fd, uint64_t offset, uint64_t bytes, struct gantry_region **region_p,
	      const char **why_p);
void vhost_unmap(struct gantry_region *region);

/* -- vhost_lane.c -- */
extern const struct gantry_poller vhost_lane_poller; /* a template without `self` */
/* Parameters of vhost_lane_vacate(). */
struct vhost_vacate {
	struct vhost_queue *queue;
	struct vhost_memory staying, going;
};
/* The time for draining is over. arg: the queue, which drains */
void vhost_lane_abandon(void *arg);
/* Use the staying regions only, and report when no request uses the going region. */
void vhost_lane_vacate(void *arg);
void vhost_lane_complete(void *engine_queue, struct gantry_io *io);
/* Return a request to the guest. */
void vhost_lane_answer(struct vhost_queue *queue, struct vhost_request *request);
void vhost_list_init(struct vhost_list *list);
void vhost_list_add(struct vhost_list *list, struct vhost_request *request);
struct vhost_request *vhost_list_take(struct vhost_list *list);

/* -- vhost_request.c -- */
/*
 * Turn a chain into a request. Returns 0: submit it; 1: it is complete; -1: the chain is no
 * request, and the ring is broken.
 */
int vhost_request_init(struct vhost_queue *queue, struct vhost_request *request);
/* Submit IOs of a request until all are submitted, or no slot is free. Returns true: all are. */
bool vhost_request_submit(struct vhost_queue *queue, struct vhost_request *request);
/* An IO of a request has completed; its slot is still in use. */
void vhost_request_io_done(struct vhost_queue *queue, const struct gantry_io *io);

#endif
