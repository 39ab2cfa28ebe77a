/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_copy_state.c - the segments of a copy, and its state file.
 *
 * A state file is a struct state, followed by one byte for each segment: 1 after the lane has
 * copied the segment, made it stable and, with copy.verify, compared it. A copy that continues has
 * the same struct state. The file is removed at the end of a complete copy. It is for this machine:
 * the numbers have its byte order.
 *
 * A destination that is a regular file has the id of the state in the attribute ATTRIBUTE, until a
 * copy truncates it or is complete. So the state does not fit a file of the same name and size that
 * another copy has truncated. On a file system without attributes, only the size tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "initiator_copy.h"

#define MAGIC "gntrycpy"
#define STATE_VERSION 1
#define ATTRIBUTE "user.gantry.copy"
#define SEGMENTS_MAX (1u << 24) /* limit of the segments, and so of the size of a state file */

struct state {
	char magic[8];
	uint32_t version;
	uint32_t into_volume;
	uint64_t segment, bytes;
	uint8_t uuid[16];  /* of the volume */
	uint64_t verifier; /* of a volume with GANTRY_VOLUME_VOLATILE */
	uint64_t device, inode;
	uint64_t size, changed_ns; /* of a source */
	uint64_t verify;
	uint8_t id[16]; /* random; all 0: the destination has no attribute */
};

_Static_assert(sizeof(struct state) == 112, "a state file has no padding");

#define FIELD(name) offsetof(struct state, name), sizeof(((struct state *)0)->name)

/* What must be the same for a copy that continues. */
static const struct {
	const char *what;
	size_t at, bytes;
} fields[] = {
	{"version", FIELD(version)},
	{"direction", FIELD(into_volume)},
	{"volume", FIELD(uuid)},
	{"content of the volume", FIELD(verifier)},
	{"bytes to copy", FIELD(bytes)},
	{"file", offsetof(struct state, device), 2 * sizeof(uint64_t)},
	{"content of the file", offsetof(struct state, size), 2 * sizeof(uint64_t)},
	{"verify", FIELD(verify)},
	{"segment", FIELD(segment)},
	{"another copy has truncated the file", FIELD(id)},
};

static const char *path(const struct copy_job *job)
{
	return job->in->conf->copy_state;
}

static int state_error(const struct copy_job *job, const char *what, int rc)
{
	gantry_log_error(job->in->host, "%s %s: %s", what, path(job), strerror(-rc));
	return rc;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static uint64_t count_segments(const struct copy_job *job, uint64_t segment)
{
	return job->bytes / segment + (job->bytes % segment != 0);
}

/* Small enough that each lane has work, and at most SEGMENTS_MAX of them. */
static uint64_t choose_segment(const struct copy_job *job)
{
	const struct initiator *in = job->in;
	uint64_t share = job->bytes / in->n_lanes + (job->bytes % in->n_lanes != 0);
	uint64_t segment = in->conf->copy_segment < share ? in->conf->copy_segment : share;
	uint64_t least = job->bytes / SEGMENTS_MAX;

	segment = round_up(segment ? segment : 1, in->block);
	return segment > least ? segment : round_up(least + 1, in->block);
}

static bool is_segment(const struct copy_job *job, uint64_t segment)
{
	return segment && segment % job->in->volume.block_size == 0 &&
	       count_segments(job, segment) <= SEGMENTS_MAX;
}

/* Describe this copy. Returns 0 or -errno; logs the cause. */
static int describe(const struct copy_job *job, struct state *state)
{
	const struct gantry_volume_info *volume = &job->in->volume;
	struct stat st;

	*state = (struct state){
		.magic = MAGIC,
		.version = STATE_VERSION,
		.into_volume = job->into_volume,
		.segment = job->segment,
		.bytes = job->bytes,
		.verifier = volume->flags & GANTRY_VOLUME_VOLATILE ? volume->verifier : 0,
		.verify = job->in->conf->copy_verify,
	};
	memcpy(state->uuid, volume->uuid, sizeof(state->uuid));
	if (fstat(job->fd, &st)) {
		int rc = -errno;

		gantry_log_error(job->in->host, "cannot examine %s: %s", job->path, strerror(-rc));
		return rc;
	}
	state->device = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	state->inode = S_ISBLK(st.st_mode) ? 0 : st.st_ino;
	if (S_ISREG(st.st_mode) && job->into_volume) {
		state->size = (uint64_t)st.st_size;
		/* programs can set the time of the last modification, but not this one */
		state->changed_ns = (uint64_t)st.st_ctim.tv_sec * NS_PER_S +
				    (uint64_t)st.st_ctim.tv_nsec;
	} else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size != job->bytes) {
		state->size = 1; /* the comparison must fail: the file was truncated or replaced */
	}
	if (!job->into_volume &&
	    fgetxattr(job->fd, ATTRIBUTE, state->id, sizeof(state->id)) != sizeof(state->id))
		memset(state->id, 0, sizeof(state->id));
	return 0;
}

