/* SPDX-License-Identifier: BSD-3-Clause */
/* inject.c - the lock, the list of objects, failures on demand and the record of misuse */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "priv.h"

static const char *const fn_names[FV_FNS] = {
#define FV_NAME(name) #name,
	FV_FUNCTIONS(FV_NAME)
#undef FV_NAME
};

static const char *const kind_names[FV_KINDS] = {
	[FV_DEVICE_LIST] = "device list",
	[FV_CONTEXT] = "device context",
	[FV_PD] = "protection domain",
	[FV_MR] = "memory region",
	[FV_COMP_CHANNEL] = "completion channel",
	[FV_CQ] = "completion queue",
	[FV_QP] = "queue pair",
	[FV_EVENT_CHANNEL] = "event channel",
	[FV_ID] = "rdma_cm id",
	[FV_CM_EVENT] = "rdma_cm event not acknowledged",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fv_obj *objs[FV_KINDS];
static struct {
	unsigned calls;
	int nth, err, lasts;
} fns[FV_FNS];
static char misuse[4096], report[8192];
static unsigned n_misuse;
struct fake_counters fv_counters;

void fv_lock(void)
{
	pthread_mutex_lock(&lock);
}

int fv_enter(enum fv_fn fn)
{
	fv_lock();
	fns[fn].calls++;
	if (fns[fn].err == 0 || (fns[fn].nth != FAKE_ALWAYS && --fns[fn].nth != 0))
		return 0;
	int err = fns[fn].err;
	if (fns[fn].lasts)
		fns[fn].nth = FAKE_ALWAYS;
	if (fns[fn].nth == 0)
		fns[fn].err = 0;
	return err;
}

int fv_leave(int err)
{
	pthread_mutex_unlock(&lock);
	return err;
}

int fv_leave_errno(int err)
{
	pthread_mutex_unlock(&lock);
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

void *fv_leave_ptr(void *ptr, int err)
{
	pthread_mutex_unlock(&lock);
	if (err == 0)
		return ptr;
	errno = err;
	return NULL;
}

/* -- misuse -- */

void fv_misuse(const char *fmt, ...)
{
	size_t used = strlen(misuse);
	va_list ap;

	n_misuse++;
	va_start(ap, fmt);
	vsnprintf(misuse + used, sizeof(misuse) - used, fmt, ap);
	va_end(ap);
	used = strlen(misuse);
	if (used + 2 < sizeof(misuse))
		strcpy(misuse + used, "; ");
}

unsigned fake_verbs_forgive(void)
{
	unsigned n;

	fv_lock();
	n = n_misuse;
	n_misuse = 0;
	misuse[0] = '\0';
	return (unsigned)fv_leave((int)n);
}

static size_t add_text(size_t used, const char *what, unsigned n)
{
	int len = n == 0 ? 0
			 : snprintf(report + used, sizeof(report) - used, "%u %s left; ", n, what);

	return len < 0 || used + (size_t)len >= sizeof(report) ? sizeof(report) - 1
							       : used + (size_t)len;
}

const char *fake_verbs_check_clean(void)
{
	size_t used;
	unsigned n, unacked;

	fv_lock();
	strcpy(report, misuse);
	used = strlen(report);
	for (unsigned kind = 0; kind < FV_KINDS; kind++) {
		n = unacked = 0;
		for (struct fv_obj *obj = objs[kind]; obj; obj = obj->next) {
			n += !obj->hidden;
			unacked += obj->unacked;
		}
		used = add_text(used, kind_names[kind], n);
		if (kind != FV_ID) /* each event of an id is an object of its own */
			used = add_text(used, "events not acknowledged", unacked);
	}
	if (used)
		report[used - 2] = '\0';
	fv_leave(0);
	return report;
}

/* -- failures -- */

static int find_fn(const char *name)
{
	for (int fn = 0; fn < FV_FNS; fn++)
		if (!strcmp(fn_names[fn], name))
			return fn;
	fv_misuse("no function is called %s", name);
	return -1;
}

static void fail(const char *function, int nth, int err, int lasts)
{
	int fn;

	fv_lock();
	fn = find_fn(function);
	if (fn >= 0) {
		fns[fn].nth = nth;
		fns[fn].err = err;
		fns[fn].lasts = lasts;
	}
	fv_leave(0);
}

void fake_verbs_fail(const char *function, int nth, int err)
{
	fail(function, nth, err, 0);
}

void fake_verbs_fail_from(const char *function, int nth, int err)
{
	fail(function, nth, err, 1);
}

unsigned fake_verbs_calls(const char *function)
{
	unsigned calls = 0;
	int fn;

	fv_lock();
	fn = find_fn(function);
	if (fn >= 0)
		calls = fns[fn].calls;
	fv_leave(0);
	return calls;
}

void fake_verbs_counters(struct fake_counters *counters)
{
	fv_lock();
	*counters = fv_counters;
	fv_leave(0);
}

/* -- objects -- */

void *fv_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p) {
		fputs("fake verbs: no memory\n", stderr);
		abort();
	}
	return p;
}

