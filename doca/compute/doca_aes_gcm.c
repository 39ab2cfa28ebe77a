/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_aes_gcm.c - AES-GCM contexts: keys, encryption and decryption with an authentication tag
 *
 * Both task types use one structure and differ only in the function that runs. Submission copies
 * the initialization vector. A failed task does not change the length of the destination.
 */
#include <doca_aes_gcm.h>

#include <stdlib.h>
#include <string.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "compute/aes_gcm.h"
#include "compute/serial.h"
#include "device/gd_device.h"

#define MAX_BYTES ((uint64_t)128 << 20) /* of the source of an encryption */
#define MAX_IV 12                       /* bytes */
#define TAG_96 12                       /* bytes */
#define TAG_128 16

struct doca_aes_gcm {
	struct gd_serial serial; /* must be first */
	struct gd_pool encrypt_pool, decrypt_pool;
	uint32_t n_keys;
};

struct doca_aes_gcm_key {
	struct doca_aes_gcm *aes_gcm;
	struct gd_gcm *gcm;
};

struct gcm_task {
	struct doca_task task; /* must be first */
	const struct doca_buf *src;
	struct doca_buf *dst;
	struct doca_aes_gcm_key *key;
	const uint8_t *iv; /* as the program has set it; read by submission only */
	uint32_t iv_length, tag_size, aad_size;
	uint8_t submitted_iv[MAX_IV];
};

static const struct gd_ctx_ops ctx_ops = GD_SERIAL_CTX("AES-GCM");

/* -- execution -- */

static bool fields_are_valid(const struct doca_ctx *ctx, const struct gcm_task *t)
{
	return t->src && t->dst && t->key && &t->key->aes_gcm->serial.ctx == ctx && t->iv &&
	       t->iv_length >= 1 && t->iv_length <= MAX_IV &&
	       (t->tag_size == TAG_96 || t->tag_size == TAG_128);
}

