/* SPDX-License-Identifier: BSD-3-Clause */
/* os_epoll.c - poll() and epoll */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "os.h"

/* -- poll -- */

struct poll_wait {
	struct sim_proc *proc;
	struct pollfd *fds;
	nfds_t n;
};

static int look(struct sim_proc *proc, struct pollfd *fds, nfds_t n)
{
	int found = 0;

	for (nfds_t i = 0; i < n; i++) {
		struct sim_file *file;

		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		file = fds[i].fd < (int)SIM_FDS ? proc->fds[fds[i].fd].file : NULL;
		if (!file)
			fds[i].revents = POLLNVAL;
		else
			fds[i].revents = (short)(sim_file_events(file) &
						 ((uint32_t)fds[i].events | POLLHUP | POLLERR));
		found += fds[i].revents != 0;
	}
	return found;
}

static bool poll_ready(void *arg)
{
	const struct poll_wait *wait = arg;

	return look(wait->proc, wait->fds, wait->n) != 0;
}

static int poll_for(struct pollfd *fds, nfds_t n, uint64_t ns)
{
	struct poll_wait wait = {sim_proc_self(), fds, n};
	uint64_t deadline = ns == SIM_NEVER ? SIM_NEVER : sim_now() + ns;

	sim_call();
	if (ns != 0 && !poll_ready(&wait))
		sim_block(poll_ready, &wait, deadline);
	return look(wait.proc, fds, n);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return poll_for(fds, n, timeout_ms < 0 ? SIM_NEVER : (uint64_t)timeout_ms * 1000000u);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *signals)
{
	(void)signals;
	return poll_for(fds, n, !timeout ? SIM_NEVER : sim_ns_of(timeout));
}

/* -- epoll -- */

#define WATCHES 128u

struct watch {
	struct sim_file *file; /* NULL: a free slot */
	int fd;
	struct epoll_event event;
	uint64_t seen; /* EPOLLET: value of sim_file_changes() at the last report */
};

struct epoll_file {
	struct sim_file file;
	struct epoll_file *next; /* list of all epoll files */
	struct watch watches[WATCHES];
	uint32_t n, turn;
};

static struct epoll_file *all_epolls;

/* An epoll that is watched itself changes with each file that it watches. */
static uint64_t epoll_changes(const struct sim_file *file)
{
	const struct epoll_file *e = (const struct epoll_file *)file;
	uint64_t n = e->file.changes;

	for (uint32_t i = 0; i < e->n; i++)
		if (e->watches[i].file)
			n += sim_file_changes(e->watches[i].file);
	return n;
}

/* Remove a watch: epoll_changes() does not decrease. */
static void remove_watch(struct epoll_file *e, struct watch *w)
{
	e->file.changes += sim_file_changes(w->file);
	w->file = NULL;
}

/* Remove all watches of a file whose last reference was dropped. */
void sim_epoll_forget(const struct sim_file *file)
{
	for (struct epoll_file *e = all_epolls; e; e = e->next)
		for (uint32_t i = 0; i < e->n; i++)
			if (e->watches[i].file == file)
				remove_watch(e, &e->watches[i]);
}

/* Returns the events that the watch would report; with EPOLLET, only new events. */
static uint32_t watch_events(const struct watch *w)
{
	uint32_t events;

	if (!w->file)
		return 0;
	events = sim_file_events(w->file) & (w->event.events | EPOLLHUP | EPOLLERR);
	if ((w->event.events & EPOLLET) && w->seen == sim_file_changes(w->file))
		return 0;
	return events;
}

static bool epoll_ready(void *arg)
{
	const struct epoll_file *e = arg;

	for (uint32_t i = 0; i < e->n; i++)
		if (watch_events(&e->watches[i]) != 0)
			return true;
	return false;
}

static uint32_t epoll_poll(struct sim_file *file)
{
	return epoll_ready(file) ? POLLIN : 0;
}

static void epoll_close(struct sim_file *file)
{
	struct epoll_file **at = &all_epolls;

	while (*at != (struct epoll_file *)file)
		at = &(*at)->next;
	*at = (*at)->next;
}

