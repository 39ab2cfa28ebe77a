/* SPDX-License-Identifier: BSD-3-Clause */
/* psk.c - pre-shared keys: the key file, both ends of the filter, what each end and its log see. */
#include "unit/secure/secure_rig.h"

#include "base/clock.h"

static uint64_t now_ns;

static uint64_t fake_now(void)
{
	return now_ns;
}

void setUp(void)
{
	rig_setup();
	rig_file("keys", "host-a:" KEY_A "\nhost-b:" KEY_B "\n", 0600);
}

void tearDown(void)
{
	gn_clock_set_fake(NULL);
	rig_teardown();
}

static void open_devices(void)
{
	device_psk(&left, "host-a", "keys");
	device_psk(&right, "", "keys");
}

/* -- the key file -- */

static void parse(const char *text, const char *problem)
{
	struct gn_keys keys;
	int rc = gn_keys_parse("F", text, strlen(text), &keys, why);

	TEST_ASSERT_TRUE(problem ? rc == -EINVAL || rc == -ENODATA : rc == 0);
	TEST_ASSERT_EQUAL_STRING(problem ? problem : "", why);
	gn_keys_fini(&keys);
	TEST_ASSERT_NULL(keys.key);
}

static void key_files_are_checked(void)
{
	parse("# comment\n\n \t\r\nx:" KEY_A "\r\ny:" KEY_B, NULL);
	parse("a.b_c@d-9:" KEY_A " \n", NULL);
	parse("", "F: no key: add one with \"gantry key new\"");
	parse("# " KEY_A "\n", "F: no key: add one with \"gantry key new\"");
	parse("x:" KEY_A "\n" KEY_B "\n", "F:2: no colon: write IDENTITY:KEY");
	parse("x:\n", "F:1: the key is empty: write 64 hexadecimal digits");
	parse("x:" KEY_A "0\n", "F:1: the key has the wrong length: write 64 hexadecimal digits");
	parse("x:abcd\n", "F:1: the key has the wrong length: write 64 hexadecimal digits");
	parse("\nx:secret" KEY_A "\n",
	      "F:2: the key has a character that is not a hexadecimal digit: write 64 hexadecimal digits");
	parse(":" KEY_A "\n",
	      "F:1: the identity is empty or has a forbidden character: write letters, digits and . _ @ -");
	parse("a b:" KEY_A "\n",
	      "F:1: the identity is empty or has a forbidden character: write letters, digits and . _ @ -");
	parse("x234567890123456789012345678901234567890123456789012345678901234:" KEY_A "\n",
	      "F:1: the identity is too long: write at most 63 characters");
	parse("x23456789012345678901234567890123456789012345678901234567890123:" KEY_A "\n", NULL);
	parse("x:" KEY_A "\ny:" KEY_A "\nx:" KEY_B "\n",
	      "F:3: the file has this identity twice: remove one of the lines");
}

static void nul_in_a_key_file_is_rejected(void)
{
	static const char text[] = "a\0b:" KEY_A;
	struct gn_keys keys;

	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_keys_parse("F", text, sizeof(text) - 1, &keys, why));
}

static void messages_never_have_a_key(void)
{
	static const char line[] = "some-host:" KEY_A;
	struct gn_keys keys;
	char text[sizeof(line) + 1];

	for (size_t i = 0; i < sizeof(line) - 1; i++) {
		memcpy(text, line, sizeof(line));
		text[i] = '!';
		TEST_ASSERT_EQUAL_INT(-EINVAL,
				      gn_keys_parse("F", text, sizeof(line) - 1, &keys, why));
		TEST_ASSERT_NULL_MESSAGE(strstr(why, "a2a3"), why);
		TEST_ASSERT_NULL_MESSAGE(strstr(why, "bdbe"), why);
	}
}

static void readable_key_file_is_rejected(void)
{
	struct gn_auth_conf conf = {.mode = GN_AUTH_PSK, .identity = "x"};

	for (unsigned bit = 1; bit <= 040; bit <<= 1) {
		conf.keys = rig_file("open", "x:" KEY_A "\n", 0600 | bit);
		TEST_ASSERT_EQUAL_INT(-EPERM, rejected(&conf, "mode=06"));
	}
	conf.keys = rig_path("none");
	TEST_ASSERT_EQUAL_INT(-ENOENT, rejected(&conf, "none: cannot be read"));
	conf.keys = "/dev/null";
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "not a regular file"));
	conf.keys = NULL;
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "set auth_keys"));
	conf.keys = rig_path("keys");
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "no key for the identity of this device"));
	conf.identity = "a b";
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "not an identity"));
}

