/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buf.h - buffers, as the libraries use them: ranges of maps with a data part, and lists of buffers
 */
#ifndef GD_BUF_H
#define GD_BUF_H

#include <doca_buf.h>
#include <doca_buf_inventory.h>

#include "mmap/mmap.h"

struct doca_buf {
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap;
	void *head;
	size_t len;
	void *data;
	size_t data_len;
	uint16_t references; /* 0: free */
	bool in_list;        /* in a list, but not its first buffer */
	/* counted in n_bufs of its map; otherwise the map can be destroyed before the buffer */
	bool is_counted;
	struct doca_buf *next;      /* next buffer of the list */
	struct doca_buf *last;      /* last buffer of the list; valid in its first buffer */
	struct doca_buf *free_next; /* in the free list */
};

/*
 * Convert an address of the map of a buffer to an address of this process. NULL: the map is not
 * mapped here, or `length` bytes from `addr` on exceed the map.
 */
static inline void *gd_buf_host(const struct doca_buf *buf, const void *addr, size_t length)
{
	const struct doca_mmap *mmap = buf->mmap;
	/* an address below the map gives an offset above its length */
	const uintptr_t offset = (uintptr_t)addr - (uintptr_t)mmap->addr;

	if (!mmap->local || length > mmap->length || offset > mmap->length - length)
		return NULL;
	return (char *)mmap->local + offset;
}

/* Returns the number of buffers of a list, and at most `max`. */
static inline uint32_t gd_buf_list_length(const struct doca_buf *list, uint32_t max)
{
	uint32_t n = 0;

	for (; list && n < max; list = list->next)
		n++;
	return n;
}

/* Returns whether a device can use all buffers of a list; NULL: yes. See gd_mmap_has_dev(). */
static inline bool gd_buf_is_on(const struct doca_buf *list, const struct doca_dev *dev)
{
	for (; list; list = list->next)
		if (doca_unlikely(!gd_mmap_has_dev(list->mmap, dev)))
			return false;
	return true;
}

/* Return the bytes of data of a list, and the bytes that can be appended to it. */
size_t gd_buf_data_bytes(const struct doca_buf *list);
size_t gd_buf_room(const struct doca_buf *list);
/*
 * Set the range of a buffer in its map, and the data part. INVALID_VALUE: the range is outside the
 * map, or the data outside the range.
 */
doca_error_t gd_buf_point(struct doca_buf *buf, void *addr, size_t len, void *data,
			  size_t data_len);
/*
 * Allocate a buffer of an inventory that was never expanded. Its range is not set. *index_p gets
 * its index. NULL: all buffers are allocated.
 */
struct doca_buf *gd_inventory_take(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
				   size_t *index_p);
/* Return all buffers of a list to their inventories, after the last reference. */
void gd_buf_give_back(struct doca_buf *list);
/*
 * Append the data of list src to list dst. On success the data lengths of dst grow. Any thread.
 * Errors:
 *     INVALID_VALUE  dst is too short, or a buffer is outside its map
 *     NOT_PERMITTED  the rights of a map do not permit the copy
 *     IO_FAILED      the owner of an imported map has stopped it or ended
 */
doca_error_t gd_buf_copy(struct doca_buf *dst, const struct doca_buf *src);
/* Like gd_buf_copy(), with memory of this process as source or destination. */
doca_error_t gd_buf_append(struct doca_buf *dst, const void *data, size_t length);
doca_error_t gd_buf_read(const struct doca_buf *src, size_t offset, void *data, size_t length);
/*
 * For a caller that moves data itself: find the contiguous piece at `offset`. is_filled false:
 * offset into the data of the list; true: into the space behind the data. Stores the buffer, the
 * address in this process, and the length, at most *length_p. Errors: those of gd_buf_copy(). After
 * the caller has filled all of the space, gd_buf_grow() makes it data.
 */
doca_error_t gd_buf_piece(const struct doca_buf *list, bool is_filled, size_t offset,
			  const struct doca_buf **buf_p, void **here_p, size_t *length_p);
void gd_buf_grow(struct doca_buf *list, size_t length);
/*
 * Call after a copy. IO_FAILED: the owner stopped the map of a buffer during the copy, so bytes can
 * be lost, or can differ from those of the owner. Else SUCCESS.
 */
doca_error_t gd_buf_moved(const struct doca_buf *list);

#endif
