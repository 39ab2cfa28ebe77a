/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile.c - an attacker on the way: cut, changed, repeated, reordered and foreign bytes. No end
 * opens, or an open one fails and returns no message that the other end has not sent.
 */
#include "unit/secure/secure_rig.h"
#include "unit/secure/x509_maker.h"

#define FLIGHTS 4

static struct ca ca;

/* How to change the bytes of a flight; NULL: not. */
static void (*attack)(uint8_t *bytes, size_t *n);
static unsigned attacked_flight;
static size_t attacked_byte;

void setUp(void)
{
	rig_setup();
	rig_file("keys", "host-a:" KEY_A "\nhost-b:" KEY_B "\n", 0600);
	attack = NULL;
}

void tearDown(void)
{
	ca_free(&ca);
	rig_teardown();
}

static void open_psk(void)
{
	device_psk(&left, "host-a", "keys");
	device_psk(&right, "", "keys");
}

static void open_x509(void)
{
	struct gn_auth_conf conf = {.mode = GN_AUTH_X509, .peers = "server"};

	ca_make(&ca, "authority");
	ca_write(&ca, "ca.pem");
	X509_free(cert_make(&ca, "client", &(struct wish){.cn = "client"}));
	X509_free(cert_make(&ca, "server", &(struct wish){.cn = "server"}));
	conf.authorities = rig_path("ca.pem");
	conf.certificate = rig_path("client.pem");
	conf.private_key = rig_path("client.key");
	device_open(&left, &conf);
	conf.peers = "";
	conf.certificate = rig_path("server.pem");
	conf.private_key = rig_path("server.key");
	device_open(&right, &conf);
}

static void reopen(void)
{
	end_close(&a);
	end_close(&b);
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
}

/* Run a handshake of four flights, and attack one. Returns the length of that flight. */
static size_t run_handshake(void)
{
	size_t length = 0;

	reopen();
	for (unsigned flight = 0; flight < FLIGHTS; flight++) {
		struct end *from = flight % 2 ? &b : &a, *to = flight % 2 ? &a : &b;
		uint8_t bytes[WIRE];
		size_t n = captured(from, bytes);

		if (flight == attacked_flight)
			length = n;
		if (flight == attacked_flight && attack)
			attack(bytes, &n);
		end_input(to, bytes, n);
	}
	return length;
}

/* The byte to attack: signatures, so also flights, differ in length by some bytes. */
static size_t byte_of(size_t n)
{
	return attacked_byte < n ? attacked_byte : n - 1;
}

static void cut(uint8_t *bytes, size_t *n)
{
	(void)bytes;
	*n = byte_of(*n);
}

static void flip(uint8_t *bytes, size_t *n)
{
	bytes[byte_of(*n)] ^= (uint8_t)(1u << attacked_byte % 8);
}

/* After the attack not both ends are open. */
static void attack_each_byte(void (*how)(uint8_t *bytes, size_t *n), size_t step)
{
	for (attacked_flight = 0; attacked_flight < FLIGHTS; attacked_flight++) {
		attack = NULL;
		size_t length = run_handshake();

		TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_OPEN, end_state(&a));
		TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_OPEN, end_state(&b));
		attack = how;
		for (attacked_byte = 0; attacked_byte < length; attacked_byte += step) {
			run_handshake();
			TEST_ASSERT_NOT_EQUAL(GANTRY_RECORDS_OPEN, end_state(&a));
			if (attacked_flight < FLIGHTS - 1)
				TEST_ASSERT_NOT_EQUAL(GANTRY_RECORDS_OPEN, end_state(&b));
			if (how == cut)
				TEST_ASSERT_NOT_EQUAL(GANTRY_RECORDS_FAILED,
						      end_state(attacked_flight % 2 ? &a : &b));
		}
	}
}

static void psk_handshake_is_cut_at_each_byte(void)
{
	open_psk();
	attack_each_byte(cut, 1);
}

static void psk_each_byte_is_changed(void)
{
	open_psk();
	attack_each_byte(flip, 1);
}

static void x509_handshake_is_cut_at_each_byte(void)
{
	open_x509();
	attack_each_byte(cut, 7);
}

static void x509_each_byte_is_changed(void)
{
	open_x509();
	attack_each_byte(flip, 1);
}

