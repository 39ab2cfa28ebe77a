/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/trouble.h"
#include "check/check.h"
bool dc_trouble_is_on;
void dc_trouble_before(struct dc_call *call)
{
	(void)call;
}
