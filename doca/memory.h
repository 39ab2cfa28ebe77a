/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - memory maps and buffers as the libraries see them.
 *
 * A map is local (the program's own memory) or imported (memory of another process that exported it). Buffer addresses of
 * an imported map are those of the exporter: gd_buf_host() turns one into an address of this process.
 *
 * Export makes the pages shareable in place: they are copied once into a memfd, which is then mapped over the same addresses,
 * see pages.h. The descriptor (blob.h) names the owner: a Unix socket served by the owner's service thread, a 128-bit secret, the
 * range and the rights. Import asks that socket for the memfd, maps it, and holds the connection: when it breaks the owner is
 * gone. So the exporter's program need not do anything, and a bad descriptor is an error. An RDMA export that is imported for
 * a device with a transport of the network is not mapped: it is reached through a connection, by its id.
 */
#ifndef GD_MEMORY_H
#define GD_MEMORY_H

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_mmap.h>

#include <gantry/transport.h>

#include <stdbool.h>
#include <stdint.h>

#define GD_BLOB_MAX 512 /* bytes of an export descriptor: programs read it into that much */

struct gd_mmap_id { uint8_t bytes[16]; }; /* names a map in all processes: random, also the secret */

struct doca_mmap {
	struct gd_mmap_id id;   /* of the original owner's map */
	void *addr;             /* as buffers use it: the exporter's, when imported */
	size_t length;
	void *local;            /* where that is in this process: addr itself when it is our own; NULL: not mapped here */
	uint32_t access;        /* __atomic; doca_access_flag: set by the owner, or what the export allows, and passing it on */
	bool is_alive, started, imported, has_range, thread_safe, was_started;
	uint32_t n_bufs;        /* __atomic */
	uint32_t n_devs, max_devs;
	struct doca_dev **devs;
	union doca_data user_data;
	doca_mmap_memrange_free_cb_t *free_cb;
	void *free_opaque;
	uint32_t dpa_handle;    /* unlike those of all other maps of the process */
	struct gd_share *share; /* once exported or imported; see share.h */
	struct doca_mmap *next; /* started maps; or those that were destroyed, whose memory is kept */
};

static inline uint32_t gd_mmap_access(const struct doca_mmap *mmap)
{
	return __atomic_load_n(&mmap->access, __ATOMIC_RELAXED);
}

/* SUCCESS; BAD_STATE: not started; IO_FAILED: imported, and its owner has stopped it or is gone. Any thread, no system call. */
doca_error_t gd_mmap_check(const struct doca_mmap *mmap);

/*
 * Memory of a map as a region that a transport can register and export (fd set when it is shared): refreshed at each call,
 * valid until the map is stopped. Makes local memory shareable when share != 0. Rights are what the map lets others do: 0 when
 * only local use was asked for. Errors of gd_mmap_check; NOT_SUPPORTED: not mapped here, or not private memory; NOT_PERMITTED,
 * NO_MEMORY, ... Any thread.
 */
doca_error_t gd_mmap_region(struct doca_mmap *mmap, int share, struct gantry_region *region);

/*
 * The started map of this process with that id whose owner allowed it to be exported over RDMA; NULL. Any thread. The memory
 * of struct doca_mmap is never given back: one that is destroyed meanwhile is only not started.
 */
struct doca_mmap *gd_mmap_find(const struct gd_mmap_id *id);
/* rdma_revoke.c: no device of a peer reaches that map any more, which is not to be found by now. Waits, 2 s at most. */
void gd_rdma_take_back(const struct gd_mmap_id *map);
/* The started map that doca_mmap_dev_get_dpa_handle gave that handle; NULL. */
struct doca_mmap *gd_mmap_by_handle(uint32_t handle);

struct doca_buf {
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap;
	void *head;
	size_t len;
	void *data;
	size_t data_len;
	uint16_t references;    /* 0: free */
	bool in_list;           /* not the first of a list */
	bool is_counted;        /* in n_bufs of its map; if not, the map may go before it */
	struct doca_buf *next;  /* in the list */
	struct doca_buf *last;  /* of the list, kept in its first */
	struct doca_buf *free_next; /* among the free ones */
};

/* Address of this process for `addr` of the buffer's map; NULL: the map is not mapped here, or length bytes there are not in it. */
static inline void *gd_buf_host(const struct doca_buf *buf, const void *addr, size_t length)
{
	const struct doca_mmap *mmap = buf->mmap;
	const uintptr_t offset = (uintptr_t)addr - (uintptr_t)mmap->addr; /* below the map: more than its length */

	if (!mmap->local || length > mmap->length || offset > mmap->length - length)
		return NULL;
	return (char *)mmap->local + offset;
}

/* May its memory be written (is_filled), or read, from here? */
bool gd_mmap_allows(const struct doca_mmap *mmap, bool is_filled);
/* Bytes of data in a list, and bytes that can be appended to the list's tail. */
size_t gd_buf_data_bytes(const struct doca_buf *list);
size_t gd_buf_room(const struct doca_buf *list);
/* Give a buffer a range of its map, and data in it. INVALID_VALUE: not in the map, or the data not in the range. */
doca_error_t gd_buf_point(struct doca_buf *buf, void *addr, size_t len, void *data, size_t data_len);
/* A buffer of an inventory that was never expanded, pointing nowhere yet, and its number in it. NULL: none is left. */
struct doca_buf *gd_inventory_take(struct doca_buf_inventory *inventory, struct doca_mmap *mmap, size_t *index_p);
/* The last reference of the first of a list is gone: all of it goes back to where it came from. */
void gd_buf_give_back(struct doca_buf *list);
/*
 * Copy data of the list src behind the data of the list dst; lengths of dst grow at success. INVALID_VALUE: no room, or out of
 * the map; NOT_PERMITTED: rights; IO_FAILED: the memory's owner is gone. May be called on any thread.
 */
doca_error_t gd_buf_copy(struct doca_buf *dst, const struct doca_buf *src);
/* The same with memory of this process at one side. */
doca_error_t gd_buf_append(struct doca_buf *dst, const void *data, size_t length);
doca_error_t gd_buf_read(const struct doca_buf *src, size_t offset, void *data, size_t length);
/*
 * For who moves the data himself: the stretch in one piece that begins `offset` bytes into the data of a list, or, is_filled,
 * into what can be appended to it: its buffer, its address here, and its length, which is cut down from *length_p. Errors as
 * above. When all of it was filled, gd_buf_grow makes it data.
 */
doca_error_t gd_buf_piece(const struct doca_buf *list, bool is_filled, size_t offset, const struct doca_buf **buf_p, void **here_p,
			  size_t *length_p);
void gd_buf_grow(struct doca_buf *list, size_t length);

#endif
