/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_sync_event.c - sync events: configuration, the cell, export, import, and direct use without
 * tasks
 */
#include "buf/buf.h"
#include "common/gd_log.h"
#include "device/gd_device.h"
#include "sync_event/sync_event.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPINS 1024 /* polls of the cell between two yields */

/*
 * Head of an export descriptor. The descriptor of the memory map follows. Integers are in host byte
 * order, because both processes run on machines of the same type.
 */
struct blob_head {
	uint32_t magic;
	uint32_t kind; /* gd_se_location */
	uint64_t cell; /* address in the owner */
	uint32_t desc_len;
	uint32_t zero;
};

#define BLOB_MAGIC 0x31455347u /* "GSE1" */

struct doca_sync_event_remote_net {
	struct doca_mmap *map;
	uint64_t cell;
};

doca_error_t doca_sync_event_create(struct doca_sync_event **event_p)
{
	struct doca_sync_event *event;

	if (!event_p)
		return DOCA_ERROR_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&event->ctx, &gd_se_ctx_ops, NULL);
	gd_se_tasks_init(event);
	*event_p = event;
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_destroy(struct doca_sync_event *event)
{
	doca_error_t result;

	if (!event)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_ctx_fini(&event->ctx, DOCA_ERROR_BAD_STATE);
	if (result != DOCA_SUCCESS)
		return result;
	event->imported = false;
	gd_se_close(event);
	for (uint32_t i = 1; i < event->n_devs; i++)
		gd_dev_release(event->devs[i]);
	free(event);
	return DOCA_SUCCESS;
}

/* -- configuration -- */

static doca_error_t configurable(const struct doca_sync_event *event)
{
	if (!event || event->imported || event->cell)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_ctx_configurable(&event->ctx, DOCA_ERROR_INVALID_VALUE);
}

/*
 * Set the device of the context, which gd_ctx_fini() releases. The event holds further devices
 * itself.
 */
static void set_dev(struct doca_sync_event *event, struct doca_dev *dev)
{
	event->ctx.dev = dev;
	gd_dev_hold(dev);
}

static doca_error_t add_dev(struct doca_sync_event *event, struct doca_dev *dev)
{
	for (uint32_t i = 0; i < event->n_devs; i++)
		if (event->devs[i] == dev)
			return DOCA_SUCCESS;
	if (event->n_devs == GD_SE_MAX_DEVS)
		return DOCA_ERROR_INVALID_VALUE;
	event->devs[event->n_devs++] = dev;
	if (!event->ctx.dev)
		set_dev(event, dev);
	else
		gd_dev_hold(dev);
	return DOCA_SUCCESS;
}

static doca_error_t add_cpu(struct doca_sync_event *event, struct doca_dev *dev,
			    uint32_t *locations)
{
	doca_error_t result = configurable(event);

	if (result == DOCA_SUCCESS)
		result = gd_dev_is_open(dev) ? add_dev(event, dev) : DOCA_ERROR_INVALID_VALUE;
	if (result == DOCA_SUCCESS)
		*locations |= GD_SE_CPU;
	return result;
}

static doca_error_t add(struct doca_sync_event *event, uint32_t location, uint32_t *locations)
{
	doca_error_t result = configurable(event);

	if (result == DOCA_SUCCESS)
		*locations |= location;
	return result;
}

doca_error_t doca_sync_event_add_publisher_location_cpu(struct doca_sync_event *event,
							struct doca_dev *dev)
{
	return add_cpu(event, dev, !event ? NULL : &event->publishers);
}

doca_error_t doca_sync_event_add_publisher_location_remote_pci(struct doca_sync_event *event)
{
	return add(event, GD_SE_REMOTE_PCI, !event ? NULL : &event->publishers);
}

doca_error_t doca_sync_event_add_publisher_location_remote_net(struct doca_sync_event *event)
{
	return add(event, GD_SE_REMOTE_NET, !event ? NULL : &event->publishers);
}

doca_error_t doca_sync_event_add_subscriber_location_cpu(struct doca_sync_event *event,
							 struct doca_dev *dev)
{
	return add_cpu(event, dev, !event ? NULL : &event->subscribers);
}

doca_error_t doca_sync_event_add_subscriber_location_remote_pci(struct doca_sync_event *event)
{
	return add(event, GD_SE_REMOTE_PCI, !event ? NULL : &event->subscribers);
}

static doca_error_t use_cell(struct doca_sync_event *event, void *cell)
{
	if (!cell || ((uintptr_t)cell & 7) != 0)
		return DOCA_ERROR_INVALID_VALUE;
	event->own_cell = cell;
	return DOCA_SUCCESS;
}

