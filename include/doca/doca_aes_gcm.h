/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_aes_gcm.h - tasks that encrypt and decrypt with AES in Galois/Counter Mode
 *
 * Layout of the data, where AAD is additional authenticated data, which is not encrypted, and may
 * be empty, as may the text:
 *
 *                  source                     appended to the destination
 *     encryption   AAD, plaintext             AAD, ciphertext, authentication tag
 *     decryption   AAD, ciphertext, tag       AAD, plaintext
 *
 * The buffers of a task may be lists. The memory of the source and the destination must not
 * overlap, unless the source is one buffer whose data begins where the task appends: then the task
 * encrypts or decrypts in place.
 *
 * A task whose authentication tag does not match ends with IO_FAILED. Its destination then has no
 * new data, and the memory for the plaintext holds zeros; in place, the ciphertext is lost.
 */
#ifndef DOCA_AES_GCM_H
#define DOCA_AES_GCM_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_aes_gcm;
struct doca_aes_gcm_key;
struct doca_aes_gcm_task_decrypt;
struct doca_aes_gcm_task_encrypt;
struct doca_buf;
struct doca_ctx;
struct doca_dev;
struct doca_devinfo;

/* Lengths of keys, in bits. */
enum doca_aes_gcm_key_type {
	DOCA_AES_GCM_KEY_128 = 1,
	DOCA_AES_GCM_KEY_256 = 2,
};

/*
 * Create a context on an open device.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 *     NO_MEMORY      memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_create(struct doca_dev *dev,
						   struct doca_aes_gcm **aes_gcm);

/*
 * Destroy the context.
 * Errors:
 *     IN_USE     a key exists
 *     BAD_STATE  the context is not idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_destroy(struct doca_aes_gcm *aes_gcm);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_aes_gcm_as_ctx(struct doca_aes_gcm *aes_gcm);

/* Get the maximum number of tasks of each type. */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_get_max_num_tasks(struct doca_aes_gcm *aes_gcm,
								  uint32_t *max_num_tasks);

/*
 * Create a key for tasks of the context, in any state of the context. raw_key has 16 or 32 bytes,
 * according to its type. The library copies it.
 * Errors:
 *     NOT_SUPPORTED  never returned
 *     NO_MEMORY      memory allocation failed, or libcrypto rejected the key
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_key_create(struct doca_aes_gcm *aes_gcm,
						       const void *raw_key,
						       enum doca_aes_gcm_key_type raw_key_type,
						       struct doca_aes_gcm_key **key);

/*
 * Destroy a key and overwrite its memory. All submitted tasks that use it must have ended.
 * Errors:
 *     DRIVER  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_key_destroy(struct doca_aes_gcm_key *key);

/* -- encryption -- */

