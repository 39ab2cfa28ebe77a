/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Documented errors of RDMA: calls at the wrong time, and calls with connections and addresses of
 * another context or kind.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma_rig.h"
#include "unity.h"

#define PORT 13581

static const union doca_data no_data = {.u64 = 0};

/* Create another context on the same device and engine. */
static struct doca_rdma *another(struct rig_side *s)
{
	struct doca_rdma *rdma;

	OK(doca_rdma_create(s->dev, &rdma));
	OK(doca_pe_connect_ctx(s->pe, doca_rdma_as_ctx(rdma)));
	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	return rdma;
}

static void end(struct doca_rdma *rdma)
{
	OK(doca_ctx_stop(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_destroy(rdma));
}

/* -- blobs -- */

static void connect_wrongly(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true});
	struct doca_rdma_connection *conn, *conn2;
	struct doca_rdma *peer;
	const void *blob, *blob2;
	char bent[4096];
	size_t size;

	(void)fd;
	memset(bent, 0, sizeof(bent));
	FAILS(DOCA_ERROR_BAD_STATE,
	      doca_rdma_connect(s->rdma, bent, sizeof(bent), (struct doca_rdma_connection *)bent));
	rig_start(s);
	peer = another(s);
	OK(doca_rdma_export(s->rdma, &blob, &size, &conn));
	OK(doca_rdma_export(peer, &blob2, &size, &conn2));
	/* the connection of another context */
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connect(peer, blob, size, conn));
	memcpy(bent, blob2, size);
	memset(bent + 8, 0xff, 16); /* the largest id, so that this side connects, */
	memset(bent + 24, '/', 63); /* to a name that cannot exist */
	bent[24 + 63] = 0;
	FAILS(DOCA_ERROR_CONNECTION_ABORTED, doca_rdma_connect(s->rdma, bent, size, conn));
	OK(doca_rdma_connect(s->rdma, blob2, size, conn));
	/* the connection is already being established */
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_connect(s->rdma, blob2, size, conn));
	end(peer);
	rig_close(s);
}

static void blob_is_used_once_and_only_by_its_context(void)
{
	rig_alone(connect_wrongly);
}

static int take_away(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

/* The directory with the sockets of the peers is removed. */
static void export_without_a_directory(int fd)
{
	char folder[] = "/tmp/gantry-test-XXXXXX";
	struct doca_rdma_connection *conn;
	struct rig_side *s;
	const void *blob;
	size_t size;

	(void)fd;
	CHECK(mkdtemp(folder));
	CHECK(setenv("GANTRY_RUNDIR", folder, 1) == 0);
	s = rig_open(&(struct rig_wish){.max_conns = 1});
	CHECK(nftw(folder, take_away, 8, FTW_DEPTH | FTW_PHYS) == 0);
	for (int i = 0; i < 2; i++) /* the failure does not use up the only connection */
		FAILS(DOCA_ERROR_CONNECTION_ABORTED,
		      doca_rdma_export(s->rdma, &blob, &size, &conn));
	rig_close(s);
}

static void export_fails_without_a_socket_directory(void)
{
	rig_alone(export_without_a_directory);
}

/* -- addresses -- */

static void listen_wrongly(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true, .callbacks = true});
	struct doca_rdma *second;

	(void)fd;
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_start_listen_to_port(s->rdma, PORT));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_stop_listen_to_port(s->rdma, PORT));
	rig_start(s);
	second = another(s);
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_stop_listen_to_port(s->rdma, PORT));
	OK(doca_rdma_start_listen_to_port(s->rdma, PORT));
	FAILS(DOCA_ERROR_CONNECTION_ABORTED, doca_rdma_start_listen_to_port(second, PORT));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_stop_listen_to_port(s->rdma, PORT + 1));
	OK(doca_rdma_stop_listen_to_port(s->rdma, PORT));
	OK(doca_rdma_start_listen_to_port(second, PORT));
	end(second);
	rig_close(s);
}

static void a_port_is_listened_to_once(void)
{
	rig_alone(listen_wrongly);
}

static struct doca_rdma_connection *established;

static void remember(struct doca_rdma_connection *conn, union doca_data user_data,
		     union doca_data ctx)
{
	(void)user_data;
	(void)ctx;
	established = conn;
}

