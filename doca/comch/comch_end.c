/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_end.c - servers and clients (ends) as contexts, and their send task
 *
 * A client creates one connection when it starts. A server accepts connections. An end becomes idle
 * when all its connections are over and all notes are delivered; `ended` is its last event.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "comch/comch.h"
#include "common/gd_log.h"
#include "device/service_thread.h"

static struct gd_end *end_of(const struct doca_ctx *ctx)
{
	return gn_container_of(ctx, struct gd_end, ctx);
}

static const struct gantry_transport_ops *lock(struct gd_end *end, void **device_p)
{
	void *device;

	return gd_transport_lock(end->transport, device_p ? device_p : &device);
}

static void unlock(struct gd_end *end)
{
	gd_transport_unlock(end->transport);
}

/* -- time -- */

void gd_end_wake(struct gd_end *end, uint64_t ns)
{
	struct itimerspec now,
		next = {.it_value = {(time_t)(ns / GN_NS_PER_S), (long)(ns % GN_NS_PER_S)}};

	if (timerfd_gettime(end->timer, &now) == 0 &&
	    (now.it_value.tv_sec || now.it_value.tv_nsec) &&
	    (uint64_t)now.it_value.tv_sec * GN_NS_PER_S + (uint64_t)now.it_value.tv_nsec <= ns)
		return; /* the timer expires earlier already */
	timerfd_settime(end->timer, 0, &next, NULL);
}

static void check_conn(struct doca_comch_connection *conn, uint64_t now)
{
	if (conn->deadline_ns && conn->deadline_ns <= now) {
		if (conn->state == GD_CONN_GREETING && !conn->is_server)
			gd_log(DOCA_LOG_LEVEL_ERROR,
			       "Comch client \"%s\": the server does not answer: check that it runs its progress engine",
			       conn->end->name);
		gd_conn_hurry(conn);
	} else if (conn->deadline_ns) {
		gd_end_wake(conn->end, conn->deadline_ns - now);
	}
	if (conn->state == GD_CONN_OPEN)
		gd_conn_push(conn);
	else if (conn->state == GD_CONN_LEAVING)
		gd_conn_flush_ctrl(conn);
}

/* Service thread. Check deadlines, and retry sends. */
static void on_timer(void *arg)
{
	struct gd_end *end = arg;
	uint64_t count, now = gn_now_ns();

	if (read(end->timer, &count, sizeof(count)) < 0)
		return;
	lock(end, NULL);
	for (struct doca_comch_connection *conn = end->conns; conn; conn = conn->next)
		check_conn(conn, now);
	unlock(end);
}

/* -- send task -- */

static struct doca_comch_task_send *send_of(struct doca_task *task)
{
	return gn_container_of(task, struct doca_comch_task_send, task);
}

static doca_error_t queue_send(struct doca_comch_task_send *t)
{
	t->copy = malloc(t->len);
	if (!t->copy)
		return DOCA_ERROR_NO_MEMORY;
	memcpy(t->copy, t->msg, t->len);
	t->next = NULL;
	*t->conn->last = t;
	t->conn->last = &t->next;
	return DOCA_SUCCESS;
}

/*
 * Send the message, or copy it and let the task wait. The task completes when the program of the
 * peer takes the message. Consumers that the program has started before are announced first.
 */
static doca_error_t submit_send(struct doca_task *task)
{
	struct doca_comch_task_send *t = send_of(task);
	struct doca_comch_connection *conn = t->conn;
	doca_error_t result;
	int rc;

	gd_conn_lock(conn);
	if (conn->state == GD_CONN_OPEN)
		gd_conn_announce(conn);
	rc = conn->state != GD_CONN_OPEN ? -ENOTCONN
	     : conn->first               ? -EAGAIN
					 : gd_conn_send(conn, t->msg, t->len);
	result = rc == -EAGAIN ? queue_send(t) : gd_comch_error(rc);
	if (rc == 0)
		gd_conn_fly(conn, t);
	gd_conn_unlock(conn);
	return result;
}

static void free_send(struct doca_task *task)
{
	__atomic_fetch_sub(&send_of(task)->conn->n_tasks, 1, __ATOMIC_RELEASE);
}

static const struct gd_task_ops send_ops = {.submit = submit_send, .freed = free_send};