/* A flight is replaced by bytes of another flight of this conversation. */
static void flights_are_swapped_and_repeated(void)
{
	uint8_t flights[FLIGHTS][WIRE];
	size_t n[FLIGHTS];

	open_psk();
	for (unsigned wrong = 0; wrong < FLIGHTS; wrong++)
		for (unsigned other = 0; other < wrong; other++) {
			reopen();
			for (unsigned i = 0; i < FLIGHTS; i++) {
				unsigned given = i == wrong ? other : i;

				n[i] = captured(i % 2 ? &b : &a, flights[i]);
				end_input(i % 2 ? &a : &b, flights[given], n[given]);
			}
			TEST_ASSERT_NOT_EQUAL(GANTRY_RECORDS_OPEN, end_state(&a));
		}
}

static void recorded_conversation_is_of_no_use(void)
{
	uint8_t of_a[WIRE], of_b[WIRE];
	size_t n_a, n_b;

	open_psk();
	start_and_open();
	TEST_ASSERT_EQUAL_INT(0, gn_auth_records.seal(a.records, "order", 5));
	end_output(&a);
	n_a = a.n_sent;
	n_b = b.n_sent;
	memcpy(of_a, a.sent, n_a);
	memcpy(of_b, b.sent, n_b);
	reopen();
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, of_a, n_a));
	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_FAILED, end_state(&b));
	end_output(&a);
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&a, of_b, n_b));
	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_FAILED, end_state(&a));
}

/* Seal two messages. Returns the length of the first record. */
static size_t seal_two(uint8_t *bytes, size_t *n)
{
	size_t first;

	reopen();
	exchange(&a, &b);
	TEST_ASSERT_EQUAL_INT(0, gn_auth_records.seal(a.records, "first", 5));
	first = captured(&a, bytes);
	TEST_ASSERT_EQUAL_INT(0, gn_auth_records.seal(a.records, "second!", 7));
	*n = first + captured(&a, bytes + first);
	return first;
}

static void fails_for_good(void)
{
	char got[GANTRY_RECORDS_MAX];

	TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_FAILED, end_state(&b));
	TEST_ASSERT_EQUAL_STRING(
		"identity=host-a, reason=a record was changed, repeated or reordered",
		end_text(&b));
	TEST_ASSERT_EQUAL_size_t(0, gn_auth_records.message(b.records, got, sizeof(got)));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_auth_records.seal(b.records, "x", 1));
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, "x", 1));
}

static void records_are_repeated_and_reordered(void)
{
	uint8_t bytes[WIRE];
	size_t n, first;

	open_psk();
	first = seal_two(bytes, &n);
	TEST_ASSERT_EQUAL_INT(0, end_input(&b, bytes, first));
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, bytes, first));
	fails_for_good();
	first = seal_two(bytes, &n);
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, bytes + first, n - first));
	fails_for_good();
	/* back to the sender */
	first = seal_two(bytes, &n);
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&a, bytes, n));
}

static void each_byte_of_a_record_is_changed(void)
{
	uint8_t bytes[WIRE];
	size_t n, first = 1;

	open_psk();
	for (size_t i = 0; i < first; i++) {
		char got[GANTRY_RECORDS_MAX];

		first = seal_two(bytes, &n);
		bytes[i] ^= 0x10;
		end_input(&b, bytes, n);
		TEST_ASSERT_EQUAL_size_t(0, gn_auth_records.message(b.records, got, sizeof(got)));
		/* a longer record is not complete */
		if (i < 3 || i > 4)
			TEST_ASSERT_EQUAL_INT(GANTRY_RECORDS_FAILED, end_state(&b));
	}
}

/* -- foreign bytes -- */

static void listener_gets(const void *bytes, size_t n, const char *reason)
{
	char text[AUTH_TEXT];

	end_close(&b);
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, bytes, n));
	snprintf(text, sizeof(text), "reason=%s", reason);
	TEST_ASSERT_EQUAL_STRING(text, end_text(&b));
}

static void foreign_bytes_are_rejected(void)
{
	static const uint8_t ssl2[] = {0x80, 0x2e, 1, 0, 2, 0, 0},
			     alert[] = {21, 3, 1, 0, 2, 2, 40}, cipher[] = {20, 3, 1, 0, 1, 1},
			     empty[] = {22, 3, 1, 0, 0},
			     server_hello[] = {22, 3, 1, 0, 5, 2, 0, 0, 1, 0},
			     part[] = {22, 3, 1, 0, 5, 1, 0, 0, 2, 0},
			     huge[] = {22, 3, 1, 0x10, 0x22}, longest[] = {22, 3, 1, 0x40, 0};

	open_psk();
	listener_gets("GET / HTTP/1.0\r\n", 16, "not a record of TLS 1.3");
	listener_gets(ssl2, sizeof(ssl2), "not a record of TLS 1.3");
	listener_gets(cipher, sizeof(cipher), "not a record of TLS 1.3");
	listener_gets(alert, sizeof(alert), "not a ClientHello");
	listener_gets(server_hello, sizeof(server_hello), "not a ClientHello");
	listener_gets(part, sizeof(part), "not a ClientHello");
	listener_gets(empty, sizeof(empty), "length of a record");
	listener_gets(huge, sizeof(huge), "length of a record");
	listener_gets(longest, sizeof(longest), "length of a record");
}

