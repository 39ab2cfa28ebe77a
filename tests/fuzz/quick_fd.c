/* SPDX-License-Identifier: BSD-3-Clause */
/* quick_fd.c - see quick_fd.h. A descriptor is FIRST plus its index in the table of descriptors. */
#include "fuzz/quick_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FIRST 0x100000
#define FDS 512
#define FILES 256
#define MEMBERS 64
#define BLOCK 512 /* bytes of st_blocks */

enum kind { FREE, EVENT, TIMER, EPOLL, MEMORY, NOTHING /* /dev/null */, OTHER };

struct member {
	int fd;
	struct epoll_event ev;
	uint32_t seen; /* number of writes to fd that an edge-triggered member has reported */
};

/* An open file, to which several descriptors can refer. */
struct quick {
	enum kind kind;
	unsigned n_fds;
	int flags; /* the flags that F_GETFL returns */
	int seals; /* of a memfd */
	uint64_t value;
	uint32_t n_writes;
	uint32_t n_members;
	struct member *members;      /* members of an epoll file */
	off_t size, allocated;       /* of a memfd */
	void *memory;                /* see quick_fd_set_memory() */
	const struct quick_ops *ops; /* operations of a file of the kind OTHER */
};

static struct quick files[FILES];
static struct quick *table[FDS];  /* indexed by descriptor minus FIRST */
static unsigned n_open, n_places; /* open descriptors; entries of the table used so far */
static bool slept;

int __real_close(int fd);
ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __real_write(int fd, const void *buf, size_t len);
int __real_fcntl(int fd, int op, ...);
int __real_open(const char *path, int flags, ...);
ssize_t __real_readlink(const char *path, char *buf, size_t size);
int __real_fstat(int fd, struct stat *st);
int __real_fstatfs(int fd, struct statfs *fs);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_ftruncate(int fd, off_t length);
int __real_fchmod(int fd, mode_t mode);
pid_t __real_getpid(void);
int __wrap_close(int fd);
pid_t __wrap_getpid(void);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
int __wrap_fcntl(int fd, int op, ...);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_readlink(const char *path, char *buf, size_t size);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_eventfd_read(int fd, eventfd_t *value);
int __wrap_eventfd_write(int fd, eventfd_t value);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2]);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_ftruncate(int fd, off_t length);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int fd, int op, int of, struct epoll_event *ev);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);

bool quick_fd_slept(void)
{
	return slept;
}

unsigned quick_fd_count(void)
{
	return n_open;
}

pid_t __wrap_getpid(void)
{
	static pid_t pid;

	return pid ? pid : (pid = __real_getpid());
}

/* A target that uses rewind.h gets the same bytes for each input. */
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	static uint64_t state;
	uint8_t *bytes = buf;

	(void)flags;
	for (size_t i = 0; i < len; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(state >> 56);
	}
	return (ssize_t)len;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

static struct quick *find(int fd)
{
	return fd >= FIRST && fd < FIRST + FDS ? table[fd - FIRST] : NULL;
}

static int add_fd(struct quick *q)
{
	unsigned i = 0;

	while (i < n_places && table[i])
		i++;
	if (i == FDS)
		return fail(EMFILE);
	if (i == n_places)
		n_places++;
	table[i] = q;
	q->n_fds++;
	n_open++;
	return FIRST + (int)i;
}

static int make(enum kind kind, int flags, uint64_t value)
{
	struct quick *q = files;

	while (q < files + FILES && q->kind != FREE)
		q++;
	if (q == files + FILES)
		return fail(ENFILE);
	*q = (struct quick){.kind = kind, .flags = flags, .value = value};
	return add_fd(q);
}

int quick_fd_dup(int fd)
{
	struct quick *q = find(fd);

	return q ? add_fd(q) : fail(EBADF);
}

int quick_fd_make(const struct quick_ops *ops)
{
	int fd = make(OTHER, O_RDWR, 0);

	if (fd >= 0)
		find(fd)->ops = ops;
	return fd;
}

const struct quick_ops *quick_fd_ops(int fd)
{
	const struct quick *q = find(fd);

	return q ? q->ops : NULL;
}

bool quick_fd_is_memory(int fd)
{
	const struct quick *q = find(fd);

	return q && q->kind == MEMORY;
}

void quick_fd_set_memory(int fd, void *memory)
{
	find(fd)->memory = memory;
}