doca_error_t gd_end_send(struct gd_end *end, struct doca_comch_connection *conn, const void *msg,
			 uint32_t len, struct doca_comch_task_send **task_p)
{
	struct doca_task *task;

	if (!end || !conn || !msg || !task_p || gd_conn_end(conn) != end || len == 0 ||
	    len > end->max_msg_size)
		return DOCA_ERROR_INVALID_VALUE;
	if (__atomic_fetch_add(&conn->n_tasks, 1, __ATOMIC_ACQ_REL) >= GD_CONN_NO_TASKS ||
	    !__atomic_load_n(&conn->transport, __ATOMIC_RELAXED)) {
		__atomic_fetch_sub(&conn->n_tasks, 1, __ATOMIC_RELAXED);
		return DOCA_ERROR_NOT_CONNECTED;
	}
	task = gd_task_take(&end->sends, (union doca_data){.u64 = 0});
	if (!task) {
		__atomic_fetch_sub(&conn->n_tasks, 1, __ATOMIC_RELEASE);
		return DOCA_ERROR_NO_MEMORY;
	}
	send_of(task)->conn = conn;
	send_of(task)->msg = msg;
	send_of(task)->len = len;
	*task_p = send_of(task);
	return DOCA_SUCCESS;
}

/* -- start -- */

static doca_error_t check_configuration(const struct gd_end *end)
{
	const char *missing =
		!end->sends.is_set ? "no send task (task_send_set_conf)"
		: !end->on_message ? "no callback for messages (event_msg_recv_register)"
		: end->is_server && !end->on_connect
			? "no callbacks for connections (event_connection_status_changed_register)"
			: NULL;

	if (!missing)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR, "Comch %s \"%s\" cannot start: %s: set it before start",
	       end->is_server ? "server" : "client", end->name, missing);
	return DOCA_ERROR_INVALID_VALUE;
}

static void run_ended(struct gd_event *event)
{
	gd_ctx_stopped(&gn_container_of(event, struct gd_end, ended)->ctx);
}

/* Lock held. */
static doca_error_t open_server(struct gd_end *end, const struct gantry_transport_ops *ops,
				void *device, const char *service)
{
	int rc = ops->listen(device, service, &gd_conn_events, end, &end->listener);

	if (rc == 0)
		return DOCA_SUCCESS;
	if (rc == -EADDRINUSE)
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "Comch server \"%s\" cannot start: a server of that name exists (device=%s, representor=%s): stop that server, or use another name",
		       end->name, end->ctx.dev->info->pci, end->rep->info->pci);
	else
		gd_log(DOCA_LOG_LEVEL_ERROR, "Comch server \"%s\" cannot start (device=%s): %s",
		       end->name, end->ctx.dev->info->pci, strerror(-rc));
	return rc == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_INITIALIZATION;
}

static doca_error_t open_client(struct gd_end *end, const struct gantry_transport_ops *ops,
				void *device, const char *service)
{
	struct doca_comch_connection *conn = gd_conn_create(end);
	int rc;

	if (!conn)
		return DOCA_ERROR_NO_MEMORY;
	rc = ops->connect(device, service, &gd_conn_events, conn, &conn->link);
	if (rc) {
		conn->state = GD_CONN_OVER;
		end->n_conns--;
		gd_log(DOCA_LOG_LEVEL_ERROR, "Comch client \"%s\" cannot start (device=%s): %s",
		       end->name, end->ctx.dev->info->pci, strerror(-rc));
		return rc == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_INITIALIZATION;
	}
	conn->deadline_ns = gn_now_ns() + gd_connect_ns();
	gd_end_wake(end, gd_connect_ns());
	return DOCA_ERROR_IN_PROGRESS;
}

