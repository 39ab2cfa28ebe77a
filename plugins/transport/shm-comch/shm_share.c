/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_share.c - counts the descriptors that each user makes this process hold.
 *
 * RLIMIT_NOFILE applies to a process, so all its devices count a user together. Counted are the
 * sockets and pidfds of the user's connections, the descriptors that it sent, those of the queues
 * that were created for it, those of gantry_hold() for its memory, and those in messages that it
 * has not read. A descriptor that is queued in shm_closer.c counts until it is closed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "shm_comch.h"

#define FDS_MOST (1u << 30) /* upper bound of a large or unlimited RLIMIT_NOFILE */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct comch_user *users; /* `lock` protects the list and the refs */

static struct comch_user *user_get(uint32_t uid)
{
	struct comch_user *user;

	pthread_mutex_lock(&lock);
	for (user = users; user && user->uid != uid;)
		user = user->next;
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (user) {
			user->uid = uid;
			user->next = users;
			users = user;
		}
	}
	if (user)
		user->refs++;
	pthread_mutex_unlock(&lock);
	return user;
}

static void user_put(struct comch_user *user)
{
	struct comch_user **at = &users;

	if (!user)
		return;
	pthread_mutex_lock(&lock);
	if (--user->refs == 0) {
		while (*at != user)
			at = &(*at)->next;
		*at = user->next;
		free(user);
	}
	pthread_mutex_unlock(&lock);
}

/*
 * Returns the limit of the descriptors of one user. With several users a quarter of RLIMIT_NOFILE
 * is reserved for the other users and for this process, as conns_of_one() does for connections.
 */
static unsigned int fds_of_one(rlim_t limit, unsigned int n_uids)
{
	unsigned int most = limit < FDS_MOST ? (unsigned int)limit : FDS_MOST;

	return n_uids > 1 ? most - (most + 3) / 4 : most;
}

int comch_shares_open(struct comch_device *dev)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	dev->max_fds = fds_of_one(limit.rlim_cur, dev->n_uids);
	dev->other_users = user_get(UINT32_MAX);
	for (unsigned int i = 0; i < dev->n_uids; i++) {
		dev->shares[i].user = user_get(dev->uids[i]);
		if (!dev->shares[i].user)
			return -ENOMEM;
	}
	return dev->other_users ? 0 : -ENOMEM;
}

void comch_shares_close(struct comch_device *dev)
{
	for (unsigned int i = 0; i < COMCH_UIDS; i++)
		user_put(dev->shares[i].user);
	user_put(dev->other_users);
}

struct comch_share *comch_share(struct comch_device *dev, uint32_t uid)
{
	for (unsigned int i = 0; i < dev->n_uids; i++)
		if (dev->uids[i] == uid)
			return &dev->shares[i];
	return NULL;
}

unsigned int comch_fds_held(const struct comch_user *user)
{
	return user ? __atomic_load_n(&user->n_fds, __ATOMIC_RELAXED) : 0;
}

bool comch_fds_add(const struct comch_device *dev, struct comch_user *user, unsigned int n)
{
	return !user || __atomic_add_fetch(&user->n_fds, n, __ATOMIC_RELAXED) <= dev->max_fds;
}

void comch_fds_sub(struct comch_user *user, unsigned int n)
{
	if (user)
		__atomic_sub_fetch(&user->n_fds, n, __ATOMIC_RELAXED);
}

void comch_fds_text(const struct comch_device *dev, const struct comch_user *user,
		    char text[COMCH_REFUSED_TEXT])
{
	snprintf(
		text, COMCH_REFUSED_TEXT,
		"busy: limit of file descriptors=%u reached by uid %u: end sessions, or raise ulimit -n of the "
		"listener",
		dev->max_fds, user->uid);
}
