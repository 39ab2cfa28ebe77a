/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_hostile_server.c - a hostile server: the victim is end a, which connects to it. */
#include "conform/tcp_hostile.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT 47959

static int listener = -1, control = -1;
static void *honest, *hostile; /* connections of end a */

static int accept_one(void)
{
	int fd = -1;

	for (uint64_t end = 0; fd < 0; fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC))
		rig_wait(&end, 0, "the victim to connect");
	return fd;
}

/* Accept a socket, and read the hello of the victim. */
static int greet(struct tcp_hello *hello)
{
	int fd = accept_one();

	RIG_NUM(sizeof(*hello), evil_read(fd, hello, sizeof(*hello)), "bytes of a hello");
	return fd;
}

static void say(unsigned kind, const void *body, size_t n)
{
	evil_ctrl(&(struct evil){.control = control}, kind, body, n);
}

static void begin(const char *settings)
{
	struct sockaddr_in at = evil_address(PORT);
	int one = 1;

	honest_begin(settings);
	honest = rig.a.conn;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	RIG_OK(bind(listener, (struct sockaddr *)&at, sizeof(at)));
	RIG_OK(listen(listener, 2048));
}

static void end(void)
{
	close(listener);
	honest_end();
}

static unsigned n_warnings(void)
{
	return rig.a.host.n_logged[GANTRY_LOG_WARN] + rig.a.host.n_logged[GANTRY_LOG_ERROR];
}

/* The victim connects. up: the server sends WELCOME. */
static void connect_victim(int up)
{
	static const struct tcp_welcome welcome = {"secret"};
	struct tcp_hello hello;
	char service[64];
	int n = rig.a.n_connected;

	rig.a.host.log[0] = '\0';
	rig.a.host.log_used = 0;
	memset(rig.a.host.n_logged, 0, sizeof(rig.a.host.n_logged));
	rig.a.n_closed = 0;
	snprintf(service, sizeof(service), "%s:%d", inet_ntoa(evil_address(0).sin_addr), PORT);
	rig_start_connect(service);
	hostile = rig.a.conn;
	control = greet(&hello);
	RIG_NUM(TCP_CONTROL, hello.kind, "kind of the first hello");
	if (!up)
		return;
	say(TCP_CTRL_WELCOME, &welcome, sizeof(welcome));
	rig_until(rig.a.n_connected, n + 1);
}

/* The victim has ended the connection, with one line if there is a text. */
static void check_dropped(const char *what, int reason, const char *text)
{
	rig_until(rig.a.n_closed, 1);
	RIG_RC(reason, rig.a.reason, what);
	if (n_warnings() != (text != NULL) || (text && !fake_logged(&rig.a.host, text)))
		rig_fail_at(__FILE__, __LINE__, "%s: expected one line with '%s': %s", what, text,
			    rig.a.host.log);
	rig.a.conn = hostile;
	rig_disconnect(&rig.a);
	rig.a.conn = honest;
	rig.a.n_closed = 0;
	close(control);
	rig_settle();
	honest_check();
}

static void wrong_messages_of_a_server(void)
{
	static const struct {
		const char *what;
		int up;
		unsigned kind;
		uint16_t length;
		uint16_t body[4];
		const char *log;
	} messages[] = {
		{"a message before WELCOME", 0, TCP_CTRL_USER, 4, {0}, "an unknown message"},
		{"a short WELCOME", 0, TCP_CTRL_WELCOME, 15, {0}, "an unexpected welcome"},
		{"a second WELCOME", 1, TCP_CTRL_WELCOME, 16, {0}, "an unexpected welcome"},
		{"a short refusal", 0, TCP_CTRL_REFUSED, 139, {0}, "an unexpected refusal"},
		{"a late refusal", 1, TCP_CTRL_REFUSED, 140, {0}, "an unexpected refusal"},
		{"a short LINK", 1, TCP_CTRL_LINK, 3, {0}, "a malformed message"},
		{"lane 256", 1, TCP_CTRL_LINK, 4, {256, 0}, "asks for an invalid link"},
		{"the last lane", 1, TCP_CTRL_LINK, 4, {0, UINT16_MAX}, "asks for an invalid link"},
	};

	begin(NULL);
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		uint8_t body[140] = {0};

		memcpy(body, messages[i].body, sizeof(messages[i].body));
		connect_victim(messages[i].up);
		say(messages[i].kind, body, messages[i].length);
		check_dropped(messages[i].what, -EPROTO, messages[i].log);
	}
	end();
}