/*
 * Completion callback: the program owns the task again, and submits or frees it. The library passes
 * the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_aes_gcm_task_encrypt_completion_cb_t)(struct doca_aes_gcm_task_encrypt *task,
							  union doca_data task_user_data,
							  union doca_data ctx_user_data);

/*
 * Returns SUCCESS if the device supports the tasks (second and third function: with tags of 12 or
 * 16 bytes; last function: with keys of this length).
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t
doca_aes_gcm_cap_task_encrypt_is_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_aes_gcm_cap_task_encrypt_is_tag_96_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_aes_gcm_cap_task_encrypt_is_tag_128_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_encrypt_is_key_type_supported(
	const struct doca_devinfo *devinfo, enum doca_aes_gcm_key_type key_type);

/*
 * Get the maximum length of an initialization vector, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_encrypt_get_max_iv_len(
	const struct doca_devinfo *devinfo, uint32_t *max_iv_len);

/*
 * Get the maximum number of source bytes of one task, with the AAD.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_encrypt_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint64_t *max_buffer_size);

/*
 * Get the maximum number of buffers in a list.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_encrypt_get_max_list_buf_num_elem(
	const struct doca_devinfo *devinfo, uint32_t *max_list_num_elem);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_task_encrypt_set_conf(
	struct doca_aes_gcm *aes_gcm, doca_aes_gcm_task_encrypt_completion_cb_t task_completion_cb,
	doca_aes_gcm_task_encrypt_completion_cb_t task_error_cb, uint32_t num_tasks);

/*
 * Allocate a task that encrypts src_buff into dst_buff.
 * key: a key of this context.
 * iv: initialization vector of iv_length bytes, 1 to 12. The task keeps the pointer, and
 *     doca_task_submit() copies the bytes.
 * tag_size: length of the authentication tag in bytes, 12 or 16.
 * aad_size: length of the AAD in bytes.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 *     BAD_STATE  the context is idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_task_encrypt_alloc_init(
	struct doca_aes_gcm *aes_gcm, struct doca_buf const *src_buff, struct doca_buf *dst_buff,
	struct doca_aes_gcm_key *key, const uint8_t *iv, uint32_t iv_length, uint32_t tag_size,
	uint32_t aad_size, union doca_data user_data, struct doca_aes_gcm_task_encrypt **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_aes_gcm_task_encrypt_as_task(
	struct doca_aes_gcm_task_encrypt *task);

/*
 * Set and get the fields of a task. Do not set a field while the task is submitted. The setters
 * check nothing: a submitted task with an invalid field ends with INVALID_VALUE. For a task of NULL
 * the getters return NULL or 0, and a setter has no effect.
 */
DOCA_EXPERIMENTAL void doca_aes_gcm_task_encrypt_set_src(struct doca_aes_gcm_task_encrypt *task,
							 struct doca_buf const *src_buff);
