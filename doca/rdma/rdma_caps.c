/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_caps.c - RDMA capabilities of a device, and the addresses of its port */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdma/rdma.h"

#define GID_TEXT 40 /* 8 groups of 4 digits */
#define GIDS 256u

/* -- capabilities -- */

#define TASK_SUPPORTED(name) \
	doca_error_t doca_rdma_cap_task_##name##_is_supported(const struct doca_devinfo *devinfo) \
	{ \
		return gd_cap(devinfo, true); \
	}

#define LIMIT(name, limit) \
	doca_error_t doca_rdma_cap_get_max_##name(const struct doca_devinfo *devinfo, \
						  uint32_t *value_p) \
	{ \
		return gd_cap_u32(devinfo, true, limit, value_p); \
	}

TASK_SUPPORTED(receive)
TASK_SUPPORTED(send)
TASK_SUPPORTED(send_imm)
TASK_SUPPORTED(read)
TASK_SUPPORTED(write)
TASK_SUPPORTED(write_imm)
TASK_SUPPORTED(atomic_cmp_swp)
TASK_SUPPORTED(atomic_fetch_add)
TASK_SUPPORTED(remote_net_sync_event_get)
TASK_SUPPORTED(remote_net_sync_event_notify_set)
TASK_SUPPORTED(remote_net_sync_event_notify_add)

LIMIT(recv_queue_size, GD_RDMA_MAX_QUEUE)
LIMIT(send_queue_size, GD_RDMA_MAX_QUEUE)
LIMIT(send_buf_list_len, GD_RDMA_MAX_LIST)
LIMIT(message_size, GD_RDMA_MAX_MESSAGE)

doca_error_t doca_rdma_cap_task_receive_get_max_dst_buf_list_len(
	const struct doca_devinfo *devinfo, enum doca_rdma_transport_type transport_type,
	uint32_t *max_buf_list_len)
{
	if (transport_type != DOCA_RDMA_TRANSPORT_TYPE_RC)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_cap_u32(devinfo, true, GD_RDMA_MAX_LIST, max_buf_list_len);
}

doca_error_t doca_rdma_cap_transport_type_is_supported(const struct doca_devinfo *devinfo,
						       enum doca_rdma_transport_type transport_type)
{
	if (!devinfo || (transport_type != DOCA_RDMA_TRANSPORT_TYPE_RC &&
			 transport_type != DOCA_RDMA_TRANSPORT_TYPE_DC))
		return DOCA_ERROR_INVALID_VALUE;
	return gd_cap(devinfo, transport_type == DOCA_RDMA_TRANSPORT_TYPE_RC);
}

/* -- addresses of the port -- */

static void gid_path(const struct doca_devinfo *devinfo, uint32_t index, char path[160])
{
	snprintf(path, 160, "/sys/class/infiniband/%.63s/ports/1/gids/%u", devinfo->ibdev, index);
}

/* Get the address of an interface as a GID; false: it is not an IP address. */
static bool gid_of(const struct sockaddr *addr, struct in6_addr *gid)
{
	if (addr && addr->sa_family == AF_INET) {
		*gid = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
		memcpy(&gid->s6_addr[12], &((const struct sockaddr_in *)addr)->sin_addr, 4);
		return true;
	}
	if (!addr || addr->sa_family != AF_INET6)
		return false;
	*gid = ((const struct sockaddr_in6 *)addr)->sin6_addr;
	return true;
}

/* Get an address of the network interface, as RoCE devices do; false: it has no such address. */
static bool iface_gid(const struct doca_devinfo *devinfo, uint32_t index, struct in6_addr *gid)
{
	struct ifaddrs *list;
	bool found = false;

	if (devinfo->iface[0] == '\0' || getifaddrs(&list))
		return false;
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
		found = strcmp(i->ifa_name, devinfo->iface) == 0 && gid_of(i->ifa_addr, gid) &&
			index-- == 0;
	freeifaddrs(list);
	return found;
}

