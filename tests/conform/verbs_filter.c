/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_filter.c - all cases of the conformance suite over RDMA with a record filter. */
#include "conform/filter.h"
#include "conform/rig.h"

void filter_spy(void)
{
}

int main(void)
{
	if (!rig_can_run())
		return 77;
	UNITY_BEGIN();
	conn_cases();
	queue_cases();
	data_cases();
	region_cases();
	rma_cases();
	lane_cases();
	thread_cases();
	return UNITY_END();
}