DOCA_EXPERIMENTAL struct doca_buf const *doca_aes_gcm_task_encrypt_get_src(
	const struct doca_aes_gcm_task_encrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_encrypt_set_dst(struct doca_aes_gcm_task_encrypt *task,
							 struct doca_buf *dst_buff);
DOCA_EXPERIMENTAL struct doca_buf *doca_aes_gcm_task_encrypt_get_dst(
	const struct doca_aes_gcm_task_encrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_encrypt_set_key(struct doca_aes_gcm_task_encrypt *task,
							 struct doca_aes_gcm_key *key);
DOCA_EXPERIMENTAL struct doca_aes_gcm_key *doca_aes_gcm_task_encrypt_get_key(
	const struct doca_aes_gcm_task_encrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_encrypt_set_iv(struct doca_aes_gcm_task_encrypt *task,
							const uint8_t *iv, uint32_t iv_length);
DOCA_EXPERIMENTAL const uint8_t *doca_aes_gcm_task_encrypt_get_iv(
	const struct doca_aes_gcm_task_encrypt *task, uint32_t *iv_length);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_encrypt_set_tag_size(
	struct doca_aes_gcm_task_encrypt *task, uint32_t tag_size);
DOCA_EXPERIMENTAL uint32_t
doca_aes_gcm_task_encrypt_get_tag_size(const struct doca_aes_gcm_task_encrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_encrypt_set_aad_size(
	struct doca_aes_gcm_task_encrypt *task, uint32_t aad_size);
DOCA_EXPERIMENTAL uint32_t
doca_aes_gcm_task_encrypt_get_aad_size(const struct doca_aes_gcm_task_encrypt *task);

/* -- decryption -- */

/*
 * Completion callback: the program owns the task again, and submits or frees it. The library passes
 * the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_aes_gcm_task_decrypt_completion_cb_t)(struct doca_aes_gcm_task_decrypt *task,
							  union doca_data task_user_data,
							  union doca_data ctx_user_data);

/*
 * Returns SUCCESS if the device supports the tasks (second and third function: with tags of 12 or
 * 16 bytes; last function: with keys of this length).
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t
doca_aes_gcm_cap_task_decrypt_is_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_aes_gcm_cap_task_decrypt_is_tag_96_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_aes_gcm_cap_task_decrypt_is_tag_128_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_decrypt_is_key_type_supported(
	const struct doca_devinfo *devinfo, enum doca_aes_gcm_key_type key_type);

/*
 * Get the maximum length of an initialization vector, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_decrypt_get_max_iv_len(
	const struct doca_devinfo *devinfo, uint32_t *max_iv_len);

/*
 * Get the maximum number of source bytes of one task, with the AAD and the tag.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_decrypt_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint64_t *max_buffer_size);

/*
 * Get the maximum number of buffers in a list.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_cap_task_decrypt_get_max_list_buf_num_elem(
	const struct doca_devinfo *devinfo, uint32_t *max_list_num_elem);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_task_decrypt_set_conf(
	struct doca_aes_gcm *aes_gcm, doca_aes_gcm_task_decrypt_completion_cb_t task_completion_cb,
	doca_aes_gcm_task_decrypt_completion_cb_t task_error_cb, uint32_t num_tasks);

/*
 * Allocate a task that decrypts src_buff into dst_buff and compares the tag.
 * key: a key of this context.
 * iv: initialization vector of iv_length bytes, 1 to 12. The task keeps the pointer, and
 *     doca_task_submit() copies the bytes.
 * tag_size: length of the authentication tag in bytes, 12 or 16.
 * aad_size: length of the AAD in bytes.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 *     BAD_STATE  the context is idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_aes_gcm_task_decrypt_alloc_init(
	struct doca_aes_gcm *aes_gcm, struct doca_buf const *src_buff, struct doca_buf *dst_buff,
	struct doca_aes_gcm_key *key, const uint8_t *iv, uint32_t iv_length, uint32_t tag_size,
	uint32_t aad_size, union doca_data user_data, struct doca_aes_gcm_task_decrypt **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_aes_gcm_task_decrypt_as_task(
	struct doca_aes_gcm_task_decrypt *task);

/*
 * Set and get the fields of a task. Do not set a field while the task is submitted. The setters
 * check nothing: a submitted task with an invalid field ends with INVALID_VALUE. For a task of NULL
 * the getters return NULL or 0, and a setter has no effect.
 */
DOCA_EXPERIMENTAL void doca_aes_gcm_task_decrypt_set_src(struct doca_aes_gcm_task_decrypt *task,
							 struct doca_buf const *src_buff);
DOCA_EXPERIMENTAL struct doca_buf const *doca_aes_gcm_task_decrypt_get_src(
	const struct doca_aes_gcm_task_decrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_decrypt_set_dst(struct doca_aes_gcm_task_decrypt *task,
							 struct doca_buf *dst_buff);
DOCA_EXPERIMENTAL struct doca_buf *doca_aes_gcm_task_decrypt_get_dst(
	const struct doca_aes_gcm_task_decrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_decrypt_set_key(struct doca_aes_gcm_task_decrypt *task,
							 struct doca_aes_gcm_key *key);
DOCA_EXPERIMENTAL struct doca_aes_gcm_key *doca_aes_gcm_task_decrypt_get_key(
	const struct doca_aes_gcm_task_decrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_decrypt_set_iv(struct doca_aes_gcm_task_decrypt *task,
							const uint8_t *iv, uint32_t iv_length);
DOCA_EXPERIMENTAL const uint8_t *doca_aes_gcm_task_decrypt_get_iv(
	const struct doca_aes_gcm_task_decrypt *task, uint32_t *iv_length);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_decrypt_set_tag_size(
	struct doca_aes_gcm_task_decrypt *task, uint32_t tag_size);
DOCA_EXPERIMENTAL uint32_t
doca_aes_gcm_task_decrypt_get_tag_size(const struct doca_aes_gcm_task_decrypt *task);
DOCA_EXPERIMENTAL void doca_aes_gcm_task_decrypt_set_aad_size(
	struct doca_aes_gcm_task_decrypt *task, uint32_t aad_size);
DOCA_EXPERIMENTAL uint32_t
doca_aes_gcm_task_decrypt_get_aad_size(const struct doca_aes_gcm_task_decrypt *task);

#ifdef __cplusplus
}
#endif

#endif