static void forget(struct doca_rdma_connection *conn, union doca_data user_data,
		   union doca_data ctx)
{
	(void)conn;
	(void)user_data;
	(void)ctx;
}

static void connect_to_addresses(int fd)
{
	struct rig_side *s =
		rig_open(&(struct rig_wish){.is_peer = true, .max_conns = 2, .callbacks = true});
	struct doca_rdma_connection *exported;
	struct doca_rdma_addr *addr, *told;
	enum doca_rdma_addr_type type;
	struct doca_rdma *client;
	const char *text;
	const void *blob;
	uint16_t port;
	size_t size;

	(void)fd;
	OK(doca_rdma_create(s->dev, &client));
	OK(doca_rdma_set_connection_state_callbacks(client, NULL, remember, forget, forget));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_set_connection_state_callbacks(client, NULL, NULL, forget, forget));
	OK(doca_pe_connect_ctx(s->pe, doca_rdma_as_ctx(client)));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "127.0.0.1", PORT, &addr));
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_connect_to_addr(client, addr, no_data));
	OK(doca_ctx_start(doca_rdma_as_ctx(client)));
	OK(doca_rdma_start_listen_to_port(s->rdma, PORT));
	OK(doca_rdma_connect_to_addr(client, addr, no_data));
	/* the client has a limit of one connection */
	FAILS(DOCA_ERROR_CONNECTION_ABORTED, doca_rdma_connect_to_addr(client, addr, no_data));
	UNTIL(s, established);
	OK(doca_rdma_addr_destroy(addr));
	OK(doca_rdma_connection_get_addr(established, &told));
	OK(doca_rdma_addr_get_params(told, &type, &text, &port));
	CHECK(type == DOCA_RDMA_ADDR_TYPE_IPv4 && strcmp(text, "127.0.0.1") == 0 && port == PORT);
	/* the address belongs to the connection */
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_addr_destroy(told));
	OK(doca_rdma_addr_get_params(told, &type, &text, &port));
	OK(doca_rdma_export(s->rdma, &blob, &size, &exported));
	/* a connection by blob has no address */
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connection_get_addr(exported, &told));
	/* a length without data */
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connection_accept(exported, NULL, 1));
	end(client);
	rig_close(s);
}

static void address_belongs_to_its_creator_and_connections_are_counted(void)
{
	rig_alone(connect_to_addresses);
}

/* Each kind of address reaches the listener: over shared memory every address is this machine. */
static void connect_by_each_kind(int fd)
{
	static const struct {
		enum doca_rdma_addr_type type;
		const char *text;
	} kinds[] = {
		{DOCA_RDMA_ADDR_TYPE_IPv4, "127.0.0.1"},
		{DOCA_RDMA_ADDR_TYPE_IPv6, "::1"},
		{DOCA_RDMA_ADDR_TYPE_GID, "0000:0000:0000:0000:0000:ffff:7f00:0001"},
	};
	struct rig_side *s =
		rig_open(&(struct rig_wish){.is_peer = true, .max_conns = 3, .callbacks = true});
	struct rig_side *client = rig_open(&(struct rig_wish){.max_conns = 3, .callbacks = true});
	union doca_data data;

	(void)fd;
	OK(doca_rdma_start_listen_to_port(s->rdma, PORT));
	for (unsigned i = 0; i < 3; i++) {
		struct doca_rdma_addr *addr;

		OK(doca_rdma_addr_create(kinds[i].type, kinds[i].text, PORT, &addr));
		OK(doca_rdma_connect_to_addr(client->rdma, addr, (union doca_data){.u64 = i}));
		OK(doca_rdma_addr_destroy(addr));
		while (client->n_established <= i || s->n_established <= i) {
			rig_progress(client);
			rig_progress(s);
		}
		OK(doca_rdma_connection_get_user_data(client->conns[i], &data));
		CHECK(data.u64 == i);
	}
	rig_close(client);
	rig_until(s, &s->n_disconnected, 3);
	rig_close(s);
}

static void each_kind_of_address_is_connected_to(void)
{
	rig_alone(connect_by_each_kind);
}

/* -- ids of connections, valid ones and those of other contexts -- */

