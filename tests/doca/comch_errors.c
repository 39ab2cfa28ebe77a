/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_errors.c - errors of Comch that need more than a wrong argument: a frozen client, a client
 * on another PCI function, a device without Comch, more clients than the limit, no memory.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comch_fast_rig.h"
#include "scarce.h"

static struct side s, c;

/* -- a frozen client. Letters: R server runs, C client connected, Z client frozen, T continue -- */

/* What the client must receive after it continues. wanted 0: any number. */
static struct {
	uint32_t wanted; /* messages */
	unsigned int n_consumers;
	bool counts; /* the server sets `wanted` when it is idle, and then sends 'W' */
} * shared;

static void frozen_client(void)
{
	uint32_t number, expected = 0;

	rig_hear(RIG_CLIENT, 'R');
	side_client(&c, RIG_NAME);
	side_start(&c);
	rig_tell(RIG_TEST, 'C');
	rig_hear(RIG_CLIENT, 'T');
	while (state_of(c.ctx) != DOCA_CTX_STATE_IDLE) {
		const unsigned int before = c.n_messages;

		UNTIL(&c, c.n_messages != before || state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
		if (c.n_messages == before)
			continue;
		memcpy(&number, c.text, sizeof(number));
		NEED(c.len == 4000 && number == expected++);
	}
	if (shared->counts)
		rig_hear(RIG_CLIENT, 'W');
	NEED(shared->wanted == 0 || expected == shared->wanted);
	NEED(c.n_new == shared->n_consumers && c.n_expired <= c.n_new);
	side_close(&c);
}

static void serve_frozen_client(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'R');
	UNTIL(&s, s.n_connected);
	rig_hear(RIG_SERVER, 'Z');
}

/* Send until the transport accepts no more messages, and then until no task is free. */
static uint32_t send_all(void)
{
	uint32_t text[1000] = {0};

	while (side_try_send(&s, text, sizeof(text)) == DOCA_SUCCESS) {
		text[0]++;
		while (doca_pe_progress(s.pe))
			;
	}
	NEED_RESULT(DOCA_ERROR_NO_MEMORY, side_try_send(&s, text, sizeof(text)));
	return text[0];
}

static struct fast fast;

/*
 * Consumers start although the frozen client cannot be notified yet. The client is not notified of
 * a consumer that has ended before the client continues.
 */
static void start_consumers(void)
{
	fast_open(&fast, &s, 4096);
	fast_add_consumer(&fast, 1);
	fast_start_consumer(&fast);
	fast_stop(&fast);
	fast_add_consumer(&fast, 1);
	memset(fast.consumer_journal, 0, sizeof(fast.consumer_journal));
	fast_start_consumer(&fast);
	shared->n_consumers = 1;
}

static void disconnecting_server(void)
{
	uint32_t n;

	serve_frozen_client();
	n = send_all();
	NEED(s.n_sent + 64 == n); /* all 64 tasks wait */
	NEED_RESULT(DOCA_ERROR_AGAIN, doca_comch_server_disconnect(s.server, s.conn));
	NEED_OK(doca_comch_connection_update_info(s.conn)); /* the connection is as before */
	NEED(s.n_failed == 0);
	start_consumers();
	rig_tell(RIG_TEST, 'T');
	UNTIL(&s, s.n_sent == n);
	fast_close(&fast);
	NEED_OK(doca_comch_server_disconnect(s.server, s.conn));
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, side_try_send(&s, "late", 4));
	side_stop(&s);
}

static void stopping_server(void)
{
	uint32_t n;

	serve_frozen_client();
	n = send_all();
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx));
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE); /* stop ends in time */
	NEED(s.n_failed == 64 && s.n_sent + 64 == n);
	side_close(&s);
	rig_tell(RIG_TEST, 'T');
}

/* Messages that were sent before the stop arrive after the client continues. */
static void hasty_server(void)
{
	serve_frozen_client();
	shared->counts = true;
	send_all();
	NEED(s.n_sent == 0);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx));
	rig_tell(RIG_TEST, 'T');
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(s.n_sent > 0 && s.n_sent + s.n_failed == 64);
	shared->wanted = s.n_sent;
	rig_tell(RIG_CLIENT, 'W');
	side_close(&s);
}

