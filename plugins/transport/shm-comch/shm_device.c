/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_device.c - the device of shm-comch: options, event loop, and the operations of the plugin.
 * shm-comch provides message queues between processes of one machine, as between a host and its
 * DPU, over shared memory.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "shm_comch.h"

#define EVENTS_PER_TURN 64

static const struct gantry_option options[] = {
	{"pci", GANTRY_OPT_STRING, offsetof(struct comch_conf, pci), "00:00.0", 0, 0, NULL, NULL,
	 "Address of the emulated card. Devices with the same dir and pci can connect to each other."},
	{"dir", GANTRY_OPT_STRING, offsetof(struct comch_conf, dir), "", GANTRY_PATH_DIRECTORY, 0,
	 NULL, NULL,
	 "Runtime directory for the sockets, created if missing. Empty: $XDG_RUNTIME_DIR/gantry, for root "
	 "/run/gantry, else /tmp/gantry-UID."},
	{"uids", GANTRY_OPT_STRING, offsetof(struct comch_conf, uids), "", 0, 0, NULL, NULL,
	 "Users, by number, that may be at the other end besides the user of this process: \"0,1000\"."},
	{"max_depth", GANTRY_OPT_INT, offsetof(struct comch_conf, max_depth), "4096", 1, 65536,
	 NULL, NULL, "Largest depth of a queue, in messages."},
	{"ring_slots", GANTRY_OPT_INT, offsetof(struct comch_conf, ring_slots), "4096",
	 COMCH_SLOTS_MIN, COMCH_SLOTS_MAX, NULL, NULL,
	 "Slots of 64 bytes in the ring of a producer whose messages can have data: a power of "
	 "two. The ring of a producer without data has one slot for each message of its depth, "
	 "but no more than ring_slots."},
	{"max_bytes", GANTRY_OPT_SIZE, offsetof(struct comch_conf, max_bytes), "64GiB", 4096,
	 INT64_MAX, NULL, NULL, "Limit of the memory that one peer may export to this device."},
	{"mapped", GANTRY_OPT_BOOL, offsetof(struct comch_conf, mapped), "true", 0, 0, NULL, NULL,
	 "Map imported regions. If false, data moves by remote reads and writes, as with a real card."},
	GANTRY_OPTION_END,
};

