/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conform/rig.h"
#include "loader/loader.h"
#include "loader/loader_priv.h"

#define X21 "xxxxxxxxxxxxxxxxxxxxx"

struct rig rig;
static void *rig_ops; /* operations of the plugin; stubs of the loader for those that it lacks */

/* Service names for transports that accept any name; the longest name has 63 bytes. */
static const char *const words[] = {"vol",     "a",       "192.0.2.7:4791", "a/b",       "../../x",
				    ".hidden", "sp ace%", "\xc3\xa4",       X21 X21 X21, NULL};

int rig_serves(const char *service)
{
	return fake_serves(fake_plugin(rig_driver.plugin), rig.b.conf ? rig.b.conf : rig.a.conf,
			   service);
}

const char *rig_service(unsigned i)
{
	const char *const *all = rig_driver.services ? rig_driver.services : words;

	for (; *all; all++)
		if (rig_serves(*all) && i-- == 0)
			return *all;
	return NULL;
}

int rig_can_run(void)
{
	const char *missing = rig_driver.missing ? rig_driver.missing() : NULL;

	if (missing)
		printf("%s\n", missing);
	return !missing;
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

static void add_conn(struct rig_end *end, void *conn)
{
	unsigned i = 0;

	while (i < RIG_CONNS && end->conns[i].conn)
		i++;
	if (i == RIG_CONNS)
		fake_fail("more than %d connections in a rig", RIG_CONNS);
	end->conns[i].conn = conn;
	end->conns[i].registered = 0;
	end->conn = conn;
}

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct rig_end *end = arg;

	end->n_accept++;
	if (end->refuse)
		return end->refuse;
	add_conn(end, conn);
	end->peer = *peer;
	*conn_arg_p = end;
	if (end->greeting)
		RIG_OK(rig.ops->send_ctrl(conn, end->greeting, strlen(end->greeting) + 1));
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
	const unsigned *n_logged = end->dev == rig.a.dev ? rig.a.host.n_logged
							 : rig.b.host.n_logged;

	end->unexplained |= reason == -EPROTO &&
			    n_logged[GANTRY_LOG_WARN] + n_logged[GANTRY_LOG_ERROR] == 0;
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

/* Append settings, up to a NULL, to the n settings of `all`. Returns their new number. */
static int append(const char **all, int n, const char *const *more)
{
	for (int i = 0; i < RIG_SETTINGS && more[i]; i++)
		all[n++] = more[i];
	return n;
}

/* As append(), with the words of an environment variable, which are copied to `text`. */
static int append_words(const char **all, int n, const char *name, char *text, size_t size)
{
	const char *value = getenv(name);
	char *rest = NULL;

	snprintf(text, size, "%s", value ? value : "");
	for (char *word = strtok_r(text, " ", &rest); word && n < 2 * RIG_SETTINGS;
	     word = strtok_r(NULL, " ", &rest))
		all[n++] = word;
	return n;
}

/* Returns the options of an end, from the driver, the environment and `setting`. */
static void *conf_of(struct rig_end *end, const char *setting)
{
	const struct gantry_plugin *plugin = fake_plugin(rig_driver.plugin);
	int is_a = end == &rig.a, n = 0;
	const char *s[3 * RIG_SETTINGS] = {NULL};

	if (rig_driver.conf) {
		char why[512];
		void *conf = rig_driver.conf(is_a, why, sizeof(why));

		if (*why)
			rig_fail_at(__FILE__, __LINE__, "%s", why);
		return conf;
	}
	n = append(s, n, rig_driver.setting);
	n = append(s, n, is_a ? rig_driver.a : rig_driver.b);
	n = append_words(s, n, is_a ? "RIG_A_SETTINGS" : "RIG_B_SETTINGS", end->settings,
			 sizeof(end->settings));
	s[n] = setting;
	return fake_conf(plugin, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10],
			 s[11], s[12], s[13], s[14], s[15], s[16], NULL);
}

void rig_open_end(struct rig_end *end, const char *setting)
{
	fake_host_init(&end->host, end == &rig.a ? "a" : "b");
	end->host.real_clock = 1;
	end->conf = conf_of(end, setting);
	RIG_RC(0, rig.ops->open(&end->host.pub, end->conf, &end->dev), end->host.log);
	end->kicked = 1;
}

static void close_devices(void)
{
	if (rig.b.dev && rig.b.dev != rig.a.dev)
		rig.ops->close(rig.b.dev);
	if (rig.a.dev)
		rig.ops->close(rig.a.dev);
	rig.a.dev = rig.b.dev = NULL;
	free(rig.a.conf);
	free(rig.b.conf);
	rig.a.conf = rig.b.conf = NULL;
}

static void open_local(void)
{
	void *p = mmap(NULL, RIG_LOCAL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	TEST_ASSERT_TRUE(p != MAP_FAILED);
	rig.local = (struct gantry_region){.addr = p, .length = RIG_LOCAL_BYTES, .fd = -1};
}

static void load(void)
{
	char why[GN_WHY];
	const struct gantry_plugin *plugin = fake_plugin(rig_driver.plugin);

	TEST_ASSERT_EQUAL_INT(GANTRY_KIND_TRANSPORT, plugin->kind);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gn_plugin_ops(plugin, &rig_ops, why), why);
	if (rig_driver.wrap)
		rig_driver.wrap(rig_ops);
	rig.ops = rig_ops;
}

