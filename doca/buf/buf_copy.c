/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buf_copy.c - copies between lists of buffers of any local or imported maps
 *
 * Data is appended: to the space behind the data of the last buffer that has data, and then to the
 * empty buffers after it. The whole copy is checked before the first byte is moved.
 */
#include <stdint.h>
#include <string.h>

#include "buf/buf.h"

#define MAY_BE_READ \
	(DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE | \
	 DOCA_ACCESS_FLAG_RDMA_READ)
#define MAY_BE_WRITTEN (DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE)

/* One side of a copy: a position in a list of buffers, or plain memory. */
struct side {
	const struct doca_buf *buf;
	/* bytes from the beginning of the data that is read, or of the space that is filled */
	size_t offset;
	uint8_t *memory;
	bool is_filled;
};

size_t gd_buf_data_bytes(const struct doca_buf *list)
{
	size_t bytes = 0;

	for (; list; list = list->next)
		bytes += list->data_len;
	return bytes;
}

/* Returns the bytes of space behind the data of one buffer. */
static size_t room_of(const struct doca_buf *buf)
{
	const uintptr_t head = (uintptr_t)buf->head, data = (uintptr_t)buf->data;

	if (data < head || data - head > buf->len || buf->data_len > buf->len - (data - head))
		return 0;
	return buf->len - (data - head) - buf->data_len;
}

/* Returns the buffer where appending to a list begins. */
static const struct doca_buf *tail_of(const struct doca_buf *list)
{
	const struct doca_buf *tail = list;

	for (; list; list = list->next)
		if (list->data_len)
			tail = list;
	return tail;
}

static size_t room_from(const struct doca_buf *tail)
{
	size_t bytes = 0;

	for (; tail; tail = tail->next)
		bytes += room_of(tail);
	return bytes;
}

size_t gd_buf_room(const struct doca_buf *list)
{
	return room_from(tail_of(list));
}

bool gd_mmap_allows(const struct doca_mmap *mmap, bool is_filled)
{
	if (!is_filled)
		return !mmap->imported || (gd_mmap_access(mmap) & MAY_BE_READ);
	return gd_mmap_access(mmap) &
	       (mmap->imported ? MAY_BE_WRITTEN
			       : MAY_BE_WRITTEN | DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
}

/*
 * Get the next contiguous piece of a side, at most *length_p bytes: its address in this process and
 * its length.
 */
static doca_error_t next_piece(struct side *side, uint8_t **address_p, size_t *length_p)
{
	const struct doca_buf *buf;
	size_t start, left;
	doca_error_t result;

	if (side->memory) {
		*address_p = side->memory + side->offset;
		return DOCA_SUCCESS;
	}
	for (;; side->buf = buf->next, side->offset = 0) {
		buf = side->buf;
		if (!buf)
			return DOCA_ERROR_INVALID_VALUE;
		left = (side->is_filled ? room_of(buf) : buf->data_len) - side->offset;
		if (left)
			break;
	}
	if (left < *length_p)
		*length_p = left;
	if (!gd_mmap_allows(buf->mmap, side->is_filled))
		return DOCA_ERROR_NOT_PERMITTED;
	result = gd_mmap_check(buf->mmap); /* the owner may have ended */
	if (result != DOCA_SUCCESS)
		return result;
	start = (side->is_filled ? buf->data_len : 0) + side->offset;
	*address_p = gd_buf_host(buf, (char *)buf->data + start, *length_p);
	return *address_p ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

/* Walk over both sides piece by piece. really_copy false: check only. */
static doca_error_t walk(struct side to, struct side from, size_t length, bool really_copy)
{
	while (length) {
		uint8_t *dst, *src;
		size_t n = length;
		doca_error_t result = next_piece(&to, &dst, &n);

		if (result == DOCA_SUCCESS)
			result = next_piece(&from, &src, &n);
		if (result != DOCA_SUCCESS)
			return result;
		if (really_copy)
			memmove(dst, src, n);
		to.offset += n;
		from.offset += n;
		length -= n;
	}
	return DOCA_SUCCESS;
}

/* Fast path: copy if each side is one piece. No separate check is needed then. */
static bool copy_piece(struct side to, struct side from, size_t length)
{
	uint8_t *dst, *src;
	size_t n = length;

	if (next_piece(&to, &dst, &n) != DOCA_SUCCESS ||
	    next_piece(&from, &src, &n) != DOCA_SUCCESS || n != length)
		return false;
	memmove(dst, src, n);
	return true;
}

doca_error_t gd_buf_moved(const struct doca_buf *list)
{
	doca_error_t result = DOCA_SUCCESS;

	for (; list && result == DOCA_SUCCESS; list = list->next)
		result = gd_mmap_copied(list->mmap);
	return result;
}

static doca_error_t copy(const struct side *to, const struct side *from, size_t length)
{
	doca_error_t result = DOCA_SUCCESS;

	if (!copy_piece(*to, *from, length)) {
		result = walk(*to, *from, length, false);
		if (result == DOCA_SUCCESS)
			result = walk(*to, *from, length, true);
	}
	if (result == DOCA_SUCCESS)
		result = gd_buf_moved(to->buf);
	return result == DOCA_SUCCESS ? gd_buf_moved(from->buf) : result;
}

static void grow(struct doca_buf *tail, size_t length)
{
	for (; length; tail = tail->next) {
		const size_t room = room_of(tail), n = room < length ? room : length;

		tail->data_len += n;
		length -= n;
	}
}

/* Append to the data of dst. */
static doca_error_t append(struct doca_buf *dst, const struct side *from, size_t length)
{
	const struct side to = {.buf = tail_of(dst), .is_filled = true};
	doca_error_t result;

	if (length > room_from(to.buf))
		return DOCA_ERROR_INVALID_VALUE;
	result = copy(&to, from, length);
	if (result == DOCA_SUCCESS)
		grow((struct doca_buf *)to.buf, length);
	return result;
}

doca_error_t gd_buf_copy(struct doca_buf *dst, const struct doca_buf *src)
{
	const struct side from = {.buf = src};

	return dst && src ? append(dst, &from, gd_buf_data_bytes(src)) : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t gd_buf_append(struct doca_buf *dst, const void *data, size_t length)
{
	const struct side from = {.memory = (uint8_t *)data};

	return dst && data ? append(dst, &from, length) : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t gd_buf_read(const struct doca_buf *src, size_t offset, void *data, size_t length)
{
	struct side to = {.memory = data}, from = {.buf = src};

	if (!data)
		return DOCA_ERROR_INVALID_VALUE;
	for (; from.buf && offset >= from.buf->data_len; from.buf = from.buf->next)
		offset -= from.buf->data_len;
	from.offset = offset;
	return copy(&to, &from, length);
}

doca_error_t gd_buf_piece(const struct doca_buf *list, bool is_filled, size_t offset,
			  const struct doca_buf **buf_p, void **here_p, size_t *length_p)
{
	struct side side = {.buf = is_filled ? tail_of(list) : list, .is_filled = is_filled};
	uint8_t *here;
	doca_error_t result;

	while (side.buf && offset >= (is_filled ? room_of(side.buf) : side.buf->data_len)) {
		offset -= is_filled ? room_of(side.buf) : side.buf->data_len;
		side.buf = side.buf->next;
	}
	side.offset = offset;
	result = next_piece(&side, &here, length_p);
	if (result != DOCA_SUCCESS)
		return result;
	*buf_p = side.buf;
	*here_p = here;
	return DOCA_SUCCESS;
}

void gd_buf_grow(struct doca_buf *list, size_t length)
{
	grow((struct doca_buf *)tail_of(list), length);
}
