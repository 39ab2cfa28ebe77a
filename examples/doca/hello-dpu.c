/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello-dpu.c - the server of the example: waits for a client, answers its message, and ends when
 * the client has disconnected
 *
 *     eval "$(gantry env dpu)"
 *     cc -o hello-dpu hello-dpu.c $(pkg-config --cflags --libs doca-common doca-comch)
 */
#include "hello.h"

#include <stdlib.h>

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
	char answer[MAX_TEXT];
	int n;

	(void)event;
	n = snprintf(answer, sizeof(answer), "DPU received: %.*s", (int)(len < 100 ? len : 100),
		     (const char *)text);
	if (failed("answer", doca_comch_server_task_send_alloc_init(server, connection, answer,
								    (uint32_t)n, &task)))
		return;
	answered = !failed("answer", doca_task_submit(doca_comch_task_send_as_task(task)));
	if (!answered)
		doca_task_free(doca_comch_task_send_as_task(task));
}

static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)connection;
	printf("client %s\n", success ? "connected" : "failed to connect");
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)success;
	printf("client disconnected\n");
	doca_ctx_stop(doca_comch_server_as_ctx(doca_comch_server_get_server_ctx(connection)));
}

/* Open the representor of a function of the host. The server accepts clients of that function. */
static struct doca_dev_rep *open_representor(struct doca_dev *dev)
{
	struct doca_devinfo_rep **list;
	struct doca_dev_rep *rep = NULL;
	uint32_t n;

	if (failed("list representors",
		   doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &n)))
		return NULL;
	if (n)
		failed("open the representor", doca_dev_rep_open(list[0], &rep));
	doca_devinfo_rep_destroy_list(list);
	return rep;
}

static void serve(struct doca_pe *pe, struct doca_comch_server *server)
{
	struct doca_ctx *ctx = doca_comch_server_as_ctx(server);

	if (failed("engine", doca_pe_connect_ctx(pe, ctx)) ||
	    failed("send tasks",
		   doca_comch_server_task_send_set_conf(server, send_is_over, send_is_over, 4)) ||
	    failed("messages", doca_comch_server_event_msg_recv_register(server, on_message)) ||
	    failed("connections", doca_comch_server_event_connection_status_changed_register(
					  server, on_connect, on_disconnect)) ||
	    failed("start", doca_ctx_start(ctx)))
		return;
	printf("waiting for a client\n");
	reaches(pe, ctx, DOCA_CTX_STATE_IDLE);
}

int main(void)
{
	struct doca_dev *dev = open_device(doca_comch_cap_server_is_supported);
	struct doca_dev_rep *rep = dev ? open_representor(dev) : NULL;
	struct doca_comch_server *server;
	struct doca_pe *pe;

	setvbuf(stdout, NULL, _IOLBF, 0); /* line buffered, also to a file */
	if (!rep) {
		fprintf(stderr, "no device for a Comch server\n");
		if (dev)
			doca_dev_close(dev);
		return EXIT_FAILURE;
	}
	if (!failed("engine", doca_pe_create(&pe))) {
		if (!failed("server", doca_comch_server_create(dev, rep, SERVER_NAME, &server))) {
			serve(pe, server);
			doca_comch_server_destroy(server);
		}
		doca_pe_destroy(pe);
	}
	doca_dev_rep_close(rep);
	doca_dev_close(dev);
	return answered ? EXIT_SUCCESS : EXIT_FAILURE;
}
