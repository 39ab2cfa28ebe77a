/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit/secure/secure_rig.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <gantry/transport.h>

char why[GN_PATH_WHY];
struct device left, right;
struct end a, b;

static char top[64];

void rig_setup(void)
{
	umask(022);
	strcpy(top, "/tmp/gantry-secure-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(top));
}

static void device_close(struct device *device)
{
	if (!device->host.auth)
		return;
	TEST_ASSERT_TRUE(LIST_EMPTY(&device->host.auth->filters));
	gn_auth_close(&device->host.auth);
	gn_host_fini(&device->host);
}

void rig_teardown(void)
{
	char command[128];

	end_close(&a);
	end_close(&b);
	device_close(&left);
	device_close(&right);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

const char *rig_path(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned n;
	char *path = paths[n++ % 8];

	snprintf(path, PATH_MAX, "%s/%s", top, name);
	return path;
}

const char *rig_file(const char *name, const char *text, mode_t mode)
{
	const char *path = rig_path(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(strlen(text), write(fd, text, strlen(text)));
	TEST_ASSERT_EQUAL_INT(0, fchmod(fd, mode));
	close(fd);
	return path;
}

void device_open(struct device *device, const struct gn_auth_conf *conf)
{
	gn_host_init(&device->host, "devices.test");
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gn_auth_open(conf, &device->host.auth, why), why);
	TEST_ASSERT_EQUAL_STRING("", why);
	device->host.pub.records = &gn_auth_records;
}

void device_psk(struct device *device, const char *identity, const char *keys_file)
{
	const struct gn_auth_conf conf = {
		.mode = GN_AUTH_PSK, .identity = identity, .keys = rig_path(keys_file)};

	device_open(device, &conf);
}

int rejected(const struct gn_auth_conf *conf, const char *text)
{
	struct gn_auth *auth;
	int rc = gn_auth_open(conf, &auth, why);

	TEST_ASSERT_NULL(auth);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, text), why);
	return rc;
}

int end_open(struct end *end, struct device *device, int listens)
{
	const struct gantry_peer peer = {.pid = -1, .uid = (uint32_t)-1};

	end->device = device;
	end->n_sent = 0;
	return gn_auth_records.open(&device->host.pub, end, listens, &peer, &end->records);
}

void end_close(struct end *end)
{
	if (end->records)
		gn_auth_records.close(end->records);
	end->records = NULL;
}

int end_state(const struct end *end)
{
	const char *text;

	return gn_auth_records.state(end->records, &text);
}

const char *end_text(const struct end *end)
{
	const char *text;

	gn_auth_records.state(end->records, &text);
	return text;
}

size_t end_output(struct end *end)
{
	size_t total = 0, n;

	while ((n = gn_auth_records.output(end->records, end->sent + end->n_sent,
					   sizeof(end->sent) - end->n_sent)) > 0) {
		end->n_sent += n;
		total += n;
	}
	return total;
}

int end_input(struct end *end, const void *bytes, size_t n)
{
	/* exact size: ASan detects an access beyond the end */
	uint8_t *exact = malloc(n ? n : 1);
	int rc;

	memcpy(exact, bytes, n);
	rc = gn_auth_records.receive(end->records, exact, n);
	free(exact);
	return rc;
}

void exchange(struct end *x, struct end *y)
{
	for (int idle = 0; idle < 2; idle++) {
		size_t n = end_output(x);
		struct end *other = x;

		if (n) {
			idle = -1;
			end_input(y, x->sent + x->n_sent - n, n);
		}
		x = y;
		y = other;
	}
}

void start(void)
{
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
	exchange(&a, &b);
}

void start_and_open(void)
{
	start();
	TEST_ASSERT_EQUAL_INT_MESSAGE(GANTRY_RECORDS_OPEN, end_state(&b), end_text(&b));
	TEST_ASSERT_EQUAL_INT_MESSAGE(GANTRY_RECORDS_OPEN, end_state(&a), end_text(&a));
}

size_t captured(struct end *end, uint8_t *bytes)
{
	size_t n = end_output(end);

	memcpy(bytes, end->sent + end->n_sent - n, n);
	return n;
}

void send_message(struct end *from, struct end *to, const void *msg, size_t len)
{
	static uint8_t bytes[2 * GANTRY_RECORDS_MAX], got[GANTRY_RECORDS_MAX];
	size_t n;

	TEST_ASSERT_EQUAL_INT(0, gn_auth_records.seal(from->records, msg, len));
	from->n_sent = 0;
	n = captured(from, bytes);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, end_input(to, bytes, n), end_text(to));
	TEST_ASSERT_EQUAL_size_t(len, gn_auth_records.message(to->records, got, sizeof(got)));
	TEST_ASSERT_EQUAL_MEMORY(msg, got, len);
	TEST_ASSERT_EQUAL_size_t(0, gn_auth_records.message(to->records, got, sizeof(got)));
}

void failed(const char *left_text, const char *right_text)
{
	TEST_ASSERT_NOT_EQUAL(GANTRY_RECORDS_OPEN, end_state(&a));
	TEST_ASSERT_NOT_EQUAL(GANTRY_RECORDS_OPEN, end_state(&b));
	TEST_ASSERT_NULL(gn_auth_identity(left.host.auth, &a));
	TEST_ASSERT_NULL(gn_auth_identity(right.host.auth, &b));
	if (left_text)
		TEST_ASSERT_EQUAL_STRING(left_text, end_text(&a));
	if (right_text)
		TEST_ASSERT_EQUAL_STRING(right_text, end_text(&b));
}
