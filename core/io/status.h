/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h - the statuses of an IO as errors of this system; back goes gantry_status_of_errno().
 * The table is GANTRY_STATUS_LIST.
 */
#ifndef GN_IO_STATUS_H
#define GN_IO_STATUS_H

#include <gantry/io.h>

/* The -errno that a status stands for; 0 for GANTRY_S_OK. */
int gn_errno_of_status(unsigned status);

#endif
