/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_closer.c - closes descriptors, in a thread of the device, whose open files another user also
 * holds or has held.
 *
 * The last close(2) of a socket can block for the time set by SO_LINGER, and closing a Unix socket
 * closes the descriptors in the messages that no process has received. So another user could block
 * a thread that closes descriptors. The closer thread must not block either. It uses a second
 * thread, the holder: when a thread ends, the kernel closes its descriptors without lingering.
 *
 *      any thread    closer                       holder
 *      queue fds --> start the holder ----------> copy the descriptor table, keep only fds
 *                    close fds, not the last <--- ready
 *                    go ------------------------> end: the kernel closes fds
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm_comch.h"

#ifndef SYS_close_range /* Linux 5.9 */
#define SYS_close_range 436
#endif
#define UNSHARE 2u /* value of CLOSE_RANGE_UNSHARE */

struct batch {
	struct batch *next;
	struct comch_user *user;
	unsigned int n;
	int fds[];
};

struct comch_closer {
	struct comch_device *dev;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct batch *first, **last;
	bool ends;
};

struct holder {
	const struct batch *batch; /* descriptors to close, sorted */
	sem_t ready, go;
};

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

/* Give this thread its own descriptor table with only the descriptors of the batch. */
static void keep_only(const struct batch *batch)
{
	unsigned int next = (unsigned int)batch->fds[batch->n - 1] + 1;

	/*
	 * UNSHARE: copy the table, because the descriptors must stay open in that of the other
	 * threads
	 */
	if (syscall(SYS_close_range, next, ~0u, UNSHARE))
		return;
	for (unsigned int i = batch->n; i-- > 0; next = (unsigned int)batch->fds[i]) {
		unsigned int after = (unsigned int)batch->fds[i] + 1;

		if (after < next)
			syscall(SYS_close_range, after, next - 1, 0);
	}
	if (next > 0)
		syscall(SYS_close_range, 0, next - 1, 0);
}

static void *hold(void *arg)
{
	struct holder *holder = arg;

	keep_only(holder->batch);
	sem_post(&holder->ready);
	wait_for(&holder->go);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static void close_batch(struct batch *batch)
{
	struct holder holder = {.batch = batch};
	pthread_t thread;
	bool held;

	qsort(batch->fds, batch->n, sizeof(batch->fds[0]), compare);
	sem_init(&holder.ready, 0, 0);
	sem_init(&holder.go, 0, 0);
	held = pthread_create(&thread, NULL, hold, &holder) == 0;
	if (held)
		wait_for(&holder.ready);
	comch_close_fds(batch->fds, batch->n);
	if (held) {
		sem_post(&holder.go);
		/* pthread_join() returns before the kernel closes the table of the thread */
		pthread_join(thread, NULL);
	}
	sem_destroy(&holder.ready);
	sem_destroy(&holder.go);
}

/* Merge all batches of a list. Returns NULL if out of memory. */
static struct batch *merge(const struct batch *list)
{
	unsigned int n = 0;
	struct batch *all;

	for (const struct batch *b = list; b; b = b->next)
		n += b->n;
	all = malloc(sizeof(*all) + n * sizeof(all->fds[0]));
	if (!all)
		return NULL;
	*all = (struct batch){.next = NULL};
	for (; list; list = list->next) {
		memcpy(all->fds + all->n, list->fds, list->n * sizeof(list->fds[0]));
		all->n += list->n;
	}
	return all;
}

/*
 * Close all queued descriptors with one holder, because starting a holder takes time: a peer that
 * reconnects in a loop must not queue descriptors faster than this thread closes them.
 */
static void close_all(struct batch *list)
{
	struct batch *all = merge(list), *next;

	if (all)
		close_batch(all);
	for (; list; list = next) {
		next = list->next;
		if (!all)
			close_batch(list);
		comch_fds_sub(list->user, list->n);
		free(list);
	}
	free(all);
}

static void *run(void *arg)
{
	struct comch_closer *closer = arg;
	struct batch *list;

	for (;;) {
		pthread_mutex_lock(&closer->lock);
		while (!closer->first && !closer->ends)
			pthread_cond_wait(&closer->work, &closer->lock);
		list = closer->first;
		closer->first = NULL;
		closer->last = &closer->first;
		pthread_mutex_unlock(&closer->lock);
		if (!list)
			return NULL;
		close_all(list);
		if (__atomic_exchange_n(&closer->dev->paused, 0, __ATOMIC_RELAXED))
			comch_device_kick(closer->dev);
	}
}

int comch_closer_open(struct comch_device *dev, struct comch_closer **closer_p)
{
	struct comch_closer *closer = calloc(1, sizeof(*closer));
	int rc;

	if (!closer)
		return -ENOMEM;
	closer->dev = dev;
	closer->last = &closer->first;
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->work, NULL);
	rc = -pthread_create(&closer->thread, NULL, run, closer);
	if (rc) {
		pthread_cond_destroy(&closer->work);
		pthread_mutex_destroy(&closer->lock);
		free(closer);
		return rc;
	}
	*closer_p = closer;
	return 0;
}

void comch_closer_close(struct comch_closer *closer)
{
	if (!closer)
		return;
	pthread_mutex_lock(&closer->lock);
	closer->ends = true;
	pthread_cond_signal(&closer->work);
	pthread_mutex_unlock(&closer->lock);
	pthread_join(closer->thread, NULL);
	pthread_cond_destroy(&closer->work);
	pthread_mutex_destroy(&closer->lock);
	free(closer);
}

void comch_close_foreign(struct comch_device *dev, struct comch_user *user, const int *fds,
			 unsigned int n)
{
	struct comch_closer *closer = dev->pid == getpid() ? dev->closer : NULL;
	struct batch *batch = NULL;
	unsigned int n_open = comch_count_open(fds, n);

	if (closer && n_open)
		batch = malloc(sizeof(*batch) + n_open * sizeof(batch->fds[0]));
	if (!batch) {
		comch_close_fds(fds, n);
		comch_fds_sub(user, n_open);
		return;
	}
	*batch = (struct batch){.user = user};
	for (unsigned int i = 0; i < n; i++)
		if (fds[i] >= 0)
			batch->fds[batch->n++] = fds[i];
	pthread_mutex_lock(&closer->lock);
	*closer->last = batch;
	closer->last = &batch->next;
	pthread_cond_signal(&closer->work);
	pthread_mutex_unlock(&closer->lock);
}