/*
 * The value is in memory of the program. The event cannot be exported, because the page also has
 * other data.
 */
doca_error_t doca_sync_event_set_addr(struct doca_sync_event *event, uint64_t *addr)
{
	if (!event)
		return DOCA_ERROR_INVALID_VALUE;
	return configurable(event) != DOCA_SUCCESS ? DOCA_ERROR_BAD_STATE : use_cell(event, addr);
}

doca_error_t doca_sync_event_set_doca_buf(struct doca_sync_event *event, struct doca_buf *buf)
{
	if (!event || !buf)
		return DOCA_ERROR_INVALID_VALUE;
	if (configurable(event) != DOCA_SUCCESS)
		return DOCA_ERROR_BAD_STATE;
	if (!gd_mmap_allows(buf->mmap, true))
		return DOCA_ERROR_NOT_PERMITTED;
	return use_cell(event, buf->len < 8 ? NULL : gd_buf_host(buf, buf->head, 8));
}

/* -- the cell -- */

/* Create a memory map of the page that all devices of the event can export. */
static doca_error_t share_page(struct doca_sync_event *event, size_t length)
{
	const uint32_t access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
				DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ |
				DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC;
	doca_error_t result = doca_mmap_create(&event->map);

	for (uint32_t i = 0; i < event->n_devs && result == DOCA_SUCCESS; i++)
		result = doca_mmap_add_dev(event->map, event->devs[i]);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_set_permissions(event->map, access);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_set_memrange(event->map, event->page, length);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_start(event->map);
	if (result == DOCA_SUCCESS)
		result = gd_mmap_prepare_export(event->map);
	return result;
}

static doca_error_t open_page(struct doca_sync_event *event)
{
	size_t length = (size_t)sysconf(_SC_PAGESIZE);
	doca_error_t result = DOCA_SUCCESS;

	event->page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	if (event->page == MAP_FAILED) {
		event->page = NULL;
		return DOCA_ERROR_NO_MEMORY;
	}
	if (((event->publishers | event->subscribers) & ~(uint32_t)GD_SE_CPU) != 0)
		result = share_page(event, length);
	if (result == DOCA_SUCCESS)
		event->cell = event->page;
	else
		gd_se_close(event);
	return result;
}

doca_error_t gd_se_open(struct doca_sync_event *event)
{
	if (event->cell)
		return event->imported ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
	if (event->publishers == 0 || event->subscribers == 0 || event->n_devs == 0) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "sync event cannot start: location missing: add a publisher and a subscriber location, one of them the CPU");
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (!event->own_cell)
		return open_page(event);
	event->cell = event->own_cell;
	return DOCA_SUCCESS;
}

void gd_se_close(struct doca_sync_event *event)
{
	if (event->imported)
		return;
	event->cell = NULL;
	if (event->map)
		doca_mmap_destroy(event->map);
	event->map = NULL;
	if (event->page)
		munmap(event->page, (size_t)sysconf(_SC_PAGESIZE));
	event->page = NULL;
}

doca_error_t doca_sync_event_start(struct doca_sync_event *event)
{
	doca_error_t result;

	if (!event || event->as_ctx || event->started)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_se_open(event);
	event->started = result == DOCA_SUCCESS;
	return result;
}

doca_error_t doca_sync_event_stop(struct doca_sync_event *event)
{
	if (!event || !event->started)
		return DOCA_ERROR_INVALID_VALUE;
	gd_se_close(event);
	event->started = false;
	return DOCA_SUCCESS;
}

struct doca_ctx *doca_sync_event_as_ctx(struct doca_sync_event *event)
{
	if (!event || event->started)
		return NULL;
	event->as_ctx = true;
	return &event->ctx;
}

/* -- export and import -- */

static doca_error_t export_cell(const struct doca_sync_event *event, const struct doca_dev *dev,
				enum gd_se_location to, uint8_t blob[GD_SE_BLOB_MAX], size_t *sz)
{
	struct blob_head head = {BLOB_MAGIC, to, (uintptr_t)event->cell, 0, 0};
	const void *desc;
	size_t length;
	doca_error_t result;

	if (to == GD_SE_REMOTE_PCI)
		result = doca_mmap_export_pci(event->map, dev, &desc, &length);
	else
		result = doca_mmap_export_rdma(event->map, dev, &desc, &length);
	if (result != DOCA_SUCCESS)
		return result;
	if (length > GD_SE_BLOB_MAX - sizeof(head))
		return DOCA_ERROR_NO_MEMORY;
	head.desc_len = (uint32_t)length;
	memcpy(blob, &head, sizeof(head));
	memcpy(blob + sizeof(head), desc, length);
	*sz = sizeof(head) + length;
	return DOCA_SUCCESS;
}