static doca_error_t check_encrypt(const struct doca_task *task)
{
	const struct gcm_task *t = (const struct gcm_task *)task;
	uint64_t length;

	if (!fields_are_valid(task->ctx, t) || !gd_serial_can_use(task->ctx, t->src, t->dst))
		return DOCA_ERROR_INVALID_VALUE;
	length = gd_buf_data_bytes(t->src);
	if (length > MAX_BYTES || length < t->aad_size ||
	    gd_buf_room(t->dst) < length + t->tag_size)
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

static doca_error_t check_decrypt(const struct doca_task *task)
{
	const struct gcm_task *t = (const struct gcm_task *)task;
	uint64_t length;

	if (!fields_are_valid(task->ctx, t) || !gd_serial_can_use(task->ctx, t->src, t->dst))
		return DOCA_ERROR_INVALID_VALUE;
	length = gd_buf_data_bytes(t->src);
	if (length > MAX_BYTES + TAG_128 || length < (uint64_t)t->aad_size + t->tag_size ||
	    gd_buf_room(t->dst) < length - t->tag_size)
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

static doca_error_t submit(struct doca_task *task)
{
	struct gcm_task *t = (struct gcm_task *)task;

	if (t->iv && t->iv_length <= MAX_IV)
		memcpy(t->submitted_iv, t->iv, t->iv_length);
	return gd_serial_submit(task);
}

/* Source and destination of a task. */
struct ends {
	const uint8_t *source;
	size_t n;
	struct gd_serial_dst room;
};

static bool overlap(const struct ends *e)
{
	const uintptr_t from = (uintptr_t)e->source, to = (uintptr_t)e->room.bytes;

	return from != to && from < to + e->room.size && to < from + e->n;
}

/* Get a source of valid length, and a destination for `result` bytes. */
static doca_error_t get_ends(struct gd_serial *serial, const struct gcm_task *t, size_t length,
			     struct ends *e)
{
	static uint8_t nothing[1];
	doca_error_t result = gd_serial_source(serial, t->src, &e->source, &e->n);

	e->room = (struct gd_serial_dst){.list = t->dst, .bytes = nothing, .is_direct = true};
	if (result == DOCA_SUCCESS && length > 0)
		result = gd_serial_room(serial, t->dst, length, &e->room);
	return result == DOCA_SUCCESS && overlap(e) ? DOCA_ERROR_INVALID_VALUE : result;
}

/*
 * Copy the AAD, and return the message of the task. The message authenticates the copy, because
 * another process can change the source meanwhile.
 */
static struct gd_gcm_message message_of(const struct gcm_task *t, const struct ends *e,
					size_t length, uint8_t *tag)
{
	memmove(e->room.bytes, e->source, t->aad_size);
	return (struct gd_gcm_message){
		.iv = t->submitted_iv,
		.iv_length = t->iv_length,
		.aad = e->room.bytes,
		.aad_length = t->aad_size,
		.in = e->source + t->aad_size,
		.out = e->room.bytes + t->aad_size,
		.length = length,
		.tag = tag,
		.tag_length = t->tag_size,
	};
}

static doca_error_t run_encrypt(struct gd_serial *serial, struct doca_task *task)
{
	const struct gcm_task *t = (const struct gcm_task *)task;
	struct gd_gcm_message message;
	struct ends e;
	doca_error_t result = check_encrypt(task);

	if (result == DOCA_SUCCESS)
		result = get_ends(serial, t, gd_buf_data_bytes(t->src) + t->tag_size, &e);
	if (result != DOCA_SUCCESS)
		return result;
	message = message_of(t, &e, e.n - t->aad_size, e.room.bytes + e.n);
	result = gd_gcm_encrypt(t->key->gcm, &message);
	return result == DOCA_SUCCESS ? gd_serial_put(&e.room, e.n + t->tag_size) : result;
}

static doca_error_t run_decrypt(struct gd_serial *serial, struct doca_task *task)
{
	const struct gcm_task *t = (const struct gcm_task *)task;
	struct gd_gcm_message message;
	uint8_t tag[GD_GCM_TAG_MAX];
	struct ends e;
	size_t length;
	doca_error_t result = check_decrypt(task);

	if (result == DOCA_SUCCESS)
		result = get_ends(serial, t, gd_buf_data_bytes(t->src) - t->tag_size, &e);
	if (result != DOCA_SUCCESS)
		return result;
	length = e.n - t->tag_size;
	memcpy(tag, e.source + length, t->tag_size);
	message = message_of(t, &e, length - t->aad_size, tag);
	result = gd_gcm_decrypt(t->key->gcm, &message);
	return result == DOCA_SUCCESS ? gd_serial_put(&e.room, length) : result;
}

#define TASK_OPS(check_fn, run_fn) \
	{ \
		.ops = {.check = (check_fn), .submit = submit, .withdraw = gd_serial_withdraw}, \
		.run = (run_fn) \
	}

static const struct gd_serial_ops encrypt_ops = TASK_OPS(check_encrypt, run_encrypt);
static const struct gd_serial_ops decrypt_ops = TASK_OPS(check_decrypt, run_decrypt);

/* -- the object -- */

doca_error_t doca_aes_gcm_create(struct doca_dev *dev, struct doca_aes_gcm **aes_gcm)
{
	struct doca_aes_gcm *a;

	if (!gd_dev_is_open(dev) || !aes_gcm)
		return DOCA_ERROR_INVALID_VALUE;
	if (!GD_HAVE_GCM) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "AES-GCM not supported: the library was built without libcrypto: install libcrypto and build it again");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&a->serial.ctx, &ctx_ops, dev);
	gd_pool_init(&a->encrypt_pool, &a->serial.ctx, &encrypt_ops.ops, sizeof(struct gcm_task));
	gd_pool_init(&a->decrypt_pool, &a->serial.ctx, &decrypt_ops.ops, sizeof(struct gcm_task));
	*aes_gcm = a;
	return DOCA_SUCCESS;
}

doca_error_t doca_aes_gcm_destroy(struct doca_aes_gcm *aes_gcm)
{
	if (!aes_gcm)
		return DOCA_ERROR_INVALID_VALUE;
	if (aes_gcm->n_keys > 0)
		return DOCA_ERROR_IN_USE;
	return gd_serial_destroy(&aes_gcm->serial, DOCA_ERROR_BAD_STATE);
}

struct doca_ctx *doca_aes_gcm_as_ctx(struct doca_aes_gcm *aes_gcm)
{
	return aes_gcm ? &aes_gcm->serial.ctx : NULL;
}