static void no_authentication_has_no_filter(void)
{
	struct gn_auth_conf conf = {.mode = GN_AUTH_NONE};
	struct gn_auth *auth = (void *)why;

	TEST_ASSERT_EQUAL_INT(0, gn_auth_open(&conf, &auth, why));
	TEST_ASSERT_NULL(auth);
	gn_auth_close(&auth);
}

/* -- both ends -- */

static void same_key_opens(void)
{
	open_devices();
	start_and_open();
	TEST_ASSERT_EQUAL_STRING("host-a", gn_auth_identity(right.host.auth, &b));
	TEST_ASSERT_NULL(gn_auth_identity(left.host.auth, &a));
	TEST_ASSERT_NULL(gn_auth_identity(right.host.auth, &a));
	TEST_ASSERT_TRUE(gn_auth_knows(right.host.auth, &b));
	TEST_ASSERT_TRUE(gn_auth_knows(left.host.auth, &a));
	TEST_ASSERT_FALSE(gn_auth_knows(left.host.auth, &b));
}

static void end_that_connects_opens_last(void)
{
	uint8_t bytes[WIRE];
	size_t n;

	open_devices();
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
	n = captured(&a, bytes);
	TEST_ASSERT_EQUAL_INT(0, end_input(&b, bytes, n));
	n = captured(&b, bytes);
	TEST_ASSERT_EQUAL_INT(0, end_input(&a, bytes, n));
	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_HANDSHAKE, end_state(&a));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_auth_records.seal(a.records, "x", 1));
	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      gn_auth_records.export_secret(a.records, "x", NULL, 0, bytes, 8));
	n = captured(&a, bytes);
	TEST_ASSERT_EQUAL_INT(0, end_input(&b, bytes, n));
	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_OPEN, end_state(&b));
	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_HANDSHAKE, end_state(&a));
	n = captured(&b, bytes);
	TEST_ASSERT_EQUAL_INT(0, end_input(&a, bytes, n));
	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_OPEN, end_state(&a));
	TEST_ASSERT_EQUAL_size_t(0, gn_auth_records.message(a.records, bytes, sizeof(bytes)));
}

static void message_is_a_record(void)
{
	static uint8_t bytes[GANTRY_RECORDS_MAX + 1];
	static const size_t sizes[] = {1, 2, 255, 256, 4096, GANTRY_RECORDS_MAX};

	open_devices();
	start_and_open();
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_message(&a, &b, bytes, sizes[i]);
		TEST_ASSERT_EQUAL_size_t(sizes[i] + 22, a.n_sent);
		send_message(&b, &a, bytes, sizes[i]);
	}
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_auth_records.seal(a.records, bytes, 0));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_auth_records.seal(a.records, bytes, sizeof(bytes)));
	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_OPEN, end_state(&a));
}

static void messages_keep_their_order_in_any_pieces(void)
{
	static uint8_t bytes[WIRE], got[GANTRY_RECORDS_MAX];
	size_t n;

	open_devices();
	start_and_open();
	for (size_t piece = 1; piece < 200; piece += 13) {
		for (int i = 1; i <= 5; i++)
			TEST_ASSERT_EQUAL_INT(
				0, gn_auth_records.seal(a.records, "1234567890", (size_t)i));
		a.n_sent = 0;
		n = captured(&a, bytes);
		for (size_t at = 0; at < n; at += piece)
			TEST_ASSERT_EQUAL_INT(
				0, end_input(&b, bytes + at, n - at < piece ? n - at : piece));
		for (size_t i = 1; i <= 5; i++)
			TEST_ASSERT_EQUAL_size_t(
				i, gn_auth_records.message(b.records, got, sizeof(got)));
	}
}

static void wire_shows_no_message(void)
{
	static const char secret[] = "a secret word of a session";

	open_devices();
	start_and_open();
	send_message(&a, &b, secret, sizeof(secret));
	TEST_ASSERT_NULL(memmem(a.sent, a.n_sent, "secret", 6));
}

