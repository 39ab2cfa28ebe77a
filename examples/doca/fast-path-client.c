/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast-path-client.c - the fast path of Comch on the host: exchanges a message with
 * fast-path-server through a consumer and a producer, and disconnects
 *
 *     eval "$(gantry env host)"
 *     cc -o fast-path-client fast-path-client.c $(pkg-config --cflags --libs doca-argp doca-comch)
 *     ./fast-path-client -p b1:00.0 -t "hello from the host"
 */
#include "fast-path.h"

static struct options options = {.device = "b1:00.0", .text = "a message from the client"};

static bool talk(struct doca_pe *pe, struct doca_dev *dev, struct doca_comch_client *client)
{
	struct doca_ctx *ctx = doca_comch_client_as_ctx(client);
	struct doca_comch_connection *connection;
	bool good;

	if (failed("engine", doca_pe_connect_ctx(pe, ctx)) ||
	    failed("send tasks",
		   doca_comch_client_task_send_set_conf(client, send_is_over, send_is_over, 1)) ||
	    failed("messages", doca_comch_client_event_msg_recv_register(client, on_message)) ||
	    failed("consumers", doca_comch_client_event_consumer_register(client, on_new_consumer,
									  on_expired_consumer)) ||
	    !connects(pe, ctx))
		return false;
	good = !failed("connection", doca_comch_client_get_connection(client, &connection)) &&
	       exchange(pe, dev, ctx, connection, options.text);
	doca_ctx_stop(ctx);
	reaches(pe, ctx, DOCA_CTX_STATE_IDLE);
	return good;
}

int main(int argc, char **argv)
{
	if (!parse_options(argc, argv, &options))
		return EXIT_FAILURE;
	return with_client(&options, "fast-path", talk);
}
