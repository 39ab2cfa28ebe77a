/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_fd.c - descriptors, read and write, eventfd, timerfd, pipes, signalfd, pidfd; os_epoll.c has
 * poll() and epoll
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "disk.h"

/* -- open files -- */

static struct sim_file *all_files;

void *sim_file_new(const struct sim_file_ops *ops, size_t bytes, int flags)
{
	struct sim_file *file = sim_host_alloc(bytes);

	file->ops = ops;
	file->refs = 1;
	file->flags = flags;
	file->next = all_files;
	file->at = &all_files;
	if (all_files)
		all_files->at = &file->next;
	all_files = file;
	return file;
}

void sim_file_get(struct sim_file *file)
{
	file->refs++;
}

void sim_file_put(struct sim_file *file)
{
	if (--file->refs != 0)
		return;
	*file->at = file->next;
	if (file->next)
		file->next->at = file->at;
	sim_epoll_forget(file);
	if (file->ops->close)
		file->ops->close(file);
	sim_host_free(file);
}

bool sim_files_left(char *text, size_t bytes)
{
	size_t n = 0;

	for (const struct sim_file *file = all_files; file && n < bytes; file = file->next)
		n += (size_t)snprintf(text + n, bytes - n, "%s %s %u", n != 0 ? "," : "",
				      file->ops->kind, file->refs);
	return all_files != NULL;
}

void sim_file_changed(struct sim_file *file)
{
	file->changes++;
	sim_changed();
}

uint32_t sim_file_events(struct sim_file *file)
{
	return file->ops->poll ? file->ops->poll(file) : POLLIN | POLLOUT;
}

uint64_t sim_file_changes(const struct sim_file *file)
{
	return file->ops->count_changes ? file->ops->count_changes(file) : file->changes;
}

/* -- descriptors -- */

/* Descriptors 0 to 2 belong to the simulator itself. */
static int free_fd(struct sim_proc *proc, int from)
{
	for (int fd = from; fd < (int)SIM_FDS; fd++)
		if (!proc->fds[fd].file && fd > 2)
			return fd;
	return -1;
}

static int new_fd_from(struct sim_file *file, bool cloexec, int from)
{
	struct sim_proc *proc = sim_proc_self();
	int fd = free_fd(proc, from);

	if (fd < 0) {
		sim_file_put(file);
		errno = EMFILE;
		return -1;
	}
	proc->fds[fd] = (struct sim_fd){file, cloexec};
	sim_note((uint64_t)fd << 8 | 1);
	return fd;
}

int sim_fd_new(struct sim_file *file, bool cloexec)
{
	return new_fd_from(file, cloexec, 3);
}

struct sim_file *sim_fd_file(int fd)
{
	struct sim_proc *proc = sim_proc_self();

	if (fd >= 0 && fd < (int)SIM_FDS && proc->fds[fd].file)
		return proc->fds[fd].file;
	errno = EBADF;
	return NULL;
}

struct sim_file *sim_call_file(int fd)
{
	sim_call();
	return sim_fd_file(fd);
}

static int close_fd(struct sim_proc *proc, int fd)
{
	struct sim_file *file;

	if (fd < 0 || fd >= (int)SIM_FDS || !proc->fds[fd].file)
		return -EBADF;
	file = proc->fds[fd].file;
	proc->fds[fd].file = NULL;
	sim_file_put(file);
	return 0;
}

const char *sim_fd_kind(const struct sim_proc *proc, int fd)
{
	return proc->fds[fd].file ? proc->fds[fd].file->ops->kind : NULL;
}

void sim_fds_close_all(struct sim_proc *proc)
{
	for (int fd = 0; fd < (int)SIM_FDS; fd++)
		if (proc->fds[fd].file)
			close_fd(proc, fd);
}

bool sim_fds_close_one(struct sim_proc *proc, uint32_t before)
{
	for (int fd = 0; fd < (int)SIM_FDS; fd++)
		if (proc->fds[fd].file && before-- == 0)
			return close_fd(proc, fd) == 0;
	return false;
}

int __wrap_close(int fd)
{
	sim_call();
	sim_note((uint64_t)fd << 8 | 2);
	return (int)sim_result(close_fd(sim_proc_self(), fd));
}

