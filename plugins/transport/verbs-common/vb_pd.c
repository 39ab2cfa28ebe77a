/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_pd.c - protection domains: one per connection, so that a key is not valid on another
 * connection.
 */
#include <errno.h>

#include "vb_rdma.h"

int vb_pd_create(struct ibv_context *context, struct ibv_pd **pd_p)
{
	errno = 0;
	*pd_p = ibv_alloc_pd(context);
	return *pd_p ? 0 : errno ? -errno : -ENOMEM;
}

void vb_pd_destroy(struct ibv_pd **pd_p)
{
	if (*pd_p)
		ibv_dealloc_pd(*pd_p);
	*pd_p = NULL;
}
