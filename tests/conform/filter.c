/* SPDX-License-Identifier: BSD-3-Clause */
#include "conform/filter.h"

#include <stdlib.h>

#include "conform/rig.h"
#include "secure/stream.h"

struct filter {
	uint8_t in[4 * GANTRY_RECORDS_MAX], out[4 * GANTRY_RECORDS_MAX];
	size_t n_in, n_out;
	uint64_t own, key, n_sealed, n_opened;
	int listens, state;
	const char *text;
};

struct head {
	uint32_t length, sum;
};

int filter_silent, filter_busy, filter_rejects;
unsigned n_filters;

static uint8_t mask(uint64_t key, uint64_t record, size_t i)
{
	uint64_t x = (key ^ (record << 20) ^ i) * 0x9e3779b97f4a7c15u;

	return (uint8_t)(x >> 56);
}

static void put(struct filter *f, const void *bytes, size_t n)
{
	if (f->n_out + n > sizeof(f->out))
		fake_fail("the filter has no space");
	memcpy(f->out + f->n_out, bytes, n);
	f->n_out += n;
}

static int filter_open(const struct gantry_host *host, const void *conn, int listens,
		       const struct gantry_peer *peer, void **records_p)
{
	static uint64_t n;
	struct filter *f;

	(void)host;
	(void)conn;
	(void)peer;
	if (listens && filter_busy)
		return -EBUSY;
	f = calloc(1, sizeof(*f));
	f->listens = listens;
	f->own = (listens ? 0x1111222233334444u : 0xabcdef0123456789u) ^ ++n * 0x9e3779b97f4a7c15u;
	if (!listens)
		put(f, &f->own, sizeof(f->own));
	n_filters++;
	*records_p = f;
	return 0;
}

static void filter_close(void *records)
{
	n_filters--;
	free(records);
}

static int filter_seal(void *records, const void *msg, size_t len)
{
	struct filter *f = records;
	struct head head = {.length = (uint32_t)len};
	const uint8_t *bytes = msg;

	if (f->state != GANTRY_RECORDS_OPEN)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		head.sum = head.sum * 31 + bytes[i];
	put(f, &head, sizeof(head));
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = bytes[i] ^ mask(f->key, f->n_sealed, i);

		put(f, &byte, 1);
	}
	f->n_sealed++;
	return 0;
}

static size_t filter_output(void *records, void *bytes, size_t max)
{
	struct filter *f = records;
	size_t n = f->n_out < max ? f->n_out : max;

	memcpy(bytes, f->out, n);
	f->n_out -= n;
	memmove(f->out, f->out + n, f->n_out);
	return n;
}

static const uint64_t alert = UINT64_MAX;

static int fail(struct filter *f, const char *text)
{
	f->state = GANTRY_RECORDS_FAILED;
	f->text = text;
	return -EPROTO;
}

static int shake_hands(struct filter *f)
{
	uint64_t other;

	if (f->n_in < sizeof(other) || (filter_silent && f->listens))
		return 0;
	memcpy(&other, f->in, sizeof(other));
	f->n_in -= sizeof(other);
	memmove(f->in, f->in + sizeof(other), f->n_in);
	if (other == alert)
		return fail(f, "the peer has sent an alert");
	if (f->listens)
		put(f, filter_rejects ? &alert : &f->own, sizeof(f->own));
	if (f->listens && filter_rejects)
		return fail(f, "the peer has a wrong key");
	f->key = f->own ^ other;
	f->state = GANTRY_RECORDS_OPEN;
	return 0;
}

/* Check the complete records that have arrived. */
static int check_records(struct filter *f)
{
	uint64_t record = f->n_opened;
	struct head head;

	for (size_t at = 0; at + sizeof(head) <= f->n_in; at += sizeof(head) + head.length) {
		uint32_t sum = 0;

		memcpy(&head, f->in + at, sizeof(head));
		if (head.length <= GANTRY_RECORDS_MAX && at + sizeof(head) + head.length > f->n_in)
			break;
		for (uint32_t i = 0; head.length <= GANTRY_RECORDS_MAX && i < head.length; i++)
			sum = sum * 31 +
			      (uint8_t)(f->in[at + sizeof(head) + i] ^ mask(f->key, record, i));
		if (sum != head.sum)
			return fail(f, "wrong checksum of a record");
		record++;
	}
	return 0;
}

static int filter_receive(void *records, const void *bytes, size_t len)
{
	struct filter *f = records;
	int rc = 0;

	if (f->n_in + len > sizeof(f->in))
		return -EPROTO;
	memcpy(f->in + f->n_in, bytes, len);
	f->n_in += len;
	if (f->state == GANTRY_RECORDS_HANDSHAKE)
		rc = shake_hands(f);
	return f->state == GANTRY_RECORDS_OPEN ? check_records(f) : rc;
}