static int duplicate(struct sim_file *file, bool cloexec, int from)
{
	sim_file_get(file);
	return new_fd_from(file, cloexec, from);
}

int __wrap_fcntl(int fd, int command, ...)
{
	struct sim_file *file;
	va_list ap;
	long arg;

	va_start(ap, command);
	arg = va_arg(ap, long);
	va_end(ap);
	file = sim_call_file(fd); /* another thread may have closed it at this point */
	if (!file)
		return -1;
	switch (command) {
	case F_GETFD:
		return sim_proc_self()->fds[fd].cloexec ? FD_CLOEXEC : 0;
	case F_SETFD:
		sim_proc_self()->fds[fd].cloexec = arg & FD_CLOEXEC;
		return 0;
	case F_GETFL:
		return file->flags;
	case F_SETFL:
		file->flags = (file->flags & ~(O_NONBLOCK | O_APPEND)) |
			      ((int)arg & (O_NONBLOCK | O_APPEND));
		return 0;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return duplicate(file, command == F_DUPFD_CLOEXEC, (int)arg);
	default:
		return (int)sim_result(file->ops->fcntl ? file->ops->fcntl(file, command, arg)
							: -EINVAL);
	}
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct sim_file *file;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	file = sim_call_file(fd); /* another thread may have closed it at this point */
	if (!file)
		return -1;
	return (int)sim_result(file->ops->ioctl ? file->ops->ioctl(file, request, arg) : -ENOTTY);
}

/* -- waiting -- */

struct wait {
	struct sim_file *file;
	uint32_t events;
};

static bool has_events(void *arg)
{
	const struct wait *wait = arg;

	return (sim_file_events(wait->file) & (wait->events | POLLHUP | POLLERR)) != 0;
}

/*
 * Called after -EAGAIN: wait for the events unless O_NONBLOCK is set. Returns true if the caller
 * must try again.
 */
static bool may_retry(struct sim_file *file, uint32_t events)
{
	struct wait wait = {file, events};

	if (file->flags & O_NONBLOCK)
		return false;
	sim_block(has_events, &wait, SIM_NEVER);
	return true;
}

/* -- read and write -- */

static ssize_t do_read(int fd, void *to, size_t bytes, off_t offset)
{
	struct sim_file *file;
	ssize_t n;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	do
		n = file->ops->read ? file->ops->read(file, to, bytes, offset) : -EINVAL;
	while (n == -EAGAIN && may_retry(file, POLLIN));
	sim_note((uint64_t)n << 8 | 3);
	return sim_result(n);
}

static ssize_t do_write(int fd, const void *from, size_t bytes, off_t offset)
{
	struct sim_file *file;
	ssize_t n;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	do
		n = file->ops->write ? file->ops->write(file, from, bytes, offset) : -EINVAL;
	while (n == -EAGAIN && may_retry(file, POLLOUT));
	sim_note((uint64_t)n << 8 | 4);
	return sim_result(n);
}

ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
	return do_read(fd, to, bytes, -1);
}

ssize_t __wrap_write(int fd, const void *from, size_t bytes)
{
	if (fd == 1 || fd == 2)
		return write(fd, from, bytes);
	return do_write(fd, from, bytes, -1);
}

ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t offset)
{
	return do_read(fd, to, bytes, offset);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	return do_write(fd, from, bytes, offset);
}

/* RWF_DSYNC makes only the data of this write durable. */
static ssize_t write_stable(int fd, const struct iovec *iov, int n, off_t offset)
{
	struct sim_file *file;
	ssize_t rc;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	if (!sim_disk_file(file) || n != 1)
		sim_fail("RWF_DSYNC of %d parts, or of no file", n);
	rc = sim_disk_write(file, iov[0].iov_base, iov[0].iov_len, offset, O_DSYNC);
	sim_note((uint64_t)rc << 8 | 9);
	return sim_result(rc);
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	ssize_t done = 0, got;

	if (flags & RWF_DSYNC)
		return write_stable(fd, iov, n, offset);
	for (int i = 0; i < n; i++) {
		got = do_write(fd, iov[i].iov_base, iov[i].iov_len, offset + done);
		if (got < 0)
			return done != 0 ? done : got;
		done += got;
	}
	return done;
}

