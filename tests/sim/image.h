/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.h - between the simulator and the image of the product: what the image starts, and what it
 * reports to the judge
 */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_BLOCK 4096u

/* -- in the image -- */

/* `gantry run` of a file. Ends its process. arg: the path. */
void *sim_image_run(void *path);

/* A program with libgantry. */
struct sim_job {
	uint32_t client;  /* 1 .. */
	char file[64];    /* its configuration */
	uint32_t volume;  /* 0 .. */
	bool knows_uuids; /* the volume that answers is the last byte of its UUID, minus 1 */
	uint32_t queues, depth;
	uint32_t ops;       /* of each queue */
	uint32_t blocks;    /* of the volume that it uses */
	uint32_t shares[8]; /* of each enum sim_op, of their sum */
	uint32_t io_blocks; /* longest IO */
	uint32_t think_ns;  /* longest pause between operations, on some of them */
	uint32_t own;       /* 1: buffers of gantry_volume_buffers(), which are not copied */
};
void *sim_image_client(void *job);

/*
 * Bytes of regions that the process leaves mapped, since a peer may still touch them:
 * gn_region_quarantined().
 */
uint64_t sim_image_quarantined(void);

/* -- in the simulator: the history that the judge looks at -- */

enum sim_op { SIM_READ, SIM_WRITE, SIM_FUA, SIM_FLUSH, SIM_ZERO, SIM_DISCARD, SIM_OPS };

/* An operation begins. Returns its number; `value` is what each block of a write gets. */
uint32_t sim_op_begin(uint32_t client, uint32_t queue, enum sim_op op, uint32_t block,
		      uint32_t n_blocks, uint64_t value);
/* It has completed: rc 0 or -errno; words: the first word of each block of a read. */
void sim_op_end(uint32_t op, int rc, const uint64_t *words);
/*
 * This client begins to open a session; it has started, with this volume. Later operations of the
 * client are of this volume.
 */
void sim_session_opens(uint32_t client);
void sim_session_started(uint32_t client, uint32_t volume);
/* A number that was not used before. */
uint64_t sim_new_value(void);
/* Something is wrong, whatever the history says. */
void sim_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of the product's log. */
void sim_log(const char *source, const char *message);

#endif
