/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.c - creates and destroys a connection with two queues
 *
 *   client                              server
 *   connect                             listen, accept
 *   consumer, producer                  consumer, producer
 *   TOKEN  ------------------------->   import         for messages with data; the other way
 *          <-------------------------   IMPORTED       round for remote access
 *   READY  <------------------------>   READY          the queues of the sender exist
 *   SET    <------------------------>   SET            the sender has sent and received READY
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/memfd.h>

#include "loader/loader_priv.h"
#include "perf/peer.h"

#define REGION 1u /* handle of the client's region */
#define PROGRESS_MS 1
#define PATIENCE 10000  /* maximum number of turns, of PROGRESS_MS each */
#define IDLE_POLLS 4096 /* empty polls of a lane before a turn of the control side */

enum { TOKEN = 'T', IMPORTED = 'I', READY = 'R', SET = 'S', BYE = 'B' };

struct frame {
	char kind;
	struct gantry_token token;
};

static void check(struct peer *p, int rc, const char *what)
{
	if (rc < 0)
		fake_fail("%s: %s: %s\n%s", p->is_server ? "server" : "client", what, strerror(-rc),
			  p->host.log);
}

static void say(struct peer *p, char kind)
{
	struct frame frame = {.kind = kind, .token = p->own_token};

	check(p, p->ops->send_ctrl(p->conn, &frame, sizeof(frame)), "control message");
}

static int on_accept(void *arg, void *conn, const struct gantry_peer *other, void **conn_arg_p)
{
	struct peer *p = arg;

	(void)other;
	p->conn = conn;
	*conn_arg_p = p;
	return 0;
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *other)
{
	struct peer *p = arg;

	(void)other;
	p->conn = conn;
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	const struct frame *frame = msg;
	struct peer *p = arg;

	(void)conn;
	if (len != sizeof(*frame))
		fake_fail("control message of %zu bytes", len);
	switch (frame->kind) {
	case TOKEN:
		p->token = frame->token;
		p->has_token = 1;
		break;
	case IMPORTED:
		p->is_seen = 1;
		break;
	case READY:
		p->heard_ready = 1;
		break;
	case SET:
		p->heard_set = 1;
		break;
	case BYE:
		p->heard_bye = 1;
		break;
	}
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	struct peer *p = arg;

	(void)conn;
	if (up)
		p->other_id = id;
	p->has_other = up;
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	(void)arg;
	(void)conn;
	(void)handle;
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	(void)arg;
	(void)conn;
	(void)handle;
	(void)rc;
}

static void on_closed(void *arg, void *conn, int reason)
{
	struct peer *p = arg;

	(void)conn;
	p->closed = reason ? reason : -ENOTCONN;
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

/* Make the options of the device from the settings of this end. */
static void *make_conf(const struct gantry_plugin *plugin, const struct peer_attr *attr,
		       int is_server)
{
	const char *s[PEER_SETTINGS] = {NULL}, *own = is_server ? "server:" : "client:";
	int n = 0;

	for (int i = 0; i < PEER_SETTINGS && attr->settings[i]; i++) {
		const char *text = attr->settings[i];

		if (!strncmp(text, own, strlen(own)))
			s[n++] = text + strlen(own);
		else if (strncmp(text, "client:", 7) && strncmp(text, "server:", 7))
			s[n++] = text;
	}
	return fake_conf(plugin, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], NULL);
}

void peer_open(struct peer *p, const struct peer_attr *attr, int is_server, struct peer *beside)
{
	const struct gantry_plugin *plugin = fake_plugin(attr->transport);

	struct gantry_device_info info;
	char why[GN_WHY];

	memset(p, 0, sizeof(*p));
	p->attr = attr;
	p->is_server = is_server;
	check(p, gn_plugin_ops(plugin, &p->own_ops, why), why);
	p->ops = p->own_ops;
	p->region.fd = -1;
	fake_host_init(&p->host, "devices.bench");
	p->host.real_clock = 1;
	if (beside) {
		p->device = beside->device;
		p->depth = beside->depth;
		p->shares_lines = beside->shares_lines;
		return;
	}
	p->owns_device = 1;
	p->conf = make_conf(plugin, attr, is_server);
	check(p, p->ops->open(&p->host.pub, p->conf, &p->device), "open");
	p->ops->info(p->device, &info);
	p->shares_lines = !(info.caps & GANTRY_CAP_PINS);
	p->depth = attr->depth < info.max_depth ? attr->depth : info.max_depth;
}

static void make_region(struct peer *p)
{
	uint64_t bytes = p->attr->data_bytes;
	struct gantry_region *r = &p->region;

	r->fd = gantry_memfd_create("bench", bytes, 0);
	check(p, r->fd, "memfd");
	r->addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, 0);
	if (r->addr == MAP_FAILED)
		fake_fail("mmap: %s", strerror(errno));
	check(p, gantry_memfd_seal(r->fd, 0), "seal");
	r->length = bytes;
	r->rights = GANTRY_REMOTE_READ | (p->attr->rma ? GANTRY_REMOTE_WRITE : 0);
}

