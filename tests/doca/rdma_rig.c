/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma_rig.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <doca_error.h>

#include "unity.h"

#ifdef RIG_BY_DEVICE
#include "rdma/rdma.h"
#endif

/* -- checks -- */

void rig_check(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: not so: %s (process %d)\n", file, line, what, (int)getpid());
	_exit(1);
}

void rig_ok(doca_error_t result, const char *what, const char *file, int line)
{
	if (result != DOCA_SUCCESS)
		fprintf(stderr, "%s: %s\n", what, doca_error_get_name(result));
	rig_check(result == DOCA_SUCCESS, what, file, line);
}

void rig_fails(doca_error_t expected, doca_error_t result, const char *what, const char *file,
	       int line)
{
	if (result != expected)
		fprintf(stderr, "%s: %s instead of %s\n", what, doca_error_get_name(result),
			doca_error_get_name(expected));
	rig_check(result == expected, what, file, line);
}

uint64_t rig_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* -- ends of tasks -- */

static void ended(struct rig_side *s, struct doca_task *task, union doca_data user_data,
		  const struct doca_rdma_task_receive *receive)
{
	struct rig_end *end = &s->ends[s->n_ends % (sizeof(s->ends) / sizeof(s->ends[0]))];

	*end = (struct rig_end){.tag = user_data.u64, .status = doca_task_get_status(task)};
	if (receive && end->status == DOCA_SUCCESS) {
		end->opcode = doca_rdma_task_receive_get_result_opcode(receive);
		end->imm = doca_rdma_task_receive_get_result_immediate_data(receive);
		end->length = doca_rdma_task_receive_get_result_len(receive);
		end->conn = doca_rdma_task_receive_get_result_rdma_connection(receive);
	}
	s->n_ends++;
	if (s->hook)
		s->hook(s, task, end);
	else
		doca_task_free(task);
}

