/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_mr.c - memory regions: registers exactly the given range, with the fewest rights. */
#include <errno.h>
#include <sys/resource.h>

#include <gantry/transport.h>

#include "vb_rdma.h"

static unsigned int access_flags(uint32_t rights, int local)
{
	unsigned int flags = local ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (rights & GANTRY_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	/* a device grants the remote write right only together with the local one */
	if (rights & GANTRY_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	return flags;
}

/*
 * Returns true if RLIMIT_MEMLOCK is finite. Pinned memory is preferred, because the device never
 * waits for a page. On-demand paging is used only if the limit prevents pinning, not for other
 * causes of ENOMEM.
 */
static int limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static int pages_on_demand(struct ibv_context *context)
{
	struct vb_limits limits;
	int error = errno, can = vb_device_limits(context, &limits) == 0 && limits.odp;

	errno = error; /* keep the error of the failed registration */
	return can;
}

int vb_mr_create(struct ibv_pd *pd, void *addr, uint64_t length, uint32_t rights, int local,
		 struct ibv_mr **mr_p)
{
	unsigned int flags = access_flags(rights, local);

	errno = 0;
	*mr_p = ibv_reg_mr(pd, addr, length, flags);
	if (!*mr_p && errno == ENOMEM && limited() && pages_on_demand(pd->context))
		*mr_p = ibv_reg_mr(pd, addr, length, flags | IBV_ACCESS_ON_DEMAND);
	return *mr_p ? 0 : errno ? -errno : -ENOMEM;
}

int vb_mr_destroy(struct ibv_mr **mr_p)
{
	int rc = *mr_p ? ibv_dereg_mr(*mr_p) : 0;

	if (rc == 0)
		*mr_p = NULL;
	return rc > 0 ? -rc : rc;
}
