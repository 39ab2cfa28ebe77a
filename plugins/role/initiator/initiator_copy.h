/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_copy.h - internal interface of a copy.
 *
 *      initiator_copy.c         which IO each lane issues next
 *      initiator_copy_file.c    the file or block device
 *      initiator_copy_state.c   the segments, and the state file that records which are copied
 *
 * A copy is divided into segments. Each lane takes a segment, copies it, and takes the next one.
 */
#ifndef INITIATOR_COPY_H
#define INITIATOR_COPY_H

#include "initiator.h"

struct copy_job {
	struct initiator *in;
	const char *path; /* of the file */
	int fd;
	bool into_volume;
	bool regular; /* the file is a regular file, not a device */
	/* The file is regular and was truncated to 0, so ranges that are not written are holes. */
	bool fresh;
	atomic_bool no_zeroing; /* file_zero() is not supported */
	uint64_t bytes;         /* to copy, without the padding of the last block */
	uint32_t block;         /* bytes: limit of one IO with data */

	uint64_t segment; /* bytes of a segment, whole blocks of the volume */
	uint32_t n_segments;
	atomic_uint next_segment;
	atomic_uint n_copied; /* segments that this run has copied */
	int state_fd;         /* the state file; -1: none */
	/* copied[i] = 1: an earlier run has copied segment i. NULL: none is copied. */
	uint8_t *copied;
};

/* A part of the file or of the volume: up to the offset `end`, all data or all zeroes. */
struct copy_piece {
	uint64_t end;
	bool zero;
};

/* Returns how many bytes of an IO belong to the file. The remaining bytes are padding. */
static inline uint64_t copy_file_bytes(const struct copy_job *job, uint64_t offset, uint64_t length)
{
	uint64_t left = job->bytes > offset ? job->bytes - offset : 0;

	return left < length ? left : length;
}

/* -- initiator_copy_file.c -- */
/* Open the source, and get its size. Returns 0 or -errno; logs the cause. */
int copy_file_open_source(struct copy_job *job, uint64_t *size_p);
/*
 * Open the destination, and lock it, because a target locks the file that it serves. Returns 0 or
 * -errno; logs the cause.
 */
int copy_file_open_destination(struct copy_job *job);
/*
 * Give a regular file the size job->bytes, and check the size of a device. keep: the file has
 * content of an earlier run. Returns 0 or -errno; logs the cause.
 */
int copy_file_set_size(struct copy_job *job, bool keep);
/*
 * Open the destination once more. Linux reports an error of write-back once for each open file
 * description, so each lane syncs one of its own. Returns a descriptor, which the caller closes; or
 * -errno, and logs the cause.
 */
int copy_file_reopen(const struct copy_job *job);
/* Read `length` bytes; those that do not belong to the file are 0. Returns 0 or -errno. */
int copy_file_read(const struct copy_job *job, uint8_t *buf, uint32_t length, uint64_t offset);
/* Write those of `length` bytes that belong to the file. Returns 0 or -errno. */
int copy_file_write(const struct copy_job *job, const uint8_t *buf, uint32_t length,
		    uint64_t offset);
/* Make a part of the destination read as zeroes. Returns 0; -EOPNOTSUPP: write zeroes instead. */
int copy_file_zero(struct copy_job *job, uint64_t offset, uint64_t length);
/*
 * Find the data and the holes of the file from `offset` on, up to `end`. Both are whole blocks of
 * the volume, and so is the end of the piece.
 */
struct copy_piece copy_file_piece(const struct copy_job *job, uint64_t offset, uint64_t end);

/* -- initiator_copy_state.c -- */
/*
 * Divide the copy into segments. Open the state file that the options name, and read the record of
 * an earlier run. The file is open, and in->volume, in->block and job->bytes are set. Returns 0 or
 * -errno; logs the cause.
 */
int copy_state_open(struct copy_job *job);
/* Begin the record, unless copy_state_open() has read one. Returns 0 or -errno; logs the cause. */
int copy_state_begin(struct copy_job *job);
/* No state file of an earlier copy fits this destination any more. */
void copy_state_detach(int fd);
/* Close the state file. Removes it if all segments are copied. */
void copy_state_close(struct copy_job *job);
/* Returns whether copy_state_open() has read the record of an earlier run. */
bool copy_state_continues(const struct copy_job *job);
/* Returns the bytes of the segments that no earlier run has copied. */
uint64_t copy_state_left(const struct copy_job *job);
/* Take a segment that is not copied. Returns its number; n_segments: there is none. Thread: any. */
uint32_t copy_state_take(struct copy_job *job);
/* Record that a segment is copied. Returns 0 or -errno; logs the cause. Thread: any. */
int copy_state_mark(struct copy_job *job, uint32_t segment);

#endif