#define ENDED(type) \
	static void type##_ended(struct doca_rdma_task_##type *task, union doca_data user_data, \
				 union doca_data ctx) \
	{ \
		ended(ctx.ptr, doca_rdma_task_##type##_as_task(task), user_data, NULL); \
	}

static void receive_ended(struct doca_rdma_task_receive *task, union doca_data user_data,
			  union doca_data ctx)
{
	ended(ctx.ptr, doca_rdma_task_receive_as_task(task), user_data, task);
}
ENDED(send)
ENDED(send_imm)
ENDED(read)
ENDED(write)
ENDED(write_imm)
ENDED(remote_net_sync_event_get)
ENDED(remote_net_sync_event_notify_set)
ENDED(atomic_cmp_swp)
ENDED(atomic_fetch_add)
ENDED(remote_net_sync_event_notify_add)

const struct rig_end *rig_end(struct rig_side *s)
{
	UNTIL(s, s->n_ends > s->n_seen);
	return &s->ends[s->n_seen++ % (sizeof(s->ends) / sizeof(s->ends[0]))];
}

void rig_end_ok(struct rig_side *s, uint64_t tag)
{
	const struct rig_end *end = rig_end(s);

	OK(end->status);
	CHECK(end->tag == tag);
}

void rig_until(struct rig_side *s, const unsigned *counter, unsigned n)
{
	UNTIL(s, *counter >= n);
}

/* -- a side -- */

static void on_state(const union doca_data user_data, struct doca_ctx *ctx,
		     enum doca_ctx_states prev, enum doca_ctx_states next)
{
	struct rig_side *s = user_data.ptr;

	(void)ctx;
	CHECK(prev == (s->n_states ? s->states[s->n_states - 1] : DOCA_CTX_STATE_IDLE));
	s->states[s->n_states++] = next;
}

static void on_request(struct doca_rdma_connection *conn, union doca_data ctx)
{
	struct rig_side *s = ctx.ptr;

	s->n_requests++;
	if (s->refuses)
		OK(doca_rdma_connection_reject(conn));
	else
		OK(doca_rdma_connection_accept(conn, NULL, 0));
}

static void on_established(struct doca_rdma_connection *conn, union doca_data user_data,
			   union doca_data ctx)
{
	struct rig_side *s = ctx.ptr;

	(void)user_data;
	s->conns[s->n_established++] = conn;
}

static void on_failure(struct doca_rdma_connection *conn, union doca_data user_data,
		       union doca_data ctx)
{
	struct rig_side *s = ctx.ptr;

	(void)conn;
	(void)user_data;
	s->n_failed++;
}

static void on_disconnection(struct doca_rdma_connection *conn, union doca_data user_data,
			     union doca_data ctx)
{
	struct rig_side *s = ctx.ptr;

	(void)user_data;
	OK(doca_rdma_connection_disconnect(conn)); /* as programs do in this callback */
	s->n_disconnected++;
}

static struct doca_dev *open_device(bool is_peer)
{
	const char *name = getenv(is_peer ? "RDMA_TEST_PEER_IBDEV" : "RDMA_TEST_IBDEV");
	char ibdev[DOCA_DEVINFO_IBDEV_NAME_SIZE];
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t n;

	if (!name)
		name = is_peer ? "mlx5_1" : "mlx5_0";
	OK(doca_devinfo_create_list(&list, &n));
	for (uint32_t i = 0; i < n && !dev; i++) {
		OK(doca_devinfo_get_ibdev_name(list[i], ibdev, sizeof(ibdev)));
		if (strcmp(ibdev, name) == 0)
			OK(doca_dev_open(list[i], &dev));
	}
	OK(doca_devinfo_destroy_list(list));
	CHECK(dev);
	return dev;
}

static void configure_atomics(struct rig_side *s)
{
	OK(doca_rdma_task_atomic_cmp_swp_set_conf(s->rdma, atomic_cmp_swp_ended,
						  atomic_cmp_swp_ended, RIG_TASKS));
	OK(doca_rdma_task_atomic_fetch_add_set_conf(s->rdma, atomic_fetch_add_ended,
						    atomic_fetch_add_ended, RIG_TASKS));
	OK(doca_rdma_task_remote_net_sync_event_notify_add_set_conf(
		s->rdma, remote_net_sync_event_notify_add_ended,
		remote_net_sync_event_notify_add_ended, RIG_TASKS));
}

static void configure(struct rig_side *s, const struct rig_wish *wish)
{
	configure_atomics(s);
	OK(doca_rdma_task_receive_set_conf(s->rdma, receive_ended, receive_ended, RIG_TASKS));
	OK(doca_rdma_task_send_set_conf(s->rdma, send_ended, send_ended, RIG_TASKS));
	OK(doca_rdma_task_send_imm_set_conf(s->rdma, send_imm_ended, send_imm_ended, RIG_TASKS));
	OK(doca_rdma_task_read_set_conf(s->rdma, read_ended, read_ended, RIG_TASKS));
	OK(doca_rdma_task_write_set_conf(s->rdma, write_ended, write_ended, RIG_TASKS));
	OK(doca_rdma_task_write_imm_set_conf(s->rdma, write_imm_ended, write_imm_ended, RIG_TASKS));
	OK(doca_rdma_task_remote_net_sync_event_get_set_conf(
		s->rdma, remote_net_sync_event_get_ended, remote_net_sync_event_get_ended,
		RIG_TASKS));
	OK(doca_rdma_task_remote_net_sync_event_notify_set_set_conf(
		s->rdma, remote_net_sync_event_notify_set_ended,
		remote_net_sync_event_notify_set_ended, RIG_TASKS));
	if (wish->permissions)
		OK(doca_rdma_set_permissions(s->rdma, wish->permissions));
	if (wish->max_conns)
		OK(doca_rdma_set_max_num_connections(s->rdma, wish->max_conns));
	if (wish->callbacks)
		OK(doca_rdma_set_connection_state_callbacks(s->rdma, on_request, on_established,
							    on_failure, on_disconnection));
}

static void make_memory(struct rig_side *s, const struct rig_wish *wish)
{
	const size_t bytes = wish->bytes ? wish->bytes : RIG_BYTES;

	s->memory = aligned_alloc(4096, bytes);
	CHECK(s->memory);
	memset(s->memory, 0, bytes);
	OK(doca_mmap_create(&s->map));
	OK(doca_mmap_add_dev(s->map, s->dev));
	OK(doca_mmap_set_permissions(s->map, wish->access ? wish->access
							  : DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
								    DOCA_ACCESS_FLAG_RDMA_READ |
								    DOCA_ACCESS_FLAG_RDMA_WRITE));
	OK(doca_mmap_set_memrange(s->map, s->memory, bytes));
	OK(doca_mmap_start(s->map));
	OK(doca_buf_inventory_create(1024, &s->inventory));
	OK(doca_buf_inventory_start(s->inventory));
}

void rig_start(struct rig_side *s)
{
	OK(doca_ctx_start(s->ctx));
#ifdef RIG_BY_DEVICE
	s->rdma->by_device = true; /* as over a network: the transport does reads and writes */
#endif
}

struct rig_side *rig_open(const struct rig_wish *wish)
{
	struct rig_side *s = calloc(1, sizeof(*s));

	CHECK(s);
	s->dev = open_device(wish->is_peer);
	make_memory(s, wish);
	OK(doca_pe_create(&s->pe));
	OK(doca_rdma_create(s->dev, &s->rdma));
	s->ctx = doca_rdma_as_ctx(s->rdma);
	configure(s, wish);
	OK(doca_ctx_set_user_data(s->ctx, (union doca_data){.ptr = s}));
	OK(doca_ctx_set_state_changed_cb(s->ctx, on_state));
	OK(doca_pe_connect_ctx(s->pe, s->ctx));
	if (!wish->unstarted)
		rig_start(s);
	return s;
}

void rig_close(struct rig_side *s)
{
	enum doca_ctx_states state;
	doca_error_t result = doca_ctx_stop(s->ctx);

	CHECK(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS);
	UNTIL(s,
	      doca_ctx_get_state(s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	OK(doca_rdma_destroy(s->rdma));
	OK(doca_pe_destroy(s->pe));
	if (s->remote)
		OK(doca_mmap_destroy(s->remote));
	OK(doca_buf_inventory_destroy(s->inventory));
	OK(doca_mmap_stop(s->map));
	OK(doca_mmap_destroy(s->map));
	OK(doca_dev_close(s->dev));
	free(s->memory);
	free(s);
}

/*
 * Wait like a program that waits for events: arm, wait, clear, and progress until progress returns
 * 0.
 */
static void wait_and_progress(struct rig_side *s)
{
	doca_notification_handle_t handle;
	struct pollfd p = {.events = POLLIN};

	OK(doca_pe_get_notification_handle(s->pe, &handle));
	OK(doca_pe_request_notification(s->pe));
	p.fd = handle;
	poll(&p, 1, 1000);
	OK(doca_pe_clear_notification(s->pe, handle));
	while (doca_pe_progress(s->pe))
		;
}

void rig_progress(struct rig_side *s)
{
	if (s->progresses_wait)
		wait_and_progress(s);
	else
		doca_pe_progress(s->pe);
}

/* -- buffers -- */

struct doca_buf *rig_room(struct rig_side *s, size_t offset, size_t length)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_addr(s->inventory, s->map, s->memory + offset, length,
					      &buf));
	return buf;
}

struct doca_buf *rig_data(struct rig_side *s, size_t offset, size_t length)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_data(s->inventory, s->map, s->memory + offset, length,
					      &buf));
	return buf;
}

