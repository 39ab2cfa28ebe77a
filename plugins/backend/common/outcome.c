/* SPDX-License-Identifier: BSD-3-Clause */
#include "outcome.h"

#include <errno.h>

#define MARGIN_NS 500000000u /* limit of the time that a reply needs to the client */

enum gantry_status outcome_status(int err)
{
	enum gantry_status status = gantry_status_of_errno(err);

	if (err == EDQUOT || err == EFBIG)
		return GANTRY_S_NOSPC;
	if (err == ECANCELED || err == EBUSY)
		return GANTRY_S_IO;
	return gantry_status_buffer_released(status) ? status : GANTRY_S_IO;
}

uint64_t outcome_due_ns(const struct gantry_io *io, uint64_t limit_ns)
{
	uint64_t ns = io->deadline_us ? io->deadline_us * UINT64_C(1000) : limit_ns;
	uint64_t margin = ns / 8;

	return io->start_ns + ns - (margin < MARGIN_NS ? margin : MARGIN_NS);
}
