/* SPDX-License-Identifier: BSD-3-Clause */
#include "comch_rig.h"

#include <doca_error.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run_dir.h"

#define LOCALS 1024

/* The sides that are started in this process. */
static struct local {
	struct side *side; /* NULL: free */
	pthread_t thread;
	pid_t pid;
	bool is_busy; /* its engine is in doca_pe_progress() */
} locals[LOCALS];
static struct local *locals_end = locals; /* the end of the used part */

static pid_t test_pid;
static int pipes[RIG_PIPES][2];

void rig_die(const char *file, int line, const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), "%s:%d: not so: %s", file, line, what);
	if (getpid() == test_pid)
		TEST_FAIL_MESSAGE(text);
	fprintf(stderr, "%s\n", text);
	_exit(1);
}

void rig_need_result(const char *file, int line, const char *what, doca_error_t result,
		     doca_error_t wanted)
{
	char text[400];

	if (result == wanted)
		return;
	snprintf(text, sizeof(text), "%s is %s, not %s", what, doca_error_get_name(result),
		 doca_error_get_name(wanted));
	rig_die(file, line, text);
}

uint64_t rig_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

void rig_yield(void)
{
	poll(NULL, 0, 1);
}

/* -- processes -- */

void rig_begin(void)
{
	for (int i = 0; i < RIG_PIPES; i++) {
		if (pipes[i][0]) {
			close(pipes[i][0]);
			close(pipes[i][1]);
		}
		NEED(pipe2(pipes[i], O_CLOEXEC) == 0);
	}
}

pid_t rig_fork(void (*role)(void))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		/* the kernel kills a frozen side when its test fails */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		role();
		fflush(NULL);
		exit(0);
	}
	return pid;
}

void rig_wait(pid_t pid, int signal)
{
	uint64_t until = rig_now() + 3 * RIG_DEADLINE_NS;
	int status = 0;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && rig_now() < until)
		rig_yield();
	if (got == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		TEST_FAIL_MESSAGE("a side hangs");
	}
	if (signal)
		TEST_ASSERT_TRUE_MESSAGE(WIFSIGNALED(status) && WTERMSIG(status) == signal,
					 "a side ended otherwise");
	else
		TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status) && WEXITSTATUS(status) == 0,
					 "a side failed");
}

void rig_alone(void (*role)(void))
{
	rig_begin();
	rig_wait(rig_fork(role), 0);
}

void rig_run(void (*server)(void), void (*client)(void))
{
	pid_t a, b;

	rig_begin();
	a = rig_fork(server);
	b = rig_fork(client);
	rig_wait(a, 0);
	rig_wait(b, 0);
}

void rig_tell(int to, char letter)
{
	NEED(write(pipes[to][1], &letter, 1) == 1);
}

bool rig_heard(int me, char letter)
{
	struct pollfd p = {.fd = pipes[me][0], .events = POLLIN};
	char got;

	if (poll(&p, 1, 0) != 1)
		return false;
	NEED(read(pipes[me][0], &got, 1) == 1);
	NEED(got == letter);
	return true;
}

void rig_hear(int me, char letter)
{
	struct pollfd p = {.fd = pipes[me][0], .events = POLLIN};

	NEED(poll(&p, 1, (int)(RIG_DEADLINE_NS / 1000000)) == 1);
	NEED(rig_heard(me, letter));
}

void rig_init(void)
{
	const char *plugins = getenv("GANTRY_PLUGINS");

	test_pid = getpid();
	make_run_dir();
	setenv("GANTRY_PLUGIN_PATH", plugins ? plugins : TEST_PLUGINDIR, 1);
	unsetenv("GANTRY_DOCA_PROFILE");
	unsetenv("GANTRY_DOCA_CONF");
}

void rig_configure(const char *text)
{
	char path[80];
	FILE *file;

	snprintf(path, sizeof(path), "%s/doca-%d.conf", run_dir, getpid());
	file = fopen(path, "w");
	NEED(file && fputs(text, file) >= 0 && fclose(file) == 0);
	NEED(setenv("GANTRY_DOCA_CONF", path, 1) == 0);
}

void rig_fini(void)
{
	remove_run_dir();
}

/* -- a side -- */

static void jot(struct side *s, char letter)
{
	size_t n = strlen(s->journal);

	if (n + 1 < sizeof(s->journal))
		s->journal[n] = letter;
}

static struct side *side_of_ctx(struct doca_ctx *ctx)
{
	union doca_data data = {.u64 = 0};

	NEED_OK(doca_ctx_get_user_data(ctx, &data));
	return data.ptr;
}

static struct side *side_of(struct doca_comch_connection *conn)
{
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(conn);

	return side_of_ctx(
		server ? doca_comch_server_as_ctx(server)
		       : doca_comch_client_as_ctx(doca_comch_client_get_client_ctx(conn)));
}