doca_error_t doca_aes_gcm_cap_get_max_num_tasks(struct doca_aes_gcm *aes_gcm,
						uint32_t *max_num_tasks)
{
	if (!aes_gcm || !max_num_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_tasks = GD_SERIAL_TASKS_MAX;
	return DOCA_SUCCESS;
}

/* -- keys -- */

static bool is_key_type(enum doca_aes_gcm_key_type type)
{
	return type == DOCA_AES_GCM_KEY_128 || type == DOCA_AES_GCM_KEY_256;
}

doca_error_t doca_aes_gcm_key_create(struct doca_aes_gcm *aes_gcm, const void *raw_key,
				     enum doca_aes_gcm_key_type raw_key_type,
				     struct doca_aes_gcm_key **key)
{
	struct doca_aes_gcm_key *k;

	if (!aes_gcm || !raw_key || !is_key_type(raw_key_type) || !key)
		return DOCA_ERROR_INVALID_VALUE;
	k = calloc(1, sizeof(*k));
	if (!k)
		return DOCA_ERROR_NO_MEMORY;
	k->gcm = gd_gcm_new(raw_key, raw_key_type == DOCA_AES_GCM_KEY_256);
	if (!k->gcm) {
		free(k);
		return DOCA_ERROR_NO_MEMORY;
	}
	k->aes_gcm = aes_gcm;
	aes_gcm->n_keys++;
	*key = k;
	return DOCA_SUCCESS;
}

doca_error_t doca_aes_gcm_key_destroy(struct doca_aes_gcm_key *key)
{
	if (!key)
		return DOCA_ERROR_INVALID_VALUE;
	key->aes_gcm->n_keys--;
	gd_gcm_free(key->gcm);
	free(key);
	return DOCA_SUCCESS;
}

/* -- capabilities of both types -- */

static doca_error_t can_key_type(const struct doca_devinfo *devinfo,
				 enum doca_aes_gcm_key_type type)
{
	return is_key_type(type) ? gd_cap(devinfo, GD_HAVE_GCM) : DOCA_ERROR_INVALID_VALUE;
}

#define CAPS(KIND, max_bytes) \
	doca_error_t doca_aes_gcm_cap_task_##KIND##_is_supported( \
		const struct doca_devinfo *devinfo) \
	{ \
		return gd_cap(devinfo, GD_HAVE_GCM); \
	} \
	doca_error_t doca_aes_gcm_cap_task_##KIND##_is_tag_96_supported( \
		const struct doca_devinfo *devinfo) \
	{ \
		return gd_cap(devinfo, GD_HAVE_GCM); \
	} \
	doca_error_t doca_aes_gcm_cap_task_##KIND##_is_tag_128_supported( \
		const struct doca_devinfo *devinfo) \
	{ \
		return gd_cap(devinfo, GD_HAVE_GCM); \
	} \
	doca_error_t doca_aes_gcm_cap_task_##KIND##_is_key_type_supported( \
		const struct doca_devinfo *devinfo, enum doca_aes_gcm_key_type key_type) \
	{ \
		return can_key_type(devinfo, key_type); \
	} \
	doca_error_t doca_aes_gcm_cap_task_##KIND##_get_max_iv_len( \
		const struct doca_devinfo *devinfo, uint32_t *max_iv_len) \
	{ \
		return gd_cap_u32(devinfo, GD_HAVE_GCM, MAX_IV, max_iv_len); \
	} \
	doca_error_t doca_aes_gcm_cap_task_##KIND##_get_max_buf_size( \
		const struct doca_devinfo *devinfo, uint64_t *max_buffer_size) \
	{ \
		return gd_cap_u64(devinfo, GD_HAVE_GCM, max_bytes, max_buffer_size); \
	} \
	doca_error_t doca_aes_gcm_cap_task_##KIND##_get_max_list_buf_num_elem( \
		const struct doca_devinfo *devinfo, uint32_t *max_list_num_elem) \
	{ \
		return gd_cap_u32(devinfo, GD_HAVE_GCM, GD_SERIAL_LIST_MAX, max_list_num_elem); \
	}

CAPS(encrypt, MAX_BYTES)
CAPS(decrypt, MAX_BYTES + TAG_128)

/* -- tasks of both types -- */

