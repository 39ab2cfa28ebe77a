/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.h - the interface between the simulator and the image of the product: entry points of the
 * image, and its reports to the judge
 */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_BLOCK 4096u

/* -- in the image -- */

/* Execute `gantry run` with the file at `path`, then end the process. */
void *sim_image_run(void *path);

/* How a program uses libgantry. */
struct sim_job {
	uint32_t client; /* 1 .. */
	char file[64];   /* its configuration */
	uint32_t volume; /* 0 .. */
	/* volumes have UUIDs from the run, whose last byte is the number of the volume plus 1 */
	bool knows_uuids;
	/*
	 * the volume has legs that are exchanged: the program refuses every volume but the one of
	 * the first session of the run, which must have started before the first exchange
	 */
	bool has_legs;
	uint32_t queues, depth;
	uint32_t ops;        /* operations of each queue */
	uint32_t first;      /* the program uses the blocks of the volume from this one */
	uint32_t blocks;     /* number of blocks that the program uses */
	uint32_t shares[10]; /* share of each enum sim_op, of the sum of all shares */
	uint32_t io_blocks;  /* blocks of the longest IO with data */
	uint32_t think_ns;   /* longest pause, before some operations */
	uint32_t own;        /* 1: uses gantry_volume_buffers(), which libgantry does not copy */
	uint32_t guest;      /* bits of enum sim_guest_bit; 0: the program is no guest */
};
void *sim_image_client(void *job);

/* What a guest with a vhost-user-blk disk does. */
enum sim_guest_bit {
	SIM_GUEST = 1,
	SIM_GUEST_FLUSHES = 2,   /* the disk has a write-back cache */
	SIM_GUEST_INDIRECT = 4,  /* indirect descriptors */
	SIM_GUEST_EVENTS = 8,    /* event index */
	SIM_GUEST_LEAVES = 16,   /* the front end closes its connection at some messages */
	SIM_GUEST_EXCHANGES = 32 /* exchanges memory while requests are in flight */
};
/* Use the disk at SIM_DISK_SOCKET, also if its role is started again meanwhile. */
void *sim_image_guest(void *job);

/*
 * Bytes of regions that the process keeps mapped because a peer may still access them, from
 * gn_region_quarantined().
 */
uint64_t sim_image_quarantined(void);

/* -- in the simulator: the history for the judge -- */

enum sim_op {
	SIM_READ,
	SIM_WRITE,
	SIM_FUA, /* a write with FUA */
	SIM_FLUSH,
	SIM_ZERO,
	SIM_ZERO_FUA, /* a write of zeroes with FUA */
	SIM_DISCARD,
	SIM_READ_LIST,  /* a read whose data is in several pieces */
	SIM_WRITE_LIST, /* a write whose data is in several pieces */
	SIM_EXTENTS,
	SIM_OPS
};

/* In the image: draw an operation of a program by its shares. */
enum sim_op sim_job_draw_op(const struct sim_job *job);

/* The word of a block whose content the result of SIM_EXTENTS does not state. */
#define SIM_UNKNOWN (UINT64_MAX - 1)

/* An operation begins. Returns its number. `value`: the new value of each block, for a write. */
uint32_t sim_op_begin(uint32_t client, uint32_t queue, enum sim_op op, uint32_t block,
		      uint32_t n_blocks, uint64_t value);
/*
 * The operation completes. rc: 0 or -errno. words: of a read, the first word of each block; of
 * SIM_EXTENTS, 0 for a block that reads as zeroes, else SIM_UNKNOWN.
 */
void sim_op_end(uint32_t op, int rc, const uint64_t *words);
/*
 * sim_session_opens(): this client begins to open a session. sim_session_started(): its session has
 * started; later operations of the client belong to this volume.
 */
void sim_session_opens(uint32_t client);
void sim_session_started(uint32_t client, uint32_t volume);
/* Whether this is the UUID of the first call, if that was before the first exchange. */
bool sim_is_first_uuid(const uint8_t uuid[16]);
/*
 * A role serves its disk to this guest for the first time: the requests of the guest that this
 * client ran before have ended. The session of the role can be older.
 */
void sim_guest_started(uint32_t client, uint32_t volume);
/*
 * A fence of this queue begins; returns the moment. sim_fence_end(): it has returned 0, so no write
 * of the queue that had timed out at the moment `begin` changes the volume from now on.
 */
uint64_t sim_fence_begin(void);
void sim_fence_end(uint32_t client, uint32_t queue, uint64_t begin);
/* Returns a number that was not used before. */
uint64_t sim_new_value(void);
/* Let the run fail with this message, whatever the history shows. */
void sim_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Record a line of the product's log. */
void sim_log(const char *source, const char *message);

#endif
