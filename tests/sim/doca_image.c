/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_image.c - in the image: programs with a Comch server or a Comch client */
#include "doca_image.h"

#include <doca_log.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))
#define NAME "simulated"
#define TRIES 400u /* attempts to connect */

static char log_line[1000];

static void show(char *line)
{
	char *text = strchr(line, ' ');

	line[strcspn(line, "\n")] = 0;
	sim_log("doca", text ? text + 1 : line);
}

void doca_must(const char *what, doca_error_t result)
{
	if (result != DOCA_SUCCESS)
		sim_wrong("%s: %s", what, doca_error_get_name(result));
}

bool is_odd(const struct sim_doca_job *job)
{
	return sim_draw(100) < job->odd;
}

void pause_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	nanosleep(&ts, NULL); /* lint: allowed, the time is simulated */
}

enum doca_ctx_states state_of(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;

	OK(doca_ctx_get_state(ctx, &state));
	return state;
}

void on_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states before,
	      enum doca_ctx_states after)
{
	(void)data;
	sim_doca_state(ctx, (int)before, (int)after);
}

/* -- callbacks of servers and clients -- */

static struct program *program_of(struct doca_comch_connection *conn)
{
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(conn);
	union doca_data data;

	OK(doca_ctx_get_user_data(
		server ? doca_comch_server_as_ctx(server)
		       : doca_comch_client_as_ctx(doca_comch_client_get_client_ctx(conn)),
		&data));
	return data.ptr;
}

static struct peer *find_peer(struct doca_comch_connection *conn, const char *event)
{
	struct peer *peer = peer_of(program_of(conn), conn);

	if (!peer)
		sim_wrong("%s of a connection that the program does not have", event);
	return peer;
}

static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *buf, uint32_t len,
		       struct doca_comch_connection *conn)
{
	(void)event;
	peer_message(find_peer(conn, "a message"), buf, len);
}

static void on_new(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
		   uint32_t id)
{
	(void)event;
	peer_consumer(find_peer(conn, "a new consumer"), id, true);
}

static void on_expired(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
		       uint32_t id)
{
	(void)event;
	peer_consumer(find_peer(conn, "an expired consumer"), id, false);
}

static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *conn, uint8_t ok)
{
	struct program *program = program_of(conn);
	struct peer *peer = peer_of(program, NULL);

	(void)event;
	if (peer_of(program, conn))
		sim_wrong("a connection event of a connection that the program has");
	if (!ok) /* the client has left before */
		return;
	if (!peer)
		sim_wrong("more than %u connections", PEERS);
	peer_open(program, peer, conn);
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *conn, uint8_t ok)
{
	struct peer *peer = find_peer(conn, "a disconnection");

	(void)event;
	(void)ok;
	sim_doca_lost(peer->number);
	peer->lost = true;
}

static void on_program_state(const union doca_data data, struct doca_ctx *ctx,
			     enum doca_ctx_states before, enum doca_ctx_states after)
{
	struct program *program = data.ptr;
	struct peer *peer = &program->peers[0];

	sim_doca_state(ctx, (int)before, (int)after);
	if (!program->client)
		return;
	if (after == DOCA_CTX_STATE_RUNNING) {
		struct doca_comch_connection *conn = NULL;

		OK(doca_comch_client_get_connection(program->client, &conn));
		peer_open(program, peer, conn);
	} else if (before == DOCA_CTX_STATE_RUNNING && !peer->left) {
		sim_doca_lost(peer->number);
		peer->lost = true;
	}
}

/* -- creation -- */

static void open_devices(struct program *program)
{
	struct doca_devinfo **list;
	struct doca_devinfo_rep **reps;
	uint32_t n;

	OK(doca_devinfo_create_list(&list, &n));
	for (uint32_t i = 0; i < n && !program->dev; i++) {
		uint8_t equal = 0;

		OK(doca_devinfo_is_equal_pci_addr(
			list[i], program->job->side == 0 ? "03:00.0" : "b1:00.0", &equal));
		if (equal)
			OK(doca_dev_open(list[i], &program->dev));
	}
	OK(doca_devinfo_destroy_list(list));
	if (program->job->side != 0)
		return;
	OK(doca_devinfo_rep_create_list(program->dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &n));
	OK(doca_dev_rep_open(reps[0], &program->rep));
	OK(doca_devinfo_rep_destroy_list(reps));
}

