/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello-host.c - the client of the example: sends a message to hello-dpu, prints the answer, and
 * ends
 *
 *     eval "$(gantry env host)"
 *     cc -o hello-host hello-host.c $(pkg-config --cflags --libs doca-common doca-comch)
 */
#include "hello.h"

#include <stdlib.h>
#include <string.h>

static bool answered;

/*
 * The answer has arrived: stop the client. A callback may do that; the context becomes idle during
 * later progress.
 */
static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *text, uint32_t len,
		       struct doca_comch_connection *connection)
{
	(void)event;
	printf("%.*s\n", (int)len, (const char *)text);
	answered = true;
	doca_ctx_stop(doca_comch_client_as_ctx(doca_comch_client_get_client_ctx(connection)));
}

static doca_error_t send_text(struct doca_comch_client *client, const char *text)
{
	struct doca_comch_connection *connection;
	struct doca_comch_task_send *task;
	doca_error_t error;

	error = doca_comch_client_get_connection(client, &connection);
	if (error == DOCA_SUCCESS)
		error = doca_comch_client_task_send_alloc_init(client, connection, text,
							       (uint32_t)strlen(text), &task);
	if (error != DOCA_SUCCESS)
		return error;
	error = doca_task_submit(doca_comch_task_send_as_task(task));
	if (error != DOCA_SUCCESS)
		doca_task_free(doca_comch_task_send_as_task(task));
	return error;
}

static void talk(struct doca_pe *pe, struct doca_comch_client *client, const char *text)
{
	struct doca_ctx *ctx = doca_comch_client_as_ctx(client);
	doca_error_t error;

	if (failed("engine", doca_pe_connect_ctx(pe, ctx)) ||
	    failed("send tasks",
		   doca_comch_client_task_send_set_conf(client, send_is_over, send_is_over, 1)) ||
	    failed("messages", doca_comch_client_event_msg_recv_register(client, on_message)))
		return;
	error = doca_ctx_start(ctx);
	if (error != DOCA_ERROR_IN_PROGRESS) {
		failed("start", error);
		return;
	}
	if (!reaches(pe, ctx, DOCA_CTX_STATE_RUNNING)) {
		fprintf(stderr, "no server \"%s\": start hello-dpu first\n", SERVER_NAME);
		return;
	}
	if (failed("send", send_text(client, text)))
		doca_ctx_stop(ctx);
	reaches(pe, ctx, DOCA_CTX_STATE_IDLE);
}

int main(int argc, char **argv)
{
	struct doca_dev *dev = open_device(doca_comch_cap_client_is_supported);
	struct doca_comch_client *client;
	struct doca_pe *pe;

	if (!dev) {
		fprintf(stderr, "no device for a Comch client\n");
		return EXIT_FAILURE;
	}
	if (!failed("engine", doca_pe_create(&pe))) {
		if (!failed("client", doca_comch_client_create(dev, SERVER_NAME, &client))) {
			talk(pe, client, argc > 1 ? argv[1] : "hello");
			doca_comch_client_destroy(client);
		}
		doca_pe_destroy(pe);
	}
	doca_dev_close(dev);
	return answered ? EXIT_SUCCESS : EXIT_FAILURE;
}
