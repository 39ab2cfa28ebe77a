/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctrl-path-server.c - the control path of Comch on the DPU: waits for a client, prints its message
 * and answers it, until the client disconnects
 *
 *     eval "$(gantry env dpu)"
 *     cc -o ctrl-path-server ctrl-path-server.c $(pkg-config --cflags --libs doca-argp doca-comch)
 *     ./ctrl-path-server -p 03:00.0 -r b1:00.0 -t "hello from the DPU"
 */
#include "comch.h"

static struct options options = {
	.device = "03:00.0", .representor = "b1:00.0", .text = "a message from the server"};
static bool answered;

/*
 * The message is valid only during this call. The library copies the answer when the task is
 * submitted.
 */
static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *text, uint32_t len,
		       struct doca_comch_connection *connection)
{
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(connection);
	struct doca_comch_task_send *task;

	(void)event;
	printf("received: %.*s\n", (int)len, (const char *)text);
	if (failed("send",
		   doca_comch_server_task_send_alloc_init(server, connection, options.text,
							  (uint32_t)strlen(options.text), &task)))
		return;
	answered = !failed("send", doca_task_submit(doca_comch_task_send_as_task(task)));
	if (!answered)
		doca_task_free(doca_comch_task_send_as_task(task));
}

static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)connection;
	(void)success;
}

/* A callback may stop the context, which becomes idle during later progress. */
static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)success;
	doca_ctx_stop(doca_comch_server_as_ctx(doca_comch_server_get_server_ctx(connection)));
}

static bool serve(struct doca_pe *pe, struct doca_dev *dev, struct doca_comch_server *server)
{
	struct doca_ctx *ctx = doca_comch_server_as_ctx(server);

	(void)dev;
	if (failed("engine", doca_pe_connect_ctx(pe, ctx)) ||
	    failed("send tasks",
		   doca_comch_server_task_send_set_conf(server, send_is_over, send_is_over, 4)) ||
	    failed("messages", doca_comch_server_event_msg_recv_register(server, on_message)) ||
	    failed("connections", doca_comch_server_event_connection_status_changed_register(
					  server, on_connect, on_disconnect)) ||
	    failed("start", doca_ctx_start(ctx)))
		return false;
	printf("waiting for a client\n");
	return reaches(pe, ctx, DOCA_CTX_STATE_IDLE) && answered;
}

int main(int argc, char **argv)
{
	if (!parse_options(argc, argv, &options))
		return EXIT_FAILURE;
	return with_server(&options, "ctrl-path", serve);
}
