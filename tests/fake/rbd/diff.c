/* SPDX-License-Identifier: BSD-3-Clause */
/* diff.c - diffs of the fake of librbd, see rbd.h. */
#include "rbd.h"

#include <errno.h>
#include <pthread.h>

#include <rbd/librbd.h>

#define GAP 512u /* zeroes that separate two parts with data */
#define MAX_PARTS 4096u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int hold, reverse;
static unsigned n_held;
static uint64_t longest;

struct part {
	uint64_t start, end;
};

void fake_rbd_reset_diffs(void)
{
	pthread_mutex_lock(&mutex);
	hold = reverse = 0;
	longest = 0;
	pthread_mutex_unlock(&mutex);
}

void fake_rbd_hold_diff(int on)
{
	pthread_mutex_lock(&mutex);
	hold = on;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

unsigned fake_rbd_held_diffs(void)
{
	unsigned n;

	pthread_mutex_lock(&mutex);
	n = n_held;
	pthread_mutex_unlock(&mutex);
	return n;
}

void fake_rbd_reverse_diff(int on)
{
	pthread_mutex_lock(&mutex);
	reverse = on;
	pthread_mutex_unlock(&mutex);
}

uint64_t fake_rbd_longest_diff(void)
{
	uint64_t n;

	pthread_mutex_lock(&mutex);
	n = longest;
	pthread_mutex_unlock(&mutex);
	return n;
}

/* Wait as long as the test holds diffs. Returns 1: report in the reverse order. */
static int pass(uint64_t length)
{
	int is_reverse;

	pthread_mutex_lock(&mutex);
	if (length > longest)
		longest = length;
	n_held++;
	while (hold)
		pthread_cond_wait(&changed, &mutex);
	n_held--;
	is_reverse = reverse;
	pthread_mutex_unlock(&mutex);
	return is_reverse;
}

/* Find the next bytes of [at, end) that are not 0. Returns 0: there are none. */
static int find(const char *data, uint64_t at, uint64_t end, struct part *part)
{
	while (at < end && !data[at])
		at++;
	if (at >= end)
		return 0;
	part->start = at++;
	part->end = at;
	for (; at < end && at - part->end < GAP; at++)
		if (data[at])
			part->end = at + 1;
	return 1;
}

/* An image that is a clone has its data only in the diff with its parent: this one is. */
int rbd_diff_iterate2(rbd_image_t image, const char *fromsnapname, uint64_t ofs, uint64_t len,
		      uint8_t include_parent, uint8_t whole_object,
		      int (*cb)(uint64_t, size_t, int, void *), void *arg)
{
	static struct part parts[MAX_PARTS];
	int is_reverse = pass(len), rc;
	uint64_t size, end, at;
	const char *data;
	unsigned n = 0;

	rc = fake_rbd_view(image, &data, &size);
	if (rc)
		return rc;
	if (fromsnapname || whole_object || ofs >= size)
		return -EINVAL;
	end = len < size - ofs ? ofs + len : size;
	if (end > FAKE_RBD_BYTES)
		end = FAKE_RBD_BYTES;
	for (at = ofs; include_parent && n < MAX_PARTS && find(data, at, end, &parts[n]);
	     at = parts[n++].end)
		;
	for (unsigned i = 0; i < n && rc >= 0; i++) {
		const struct part *part = &parts[is_reverse ? n - 1 - i : i];

		rc = cb(part->start, part->end - part->start, 1, arg);
		/* what was discarded is reported as missing */
		if (rc >= 0 && part->end < end)
			rc = cb(part->end, GAP < end - part->end ? GAP : 1, 0, arg);
	}
	return rc < 0 ? rc : 0;
}
