/* SPDX-License-Identifier: BSD-3-Clause */
/* image_watch.h - see image_watch.c */
#ifndef SIM_IMAGE_WATCH_H
#define SIM_IMAGE_WATCH_H

#include <gantry/backend.h>

/* Check each IO that these operations, those of the backend `file`, get from now on. */
void sim_watch_backend(struct gantry_backend_ops *ops);

#endif
