/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_memory.c - rules for memory maps, inventories, pools and buffers */
#include "check/dc.h"

#include <doca_buf.h>
#include <doca_mmap.h>

/* -- maps -- */

static void before_map_change(struct dc_call *call)
{
	const struct dc_object *map = call->objects[0];

	if (map && map->is_started)
		DC_BREAKS(call, MAP_CHANGED_STARTED, DC_NO_DETAILS);
}

static void after_set_range(struct dc_call *call)
{
	struct dc_object *map = call->objects[0];

	if (!map || !dc_succeeded(call))
		return;
	map->mmap.range = (struct dc_range){call->args[1], call->args[1] + call->args[2]};
	map->mmap.has_range = true;
}

static void after_set_permissions(struct dc_call *call)
{
	struct dc_object *map = call->objects[0];

	if (!map || !dc_succeeded(call))
		return;
	map->mmap.permissions = (uint32_t)call->args[1];
	map->mmap.has_permissions = true;
}

static int device_index(const struct dc_object *map, const struct dc_object *dev)
{
	unsigned i;

	for (i = 0; i < map->mmap.n_devs; i++)
		if (map->mmap.devs[i] == dev)
			return (int)i;
	return -1;
}

static void after_add_dev(struct dc_call *call)
{
	struct dc_object *map = call->objects[0], *dev = call->objects[1];

	if (!map || !dev || !dc_succeeded(call) || map->mmap.n_devs == DC_MAX_DEVS ||
	    device_index(map, dev) >= 0)
		return;
	map->mmap.devs[map->mmap.n_devs++] = dev;
	if (!map->dev) {
		map->dev = dev;
		dev->n_users++;
	}
}

static void after_rm_dev(struct dc_call *call)
{
	struct dc_object *map = call->objects[0], *dev = call->objects[1];
	int i = map && dev ? device_index(map, dev) : -1;

	if (i < 0 || !dc_succeeded(call))
		return;
	map->mmap.devs[i] = map->mmap.devs[--map->mmap.n_devs];
	if (map->dev == dev) {
		dev->n_users--;
		map->dev = NULL;
	}
}

static void before_map_start(struct dc_call *call)
{
	const struct dc_object *map = call->objects[0];

	if (map && !map->mmap.has_range && !map->mmap.is_import)
		DC_BREAKS(call, MAP_START_WITHOUT_RANGE, DC_NO_DETAILS);
}

static void before_map_stop(struct dc_call *call)
{
	const struct dc_object *map = call->objects[0];

	if (map && map->n_users && !map->mmap.is_uncounted)
		DC_BREAKS(call, MAP_STOPPED_EARLY, "buffers=%u", map->n_users);
}

static void after_thread_safety(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		call->objects[0]->mmap.is_uncounted = true;
}

static void after_import(struct dc_call *call)
{
	struct dc_object *map;
	void *addr;
	size_t len;

	if (!dc_succeeded(call))
		return;
	map = dc_find(*(void **)(uintptr_t)call->args[4], DC_T_doca_mmap);
	if (!map)
		return;
	map->mmap.is_import = map->is_started = true;
	if (map->dev)
		map->mmap.devs[map->mmap.n_devs++] = map->dev;
	if (DC_NEXT(doca_mmap_get_memrange)((struct doca_mmap *)(uintptr_t)map->address, &addr,
					    &len) == DOCA_SUCCESS) {
		map->mmap.range = (struct dc_range){(uintptr_t)addr, (uintptr_t)addr + len};
		map->mmap.has_range = true;
	}
}

static void judge_export(struct dc_call *call, uint32_t permissions, enum dc_rule_id rule)
{
	const struct dc_object *map = call->objects[0], *dev = call->objects[1];

	if (!map)
		return;
	if (!map->is_started)
		DC_BREAKS(call, MAP_NOT_STARTED, DC_NO_DETAILS);
	if (!map->mmap.is_import && !(map->mmap.permissions & permissions))
		dc_report(rule, map, call->function, call->site, "permissions=%#x",
			  map->mmap.permissions);
	if (dev && !map->mmap.is_import && device_index(map, dev) < 0 &&
	    map->mmap.n_devs < DC_MAX_DEVS)
		DC_BREAKS(call, EXPORT_WITHOUT_DEVICE, "devices=%u", map->mmap.n_devs);
}

static void before_export_pci(struct dc_call *call)
{
	judge_export(call, DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE,
		     DC_RULE_EXPORT_PCI_PERMISSION);
	if (call->objects[0] && call->objects[0]->mmap.is_import)
		DC_BREAKS(call, EXPORT_OF_IMPORT, DC_NO_DETAILS);
}

