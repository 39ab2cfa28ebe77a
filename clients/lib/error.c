/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error.c - the error text of each thread, and the detection of forks
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib_priv.h"

static __thread char buffer[GC_TEXT];
static __thread const char *last = "no function of libgantry has failed on this thread";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned forks;

const char *gantry_error(void)
{
	return last;
}

int gc_error_static(int rc, const char *text)
{
	last = text;
	return rc;
}

int gc_error(int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buffer, sizeof(buffer), fmt, ap);
	va_end(ap);
	last = buffer;
	return rc;
}

static void in_child(void)
{
	forks++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

unsigned gc_forks(void)
{
	pthread_once(&once, watch_forks);
	return forks;
}

int gc_check_fork(const struct gantry_volume *volume)
{
	if (gantry_likely(volume->forks == forks))
		return 0;
	return gc_error_static(
		-EINVAL,
		"the volume was opened before a fork and belongs to the parent; open it again here");
}
