/* SPDX-License-Identifier: BSD-3-Clause */
/* x509.c - certificates of both ends: what is verified, and what the peer and the log see. */
#include "unit/secure/secure_rig.h"
#include "unit/secure/x509_maker.h"

static struct ca ca, other_ca;
static X509 *client, *server;
static char fingerprint[80];

/* Make the certificates; each NULL: the usual one. */
static void make_certificates(const struct wish *of_client, const struct wish *of_server)
{
	static const struct wish usual_client = {.cn = "client", .dns = "DNS:host-a,DNS:host-b"},
				 usual_server = {.cn = "server"};

	X509_free(client);
	X509_free(server);
	client = cert_make(&ca, "client", of_client ? of_client : &usual_client);
	server = cert_make(&ca, "server", of_server ? of_server : &usual_server);
}

void setUp(void)
{
	rig_setup();
	ca_make(&ca, "authority");
	ca_make(&other_ca, "other");
	ca_write(&ca, "ca.pem");
	ca_write(&other_ca, "other.pem");
	make_certificates(NULL, NULL);
}

void tearDown(void)
{
	X509_free(client);
	X509_free(server);
	client = server = NULL;
	ca_free(&ca);
	ca_free(&other_ca);
	rig_teardown();
}

static struct gn_auth_conf conf_of(const char *name)
{
	char file[64];
	struct gn_auth_conf conf = {.mode = GN_AUTH_X509, .authorities = rig_path("ca.pem")};

	snprintf(file, sizeof(file), "%s.pem", name);
	conf.certificate = rig_path(file);
	snprintf(file, sizeof(file), "%s.key", name);
	conf.private_key = rig_path(file);
	return conf;
}

static void open_devices(const char *peers)
{
	struct gn_auth_conf conf = conf_of("client");

	conf.peers = peers;
	device_open(&left, &conf);
	conf = conf_of("server");
	device_open(&right, &conf);
}

static const char *fingerprint_of(const X509 *cert)
{
	uint8_t digest[32];
	unsigned n = 32;

	X509_digest(cert, EVP_sha256(), digest, &n);
	strcpy(fingerprint, "sha256:");
	for (unsigned i = 0; i < n; i++)
		snprintf(fingerprint + 7 + 2 * i, 3, "%02X", digest[i]);
	return fingerprint;
}

static void certificates_open(void)
{
	open_devices("other.example, server");
	start_and_open();
	TEST_ASSERT_EQUAL_STRING("host-a", gn_auth_identity(right.host.auth, &b));
	TEST_ASSERT_EQUAL_STRING("server", gn_auth_identity(left.host.auth, &a));
	TEST_ASSERT_TRUE(gn_auth_knows(right.host.auth, &b));
	TEST_ASSERT_TRUE(gn_auth_knows(left.host.auth, &a));
	send_message(&a, &b, "word", 4);
	send_message(&b, &a, "word", 4);
}

static void fingerprint_is_a_peer(void)
{
	open_devices(fingerprint_of(server));
	start_and_open();
}

static void other_server_is_rejected(void)
{
	open_devices("serve");
	start();
	failed("identity=server, reason=the certificate is not one of `peers`", NULL);
	TEST_ASSERT_NOT_NULL(strstr(end_text(&b), "the peer rejects this end (alert="));
	end_close(&a);
	end_close(&b);
	gn_auth_close(&left.host.auth);
	gn_auth_close(&right.host.auth);
	open_devices(fingerprint_of(client));
	start();
	failed("identity=server, reason=the certificate is not one of `peers`", NULL);
}

static void wildcards_are_no_names(void)
{
	make_certificates(NULL, &(struct wish){.cn = "x", .dns = "DNS:*.example.org"});
	struct gn_auth_conf conf = conf_of("server");

	rejected(&conf, "no DNS name or common name that is an identity");
	conf = conf_of("client");
	conf.peers = "*.example.org";
	rejected(&conf, "neither a name nor a fingerprint (value=*.example.org)");
	conf.peers = "sha256:12";
	rejected(&conf, "neither a name nor a fingerprint");
}

/* A client with this fault: its log and what it gets are the same for each. */
static void rejected_client(const char *reason)
{
	char text[AUTH_TEXT];

	start();
	failed(NULL, NULL);
	snprintf(text, sizeof(text), "reason=%s", reason);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(end_text(&b), text), end_text(&b));
	TEST_ASSERT_EQUAL_STRING(
		"identity=server, reason=the peer rejects this end (alert=bad certificate)",
		end_text(&a));
}

static void expired_client(void)
{
	make_certificates(&(struct wish){.cn = "late", .to_s = -60}, NULL);
	open_devices("server");
	rejected_client("certificate has expired");
}

static void client_of_the_future(void)
{
	make_certificates(&(struct wish){.cn = "soon", .from_s = 3600}, NULL);
	open_devices("server");
	rejected_client("certificate is not yet valid");
}

static void client_of_another_authority(void)
{
	X509_free(client);
	client = cert_make(&other_ca, "client", &(struct wish){.cn = "host-a"});
	open_devices("server");
	rejected_client("unable to get local issuer certificate");
}

static void client_with_the_usage_of_a_server(void)
{
	make_certificates(&(struct wish){.cn = "host-a", .usage = "serverAuth"}, NULL);
	open_devices("server");
	rejected_client("unsuitable certificate purpose");
}

static void revoked_client(void)
{
	struct gn_auth_conf conf = conf_of("client");

	conf.peers = "server";
	device_open(&left, &conf);
	crl_write(&ca, "crl.pem", 2);
	conf = conf_of("server");
	conf.revoked = rig_path("crl.pem");
	device_open(&right, &conf);
	rejected_client("certificate revoked");
}