static char *remote_memory(struct rig_side *s)
{
	size_t length;
	void *addr;

	OK(doca_mmap_get_memrange(s->remote, &addr, &length));
	return addr;
}

struct doca_buf *rig_remote_room(struct rig_side *s, size_t offset, size_t length)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_addr(s->inventory, s->remote, remote_memory(s) + offset,
					      length, &buf));
	return buf;
}

struct doca_buf *rig_remote_data(struct rig_side *s, size_t offset, size_t length)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_data(s->inventory, s->remote, remote_memory(s) + offset,
					      length, &buf));
	return buf;
}

void rig_put(struct doca_buf *buf)
{
	OK(doca_buf_dec_refcount(buf, NULL));
}

/* -- tasks -- */

#define TAG ((union doca_data){.u64 = tag})

void rig_receive(struct rig_side *s, struct doca_buf *buf, uint64_t tag)
{
	struct doca_rdma_task_receive *task;

	OK(doca_rdma_task_receive_allocate_init(s->rdma, buf, TAG, &task));
	OK(doca_task_submit(doca_rdma_task_receive_as_task(task)));
}

void rig_send(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *buf,
	      uint64_t tag)
{
	struct doca_rdma_task_send *task;

	OK(doca_rdma_task_send_allocate_init(s->rdma, conn, buf, TAG, &task));
	OK(doca_task_submit(doca_rdma_task_send_as_task(task)));
}

void rig_send_imm(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *buf,
		  uint32_t imm, uint64_t tag)
{
	struct doca_rdma_task_send_imm *task;

	OK(doca_rdma_task_send_imm_allocate_init(s->rdma, conn, buf, imm, TAG, &task));
	OK(doca_task_submit(doca_rdma_task_send_imm_as_task(task)));
}

void rig_read(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *src,
	      struct doca_buf *dst, uint64_t tag)
{
	struct doca_rdma_task_read *task;

	OK(doca_rdma_task_read_allocate_init(s->rdma, conn, src, dst, TAG, &task));
	OK(doca_task_submit(doca_rdma_task_read_as_task(task)));
}

void rig_write(struct rig_side *s, struct doca_rdma_connection *conn, const struct doca_buf *src,
	       struct doca_buf *dst, uint64_t tag)
{
	struct doca_rdma_task_write *task;

	OK(doca_rdma_task_write_allocate_init(s->rdma, conn, src, dst, TAG, &task));
	OK(doca_task_submit(doca_rdma_task_write_as_task(task)));
}

void rig_write_imm(struct rig_side *s, struct doca_rdma_connection *conn,
		   const struct doca_buf *src, struct doca_buf *dst, uint32_t imm, uint64_t tag)
{
	struct doca_rdma_task_write_imm *task;

	OK(doca_rdma_task_write_imm_allocate_init(s->rdma, conn, src, dst, imm, TAG, &task));
	OK(doca_task_submit(doca_rdma_task_write_imm_as_task(task)));
}