/* RWF_NOWAIT fails with EAGAIN instead of waiting. */
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	struct sim_file *file = sim_call_file(fd);
	ssize_t rc;

	if (!file)
		return -1;
	if (n != 1 || offset != -1 || flags != RWF_NOWAIT)
		sim_fail("preadv2 in a way that is not simulated");
	rc = file->ops->read ? file->ops->read(file, iov->iov_base, iov->iov_len, -1) : -EINVAL;
	sim_note((uint64_t)rc << 8 | 3);
	return sim_result(rc);
}

int __wrap_eventfd_write(int fd, eventfd_t value)
{
	return __wrap_write(fd, &value, sizeof(value)) == (ssize_t)sizeof(value) ? 0 : -1;
}

int __wrap_eventfd_read(int fd, eventfd_t *value)
{
	return __wrap_read(fd, value, sizeof(*value)) == (ssize_t)sizeof(*value) ? 0 : -1;
}

int __wrap_fstat(int fd, struct stat *st)
{
	struct sim_file *file;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	memset(st, 0, sizeof(*st));
	if (!file->ops->stat)
		return 0;
	return (int)sim_result(file->ops->stat(file, st));
}

int __wrap_ftruncate(int fd, off_t bytes)
{
	struct sim_file *file;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	return (int)sim_result(file->ops->truncate ? file->ops->truncate(file, bytes) : -EINVAL);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	struct sim_file *file;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	return (int)sim_result(file->ops->allocate ? file->ops->allocate(file, mode, offset, bytes)
						   : -EOPNOTSUPP);
}

static int do_sync(int fd, bool data_only)
{
	struct sim_file *file;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	return (int)sim_result(file->ops->sync ? file->ops->sync(file, data_only) : -EINVAL);
}

int __wrap_fsync(int fd)
{
	return do_sync(fd, false);
}

int __wrap_fdatasync(int fd)
{
	return do_sync(fd, true);
}

/* -- eventfd -- */

struct event_file {
	struct sim_file file;
	uint64_t value;
	bool semaphore;
};

static uint32_t event_poll(struct sim_file *file)
{
	const struct event_file *e = (const struct event_file *)file;

	return (e->value != 0 ? POLLIN : 0) | (e->value < UINT64_MAX - 1 ? POLLOUT : 0);
}

static ssize_t event_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	struct event_file *e = (struct event_file *)file;
	uint64_t value = e->semaphore && e->value != 0 ? 1 : e->value;

	(void)offset;
	if (bytes < sizeof(value))
		return -EINVAL;
	if (value == 0)
		return -EAGAIN;
	e->value -= value;
	memcpy(to, &value, sizeof(value));
	sim_file_changed(file);
	return sizeof(value);
}

static ssize_t event_write(struct sim_file *file, const void *from, size_t bytes, off_t offset)
{
	struct event_file *e = (struct event_file *)file;
	uint64_t value;

	(void)offset;
	if (bytes != sizeof(value))
		return -EINVAL;
	memcpy(&value, from, sizeof(value));
	if (value > UINT64_MAX - 1 - e->value)
		return -EAGAIN;
	e->value += value;
	sim_file_changed(file);
	return sizeof(value);
}

static const struct sim_file_ops event_ops = {
	.kind = "eventfd", .poll = event_poll, .read = event_read, .write = event_write};

int __wrap_eventfd(unsigned value, int flags)
{
	struct event_file *e;

	sim_call();
	if (sim_memory_fails())
		return (int)sim_result(-ENOMEM);
	e = sim_file_new(&event_ops, sizeof(*e), O_RDWR | (flags & EFD_NONBLOCK ? O_NONBLOCK : 0));
	e->value = value;
	e->semaphore = flags & EFD_SEMAPHORE;
	return sim_fd_new(&e->file, flags & EFD_CLOEXEC);
}

/* -- timerfd -- */

struct timer_file {
	struct sim_file file;
	uint64_t at_ns, interval_ns; /* 0: not set */
};

uint64_t sim_ns_of(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
}

static uint32_t timer_poll(struct sim_file *file)
{
	const struct timer_file *t = (const struct timer_file *)file;

	if (t->at_ns == 0)
		return 0;
	if (t->at_ns <= sim_now())
		return POLLIN;
	sim_wake_at(t->at_ns);
	return 0;
}

