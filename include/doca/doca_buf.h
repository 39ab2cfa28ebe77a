/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf.h - a buffer: a range of a memory map, and where in it the data is */
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

/* Adds a reference; not on non-head list elements; previous count out. Errors: NOT_PERMITTED, TOO_BIG. */
DOCA_STABLE doca_error_t doca_buf_inc_refcount(struct doca_buf *buf, uint16_t *refcount);

/*
 * Drops a reference; at 0 the whole list goes back to the inventory; refcount out param may be NULL; inner list
 * element -> NOT_PERMITTED; count already 0 -> BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount);

/* Tells the refcount. */
DOCA_STABLE doca_error_t doca_buf_get_refcount(const struct doca_buf *buf, uint16_t *refcount);

/* Capacity (head..head+len), not data length. */
DOCA_STABLE doca_error_t doca_buf_get_len(const struct doca_buf *buf, size_t *len);

/* Start address of capacity. */
DOCA_STABLE doca_error_t doca_buf_get_head(const struct doca_buf *buf, void **head);

/* Bytes of valid data. */
DOCA_STABLE doca_error_t doca_buf_get_data_len(const struct doca_buf *buf, size_t *data_len);

/* Start of data. */
DOCA_STABLE doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data);

/* Sets data pointer and length; out of range is undefined; always SUCCESS. */
DOCA_STABLE doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t data_len);

/* Sets data length only. */
DOCA_STABLE doca_error_t doca_buf_set_data_len(struct doca_buf *buf, size_t data_len);

/* data_len=0, data pointer unchanged; used before a buffer is re-used as destination. */
DOCA_STABLE doca_error_t doca_buf_reset_data_len(struct doca_buf *buf);

/* Next element or NULL. */
DOCA_STABLE doca_error_t doca_buf_get_next_in_list(struct doca_buf *buf, struct doca_buf **next_buf);

/* Tells the last in list. */
DOCA_STABLE doca_error_t doca_buf_get_last_in_list(struct doca_buf *buf, struct doca_buf **last_buf);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_buf_is_last_in_list(const struct doca_buf *buf, uint8_t *is_last);
DOCA_STABLE doca_error_t doca_buf_is_first_in_list(const struct doca_buf *buf, uint8_t *is_first);
DOCA_STABLE doca_error_t doca_buf_is_in_list(const struct doca_buf *buf, uint8_t *is_in_list);

/* Elements from a head. Errors: NOT_PERMITTED. */
DOCA_STABLE doca_error_t doca_buf_get_list_len(const struct doca_buf *buf, uint32_t *num_elements);

/* Appends list2 (head, refcount exactly 1) after list1's tail; else NOT_PERMITTED. */
DOCA_STABLE doca_error_t doca_buf_chain_list(struct doca_buf *list1, struct doca_buf *list2);

/* chain_list with the tail given (O(1)). Errors: NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_chain_list_tail(struct doca_buf *list1_head, struct doca_buf *list1_tail,
		struct doca_buf *list2);

/* Splits list2 off list1; list2 gets refcount 1. */
DOCA_STABLE doca_error_t doca_buf_unchain_list(struct doca_buf *list1, struct doca_buf *list2);

#ifdef __cplusplus
}
#endif

#endif
