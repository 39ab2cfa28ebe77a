/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/status.h"

int gn_errno_of_status(unsigned status)
{
	static const int errors[GANTRY_S_COUNT] = {
#define GN_STATUS_ERRNO(num, name, err, text) [num] = -(err),
		GANTRY_STATUS_LIST(GN_STATUS_ERRNO)
#undef GN_STATUS_ERRNO
	};

	return status < GANTRY_S_COUNT ? errors[status] : -EIO;
}