static ssize_t timer_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	struct timer_file *t = (struct timer_file *)file;
	uint64_t n = 1;

	(void)offset;
	if (bytes < sizeof(n))
		return -EINVAL;
	if (!timer_poll(file))
		return -EAGAIN;
	if (t->interval_ns != 0)
		n += (sim_now() - t->at_ns) / t->interval_ns;
	t->at_ns = t->interval_ns != 0 ? t->at_ns + n * t->interval_ns : 0;
	memcpy(to, &n, sizeof(n));
	sim_file_changed(file);
	return sizeof(n);
}

/* The timer expires without a call. A later read or setting clears it, and counts as a change. */
static uint64_t timer_changes(const struct sim_file *file)
{
	const struct timer_file *t = (const struct timer_file *)file;

	return file->changes + (t->at_ns != 0 && t->at_ns <= sim_now());
}

static const struct sim_file_ops timer_ops = {
	.kind = "timerfd", .poll = timer_poll, .read = timer_read, .count_changes = timer_changes};

int __wrap_timerfd_create(int clock, int flags)
{
	struct timer_file *t;

	sim_call();
	if (clock != CLOCK_MONOTONIC)
		sim_fail("timerfd of clock %d", clock);
	t = sim_file_new(&timer_ops, sizeof(*t), O_RDWR | (flags & TFD_NONBLOCK ? O_NONBLOCK : 0));
	return sim_fd_new(&t->file, flags & TFD_CLOEXEC);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *its, struct itimerspec *old)
{
	struct timer_file *t;
	uint64_t ns;

	sim_call();
	t = (struct timer_file *)sim_fd_file(fd);
	if (!t || old)
		return (int)sim_result(!t ? -EBADF : -EINVAL);
	ns = sim_ns_of(&its->it_value);
	t->at_ns = ns == 0 ? 0 : flags & TFD_TIMER_ABSTIME ? ns : sim_now() + ns;
	t->interval_ns = sim_ns_of(&its->it_interval);
	sim_file_changed(&t->file);
	return 0;
}

int __wrap_timerfd_gettime(int fd, struct itimerspec *its)
{
	const struct timer_file *t;
	uint64_t ns;

	sim_call();
	t = (const struct timer_file *)sim_fd_file(fd);
	if (!t)
		return (int)sim_result(-EBADF);
	ns = t->at_ns == 0 ? 0 : t->at_ns > sim_now() ? t->at_ns - sim_now() : 1;
	its->it_value = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	its->it_interval = (struct timespec){(time_t)(t->interval_ns / 1000000000u),
					     (long)(t->interval_ns % 1000000000u)};
	return 0;
}

/* -- pipes -- */

#define PIPE 4096u

struct pipe_ring {
	uint32_t refs, head, n;
	uint8_t bytes[PIPE];
	bool reader, writer;
};
struct pipe_file {
	struct sim_file file;
	struct pipe_ring *ring;
	bool writes;
};

static uint32_t pipe_poll(struct sim_file *file)
{
	const struct pipe_file *p = (const struct pipe_file *)file;

	if (p->writes)
		return (p->ring->n < PIPE ? POLLOUT : 0) | (p->ring->reader ? 0 : POLLERR);
	return (p->ring->n != 0 ? POLLIN : 0) | (p->ring->writer ? 0 : POLLHUP);
}

static int pipe_fcntl(struct sim_file *file, int command, long arg)
{
	(void)file;
	(void)arg;
	return command == F_GETPIPE_SZ ? (int)PIPE : -EINVAL;
}

static ssize_t pipe_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	struct pipe_ring *ring = ((struct pipe_file *)file)->ring;
	size_t n = 0;

	(void)offset;
	for (; n < bytes && ring->n != 0; n++, ring->n--)
		((uint8_t *)to)[n] = ring->bytes[ring->head++ % PIPE];
	if (n == 0 && ring->writer)
		return -EAGAIN;
	sim_file_changed(file);
	return (ssize_t)n;
}