static void with_frozen_client(void (*role)(void))
{
	pid_t server, client;

	rig_begin();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	TEST_ASSERT_TRUE(shared != MAP_FAILED);
	server = rig_fork(role);
	client = rig_fork(frozen_client);
	rig_hear(RIG_TEST, 'C');
	TEST_ASSERT_EQUAL_INT(0, kill(client, SIGSTOP));
	TEST_ASSERT_EQUAL_INT(client, waitpid(client, NULL, WUNTRACED)); /* the client is frozen */
	rig_tell(RIG_SERVER, 'Z');
	rig_hear(RIG_TEST, 'T');
	kill(client, SIGCONT);
	rig_tell(RIG_CLIENT, 'T');
	rig_wait(server, 0);
	rig_wait(client, 0);
	munmap(shared, sizeof(*shared));
}

static void messages_sent_before_a_stop_are_delivered_to_a_slow_client(void)
{
	with_frozen_client(hasty_server);
}

static void disconnect_of_a_frozen_client_is_AGAIN_while_sends_wait(void)
{
	with_frozen_client(disconnecting_server);
}

static void server_stops_although_a_client_receives_nothing(void)
{
	with_frozen_client(stopping_server);
}

/* -- PCI functions: a server accepts the clients on the function of its representor -- */

static void open_server(struct side *side, const char *rep_pci, const char *name)
{
	struct doca_devinfo_rep **list;
	uint32_t n;

	side_open_dev(side, "03:00.0");
	NEED_OK(doca_devinfo_rep_create_list(side->dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &n));
	for (uint32_t i = 0; i < n && !side->rep; i++) {
		uint8_t equal = 0;

		NEED_OK(doca_devinfo_rep_is_equal_pci_addr(list[i], rep_pci, &equal));
		if (equal)
			NEED_OK(doca_dev_rep_open(list[i], &side->rep));
	}
	NEED(side->rep);
	NEED_OK(doca_devinfo_rep_destroy_list(list));
	NEED_OK(doca_comch_server_create(side->dev, side->rep, name, &side->server));
	side_configure(side, 64);
}

static void open_client(struct side *side, const char *pci, const char *name)
{
	side_open_dev(side, pci);
	NEED_OK(doca_comch_client_create(side->dev, name, &side->client));
	side_configure(side, 64);
}

static void refused(struct side *side)
{
	const size_t before = strlen(side->journal);

	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(side->ctx));
	UNTIL(side, state_of(side->ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(side->journal + before, "10") == 0);
}

static void two_functions(void)
{
	struct side s2 = {.dev = NULL}, c2 = {.dev = NULL}, c3 = {.dev = NULL};

	rig_configure(
		"devices = {\n"
		"dpu = { transport = \"shm-comch\"; pci = \"03:00.0\";\n"
		"	representors = ( { pci = \"b1:00.0\"; }, { pci = \"b1:00.1\"; } ); };\n"
		"second = { transport = \"shm-comch\"; pci = \"b1:00.1\"; profile = \"host\"; };\n"
		"third = { transport = \"shm-comch\"; pci = \"b1:00.2\"; profile = \"host\"; };\n"
		"};");
	open_server(&s, "b1:00.0", RIG_NAME);
	open_client(&c, "b1:00.0", RIG_NAME);
	open_client(&c2, "b1:00.1", RIG_NAME);
	open_client(&c3, "b1:00.2", RIG_NAME);
	side_start(&s);
	refused(&c2);
	refused(&c3);
	while (doca_pe_progress(s.pe))
		;
	NEED(strcmp(s.journal, "2") == 0);
	/* a server with the same name for another function is a separate server */
	open_server(&s2, "b1:00.1", RIG_NAME);
	side_start(&s2);
	refused(&c3);
	side_start(&c2);
	side_start(&c);
	side_send(&c2, "for the second");
	side_send(&c, "for the first");
	UNTIL(&s, s.n_messages == 1);
	UNTIL(&s2, s2.n_messages == 1);
	NEED(strcmp(s.text, "for the first") == 0 && strcmp(s2.text, "for the second") == 0);
	side_stop(&c);
	side_stop(&c2);
	side_close(&c3);
	UNTIL(&s, s.n_lost == 1);
	UNTIL(&s2, s2.n_lost == 1);
	NEED(s.n_connected == 1 && s2.n_connected == 1);
	side_stop(&s);
	side_stop(&s2);
}

