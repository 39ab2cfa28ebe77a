/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.c - memory regions: exactly the range, least access. */
#include <errno.h>

#include <gantry/transport.h>

#include "rdma.h"

static unsigned int access_flags(uint32_t rights, int local)
{
	unsigned int flags = local ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (rights & GANTRY_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (rights & GANTRY_REMOTE_WRITE) /* which a device grants only with the local right */
		flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	return flags;
}

int vb_mr_create(struct ibv_pd *pd, void *addr, uint64_t length, uint32_t rights, int local, struct ibv_mr **mr_p)
{
	errno = 0;
	*mr_p = ibv_reg_mr(pd, addr, length, access_flags(rights, local));
	return *mr_p ? 0 : errno ? -errno : -ENOMEM;
}

int vb_mr_destroy(struct ibv_mr **mr_p)
{
	int rc = *mr_p ? ibv_dereg_mr(*mr_p) : 0;

	if (rc == 0)
		*mr_p = NULL;
	return rc > 0 ? -rc : rc;
}
