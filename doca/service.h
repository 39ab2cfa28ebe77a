/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - what the files about devices and memory need of the service thread, besides what device.h promises to all. */
#ifndef GD_SERVICE_H
#define GD_SERVICE_H

#include "device.h"

/* Have the function of an fd called at that time as well, once; 0: not. In the past: at once. Any thread. */
void gd_service_set_time(int fd, uint64_t at_ns);

/*
 * Install what keeps fork() right, once. Handlers that are installed later lock earlier: whoever calls in here with a lock
 * of his own held, and has handlers for that lock, calls this first.
 */
void gd_service_watch_forks(void);

#endif