void rig_event_get(struct rig_side *s, struct doca_rdma_connection *conn,
		   const struct doca_sync_event_remote_net *event, struct doca_buf *dst,
		   uint64_t tag)
{
	struct doca_rdma_task_remote_net_sync_event_get *task;

	OK(doca_rdma_task_remote_net_sync_event_get_allocate_init(s->rdma, conn, event, dst, TAG,
								  &task));
	OK(doca_task_submit(doca_rdma_task_remote_net_sync_event_get_as_task(task)));
}

void rig_event_set(struct rig_side *s, struct doca_rdma_connection *conn,
		   struct doca_sync_event_remote_net *event, const struct doca_buf *src,
		   uint64_t tag)
{
	struct doca_rdma_task_remote_net_sync_event_notify_set *task;

	OK(doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(s->rdma, conn, event, src,
									 TAG, &task));
	OK(doca_task_submit(doca_rdma_task_remote_net_sync_event_notify_set_as_task(task)));
}

/* -- content of memory -- */

static uint8_t pattern(size_t at, uint32_t generation)
{
	return (uint8_t)((at * 2654435761u + generation * 40503u) >> 13 ^ at ^ generation);
}

void rig_fill(void *memory, size_t length, uint32_t generation)
{
	for (size_t i = 0; i < length; i++)
		((uint8_t *)memory)[i] = pattern(i, generation);
}

size_t rig_differs(const void *memory, size_t length, uint32_t generation)
{
	for (size_t i = 0; i < length; i++)
		if (((const uint8_t *)memory)[i] != pattern(i, generation))
			return i;
	return length;
}

/* -- the other process -- */

static pid_t start(void (*main)(int fd), int fd, int others)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(others);
	main(fd);
	exit(0);
}

bool rig_run(void (*first)(int fd), void (*second)(int fd), bool second_is_killed)
{
	int fds[2], status[2];
	pid_t pids[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	pids[0] = start(first, fds[0], fds[1]);
	pids[1] = start(second, fds[1], fds[0]);
	close(fds[0]);
	close(fds[1]);
	for (int i = 0; i < 2; i++)
		CHECK(waitpid(pids[i], &status[i], 0) == pids[i]);
	if (status[0] != 0)
		return false;
	return second_is_killed ? WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGKILL
				: status[1] == 0;
}

void rig_both(void (*first)(int fd), void (*second)(int fd))
{
	TEST_ASSERT_TRUE(rig_run(first, second, false));
}

static void no_peer(int fd)
{
	(void)fd;
}

void rig_alone(void (*program)(int fd))
{
	rig_both(program, no_peer);
}

void rig_say_pid(int fd)
{
	pid_t pid = getpid();

	rig_say(fd, &pid, sizeof(pid));
}

pid_t rig_hear_pid(int fd)
{
	pid_t pid;

	CHECK(rig_hear(fd, &pid, sizeof(pid)) == sizeof(pid));
	return pid;
}

void rig_say(int fd, const void *data, size_t length)
{
	CHECK(send(fd, data, length, MSG_NOSIGNAL) == (ssize_t)length);
}

size_t rig_hear(int fd, void *data, size_t max)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	CHECK(poll(&p, 1, RIG_WAIT_MS) == 1);
	n = recv(fd, data, max, 0);
	CHECK(n > 0);
	return (size_t)n;
}

void rig_tell(int fd)
{
	rig_say(fd, "", 1);
}

void rig_hark(int fd)
{
	char c;

	rig_hear(fd, &c, 1);
}

void rig_sync(int fd)
{
	rig_tell(fd);
	rig_hark(fd);
}

void rig_connect(struct rig_side *s, int fd, unsigned i)
{
	const void *blob;
	char peers[4096]; /* the size that programs use */
	size_t size;

	OK(doca_rdma_export(s->rdma, &blob, &size, &s->conns[i]));
	rig_say(fd, blob, size);
	size = rig_hear(fd, peers, sizeof(peers));
	OK(doca_rdma_connect(s->rdma, peers, size, s->conns[i]));
}

struct rig_side *rig_begin(int fd, bool is_peer)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = is_peer});

	rig_connect(s, fd, 0);
	return s;
}

void rig_export(struct rig_side *s, int fd)
{
	const void *blob;
	size_t size;

	OK(doca_mmap_export_rdma(s->map, s->dev, &blob, &size));
	rig_say(fd, blob, size);
}

void rig_import(struct rig_side *s, int fd)
{
	char blob[1024];
	size_t size = rig_hear(fd, blob, sizeof(blob));

	OK(doca_mmap_create_from_export(NULL, blob, size, s->dev, &s->remote));
}
