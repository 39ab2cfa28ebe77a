/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_sha.c - SHA contexts: digests by one task, or part by part
 *
 * States of a partial task: NEW, after each part IN_PARTS, after the final part DONE. A reset makes
 * it NEW. An operation that is invalid in the state returns BAD_STATE and changes nothing.
 */
#include <doca_sha.h>

#include <stdlib.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "compute/serial.h"
#include "compute/sha.h"
#include "device/gd_device.h"

#define MAX_SOURCE ((uint64_t)1 << 31) /* bytes */
#define MAX_LOG_TASKS 16

struct doca_sha {
	struct gd_serial serial; /* must be first */
	struct gd_pool hash_pool, partial_pool;
	struct gd_hash *hash; /* for all tasks that compute a digest in one step */
};

struct sha_task {
	struct doca_task task; /* must be first */
	const struct doca_buf *src;
	struct doca_buf *dst;
	enum doca_sha_algorithm algorithm;
};

struct doca_sha_task_hash {
	struct sha_task sha; /* must be first */
};

struct doca_sha_task_partial_hash {
	struct sha_task sha;  /* must be first */
	struct gd_hash *hash; /* NULL until the first use; kept when the task is freed */
	bool in_parts, is_final, has_result;
};

static const struct gd_ctx_ops ctx_ops = GD_SERIAL_CTX("SHA");

static const struct sha_kind {
	uint32_t bytes; /* length of a digest */
	uint32_t block; /* the length of each part except the last is a multiple of it */
} kinds[] = {
	[DOCA_SHA_ALGORITHM_SHA1] = {20, 64},
	[DOCA_SHA_ALGORITHM_SHA256] = {32, 64},
	[DOCA_SHA_ALGORITHM_SHA512] = {64, 128},
};

/* Returns NULL for an unknown algorithm. */
static const struct sha_kind *sha_kind(enum doca_sha_algorithm algorithm)
{
	return (size_t)algorithm < sizeof(kinds) / sizeof(kinds[0]) ? &kinds[algorithm] : NULL;
}

/* -- execution -- */