static void secrets_are_equal_and_bound(void)
{
	uint8_t x[32], y[32], other[32], again[32];

	open_devices();
	start_and_open();
	TEST_ASSERT_EQUAL_INT(0,
			      gn_auth_records.export_secret(a.records, "lane 1", NULL, 0, x, 32));
	TEST_ASSERT_EQUAL_INT(0,
			      gn_auth_records.export_secret(b.records, "lane 1", NULL, 0, y, 32));
	TEST_ASSERT_EQUAL_MEMORY(x, y, 32);
	TEST_ASSERT_EQUAL_INT(
		0, gn_auth_records.export_secret(b.records, "lane 2", NULL, 0, other, 32));
	TEST_ASSERT_TRUE(memcmp(x, other, 32) != 0);
	end_close(&a);
	end_close(&b);
	start_and_open();
	TEST_ASSERT_EQUAL_INT(
		0, gn_auth_records.export_secret(a.records, "lane 1", NULL, 0, again, 32));
	TEST_ASSERT_TRUE(memcmp(x, again, 32) != 0);
}

/* Get an extension of a ClientHello, with its length in *n_p. NULL: it has none. */
static const uint8_t *extension(const uint8_t *hello, size_t size, unsigned type, size_t *n_p)
{
	const uint8_t *at = hello + 4 + 2 + 32; /* message, version, random */

	at += 1 + at[0];                /* session id */
	at += 2 + (at[0] << 8 | at[1]); /* cipher suites */
	at += 1 + at[0];                /* compression */
	for (at += 2; at + 4 <= hello + size; at += 4 + *n_p) {
		*n_p = (size_t)(at[2] << 8 | at[3]);
		if ((unsigned)(at[0] << 8 | at[1]) == type)
			return at + 4;
	}
	return NULL;
}

/* The profile of doc/protocol.md, as far as a ClientHello shows it. */
static void client_hello_has_the_profile(void)
{
	static const struct {
		unsigned type;
		const char *bytes;
		size_t n;
	} rows[] = {
		{0, NULL, 0},                        /* server_name */
		{16, NULL, 0},                       /* ALPN */
		{35, NULL, 0},                       /* session_ticket */
		{42, NULL, 0},                       /* early_data */
		{10, "\0\2\0\x1d", 4},               /* supported_groups: X25519 */
		{43, "\2\3\4", 3},                   /* supported_versions: TLS 1.3 */
		{45, "\1\1", 2},                     /* psk_key_exchange_modes: psk_dhe_ke */
		{51, "\0\x24\0\x1d\0\x20", 6},       /* key_share: X25519, 32 bytes */
		{41, "\0\xc\0\6host-a\0\0\0\0", 14}, /* pre_shared_key: the identity, age 0 */
	};
	const uint8_t *hello = a.sent + AUTH_HEAD, *found;
	size_t size, n = 0;

	open_devices();
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	size = end_output(&a) - AUTH_HEAD;
	TEST_ASSERT_EQUAL_MEMORY("\x16\3\1", a.sent, 3);
	TEST_ASSERT_EQUAL_UINT(size, a.sent[3] << 8 | a.sent[4]);
	TEST_ASSERT_EQUAL_UINT(0, hello[38]); /* session id */
	/* TLS_AES_128_GCM_SHA256, and the signal that the end does not renegotiate */
	TEST_ASSERT_EQUAL_MEMORY("\0\4\x13\1\0\xff", hello + 39, 6);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		found = extension(hello, size, rows[i].type, &n);
		TEST_ASSERT_EQUAL_INT(rows[i].bytes != NULL, found != NULL);
		if (found)
			TEST_ASSERT_EQUAL_MEMORY(rows[i].bytes, found, rows[i].n);
	}
	end_close(&a);
}

/* Open a device whose file has one key. */
static void open_left(const char *identity, const char *key)
{
	char text[200];

	snprintf(text, sizeof(text), "%s:%s\n", identity, key);
	rig_file("left", text, 0600);
	device_psk(&left, identity, "left");
	device_psk(&right, "", "keys");
}

