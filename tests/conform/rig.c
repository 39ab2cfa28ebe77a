/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "conform/rig.h"
#include "loader/loader_priv.h"

#define PATIENCE_NS 10000000000ull

struct rig rig;
static void *rig_ops; /* with the host's stubs */

/* How long to wait for what must come. Short where it is known not to. */
static uint64_t patience_ns(void)
{
	const char *ms = getenv("RIG_PATIENCE_MS");

	return ms ? strtoull(ms, NULL, 10) * 1000000u : PATIENCE_NS;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int rig_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct rig_end *end = arg;

	end->n_accept++;
	if (end->refuse)
		return end->refuse;
	end->conn = conn;
	end->peer = *peer;
	*conn_arg_p = end;
	return 0;
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	struct rig_end *end = arg;

	end->n_connected += conn == end->conn;
	end->peer = *peer;
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	struct rig_end *end = arg;
	uint32_t seq = 0;

	(void)conn;
	memcpy(end->msg, msg, len);
	end->msg_len = len;
	end->n_msgs++;
	if (len >= sizeof(seq))
		memcpy(&seq, msg, sizeof(seq));
	end->out_of_order += seq != end->msg_seq;
	end->msg_seq++;
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	struct rig_end *end = arg;

	(void)conn;
	if (up)
		end->up[end->n_up++ % RIG_MSGS] = id;
	else
		end->down = id;
	end->n_down += !up;
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	struct rig_end *end = arg;

	(void)conn;
	end->revoke = handle;
	end->n_revoke++;
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	struct rig_end *end = arg;

	(void)conn;
	end->revoked = handle;
	end->revoked_rc = rc;
	end->n_revoked++;
}

static void on_closed(void *arg, void *conn, int reason)
{
	struct rig_end *end = arg;

	end->reason = reason;
	end->n_closed++;
	if (end->disconnect_on_close && conn == end->conn)
		rig_disconnect(end);
}

static const struct gantry_conn_events events = {
	.accept = on_accept,
	.connected = on_connected,
	.message = on_message,
	.consumer = on_consumer,
	.revoke = on_revoke,
	.revoked = on_revoked,
	.closed = on_closed,
};

void rig_open_end(struct rig_end *end, const char *setting)
{
	const struct gantry_plugin *plugin = fake_plugin(rig_driver.plugin);
	const char *s[5] = {NULL};
	int n = 0;

	while (n < 4 && rig_driver.setting[n]) {
		s[n] = rig_driver.setting[n];
		n++;
	}
	s[n] = setting;
	fake_host_init(&end->host, end == &rig.a ? "a" : "b");
	end->host.real_clock = 1;
	end->conf = fake_conf(plugin, s[0], s[1], s[2], s[3], s[4], NULL);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rig.ops->open(&end->host.pub, end->conf, &end->dev), end->host.log);
}

void rig_open(void)
{
	char why[GN_WHY];
	const struct gantry_plugin *plugin = fake_plugin(rig_driver.plugin);

	memset(&rig, 0, sizeof(rig));
	rig.n_fds = rig_fds();
	TEST_ASSERT_EQUAL_INT(GANTRY_KIND_TRANSPORT, plugin->kind);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gn_plugin_ops(plugin, &rig_ops, why), why);
	rig.ops = rig_ops;
	rig_open_end(&rig.a, NULL);
	if (rig_driver.one_device)
		rig.b.dev = rig.a.dev;
	else
		rig_open_end(&rig.b, NULL);
	rig.ops->info(rig.a.dev, &rig.info);
}

static int progress(void)
{
	int n = rig.ops->progress(rig.a.dev);

	return n + (rig.b.dev && rig.b.dev != rig.a.dev ? rig.ops->progress(rig.b.dev) : 0);
}

void rig_settle(void)
{
	struct pollfd fds[2];

	do {
		progress();
		fds[0] = (struct pollfd){.fd = rig.ops->fd(rig.a.dev), .events = POLLIN};
		fds[1] = (struct pollfd){.fd = rig.ops->fd(rig.b.dev), .events = POLLIN};
	} while (poll(fds, 2, 0) > 0);
}

void rig_until_at(const int *what, int n, const char *file, int line)
{
	uint64_t end = now_ns() + patience_ns();
	char text[160];

	while (*what < n) {
		struct pollfd fds[2] = {{.fd = rig.ops->fd(rig.a.dev), .events = POLLIN},
					{.fd = rig.ops->fd(rig.b.dev), .events = POLLIN}};

		if (progress() || *what >= n)
			continue;
		poll(fds, 2, 50);
		if (now_ns() > end) {
			snprintf(text, sizeof(text), "%s:%d: waited in vain, %d of %d", file, line, *what, n);
			TEST_FAIL_MESSAGE(text);
		}
	}
}

