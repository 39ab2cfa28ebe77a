/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_ring.h - the memory of a guest, and a virtqueue in it, which the guest can change at any
 * time. No IO.
 *
 *      vhost_ring.c    chooses the kind of a ring, and turns descriptors into pieces
 *      vhost_split.c   split rings
 *      vhost_packed.c  packed rings, with VIRTIO_F_RING_PACKED
 *
 * Each word of the ring is loaded once, checked, and used from the copy. A guest that breaks the
 * rules of the ring gets a fault: the caller must not use the ring any more.
 */
#ifndef VHOST_RING_H
#define VHOST_RING_H

#include "vhost_protocol.h"

#include <linux/virtio_config.h>
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

/* Of packed rings: a copy of each descriptor, because the guest overwrites the ring. */
struct vhost_inflight_entry {
	uint8_t inflight, padding;
	uint16_t next;      /* entry of the same request, or of the free list */
	uint16_t last, num; /* of the first entry of a request: its last entry, and how many */
	uint64_t counter;   /* as above */
	uint16_t id, flags; /* the descriptor */
	uint32_t len;
	uint64_t addr;
};

/* Fields that change together. */
union vhost_inflight_heads {
	struct {
		uint16_t free_head, old_free_head;
	};
	uint32_t word;
};

union vhost_inflight_used {
	struct {
		uint16_t used_idx, old_used_idx;
		uint8_t used_wrap_counter, old_used_wrap_counter, padding[2];
	};
	uint64_t word;
};

struct vhost_inflight_packed {
	uint64_t features;
	uint16_t version, num;
	union vhost_inflight_heads heads;
	union vhost_inflight_used used;
	uint8_t padding[8];
	struct vhost_inflight_entry entry[];
};

_Static_assert(offsetof(struct vhost_inflight_packed, entry) == 32 &&
		       sizeof(struct vhost_inflight_entry) == 32,
	       "the layout is that of the specification");

struct vhost_ring;

/* The verbs of a kind of ring, which the functions vhost_ring_*() describe. */
struct vhost_ring_ops {
	int (*init)(struct vhost_ring *ring, const struct vhost_vring *vring,
		    const struct vhost_memory *memory, void *inflight);
	uint32_t (*base)(const struct vhost_ring *ring);
	int (*take)(struct vhost_ring *ring, const struct vhost_memory *memory,
		    struct vhost_chain *chain, uint16_t *id_p);
	void (*put)(struct vhost_ring *ring, uint16_t id, uint32_t written);
	bool (*wants_call)(struct vhost_ring *ring);
	bool (*notify)(struct vhost_ring *ring, bool on);
};

extern const struct vhost_ring_ops vhost_split_ops, vhost_packed_ops;

struct vhost_split {
	uint16_t next_avail, next_used;
	uint16_t called_used; /* next_used of the last wants_call() */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vhost_inflight *inflight; /* NULL: the front end did not set inflight memory */
};

/* A place in a packed ring. The wrap counter changes each time the index returns to 0. */
struct vhost_packed_at {
	uint16_t index;
	bool wrap;
};

/* A request of a packed ring that was taken and not returned. */
struct vhost_packed_buffer {
	uint16_t n;           /* descriptors in the ring; 0: not in flight */
	uint16_t first, last; /* entries of the inflight memory */
};

struct vhost_packed {
	struct vhost_packed_at avail, used; /* next descriptor to take, and to return */
	uint16_t n_taken;                   /* descriptors between `used` and `avail` */
	uint16_t n_returned;                /* since the last wants_call(); at most num */
	struct vring_packed_desc *desc;
	const struct vring_packed_desc_event *driver; /* the guest writes it: interrupts */
	uint32_t *device;                             /* the device writes it: kicks */
	struct vhost_inflight_packed *inflight;       /* NULL: as above */
	uint16_t free_head;                           /* num: no entry is free */
	/*
	 * The links of the entries. They are copies: the inflight memory is only read when the ring
	 * starts and when a request is taken again.
	 */
	uint16_t next[VHOST_RING_MAX];
	uint16_t n_left[VHOST_RING_MAX]; /* by first entry of a request to take again */
	struct vhost_packed_buffer buffer[VHOST_RING_MAX]; /* by buffer id */
};