static void before_export_rdma(struct dc_call *call)
{
	judge_export(call,
		     DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE |
			     DOCA_ACCESS_FLAG_RDMA_ATOMIC,
		     DC_RULE_EXPORT_RDMA_PERMISSION);
}

/* -- inventories and pools -- */

static void before_inventory_stop(struct dc_call *call)
{
	const struct dc_object *inventory = call->objects[0];

	if (inventory && inventory->n_users)
		DC_BREAKS(call, INVENTORY_STOPPED_EARLY, "buffers=%u", inventory->n_users);
}

static void after_pool_create(struct dc_call *call)
{
	struct dc_object *pool;

	if (!dc_succeeded(call))
		return;
	pool = dc_find(*(void **)(uintptr_t)call->args[3], DC_T_doca_buf_pool);
	if (pool)
		pool->pool.mmap = call->objects[2];
}

/* -- buffers -- */

static void judge_range(struct dc_call *call, const struct dc_object *map, uint64_t start,
			uint64_t len)
{
	if (!map || !map->mmap.has_range)
		return;
	if (start < map->mmap.range.start || start + len > map->mmap.range.end ||
	    start + len < start)
		dc_report(DC_RULE_BUFFER_OUTSIDE_MAP, map, call->function, call->site,
			  "buffer=%#llx+%llu, map=%#llx+%llu", (unsigned long long)start,
			  (unsigned long long)len, (unsigned long long)map->mmap.range.start,
			  (unsigned long long)(map->mmap.range.end - map->mmap.range.start));
}

static void judge_data(struct dc_call *call, uint64_t head, uint64_t len, uint64_t data,
		       uint64_t data_len)
{
	if (data < head || data + data_len > head + len || data + data_len < data)
		DC_BREAKS(call, DATA_OUTSIDE_BUFFER, "data=%#llx+%llu, buffer=%#llx+%llu",
			  (unsigned long long)data, (unsigned long long)data_len,
			  (unsigned long long)head, (unsigned long long)len);
}

static void before_get_buf(struct dc_call *call)
{
	const struct dc_object *inventory = call->objects[0], *map = call->objects[1];

	if (inventory && !inventory->is_started)
		DC_BREAKS(call, INVENTORY_NOT_STARTED, DC_NO_DETAILS);
	if (map && !map->is_started)
		dc_report(DC_RULE_MAP_NOT_STARTED, map, call->function, call->site, DC_NO_DETAILS);
	judge_range(call, map, call->args[2], call->args[3]);
	judge_data(call, call->args[2], call->args[3], call->args[4], call->args[5]);
}

static void add_buf(struct dc_call *call, unsigned out, struct dc_object *map)
{
	struct dc_object *buf;

	if (!dc_succeeded(call))
		return;
	buf = dc_find(*(void **)(uintptr_t)call->args[out], DC_T_doca_buf);
	if (!buf)
		return;
	buf->buf.references = 1;
	buf->buf.mmap = map;
	if (map)
		map->n_users++;
}

static void after_get_buf(struct dc_call *call)
{
	add_buf(call, 6, call->objects[1]);
}

static void after_dup_buf(struct dc_call *call)
{
	add_buf(call, 2, call->objects[1] ? call->objects[1]->buf.mmap : NULL);
}

static void before_pool_alloc(struct dc_call *call)
{
	const struct dc_object *pool = call->objects[0];

	if (pool && !pool->is_started)
		DC_BREAKS(call, INVENTORY_NOT_STARTED, DC_NO_DETAILS);
}

static void after_pool_alloc(struct dc_call *call)
{
	add_buf(call, 1, call->objects[0] ? call->objects[0]->pool.mmap : NULL);
}

static struct doca_buf *address_of(const struct dc_object *buf)
{
	return (struct doca_buf *)(uintptr_t)buf->address;
}

static void before_set_data(struct dc_call *call)
{
	const struct dc_object *buf = call->objects[0];
	void *head;
	size_t len;

	if (buf && DC_NEXT(doca_buf_get_head)(address_of(buf), &head) == DOCA_SUCCESS &&
	    DC_NEXT(doca_buf_get_len)(address_of(buf), &len) == DOCA_SUCCESS)
		judge_data(call, (uintptr_t)head, len, call->args[1], call->args[2]);
}

