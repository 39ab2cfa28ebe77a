/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_cases.c - devices, maps, inventories and buffers */
#include "cases.h"

#include <stdlib.h>

static struct doca_dev *dev;

static struct doca_mmap *usual_map(void)
{
	dev = open_device("03:00.0");
	return new_map(dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, true);
}

static void end_map(struct doca_mmap *map)
{
	(void)doca_mmap_destroy(map);
	(void)doca_dev_close(dev);
}

CASE(use_after_destroy)
{
	struct doca_mmap *map = usual_map();
	struct doca_buf_inventory *inventory = new_inventory(true);
	struct doca_buf *buf;
	size_t len;

	MUST(doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 64, &buf));
	if (!bad)
		(void)doca_buf_get_len(buf, &len);
	MUST(doca_buf_dec_refcount(buf, NULL));
	if (bad)
		(void)doca_buf_get_len(buf, &len);
	MUST(doca_buf_inventory_destroy(inventory));
	end_map(map);
}

CASE(double_destroy)
{
	struct doca_pe *pe;

	MUST(doca_pe_create(&pe));
	MUST(doca_pe_destroy(pe));
	if (bad)
		(void)doca_pe_destroy(pe);
}

CASE(null_object)
{
	struct doca_mmap *map = NULL;

	if (!bad)
		map = usual_map();
	(void)doca_mmap_stop(map);
	if (!bad)
		end_map(map);
}

CASE(device_closed_early)
{
	struct doca_mmap *map = usual_map();

	if (bad)
		(void)doca_dev_close(dev);
	MUST(doca_mmap_destroy(map));
	if (!bad)
		MUST(doca_dev_close(dev));
}

CASE(devinfo_of_destroyed_list)
{
	struct doca_devinfo **list, *info;
	uint32_t n;
	uint16_t id;

	MUST(doca_devinfo_create_list(&list, &n));
	info = list[0];
	if (!bad)
		(void)doca_devinfo_get_vhca_id(info, &id);
	MUST(doca_devinfo_destroy_list(list));
	if (bad)
		(void)doca_devinfo_get_vhca_id(info, &id);
}

CASE(map_stopped_early)
{
	struct doca_mmap *map = usual_map();
	struct doca_buf_inventory *inventory = new_inventory(true);
	struct doca_buf *buf;

	MUST(doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 64, &buf));
	if (bad)
		(void)doca_mmap_stop(map);
	(void)doca_buf_dec_refcount(buf, NULL);
	MUST(doca_buf_inventory_destroy(inventory));
	end_map(map);
}

CASE(inventory_stopped_early)
{
	struct doca_mmap *map = usual_map();
	struct doca_buf_inventory *inventory = new_inventory(true);
	struct doca_buf *buf;

	MUST(doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 64, &buf));
	if (bad)
		(void)doca_buf_inventory_destroy(inventory);
	(void)doca_buf_dec_refcount(buf, NULL);
	(void)doca_buf_inventory_destroy(inventory);
	end_map(map);
}

CASE(map_changed_started)
{
	struct doca_mmap *map;

	dev = open_device("03:00.0");
	map = new_map(dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, bad);
	(void)doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	end_map(map);
}

CASE(map_start_without_range)
{
	struct doca_mmap *map;

	MUST(doca_mmap_create(&map));
	if (!bad)
		MUST(doca_mmap_set_memrange(map, memory, 4096));
	(void)doca_mmap_start(map);
	MUST(doca_mmap_destroy(map));
}

CASE(map_not_started)
{
	struct doca_buf_inventory *inventory = new_inventory(true);
	struct doca_buf *buf = NULL;
	struct doca_mmap *map;

	dev = open_device("03:00.0");
	map = new_map(dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, !bad);
	(void)doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 64, &buf);
	if (buf)
		(void)doca_buf_dec_refcount(buf, NULL);
	MUST(doca_buf_inventory_destroy(inventory));
	end_map(map);
}