static void create(struct program *program)
{
	const struct sim_doca_job *job = program->job;
	const uint32_t tasks = job->msg_tasks * (job->side == 0 ? PEERS : 1);

	OK(doca_pe_create(&program->pe));
	if (job->side == 0) {
		OK(doca_comch_server_create(program->dev, program->rep, NAME, &program->server));
		program->ctx = doca_comch_server_as_ctx(program->server);
		OK(doca_comch_server_set_max_msg_size(program->server, SIM_DOCA_MSG));
		OK(doca_comch_server_set_recv_queue_size(program->server, job->recv_queue));
		OK(doca_comch_server_task_send_set_conf(program->server, peer_sent, peer_sent,
							tasks));
		OK(doca_comch_server_event_msg_recv_register(program->server, on_message));
		OK(doca_comch_server_event_connection_status_changed_register(
			program->server, on_connect, on_disconnect));
		OK(doca_comch_server_event_consumer_register(program->server, on_new, on_expired));
	} else {
		OK(doca_comch_client_create(program->dev, NAME, &program->client));
		program->ctx = doca_comch_client_as_ctx(program->client);
		OK(doca_comch_client_set_max_msg_size(program->client, SIM_DOCA_MSG));
		OK(doca_comch_client_set_recv_queue_size(program->client, job->recv_queue));
		OK(doca_comch_client_task_send_set_conf(program->client, peer_sent, peer_sent,
							tasks));
		OK(doca_comch_client_event_msg_recv_register(program->client, on_message));
		OK(doca_comch_client_event_consumer_register(program->client, on_new, on_expired));
	}
	OK(doca_pe_connect_ctx(program->pe, program->ctx));
	OK(doca_ctx_set_user_data(program->ctx, (union doca_data){.ptr = program}));
	OK(doca_ctx_set_state_changed_cb(program->ctx, on_program_state));
}

static void destroy(struct program *program)
{
	if (program->server)
		OK(doca_comch_server_destroy(program->server));
	else
		OK(doca_comch_client_destroy(program->client));
	sim_doca_destroyed(program->ctx);
	program->server = NULL;
	program->client = NULL;
	OK(doca_pe_destroy(program->pe));
}

/* -- running -- */

static uint64_t next_rude(const struct program *program, uint64_t until)
{
	for (uint32_t i = 0; i < PEERS; i++)
		if (program->peers[i].conn && program->peers[i].rude_ns < until)
			until = program->peers[i].rude_ns;
	return until > sim_now() ? until - sim_now() : 1;
}

/* Pause until the next time to poll. Comch has no notifications. */
static void wait(struct program *program, uint64_t until)
{
	const uint64_t ns = next_rude(program, until);

	pause_ns(ns < 20000 ? ns : sim_draw(20000));
}

static void progress(struct program *program, uint64_t until)
{
	uint32_t n = 0;

	while (doca_pe_progress(program->pe) && n < 8)
		n++;
	for (uint32_t i = 0; i < PEERS; i++)
		if (program->peers[i].conn)
			peer_step(&program->peers[i]);
	if (n == 0 && !doca_pe_progress(program->pe))
		wait(program, until);
	if (program->job->think_ns != 0 && sim_draw(16) == 0)
		pause_ns(sim_draw(program->job->think_ns));
}

static bool lanes_end(struct program *program)
{
	bool ended = true;

	for (uint32_t i = 0; i < PEERS; i++)
		if (program->peers[i].conn && !peer_lanes_end(&program->peers[i]))
			ended = false;
	return ended;
}

/*
 * In some runs, try to stop the context of a client while its consumers and producers run. The
 * library rejects the stop, unless the connection has just ended. Returns true if the library has
 * accepted the stop.
 */
static bool stop_too_early(struct program *program)
{
	const struct peer *peer = &program->peers[0];

	if (!program->client || !is_odd(program->job) || peer->n_lanes == 0 || peer->lost ||
	    peer->lanes[0].own_pe || !peer->lanes[0].out ||
	    state_of(peer->lanes[0].out) != DOCA_CTX_STATE_RUNNING)
		return false;
	return doca_ctx_stop(program->ctx) != DOCA_ERROR_IN_USE;
}