/* The text of a refusal is not terminated, and would change the terminal. */
static void text_of_a_refusal(void)
{
	struct tcp_refused refused = {.reason = EBUSY};
	const char *text;

	begin(NULL);
	memset(refused.text, '\033', sizeof(refused.text));
	connect_victim(0);
	say(TCP_CTRL_REFUSED, &refused, sizeof(refused));
	rig_until(rig.a.n_closed, 1);
	text = rig.ops->refusal(hostile);
	RIG_NUM(TCP_REFUSED_TEXT - 1, strspn(text, "?"), "printable bytes of the text");
	RIG_NUM('\0', (unsigned char)text[TCP_REFUSED_TEXT - 1], "byte after the text");
	check_dropped("a refusal", -EBUSY, NULL);
	end();
}

/* The server asks for a link, and answers its hello wrongly. */
static void wrong_answers_to_a_link(void)
{
	static const struct tcp_frame wrong[] = {
		{.kind = 0},
		{.kind = TCP_OPEN, .ops = 1},
		{.kind = TCP_READY, .ops = 0},
		{.kind = 255, .ops = 1},
	};
	static const struct tcp_ctrl_link lanes = {3, 4};
	struct tcp_hello hello;
	int link;

	begin(NULL);
	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		connect_victim(1);
		say(TCP_CTRL_LINK, &lanes, sizeof(lanes));
		link = greet(&hello);
		RIG_NUM(3, hello.connects_lane, "lane of the victim");
		RIG_SAME("secret", hello.secret, 7, "the secret of the session");
		if (i < sizeof(wrong) / sizeof(wrong[0])) {
			evil_send(link, &wrong[i], sizeof(wrong[i]));
			check_dropped("a wrong READY", -EPROTO, "an unexpected frame");
		}
		close(link);
		if (i == sizeof(wrong) / sizeof(wrong[0]))
			check_dropped("a link that ends", -ENOTCONN, NULL);
	}
	end();
}

/* The server asks for more links than permitted. The victim opens as many as that. */
static void too_many_links_for_a_server(void)
{
	static int links[1025];
	unsigned n = 0;
	int fd;

	if (honest_raise_fds(3200) < 3200)
		TEST_IGNORE_MESSAGE("too few descriptors");
	begin(NULL);
	connect_victim(1);
	for (uint16_t i = 0; i < 1025; i++) {
		const struct tcp_ctrl_link lanes = {i / 256, i % 256};

		say(TCP_CTRL_LINK, &lanes, sizeof(lanes));
		if (i % 64 == 0)
			rig_settle();
	}
	check_dropped("too many links", -ENOSPC, "ends: No space");
	while (n < 1025 && (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		links[n++] = fd;
	RIG_NUM(1024, n, "links of the victim");
	while (n)
		close(links[--n]);
	end();
}

/* The server accepts, and sends nothing, or half a WELCOME. */
static void silent_servers(void)
{
	static const uint8_t half[8] = {TCP_CTRL_WELCOME, 0, sizeof(struct tcp_welcome)};

	setenv("RIG_A_SETTINGS", "connect_timeout=100ms", 1);
	rig.ops->close(rig.a.dev);
	free(rig.a.conf);
	rig_open_end(&rig.a, NULL);
	unsetenv("RIG_A_SETTINGS");
	begin(NULL);
	for (size_t n = 0; n <= sizeof(half); n++) {
		connect_victim(0);
		evil_send(control, half, n);
		check_dropped("a silent server", -ETIMEDOUT, NULL);
	}
	end();
}

void server_attacks(void)
{
	RIG_CASE(wrong_messages_of_a_server);
	RIG_CASE(text_of_a_refusal);
	RIG_CASE(wrong_answers_to_a_link);
	RIG_CASE(too_many_links_for_a_server);
	RIG_CASE(silent_servers);
}