static void end_task(struct side *s, struct doca_comch_task_send *task)
{
	if (s->keep_tasks)
		s->kept = doca_comch_task_send_as_task(task);
	else
		doca_task_free(doca_comch_task_send_as_task(task));
}

static void on_sent(struct doca_comch_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct side *s = ctx_data.ptr;

	(void)task_data;
	s->n_sent++;
	jot(s, 's');
	end_task(s, task);
}

static void on_failed(struct doca_comch_task_send *task, union doca_data task_data,
		      union doca_data ctx_data)
{
	struct side *s = ctx_data.ptr;

	(void)task_data;
	s->n_failed++;
	s->failed = doca_task_get_status(doca_comch_task_send_as_task(task));
	NEED(s->failed != DOCA_SUCCESS);
	jot(s, 'f');
	end_task(s, task);
}

static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *buf, uint32_t len,
		       struct doca_comch_connection *conn)
{
	struct side *s = side_of(conn);

	NEED(event && len < sizeof(s->text));
	memcpy(s->text, buf, len);
	s->text[len] = '\0';
	s->len = len;
	s->conn = conn;
	s->n_messages++;
	jot(s, 'm');
	if (s->on_message)
		s->on_message(s);
}

static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *conn, uint8_t ok)
{
	struct side *s = side_of(conn);

	NEED(event && ok <= 1);
	if (!ok) { /* the client has left before */
		s->n_refused++;
		return;
	}
	s->conn = conn;
	s->n_connected++;
	jot(s, 'C');
	if (s->on_connect)
		s->on_connect(s, conn);
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *conn, uint8_t ok)
{
	struct side *s = side_of(conn);

	NEED(event && ok <= 1);
	s->n_broken += !ok;
	s->n_lost++;
	jot(s, 'D');
}

static void on_new(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
		   uint32_t id)
{
	struct side *s = side_of(conn);

	NEED(event && id != 0 && id != 0xffff);
	s->consumer = id;
	s->n_new++;
	jot(s, '+');
}

static void on_expired(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
		       uint32_t id)
{
	struct side *s = side_of(conn);

	NEED(event && id != 0);
	s->n_expired++;
	jot(s, '-');
}

static void on_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		     enum doca_ctx_states next)
{
	struct side *s = data.ptr;

	NEED(s->ctx == ctx && prev != next && state_of(ctx) == next);
	jot(s, (char)('0' + next));
	if (s->on_state)
		s->on_state(s, next);
}

enum doca_ctx_states state_of(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;

	NEED_OK(doca_ctx_get_state(ctx, &state));
	return state;
}

void rig_try(struct doca_ctx *ctx, const struct rig_row *rows, size_t n)
{
	const enum doca_ctx_states state = state_of(ctx);
	char what[128];

	for (size_t i = 0; i < n; i++) {
		if (rows[i].wanted[state] == NOT_HERE)
			continue;
		snprintf(what, sizeof(what), "%s in state %d", rows[i].what, state);
		rig_need_result(__FILE__, __LINE__, what, rows[i].call(), rows[i].wanted[state]);
		if (state_of(ctx) != state)
			rig_die(__FILE__, __LINE__, what);
	}
}

void side_open_dev(struct side *s, const char *pci)
{
	struct doca_devinfo **list;
	uint32_t n;

	NEED_OK(doca_devinfo_create_list(&list, &n));
	for (uint32_t i = 0; i < n && !s->dev; i++) {
		uint8_t equal = 0;

		NEED_OK(doca_devinfo_is_equal_pci_addr(list[i], pci, &equal));
		if (equal)
			NEED_OK(doca_dev_open(list[i], &s->dev));
	}
	NEED(s->dev);
	NEED_OK(doca_devinfo_destroy_list(list));
}

void side_open_rep(struct side *s)
{
	struct doca_devinfo_rep **list;
	uint32_t n;

	NEED_OK(doca_devinfo_rep_create_list(s->dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &n));
	NEED(n >= 1);
	NEED_OK(doca_dev_rep_open(list[0], &s->rep));
	NEED_OK(doca_devinfo_rep_destroy_list(list));
}