static void only_clients_on_the_function_of_the_representor_reach_a_server(void)
{
	rig_alone(two_functions);
}

/* -- names -- */

/* Programs use such names; each name is a separate server, even if names differ little. */
static void many_names(void)
{
	static char names[6][121] = {"comch_ctrl_path_sample_server", "dma copy server", "a/../b",
				     "a_.._b"};
	struct side servers[6], clients[6];
	char text[16];

	for (int i = 4; i < 6; i++) { /* the longest names, different in the last letter */
		memset(names[i], 'n', 119);
		names[i][118] = (char)('a' + i);
	}
	memset(servers, 0, sizeof(servers));
	memset(clients, 0, sizeof(clients));
	for (int i = 0; i < 6; i++) {
		open_server(&servers[i], "b1:00.0", names[i]);
		side_start(&servers[i]);
		open_client(&clients[i], "b1:00.0", names[i]);
		side_start(&clients[i]);
		snprintf(text, sizeof(text), "to %d", i);
		side_send(&clients[i], text);
	}
	for (int i = 0; i < 6; i++) {
		UNTIL(&servers[i], servers[i].n_messages == 1);
		NEED(servers[i].text[3] == '0' + i && servers[i].n_connected == 1);
		side_stop(&clients[i]);
		side_stop(&servers[i]);
	}
}

static void names_that_look_alike_are_different_servers(void)
{
	rig_alone(many_names);
}

/* -- a device without Comch, a host with representors -- */

static void without_comch(void)
{
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_devinfo *info;
	uint32_t n;

	rig_configure(
		"devices = {\n"
		"net = { transport = \"rxe\"; netdev = \"lo\"; pci = \"d1:00.0\"; profile = \"host\"; auth = \"none\"; };\n"
		"host = { transport = \"shm-comch\"; pci = \"c1:00.0\"; profile = \"host\";\n"
		"	representors = ( { pci = \"e1:00.0\"; } ); };\n"
		"};");
	side_open_dev(&c, "d1:00.0");
	info = doca_dev_as_devinfo(c.dev);
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_comch_cap_client_is_supported(info));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_comch_cap_server_is_supported(info));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_comch_consumer_cap_is_supported(info));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_comch_consumer_cap_get_max_buf_size(info, &n));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		    doca_comch_consumer_cap_get_max_buf_list_len(info, &n));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_comch_producer_cap_is_supported(info));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_comch_producer_cap_get_max_buf_size(info, &n));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		    doca_comch_producer_cap_get_max_buf_list_len(info, &n));
	NEED_RESULT(DOCA_ERROR_INITIALIZATION, doca_comch_client_create(c.dev, RIG_NAME, &client));
	NEED_OK(doca_dev_close(c.dev));
	side_open_dev(&s, "c1:00.0");
	side_open_rep(&s);
	NEED_RESULT(DOCA_ERROR_INITIALIZATION,
		    doca_comch_server_create(s.dev, s.rep, RIG_NAME, &server));
	NEED_OK(doca_dev_rep_close(s.rep));
	NEED_OK(doca_dev_close(s.dev));
}

static void device_without_comch_reports_NOT_SUPPORTED(void)
{
	const char *plugins = getenv("GANTRY_PLUGINS");
	char path[256];

	snprintf(path, sizeof(path), "%s/rxe.so", plugins ? plugins : TEST_PLUGINDIR);
	if (access(path, R_OK) != 0)
		TEST_IGNORE_MESSAGE("there is no plugin for a network");
	rig_alone(without_comch);
}

/* -- the maximum of clients, and one more -- */

