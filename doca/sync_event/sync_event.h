/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync_event.h - a 64-bit cell that processes count on and wait for, as the parts of the library
 * see it.
 *
 * The cell of an event that another process may reach lies in a page of its own, which a private
 * memory map exports when the event starts: from then on the page is shared, so that no update is
 * lost while it becomes so. An imported event points into the page of its owner. All use of the
 * cell is atomic and needs neither a lock nor an engine; any thread.
 */
#ifndef GD_SYNC_EVENT_H
#define GD_SYNC_EVENT_H

#include "engine/ctx.h"
#include "mmap/mmap.h"

#include <doca_sync_event.h>

#include <stdbool.h>
#include <stdint.h>

#define GD_SE_BLOB_MAX (32 + GD_BLOB_MAX) /* programs receive it into 1023 bytes */
#define GD_SE_MAX_DEVS 8

/* Who may update the event, and who waits for it. */
enum gd_se_location {
	GD_SE_CPU = 1,
	GD_SE_REMOTE_PCI = 2,
	GD_SE_REMOTE_NET = 4,
};

enum gd_se_kind { GD_SE_GET, GD_SE_SET, GD_SE_ADD, GD_SE_WAIT_EQ, GD_SE_WAIT_NEQ, GD_SE_N_KINDS };

/* Task of any kind; the public types are this one under their own names. */
struct gd_se_task {
	struct doca_task task;
	uint64_t value; /* to set, to add, to wait for */
	uint64_t mask;
	uint64_t *out; /* where the value, or the one before it, goes; NULL: nowhere (add only) */
};

struct doca_sync_event {
	struct doca_ctx ctx;
	struct gd_pool pools[GD_SE_N_KINDS];
	struct doca_task *waiting, **waiting_end; /* in the order of submission */
	uint64_t *cell;                           /* NULL: not started */
	uint64_t *own_cell;                       /* the program's memory, if it gave some */
	void *page;
	struct doca_mmap *map;
	struct doca_dev *devs[GD_SE_MAX_DEVS];
	uint32_t n_devs;
	uint32_t publishers, subscribers; /* gd_se_location, or-ed */
	bool imported;
	/* the program asked for the context: start and stop are the context's */
	bool as_ctx;
	bool started; /* stand-alone */
	uint8_t pci_blob[GD_SE_BLOB_MAX], net_blob[GD_SE_BLOB_MAX];
};

/* Make the cell usable; nothing has changed at an error. */
doca_error_t gd_se_open(struct doca_sync_event *event);
/* The counterpart. Blobs of the event mean nothing any more. */
void gd_se_close(struct doca_sync_event *event);
/*
 * Imported, and its owner has stopped it or has ended: the value does not change any more, unless
 * by us.
 */
bool gd_se_is_gone(const struct doca_sync_event *event);
/* Put the five pools of tasks in place. */
void gd_se_tasks_init(struct doca_sync_event *event);
/* Operations of the context. */
extern const struct gd_ctx_ops gd_se_ctx_ops;

/*
 * Where the cell of an event of the network is: the imported map of its owner's page, and its
 * address there (the owner's). Map and address live as long as the event. INVALID_VALUE: NULL.
 */
doca_error_t gd_sync_event_remote_mmap(struct doca_sync_event_remote_net *event,
				       struct doca_mmap **map, uint64_t *addr);

#endif