void fv_add(enum fv_kind kind, struct fv_obj *obj, void *self)
{
	obj->self = self;
	obj->next = objs[kind];
	obj->link = &objs[kind];
	if (obj->next)
		obj->next->link = &obj->next;
	objs[kind] = obj;
}

void fv_remove(struct fv_obj *obj)
{
	*obj->link = obj->next;
	if (obj->next)
		obj->next->link = obj->link;
}

struct fv_obj *fv_first(enum fv_kind kind)
{
	return objs[kind];
}

int fv_check(enum fv_kind kind, const void *self, const char *function)
{
	for (struct fv_obj *obj = objs[kind]; obj; obj = obj->next)
		if (obj->self == self)
			return 0;
	fv_misuse("%s(): that %s does not exist", function, kind_names[kind]);
	return EINVAL;
}

void fv_check_acked(struct fv_obj *obj, const char *function)
{
	if (obj->unacked)
		fv_misuse("%s(): %u events are not acknowledged, so the real function would block",
			  function, obj->unacked);
}

/* -- bells -- */

int fv_bell_open(struct fv_bell *bell)
{
	bell->rung = 0;
	bell->fd = eventfd(0, EFD_CLOEXEC);
	return bell->fd < 0 ? errno : 0;
}

void fv_bell_close(struct fv_bell *bell)
{
	close(bell->fd);
}

/* Each ring is a new edge for epoll. */
void fv_bell_ring(struct fv_bell *bell)
{
	if (eventfd_write(bell->fd, 1) != 0)
		fv_misuse("a file descriptor of the fake was closed");
	else
		bell->rung = 1;
}

void fv_bell_quiet(struct fv_bell *bell)
{
	eventfd_t value;

	if (bell->rung && eventfd_read(bell->fd, &value) != 0)
		fv_misuse("a file descriptor of the fake was read or closed");
	bell->rung = 0;
}

int fv_bell_wait(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return errno;
	if (flags & O_NONBLOCK)
		return EAGAIN;
	return poll(&pfd, 1, -1) < 0 ? errno : 0;
}

/* -- all devices -- */

void fake_verbs_renumber(void)
{
	fv_lock();
	if (objs[FV_QP] || objs[FV_MR]) {
		fv_misuse("fake_verbs_renumber(): queue pairs or memory regions exist");
	} else {
		fv_qp_renumber();
		fv_memory_renumber();
	}
	fv_leave(0);
}

void fake_verbs_reset(void)
{
	fv_lock();
	fake_cm_spy(NULL);
	fv_cm_reset();
	fv_qp_reset();
	fv_cq_reset();
	fv_memory_reset();
	fv_device_reset();
	fv_wire_reset();
	memset(fns, 0, sizeof(fns));
	memset(&fv_counters, 0, sizeof(fv_counters));
	misuse[0] = '\0';
	n_misuse = 0;
	fv_leave(0);
}