int comch_watch_add(struct comch_device *dev, int fd, uint32_t events, struct comch_watch *watch)
{
	struct epoll_event ev = {.events = events, .data.ptr = watch};

	return epoll_ctl(dev->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/*
 * End a watch explicitly: a forked child can hold the file open, so that close(2) alone does not
 * remove it from the epoll set.
 */
void comch_watch_end(struct comch_device *dev, int fd)
{
	if (dev->pid == getpid())
		epoll_ctl(dev->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void comch_watch_close(struct comch_device *dev, int fd)
{
	comch_watch_end(dev, fd);
	close(fd);
}

void comch_device_kick(struct comch_device *dev)
{
	uint64_t one = 1;
	ssize_t n;

	/*
	 * Pairs with comch_progress(). An exchange, because a plain store of one kick could end the
	 * release sequence of another kick: comch_progress() would read the second store, and not
	 * see what the first kick has published.
	 */
	__atomic_exchange_n(&dev->unseen, 1, __ATOMIC_RELEASE);
	n = write(dev->wake, &one, sizeof(one));
	(void)n; /* a full eventfd is readable, so the wake-up is not lost */
}

/* Parse the option `uids`. The first entry is the user of this process. Returns 0 or -EINVAL. */
static int parse_uids(const char *p, uint32_t *uids, unsigned int *n_p)
{
	unsigned int n = 0;

	uids[n++] = geteuid();
	while (p && *p) {
		char *end;
		unsigned long uid = strtoul(p, &end, 10);

		if (end == p || *p < '0' || *p > '9' || uid >= UINT32_MAX || n == COMCH_UIDS ||
		    (*end && *end != ','))
			return -EINVAL;
		uids[n++] = (uint32_t)uid;
		p = *end ? end + 1 : end;
	}
	*n_p = n;
	return 0;
}

static void comch_info(void *device, struct gantry_device_info *info)
{
	const struct comch_device *dev = device;

	*info = (struct gantry_device_info){
		.caps = GANTRY_CAP_RMA | GANTRY_CAP_ORDERED |
			(dev->conf->mapped ? GANTRY_CAP_MAPPED : 0),
		.max_depth = (uint32_t)dev->conf->max_depth,
		.max_inline = COMCH_INLINE_MAX,
		.max_regions = COMCH_REGIONS,
		.max_region_bytes = dev->conf->max_bytes,
	};
	snprintf(info->detail, sizeof(info->detail), "%.95s", dev->rundir.path);
}

/*
 * Compare the runtime directory with this machine. `gantry check` never opens the device, which
 * creates the directory and removes stale sockets from it.
 */
static void look(const struct comch_conf *conf, struct gantry_check *check)
{
	struct comch_device dev = {
		.host = check->host, .conf = conf, .only_looks = true, .rundir.fd = -1};

	if (!parse_uids(conf->uids, dev.uids, &dev.n_uids))
		check->status = comch_rundir_open(&dev, &dev.rundir);
	if (!check->status)
		check->status = -EAGAIN;
	comch_rundir_close(&dev.rundir);
	comch_info(&dev, check->info);
}

static void comch_check(const void *arg, struct gantry_check *check)
{
	const struct comch_conf *conf = arg;
	uint32_t uids[COMCH_UIDS], slots = (uint32_t)conf->ring_slots;
	unsigned int n;

	if (slots & (slots - 1))
		gantry_option_fault(check, "ring_slots",
				    "%u is not a power of two; write such as %u", slots,
				    1u << (31 - __builtin_clz(slots)));
	if (parse_uids(conf->uids, uids, &n))
		gantry_option_fault(check, "uids",
				    "is no list of at most %u numbers; write such as \"0,1000\"",
				    COMCH_UIDS - 1);
	comch_rundir_check(conf, check);
	check->max_connections = COMCH_CONNS;
	if (check->flags & GANTRY_CHECK_MACHINE)
		look(conf, check);
}

/*
 * Enable membarrier(2), if the kernel supports it. Then a consumer that goes to sleep issues the
 * fence for both sides, and a producer needs none for each message.
 */
static bool use_membarrier(void)
{
	long can = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return can > 0 && (can & MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	       syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

static int open_fds(struct comch_device *dev)
{
	dev->epoll = epoll_create1(EPOLL_CLOEXEC);
	dev->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	dev->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (dev->epoll < 0 || dev->wake < 0 || dev->reserve < 0)
		return -errno;
	return comch_watch_add(dev, dev->wake, EPOLLIN, &dev->watch);
}

static void comch_close(void *device)
{
	struct comch_device *dev = device;
	struct comch_conn *conn, *next_conn;
	struct comch_listener *l, *next_l;

	comch_each (conn, next_conn, &dev->conns)
		comch_disconnect(conn);
	comch_each (l, next_l, &dev->listeners)
		comch_unlisten(l);
	comch_closer_close(dev->closer);
	comch_shares_close(dev);
	comch_rundir_close(&dev->rundir);
	tc_cells_fini(&dev->payload);
	if (dev->epoll >= 0)
		close(dev->epoll);
	if (dev->wake >= 0)
		close(dev->wake);
	if (dev->reserve >= 0)
		close(dev->reserve);
	free(dev);
}

static int open_counters(struct comch_device *dev)
{
	const struct gantry_host *host = dev->host;
	int rc = -ENOMEM;

	dev->protocol_errors = host->counter(host, "protocol_errors");
	dev->connections = host->counter(host, "connections");
	if (dev->protocol_errors && dev->connections)
		rc = tc_cells_init(&dev->payload, host, "payload_bytes");
	if (rc)
		gantry_log_error(host, "cannot open the device: %s", strerror(-rc));
	return rc;
}

static int comch_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	struct comch_device *dev = calloc(1, sizeof(*dev));
	int rc;

	if (!dev) {
		gantry_log_error(host, "cannot open the device: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	dev->host = host;
	dev->conf = conf;
	dev->pid = getpid();
	dev->watch = (struct comch_watch){COMCH_W_DEVICE, dev};
	dev->rundir.fd = dev->epoll = dev->wake = dev->reserve = -1;
	LIST_INIT(&dev->listeners);
	LIST_INIT(&dev->conns);
	LIST_INIT(&dev->reap_list);
	LIST_INIT(&dev->reap_list_listeners);
	rc = open_counters(dev);
	if (!rc)
		rc = parse_uids(dev->conf->uids, dev->uids, &dev->n_uids);
	if (!rc) {
		rc = comch_shares_open(dev);
		if (rc)
			gantry_log_error(host, "cannot count the file descriptors of users: %s",
					 strerror(-rc));
	}
	if (!rc)
		rc = comch_rundir_open(dev, &dev->rundir);
	if (!rc) {
		rc = open_fds(dev);
		if (rc)
			gantry_log_error(host,
					 "cannot create the file descriptors of the device: %s",
					 strerror(-rc));
	}
	if (!rc && dev->n_uids > 1) {
		rc = comch_closer_open(dev, &dev->closer);
		if (rc)
			gantry_log_error(
				host,
				"cannot start the thread that closes file descriptors received from other users: %s",
				strerror(-rc));
	}
	if (rc) {
		comch_close(dev);
		return rc;
	}
	comch_rundir_sweep_all(dev);
	dev->membarrier = use_membarrier();
	*device_p = dev;
	return 0;
}

static int comch_fd(void *device)
{
	return ((struct comch_device *)device)->epoll;
}

static void dispatch(struct comch_device *dev, const struct epoll_event *ev)
{
	struct comch_watch *watch = ev->data.ptr;
	uint64_t n;

	switch (watch->kind) {
	case COMCH_W_DEVICE:
		while (read(dev->wake, &n, sizeof(n)) > 0)
			;
		break;
	case COMCH_W_LISTENER:
		comch_listener_ready(watch->self);
		break;
	case COMCH_W_SOCKET:
		comch_conn_ready(watch->self, ev->events);
		break;
	case COMCH_W_PROCESS:
		((struct comch_conn *)watch->self)->is_dead = true;
		/* an exchange, as in comch_device_kick() */
		__atomic_exchange_n(&dev->unseen, 1, __ATOMIC_RELAXED);
		break;
	}
}

static void empty_reap_list(struct comch_device *dev)
{
	struct comch_conn *conn, *next_conn;
	struct comch_listener *l, *next_l;

	comch_each (conn, next_conn, &dev->reap_list)
		comch_conn_free(conn);
	comch_each (l, next_l, &dev->reap_list_listeners)
		comch_listener_free(l);
}

/*
 * Check all connections. A callback can end any connection, which moves it to the reap list, so the
 * loop restarts after each event.
 */
static void check_all(struct comch_device *dev, uint64_t now)
{
	struct comch_conn *conn, *next_conn;

	if (dev->resume_ns)
		comch_listeners_resume(dev);
	if (dev->pages_ns && now >= dev->pages_ns)
		comch_pages_check(dev, now); /* connections that it ends are closed below */
	comch_each (conn, next_conn, &dev->conns) {
		int before = dev->events;

		comch_conn_check(conn, now);
		if (dev->events != before)
			next_conn = LIST_FIRST(&dev->conns);
	}
	dev->deadline_ns = dev->pages_ns;
	LIST_FOREACH (conn, &dev->conns, link) {
		uint64_t at = conn->deadline_ns;

		if (at && (!dev->deadline_ns || at < dev->deadline_ns))
			dev->deadline_ns = at;
	}
}

/*
 * Deliver events. Visits only connections with an event, unless one must be checked without an
 * event. So the cost does not depend on the number of idle connections.
 */
static int comch_progress(void *device)
{
	struct comch_device *dev = device;
	struct epoll_event events[EVENTS_PER_TURN];
	struct comch_conn *conn, *next_conn;
	uint64_t now;
	int n;

	if (dev->pid != getpid() || dev->in_progress)
		return 0;
	dev->in_progress = 1;
	dev->events = 0;
	n = epoll_wait(dev->epoll, events, EVENTS_PER_TURN, 0);
	for (int i = 0; i < n; i++)
		dispatch(dev, &events[i]);
	now = comch_now(dev);
	if (__atomic_exchange_n(&dev->unseen, 0, __ATOMIC_ACQUIRE) ||
	    (dev->deadline_ns && now >= dev->deadline_ns))
		check_all(dev, now);
	if (dev->retry) {
		dev->retry = false;
		comch_each (conn, next_conn, &dev->conns)
			comch_regions_retry(conn);
	}
	dev->in_progress = 0;
	empty_reap_list(dev);
	return dev->events;
}

static uint64_t comch_wake_ns(void *device)
{
	return ((struct comch_device *)device)->deadline_ns;
}

static const struct gantry_data_queue_ops data_ops = {
	.struct_size = sizeof(data_ops),
	.post_recv = comch_post_recv_data,
	.send = comch_send_data,
	.poll_send = comch_poll_send,
	.send_prefetch = comch_send_prefetch,
};

static const struct gantry_transport_ops ops = {
	.open = comch_open,
	.scan = comch_scan,
	.close = comch_close,
	.info = comch_info,
	.fd = comch_fd,
	.progress = comch_progress,
	.wake_ns = comch_wake_ns,
	.listen = comch_listen,
	.unlisten = comch_unlisten,
	.connect = comch_connect,
	.send_ctrl = comch_send_ctrl,
	.disconnect = comch_disconnect,
	.export_region = comch_export,
	.export_limit = comch_export_limit,
	.import_region = comch_import,
	.release_region = comch_release,
	.revoke_region = comch_revoke,
	.consumer_create = comch_consumer_create,
	.consumer_destroy = comch_consumer_destroy,
	.producer_create = comch_producer_create,
	.producer_destroy = comch_producer_destroy,
	.rma_create = comch_rma_create,
	.rma_destroy = comch_rma_destroy,
	.post_recv = comch_post_recv,
	.poll_recv = comch_poll_recv,
	.consumer_arm = comch_consumer_arm,
	.consumer_disarm = comch_consumer_disarm,
	.consumer_fd = comch_consumer_fd,
	.send = comch_send,
	.flush = comch_flush,
	.rma_submit = comch_rma_submit,
	.rma_flush = comch_rma_flush,
	.rma_poll = comch_rma_poll,
	.flags = GANTRY_TRANSPORT_UIDS,
	.refusal = comch_refusal,
	.import_error = comch_import_error,
	.hold_exports = comch_hold_exports,
	.data = &data_ops,
};

GANTRY_PLUGIN(shm_comch) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_TRANSPORT,
	.name = "shm-comch",
	.version = "1",
	.summary =
		"message queues and remote memory between the processes of one machine, as with a DPU",
	.options = options,
	.conf_size = sizeof(struct comch_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = comch_check,
};