void side_configure(struct side *s, uint32_t n_tasks)
{
	s->ctx = s->server ? doca_comch_server_as_ctx(s->server)
			   : doca_comch_client_as_ctx(s->client);
	NEED_OK(doca_pe_create(&s->pe));
	NEED_OK(doca_pe_connect_ctx(s->pe, s->ctx));
	NEED_OK(doca_ctx_set_user_data(s->ctx, (union doca_data){.ptr = s}));
	NEED_OK(doca_ctx_set_state_changed_cb(s->ctx, on_state));
	if (s->server) {
		NEED_OK(doca_comch_server_task_send_set_conf(s->server, on_sent, on_failed,
							     n_tasks));
		NEED_OK(doca_comch_server_event_msg_recv_register(s->server, on_message));
		NEED_OK(doca_comch_server_event_connection_status_changed_register(
			s->server, on_connect, on_disconnect));
		if (!s->no_consumer_cb)
			NEED_OK(doca_comch_server_event_consumer_register(s->server, on_new,
									  on_expired));
	} else {
		NEED_OK(doca_comch_client_task_send_set_conf(s->client, on_sent, on_failed,
							     n_tasks));
		NEED_OK(doca_comch_client_event_msg_recv_register(s->client, on_message));
		if (!s->no_consumer_cb)
			NEED_OK(doca_comch_client_event_consumer_register(s->client, on_new,
									  on_expired));
	}
}

void side_server(struct side *s, const char *name)
{
	side_open_dev(s, "03:00.0");
	side_open_rep(s);
	NEED_OK(doca_comch_server_create(s->dev, s->rep, name, &s->server));
	side_configure(s, 64);
}

void side_client(struct side *s, const char *name)
{
	side_open_dev(s, "b1:00.0");
	NEED_OK(doca_comch_client_create(s->dev, name, &s->client));
	side_configure(s, 64);
}

static void add_local(struct side *s)
{
	for (struct local *l = locals; l < locals + LOCALS; l++)
		if (l->side == s)
			l->side = NULL;
	for (struct local *l = locals; l < locals + LOCALS; l++)
		if (!l->side || l->pid != getpid()) {
			*l = (struct local){.side = s, .thread = pthread_self(), .pid = getpid()};
			locals_end = l >= locals_end ? l + 1 : locals_end;
			return;
		}
	NEED(!"too many sides");
}

static void remove_local(const struct side *s)
{
	for (struct local *l = locals; l < locals + LOCALS; l++)
		if (l->side == s)
			l->side = NULL;
}

static bool step_local(struct local *l)
{
	bool did;

	if (!l->side || l->is_busy || l->pid != getpid() || l->thread != pthread_self())
		return false;
	l->is_busy = true;
	did = doca_pe_progress(l->side->pe);
	l->is_busy = false;
	return did;
}

bool rig_step(struct doca_pe *pe)
{
	struct local *own = NULL;
	bool did = false;

	for (struct local *l = locals; l < locals_end; l++)
		if (l->side && l->pid == getpid() && l->side->pe == pe)
			own = l;
	if (own ? step_local(own) : doca_pe_progress(pe))
		return true;
	for (struct local *l = locals; l < locals_end; l++)
		if (l != own && step_local(l))
			did = true;
	return did;
}

void side_start(struct side *s)
{
	add_local(s);
	if (s->server) {
		NEED_OK(doca_ctx_start(s->ctx));
		NEED(state_of(s->ctx) == DOCA_CTX_STATE_RUNNING);
		return;
	}
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(s->ctx));
	NEED(state_of(s->ctx) == DOCA_CTX_STATE_STARTING);
	UNTIL(s, state_of(s->ctx) != DOCA_CTX_STATE_STARTING);
	NEED(state_of(s->ctx) == DOCA_CTX_STATE_RUNNING);
	NEED_OK(doca_comch_client_get_connection(s->client, &s->conn));
}

void side_close(struct side *s)
{
	remove_local(s);
	if (s->server)
		NEED_OK(doca_comch_server_destroy(s->server));
	if (s->client)
		NEED_OK(doca_comch_client_destroy(s->client));
	NEED_OK(doca_pe_destroy(s->pe));
	if (s->rep)
		NEED_OK(doca_dev_rep_close(s->rep));
	NEED_OK(doca_dev_close(s->dev));
}

void side_join(struct side *server, struct side *client)
{
	side_server(server, RIG_NAME);
	side_start(server);
	side_client(client, RIG_NAME);
	side_start(client);
	UNTIL(server, server->n_connected);
}

void side_stop(struct side *s)
{
	const doca_error_t result = doca_ctx_stop(s->ctx);

	NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS);
	UNTIL(s, state_of(s->ctx) == DOCA_CTX_STATE_IDLE);
	side_close(s);
}

doca_error_t side_try_send(struct side *s, const void *msg, uint32_t len)
{
	struct doca_comch_task_send *task;
	doca_error_t result;

	if (s->server)
		result = doca_comch_server_task_send_alloc_init(s->server, s->conn, msg, len,
								&task);
	else
		result = doca_comch_client_task_send_alloc_init(s->client, s->conn, msg, len,
								&task);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_task_submit(doca_comch_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_task_send_as_task(task));
	return result;
}

void side_send(struct side *s, const char *text)
{
	NEED_OK(side_try_send(s, text, (uint32_t)strlen(text)));
}
