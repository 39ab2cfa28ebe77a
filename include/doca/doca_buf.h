/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_buf.h - buffers: a range of a memory map with a data part, references, and lists of buffers
 *
 * The first buffer of a list represents the list. Only the first buffer has a reference count.
 */
#ifndef DOCA_BUF_H
#define DOCA_BUF_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;

/*
 * Add a reference. refcount, which may be NULL, gets the count before the call.
 * Errors:
 *     NOT_PERMITTED  the buffer is in a list but is not its first buffer, or has no reference
 *     TOO_BIG        the count would exceed 65535
 */
DOCA_STABLE doca_error_t doca_buf_inc_refcount(struct doca_buf *buf, uint16_t *refcount);

/*
 * Drop a reference. refcount, which may be NULL, gets the count before the call. Dropping the last
 * reference releases the buffer; if it is the first buffer of a list, all buffers of the list.
 * Errors:
 *     BAD_STATE      the buffer has no reference
 *     NOT_PERMITTED  the buffer is in a list but is not its first buffer
 */
DOCA_STABLE doca_error_t doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount);

/* Get the reference count. */
DOCA_STABLE doca_error_t doca_buf_get_refcount(const struct doca_buf *buf, uint16_t *refcount);

/* Get the length of the range, in bytes. */
DOCA_STABLE doca_error_t doca_buf_get_len(const struct doca_buf *buf, size_t *len);

/* Get the address of the range. */
DOCA_STABLE doca_error_t doca_buf_get_head(const struct doca_buf *buf, void **head);

/* Get the length of the data, in bytes. */
DOCA_STABLE doca_error_t doca_buf_get_data_len(const struct doca_buf *buf, size_t *data_len);

/* Get the address of the data. */
DOCA_STABLE doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data);

/*
 * Set the data part of the range. The library does not check it here: a task that uses a data part
 * outside the range fails.
 */
DOCA_STABLE doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t data_len);

/* Set the length of the data, in bytes. */
DOCA_STABLE doca_error_t doca_buf_set_data_len(struct doca_buf *buf, size_t data_len);

/* Set the length of the data to 0. The address of the data does not change. */
DOCA_STABLE doca_error_t doca_buf_reset_data_len(struct doca_buf *buf);

/* Get the next buffer of the list, or NULL. */
DOCA_STABLE doca_error_t doca_buf_get_next_in_list(struct doca_buf *buf,
						   struct doca_buf **next_buf);

/* Get the last buffer of the list. */
DOCA_STABLE doca_error_t doca_buf_get_last_in_list(struct doca_buf *buf,
						   struct doca_buf **last_buf);

/* Stores 1 if the buffer is the last of its list, 0 if not. */
DOCA_STABLE doca_error_t doca_buf_is_last_in_list(const struct doca_buf *buf, uint8_t *is_last);
DOCA_STABLE doca_error_t doca_buf_is_first_in_list(const struct doca_buf *buf, uint8_t *is_first);

/* Stores 1 if the buffer is in a list of more than one buffer, else 0. */
DOCA_STABLE doca_error_t doca_buf_is_in_list(const struct doca_buf *buf, uint8_t *is_in_list);

/*
 * Get the number of buffers of the list.
 * Errors:
 *     NOT_PERMITTED  the buffer is not the first of its list
 */
DOCA_STABLE doca_error_t doca_buf_get_list_len(const struct doca_buf *buf, uint32_t *num_elements);

/*
 * Append list2 to list1.
 * Errors:
 *     NOT_PERMITTED  a buffer is not the first of its list, list1 is list2, list1 has no reference,
 *                    or list2 does not have exactly one reference
 */
DOCA_STABLE doca_error_t doca_buf_chain_list(struct doca_buf *list1, struct doca_buf *list2);

/*
 * Like doca_buf_chain_list(), with the last buffer of list1 given.
 * Errors:
 *     NOT_PERMITTED  as for doca_buf_chain_list(), or list1_tail is not the last buffer of list1
 */
DOCA_EXPERIMENTAL doca_error_t doca_buf_chain_list_tail(struct doca_buf *list1_head,
							struct doca_buf *list1_tail,
							struct doca_buf *list2);

/* Split list1 before buffer list2. list2 becomes the first buffer of a list with one reference. */
DOCA_STABLE doca_error_t doca_buf_unchain_list(struct doca_buf *list1, struct doca_buf *list2);

#ifdef __cplusplus
}
#endif

#endif