static void certificate_of_the_listening_device(void)
{
	struct gn_auth_conf conf = conf_of("server");

	conf.peers = "server";
	device_open(&right, &conf);
	device_open(&left, &conf);
	start_and_open();
	end_close(&a);
	end_close(&b);
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 0));
	end_close(&b);
	rejected_client("certificate of this device, which it uses to connect");
}

static void faults_of_a_server(void)
{
	make_certificates(NULL, &(struct wish){.cn = "server", .to_s = -60});
	open_devices("server");
	start();
	failed("identity=server, reason=certificate has expired",
	       "reason=the peer rejects this end (alert=bad certificate)");
}

static void revocation_shows_after_a_reload(void)
{
	struct gn_auth_conf conf = conf_of("client");

	conf.peers = "server";
	device_open(&left, &conf);
	crl_write(&ca, "crl.pem", 77);
	conf = conf_of("server");
	conf.revoked = rig_path("crl.pem");
	device_open(&right, &conf);
	start_and_open();
	TEST_ASSERT_TRUE(gn_auth_knows(right.host.auth, &b));
	crl_write(&ca, "crl.pem", 2);
	TEST_ASSERT_TRUE(gn_auth_knows(right.host.auth, &b));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gn_auth_reload(right.host.auth, why), why);
	TEST_ASSERT_FALSE(gn_auth_knows(right.host.auth, &b));
	send_message(&a, &b, "goes on", 7);
	rig_file("crl.pem", "nothing", 0600);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_auth_reload(right.host.auth, why));
	TEST_ASSERT_FALSE(gn_auth_knows(right.host.auth, &b));
}

/* A handshake that has begun before a reload. */
static void revocation_during_a_handshake(void)
{
	struct gn_auth_conf conf = conf_of("client");
	uint8_t bytes[WIRE];
	size_t n;

	conf.peers = "server";
	device_open(&left, &conf);
	crl_write(&ca, "crl.pem", 77);
	conf = conf_of("server");
	conf.revoked = rig_path("crl.pem");
	device_open(&right, &conf);
	TEST_ASSERT_EQUAL_INT(0, end_open(&a, &left, 0));
	TEST_ASSERT_EQUAL_INT(0, end_open(&b, &right, 1));
	n = captured(&a, bytes);
	TEST_ASSERT_EQUAL_INT(0, end_input(&b, bytes, n));
	crl_write(&ca, "crl.pem", 2);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gn_auth_reload(right.host.auth, why), why);
	exchange(&a, &b);
	failed(NULL, "identity=host-a, reason=the credentials changed during the handshake");
}

static void modes_do_not_mix(void)
{
	struct gn_auth_conf conf = conf_of("server");

	rig_file("keys", "host-a:" KEY_A "\n", 0600);
	device_psk(&left, "host-a", "keys");
	device_open(&right, &conf);
	start();
	failed("identity=host-a, reason=the peer does not use the key", NULL);
	end_close(&a);
	end_close(&b);
	gn_auth_close(&left.host.auth);
	gn_auth_close(&right.host.auth);
	conf = conf_of("client");
	conf.peers = "server";
	device_open(&left, &conf);
	device_psk(&right, "host-a", "keys");
	start();
	failed(NULL, "reason=the peer offers no key");
}

static void files_are_checked(void)
{
	struct gn_auth_conf conf = conf_of("client");

	conf.private_key = rig_path("server.key");
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "does not belong to the certificate"));
	conf = conf_of("client");
	TEST_ASSERT_EQUAL_INT(0, chmod(conf.private_key, 0640));
	TEST_ASSERT_EQUAL_INT(-EPERM, rejected(&conf, "other users can access the key"));
	TEST_ASSERT_EQUAL_INT(0, chmod(conf.private_key, 0600));
	conf.private_key = rig_file("x.key", "text", 0600);
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "no private key without a passphrase"));
	conf = conf_of("client");
	conf.certificate = rig_path("client.key");
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "no certificate that OpenSSL accepts"));
	conf = conf_of("client");
	conf.authorities = rig_file("empty", "", 0644);
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "no certificate, or a wrong one"));
	conf.authorities = rig_file("wrong", "-----BEGIN CERTIFICATE-----\nAAAA\n", 0644);
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "no certificate, or a wrong one"));
	conf.authorities = NULL;
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "set auth_authorities"));
	conf = conf_of("client");
	conf.revoked = conf.authorities;
	TEST_ASSERT_EQUAL_INT(-EINVAL, rejected(&conf, "no CRL, or a wrong one"));
	conf.revoked = NULL;
	device_open(&left, &conf);
	TEST_ASSERT_EQUAL_INT(-EINVAL, end_open(&a, &left, 0)); /* no peers */
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(certificates_open);
	RUN_TEST(fingerprint_is_a_peer);
	RUN_TEST(other_server_is_rejected);
	RUN_TEST(wildcards_are_no_names);
	RUN_TEST(expired_client);
	RUN_TEST(client_of_the_future);
	RUN_TEST(client_of_another_authority);
	RUN_TEST(client_with_the_usage_of_a_server);
	RUN_TEST(revoked_client);
	RUN_TEST(certificate_of_the_listening_device);
	RUN_TEST(faults_of_a_server);
	RUN_TEST(revocation_shows_after_a_reload);
	RUN_TEST(revocation_during_a_handshake);
	RUN_TEST(modes_do_not_mix);
	RUN_TEST(files_are_checked);
	return UNITY_END();
}
