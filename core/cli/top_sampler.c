/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gn_top_sampler {
	const struct gn_stat_view *view;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asked, stopping;  /* set by the caller */
	json_t *list, *silent; /* NULL: taken */
	int fd;
};

static void *run(void *arg)
{
	struct gn_top_sampler *s = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping) {
		json_t *list, *silent;
		int error;

		if (!s->asked) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		silent = json_array();
		list = gn_stat_view_ask(s->view, silent, &error);
		pthread_mutex_lock(&s->lock);
		json_decref(s->list);
		json_decref(s->silent);
		s->list = list;
		s->silent = silent;
		s->asked = false;
		if (write(s->fd, &one, sizeof(one)) < 0)
			s->stopping = true;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int start_thread(struct gn_top_sampler *s)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int gn_top_sampler_start(const struct gn_stat_view *view, struct gn_top_sampler **sampler_p,
			 int *fd_p)
{
	struct gn_top_sampler *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->view = view;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->fd < 0 ? -errno : start_thread(s);
	if (rc) {
		if (s->fd >= 0)
			close(s->fd);
		pthread_cond_destroy(&s->changed);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return rc;
	}
	*sampler_p = s;
	*fd_p = s->fd;
	return 0;
}

void gn_top_sampler_ask(struct gn_top_sampler *s)
{
	pthread_mutex_lock(&s->lock);
	s->asked = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

bool gn_top_sampler_take(struct gn_top_sampler *s, json_t **list_p, json_t **silent_p)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	if (read(s->fd, &n, sizeof(n)) < 0)
		n = 0;
	*list_p = s->list;
	*silent_p = s->silent;
	s->list = s->silent = NULL;
	pthread_mutex_unlock(&s->lock);
	return *list_p != NULL;
}

void gn_top_sampler_stop(struct gn_top_sampler **sampler_p)
{
	struct gn_top_sampler *s = *sampler_p;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	json_decref(s->list);
	json_decref(s->silent);
	close(s->fd);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	*sampler_p = NULL;
}
