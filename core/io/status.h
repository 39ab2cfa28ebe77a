/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h - converts the status of an IO to an errno. gantry_status_of_errno() is the inverse. The
 * table is GANTRY_STATUS_LIST in gantry/io.h.
 */
#ifndef GN_IO_STATUS_H
#define GN_IO_STATUS_H

#include <gantry/io.h>

/* Returns the -errno of a status; 0 for GANTRY_S_OK; -EIO for an unknown one. Any thread. */
int gn_errno_of_status(unsigned status);

#endif
