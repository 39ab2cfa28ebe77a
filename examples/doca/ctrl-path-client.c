/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctrl-path-client.c - the control path of Comch on the host: sends a message to ctrl-path-server,
 * prints the answer, and ends
 *
 *     eval "$(gantry env host)"
 *     cc -o ctrl-path-client ctrl-path-client.c $(pkg-config --cflags --libs doca-argp doca-comch)
 *     ./ctrl-path-client -p b1:00.0 -t "hello from the host"
 */
#include "comch.h"

static struct options options = {.device = "b1:00.0", .text = "a message from the client"};
static bool answered;

/* A callback may stop the context, which becomes idle during later progress. */
static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *text, uint32_t len,
		       struct doca_comch_connection *connection)
{
	(void)event;
	printf("received: %.*s\n", (int)len, (const char *)text);
	answered = true;
	doca_ctx_stop(doca_comch_client_as_ctx(doca_comch_client_get_client_ctx(connection)));
}

static bool send_text(struct doca_comch_client *client, const char *text)
{
	struct doca_comch_connection *connection;
	struct doca_comch_task_send *task;

	if (failed("connection", doca_comch_client_get_connection(client, &connection)) ||
	    failed("send", doca_comch_client_task_send_alloc_init(client, connection, text,
								  (uint32_t)strlen(text), &task)))
		return false;
	if (!failed("send", doca_task_submit(doca_comch_task_send_as_task(task))))
		return true;
	doca_task_free(doca_comch_task_send_as_task(task));
	return false;
}

static bool talk(struct doca_pe *pe, struct doca_dev *dev, struct doca_comch_client *client)
{
	struct doca_ctx *ctx = doca_comch_client_as_ctx(client);

	(void)dev;
	if (failed("engine", doca_pe_connect_ctx(pe, ctx)) ||
	    failed("send tasks",
		   doca_comch_client_task_send_set_conf(client, send_is_over, send_is_over, 1)) ||
	    failed("messages", doca_comch_client_event_msg_recv_register(client, on_message)) ||
	    !connects(pe, ctx))
		return false;
	if (!send_text(client, options.text))
		doca_ctx_stop(ctx);
	return reaches(pe, ctx, DOCA_CTX_STATE_IDLE) && answered;
}

int main(int argc, char **argv)
{
	if (!parse_options(argc, argv, &options))
		return EXIT_FAILURE;
	return with_client(&options, "ctrl-path", talk);
}