/* Allocate a task with the fields of `fields`. */
static doca_error_t take(struct gd_pool *pool, const struct gcm_task *fields,
			 union doca_data user_data, void **task_p)
{
	struct doca_task *task;
	struct gcm_task *t;
	doca_error_t result;

	if (!fields_are_valid(pool->ctx, fields))
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_serial_take(pool, user_data, &task);
	if (result != DOCA_SUCCESS)
		return result;
	t = (struct gcm_task *)task;
	t->src = fields->src;
	t->dst = fields->dst;
	t->key = fields->key;
	t->iv = fields->iv;
	t->iv_length = fields->iv_length;
	t->tag_size = fields->tag_size;
	t->aad_size = fields->aad_size;
	*task_p = task;
	return DOCA_SUCCESS;
}

#define FIELD(KIND, field, type) \
	void doca_aes_gcm_task_##KIND##_set_##field(struct doca_aes_gcm_task_##KIND *task, \
						    type value) \
	{ \
		if (task) \
			((struct gcm_task *)task)->field = value; \
	} \
	type doca_aes_gcm_task_##KIND##_get_##field(const struct doca_aes_gcm_task_##KIND *task) \
	{ \
		return task ? ((const struct gcm_task *)task)->field : 0; \
	}

static void set_iv(struct gcm_task *task, const uint8_t *iv, uint32_t iv_length)
{
	if (!task)
		return;
	task->iv = iv;
	task->iv_length = iv_length;
}

static const uint8_t *get_iv(const struct gcm_task *task, uint32_t *iv_length)
{
	if (iv_length)
		*iv_length = task ? task->iv_length : 0;
	return task ? task->iv : NULL;
}

#define TASK(KIND) \
	doca_error_t doca_aes_gcm_task_##KIND##_set_conf( \
		struct doca_aes_gcm *aes_gcm, \
		doca_aes_gcm_task_##KIND##_completion_cb_t task_completion_cb, \
		doca_aes_gcm_task_##KIND##_completion_cb_t task_error_cb, uint32_t num_tasks) \
	{ \
		return aes_gcm ? gd_serial_conf(&aes_gcm->KIND##_pool, task_completion_cb, \
						task_error_cb, num_tasks, DOCA_ERROR_BAD_STATE) \
			       : DOCA_ERROR_INVALID_VALUE; \
	} \
	doca_error_t doca_aes_gcm_task_##KIND##_alloc_init( \
		struct doca_aes_gcm *aes_gcm, struct doca_buf const *src_buff, \
		struct doca_buf *dst_buff, struct doca_aes_gcm_key *key, const uint8_t *iv, \
		uint32_t iv_length, uint32_t tag_size, uint32_t aad_size, \
		union doca_data user_data, struct doca_aes_gcm_task_##KIND **task) \
	{ \
		const struct gcm_task fields = {.src = src_buff, \
						.dst = dst_buff, \
						.key = key, \
						.iv = iv, \
						.iv_length = iv_length, \
						.tag_size = tag_size, \
						.aad_size = aad_size}; \
\
		return aes_gcm && task \
			       ? take(&aes_gcm->KIND##_pool, &fields, user_data, (void **)task) \
			       : DOCA_ERROR_INVALID_VALUE; \
	} \
	struct doca_task *doca_aes_gcm_task_##KIND##_as_task( \
		struct doca_aes_gcm_task_##KIND *task) \
	{ \
		return (struct doca_task *)task; \
	} \
	FIELD(KIND, src, struct doca_buf const *) \
	FIELD(KIND, dst, struct doca_buf *) \
	FIELD(KIND, key, struct doca_aes_gcm_key *) \
	FIELD(KIND, tag_size, uint32_t) \
	FIELD(KIND, aad_size, uint32_t) \
	void doca_aes_gcm_task_##KIND##_set_iv(struct doca_aes_gcm_task_##KIND *task, \
					       const uint8_t *iv, uint32_t iv_length) \
	{ \
		set_iv((struct gcm_task *)task, iv, iv_length); \
	} \
	const uint8_t *doca_aes_gcm_task_##KIND##_get_iv( \
		const struct doca_aes_gcm_task_##KIND *task, uint32_t *iv_length) \
	{ \
		return get_iv((const struct gcm_task *)task, iv_length); \
	}

TASK(encrypt)
TASK(decrypt)