/*
 * An event can be exported if it is started, has the location, and its cell is in memory of the
 * library.
 */
static doca_error_t exportable(const struct doca_sync_event *event, enum gd_se_location to)
{
	if (!event || !event->cell)
		return DOCA_ERROR_INVALID_VALUE;
	if (event->imported || event->own_cell) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "sync event cannot be exported: it is imported, or its value is in memory of the program");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (((event->publishers | event->subscribers) & to) == 0) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "sync event cannot be exported: location missing: add a remote %s location before start",
		       to == GD_SE_REMOTE_PCI ? "PCI" : "net");
		return DOCA_ERROR_INVALID_VALUE;
	}
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_export_to_remote_pci(struct doca_sync_event *event,
						  struct doca_dev *dev, const uint8_t **data,
						  size_t *sz)
{
	doca_error_t result = exportable(event, GD_SE_REMOTE_PCI);

	if (!dev || !data || !sz)
		return DOCA_ERROR_INVALID_VALUE;
	if (result == DOCA_SUCCESS)
		result = export_cell(event, dev, GD_SE_REMOTE_PCI, event->pci_blob, sz);
	if (result == DOCA_SUCCESS)
		*data = event->pci_blob;
	return result;
}

doca_error_t doca_sync_event_export_to_remote_net(struct doca_sync_event *event,
						  const uint8_t **data, size_t *sz)
{
	doca_error_t result = exportable(event, GD_SE_REMOTE_NET);

	if (!data || !sz)
		return DOCA_ERROR_INVALID_VALUE;
	if (result == DOCA_SUCCESS)
		result = export_cell(event, event->devs[0], GD_SE_REMOTE_NET, event->net_blob, sz);
	if (result == DOCA_SUCCESS)
		*data = event->net_blob;
	return result;
}

/*
 * Import the map of a descriptor. *cell: address of the cell in the owner; its 8 bytes are inside
 * the map.
 */
static doca_error_t import_map(struct doca_dev *dev, const uint8_t *data, size_t sz,
			       enum gd_se_location kind, struct doca_mmap **map_p, uint64_t *cell)
{
	struct blob_head head;
	struct doca_mmap *map;
	uint64_t base;
	doca_error_t result;

