/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buf.h - buffers as the libraries see them: stretches of maps with data in them, and lists of
 * those.
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
	uint16_t references;        /* 0: free */
	bool in_list;               /* not the first of a list */
	bool is_counted;            /* in n_bufs of its map; if not, the map may go before it */
	struct doca_buf *next;      /* in the list */
	struct doca_buf *last;      /* of the list, kept in its first */
	struct doca_buf *free_next; /* among the free ones */
};

/*
 * Address of this process for `addr` of the buffer's map; NULL: the map is not mapped here, or
 * length bytes there are not in it.
 */
static inline void *gd_buf_host(const struct doca_buf *buf, const void *addr, size_t length)
{
	const struct doca_mmap *mmap = buf->mmap;
	/* below the map: more than its length */
	const uintptr_t offset = (uintptr_t)addr - (uintptr_t)mmap->addr;

	if (!mmap->local || length > mmap->length || offset > mmap->length - length)
		return NULL;
	return (char *)mmap->local + offset;
}

/* Bytes of data in a list, and bytes that can be appended to the list's tail. */
size_t gd_buf_data_bytes(const struct doca_buf *list);
size_t gd_buf_room(const struct doca_buf *list);
/*
 * Give a buffer a range of its map, and data in it. INVALID_VALUE: not in the map, or the data not
 * in the range.
 */
doca_error_t gd_buf_point(struct doca_buf *buf, void *addr, size_t len, void *data,
			  size_t data_len);
/*
 * A buffer of an inventory that was never expanded, pointing nowhere yet, and its number in it.
 * NULL: none is left.
 */
struct doca_buf *gd_inventory_take(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
				   size_t *index_p);
/* The last reference of the first of a list is gone: all of it goes back to where it came from. */
void gd_buf_give_back(struct doca_buf *list);
/*
 * Copy data of the list src behind the data of the list dst; lengths of dst grow at success.
 * INVALID_VALUE: no room, or out of the map; NOT_PERMITTED: rights; IO_FAILED: the memory's owner
 * is gone. May be called on any thread.
 */
doca_error_t gd_buf_copy(struct doca_buf *dst, const struct doca_buf *src);
/* The same with memory of this process at one side. */
doca_error_t gd_buf_append(struct doca_buf *dst, const void *data, size_t length);
doca_error_t gd_buf_read(const struct doca_buf *src, size_t offset, void *data, size_t length);
/*
 * For who moves the data himself: the stretch in one piece that begins `offset` bytes into the data
 * of a list, or, is_filled, into what can be appended to it: its buffer, its address here, and its
 * length, which is cut down from *length_p. Errors as above. When all of it was filled, gd_buf_grow
 * makes it data.
 */
doca_error_t gd_buf_piece(const struct doca_buf *list, bool is_filled, size_t offset,
			  const struct doca_buf **buf_p, void **here_p, size_t *length_p);
void gd_buf_grow(struct doca_buf *list, size_t length);
/*
 * Call after a copy. IO_FAILED: the owner stopped the map of a buffer during the copy, so bytes may
 * be lost or may not be those of the owner. Else SUCCESS.
 */
doca_error_t gd_buf_moved(const struct doca_buf *list);

#endif