/* Bring the context from RUNNING, or from STOPPING after the peer has ended, to IDLE. */
static void stop(struct program *program)
{
	doca_error_t result;
	bool was_early = stop_too_early(program);

	while (!lanes_end(program))
		progress(program, SIM_NEVER);
	for (uint32_t i = 0; i < PEERS; i++)
		if (program->peers[i].conn && !program->peers[i].lost && !was_early) {
			program->peers[i].left = true;
			sim_doca_leave(program->peers[i].number);
		}
	result = doca_ctx_stop(program->ctx);
	if (result != DOCA_SUCCESS && result != DOCA_ERROR_IN_PROGRESS)
		doca_must("stop of a server or client", result);
	while (state_of(program->ctx) != DOCA_CTX_STATE_IDLE)
		progress(program, SIM_NEVER);
	for (uint32_t i = 0; i < PEERS; i++)
		if (program->peers[i].conn)
			peer_close(&program->peers[i]);
}

/* -- a client -- */

/* Returns false if there is no server. */
static bool connect_client(struct program *program)
{
	doca_error_t result;

	program->peers[0].conn = NULL;
	program->peers[0].left = program->peers[0].lost = false;
	result = doca_ctx_start(program->ctx);
	if (result != DOCA_ERROR_IN_PROGRESS)
		doca_must("start of a client", result);
	while (state_of(program->ctx) == DOCA_CTX_STATE_STARTING)
		progress(program, SIM_NEVER);
	return program->peers[0].conn != NULL;
}

static void run_client(struct program *program)
{
	struct sim_doca_job *job = program->job;
	struct peer *peer = &program->peers[0];

	for (uint32_t tries = 0; job->sessions != 0; tries++) {
		if (!program->client)
			create(program);
		if (tries == TRIES)
			sim_wrong("side %u: no connection in %u tries", job->side, TRIES);
		if (connect_client(program)) {
			bool left = false;

			while (!peer->lost && !left) {
				progress(program, SIM_NEVER);
				left = peer_is_satisfied(peer) || peer->rude_ns <= sim_now();
			}
			job->sessions -= left || sim_draw(4) == 0;
			stop(program);
			tries = 0;
		} else {
			pause_ns(1000000u << sim_draw(5));
		}
		if (sim_draw(2) != 0)
			destroy(program);
	}
	if (program->client)
		destroy(program);
}

/* -- a server -- */

/* The program disconnects one client. */
static void disconnect(struct program *program, struct peer *peer)
{
	doca_error_t result;

	while (!peer_lanes_end(peer))
		progress(program, SIM_NEVER);
	if (peer->lost)
		return;
	peer->left = true;
	sim_doca_leave(peer->number);
	while ((result = doca_comch_server_disconnect(program->server, peer->conn)) ==
	       DOCA_ERROR_AGAIN)
		pause_ns(10000);
	doca_must("doca_comch_server_disconnect", result);
}

static void tidy(struct program *program)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		struct peer *peer = &program->peers[i];

		if (!peer->conn)
			continue;
		if (!peer->lost && !peer->left && peer->rude_ns <= sim_now())
			disconnect(program, peer);
		if ((peer->lost || peer->left) && peer_lanes_end(peer) && peer->n_sending == 0)
			peer_close(peer);
	}
}

static void serve(struct program *program)
{
	struct sim_doca_job *job = program->job;
	bool again = job->sessions > 1;
	uint64_t until = again ? sim_now() + sim_draw(1u << (16 + sim_draw(9))) : SIM_NEVER;

	OK(doca_ctx_start(program->ctx));
	while (!job->stop && sim_now() < until) {
		progress(program, until);
		tidy(program);
	}
	stop(program);
	job->sessions -= again;
}

static void run_server(struct program *program)
{
	while (!program->job->stop) {
		if (!program->server)
			create(program);
		serve(program);
		if (sim_draw(2) != 0)
			destroy(program);
	}
	if (program->server)
		destroy(program);
}

VISIBLE void *sim_image_doca(void *arg)
{
	static struct program program;
	struct doca_log_backend *backend;

	program.job = arg;
	OK(doca_log_backend_create_with_buf_sdk(log_line, sizeof(log_line), show, &backend));
	open_devices(&program);
	if (program.job->side == 0) {
		run_server(&program);
		OK(doca_dev_rep_close(program.rep));
	} else {
		run_client(&program);
	}
	OK(doca_dev_close(program.dev));
	sim_doca_closed(program.job->side);
	exit(0);
}