static int reject(const struct copy_job *job, const char *difference)
{
	gantry_log_error(job->in->host,
			 "%s: the state file belongs to another copy (difference=%s): remove it to "
			 "copy everything, or name another file",
			 path(job), difference);
	return -EINVAL;
}

static bool is_damaged(const struct copy_job *job)
{
	for (uint32_t i = 0; i < job->n_segments; i++)
		if (job->copied[i] > 1)
			return true;
	return false;
}

/* Read the record of an earlier run. Returns 0 or -errno; logs the cause. */
static int read_state(struct copy_job *job, uint64_t size)
{
	struct state was, now;
	int rc;

	if (pread(job->state_fd, &was, sizeof(was), 0) != sizeof(was) ||
	    memcmp(was.magic, MAGIC, sizeof(was.magic)) != 0)
		return reject(job, "format");
	if (is_segment(job, was.segment))
		job->segment = was.segment;
	rc = describe(job, &now);
	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (memcmp((char *)&was + fields[i].at, (char *)&now + fields[i].at,
			   fields[i].bytes) != 0)
			return reject(job, fields[i].what);
	job->n_segments = (uint32_t)count_segments(job, job->segment);
	job->copied = calloc(job->n_segments + 1u, 1);
	if (!job->copied)
		return state_error(job, "cannot read", -ENOMEM);
	if (size != sizeof(was) + job->n_segments ||
	    pread(job->state_fd, job->copied, job->n_segments, sizeof(was)) != job->n_segments ||
	    is_damaged(job))
		return reject(job, "length or content");
	return 0;
}

/* Open the state file of copy.state, and read it if it has content. Returns 0 or -errno. */
static int open_state(struct copy_job *job)
{
	const struct gantry_host *host = job->in->host;
	struct stat st;
	int fd = host->open_file(host, path(job), O_RDWR | O_CREAT | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return state_error(job, "cannot open", fd);
	job->state_fd = fd;
	if (fstat(fd, &st))
		return state_error(job, "cannot examine", -errno);
	if (!S_ISREG(st.st_mode))
		return reject(job, "type of the file");
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		gantry_log_error(host,
				 "%s: the state file is in use by another copy: wait for it, or "
				 "name another file",
				 path(job));
		return -EBUSY;
	}
	return st.st_size ? read_state(job, (uint64_t)st.st_size) : 0;
}

int copy_state_open(struct copy_job *job)
{
	int rc;

	job->segment = choose_segment(job);
	job->n_segments = (uint32_t)count_segments(job, job->segment);
	rc = *path(job) ? open_state(job) : 0;
	/* do not remove the file of another copy */
	if (rc && job->state_fd >= 0) {
		close(job->state_fd);
		free(job->copied);
		job->state_fd = -1;
		job->copied = NULL;
	}
	return rc;
}

/*
 * Give a destination that is a regular file a new id. A file system without attributes is no error.
 * Returns 0 or -errno.
 */