void rig_listen(const char *service)
{
	TEST_ASSERT_EQUAL_INT(0, rig.ops->listen(rig.b.dev, service, &events, &rig.b, &rig.b.listener));
}

void rig_start_connect(const char *service)
{
	TEST_ASSERT_EQUAL_INT(0, rig.ops->connect(rig.a.dev, service, &events, &rig.a, &rig.a.conn));
}

void rig_connect(void)
{
	rig_listen("vol");
	rig_start_connect("vol");
	rig_until(rig.a.n_connected, 1);
	rig_until(rig.b.n_accept, 1);
}

void rig_disconnect(struct rig_end *end)
{
	if (end->conn)
		rig.ops->disconnect(end->conn);
	end->conn = NULL;
}

void rig_close(void)
{
	rig_disconnect(&rig.a);
	rig_disconnect(&rig.b);
	if (rig.b.listener)
		rig.ops->unlisten(rig.b.listener);
	rig.b.listener = NULL;
	if (rig.b.dev && rig.b.dev != rig.a.dev)
		rig.ops->close(rig.b.dev);
	if (rig.a.dev)
		rig.ops->close(rig.a.dev);
	rig.a.dev = rig.b.dev = NULL;
	free(rig.a.conf);
	free(rig.b.conf);
	rig.a.conf = rig.b.conf = NULL;
	free(rig_ops);
	rig_ops = NULL;
}

void rig_queue_open(struct rig_queue *q, struct rig_end *rx, struct rig_end *tx, uint32_t depth, uint32_t max_data)
{
	struct gantry_queue_attr attr = {.depth = depth, .max_data = max_data};
	int ups = tx->n_up;

	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rx->conn, &attr, &q->id, &q->rx));
	rig_until(tx->n_up, ups + 1);
	TEST_ASSERT_EQUAL_UINT(q->id, tx->up[ups % RIG_MSGS]);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->producer_create(tx->conn, q->id, &attr, &q->tx));
	rig_settle();
}

void rig_queue_close(struct rig_queue *q)
{
	if (q->tx)
		rig.ops->producer_destroy(q->tx);
	if (q->rx)
		rig.ops->consumer_destroy(q->rx);
	*q = (struct rig_queue){.rx = NULL};
	rig_settle();
}

int rig_send(struct rig_queue *q, const struct gantry_send *send)
{
	uint64_t end = now_ns() + patience_ns();
	int rc;

	while ((rc = rig.ops->send(q->tx, send, 0)) == -EAGAIN && now_ns() < end)
		progress();
	return rc;
}

int rig_send_imm(struct rig_queue *q, uint64_t value)
{
	struct gantry_send send = {.imm = &value, .imm_len = sizeof(value)};

	return rig_send(q, &send);
}

void rig_take(struct rig_queue *q, struct gantry_msg *msg)
{
	uint64_t end = now_ns() + patience_ns();
	int n;

	memset(msg, 0xee, sizeof(*msg));
	while ((n = rig.ops->poll_recv(q->rx, msg, 1)) == 0) {
		progress();
		TEST_ASSERT_TRUE_MESSAGE(now_ns() < end, "no message came");
	}
	TEST_ASSERT_EQUAL_INT(1, n);
}

int rig_post(struct rig_queue *q, void *buf, uint32_t length, uint64_t cookie)
{
	struct gantry_recv recv = {.buf = buf, .length = length, .cookie = cookie};

	return rig.ops->post_recv(q->rx, &recv, 1);
}

void rig_memory_open(struct rig_memory *m, uint64_t bytes, uint32_t rights)
{
	int fd = gantry_memfd_create("conform", bytes, 0);

	TEST_ASSERT_TRUE(fd >= 0);
	m->bytes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TEST_ASSERT_TRUE(m->bytes != MAP_FAILED);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	m->region = (struct gantry_region){.addr = m->bytes, .length = bytes, .fd = fd, .rights = rights};
}

void rig_memory_close(struct rig_memory *m)
{
	munmap(m->bytes, m->region.length);
	close(m->region.fd);
}

void rig_fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 13);
}

int rig_filled(const uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (uint8_t)((i * 2654435761u + seed * 40503u) >> 13))
			return 0;
	return 1;
}

int rig_applies(const char *name)
{
	for (const char *const *e = rig_driver.exclude; e && *e; e++)
		if (strcmp(*e, name) == 0)
			return 0;
	return 1;
}

void setUp(void)
{
	rig_open();
}

void tearDown(void)
{
	rig_close();
	TEST_ASSERT_EQUAL_INT_MESSAGE(rig.n_fds, rig_fds(), "descriptors leaked");
}