/*
 * Read the GID of an index from the kernel, or from the network interface if the function has no
 * RDMA device; false: the port has no such GID.
 */
static bool read_gid(const struct doca_devinfo *devinfo, uint32_t index, struct in6_addr *gid)
{
	char path[160], text[GID_TEXT];
	bool ok;
	FILE *f;

	gid_path(devinfo, 0, path);
	if (access(path, F_OK))
		return iface_gid(devinfo, index, gid);
	gid_path(devinfo, index, path);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(text, sizeof(text), f) && inet_pton(AF_INET6, text, gid) == 1;
	fclose(f);
	return ok;
}

static bool is_zero(const struct in6_addr *gid)
{
	static const struct in6_addr zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

/* A device without a network has one address: the link-local IPv6 address derived from its MAC. */
static void link_local(const struct doca_devinfo *devinfo, struct in6_addr *gid)
{
	const uint8_t *mac = devinfo->mac;

	*gid = (struct in6_addr){.s6_addr = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1],
					     mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

doca_error_t doca_rdma_cap_get_gid_table_size(const struct doca_devinfo *devinfo,
					      uint32_t *gid_table_size)
{
	struct in6_addr gid;
	uint32_t n = 0;

	if (!devinfo || !gid_table_size)
		return DOCA_ERROR_INVALID_VALUE;
	while (devinfo->network && n < GIDS && read_gid(devinfo, n, &gid))
		n++;
	*gid_table_size = n ? n : 1;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_cap_get_gid(const struct doca_devinfo *devinfo, uint32_t start_index,
				   uint32_t num_entries, struct doca_rdma_gid *gid_array)
{
	uint32_t size;

	if (!gid_array || doca_rdma_cap_get_gid_table_size(devinfo, &size) != DOCA_SUCCESS)
		return DOCA_ERROR_INVALID_VALUE;
	if (num_entries == 0 || start_index >= size || num_entries > size - start_index)
		return DOCA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < num_entries; i++) {
		struct in6_addr gid;

		if (!devinfo->network || !read_gid(devinfo, start_index + i, &gid))
			link_local(devinfo, &gid);
		memcpy(gid_array[i].raw, &gid, sizeof(gid_array[i].raw));
	}
	return DOCA_SUCCESS;
}

/*
 * Preference of a GID as own address: 3 IPv4, 2 IPv6, 0 unusable. Link-local addresses are
 * unusable, because they are valid only together with an interface of the peer.
 */
static int worth(const struct in6_addr *gid)
{
	if (IN6_IS_ADDR_V4MAPPED(gid))
		return 3;
	return is_zero(gid) || IN6_IS_ADDR_LINKLOCAL(gid) ? 0 : 2;
}

static void print_address(const struct in6_addr *gid, char *text, size_t size)
{
	char address[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(gid)) {
		inet_ntop(AF_INET, &gid->s6_addr[12], text, (socklen_t)size);
		return;
	}
	inet_ntop(AF_INET6, gid, address, sizeof(address));
	snprintf(text, size, "[%s]", address);
}

doca_error_t gd_rdma_own_address(const struct doca_rdma *rdma, char *text, size_t size)
{
	const struct doca_devinfo *devinfo = rdma->ctx.dev->info;
	struct in6_addr gid, best;
	int found = 0;

	if (rdma->has_gid && read_gid(devinfo, rdma->gid_index, &best))
		found = worth(&best);
	for (uint32_t i = 0; found == 0 && i < GIDS && read_gid(devinfo, i, &gid); i++)
		if (worth(&gid) == 3) {
			best = gid;
			found = 3;
		}
	for (uint32_t i = 0; found == 0 && i < GIDS && read_gid(devinfo, i, &gid); i++)
		if (worth(&gid)) {
			best = gid;
			found = worth(&gid);
		}
	if (!found)
		return DOCA_ERROR_NOT_FOUND;
	print_address(&best, text, size);
	return DOCA_SUCCESS;
}
