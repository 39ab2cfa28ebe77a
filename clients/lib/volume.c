/* SPDX-License-Identifier: BSD-3-Clause */
/* volume.c - opens and closes volumes. Any thread. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/kernel.h"
#include "base/log.h"
#include "lib_priv.h"

#define DEFAULT_DEPTH 32u
#define DEFAULT_QUEUES 1u
/* largest struct_size in bytes; a larger value is assumed to be uninitialised memory */
#define ATTR_MOST 4096u

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int check_attr(const struct gantry_volume_attr *attr)
{
	if (attr->queues > GN_TOPOLOGY_LANES_MAX)
		return gc_error(-EINVAL, "too many queues (queues=%u, limit %d)", attr->queues,
				GN_TOPOLOGY_LANES_MAX);
	if (attr->depth > UINT16_MAX)
		return gc_error(-EINVAL, "depth out of range (depth=%u, limit %d)", attr->depth,
				UINT16_MAX);
	if (attr->memories > GC_MEMORIES_MAX)
		return gc_error(-EINVAL, "memories out of range (memories=%u, limit %u)",
				attr->memories, GC_MEMORIES_MAX);
	return attr->reserved ? gc_error_static(-EINVAL, "reserved is not 0") : 0;
}

/*
 * Copy the attributes. Fields that this version does not have must be 0: a program for a later
 * version must not request features that do not exist here.
 */
static int take_attr(struct gantry_volume *volume, const struct gantry_volume_attr *attr)
{
	struct gantry_volume_attr *own = &volume->attr;
	size_t size = attr ? attr->struct_size : sizeof(*own);

	if (size < 2 * sizeof(uint32_t) || size > ATTR_MOST)
		return gc_error_static(
			-EINVAL, "the size of struct gantry_volume_attr is not set; start from "
				 "GANTRY_VOLUME_ATTR_INIT");
	if (attr)
		memcpy(own, attr, size < sizeof(*own) ? size : sizeof(*own));
	for (size_t i = sizeof(*own); i < size; i++)
		if (((const char *)attr)[i])
			return gc_error_static(
				-EINVAL,
				"struct gantry_volume_attr asks for something that this version of "
				"libgantry does not have");
	if (!own->queues)
		own->queues = DEFAULT_QUEUES;
	if (!own->depth)
		own->depth = DEFAULT_DEPTH;
	return check_attr(own);
}

/* Start the control thread with all signals blocked. */
static int start_thread(struct gantry_volume *volume)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&volume->thread, NULL, gc_control_run, volume);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return gc_error(-rc, "cannot create the control thread: %s", strerror(rc));
	pthread_setname_np(volume->thread, "gantry-volume");
	return 0;
}

static void free_volume(struct gantry_volume *volume)
{
	free(volume->role);
	free(volume->file);
	free(volume->uri);
	pthread_cond_destroy(&volume->changed);
	pthread_mutex_destroy(&volume->lock);
	free(volume->memories);
	free(volume->workers);
	free(volume->queues);
	free(volume);
}

/* Wait until the session is up or the open has failed. */
static int wait_up(struct gantry_volume *volume)
{
	int rc;

	pthread_mutex_lock(&volume->lock);
	while (volume->state == GC_LOADING)
		pthread_cond_wait(&volume->changed, &volume->lock);
	/*
	 * if the session has started and is lost already, the open succeeds; the next IO reports
	 * the loss
	 */
	rc = volume->state == GC_ENDED ? volume->rc : 0;
	pthread_mutex_unlock(&volume->lock);
	if (!rc)
		return 0;
	pthread_join(volume->thread, NULL);
	return gc_error(rc, "%s", volume->text);
}