static void crowd(void)
{
	const struct rlimit files = {8192, 8192};
	struct side *clients;
	uint32_t most;

	NEED(setrlimit(RLIMIT_NOFILE, &files) == 0);
	side_server(&s, RIG_NAME);
	side_start(&s);
	NEED_OK(doca_comch_cap_get_max_clients(doca_dev_as_devinfo(s.dev), &most));
	clients = calloc(most + 1, sizeof(*clients));
	NEED(clients);
	for (uint32_t i = 0; i <= most; i++)
		open_client(&clients[i], "b1:00.0", RIG_NAME);
	for (uint32_t i = 0; i < most; i++) {
		side_start(&clients[i]);
		UNTIL(&s, s.n_connected == i + 1);
	}
	refused(&clients[most]);
	side_stop(&clients[0]);
	UNTIL(&s, s.n_lost == 1);
	side_start(&clients[most]); /* the number of clients is below the limit again */
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx)); /* notifies all clients */
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	for (uint32_t i = 1; i <= most; i++) {
		UNTIL(&clients[i], state_of(clients[i].ctx) == DOCA_CTX_STATE_IDLE);
		side_close(&clients[i]);
	}
	free(clients);
	side_close(&s);
}

static void server_rejects_clients_beyond_its_limit(void)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_max < 8192)
		TEST_IGNORE_MESSAGE("a process may not have 8192 files open");
	rig_alone(crowd);
}

/* -- no memory: in the process of the test, because scarce_walk() uses assertions of Unity -- */

static doca_error_t make_server(void *arg)
{
	return doca_comch_server_create(s.dev, s.rep, "another", arg);
}

static void undo_server(void *arg)
{
	NEED_OK(doca_comch_server_destroy(*(struct doca_comch_server **)arg));
}

static doca_error_t make_client(void *arg)
{
	return doca_comch_client_create(c.dev, "another", arg);
}

static void undo_client(void *arg)
{
	NEED_OK(doca_comch_client_destroy(*(struct doca_comch_client **)arg));
}

static doca_error_t make_consumer(void *arg)
{
	return doca_comch_consumer_create(c.conn, fast.mmap, arg);
}

static void undo_consumer(void *arg)
{
	NEED_OK(doca_comch_consumer_destroy(*(struct doca_comch_consumer **)arg));
}

static doca_error_t make_producer(void *arg)
{
	return doca_comch_producer_create(c.conn, arg);
}

static void undo_producer(void *arg)
{
	NEED_OK(doca_comch_producer_destroy(*(struct doca_comch_producer **)arg));
}

static void create_returns_NO_MEMORY_when_memory_is_exhausted(void)
{
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;

	if (!scarce_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&c, RIG_NAME);
	side_start(&c);
	fast_open(&fast, &c, 4096);
	TEST_ASSERT_TRUE(scarce_walk(DOCA_ERROR_NO_MEMORY, make_server, undo_server, &server) > 0);
	TEST_ASSERT_TRUE(scarce_walk(DOCA_ERROR_NO_MEMORY, make_client, undo_client, &client) > 0);
	TEST_ASSERT_TRUE(
		scarce_walk(DOCA_ERROR_NO_MEMORY, make_consumer, undo_consumer, &consumer) > 0);
	TEST_ASSERT_TRUE(
		scarce_walk(DOCA_ERROR_NO_MEMORY, make_producer, undo_producer, &producer) > 0);
	fast_close(&fast);
	side_stop(&c);
	side_stop(&s);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(disconnect_of_a_frozen_client_is_AGAIN_while_sends_wait);
	RUN_TEST(messages_sent_before_a_stop_are_delivered_to_a_slow_client);
	RUN_TEST(server_stops_although_a_client_receives_nothing);
	RUN_TEST(only_clients_on_the_function_of_the_representor_reach_a_server);
	RUN_TEST(names_that_look_alike_are_different_servers);
	RUN_TEST(device_without_comch_reports_NOT_SUPPORTED);
	RUN_TEST(server_rejects_clients_beyond_its_limit);
	RUN_TEST(create_returns_NO_MEMORY_when_memory_is_exhausted);
	rig_fini();
	return UNITY_END();
}