CASE(inventory_not_started)
{
	struct doca_mmap *map = usual_map();
	struct doca_buf_inventory *inventory = new_inventory(!bad);
	struct doca_buf *buf = NULL;

	(void)doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 64, &buf);
	if (buf)
		(void)doca_buf_dec_refcount(buf, NULL);
	MUST(doca_buf_inventory_destroy(inventory));
	end_map(map);
}

CASE(buffer_outside_map)
{
	struct doca_mmap *map = usual_map();
	struct doca_buf_inventory *inventory = new_inventory(true);
	struct doca_buf *buf = NULL;

	(void)doca_buf_inventory_buf_get_by_addr(inventory, map, memory + N_BYTES - 64,
						 bad ? 65 : 64, &buf);
	if (buf)
		(void)doca_buf_dec_refcount(buf, NULL);
	MUST(doca_buf_inventory_destroy(inventory));
	end_map(map);
}

CASE(data_outside_buffer)
{
	struct doca_mmap *map = usual_map();
	struct doca_buf_inventory *inventory = new_inventory(true);
	struct doca_buf *buf;

	MUST(doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 64, &buf));
	(void)doca_buf_set_data(buf, memory, bad ? 65 : 64);
	MUST(doca_buf_dec_refcount(buf, NULL));
	MUST(doca_buf_inventory_destroy(inventory));
	end_map(map);
}

static void export_map(uint32_t permissions, bool with_device, bool rdma)
{
	struct doca_mmap *map;
	const void *blob;
	size_t len;

	dev = open_device("03:00.0");
	map = new_map(with_device ? dev : NULL, permissions, true);
	if (rdma)
		(void)doca_mmap_export_rdma(map, dev, &blob, &len);
	else
		(void)doca_mmap_export_pci(map, dev, &blob, &len);
	end_map(map);
}

CASE(export_pci_permission)
{
	export_map(bad ? DOCA_ACCESS_FLAG_LOCAL_READ_WRITE : DOCA_ACCESS_FLAG_PCI_READ_WRITE, true,
		   false);
}

CASE(export_rdma_permission)
{
	export_map(bad ? DOCA_ACCESS_FLAG_LOCAL_READ_WRITE : DOCA_ACCESS_FLAG_RDMA_READ, true,
		   true);
}

CASE(export_without_device)
{
	export_map(DOCA_ACCESS_FLAG_PCI_READ_WRITE, !bad, false);
}

CASE(export_of_import)
{
	struct doca_dev *host = open_device("b1:00.0"), *dpu = open_device("03:00.0");
	struct doca_mmap *map = new_map(host, DOCA_ACCESS_FLAG_PCI_READ_WRITE, true), *import;
	const void *blob;
	size_t len;

	MUST(doca_mmap_export_pci(map, host, &blob, &len));
	MUST(doca_mmap_create_from_export(NULL, blob, len, dpu, &import));
	if (bad)
		(void)doca_mmap_export_pci(import, dpu, &blob, &len);
	MUST(doca_mmap_destroy(import));
	MUST(doca_mmap_destroy(map));
	MUST(doca_dev_close(host));
	MUST(doca_dev_close(dpu));
}

const struct test_case memory_cases[] = {
	RULE("use-after-destroy", use_after_destroy),
	RULE("double-destroy", double_destroy),
	RULE("null-object", null_object),
	RULE("device-closed-early", device_closed_early),
	RULE("devinfo-of-destroyed-list", devinfo_of_destroyed_list),
	RULE("map-stopped-early", map_stopped_early),
	RULE("inventory-stopped-early", inventory_stopped_early),
	RULE("map-changed-started", map_changed_started),
	RULE("map-start-without-range", map_start_without_range),
	RULE("map-not-started", map_not_started),
	RULE("inventory-not-started", inventory_not_started),
	RULE("buffer-outside-map", buffer_outside_map),
	RULE("data-outside-buffer", data_outside_buffer),
	RULE("export-pci-permission", export_pci_permission),
	RULE("export-rdma-permission", export_rdma_permission),
	RULE("export-without-device", export_without_device),
	RULE("export-of-import", export_of_import),
	{NULL, NULL},
};
