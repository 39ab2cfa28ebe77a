/* SPDX-License-Identifier: BSD-3-Clause */
#include "conform/tcp_secure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "conform/rig.h"
#include "base/safe_path.h"
#include "secure/auth_priv.h"
#include "secure/stream.h"

int secure_off, secure_send_error, secure_closed;

static const char keys[] = "rig:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
static struct gn_host hosts[2]; /* of the end that connects, and of the one that listens */
static struct gantry_records_ops records;
static struct gantry_stream_ops streams;
static int (*open_device)(const struct gantry_host *host, const void *conf, void **device_p);

/* The host of the rig has no keys, so another one takes its place. */
static int open_records(const struct gantry_host *host, const void *conn, int listens,
			const struct gantry_peer *peer, void **records_p)
{
	(void)host;
	return gn_auth_records.open(&hosts[listens].pub, conn, listens, peer, records_p);
}

static int admit(const struct gantry_host *host)
{
	(void)host;
	return secure_closed ? -EBUSY : gn_auth_records.admit(&hosts[1].pub);
}

static ssize_t send_or_fail(void *stream, const struct iovec *iov, size_t n)
{
	return secure_send_error ? secure_send_error : gn_stream_ops.send(stream, iov, n);
}

static void make_keys(char *path)
{
	int fd = mkstemp(path);

	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(sizeof(keys) - 1, write(fd, keys, sizeof(keys) - 1));
	close(fd);
}

static void end_auth(void)
{
	for (int i = 0; i < 2; i++) {
		gn_auth_close(&hosts[i].auth);
		gn_host_fini(&hosts[i]);
	}
}

static void begin_auth(void)
{
	char path[] = "/tmp/gantry-keys-XXXXXX", why[GN_PATH_WHY];
	struct gn_auth_conf conf = {
		.mode = GN_AUTH_PSK, .identity = "rig", .keys = path, .rate = 1000000};

	make_keys(path);
	records = gn_auth_records;
	records.open = open_records;
	records.admit = admit;
	streams = gn_stream_ops;
	streams.send = send_or_fail;
	records.streams = &streams;
	for (int i = 0; i < 2; i++) {
		static struct gn_auth_conf kept[2];

		kept[i] = conf;
		gn_host_init(&hosts[i], "auth %d", i);
		RIG_RC(0, gn_auth_open(&kept[i], &hosts[i].auth, why), why);
	}
	unlink(path);
	atexit(end_auth);
}

void secure_limit(unsigned n)
{
	struct gn_auth *auth = hosts[1].auth;

	auth->conf.rate = n;
	auth->tokens = 0;
	auth->tokens_ns = gn_now_ns();
}

static int open_secure(const struct gantry_host *host, const void *conf, void **device_p)
{
	if (!records.open)
		begin_auth();
	if (!secure_off)
		((struct gantry_host *)host)->records = &records;
	return open_device(host, conf, device_p);
}

void secure_wrap(struct gantry_transport_ops *ops)
{
	setenv(SECURE_PEER, "1", 1);
	open_device = ops->open;
	ops->open = open_secure;
}
