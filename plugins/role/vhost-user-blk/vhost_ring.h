/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_ring.h - the memory of a guest, and a split virtqueue in it, which the guest can change at
 * any time. No IO.
 *
 * Each word of the ring is loaded once, checked, and used from the copy. A guest that breaks the
 * rules of the ring gets a fault: the caller must not use the ring any more.
 */
#ifndef VHOST_RING_H
#define VHOST_RING_H

#include "vhost_protocol.h"

#include <linux/virtio_ring.h>

/* A part of the guest memory. Adjacent regions can be parts of one memfd or of different memfds. */
struct vhost_region {
	uint64_t gpa, bytes; /* guest-physical address, size */
	uint64_t uva;        /* address in the front end */
	uint8_t *addr;       /* address here */
	uint32_t handle;     /* of the exported region */
};

struct vhost_memory {
	uint32_t n;
	struct vhost_region region[VHOST_SLOTS_MAX];
};

/*
 * vhost_memory_find - find the region of a guest-physical address
 *
 * bytes_p  in: length of a range at gpa. Out: how much of it is in the region
 * returns  the region; NULL: gpa is in none
 * thread   any
 */
const struct vhost_region *vhost_memory_find(const struct vhost_memory *memory, uint64_t gpa,
					     uint64_t *bytes_p);
/*
 * vhost_memory_at - get the address here of a range in the front end
 *
 * returns  the address; NULL: the range is not in one region
 * thread   any
 */
void *vhost_memory_at(const struct vhost_memory *memory, uint64_t uva, uint64_t bytes);

#define VHOST_PIECES_MAX 260u /* limit of the pieces of a request */
#define VHOST_SEG_MAX 126u    /* data segments of a request that the device offers */

/* A piece of a request, in one region. */
struct vhost_piece {
	uint8_t *addr;
	uint64_t offset; /* in the exported region */
	uint32_t handle;
	uint32_t bytes; /* not 0 */
};

/* The descriptors of a request: first the pieces that the device reads, then those it writes. */
struct vhost_chain {
	uint32_t n_out, n_in;
	uint64_t out_bytes, in_bytes; /* below 2^32 */
	struct vhost_piece piece[VHOST_PIECES_MAX];
};

/*
 * Memory that outlives this process, in the layout of the vhost-user specification: which requests
 * are in flight. The front end keeps it, and can change it at any time.
 */
struct vhost_inflight_desc {
	uint8_t inflight, padding[5];
	uint16_t next;
	uint64_t counter; /* order in which the requests were taken */
};

struct vhost_inflight {
	uint64_t features;
	uint16_t version, num;
	uint16_t last_batch_head, used_idx; /* of the last request that was returned */
	struct vhost_inflight_desc desc[];
};

/* vhost_inflight_bytes - returns the size of struct vhost_inflight for a ring, rounded up. */
static inline uint64_t vhost_inflight_bytes(uint32_t num)
{
	return (sizeof(struct vhost_inflight) + num * sizeof(struct vhost_inflight_desc) + 63) &
	       ~63ull;
}

struct vhost_ring {
	uint16_t num; /* entries, a power of two */
	uint16_t next_avail, next_used;
	bool has_event_idx;   /* VIRTIO_RING_F_EVENT_IDX is negotiated */
	bool must_call;       /* with event index: the next call does not depend on used_event */
	uint16_t called_used; /* next_used of the last vhost_ring_wants_call() */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vhost_inflight *inflight; /* NULL: the front end did not set inflight memory */
	uint64_t counter;
	/* requests that were in flight when an earlier process ended, in their order */
	uint16_t resubmit[VHOST_RING_MAX];
	uint32_t n_resubmit, resubmit_at;
	/* what the guest did wrong, as text; "" while the ring is intact */
	const char *fault;
	uint64_t fault_value; /* the value that shows it */
	const char *fault_key;
};

/*
 * vhost_ring_init - attach to a ring
 *
 * vring     num and addresses, as the front end has set them
 * inflight  of a ring with at least num entries; NULL: none. Requests in it are taken first
 * has_event_idx  VIRTIO_RING_F_EVENT_IDX is negotiated
 * returns  0; -EFAULT: a part of the ring is not in one region; -EINVAL: num is 0
 * thread   any
 */
int vhost_ring_init(struct vhost_ring *ring, const struct vhost_vring *vring,
		    const struct vhost_memory *memory, struct vhost_inflight *inflight,
		    bool has_event_idx);
/*
 * vhost_ring_take - take the next available request
 *
 * head_p   out: first descriptor of the request, below num
 * returns  1: taken; 0: there is none; -1: the ring is broken
 * thread   lane's thread
 */
int vhost_ring_take(struct vhost_ring *ring, uint16_t *head_p);
/*
 * vhost_ring_has_resubmit - returns true if vhost_ring_take() takes a request that was in flight
 * when an earlier process ended
 */
static inline bool vhost_ring_has_resubmit(const struct vhost_ring *ring)
{
	return ring->resubmit_at < ring->n_resubmit;
}
/*
 * vhost_ring_chain - read the descriptors of a request
 *
 * head     below num
 * chain    out: the pieces
 * returns  0; -1: the ring is broken
 * thread   lane's thread
 */
int vhost_ring_chain(struct vhost_ring *ring, const struct vhost_memory *memory, uint16_t head,
		     struct vhost_chain *chain);
/* vhost_ring_put - return a request to the guest. written: bytes in the pieces for the guest. */
void vhost_ring_put(struct vhost_ring *ring, uint16_t head, uint32_t written);
/*
 * vhost_ring_wants_call - returns true if the guest asks for an interrupt. Full barrier.
 *
 * With event index it asks for one if the requests returned since the last call of this function
 * include the entry used_event. The first call after vhost_ring_init() returns true: an earlier
 * process may have returned requests without an interrupt.
 */
bool vhost_ring_wants_call(struct vhost_ring *ring);
/*
 * vhost_ring_notify - enable or disable kicks of the guest
 *
 * With event index the guest kicks once after kicks were enabled. It can kick a few times while
 * they are disabled.
 *
 * returns  true: requests are available already
 */
bool vhost_ring_notify(struct vhost_ring *ring, bool on);

/*
 * vhost_chain_read - copy bytes from the beginning of the pieces that the device reads, and remove
 * them from the chain. Returns 0; -1: the chain has fewer bytes.
 */
int vhost_chain_read(struct vhost_chain *chain, void *to, uint32_t bytes);
/*
 * vhost_chain_status - remove the last byte of the pieces that the device writes. Returns its
 * address; NULL: the chain has none.
 */
uint8_t *vhost_chain_status(struct vhost_chain *chain);

#endif
