/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_buf.h - buffers and lists of buffers, for programs of the WorkQ interface (DOCA before
 * tasks)
 *
 * The functions are the old names of functions of the current doca_buf.h.
 */
#ifndef DOCA_WORKQ_BUF_H
#define DOCA_WORKQ_BUF_H

#include <doca_error.h>
#include <doca_types.h>

#include_next <doca_buf.h>

/* Extensions of an inventory. They have no effect: all buffers can be in lists. */
#define DOCA_BUF_EXTENSION_NONE 0
#define DOCA_BUF_EXTENSION_LINKED_LIST 1

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Drop a reference. refcount, which may be NULL, gets the count before the call. Dropping the last
 * reference to the first buffer of a list releases the list.
 */
static inline doca_error_t doca_buf_refcount_rm(struct doca_buf *buf, uint16_t *refcount)
{
	return doca_buf_dec_refcount(buf, refcount);
}

static inline doca_error_t doca_buf_refcount_add(struct doca_buf *buf, uint16_t *refcount)
{
	return doca_buf_inc_refcount(buf, refcount);
}

static inline doca_error_t doca_buf_refcount_get(const struct doca_buf *buf, uint16_t *refcount)
{
	return doca_buf_get_refcount(buf, refcount);
}

static inline doca_error_t doca_buf_list_chain(struct doca_buf *list1, struct doca_buf *list2)
{
	return doca_buf_chain_list(list1, list2);
}

static inline doca_error_t doca_buf_list_unchain(struct doca_buf *list1, struct doca_buf *list2)
{
	return doca_buf_unchain_list(list1, list2);
}

static inline doca_error_t doca_buf_list_next(struct doca_buf *buf, struct doca_buf **next_buf)
{
	return doca_buf_get_next_in_list(buf, next_buf);
}

static inline doca_error_t doca_buf_list_last(struct doca_buf *buf, struct doca_buf **last_buf)
{
	return doca_buf_get_last_in_list(buf, last_buf);
}

static inline doca_error_t doca_buf_list_is_last(const struct doca_buf *buf, uint8_t *is_last)
{
	return doca_buf_is_last_in_list(buf, is_last);
}

static inline doca_error_t doca_buf_list_is_first(const struct doca_buf *buf, uint8_t *is_first)
{
	return doca_buf_is_first_in_list(buf, is_first);
}

static inline doca_error_t doca_buf_list_num_elements(const struct doca_buf *buf,
						      uint32_t *num_elements)
{
	return doca_buf_get_list_len(buf, num_elements);
}

#ifdef __cplusplus
}
#endif

#endif