static void unknown_identity_looks_like_a_wrong_key(void)
{
	uint8_t wrong[WIRE];
	size_t n;
	char text[AUTH_TEXT];

	open_left("host-a", KEY_B);
	start();
	failed(NULL, "identity=host-a, reason=wrong key");
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(end_text(&a), "the peer rejects this end"),
				     end_text(&a));
	snprintf(text, sizeof(text), "%s", strstr(end_text(&a), "reason"));
	n = b.n_sent;
	memcpy(wrong, b.sent, n);
	rig_teardown();
	setUp();
	open_left("host-c", KEY_A);
	start();
	failed(NULL, "identity=host-c, reason=unknown identity");
	TEST_ASSERT_EQUAL_STRING(text, strstr(end_text(&a), "reason"));
	TEST_ASSERT_EQUAL_size_t(n, b.n_sent);
	TEST_ASSERT_EQUAL_MEMORY(wrong, b.sent, n);
}

static void own_identity_is_refused_after_a_connect(void)
{
	device_psk(&left, "host-a", "keys");
	device_psk(&right, "host-a", "keys");
	start_and_open();
	end_close(&a);
	end_close(&b);
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 0));
	end_close(&b);
	start();
	failed(NULL, "identity=host-a, reason=identity of this device, which it uses to connect");
	end_close(&a);
	end_close(&b);
	/* a device that connects to itself */
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &right, 0));
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
	exchange(&a, &b);
	failed(NULL, "identity=host-a, reason=identity of this device, which it uses to connect");
}

static void device_without_identity_only_listens(void)
{
	open_devices();
	TEST_ASSERT_EQUAL_INT(-EINVAL, end_open(&a, &right, 0));
	TEST_ASSERT_NULL(a.records);
}

static char last_line[512];
static unsigned n_lines;

static void count_lines(enum gn_log_level level, const char *source, const char *message)
{
	(void)level;
	(void)source;
	snprintf(last_line, sizeof(last_line), "%s", message);
	n_lines++;
}

/* One warning in ten seconds, with the number of handshakes that were refused. */
static void refused_handshakes_are_logged(void)
{
	struct gn_auth_conf conf = {.mode = GN_AUTH_PSK, .keys = rig_path("keys"), .rate = 1};

	now_ns = 5 * GN_NS_PER_S;
	n_lines = 0;
	gn_clock_set_fake(fake_now);
	gn_log_set_hook(count_lines);
	device_open(&right, &conf);
	TEST_ASSERT_EQUAL_INT(0, gn_auth_records.admit(&right.host.pub));
	TEST_ASSERT_EQUAL_UINT(0, n_lines);
	for (int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(-EBUSY, gn_auth_records.admit(&right.host.pub));
		TEST_ASSERT_EQUAL_INT(-EBUSY, end_open(&b, &right, 1));
	}
	TEST_ASSERT_EQUAL_UINT(1, n_lines);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(last_line, "(refused=1, limit auth_rate=1)"),
				     last_line);
	now_ns += 10 * GN_NS_PER_S;
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
	TEST_ASSERT_EQUAL_INT(-EBUSY, gn_auth_records.admit(&right.host.pub));
	gn_log_set_hook(NULL);
	TEST_ASSERT_EQUAL_UINT(2, n_lines);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(last_line, "(refused=6, limit auth_rate=1)"),
				     last_line);
}

static void rate_limits_listeners(void)
{
	struct gn_auth_conf conf = {.mode = GN_AUTH_PSK, .keys = rig_path("keys"), .rate = 3};
	struct end more[4] = {{.device = NULL}};

	now_ns = 5 * GN_NS_PER_S;
	gn_clock_set_fake(fake_now);
	device_psk(&left, "host-a", "keys");
	device_open(&right, &conf);
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, end_open(&more[i], &right, 1));
	TEST_ASSERT_EQUAL_INT(-EBUSY, end_open(&more[3], &right, 1));
	TEST_ASSERT_NULL(more[3].records);
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	now_ns += GN_NS_PER_S / 3 - 1;
	TEST_ASSERT_EQUAL_INT(-EBUSY, end_open(&more[3], &right, 1));
	now_ns += 2;
	TEST_ASSERT_EQUAL_INT(0, end_open(&more[3], &right, 1));
	TEST_ASSERT_EQUAL_INT(-EBUSY, end_open(&b, &right, 1));
	for (int i = 0; i < 4; i++)
		end_close(&more[i]);
	now_ns += 3600 * GN_NS_PER_S;
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, end_open(&more[i], &right, 1));
	TEST_ASSERT_EQUAL_INT(-EBUSY, end_open(&more[3], &right, 1));
	for (int i = 0; i < 3; i++)
		end_close(&more[i]);
}

/* -- reload -- */

