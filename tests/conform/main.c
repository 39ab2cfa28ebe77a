/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - all cases of the conformance suite. */
#include "conform/rig.h"

int main(void)
{
	if (!rig_can_run())
		return 77;
	UNITY_BEGIN();
	conn_cases();
	queue_cases();
	data_cases();
	region_cases();
	hold_cases();
	rma_cases();
	lane_cases();
	thread_cases();
	return UNITY_END();
}