static size_t filter_message(void *records, void *msg, size_t max)
{
	struct filter *f = records;
	uint8_t *to = msg;
	struct head head;

	if (f->state != GANTRY_RECORDS_OPEN || f->n_in < sizeof(head))
		return 0;
	memcpy(&head, f->in, sizeof(head));
	if (head.length > max || sizeof(head) + head.length > f->n_in)
		return 0;
	for (uint32_t i = 0; i < head.length; i++)
		to[i] = f->in[sizeof(head) + i] ^ mask(f->key, f->n_opened, i);
	f->n_opened++;
	f->n_in -= sizeof(head) + head.length;
	memmove(f->in, f->in + sizeof(head) + head.length, f->n_in);
	return head.length;
}

static int filter_state(void *records, const char **text_p)
{
	struct filter *f = records;

	*text_p = f->text;
	return f->state;
}

static int filter_admit(const struct gantry_host *host)
{
	(void)host;
	return 0;
}

static uint64_t stir(uint64_t sum, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < bytes; i++)
		sum = (sum ^ p[i]) * 0x100000001b3u;
	return sum;
}

static int filter_secret(void *records, const char *label, const void *context, size_t n,
			 void *secret, size_t bytes)
{
	const struct filter *f = records;
	uint64_t sum = stir(stir(f->key, label, strlen(label)), context, n);
	uint8_t *to = secret;

	for (size_t i = 0; i < bytes; i++)
		to[i] = mask(sum, i, i + 1);
	return 0;
}

static int filter_mac(const void *key, size_t key_bytes, const void *data, size_t bytes,
		      uint8_t *out)
{
	uint64_t sum = stir(stir(0, key, key_bytes), data, bytes);

	for (size_t i = 0; i < GANTRY_RECORDS_MAC; i++)
		out[i] = mask(sum, i, i + 1);
	return 0;
}

const struct gantry_records_ops filter = {
	.struct_size = sizeof(filter),
	.open = filter_open,
	.close = filter_close,
	.seal = filter_seal,
	.output = filter_output,
	.receive = filter_receive,
	.message = filter_message,
	.state = filter_state,
	.export_secret = filter_secret,
	.mac = filter_mac,
	.streams = &gn_stream_ops,
	.admit = filter_admit,
};

/* -- the cases -- */

#define BYTES 65536u

static uint64_t needles[8];
static unsigned n_needles, n_found, n_frames, change_after;

static void watch(void)
{
	filter_spy();
	n_found = n_frames = n_needles = change_after = 0;
}

void filter_search(uint8_t *bytes, size_t n)
{
	for (unsigned k = 0; k < n_needles; k++)
		for (size_t i = 0; i + sizeof(needles[k]) <= n; i++)
			n_found += memcmp(bytes + i, &needles[k], sizeof(needles[k])) == 0;
	n_frames++;
	if (change_after && --change_after == 0)
		bytes[n - 1] ^= 0x40;
}

static void use_filter(int a, int b)
{
	rig.a.host.pub.records = a ? &filter : NULL;
	rig.b.host.pub.records = b ? &filter : NULL;
}

/* Use a connection as a session does. Returns how many secrets the frames have shown. */
static unsigned use_connection(void)
{
	struct gantry_region *region;
	struct gantry_token token;
	struct rig_memory m;
	struct rig_queue *q;

	watch();
	rig_connect();
	rig_memory_open(&m, BYTES, GANTRY_REMOTE_WRITE);
	needles[n_needles++] = (uintptr_t)m.bytes;
	memcpy(&needles[n_needles++], "a secret word", 8);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_WRITE, 1, &token));
	RIG_OK(rig_ctrl(&rig.a, &token, sizeof(token)));
	RIG_OK(rig_ctrl(&rig.a, "a secret word", 13));
	rig_fence();
	RIG_OK(rig.ops->import_region(rig.b.conn, &token, 0, &region));
	q = rig_queue_open(&rig.b, &rig.a, 4, 0);
	rig_warm(q);
	rig_queue_close(q);
	rig.ops->release_region(rig.b.conn, region);
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	RIG_HOLDS(n_frames > 0, "frames that the spy has seen");
	return n_found;
}

static void secrets_are_in_the_clear_without_a_filter(void)
{
	RIG_HOLDS(use_connection() >= 1, "secrets in the frames");
}

static void connection_works_with_a_filter(void)
{
	use_filter(1, 1);
	RIG_NUM(0, use_connection(), "secrets in the frames");
}

static void long_messages_are_cut(void)
{
	static uint8_t bytes[GANTRY_CTRL_MAX];

	use_filter(1, 1);
	rig_connect();
	for (int i = 0; i < 40; i++) {
		rig_fill(bytes, sizeof(bytes), (uint32_t)i);
		RIG_OK(rig_ctrl(&rig.a, bytes, sizeof(bytes)));
		rig_until(rig.b.n_msgs, i + 1);
		RIG_NUM(sizeof(bytes), rig.b.msg_len, "length of a message");
		RIG_HOLDS(rig_filled(rig.b.msg, sizeof(bytes), (uint32_t)i), "a message");
	}
}