struct vhost_ring {
	const struct vhost_ring_ops *ops;
	uint16_t num;       /* entries; a power of two in a split ring */
	bool has_event_idx; /* VIRTIO_RING_F_EVENT_IDX is negotiated */
	bool must_call;     /* with event index: the next call does not depend on the guest */
	uint32_t n_resubmit, resubmit_at;
	uint64_t counter;
	union {
		struct vhost_split split;
		struct vhost_packed packed;
	};
	/* requests that were in flight when an earlier process ended, in their order */
	uint16_t resubmit[VHOST_RING_MAX];
	/* what the guest did wrong, as text; "" while the ring is intact */
	const char *fault;
	uint64_t fault_value; /* the value that shows it */
	const char *fault_key;
};

/*
 * vhost_inflight_bytes - returns the size of the inflight memory of a ring, a multiple of 64
 *
 * features  that are negotiated: they determine the kind of the ring
 * thread    any
 */
uint64_t vhost_inflight_bytes(uint32_t num, uint64_t features);
/*
 * vhost_ring_init - attach to a ring
 *
 * vring     num, base and addresses, as the front end has set them
 * inflight  of a ring with at least num entries, vhost_inflight_bytes() long; NULL: none. Requests
 *           in it are taken first
 * features  that are negotiated
 * returns   0
 *           -EFAULT: a part of the ring is misaligned or not in one region
 *           -EINVAL: num or the base is wrong, or the inflight memory contradicts itself
 *           With an error ring->fault is the cause as text.
 * thread    any, while no lane uses the ring
 */
int vhost_ring_init(struct vhost_ring *ring, const struct vhost_vring *vring,
		    const struct vhost_memory *memory, void *inflight, uint64_t features);
/* vhost_ring_base - returns the base for GET_VRING_BASE, in the encoding of the specification */
static inline uint32_t vhost_ring_base(const struct vhost_ring *ring)
{
	return ring->ops->base(ring);
}
/*
 * vhost_ring_take - take the next available request, and read its descriptors
 *
 * chain    out: the pieces
 * id_p     out, if a request is taken: identifies it until it is returned; below num
 * returns  1: taken; 0: there is none; -1: the ring is broken
 * thread   lane's thread
 */
static inline int vhost_ring_take(struct vhost_ring *ring, const struct vhost_memory *memory,
				  struct vhost_chain *chain, uint16_t *id_p)
{
	return ring->ops->take(ring, memory, chain, id_p);
}
/*
 * vhost_ring_has_resubmit - returns true if vhost_ring_take() takes a request that was in flight
 * when an earlier process ended
 */
static inline bool vhost_ring_has_resubmit(const struct vhost_ring *ring)
{
	return ring->resubmit_at < ring->n_resubmit;
}
/* vhost_ring_put - return a request to the guest. written: bytes in the pieces for the guest. */
static inline void vhost_ring_put(struct vhost_ring *ring, uint16_t id, uint32_t written)
{
	ring->ops->put(ring, id, written);
}
/*
 * vhost_ring_wants_call - returns true if the guest asks for an interrupt. Full barrier.
 *
 * With event index it asks for one if the entries returned since the last call of this function
 * include the one that it names. The first call after vhost_ring_init() returns true: an earlier
 * process may have returned requests without an interrupt.
 */
static inline bool vhost_ring_wants_call(struct vhost_ring *ring)
{
	return ring->ops->wants_call(ring);
}
/*
 * vhost_ring_notify - enable or disable kicks of the guest
 *
 * With event index the guest kicks once after kicks were enabled. In a split ring it can kick a few
 * times while they are disabled.
 *
 * returns  true: requests are available already
 */
static inline bool vhost_ring_notify(struct vhost_ring *ring, bool on)
{
	return ring->ops->notify(ring, on);
}

/* vhost_ring_broken - report a fault of the guest. Returns -1. */
int vhost_ring_broken(struct vhost_ring *ring, const char *fault, const char *key, uint64_t value);

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
