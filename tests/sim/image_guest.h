/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_guest.h - a modelled guest with a vhost-user-blk disk: one process, as QEMU is
 *
 *     guest_front.c  the front end: socket, messages, memory, reconnection
 *     image_guest.c  the driver of the disk: rings, requests, the history for the judge
 *
 * The guest has two regions of memory. `rings` has the rings, the headers and the status bytes, and
 * lasts as long as the process. `data` has the buffers of requests; the guest exchanges it while
 * requests are in flight.
 */
#ifndef SIM_IMAGE_GUEST_H
#define SIM_IMAGE_GUEST_H

#include <linux/virtio_ring.h>
#include <stddef.h>

#include "image.h"

#define GUEST_QUEUES 2u
#define GUEST_DEPTH 8u  /* most requests in flight on a queue */
#define GUEST_BLOCKS 2u /* blocks of the longest request */
#define GUEST_CHAIN 8u  /* descriptors of a request, at most */
#define GUEST_RING (GUEST_DEPTH * GUEST_CHAIN)

/* offsets within the part of a queue in `rings` */
#define GUEST_AVAIL 0x400u
#define GUEST_USED 0x800u
#define GUEST_HEADERS 0x1000u /* 64 bytes for each request */
#define GUEST_TABLES 0x2000u  /* indirect tables */
#define GUEST_QUEUE_BYTES 0x4000u
#define GUEST_RINGS_BYTES (GUEST_QUEUES * GUEST_QUEUE_BYTES)

#define GUEST_REQUEST_BYTES (GUEST_BLOCKS * SIM_BLOCK)
#define GUEST_DATA_BYTES (GUEST_QUEUES * GUEST_DEPTH * GUEST_REQUEST_BYTES)

/* guest-physical addresses, and addresses of the front end, which need not be those of mappings */
#define GUEST_RINGS_GPA 0x100000u
#define GUEST_DATA_GPA 0x800000u
#define GUEST_RINGS_UVA 0x7f0000000000u
#define GUEST_DATA_UVA 0x7f0010000000u

/* The words of a buffer before a read. No write has this value. */
#define GUEST_POISON (UINT64_MAX - 2)

/* A request must complete within this time while the device is connected. */
#define GUEST_PATIENCE_NS 100000000000u

struct guest_request {
	bool busy;
	/* the buffer must still have `words`, as when its request completed */
	bool kept;
	enum sim_op kind;
	uint32_t op, n_blocks;
	uint64_t began_ns;
	uint64_t words[GUEST_BLOCKS];
};

struct guest_queue {
	uint32_t index;
	uint32_t left; /* operations that were not submitted yet */
	int kick, call, err;
	uint16_t avail_idx, used_idx;
	struct guest_request requests[GUEST_DEPTH];
};

struct guest_memory {
	int fd;
	uint8_t *at; /* NULL: none */
};

struct guest {
	const struct sim_job *job;
	int conn;          /* -1: none */
	bool is_known;     /* a device has answered this process before */
	bool is_attached;  /* the queues are set up */
	bool has_features; /* the driver has negotiated `features` */
	uint64_t features, attached_ns;
	/* old: the memory before an exchange; the device may still use it unless old_is_free */
	struct guest_memory rings, data, old;
	bool old_is_free;
	struct {
		uint64_t bytes, offset;
		uint16_t queues, num;
		uint32_t padding;
	} inflight;
	int inflight_fd; /* -1: none */
	struct guest_queue queues[GUEST_QUEUES];
};

/* -- guest_front.c -- */
/* Create memory that the device accepts. Returns false if the process has no memory. */
bool guest_memory_make(struct guest_memory *memory, size_t bytes);
void guest_memory_drop(struct guest_memory *memory, size_t bytes);
/*
 * Connect, and set up the device. All of these functions return false if the connection was lost,
 * and call guest_wait() until the device has answered.
 */
bool guest_attach(struct guest *guest);
/* Send SET_MEM_TABLE with `rings` and `data`. */
bool guest_set_memory(struct guest *guest);
/* Stop the queue with GET_VRING_BASE. */
bool guest_stop_queue(struct guest *guest, const struct guest_queue *queue, uint16_t *base_p);
bool guest_start_queue(struct guest *guest, const struct guest_queue *queue, uint16_t base);
/* Close the connection, and keep the rings and the memory of the requests in flight. */
void guest_detach(struct guest *guest);
/* Read what the connection has. Returns false if it was lost; without a message expected. */
bool guest_check_connection(struct guest *guest);

/* -- image_guest.c -- */
/*
 * Wait for an event of the connection, or an interrupt, and handle interrupts. The virtual machine
 * runs meanwhile, and can submit requests.
 */
void guest_wait(struct guest *guest);
/* The device does not access `old` any more. */
void guest_old_is_free(struct guest *guest);
/* Returns the index of the used ring: the requests that the device has returned. */
uint16_t guest_used_idx(const struct guest *guest, const struct guest_queue *queue);

#endif