static void changed_byte_ends_the_connection(void)
{
	use_filter(1, 1);
	rig_connect();
	rig_fence();
	watch();
	change_after = 1;
	RIG_OK(rig_ctrl(&rig.a, "a word", 6));
	rig_until(rig.b.n_closed, 1);
	RIG_RC(-EPROTO, rig.b.reason, "reason of `closed`");
	RIG_HOLDS(fake_logged(&rig.b.host, "fails the record filter: wrong checksum of a record"),
		  "text in the log");
}

static void handshake_has_a_time_limit(void)
{
	use_filter(1, 1);
	filter_silent = 1;
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_closed, 1);
	filter_silent = 0;
	RIG_RC(-ETIMEDOUT, rig.a.reason, "reason of `closed`");
	RIG_NUM(0, rig.a.n_connected, "events `connected`");
	RIG_HOLDS(
		fake_logged(&rig.a.host, "the handshake of the record filter did not end in time"),
		"text in the log");
	RIG_NUM(1, rig.a.host.n_logged[GANTRY_LOG_WARN], "number of warnings");
}

/* Call progress of end b only, until its connection has ended. */
static void end_b_alone(void)
{
	uint64_t end = 0;

	while (rig.b.n_closed == 0 && !rig_late(&end, 0)) {
		rig.ops->progress(rig.b.dev);
		if (rig_driver.turn)
			rig_driver.turn();
	}
}

/* The end that connects logs what the alert states, and not that the connection was reset. */
static void fail_handshake(int a_is_late)
{
	unsigned filters = n_filters;
	uint64_t end = 0;

	use_filter(1, 1);
	filter_rejects = 1;
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	while (a_is_late && n_filters < filters + 2)
		rig_wait(&end, 0, "the start of both filters");
	if (a_is_late)
		end_b_alone();
	rig_until(rig.a.n_closed, 1);
	rig_until(rig.b.n_closed, 1);
	filter_rejects = 0;
	RIG_RC(-EPROTO, rig.a.reason, "reason of `closed` at the end that connects");
	RIG_RC(-EPROTO, rig.b.reason, "reason of `closed` at the end that listens");
	RIG_HOLDS(fake_logged(&rig.a.host, "the peer has sent an alert"), "text in the log of a");
	RIG_HOLDS(fake_logged(&rig.b.host, "the peer has a wrong key"), "text in the log of b");
	RIG_NUM(1, rig.a.host.n_logged[GANTRY_LOG_WARN], "number of warnings of a");
	RIG_NUM(1, rig.b.host.n_logged[GANTRY_LOG_WARN], "number of warnings of b");
}

static void alert_of_a_failed_handshake_arrives(void)
{
	fail_handshake(0);
}

/* The end that connects sees the alert and the end of the connection together. */
static void alert_comes_before_the_end(void)
{
	fail_handshake(1);
}

/* The host logs that, once for many peers. */
static void too_many_handshakes_are_not_logged_by_the_transport(void)
{
	use_filter(1, 1);
	filter_busy = 1;
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_closed, 1);
	rig_until(rig.b.n_closed, 1);
	filter_busy = 0;
	RIG_RC(-EBUSY, rig.b.reason, "reason of `closed`");
	RIG_NUM(0, rig.b.host.n_logged[GANTRY_LOG_WARN], "number of warnings");
}

static void refuse(int a, int b)
{
	use_filter(a, b);
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_closed, 1);
	RIG_NUM(0, rig.a.n_connected, "events `connected`");
	RIG_RC(-EPROTO, rig.a.reason, "reason of `closed`");
	RIG_HOLDS(fake_logged(&rig.b.host, "only one end protects control messages"),
		  "text in the log of the listener");
	RIG_HOLDS(fake_logged(&rig.a.host, "only one end protects control messages"),
		  "text in the log of the end that connects");
}

static void client_without_a_filter_is_refused(void)
{
	refuse(0, 1);
}

static void listener_without_a_filter_refuses(void)
{
	refuse(1, 0);
}

void filter_cases(void)
{
	RIG_CASE(secrets_are_in_the_clear_without_a_filter);
	RIG_CASE(connection_works_with_a_filter);
	RIG_CASE(long_messages_are_cut);
	RIG_CASE(changed_byte_ends_the_connection);
	RIG_CASE(alert_of_a_failed_handshake_arrives);
	RIG_CASE(alert_comes_before_the_end);
	RIG_CASE(too_many_handshakes_are_not_logged_by_the_transport);
	RIG_CASE(client_without_a_filter_is_refused);
	RIG_CASE(listener_without_a_filter_refuses);
	setenv("RIG_A_SETTINGS", "connect_timeout=1s", 1);
	RIG_CASE(handshake_has_a_time_limit);
	TEST_ASSERT_EQUAL_UINT(0, n_filters);
}
