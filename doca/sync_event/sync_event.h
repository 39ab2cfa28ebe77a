/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync_event.h - sync events, as the modules of the library use them
 *
 * The value of an event is a 64-bit cell. If another process can reach the event, the cell has a
 * separate page. A private memory map exports that page when the event starts: the page becomes
 * shared then, before its first use, so no update is lost. An imported event points into the page
 * of its owner. All accesses to the cell are atomic. They need neither a lock nor an engine. Any
 * thread.
 */
#ifndef GD_SYNC_EVENT_H
#define GD_SYNC_EVENT_H

#include "engine/ctx.h"
#include "mmap/mmap.h"

#include <doca_sync_event.h>

#include <stdbool.h>
#include <stdint.h>

#define GD_SE_BLOB_MAX (32 + GD_BLOB_MAX) /* programs receive it into a buffer of 1023 bytes */
#define GD_SE_MAX_DEVS 8

/* Locations of publishers and subscribers. */
enum gd_se_location {
	GD_SE_CPU = 1,
	GD_SE_REMOTE_PCI = 2,
	GD_SE_REMOTE_NET = 4,
};

enum gd_se_kind { GD_SE_GET, GD_SE_SET, GD_SE_ADD, GD_SE_WAIT_EQ, GD_SE_WAIT_NEQ, GD_SE_N_KINDS };

/* A task of any type. The public task types are this structure under their own names. */
struct gd_se_task {
	struct doca_task task;
	uint64_t value; /* value to set, to add, or to wait for */
	uint64_t mask;
	/* destination of the value, or of the value before the addition; NULL: none (add only) */
	uint64_t *out;
};

struct doca_sync_event {
	struct doca_ctx ctx;
	struct gd_pool pools[GD_SE_N_KINDS];
	struct doca_task *waiting, **waiting_end; /* in the order of submission */
	uint64_t *cell;                           /* NULL: not started */
	uint64_t *own_cell;                       /* memory of the program for the value, or NULL */
	void *page;
	struct doca_mmap *map;
	struct doca_dev *devs[GD_SE_MAX_DEVS];
	uint32_t n_devs;
	uint32_t publishers, subscribers; /* bits of gd_se_location */
	bool imported;
	/* the program uses the event as a context: doca_ctx_start() and doca_ctx_stop() apply */
	bool as_ctx;
	bool started; /* for direct use */
	uint8_t pci_blob[GD_SE_BLOB_MAX], net_blob[GD_SE_BLOB_MAX];
};

/* Create the cell. On an error nothing has changed. */
doca_error_t gd_se_open(struct doca_sync_event *event);
/* Destroy the cell. Descriptors of the event are invalid after that. */
void gd_se_close(struct doca_sync_event *event);
/*
 * Returns whether the event is imported and its owner has stopped it or ended. Only this process
 * can change the value then.
 */
bool gd_se_is_gone(const struct doca_sync_event *event);
/* Initialize the five task pools. */
void gd_se_tasks_init(struct doca_sync_event *event);
/* Operations of the context. */
extern const struct gd_ctx_ops gd_se_ctx_ops;

/*
 * Get the imported map of the page of the owner, and the address of the cell in the owner. The map
 * lives as long as the event. INVALID_VALUE: NULL.
 */
doca_error_t gd_sync_event_remote_mmap(struct doca_sync_event_remote_net *event,
				       struct doca_mmap **map, uint64_t *addr);

#endif