static int set_id(const struct copy_job *job)
{
	uint8_t id[sizeof(((struct state *)0)->id)];

	if (job->into_volume || !job->regular)
		return 0;
	if (getentropy(id, sizeof(id)))
		return -errno;
	if (fsetxattr(job->fd, ATTRIBUTE, id, sizeof(id), 0) && errno != ENOTSUP)
		return -errno;
	return 0;
}

/* Write all bytes. Returns 0 or -errno. */
static int write_at(int fd, const void *bytes, size_t n, uint64_t offset)
{
	ssize_t put = pwrite(fd, bytes, n, (off_t)offset);

	return put < 0 ? -errno : (size_t)put < n ? -ENOSPC : 0;
}

/* Write the first record and sync it, so that a power failure does not leave a part of it. */
static int write_state(struct copy_job *job)
{
	const size_t bytes = sizeof(struct state) + job->n_segments;
	struct state *state = calloc(1, bytes);
	int rc = state ? describe(job, state) : -ENOMEM;

	if (!rc)
		rc = write_at(job->state_fd, state, bytes, 0);
	if (!rc && fsync(job->state_fd))
		rc = -errno;
	free(state);
	return rc;
}

int copy_state_begin(struct copy_job *job)
{
	int rc;

	if (job->state_fd < 0 || job->copied)
		return 0;
	rc = set_id(job) ?: write_state(job);
	if (rc) {
		(void)!ftruncate(job->state_fd, 0); /* an empty file is no record */
		return state_error(job, "cannot write", rc);
	}
	job->copied = calloc(job->n_segments + 1u, 1);
	return job->copied ? 0 : -ENOMEM;
}

bool copy_state_continues(const struct copy_job *job)
{
	return job->copied != NULL;
}

uint64_t copy_state_left(const struct copy_job *job)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < job->n_segments; i++)
		if (!job->copied || !job->copied[i])
			left += copy_file_bytes(job, i * job->segment, job->segment);
	return left;
}

uint32_t copy_state_take(struct copy_job *job)
{
	uint32_t i;

	do
		i = atomic_fetch_add_explicit(&job->next_segment, 1, memory_order_relaxed);
	while (i < job->n_segments && job->copied && job->copied[i]);
	return i < job->n_segments ? i : job->n_segments;
}

int copy_state_mark(struct copy_job *job, uint32_t segment)
{
	const uint8_t copied = 1;
	int rc = job->state_fd < 0
			 ? 0
			 : write_at(job->state_fd, &copied, 1, sizeof(struct state) + segment);

	if (rc)
		return state_error(job, "cannot write", rc);
	atomic_fetch_add_explicit(&job->n_copied, 1, memory_order_relaxed);
	return 0;
}

static uint32_t count_copied(const struct copy_job *job)
{
	uint32_t n = atomic_load_explicit(&job->n_copied, memory_order_relaxed);

	for (uint32_t i = 0; i < job->n_segments; i++)
		n += job->copied[i];
	return n;
}

void copy_state_detach(int fd)
{
	(void)fremovexattr(fd, ATTRIBUTE); /* most files have none */
}

/* Returns whether the path still leads to the state file, and not to that of another copy. */
static bool is_in_place(const struct copy_job *job)
{
	struct stat now, own;

	return !stat(path(job), &now) && !fstat(job->state_fd, &own) && now.st_dev == own.st_dev &&
	       now.st_ino == own.st_ino;
}

/* End the record. n: number of the segments that are copied */
static void end_state(const struct copy_job *job, uint32_t n)
{
	if (n < job->n_segments) {
		gantry_log_info(job->in->host,
				"%s: the copy is incomplete (segments=%u of %u): run it again to "
				"continue",
				path(job), n, job->n_segments);
		return;
	}
	if (!job->into_volume)
		copy_state_detach(job->fd);
	/* Empty, the file is no record, even if it has another name or cannot be removed. */
	if (ftruncate(job->state_fd, 0) || (is_in_place(job) && unlink(path(job))))
		state_error(job, "cannot remove", -errno);
}

void copy_state_close(struct copy_job *job)
{
	if (job->state_fd < 0)
		return;
	if (job->copied)
		end_state(job, count_copied(job));
	close(job->state_fd);
	free(job->copied);
}