static void open_devices(void)
{
	if (rig_driver.one_end != 'b')
		rig_open_end(&rig.a, NULL);
	if (!(rig.ops->flags & GANTRY_TRANSPORT_INSIDE) && rig_driver.one_end != 'a')
		rig_open_end(&rig.b, NULL);
	if (!rig.a.dev)
		rig.a.dev = rig.b.dev;
	if (!rig.b.dev)
		rig.b.dev = rig.a.dev;
	rig.a.kicked = rig.b.kicked = 1;
}

/* As the host: do not use a device that states a capability without the functions for it. */
static void check_caps(void)
{
	const char *lack;

	rig.ops->info(rig.a.dev, &rig.info);
	lack = gn_ops_missing(rig.ops, rig.info.caps);
	if (lack)
		rig_fail_at(__FILE__, __LINE__,
			    "info.caps has a capability that needs the slot %s, which is NULL",
			    lack);
	if (!rig_service(0))
		rig_fail_at(__FILE__, __LINE__,
			    "check rejects all names of the suite: name one with --service");
}

void rig_open(void)
{
	static int once;

	memset(&rig, 0, sizeof(rig));
	load();
	if (!once) { /* do not count descriptors that libraries open once and keep */
		open_devices();
		close_devices();
	}
	once = 1;
	rig.n_fds = rig_fds();
	open_local();
	open_devices();
	check_caps();
}

void rig_listen(const char *service)
{
	RIG_OK(rig.ops->listen(rig.b.dev, service, &events, &rig.b, &rig.b.listener));
}

void rig_unlisten(void)
{
	if (rig.b.listener)
		rig.ops->unlisten(rig.b.listener);
	rig.b.listener = NULL;
}

void rig_start_connect(const char *service)
{
	void *conn = NULL;

	RIG_OK(rig.ops->connect(rig.a.dev, service, &events, &rig.a, &conn));
	rig.a.kicked = 1;
	add_conn(&rig.a, conn);
}

void rig_register(struct rig_end *end)
{
	for (unsigned i = 0; i < RIG_CONNS; i++)
		if (end->conn && end->conns[i].conn == end->conn) {
			RIG_OK(rig.ops->register_region(end->conn, &rig.local));
			end->conns[i].registered = 1;
		}
}

void rig_connect(void)
{
	int connected = rig.a.n_connected, accepted = rig.b.n_accept;

	if (!rig.b.listener)
		rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_connected, connected + 1);
	rig_until(rig.b.n_accept, accepted + 1);
	rig_register(&rig.a);
	rig_register(&rig.b);
}

static void drop_conn(struct rig_end *end, unsigned i)
{
	void *conn = end->conns[i].conn;

	if (end->conns[i].registered)
		rig.ops->unregister_region(conn, &rig.local);
	end->conns[i].conn = NULL;
	end->conns[i].registered = 0;
	rig.ops->disconnect(conn);
}

void rig_disconnect(struct rig_end *end)
{
	for (unsigned i = 0; i < RIG_CONNS; i++)
		if (end->conn && end->conns[i].conn == end->conn)
			drop_conn(end, i);
	end->conn = NULL;
}

static void disconnect_all(struct rig_end *end)
{
	for (unsigned i = 0; i < RIG_CONNS; i++)
		if (end->conns[i].conn)
			drop_conn(end, i);
	end->conn = NULL;
}

static void close_memory(struct rig_memory *m)
{
	munmap(m->bytes, m->region.length);
	close(m->region.fd);
}

void rig_close(void)
{
	if (getenv("RIG_LOG"))
		printf("log of a:\n%slog of b:\n%s", rig.a.host.log, rig.b.host.log);
	for (int i = 0; i < RIG_QUEUES; i++) {
		rig_rma_close(&rig.rmas[i]);
		rig_queue_close_tx(&rig.queues[i]);
		rig_queue_close_rx(&rig.queues[i]);
	}
	disconnect_all(&rig.a);
	disconnect_all(&rig.b);
	rig_unlisten();
	close_devices();
	while (rig.n_memories > 0)
		close_memory(&rig.memories[--rig.n_memories]);
	if (rig.local.addr)
		munmap(rig.local.addr, RIG_LOCAL_BYTES);
	rig.local.addr = NULL;
	free(rig_ops);
	rig_ops = NULL;
}

int rig_wanted(const char *name)
{
	const char *only = getenv("RIG_CASE");

	if (rig_driver.wanted)
		return rig_driver.wanted(name);
	return !only || strcmp(only, name) == 0;
}

void setUp(void)
{
	if (rig_driver.begin)
		rig_driver.begin();
	if (rig_driver.plugin)
		rig_open();
}

void tearDown(void)
{
	if (rig_driver.plugin) {
		rig_close();
		RIG_NUM(rig.n_fds, rig_fds(), "open descriptors after close");
	}
	if (rig_driver.end)
		rig_driver.end();
}
