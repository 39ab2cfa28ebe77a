/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/status.h"

#include <errno.h>

enum gantry_status gn_status_of_errno(int error)
{
	switch (error < 0 ? -error : error) {
#define GN_STATUS_CASE(num, name, err, text)                                                                            \
	case err:                                                                                                       \
		return GANTRY_S_##name;
		GANTRY_STATUS_LIST(GN_STATUS_CASE)
#undef GN_STATUS_CASE
	default:
		return GANTRY_S_IO;
	}
}

int gn_errno_of_status(unsigned status)
{
	static const int errors[GANTRY_S_COUNT] = {
#define GN_STATUS_ERRNO(num, name, err, text) [num] = -(err),
		GANTRY_STATUS_LIST(GN_STATUS_ERRNO)
#undef GN_STATUS_ERRNO
	};

	return status < GANTRY_S_COUNT ? errors[status] : -EIO;
}