static void number(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 3});
	struct doca_rdma_connection *conns[3];
	struct rdma_cm_id *id = (void *)conns;
	union doca_data data = {.u64 = 1};
	const void *blob;
	uint32_t numbers[3];
	size_t size;

	(void)fd;
	for (int i = 0; i < 3; i++) {
		OK(doca_rdma_export(s->rdma, &blob, &size, &conns[i]));
		OK(doca_rdma_connection_get_id(conns[i], &numbers[i]));
		for (int j = 0; j < i; j++)
			CHECK(numbers[j] != numbers[i]);
		OK(doca_rdma_connection_get_user_data(conns[i], &data));
		CHECK(data.u64 == 0);
		OK(doca_rdma_connection_set_user_data(conns[i],
						      (union doca_data){.u64 = 7u + (unsigned)i}));
	}
	for (int i = 0; i < 3; i++) {
		OK(doca_rdma_connection_get_user_data(conns[i], &data));
		CHECK(data.u64 == 7u + (unsigned)i);
	}
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connection_get_id(conns[0], NULL));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connection_get_id(NULL, &numbers[0]));
	/* connections of librdmacm are not supported */
	FAILS(DOCA_ERROR_NOT_SUPPORTED,
	      doca_rdma_bridge_prepare_connection(s->rdma, id, &conns[0]));
	FAILS(DOCA_ERROR_NOT_SUPPORTED, doca_rdma_bridge_accept(s->rdma, NULL, 0, conns[0]));
	FAILS(DOCA_ERROR_NOT_SUPPORTED, doca_rdma_bridge_established(s->rdma, conns[0]));
	rig_close(s);
}

static void connections_have_numbers_and_data_of_their_own(void)
{
	rig_alone(number);
}

/* -- a device of a network that is missing -- */

static void never(struct doca_rdma_task_atomic_cmp_swp *task, union doca_data task_data,
		  union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void use_a_network(int fd)
{
	char file[] = "/tmp/gantry-test-XXXXXX";
	struct doca_devinfo **list;
	struct doca_rdma *rdma;
	struct doca_dev *dev;
	struct doca_pe *pe;
	uint32_t n;
	FILE *conf = fdopen(mkstemp(file), "w");

	(void)fd;
	CHECK(conf);
	fputs("doca = { functions = \"none\"; };\n"
	      "devices = { net = { transport = \"rxe\"; netdev = \"none0\"; pci = \"04:00.0\"; auth = \"none\"; }; };\n",
	      conf);
	CHECK(fclose(conf) == 0 && setenv("GANTRY_DOCA_CONF", file, 1) == 0);
	OK(doca_devinfo_create_list(&list, &n));
	CHECK(n == 1 && remove(file) == 0);
	OK(doca_rdma_cap_task_atomic_cmp_swp_is_supported(list[0]));
	OK(doca_rdma_cap_task_atomic_fetch_add_is_supported(list[0]));
	OK(doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported(list[0]));
	OK(doca_rdma_cap_task_write_is_supported(list[0]));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_devinfo_destroy_list(list));
	OK(doca_pe_create(&pe));
	OK(doca_rdma_create(dev, &rdma));
	OK(doca_rdma_task_atomic_cmp_swp_set_conf(rdma, never, never, 1));
	OK(doca_pe_connect_ctx(pe, doca_rdma_as_ctx(rdma)));
	/* the interface does not exist */
	FAILS(DOCA_ERROR_INITIALIZATION, doca_ctx_start(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_destroy(rdma));
	OK(doca_pe_destroy(pe));
	OK(doca_dev_close(dev));
}

static void network_has_atomic_tasks_and_its_device_can_be_missing(void)
{
	char plugin[256];

	snprintf(plugin, sizeof(plugin), "%s/rxe.so",
		 getenv("GANTRY_PLUGINS") ? getenv("GANTRY_PLUGINS") : ".");
	if (access(plugin, R_OK) != 0)
		TEST_IGNORE_MESSAGE("no transport of a network is built");
	rig_alone(use_a_network);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(blob_is_used_once_and_only_by_its_context);
	RUN_TEST(export_fails_without_a_socket_directory);
	RUN_TEST(a_port_is_listened_to_once);
	RUN_TEST(address_belongs_to_its_creator_and_connections_are_counted);
	RUN_TEST(each_kind_of_address_is_connected_to);
	RUN_TEST(connections_have_numbers_and_data_of_their_own);
	RUN_TEST(network_has_atomic_tasks_and_its_device_can_be_missing);
	return UNITY_END();
}