void *quick_fd_memory(int fd)
{
	const struct quick *q = find(fd);

	return q ? q->memory : NULL;
}

int __wrap_eventfd(unsigned value, int flags)
{
	return make(EVENT, O_RDWR | (flags & EFD_NONBLOCK), value);
}

/* Two descriptors that are never ready: the targets send nothing over them. */
int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
	(void)domain;
	(void)type;
	(void)protocol;
	fds[0] = make(EVENT, O_RDWR | O_NONBLOCK, 0);
	fds[1] = make(EVENT, O_RDWR | O_NONBLOCK, 0);
	return 0;
}

int __wrap_timerfd_create(int clock, int flags)
{
	(void)clock;
	(void)flags;
	return make(TIMER, O_RDWR, 0);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old)
{
	(void)flags;
	(void)to;
	(void)old;
	return find(fd) ? 0 : fail(EBADF);
}

/* The memfd has no memory: see quick_map.c. */
int __wrap_memfd_create(const char *name, unsigned flags)
{
	(void)name;
	(void)flags;
	return make(MEMORY, O_RDWR, 0);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	struct quick *q = find(fd);

	if (!q)
		return __real_fallocate(fd, mode, offset, length);
	if (q->size < offset + length)
		q->size = offset + length;
	q->allocated = q->size; /* no caller allocates only a part */
	return 0;
}

int __wrap_ftruncate(int fd, off_t length)
{
	struct quick *q = find(fd);

	if (!q)
		return __real_ftruncate(fd, length);
	q->size = length;
	return 0;
}

int __wrap_fchmod(int fd, mode_t mode)
{
	return find(fd) ? 0 : __real_fchmod(fd, mode);
}

int __wrap_epoll_create1(int flags)
{
	(void)flags;
	return make(EPOLL, O_RDWR, 0);
}

static struct member *find_member(struct quick *epoll, int fd)
{
	for (uint32_t i = 0; i < epoll->n_members; i++)
		if (epoll->members[i].fd == fd)
			return &epoll->members[i];
	return NULL;
}

static void remove_member(struct quick *epoll, int fd)
{
	struct member *m = find_member(epoll, fd);

	if (m) /* keeps the order of the other members */
		memmove(m, m + 1,
			(size_t)(&epoll->members[epoll->n_members--] - m - 1) * sizeof(*m));
}

int __wrap_close(int fd)
{
	struct quick *q = find(fd);

	if (!q)
		return fd >= FIRST && fd < FIRST + FDS ? fail(EBADF) : __real_close(fd);
	for (unsigned i = 0; i < n_places; i++)
		if (table[i] && table[i]->kind == EPOLL)
			remove_member(table[i], fd);
	table[fd - FIRST] = NULL;
	n_open--;
	if (--q->n_fds)
		return 0;
	if (q->kind == OTHER)
		q->ops->close();
	free(q->members);
	q->members = NULL;
	q->kind = FREE;
	return 0;
}

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	struct quick *q = find(fd);

	if (!q)
		return __real_read(fd, buf, len);
	if ((q->kind != EVENT && q->kind != TIMER) || len < sizeof(q->value))
		return fail(EINVAL);
	if (q->value == 0)
		return fail(EAGAIN);
	memcpy(buf, &q->value, sizeof(q->value));
	q->value = 0;
	return sizeof(q->value);
}

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	struct quick *q = find(fd);
	uint64_t n;

	if (!q)
		return __real_write(fd, buf, len);
	if (q->kind != EVENT || len != sizeof(n))
		return fail(EINVAL);
	memcpy(&n, buf, sizeof(n));
	q->value += n;
	q->n_writes++;
	return sizeof(n);
}

int __wrap_eventfd_read(int fd, eventfd_t *value)
{
	return __wrap_read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1;
}