void peer_begin(struct peer *p)
{
	int receives = p->is_server && !p->attr->rma;

	if (p->attr->inlined || (p->attr->data_bytes && receives && !p->attr->posted)) {
		p->buffer = aligned_alloc(4096, (p->attr->data_bytes + 4095) & ~4095ull);
		if (!p->buffer)
			fake_fail("out of memory");
		memset(p->buffer, 0, p->attr->data_bytes);
	} else if (p->attr->data_bytes && !receives) {
		make_region(p);
	}
	if (p->is_server) {
		check(p, p->ops->listen(p->device, p->attr->service, &events, p, &p->listener),
		      "listen");
	} else {
		void *conn;

		check(p, p->ops->connect(p->device, p->attr->service, &events, p, &conn),
		      "connect");
	}
}

void peer_post(struct peer *p, uint32_t n)
{
	struct gantry_recv recv = {.buf = p->buffer, .length = (uint32_t)p->attr->data_bytes};

	if (!p->buffer) {
		check(p, p->ops->post_recv(p->consumer, n), "post_recv");
		return;
	}
	while (n--)
		check(p, p->ops->data->post_recv(p->consumer, &recv, 1), "post_recv");
}

static void make_queues(struct peer *p)
{
	struct gantry_queue_attr attr = {
		.depth = p->depth, .max_data = p->attr->posted ? 0 : (uint32_t)p->attr->data_bytes};

	if (!p->consumer) {
		check(p, p->ops->consumer_create(p->conn, &attr, &p->own_id, &p->consumer),
		      "consumer");
		peer_post(p, attr.depth);
	}
	if (!p->producer && p->has_other)
		check(p, p->ops->producer_create(p->conn, p->other_id, &attr, &p->producer),
		      "producer");
	if (p->attr->rma && (p->attr->both || !p->is_server) && !p->rma) {
		check(p, p->ops->register_region(p->conn, &p->region), "register");
		check(p, p->ops->rma_create(p->conn, &attr, &p->rma), "rma");
	}
}

static void share_region(struct peer *p)
{
	int shares = p->attr->data_bytes && !p->attr->inlined;
	int exports = shares && (p->attr->both || p->is_server == p->attr->rma);
	int imports = shares && (p->attr->both || !exports);

	if (exports && !p->is_exported) {
		check(p,
		      p->ops->export_region(p->conn, &p->region, p->region.rights, REGION,
					    &p->own_token),
		      "export");
		p->is_exported = 1;
		say(p, TOKEN);
	}
	if (imports && p->has_token && !p->imported) {
		const uint32_t flags = p->attr->posted ? GANTRY_IMPORT_MAP : 0;

		check(p, p->ops->import_region(p->conn, &p->token, flags, &p->imported), "import");
		say(p, IMPORTED);
	}
	p->has_regions = (!exports || p->is_seen) && (!imports || p->imported);
}

static void advance(struct peer *p)
{
	if (!p->conn)
		return;
	make_queues(p);
	share_region(p);
	if (!p->said_ready && p->consumer && p->producer && p->has_regions) {
		p->said_ready = 1;
		say(p, READY);
	}
	if (!p->said_set && p->said_ready && p->heard_ready) {
		p->said_set = 1;
		say(p, SET);
	}
}

static void progress(struct peer *p)
{
	struct pollfd pfd = {.fd = p->ops->fd(p->device), .events = POLLIN};

	poll(&pfd, 1, PROGRESS_MS);
	p->ops->progress(p->device);
}

void peer_idle(struct peer *p)
{
	if (++p->n_idle % IDLE_POLLS == 0)
		p->ops->progress(p->device);
}

void peers_join(struct peer *const *peers, int n)
{
	int done = 0;

	for (int turn = 0; done < n; turn++) {
		progress(peers[0]);
		done = 0;
		for (int i = 0; i < n; i++) {
			struct peer *p = peers[i];

			if (p->closed || turn == PATIENCE)
				check(p, p->closed ? p->closed : -ETIMEDOUT, "join");
			advance(p);
			done += p->said_set && p->heard_set;
		}
	}
}

static void leave(struct peer *p)
{
	if (p->rma) {
		p->ops->rma_destroy(p->rma);
		p->ops->unregister_region(p->conn, &p->region);
	}
	if (p->imported)
		p->ops->release_region(p->conn, p->imported);
	p->ops->producer_destroy(p->producer);
	p->ops->consumer_destroy(p->consumer);
	p->ops->disconnect(p->conn);
	if (p->listener)
		p->ops->unlisten(p->listener);
	if (p->region.addr)
		munmap(p->region.addr, p->region.length);
	if (p->region.fd >= 0)
		close(p->region.fd);
	free(p->buffer);
}

void peers_part(struct peer *const *peers, int n)
{
	int done = 0;

	for (int i = 0; i < n; i++)
		say(peers[i], BYE);
	for (int turn = 0; done < n && turn < PATIENCE; turn++) {
		progress(peers[0]);
		done = 0;
		for (int i = 0; i < n; i++)
			done += peers[i]->heard_bye || peers[i]->closed;
	}
	for (int i = 0; i < n; i++)
		leave(peers[i]);
	for (int i = 0; i < n; i++) {
		if (!peers[i]->owns_device)
			continue;
		peers[i]->ops->close(peers[i]->device);
		free(peers[i]->conf);
	}
	for (int i = 0; i < n; i++)
		free(peers[i]->own_ops);
}
