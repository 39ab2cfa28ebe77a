/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast-path-server.c - the fast path of Comch on the DPU: waits for a client, exchanges a message
 * with it through a consumer and a producer, and ends when the client disconnects
 *
 *     eval "$(gantry env dpu)"
 *     cc -o fast-path-server fast-path-server.c $(pkg-config --cflags --libs doca-argp doca-comch)
 *     ./fast-path-server -p 03:00.0 -r b1:00.0 -t "hello from the DPU"
 */
#include "fast-path.h"

static struct options options = {
	.device = "03:00.0", .representor = "b1:00.0", .text = "a message from the server"};
static struct doca_comch_connection *client; /* NULL: not connected */

/*
 * The server has one client: it disconnects any other client. A connection that has failed must not
 * be used.
 */
static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	if (!success)
		return;
	if (client)
		doca_comch_server_disconnect(doca_comch_server_get_server_ctx(connection),
					     connection);
	else
		client = connection;
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)success;
	if (client == connection)
		client = NULL;
}

static bool configure(struct doca_comch_server *server)
{
	return !failed("send tasks", doca_comch_server_task_send_set_conf(server, send_is_over,
									  send_is_over, 1)) &&
	       !failed("messages", doca_comch_server_event_msg_recv_register(server, on_message)) &&
	       !failed("connections", doca_comch_server_event_connection_status_changed_register(
					      server, on_connect, on_disconnect)) &&
	       !failed("consumers", doca_comch_server_event_consumer_register(
					    server, on_new_consumer, on_expired_consumer));
}

static bool serve(struct doca_pe *pe, struct doca_dev *dev, struct doca_comch_server *server)
{
	struct doca_ctx *ctx = doca_comch_server_as_ctx(server);
	const struct fast idle = {.pe = pe, .connection = ctx};
	bool good;

	if (failed("engine", doca_pe_connect_ctx(pe, ctx)) || !configure(server) ||
	    failed("start", doca_ctx_start(ctx)))
		return false;
	printf("waiting for a client\n");
	while (!client && goes_on(&idle))
		;
	good = client && exchange(pe, dev, ctx, client, options.text);
	while (client && goes_on(&idle))
		;
	doca_ctx_stop(ctx);
	reaches(pe, ctx, DOCA_CTX_STATE_IDLE);
	return good;
}

int main(int argc, char **argv)
{
	if (!parse_options(argc, argv, &options))
		return EXIT_FAILURE;
	return with_server(&options, "fast-path", serve);
}