static doca_error_t add_timer(struct gd_end *end)
{
	doca_error_t result;

	if (end->timer >= 0)
		return DOCA_SUCCESS;
	end->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (end->timer < 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	result = gd_service_add_fd(end->timer, on_timer, end);
	if (result != DOCA_SUCCESS) {
		close(end->timer);
		end->timer = -1;
	}
	return result;
}

static doca_error_t start(struct doca_ctx *ctx)
{
	struct gd_end *end = end_of(ctx);
	const struct gantry_transport_ops *ops;
	struct gd_transport *transport;
	char service[64];
	doca_error_t result = check_configuration(end);
	void *device;

	if (result == DOCA_SUCCESS)
		result = gd_transport_get(ctx->dev->info, &transport);
	/* do not write an equal value: at a restart the timer callback can read the field */
	if (result == DOCA_SUCCESS && end->transport != transport)
		end->transport = transport;
	if (result == DOCA_SUCCESS)
		result = add_timer(end);
	if (result != DOCA_SUCCESS)
		return result;
	gd_comch_service(service, ctx->dev->info,
			 end->is_server ? end->rep->info->pci : ctx->dev->info->pci, end->name);
	ops = lock(end, &device);
	end->stopping = end->is_ended = false;
	end->listener = NULL;
	result = (end->is_server ? open_server : open_client)(end, ops, device, service);
	unlock(end);
	return result;
}

/* -- stop -- */

void gd_end_check(struct gd_end *end)
{
	if (!end->stopping || end->is_ended || end->n_conns || end->n_notes)
		return;
	end->is_ended = true;
	end->ended = (struct gd_event){.run = run_ended, .is_silent = true};
	gd_pe_post(end->ctx.pe, &end->ended);
}

/* A stop fails while consumers or producers run, except for a client whose peer has ended. */
static bool is_used(const struct gd_end *end)
{
	for (const struct doca_comch_connection *conn = end->conns; conn; conn = conn->next)
		if (conn->active && (end->is_server || conn->state != GD_CONN_LOST))
			return true;
	return false;
}

static doca_error_t stop(struct doca_ctx *ctx)
{
	struct gd_end *end = end_of(ctx);
	const struct gantry_transport_ops *ops = lock(end, NULL);
	doca_error_t result = DOCA_ERROR_IN_PROGRESS;

	if (is_used(end)) {
		unlock(end);
		return DOCA_ERROR_IN_USE;
	}
	if (end->listener)
		ops->unlisten(end->listener);
	end->listener = NULL;
	for (struct doca_comch_connection *conn = end->conns; conn; conn = conn->next)
		gd_conn_leave(conn, true);
	end->stopping = true;
	if (!end->n_conns && !end->n_notes)
		result = DOCA_SUCCESS;
	else
		gd_end_check(end);
	unlock(end);
	return result;
}

static const struct gd_ctx_ops server_ops = {
	.name = "Comch server", .start = start, .stop = stop, .is_silent = true};
static const struct gd_ctx_ops client_ops = {
	.name = "Comch client", .start = start, .stop = stop, .is_silent = true};

doca_error_t gd_end_disconnect(struct gd_end *end, struct doca_comch_connection *conn)
{
	doca_error_t result = DOCA_SUCCESS;

	if (!end || !conn || gd_conn_end(conn) != end || !end->transport)
		return DOCA_ERROR_INVALID_VALUE;
	lock(end, NULL);
	if (conn->state == GD_CONN_OVER || conn->state == GD_CONN_FORGOTTEN)
		result = DOCA_ERROR_INVALID_VALUE;
	else if (conn->n_busy)
		result = DOCA_ERROR_IN_USE;
	else
		result = gd_comch_error(gd_conn_leave(conn, false));
	if (result == DOCA_SUCCESS)
		conn->disconnected = true;
	unlock(end);
	return result;
}

/* -- create and destroy -- */

doca_error_t gd_end_create(struct doca_dev *dev, struct doca_dev_rep *rep, const char *name,
			   struct gd_end **end_p)
{
	const size_t length = strnlen(name, GD_COMCH_NAME_LEN);
	struct gd_end *end;

	if (length == 0 || length == GD_COMCH_NAME_LEN)
		return DOCA_ERROR_INVALID_VALUE;
	end = calloc(1, sizeof(*end));
	if (!end)
		return DOCA_ERROR_NO_MEMORY;
	end->is_server = rep != NULL;
	gd_ctx_init(&end->ctx, rep ? &server_ops : &client_ops, dev);
	gd_pool_init(&end->sends, &end->ctx, &send_ops, sizeof(struct doca_comch_task_send));
	end->rep = rep;
	gd_rep_hold(rep);
	memcpy(end->name, name, length);
	end->max_msg_size = GD_COMCH_MSG_SIZE;
	end->recv_queue = GD_COMCH_RECV_DEFAULT;
	end->timer = -1;
	*end_p = end;
	return DOCA_SUCCESS;
}

/*
 * Free the connections. A connection that consumers or producers still reference continues to
 * exist, without an end, until the last of these is destroyed.
 */
static void free_conns(struct gd_end *end)
{
	struct doca_comch_connection *conn;

	lock(end, NULL);
	while ((conn = end->conns)) {
		end->conns = conn->next;
		conn->end = NULL;
		if (!conn->refs)
			gd_conn_free(conn);
	}
	gd_conn_blocks_leave(end);
	unlock(end);
}

doca_error_t gd_end_destroy(struct gd_end *end)
{
	doca_error_t result;

	if (!end)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_ctx_fini(&end->ctx, DOCA_ERROR_IN_USE);
	if (result != DOCA_SUCCESS)
		return result;
	gd_rep_release(end->rep);
	if (end->timer >= 0) {
		gd_service_remove_fd(end->timer);
		close(end->timer);
	}
	if (end->transport)
		free_conns(end);
	free(end);
	return DOCA_SUCCESS;
}