int __wrap_eventfd_write(int fd, eventfd_t value)
{
	return __wrap_write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

int __wrap_fcntl(int fd, int op, ...)
{
	struct quick *q = find(fd);
	va_list ap;
	long arg;

	va_start(ap, op);
	arg = va_arg(ap, long);
	va_end(ap);
	if (!q)
		return __real_fcntl(fd, op, arg);
	switch (op) {
	case F_DUPFD_CLOEXEC:
		return add_fd(q);
	case F_GETFL:
		return q->flags;
	case F_SETFL:
		q->flags = (int)arg;
		return 0;
	case F_SETFD:
		return 0;
	case F_ADD_SEALS:
		q->seals |= (int)arg;
		return q->kind == MEMORY ? 0 : fail(EINVAL);
	case F_GET_SEALS:
		return q->kind == MEMORY ? q->seals : fail(EINVAL);
	default:
		return fail(EINVAL);
	}
}

/* -- paths and attributes -- */

static int fd_of_path(const char *path)
{
	static const char prefix[] = "/proc/self/fd/";

	return strncmp(path, prefix, sizeof(prefix) - 1) == 0 ? atoi(path + sizeof(prefix) - 1)
							      : -1;
}

/* A file that is opened again keeps its flags: no target looks at them. */
int __wrap_open(const char *path, int flags, ...)
{
	struct quick *q = find(fd_of_path(path));
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (q)
		return add_fd(q);
	return strcmp(path, "/dev/null") == 0 ? make(NOTHING, flags & O_ACCMODE, 0)
					      : __real_open(path, flags, mode);
}

ssize_t __wrap_readlink(const char *path, char *buf, size_t size)
{
	static const char *const names[] = {[EVENT] = "anon_inode:[eventfd]",
					    [TIMER] = "anon_inode:[timerfd]",
					    [EPOLL] = "anon_inode:[eventpoll]",
					    [MEMORY] = "/memfd: (deleted)",
					    [NOTHING] = "/dev/null",
					    [OTHER] = "socket:[1]"};
	const struct quick *q = find(fd_of_path(path));
	size_t n;

	if (!q)
		return __real_readlink(path, buf, size);
	n = strlen(names[q->kind]);
	n = n < size ? n : size;
	memcpy(buf, names[q->kind], n);
	return (ssize_t)n;
}

int __wrap_fstat(int fd, struct stat *st)
{
	const struct quick *q = find(fd);

	if (!q)
		return __real_fstat(fd, st);
	*st = (struct stat){.st_mode = q->kind == MEMORY    ? S_IFREG
				       : q->kind == NOTHING ? S_IFCHR
							    : 0,
			    .st_size = q->size,
			    .st_blocks = q->allocated / BLOCK};
	return 0;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	if (!find(fd))
		return __real_fstatfs(fd, fs);
	*fs = (struct statfs){0};
	return 0;
}

int __wrap_epoll_ctl(int fd, int op, int of, struct epoll_event *ev)
{
	struct quick *epoll = find(fd);
	struct member *m;

	if (!epoll || epoll->kind != EPOLL || !find(of))
		abort(); /* a descriptor of the system cannot be a member */
	m = find_member(epoll, of);
	if (op == EPOLL_CTL_ADD ? m != NULL : !m)
		return fail(m ? EEXIST : ENOENT);
	if (op == EPOLL_CTL_DEL) {
		remove_member(epoll, of);
		return 0;
	}
	if (!m) {
		if (!epoll->members)
			epoll->members = calloc(MEMBERS, sizeof(*epoll->members));
		if (!epoll->members || epoll->n_members == MEMBERS)
			abort();
		m = &epoll->members[epoll->n_members++];
	}
	*m = (struct member){.fd = of, .ev = *ev};
	return 0;
}

static uint32_t events_of(const struct quick *q)
{
	uint32_t events = q->kind == EVENT ? EPOLLOUT : 0;

	if (q->kind == OTHER)
		return q->ops->events();
	for (uint32_t i = 0; i < q->n_members && q->kind == EPOLL; i++)
		if (events_of(find(q->members[i].fd)) & q->members[i].ev.events)
			return EPOLLIN;
	return q->value ? events | EPOLLIN : events;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
	struct quick *epoll = find(fd);
	int n = 0;

	if (!epoll || epoll->kind != EPOLL)
		return fail(EBADF);
	for (uint32_t i = 0; i < epoll->n_members && n < max; i++) {
		struct member *m = &epoll->members[i];
		const struct quick *q = find(m->fd);
		uint32_t ready = events_of(q) & (m->ev.events | EPOLLHUP | EPOLLERR);

		if (!ready || (m->ev.events & EPOLLET && m->seen == q->n_writes))
			continue;
		m->seen = q->n_writes;
		events[n++] = (struct epoll_event){.events = ready, .data = m->ev.data};
	}
	slept = n == 0 && timeout_ms != 0;
	return n;
}