static doca_error_t check_hash(const struct doca_task *task)
{
	const struct sha_task *sha = (const struct sha_task *)task;
	const struct sha_kind *kind = sha_kind(sha->algorithm);

	if (!sha->src || !sha->dst || !kind || !gd_serial_can_use(task->ctx, sha->src, sha->dst) ||
	    gd_buf_data_bytes(sha->src) > MAX_SOURCE || gd_buf_room(sha->dst) < kind->bytes)
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

static doca_error_t check_partial(const struct doca_task *task)
{
	const struct doca_sha_task_partial_hash *partial =
		(const struct doca_sha_task_partial_hash *)task;
	doca_error_t result = partial->has_result ? DOCA_ERROR_BAD_STATE : check_hash(task);

	if (result != DOCA_SUCCESS || partial->is_final)
		return result;
	if (gd_buf_data_bytes(partial->sha.src) % sha_kind(partial->sha.algorithm)->block != 0)
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

static doca_error_t add_source(struct gd_serial *serial, struct gd_hash *hash,
			       const struct doca_buf *src)
{
	const uint8_t *data;
	size_t length;
	doca_error_t result = gd_serial_source(serial, src, &data, &length);

	if (result != DOCA_SUCCESS)
		return result;
	return gd_hash_add(hash, data, length) ? DOCA_SUCCESS : DOCA_ERROR_DRIVER;
}

static doca_error_t put_digest(struct gd_hash *hash, const struct sha_task *sha)
{
	uint8_t digest[GD_SHA_BYTES_MAX];

	if (!gd_hash_end(hash, digest))
		return DOCA_ERROR_DRIVER;
	return gd_buf_append(sha->dst, digest, sha_kind(sha->algorithm)->bytes);
}

static doca_error_t run_hash(struct gd_serial *serial, struct doca_task *task)
{
	struct gd_hash *hash = ((struct doca_sha *)serial)->hash;
	struct sha_task *sha = (struct sha_task *)task;
	doca_error_t result = check_hash(task);

	if (result == DOCA_SUCCESS && !gd_hash_begin(hash, sha->algorithm))
		result = DOCA_ERROR_DRIVER;
	if (result == DOCA_SUCCESS)
		result = add_source(serial, hash, sha->src);
	return result == DOCA_SUCCESS ? put_digest(hash, sha) : result;
}

static doca_error_t begin_parts(struct doca_sha_task_partial_hash *partial)
{
	if (!partial->hash)
		partial->hash = gd_hash_new();
	if (!partial->hash)
		return DOCA_ERROR_NO_MEMORY;
	return gd_hash_begin(partial->hash, partial->sha.algorithm) ? DOCA_SUCCESS
								    : DOCA_ERROR_DRIVER;
}

static doca_error_t run_partial(struct gd_serial *serial, struct doca_task *task)
{
	struct doca_sha_task_partial_hash *partial = (struct doca_sha_task_partial_hash *)task;
	doca_error_t result = check_partial(task);

	if (result == DOCA_SUCCESS && !partial->in_parts)
		result = begin_parts(partial);
	if (result == DOCA_SUCCESS)
		result = add_source(serial, partial->hash, partial->sha.src);
	if (result != DOCA_SUCCESS)
		return result;
	partial->in_parts = true;
	if (!partial->is_final)
		return DOCA_SUCCESS;
	result = put_digest(partial->hash, &partial->sha);
	partial->has_result = result == DOCA_SUCCESS;
	partial->in_parts = false;
	return result;
}

static const struct gd_serial_ops hash_ops = GD_SERIAL_TASK(check_hash, run_hash);
static const struct gd_serial_ops partial_ops = GD_SERIAL_TASK(check_partial, run_partial);

/* -- the object -- */

static void free_hashes(struct doca_sha *sha)
{
	struct doca_sha_task_partial_hash *tasks = sha->partial_pool.tasks;

	for (uint32_t i = 0; i < sha->partial_pool.n; i++) {
		gd_hash_free(tasks[i].hash);
		tasks[i].hash = NULL;
	}
}

doca_error_t doca_sha_create(struct doca_dev *dev, struct doca_sha **sha)
{
	struct doca_sha *s;

	if (!gd_dev_is_open(dev) || !sha)
		return DOCA_ERROR_INVALID_VALUE;
	if (!GD_HAVE_SHA) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "SHA not supported: the library was built without libcrypto: install libcrypto and build it again");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return DOCA_ERROR_NO_MEMORY;
	s->hash = gd_hash_new();
	if (!s->hash) {
		free(s);
		return DOCA_ERROR_NO_MEMORY;
	}
	gd_ctx_init(&s->serial.ctx, &ctx_ops, dev);
	gd_pool_init(&s->hash_pool, &s->serial.ctx, &hash_ops.ops,
		     sizeof(struct doca_sha_task_hash));
	gd_pool_init(&s->partial_pool, &s->serial.ctx, &partial_ops.ops,
		     sizeof(struct doca_sha_task_partial_hash));
	*sha = s;
	return DOCA_SUCCESS;
}

doca_error_t doca_sha_destroy(struct doca_sha *sha)
{
	struct gd_hash *hash;
	doca_error_t result;

	if (!sha)
		return DOCA_ERROR_INVALID_VALUE;
	if (sha->serial.ctx.state != DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_IN_USE;
	free_hashes(sha);
	hash = sha->hash;
	result = gd_serial_destroy(&sha->serial, DOCA_ERROR_IN_USE);
	if (result == DOCA_SUCCESS)
		gd_hash_free(hash);
	return result;
}

struct doca_ctx *doca_sha_as_ctx(struct doca_sha *sha)
{
	return sha ? &sha->serial.ctx : NULL;
}

/* -- capabilities -- */

static doca_error_t supported(const struct doca_devinfo *devinfo, enum doca_sha_algorithm algorithm)
{
	return sha_kind(algorithm) ? gd_cap(devinfo, GD_HAVE_SHA) : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_sha_cap_task_hash_get_supported(struct doca_devinfo const *devinfo,
						  enum doca_sha_algorithm algorithm)
{
	return supported(devinfo, algorithm);
}

doca_error_t doca_sha_cap_task_partial_hash_get_supported(struct doca_devinfo const *devinfo,
							  enum doca_sha_algorithm algorithm)
{
	return supported(devinfo, algorithm);
}

doca_error_t doca_sha_cap_get_max_list_buf_num_elem(struct doca_devinfo const *devinfo,
						    uint32_t *max_list_buf_num_elem)
{
	return gd_cap_u32(devinfo, GD_HAVE_SHA, GD_SERIAL_LIST_MAX, max_list_buf_num_elem);
}

doca_error_t doca_sha_cap_get_max_src_buf_size(struct doca_devinfo const *devinfo,
					       uint64_t *max_src_buf_size)
{
	return gd_cap_u64(devinfo, GD_HAVE_SHA, MAX_SOURCE, max_src_buf_size);
}

doca_error_t doca_sha_cap_get_min_dst_buf_size(struct doca_devinfo const *devinfo,
					       enum doca_sha_algorithm algorithm,
					       uint32_t *min_dst_buf_size)
{
	const struct sha_kind *kind = sha_kind(algorithm);

	return kind ? gd_cap_u32(devinfo, GD_HAVE_SHA, kind->bytes, min_dst_buf_size)
		    : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_sha_cap_get_partial_hash_block_size(struct doca_devinfo const *devinfo,
						      enum doca_sha_algorithm algorithm,
						      uint32_t *partial_block_size)
{
	const struct sha_kind *kind = sha_kind(algorithm);

	return kind ? gd_cap_u32(devinfo, GD_HAVE_SHA, kind->block, partial_block_size)
		    : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_sha_cap_get_max_num_tasks(struct doca_sha *sha, uint32_t *max_num_tasks)
{
	if (!sha || !max_num_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_tasks = (uint32_t)1 << MAX_LOG_TASKS;
	return DOCA_SUCCESS;
}

/* -- fields of both types -- */

static doca_error_t take(struct gd_pool *pool, enum doca_sha_algorithm algorithm,
			 struct doca_buf const *src, struct doca_buf *dst,
			 union doca_data user_data, struct sha_task **task_p)
{
	struct doca_task *task;
	doca_error_t result;

	if (!src || !dst || !sha_kind(algorithm))
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_serial_take(pool, user_data, &task);
	if (result != DOCA_SUCCESS)
		return result;
	*task_p = (struct sha_task *)task;
	(*task_p)->src = src;
	(*task_p)->dst = dst;
	(*task_p)->algorithm = algorithm;
	return DOCA_SUCCESS;
}

static doca_error_t set_src(struct sha_task *task, struct doca_buf const *src)
{
	if (!src)
		return DOCA_ERROR_INVALID_VALUE;
	task->src = src;
	return DOCA_SUCCESS;
}

static doca_error_t set_dst(struct sha_task *task, struct doca_buf *dst)
{
	if (!dst)
		return DOCA_ERROR_INVALID_VALUE;
	task->dst = dst;
	return DOCA_SUCCESS;
}

static doca_error_t set_algorithm(struct sha_task *task, enum doca_sha_algorithm algorithm)
{
	if (!sha_kind(algorithm))
		return DOCA_ERROR_INVALID_VALUE;
	task->algorithm = algorithm;
	return DOCA_SUCCESS;
}

/* -- hash -- */

doca_error_t doca_sha_task_hash_set_conf(struct doca_sha *sha,
					 doca_sha_task_hash_completion_cb_t task_completion_cb,
					 doca_sha_task_hash_completion_cb_t task_error_cb,
					 uint8_t log_num_tasks)
{
	if (!sha || log_num_tasks > MAX_LOG_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_serial_conf(&sha->hash_pool, task_completion_cb, task_error_cb,
			      (uint64_t)1 << log_num_tasks, DOCA_ERROR_BAD_STATE);
}

doca_error_t doca_sha_task_hash_alloc_init(struct doca_sha *sha, enum doca_sha_algorithm algorithm,
					   struct doca_buf const *src_buf, struct doca_buf *dst_buf,
					   union doca_data user_data,
					   struct doca_sha_task_hash **task)
{
	struct sha_task *taken;
	doca_error_t result;

	if (!sha || !task)
		return DOCA_ERROR_INVALID_VALUE;
	result = take(&sha->hash_pool, algorithm, src_buf, dst_buf, user_data, &taken);
	if (result == DOCA_SUCCESS)
		*task = (struct doca_sha_task_hash *)taken;
	return result;
}

doca_error_t doca_sha_task_hash_set_src(struct doca_sha_task_hash *task,
					struct doca_buf const *src_buf)
{
	return task ? set_src(&task->sha, src_buf) : DOCA_ERROR_INVALID_VALUE;
}

struct doca_buf const *doca_sha_task_hash_get_src(struct doca_sha_task_hash const *task)
{
	return task ? task->sha.src : NULL;
}

doca_error_t doca_sha_task_hash_set_dst(struct doca_sha_task_hash *task, struct doca_buf *dst_buf)
{
	return task ? set_dst(&task->sha, dst_buf) : DOCA_ERROR_INVALID_VALUE;
}

struct doca_buf const *doca_sha_task_hash_get_dst(struct doca_sha_task_hash const *task)
{
	return task ? task->sha.dst : NULL;
}

doca_error_t doca_sha_task_hash_set_algorithm(struct doca_sha_task_hash *task,
					      enum doca_sha_algorithm algorithm)
{
	return task ? set_algorithm(&task->sha, algorithm) : DOCA_ERROR_INVALID_VALUE;
}

enum doca_sha_algorithm doca_sha_task_hash_get_algorithm(struct doca_sha_task_hash const *task)
{
	return task ? task->sha.algorithm : DOCA_SHA_ALGORITHM_SHA1;
}

struct doca_task *doca_sha_task_hash_as_task(struct doca_sha_task_hash *task)
{
	return task ? &task->sha.task : NULL;
}

/* -- partial hash -- */

doca_error_t doca_sha_task_partial_hash_set_conf(
	struct doca_sha *sha, doca_sha_task_partial_hash_completion_cb_t task_completion_cb,
	doca_sha_task_partial_hash_completion_cb_t task_error_cb, uint8_t log_num_tasks)
{
	doca_error_t result;

	if (!sha || log_num_tasks > MAX_LOG_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_ctx_configurable(&sha->serial.ctx, DOCA_ERROR_BAD_STATE);
	if (result != DOCA_SUCCESS)
		return result;
	free_hashes(sha);
	return gd_serial_conf(&sha->partial_pool, task_completion_cb, task_error_cb,
			      (uint64_t)1 << log_num_tasks, DOCA_ERROR_BAD_STATE);
}

doca_error_t doca_sha_task_partial_hash_reset(struct doca_sha_task_partial_hash *task)
{
	if (!task)
		return DOCA_ERROR_INVALID_VALUE;
	task->in_parts = task->is_final = task->has_result = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_sha_task_partial_hash_alloc_init(struct doca_sha *sha,
						   enum doca_sha_algorithm algorithm,
						   struct doca_buf const *src_buf,
						   struct doca_buf *dst_buf,
						   union doca_data user_data,
						   struct doca_sha_task_partial_hash **task)
{
	struct sha_task *taken;
	doca_error_t result;

	if (!sha || !task)
		return DOCA_ERROR_INVALID_VALUE;
	result = take(&sha->partial_pool, algorithm, src_buf, dst_buf, user_data, &taken);
	if (result != DOCA_SUCCESS)
		return result;
	*task = (struct doca_sha_task_partial_hash *)taken;
	return doca_sha_task_partial_hash_reset(*task);
}

doca_error_t doca_sha_task_partial_hash_set_src(struct doca_sha_task_partial_hash *task,
						struct doca_buf const *src_buf)
{
	return task ? set_src(&task->sha, src_buf) : DOCA_ERROR_INVALID_VALUE;
}

struct doca_buf const *doca_sha_task_partial_hash_get_src(
	struct doca_sha_task_partial_hash const *task)
{
	return task ? task->sha.src : NULL;
}

doca_error_t doca_sha_task_partial_hash_set_dst(struct doca_sha_task_partial_hash *task,
						struct doca_buf *dst_buf)
{
	if (!task)
		return DOCA_ERROR_INVALID_VALUE;
	return task->in_parts ? DOCA_ERROR_BAD_STATE : set_dst(&task->sha, dst_buf);
}

struct doca_buf const *doca_sha_task_partial_hash_get_dst(
	struct doca_sha_task_partial_hash const *task)
{
	return task ? task->sha.dst : NULL;
}

doca_error_t doca_sha_task_partial_hash_set_algorithm(struct doca_sha_task_partial_hash *task,
						      enum doca_sha_algorithm algorithm)
{
	if (!task)
		return DOCA_ERROR_INVALID_VALUE;
	return task->in_parts ? DOCA_ERROR_BAD_STATE : set_algorithm(&task->sha, algorithm);
}

enum doca_sha_algorithm doca_sha_task_partial_hash_get_algorithm(
	struct doca_sha_task_partial_hash const *task)
{
	return task ? task->sha.algorithm : DOCA_SHA_ALGORITHM_SHA1;
}

doca_error_t doca_sha_task_partial_hash_set_is_final_buf(struct doca_sha_task_partial_hash *task)
{
	if (!task)
		return DOCA_ERROR_INVALID_VALUE;
	if (task->has_result || task->sha.task.state != GD_TASK_TAKEN)
		return DOCA_ERROR_BAD_STATE;
	task->is_final = true;
	return DOCA_SUCCESS;
}

uint8_t doca_sha_task_partial_hash_get_is_final(struct doca_sha_task_partial_hash const *task)
{
	return task && task->is_final;
}

uint8_t doca_sha_task_partial_hash_get_has_result(struct doca_sha_task_partial_hash const *task)
{
	return task && task->has_result;
}

struct doca_task *doca_sha_task_partial_hash_as_task(struct doca_sha_task_partial_hash *task)
{
	return task ? &task->sha.task : NULL;
}