/* A listener with TLS of a client that OpenSSL makes without the restrictions of gantry. */
static void hello_of(int newest, const char *groups, const char *reason)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl;
	BIO *out = BIO_new(BIO_s_mem());
	uint8_t bytes[WIRE];
	int n;

	SSL_CTX_set_max_proto_version(ctx, newest);
	SSL_CTX_set1_groups_list(ctx, groups);
	ssl = SSL_new(ctx);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	SSL_set_connect_state(ssl);
	SSL_do_handshake(ssl);
	n = BIO_read(out, bytes, sizeof(bytes));
	listener_gets(bytes, (size_t)n, reason);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

static void other_tls_is_rejected(void)
{
	open_psk();
	hello_of(TLS1_2_VERSION, "X25519", "the peer does not offer TLS 1.3");
	hello_of(TLS1_3_VERSION, "P-256", "no suitable key share");
	hello_of(TLS1_3_VERSION, "X25519", "the peer offers no key");
}

static void garbage_is_rejected(void)
{
	uint8_t bytes[512];
	uint32_t x = 1;

	open_psk();
	for (int round = 0; round < 3000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
		if (round % 3) { /* a ClientHello with any content */
			static const uint8_t head[] = {22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3};

			memcpy(bytes, head, sizeof(head));
		}
		reopen();
		TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, bytes, sizeof(bytes)));
		TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&a, bytes, sizeof(bytes)));
		exchange(&a, &b);
		if (round % 100 == 0) {
			reopen();
			exchange(&a, &b);
			TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&b, bytes, sizeof(bytes)));
		}
	}
}

/* A ServerHello of 20000 bytes, which OpenSSL permits. */
static void long_handshake_is_rejected(void)
{
	static uint8_t record[5 + 4000] = {22, 3, 3, 0x0f, 0xa0, 2, 0, 0x4e, 0x20};

	open_psk();
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	for (int i = 0; i < AUTH_HANDSHAKE_MAX / 4000; i++)
		TEST_ASSERT_EQUAL_INT(0, end_input(&a, record, sizeof(record)));
	TEST_ASSERT_EQUAL_INT(-EPROTO, end_input(&a, record, sizeof(record)));
	TEST_ASSERT_EQUAL_STRING("identity=host-a, reason=the handshake is too long", end_text(&a));
}

static void messages_that_are_not_taken_are_limited(void)
{
	static uint8_t msg[GANTRY_RECORDS_MAX], bytes[WIRE];
	int rc = 0, n_taken = 0;

	open_psk();
	start_and_open();
	while (rc == 0 && n_taken < 100) {
		size_t n;

		TEST_ASSERT_EQUAL_INT(0, gn_auth_records.seal(a.records, msg, sizeof(msg)));
		a.n_sent = 0;
		n = captured(&a, bytes);
		rc = end_input(&b, bytes, n);
		n_taken++;
	}
	TEST_ASSERT_EQUAL_INT(-EPROTO, rc);
	TEST_ASSERT_EQUAL_INT(17, n_taken);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(psk_handshake_is_cut_at_each_byte);
	RUN_TEST(psk_each_byte_is_changed);
	RUN_TEST(x509_handshake_is_cut_at_each_byte);
	RUN_TEST(x509_each_byte_is_changed);
	RUN_TEST(flights_are_swapped_and_repeated);
	RUN_TEST(recorded_conversation_is_of_no_use);
	RUN_TEST(records_are_repeated_and_reordered);
	RUN_TEST(each_byte_of_a_record_is_changed);
	RUN_TEST(foreign_bytes_are_rejected);
	RUN_TEST(other_tls_is_rejected);
	RUN_TEST(garbage_is_rejected);
	RUN_TEST(long_handshake_is_rejected);
	RUN_TEST(messages_that_are_not_taken_are_limited);
	return UNITY_END();
}
