/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - lists of descriptors with GANTRY_IO_LIST. Any thread; no state. */
#ifndef GN_IO_LIST_H
#define GN_IO_LIST_H

#include "io/io_check.h"

/* The private copy of the list of one descriptor. */
struct gn_list {
	uint32_t count; /* entries; 0: the list has not been read */
	uint32_t next;  /* entry that is moved next, over a device without mapped memory */
	uint32_t moved; /* bytes of the entries before `next` */
	struct gantry_list_entry entry[GANTRY_LIST_MAX];
	struct gantry_pieces pieces; /* the entries at their addresses, if all regions are mapped */
};

/* Returns the largest size of the list: bytes of whole entries, up to the end of its region. */
uint32_t gn_list_bytes(const struct gn_io_rules *rules, const struct gantry_io *io);

/*
 * gn_list_take - copy a list once, and check the copy
 *
 * io     a descriptor that passed gn_check_io() with GN_CHECK_LIST
 * from   the list, in memory that a peer can change
 * bytes  gn_list_bytes()
 * list   out: entries and pieces, if the result is GANTRY_S_OK
 * Returns GANTRY_S_OK or the status to answer with. The first failed test decides.
 */
enum gantry_status gn_list_take(const struct gn_io_rules *rules, const struct gantry_io *io,
				const void *from, uint32_t bytes, struct gn_list *list);

/* gn_list_gather - copy the data of all pieces to a buffer */
void gn_list_gather(const struct gn_list *list, void *to);
/* gn_list_scatter - copy the data of a buffer to all pieces */
void gn_list_scatter(const struct gn_list *list, const void *from);

/* gn_list_uses - returns true if an entry names the region */
bool gn_list_uses(const struct gn_list *list, uint32_t region);

#endif