static ssize_t pipe_write(struct sim_file *file, const void *from, size_t bytes, off_t offset)
{
	struct pipe_ring *ring = ((struct pipe_file *)file)->ring;
	size_t n = 0;

	(void)offset;
	if (!ring->reader)
		return -EPIPE;
	for (; n < bytes && ring->n < PIPE; n++)
		ring->bytes[(ring->head + ring->n++) % PIPE] = ((const uint8_t *)from)[n];
	if (n == 0)
		return -EAGAIN;
	sim_file_changed(file);
	return (ssize_t)n;
}

static void pipe_close(struct sim_file *file)
{
	struct pipe_file *p = (struct pipe_file *)file;

	if (p->writes)
		p->ring->writer = false;
	else
		p->ring->reader = false;
	sim_changed();
	if (--p->ring->refs == 0)
		sim_host_free(p->ring);
}

static const struct sim_file_ops pipe_ops = {.kind = "pipe",
					     .poll = pipe_poll,
					     .read = pipe_read,
					     .write = pipe_write,
					     .fcntl = pipe_fcntl,
					     .close = pipe_close};

int __wrap_pipe2(int fds[2], int flags)
{
	struct pipe_ring *ring = sim_host_alloc(sizeof(*ring));
	int kept = flags & O_NONBLOCK;

	sim_call();
	*ring = (struct pipe_ring){.refs = 2, .reader = true, .writer = true};
	for (int i = 0; i < 2; i++) {
		struct pipe_file *p = sim_file_new(&pipe_ops, sizeof(*p),
						   kept | (i ? O_WRONLY : O_RDONLY));

		p->ring = ring;
		p->writes = i == 1;
		fds[i] = sim_fd_new(&p->file, flags & O_CLOEXEC);
		if (fds[i] < 0 && i == 1)
			close_fd(sim_proc_self(), fds[0]);
		if (fds[i] < 0)
			return -1;
	}
	return 0;
}

/* -- signalfd, pidfd -- */

struct signal_file {
	struct sim_file file;
	struct sim_proc *proc;
};

static uint32_t signal_poll(struct sim_file *file)
{
	return ((struct signal_file *)file)->proc->pending_signals != 0 ? POLLIN : 0;
}

static ssize_t signal_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	struct sim_proc *proc = ((struct signal_file *)file)->proc;
	struct signalfd_siginfo info = {0};

	(void)offset;
	if (bytes < sizeof(info))
		return -EINVAL;
	if (proc->pending_signals == 0)
		return -EAGAIN;
	info.ssi_signo = (uint32_t)__builtin_ctz(proc->pending_signals);
	proc->pending_signals &= proc->pending_signals - 1;
	memcpy(to, &info, sizeof(info));
	sim_file_changed(file);
	return sizeof(info);
}

static const struct sim_file_ops signal_ops = {
	.kind = "signalfd", .poll = signal_poll, .read = signal_read};

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
	struct signal_file *s;

	(void)set;
	sim_call();
	if (fd != -1)
		sim_fail("signalfd of an old descriptor");
	s = sim_file_new(&signal_ops, sizeof(*s),
			 O_RDONLY | (flags & SFD_NONBLOCK ? O_NONBLOCK : 0));
	s->proc = sim_proc_self();
	return sim_fd_new(&s->file, flags & SFD_CLOEXEC);
}

struct pid_file {
	struct sim_file file;
	bool ended;
};

static uint32_t pid_poll(struct sim_file *file)
{
	return ((struct pid_file *)file)->ended ? POLLIN : 0;
}

static const struct sim_file_ops pid_ops = {.kind = "pidfd", .poll = pid_poll};

/* All pidfds of a process share one open file, which the process references until it has ended. */
int sim_pidfd_open(pid_t pid)
{
	struct sim_proc *proc = sim_proc_find(pid);

	if (!proc || !proc->alive)
		return (int)sim_result(-ESRCH);
	if (!proc->pidfd)
		proc->pidfd = sim_file_new(&pid_ops, sizeof(struct pid_file), O_RDWR);
	sim_file_get(proc->pidfd);
	return sim_fd_new(proc->pidfd, true);
}

void sim_pidfd_end(struct sim_proc *proc)
{
	if (!proc->pidfd)
		return;
	((struct pid_file *)proc->pidfd)->ended = true;
	sim_file_changed(proc->pidfd);
	sim_file_put(proc->pidfd);
	proc->pidfd = NULL;
}
