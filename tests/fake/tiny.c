/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tiny - a transport with selectable limits and no function, for tests of the messages about
 * limits.
 *
 * The environment sets the result of `scan`: GANTRY_TINY=LIST finds a device for each name of a
 * comma-separated list, and GANTRY_TINY=-TEXT fails with that text. Nothing connects: a connect is
 * an error of the test, and so is a listen without the option `listens`.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/transport.h>

struct tiny_conf {
	int64_t max_depth, max_regions, max_queues, conn_queues, lane_queues;
	uint64_t max_region_bytes, conn_bytes, lane_bytes;
	uint8_t pins, mapped, notes, broken, made, listens;
};

#define NUMBER(name, dflt) \
	{ \
#name, GANTRY_OPT_INT, offsetof(struct tiny_conf, name), dflt, 0, UINT32_MAX, \
			NULL, NULL, "As in its info." \
	}
#define SIZE(name, dflt) \
	{ \
#name, GANTRY_OPT_SIZE, offsetof(struct tiny_conf, name), dflt, 0, 0, NULL, NULL, \
			"As in its info." \
	}
#define FLAG(name, dflt) \
	{ \
#name, GANTRY_OPT_BOOL, offsetof(struct tiny_conf, name), dflt, 0, 0, NULL, NULL, \
			"As in its info." \
	}

static const struct gantry_option options[] = {
	NUMBER(max_depth, "1024"), NUMBER(max_regions, "64"), NUMBER(max_queues, "0"),
	NUMBER(conn_queues, "1"),  NUMBER(lane_queues, "2"),  SIZE(max_region_bytes, "1TiB"),
	SIZE(conn_bytes, "8KiB"),  SIZE(lane_bytes, "64KiB"), FLAG(pins, "true"),
	FLAG(mapped, "false"),     FLAG(notes, "false"),      FLAG(broken, "false"),
	FLAG(made, "false"),       FLAG(listens, "false"),    GANTRY_OPTION_END,
};

static void tiny_check(const void *conf, struct gantry_check *check)
{
	if (((const struct tiny_conf *)conf)->made)
		check->status = -EAGAIN;
}

static int tiny_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	if (((const struct tiny_conf *)conf)->broken) {
		gantry_log_error(host, "it is broken; repair it");
		return -ENODEV;
	}
	*device_p = (void *)conf;
	return 0;
}

static void find(struct gantry_writer *w, const char *name, size_t n)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)n, name);
	w->object(w, NULL);
	w->string(w, "name", text);
	w->string(w, "state", "active");
	w->u64(w, "max_queue_pairs", 64);
	w->array(w, "gids");
	w->string(w, NULL, "fe80::1");
	w->string(w, NULL, "::ffff:192.0.2.7");
	w->end(w);
	w->end(w);
}

static int tiny_scan(const struct gantry_host *host, struct gantry_writer *w)
{
	const char *at = getenv("GANTRY_TINY");
	int found = 0;

	if (at && *at == '-') {
		gantry_log_debug(host, "not for everybody");
		gantry_log_error(host, "%s", at + 1);
		return -ENODEV;
	}
	while (at && *at) {
		size_t n = strcspn(at, ",");

		find(w, at, n);
		found++;
		at += n + (at[n] == ',');
	}
	return found;
}

static void tiny_close(void *device)
{
	(void)device;
}

static void tiny_info(void *device, struct gantry_device_info *info)
{
	const struct tiny_conf *conf = device;

	*info = (struct gantry_device_info){
		.caps = GANTRY_CAP_RMA | (conf->pins ? GANTRY_CAP_PINS : 0) |
			(conf->mapped ? GANTRY_CAP_MAPPED : 0) |
			(conf->notes ? GANTRY_CAP_WRITE_IMM : 0),
		.max_depth = (uint32_t)conf->max_depth,
		.max_regions = (uint32_t)conf->max_regions,
		.max_region_bytes = conf->max_region_bytes,
		.max_queues = (uint32_t)conf->max_queues,
		.conn_queues = (uint32_t)conf->conn_queues,
		.lane_queues = (uint32_t)conf->lane_queues,
		.conn_bytes = conf->conn_bytes,
		.lane_bytes = conf->lane_bytes,
		.detail = "small",
	};
}