	if (!dev || !data || sz <= sizeof(head) || sz > GD_SE_BLOB_MAX)
		return DOCA_ERROR_INVALID_VALUE;
	memcpy(&head, data, sizeof(head));
	if (head.magic != BLOB_MAGIC || head.kind != (uint32_t)kind ||
	    head.desc_len != sz - sizeof(head) || head.zero != 0) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "sync event cannot be imported: invalid descriptor (bytes=%zu, location=remote %s)",
		       sz, kind == GD_SE_REMOTE_PCI ? "PCI" : "net");
		return DOCA_ERROR_INVALID_VALUE;
	}
	result = doca_mmap_create_from_export(NULL, data + sizeof(head), head.desc_len, dev, &map);
	if (result != DOCA_SUCCESS)
		return result;
	base = (uintptr_t)map->addr;
	if ((head.cell & 7) != 0 || head.cell < base || map->length < 8 ||
	    head.cell - base > map->length - 8) {
		doca_mmap_destroy(map);
		return DOCA_ERROR_INVALID_VALUE;
	}
	*map_p = map;
	*cell = head.cell;
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_create_from_export(struct doca_dev *dev, const uint8_t *data,
						size_t sz, struct doca_sync_event **event_p)
{
	struct doca_sync_event *event;
	uint64_t cell;
	doca_error_t result;

	if (!event_p)
		return DOCA_ERROR_INVALID_VALUE;
	result = doca_sync_event_create(&event);
	if (result != DOCA_SUCCESS)
		return result;
	result = import_map(dev, data, sz, GD_SE_REMOTE_PCI, &event->map, &cell);
	if (result == DOCA_SUCCESS && !event->map->local)
		result = DOCA_ERROR_NOT_SUPPORTED;
	else if (result == DOCA_SUCCESS && !gd_mmap_allows(event->map, true))
		result = DOCA_ERROR_INVALID_VALUE;
	if (result != DOCA_SUCCESS) {
		doca_sync_event_destroy(event);
		return result;
	}
	set_dev(event, dev);
	event->imported = true;
	event->cell = (void *)((uint8_t *)event->map->local + (cell - (uintptr_t)event->map->addr));
	*event_p = event;
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_remote_net_create_from_export(
	struct doca_dev *dev, const uint8_t *data, size_t sz,
	struct doca_sync_event_remote_net **event_p)
{
	struct doca_sync_event_remote_net *event;
	doca_error_t result;

	if (!event_p)
		return DOCA_ERROR_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return DOCA_ERROR_NO_MEMORY;
	result = import_map(dev, data, sz, GD_SE_REMOTE_NET, &event->map, &event->cell);
	if (result != DOCA_SUCCESS) {
		free(event);
		return result;
	}
	*event_p = event;
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_remote_net_destroy(struct doca_sync_event_remote_net *event)
{
	doca_error_t result;

	if (!event)
		return DOCA_ERROR_INVALID_VALUE;
	result = doca_mmap_destroy(event->map);
	if (result == DOCA_SUCCESS)
		free(event);
	return result;
}

doca_error_t gd_sync_event_remote_mmap(struct doca_sync_event_remote_net *event,
				       struct doca_mmap **map, uint64_t *addr)
{
	if (!event || !map || !addr)
		return DOCA_ERROR_INVALID_VALUE;
	*map = event->map;
	*addr = event->cell;
	return DOCA_SUCCESS;
}

/* -- use without tasks -- */

doca_error_t doca_sync_event_get(struct doca_sync_event *event, uint64_t *value)
{
	if (!event || !event->cell || !value)
		return DOCA_ERROR_INVALID_VALUE;
	*value = __atomic_load_n(event->cell, __ATOMIC_SEQ_CST);
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_update_add(struct doca_sync_event *event, uint64_t value,
					uint64_t *fetched)
{
	if (!event || !event->cell || !fetched)
		return DOCA_ERROR_INVALID_VALUE;
	*fetched = __atomic_fetch_add(event->cell, value, __ATOMIC_SEQ_CST);
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_update_set(struct doca_sync_event *event, uint64_t value)
{
	if (!event || !event->cell)
		return DOCA_ERROR_INVALID_VALUE;
	__atomic_store_n(event->cell, value, __ATOMIC_SEQ_CST);
	return DOCA_SUCCESS;
}

static bool is_gt(uint64_t value, uint64_t than)
{
	return value > than;
}

static bool is_eq(uint64_t value, uint64_t than)
{
	return value == than;
}

static bool is_neq(uint64_t value, uint64_t than)
{
	return value != than;
}

bool gd_se_is_gone(const struct doca_sync_event *event)
{
	return event->imported && gd_mmap_check(event->map) != DOCA_SUCCESS;
}

static bool passes(const struct doca_sync_event *event, bool (*test)(uint64_t, uint64_t),
		   uint64_t value, uint64_t mask)
{
	return test(__atomic_load_n(event->cell, __ATOMIC_SEQ_CST) & mask, value);
}

/*
 * Wait until the masked value passes the test. IO_FAILED: the owner has stopped the event or ended.
 * spins: polls between two yields, at least 1.
 */
static doca_error_t wait_until(const struct doca_sync_event *event,
			       bool (*test)(uint64_t, uint64_t), uint64_t value, uint64_t mask,
			       unsigned spins)
{
	unsigned n = 0;

	if (!event || !event->cell)
		return DOCA_ERROR_INVALID_VALUE;
	while (!passes(event, test, value, mask)) {
		if (++n % spins != 0)
			continue;
		if (gd_se_is_gone(event))
			return passes(event, test, value, mask) ? DOCA_SUCCESS
								: DOCA_ERROR_IO_FAILED;
		sched_yield();
	}
	return DOCA_SUCCESS;
}

doca_error_t doca_sync_event_wait_gt(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, is_gt, value, mask, SPINS);
}

doca_error_t doca_sync_event_wait_gt_yield(struct doca_sync_event *event, uint64_t value,
					   uint64_t mask)
{
	return wait_until(event, is_gt, value, mask, 1);
}

doca_error_t doca_sync_event_wait_eq(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, is_eq, value, mask, SPINS);
}

doca_error_t doca_sync_event_wait_eq_yield(struct doca_sync_event *event, uint64_t value,
					   uint64_t mask)
{
	return wait_until(event, is_eq, value, mask, 1);
}

doca_error_t doca_sync_event_wait_neq(struct doca_sync_event *event, uint64_t value, uint64_t mask)
{
	return wait_until(event, is_neq, value, mask, SPINS);
}

doca_error_t doca_sync_event_wait_neq_yield(struct doca_sync_event *event, uint64_t value,
					    uint64_t mask)
{
	return wait_until(event, is_neq, value, mask, 1);
}
