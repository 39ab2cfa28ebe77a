/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_buf.c - public functions of buffers: references, range, data and lists
 *
 * The first buffer represents a list and has its reference count; the other buffers are `in_list`.
 */
#include <stddef.h>

#include "buf/buf.h"

/* -- references -- */

doca_error_t doca_buf_inc_refcount(struct doca_buf *buf, uint16_t *refcount)
{
	if (!buf)
		return DOCA_ERROR_INVALID_VALUE;
	if (buf->in_list || buf->references == 0)
		return DOCA_ERROR_NOT_PERMITTED;
	if (buf->references == UINT16_MAX)
		return DOCA_ERROR_TOO_BIG;
	if (refcount)
		*refcount = buf->references;
	buf->references++;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount)
{
	if (!buf)
		return DOCA_ERROR_INVALID_VALUE;
	if (buf->references == 0)
		return DOCA_ERROR_BAD_STATE;
	if (buf->in_list)
		return DOCA_ERROR_NOT_PERMITTED;
	if (refcount)
		*refcount = buf->references;
	if (--buf->references == 0)
		gd_buf_give_back(buf);
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_refcount(const struct doca_buf *buf, uint16_t *refcount)
{
	if (!buf || !refcount)
		return DOCA_ERROR_INVALID_VALUE;
	*refcount = buf->references;
	return DOCA_SUCCESS;
}

/* -- range and data -- */

doca_error_t doca_buf_get_len(const struct doca_buf *buf, size_t *len)
{
	if (!buf || !len)
		return DOCA_ERROR_INVALID_VALUE;
	*len = buf->len;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_head(const struct doca_buf *buf, void **head)
{
	if (!buf || !head)
		return DOCA_ERROR_INVALID_VALUE;
	*head = buf->head;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_data_len(const struct doca_buf *buf, size_t *data_len)
{
	if (!buf || !data_len)
		return DOCA_ERROR_INVALID_VALUE;
	*data_len = buf->data_len;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data)
{
	if (!buf || !data)
		return DOCA_ERROR_INVALID_VALUE;
	*data = buf->data;
	return DOCA_SUCCESS;
}

/* Not checked here: a task that uses the buffer checks the data part. */
doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t data_len)
{
	if (!buf)
		return DOCA_ERROR_INVALID_VALUE;
	buf->data = data;
	buf->data_len = data_len;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_set_data_len(struct doca_buf *buf, size_t data_len)
{
	if (!buf)
		return DOCA_ERROR_INVALID_VALUE;
	buf->data_len = data_len;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_reset_data_len(struct doca_buf *buf)
{
	return doca_buf_set_data_len(buf, 0);
}

/* -- lists -- */

static struct doca_buf *last_of(const struct doca_buf *buf)
{
	if (!buf->in_list)
		return buf->last;
	while (buf->next)
		buf = buf->next;
	return (struct doca_buf *)buf;
}

doca_error_t doca_buf_get_next_in_list(struct doca_buf *buf, struct doca_buf **next_buf)
{
	if (!buf || !next_buf)
		return DOCA_ERROR_INVALID_VALUE;
	*next_buf = buf->next;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_last_in_list(struct doca_buf *buf, struct doca_buf **last_buf)
{
	if (!buf || !last_buf)
		return DOCA_ERROR_INVALID_VALUE;
	*last_buf = last_of(buf);
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_is_last_in_list(const struct doca_buf *buf, uint8_t *is_last)
{
	if (!buf || !is_last)
		return DOCA_ERROR_INVALID_VALUE;
	*is_last = buf->next == NULL;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_is_first_in_list(const struct doca_buf *buf, uint8_t *is_first)
{
	if (!buf || !is_first)
		return DOCA_ERROR_INVALID_VALUE;
	*is_first = !buf->in_list;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_is_in_list(const struct doca_buf *buf, uint8_t *is_in_list)
{
	if (!buf || !is_in_list)
		return DOCA_ERROR_INVALID_VALUE;
	*is_in_list = buf->in_list || buf->next;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_list_len(const struct doca_buf *buf, uint32_t *num_elements)
{
	uint32_t n = 0;

	if (!buf || !num_elements)
		return DOCA_ERROR_INVALID_VALUE;
	if (buf->in_list)
		return DOCA_ERROR_NOT_PERMITTED;
	for (; buf; buf = buf->next)
		n++;
	*num_elements = n;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_chain_list_tail(struct doca_buf *list1_head, struct doca_buf *list1_tail,
				      struct doca_buf *list2)
{
	if (!list1_head || !list1_tail || !list2)
		return DOCA_ERROR_INVALID_VALUE;
	if (list1_head->in_list || list2->in_list || list1_head == list2)
		return DOCA_ERROR_NOT_PERMITTED;
	if (list1_head->references == 0 || list2->references != 1 || list1_head->last != list1_tail)
		return DOCA_ERROR_NOT_PERMITTED;
	list1_tail->next = list2;
	list1_head->last = list2->last;
	list2->in_list = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_chain_list(struct doca_buf *list1, struct doca_buf *list2)
{
	return doca_buf_chain_list_tail(list1, list1 ? list1->last : NULL, list2);
}

doca_error_t doca_buf_unchain_list(struct doca_buf *list1, struct doca_buf *list2)
{
	struct doca_buf *before = list1;

	if (!list1 || !list2 || list1->in_list)
		return DOCA_ERROR_INVALID_VALUE;
	while (before && before->next != list2)
		before = before->next;
	if (!before)
		return DOCA_ERROR_INVALID_VALUE;
	before->next = NULL;
	list2->last = list1->last;
	list2->in_list = false;
	list2->references = 1;
	list1->last = before;
	return DOCA_SUCCESS;
}