/* Copy a string; NULL stays NULL. Returns 0 or -ENOMEM. */
static int copy_text(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

void gc_volume_name(struct gantry_volume *volume, const char *name)
{
	snprintf(volume->name, sizeof(volume->name), "%s", name);
}

/* Prepend the name of the volume to the error text, unless the text contains it. */
static int not_opened(const struct gantry_volume *volume, int rc)
{
	char why[GC_TEXT];

	if (strstr(gantry_error(), volume->name))
		return rc;
	snprintf(why, sizeof(why), "%s", gantry_error());
	return gc_error(rc, "%s: %s", volume->name, why);
}

static int open_volume(struct gantry_volume *volume, const struct gantry_volume_attr *attr)
{
	int rc = take_attr(volume, attr);

	if (rc)
		return rc;
	volume->queues = calloc(volume->attr.queues, sizeof(struct gantry_queue *));
	volume->workers = calloc(volume->attr.queues, sizeof(struct gn_worker *));
	if (!volume->queues || !volume->workers || gc_memories_init(volume))
		return gc_error_static(-ENOMEM, "out of memory");
	rc = start_thread(volume);
	return rc ? rc : wait_up(volume);
}

static void init_once(void)
{
	char why[GN_KERNEL_WHY];

	gn_clock_init();
	if (gn_kernel_check(why))
		gn_log(GN_LOG_WARN, "libgantry", "%s", why);
}

static int make_volume(const char *uri, const char *file, const char *role,
		       const struct gantry_volume_attr *attr, struct gantry_volume **volume_p)
{
	struct gantry_volume *volume = calloc(1, sizeof(*volume));
	int rc;

	if (!volume)
		return gc_error_static(-ENOMEM, "out of memory");
	pthread_once(&once, init_once);
	volume->forks = gc_forks();
	pthread_mutex_init(&volume->lock, NULL);
	pthread_cond_init(&volume->changed, NULL);
	gc_volume_name(volume, uri ? uri : file);
	if (copy_text(uri, &volume->uri) || copy_text(file, &volume->file) ||
	    copy_text(role, &volume->role))
		rc = gc_error_static(-ENOMEM, "out of memory");
	else
		rc = open_volume(volume, attr);
	if (rc) {
		rc = not_opened(volume, rc);
		free_volume(volume);
		return rc;
	}
	*volume_p = volume;
	return 0;
}

int gantry_volume_open(const char *uri, const struct gantry_volume_attr *attr,
		       struct gantry_volume **volume_p)
{
	*volume_p = NULL;
	if (!uri)
		return gc_error_static(-EINVAL, "no URI is given");
	return make_volume(uri, NULL, NULL, attr, volume_p);
}

int gantry_volume_open_role(const char *file, const char *role,
			    const struct gantry_volume_attr *attr, struct gantry_volume **volume_p)
{
	*volume_p = NULL;
	if (!file)
		return gc_error_static(-EINVAL, "no configuration file is given");
	return make_volume(NULL, file, role, attr, volume_p);
}

static int count_queues(struct gantry_volume *volume)
{
	int n = 0;

	pthread_mutex_lock(&volume->lock);
	for (uint32_t i = 0; i < volume->attr.queues; i++)
		n += volume->queues[i] != NULL;
	pthread_mutex_unlock(&volume->lock);
	return n;
}

static int count_memories(struct gantry_volume *volume)
{
	int n = 0;

	pthread_mutex_lock(&volume->lock);
	for (uint32_t i = 0; i < volume->attr.memories; i++)
		n += volume->memories[i].is_taken;
	pthread_mutex_unlock(&volume->lock);
	return n;
}

int gantry_volume_close(struct gantry_volume **volume_p)
{
	struct gantry_volume *volume = *volume_p;
	int n, rc;

	if (!volume)
		return 0;
	rc = gc_check_fork(volume);
	if (rc)
		return rc;
	n = count_queues(volume);
	if (n)
		return gc_error(-EBUSY, "the volume has open queues (queues=%d): close them first",
				n);
	n = count_memories(volume);
	if (n)
		return gc_error(-EBUSY,
				"the volume has registered memory (memories=%d): deregister it "
				"first",
				n);
	gc_control_stop(volume);
	pthread_join(volume->thread, NULL);
	free_volume(volume);
	*volume_p = NULL;
	return 0;
}

int gantry_volume_give_up(struct gantry_volume *volume)
{
	int rc = gc_check_fork(volume);

	if (!rc)
		gc_control_give_up(volume);
	return rc;
}

void gantry_volume_get_info(const struct gantry_volume *volume, struct gantry_volume_info *info)
{
	*info = volume->info;
	info->size = __atomic_load_n(&volume->info.size, __ATOMIC_RELAXED);
	info->verifier = __atomic_load_n(&volume->verifier, __ATOMIC_RELAXED);
}

uint32_t gantry_volume_copy_bytes(const struct gantry_volume *volume)
{
	return volume->copy_bytes;
}

void *gantry_volume_buffers(const struct gantry_volume *volume, uint64_t *bytes_p)
{
	if (bytes_p)
		*bytes_p = volume->attr.buffer_bytes;
	return volume->attr.buffer_bytes ? volume->buffers : NULL;
}