static void reload_keeps_connections(void)
{
	open_devices();
	start_and_open();
	rig_file("keys", "host-b:" KEY_B "\n", 0600);
	TEST_ASSERT_EQUAL_INT(0, gn_auth_reload(right.host.auth, why));
	send_message(&a, &b, "goes on", 7);
	send_message(&b, &a, "goes on", 7);
	TEST_ASSERT_FALSE(gn_auth_knows(right.host.auth, &b));
	TEST_ASSERT_EQUAL_STRING("host-a", gn_auth_identity(right.host.auth, &b));
	rig_file("keys", "host-a:" KEY_B "\n", 0600);
	TEST_ASSERT_EQUAL_INT(0, gn_auth_reload(right.host.auth, why));
	TEST_ASSERT_FALSE(gn_auth_knows(right.host.auth, &b));
	rig_file("keys", "host-a:" KEY_A "\nhost-c:" KEY_B "\n", 0600);
	TEST_ASSERT_EQUAL_INT(0, gn_auth_reload(right.host.auth, why));
	TEST_ASSERT_TRUE(gn_auth_knows(right.host.auth, &b));
	TEST_ASSERT_TRUE(gn_auth_knows(left.host.auth, &a));
}

static void failed_reload_changes_nothing(void)
{
	open_devices();
	rig_file("keys", "host-a:12\n", 0600);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_auth_reload(right.host.auth, why));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, "keys:1: the key has the wrong length"), why);
	start_and_open();
	rig_file("keys", "host-b:" KEY_B "\n", 0600);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_auth_reload(left.host.auth, why));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, "no key for the identity"), why);
}

static void handshake_across_a_reload_needs_the_new_key(void)
{
	uint8_t bytes[WIRE];
	size_t n;

	open_devices();
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
	n = captured(&a, bytes);
	TEST_ASSERT_EQUAL_INT(0, end_input(&b, bytes, n));
	rig_file("keys", "host-b:" KEY_B "\n", 0600);
	TEST_ASSERT_EQUAL_INT(0, gn_auth_reload(right.host.auth, why));
	exchange(&a, &b);
	failed(NULL, "identity=host-a, reason=the credentials changed during the handshake");
}

static void keys_change_after_many_records(void)
{
	open_devices();
	start_and_open();
	left.host.auth->rekey = right.host.auth->rekey = 8;
	for (int i = 0; i < 40; i++) {
		send_message(&a, &b, "x", 1);
		TEST_ASSERT_EQUAL_size_t(i && i % 8 == 0 ? 50 : 23, a.n_sent);
	}
	for (int i = 0; i < 40; i++)
		send_message(&b, &a, "y", 1);
}

static void early_change_of_keys_is_refused(void)
{
	uint8_t bytes[WIRE];
	size_t n;

	open_devices();
	start_and_open();
	left.host.auth->rekey = 0;
	TEST_ASSERT_EQUAL_INT(0, gn_auth_records.seal(a.records, "x", 1));
	n = captured(&a, bytes);
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, bytes, n));
	TEST_ASSERT_EQUAL_STRING("identity=host-a, reason=unexpected message of TLS", end_text(&b));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(key_files_are_checked);
	RUN_TEST(nul_in_a_key_file_is_rejected);
	RUN_TEST(messages_never_have_a_key);
	RUN_TEST(readable_key_file_is_rejected);
	RUN_TEST(no_authentication_has_no_filter);
	RUN_TEST(same_key_opens);
	RUN_TEST(end_that_connects_opens_last);
	RUN_TEST(message_is_a_record);
	RUN_TEST(messages_keep_their_order_in_any_pieces);
	RUN_TEST(wire_shows_no_message);
	RUN_TEST(secrets_are_equal_and_bound);
	RUN_TEST(client_hello_has_the_profile);
	RUN_TEST(unknown_identity_looks_like_a_wrong_key);
	RUN_TEST(own_identity_is_refused_after_a_connect);
	RUN_TEST(device_without_identity_only_listens);
	RUN_TEST(rate_limits_listeners);
	RUN_TEST(refused_handshakes_are_logged);
	RUN_TEST(reload_keeps_connections);
	RUN_TEST(failed_reload_changes_nothing);
	RUN_TEST(handshake_across_a_reload_needs_the_new_key);
	RUN_TEST(keys_change_after_many_records);
	RUN_TEST(early_change_of_keys_is_refused);
	return UNITY_END();
}
