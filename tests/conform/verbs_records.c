/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_records.c - control messages over RDMA with a record filter, over the fake libraries. */
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "conform/filter.h"
#include "conform/rig.h"

static int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

static int spy(struct ibv_qp *qp, struct ibv_send_wr *first, struct ibv_send_wr **bad)
{
	for (struct ibv_send_wr *wr = first; wr; wr = wr->next)
		for (int i = 0; wr->opcode == IBV_WR_SEND && i < wr->num_sge; i++)
			filter_search((void *)(uintptr_t)wr->sg_list[i].addr,
				      wr->sg_list[i].length);
	return post_send(qp, first, bad);
}

void filter_spy(void)
{
	int n = 0;
	struct ibv_context **list = rdma_get_devices(&n);

	for (int i = 0; i < n; i++)
		if (list[i]->ops.post_send != spy) {
			post_send = list[i]->ops.post_send;
			list[i]->ops.post_send = spy;
		}
	rdma_free_devices(list);
}

int main(void)
{
	if (!rig_can_run())
		return 77;
	UNITY_BEGIN();
	filter_cases();
	return UNITY_END();
}