static void before_reuse(struct dc_call *call)
{
	const struct dc_object *buf = call->objects[0];

	if (!buf)
		return;
	if (buf->buf.n_in_flight)
		DC_BREAKS(call, BUFFER_RELEASED_IN_FLIGHT, "tasks=%u", buf->buf.n_in_flight);
	judge_range(call, buf->buf.mmap, call->args[1], call->args[2]);
}

static void after_inc(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		call->objects[0]->buf.references++;
}

/* The last reference to the head of a list releases the whole list. */
static struct dc_object *next_in_list(const struct dc_object *buf)
{
	struct doca_buf *next = NULL;

	if (DC_NEXT(doca_buf_get_next_in_list)(address_of(buf), &next) != DOCA_SUCCESS || !next)
		return NULL;
	return dc_find(next, DC_T_doca_buf);
}

static void before_dec(struct dc_call *call)
{
	struct dc_object *buf = call->objects[0], *next;

	if (!buf || buf->buf.references > 1)
		return;
	for (next = buf; next; next = next_in_list(next))
		if (next->buf.n_in_flight)
			DC_BREAKS(call, BUFFER_RELEASED_IN_FLIGHT, "tasks=%u",
				  next->buf.n_in_flight);
	/* the list cannot be walked after the call */
	for (next = next_in_list(buf); next; next = next_in_list(next))
		next->buf.references = 0;
}

static void release(struct dc_object *buf, const void *site)
{
	if (buf->buf.mmap)
		buf->buf.mmap->n_users--;
	dc_end_object(buf, site);
}

static void end_released(struct dc_object *o, void *site)
{
	if (o->type == DC_T_doca_buf && o->buf.references == 0)
		release(o, site);
}

static void after_dec(struct dc_call *call)
{
	struct dc_object *buf = call->objects[0];

	if (!buf || !dc_succeeded(call) || --buf->buf.references)
		return;
	release(buf, call->site);
	if (buf->buf.is_head)
		dc_each(end_released, (void *)(uintptr_t)call->site);
}

static void after_chain(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		call->objects[0]->buf.is_head = true;
}

const struct dc_hook dc_memory_hooks[DC_N_FUNCTIONS] = {
	[DC_doca_mmap_set_memrange] = {before_map_change, after_set_range},
	[DC_doca_mmap_set_permissions] = {before_map_change, after_set_permissions},
	[DC_doca_mmap_add_dev] = {before_map_change, after_add_dev},
	[DC_doca_mmap_rm_dev] = {before_map_change, after_rm_dev},
	[DC_doca_mmap_set_max_num_devices] = {before_map_change, NULL},
	[DC_doca_mmap_set_free_cb] = {before_map_change, NULL},
	[DC_doca_mmap_start] = {before_map_start, NULL},
	[DC_doca_mmap_stop] = {before_map_stop, NULL},
	[DC_doca_mmap_destroy] = {before_map_stop, NULL},
	[DC_doca_mmap_create_from_export] = {NULL, after_import},
	[DC_doca_mmap_enable_thread_safety] = {NULL, after_thread_safety},
	[DC_doca_mmap_export_pci] = {before_export_pci, NULL},
	[DC_doca_mmap_export_rdma] = {before_export_rdma, NULL},
	[DC_doca_buf_inventory_stop] = {before_inventory_stop, NULL},
	[DC_doca_buf_inventory_destroy] = {before_inventory_stop, NULL},
	[DC_doca_buf_pool_stop] = {before_inventory_stop, NULL},
	[DC_doca_buf_pool_destroy] = {before_inventory_stop, NULL},
	[DC_doca_buf_pool_create] = {NULL, after_pool_create},
	[DC_doca_buf_inventory_buf_get_by_args] = {before_get_buf, after_get_buf},
	[DC_doca_buf_inventory_buf_dup] = {NULL, after_dup_buf},
	[DC_doca_buf_pool_buf_alloc] = {before_pool_alloc, after_pool_alloc},
	[DC_doca_buf_set_data] = {before_set_data, NULL},
	[DC_doca_buf_inventory_buf_reuse_by_args] = {before_reuse, NULL},
	[DC_doca_buf_inventory_buf_reuse_by_addr] = {before_reuse, NULL},
	[DC_doca_buf_inventory_buf_reuse_by_data] = {before_reuse, NULL},
	[DC_doca_buf_inc_refcount] = {NULL, after_inc},
	[DC_doca_buf_dec_refcount] = {before_dec, after_dec},
	[DC_doca_buf_chain_list] = {NULL, after_chain},
	[DC_doca_buf_chain_list_tail] = {NULL, after_chain},
};