static int tiny_progress(void *device)
{
	(void)device;
	return 0;
}

__attribute__((noreturn)) static void not_wanted(const char *what)
{
	fprintf(stderr, "tiny: nobody should call %s\n", what);
	abort();
}

static int tiny_listen(void *device, const char *service, const struct gantry_conn_events *events,
		       void *arg, void **listener_p)
{
	(void)service;
	(void)events;
	(void)arg;
	if (!((const struct tiny_conf *)device)->listens)
		not_wanted("listen");
	*listener_p = device;
	return 0;
}

static int tiny_connect(void *device, const char *service, const struct gantry_conn_events *events,
			void *arg, void **conn_p)
{
	(void)device;
	(void)service;
	(void)events;
	(void)arg;
	(void)conn_p;
	not_wanted("connect");
}

static int tiny_send_ctrl(void *conn, const void *msg, size_t len)
{
	(void)conn;
	(void)msg;
	(void)len;
	not_wanted("send_ctrl");
}

static int tiny_consumer_create(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
				void **consumer_p)
{
	(void)conn;
	(void)attr;
	(void)id_p;
	(void)consumer_p;
	not_wanted("consumer_create");
}

static int tiny_producer_create(void *conn, uint32_t consumer_id,
				const struct gantry_queue_attr *attr, void **producer_p)
{
	(void)conn;
	(void)consumer_id;
	(void)attr;
	(void)producer_p;
	not_wanted("producer_create");
}

static int tiny_post_recv(void *consumer, uint32_t n)
{
	(void)consumer;
	(void)n;
	not_wanted("post_recv");
}

static int tiny_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max)
{
	(void)consumer;
	(void)msgs;
	(void)max;
	not_wanted("poll_recv");
}

static int tiny_consumer_fd(void *consumer)
{
	(void)consumer;
	return -1;
}

static int tiny_send(void *producer, const void *imm, uint32_t imm_len, uint32_t flags)
{
	(void)producer;
	(void)imm;
	(void)imm_len;
	(void)flags;
	not_wanted("send");
}

static int tiny_export(void *conn, const struct gantry_region *region, uint32_t rights,
		       uint32_t handle, struct gantry_token *token_p)
{
	(void)conn;
	(void)region;
	(void)rights;
	(void)handle;
	(void)token_p;
	not_wanted("export_region");
}

static int tiny_import(void *conn, const struct gantry_token *token, uint32_t flags,
		       struct gantry_region **region_p)
{
	(void)conn;
	(void)token;
	(void)flags;
	(void)region_p;
	not_wanted("import_region");
}

static int tiny_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p)
{
	(void)conn;
	(void)attr;
	(void)rma_p;
	not_wanted("rma_create");
}

static int tiny_rma_submit(void *rma, const struct gantry_rma *op)
{
	(void)rma;
	(void)op;
	not_wanted("rma_submit");
}

static int tiny_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max)
{
	(void)rma;
	(void)done;
	(void)max;
	not_wanted("rma_poll");
}

static const struct gantry_transport_ops ops = {
	.open = tiny_open,
	.scan = tiny_scan,
	.close = tiny_close,
	.info = tiny_info,
	.progress = tiny_progress,
	.listen = tiny_listen,
	.unlisten = tiny_close,
	.connect = tiny_connect,
	.send_ctrl = tiny_send_ctrl,
	.disconnect = tiny_close,
	.export_region = tiny_export,
	.import_region = tiny_import,
	.rma_create = tiny_rma_create,
	.rma_submit = tiny_rma_submit,
	.rma_poll = tiny_rma_poll,
	.consumer_create = tiny_consumer_create,
	.consumer_destroy = tiny_close,
	.producer_create = tiny_producer_create,
	.producer_destroy = tiny_close,
	.post_recv = tiny_post_recv,
	.poll_recv = tiny_poll_recv,
	.consumer_fd = tiny_consumer_fd,
	.send = tiny_send,
};

GANTRY_PLUGIN(tiny) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_TRANSPORT,
	.name = "tiny",
	.version = "1",
	.summary = "has small limits: for tests of messages about limits",
	.options = options,
	.conf_size = sizeof(struct tiny_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = tiny_check,
};