static const struct sim_file_ops epoll_ops = {
	.kind = "epoll", .poll = epoll_poll, .close = epoll_close, .count_changes = epoll_changes};

int __wrap_epoll_create1(int flags)
{
	struct epoll_file *e;

	sim_call();
	e = sim_file_new(&epoll_ops, sizeof(*e), O_RDWR);
	e->next = all_epolls;
	all_epolls = e;
	return sim_fd_new(&e->file, flags & EPOLL_CLOEXEC);
}

static struct epoll_file *find_epoll(int fd)
{
	struct sim_file *file = sim_fd_file(fd);

	if (file && file->ops != &epoll_ops) {
		errno = EINVAL;
		file = NULL;
	}
	return (struct epoll_file *)file;
}

static struct watch *find_watch(struct epoll_file *e, int fd, const struct sim_file *file)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (e->watches[i].file == file && e->watches[i].fd == fd)
			return &e->watches[i];
	return NULL;
}

static int add_watch(struct epoll_file *e, int fd, struct sim_file *file,
		     const struct epoll_event *event)
{
	struct watch *w = find_watch(e, 0, NULL);

	for (uint32_t i = 0; !w && i < e->n; i++)
		if (!e->watches[i].file)
			w = &e->watches[i];
	if (!w) {
		if (e->n == WATCHES)
			sim_fail("epoll: more than %u watches", WATCHES);
		w = &e->watches[e->n++];
	}
	*w = (struct watch){
		.file = file, .fd = fd, .event = *event, .seen = sim_file_changes(file) - 1};
	return 0;
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct epoll_file *e;
	struct sim_file *file;
	struct watch *w;

	sim_call();
	e = find_epoll(epfd);
	file = e ? sim_fd_file(fd) : NULL;
	if (!file)
		return -1;
	w = find_watch(e, fd, file);
	if ((op == EPOLL_CTL_ADD) == (w != NULL))
		return (int)sim_result(w ? -EEXIST : -ENOENT);
	sim_changed();
	e->file.changes++;
	if (op == EPOLL_CTL_ADD)
		return add_watch(e, fd, file, event);
	if (op == EPOLL_CTL_DEL)
		remove_watch(e, w);
	else
		*w = (struct watch){.file = file,
				    .fd = fd,
				    .event = *event,
				    .seen = sim_file_changes(file) - 1};
	return 0;
}

/* Reports begin at a different watch each time, so that each watch is reported eventually. */
static int collect(struct epoll_file *e, struct epoll_event *events, int max)
{
	int found = 0;
	uint32_t first = e->n != 0 ? e->turn++ % e->n : 0;

	for (uint32_t k = 0; k < e->n && found < max; k++) {
		struct watch *w = &e->watches[(first + k) % e->n];
		uint32_t what = watch_events(w);

		if (what == 0)
			continue;
		w->seen = sim_file_changes(w->file);
		if (w->event.events & EPOLLONESHOT)
			w->event.events = 0;
		events[found++] = (struct epoll_event){.events = what, .data = w->event.data};
	}
	return found;
}

static int epoll_wait_until(int epfd, struct epoll_event *events, int max, uint64_t deadline)
{
	struct epoll_file *e;
	int n;

	sim_call();
	e = find_epoll(epfd);
	if (!e)
		return -1;
	if (deadline > sim_now() && !epoll_ready(e))
		sim_block(epoll_ready, e, deadline);
	n = collect(e, events, max);
	sim_note((uint64_t)n << 8 | 5);
	return n;
}

int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	return epoll_wait_until(epfd, events, max,
				timeout_ms < 0 ? SIM_NEVER
					       : sim_now() + (uint64_t)timeout_ms * 1000000u);
}

int __wrap_epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *ts,
			const sigset_t *set)
{
	(void)set;
	return epoll_wait_until(epfd, events, max, !ts ? SIM_NEVER : sim_now() + sim_ns_of(ts));
}
