/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_nbd.c - replaces libnbd: a handle is a connection to a server of remote.h
 *
 * The functions behave like those of libnbd 1.14 with a server that has structured replies and the
 * context base:allocation. As drawn:
 *
 *     - a handle needs some notifications until it is ready
 *     - the socket takes no data: a command waits until a call of nbd_aio_notify_write()
 *     - sending fails, because the connection is lost
 *     - the end of a connection is found at the start of a reply (CLOSED), or within one (DEAD)
 *     - a read has several chunks, in any order, or lacks a part of its data
 *     - a list of extents is incomplete, and its lengths are no multiples of the block size
 *
 * Uses of a handle that libnbd does not survive fail the run: a call from a callback, and a command
 * that is retired in the call that submits it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libnbd.h>

#include "image.h"
#include "remote.h"
#include "sim.h"

#define BLOCK_MINIMUM 512u
#define BLOCK_PREFERRED 4096
#define BLOCK_MAXIMUM (32u << 20)
#define STEPS_MOST 4u    /* notifications until a handle is ready */
#define CHUNKS_MOST 4u   /* of a read */
#define EXTENTS_MOST 16u /* of a reply */

enum state { CREATED, CONNECTING, READY, DEAD, CLOSED };

struct command {
	struct command *next;
	uint64_t number; /* of the operation */
	enum sim_remote_op op;
	bool fua;
	uint8_t *data;
	uint64_t offset;
	size_t count;
	int error;
	nbd_chunk_callback chunk;
	nbd_extent_callback extent;
	nbd_completion_callback completion;
};

struct nbd_handle {
	enum state state;
	int fd;
	bool running;       /* a function of libnbd has locked the handle */
	bool disconnecting; /* nbd_aio_disconnect() was called */
	bool initializes;   /* reads clear their buffers first */
	bool greeted;       /* the server has begun the handshake */
	uint32_t steps;     /* notifications after the greeting until the handle is ready */
	uint64_t size;
	int64_t cookie;            /* of the last command */
	char *context;             /* set by nbd_add_meta_context() */
	struct command *to_issue;  /* commands that the socket did not take, oldest first */
	struct command *in_flight; /* newest first */
	struct command *done;      /* the completion callback has not retired them */
	struct command *submitted; /* the running call returns its cookie */
};

static __thread int last_errno;
static __thread const char *last_error;

static int fail(int errnum, const char *text)
{
	last_errno = errnum;
	last_error = text;
	return -1;
}

static void lock(struct nbd_handle *h)
{
	if (h->running)
		sim_wrong("a call of libnbd with a handle that another call has locked");
	h->running = true;
}

static int unlock(struct nbd_handle *h, int rc)
{
	h->running = false;
	return rc;
}

/* -- commands -- */

static void append(struct command **list, struct command *cmd)
{
	while (*list)
		list = &(*list)->next;
	cmd->next = NULL;
	*list = cmd;
}

static void retire(struct command *cmd)
{
	if (cmd->chunk.free)
		cmd->chunk.free(cmd->chunk.user_data);
	if (cmd->extent.free)
		cmd->extent.free(cmd->extent.user_data);
	if (cmd->completion.free)
		cmd->completion.free(cmd->completion.user_data);
}

static void retire_list(struct command *list)
{
	struct command *next;

	for (; list; list = next) {
		next = list->next;
		retire(list);
		free(list);
	}
}

/* The command is in no list. */
static void complete(struct nbd_handle *h, struct command *cmd)
{
	int error = cmd->error, rc = 0;

	if (cmd->completion.callback)
		rc = cmd->completion.callback(cmd->completion.user_data, &error);
	if (rc == 1 && cmd == h->submitted) {
		sim_wrong("a command is retired in the call of libnbd that submits it");
		rc = 0;
	}
	if (rc == 1) {
		retire(cmd);
		free(cmd);
	} else {
		append(&h->done, cmd);
	}
}

static void abort_list(struct nbd_handle *h, struct command **list)
{
	struct command *cmd;

	while ((cmd = *list)) {
		*list = cmd->next;
		cmd->error = ENOTCONN;
		complete(h, cmd);
	}
}

/* End the connection. Returns the result of the call that has noticed its end. */
static int end(struct nbd_handle *h, enum state state)
{
	abort_list(h, &h->to_issue);
	abort_list(h, &h->in_flight);
	close(h->fd);
	h->fd = -1;
	h->state = state;
	return state == DEAD ? -1 : 0;
}

/* -- replies -- */

static void call_chunk(struct command *cmd, size_t from, size_t n, unsigned status)
{
	int error = cmd->error;

	if (cmd->chunk.callback(cmd->chunk.user_data, cmd->data + from, n, cmd->offset + from,
				status, &error) == -1 &&
	    cmd->error == 0)
		cmd->error = error ? error : EPROTO;
}

/* `lacks`: there is no chunk for the data at the end, or for any data. */
static void reply_read(struct command *cmd, bool lacks)
{
	size_t from = 0, to = cmd->count;

	if (cmd->error != 0) {
		if (sim_draw(2) == 0)
			call_chunk(cmd, 0, 0, LIBNBD_READ_ERROR);
		return;
	}
	if (lacks)
		to = sim_draw(2) == 0 ? 0 : sim_draw((uint32_t)cmd->count);
	for (uint32_t i = 1; from < to; i++) {
		size_t n = to - from;

		if (i < CHUNKS_MOST && sim_draw(3) == 0)
			n = 1 + sim_draw((uint32_t)n);
		if (sim_draw(2) == 0) {
			call_chunk(cmd, from, n, LIBNBD_READ_DATA);
			from += n;
		} else {
			call_chunk(cmd, to - n, n, LIBNBD_READ_DATA);
			to -= n;
		}
	}
}

/* Store the extents of the range of a command. Returns the number of words. */
static size_t find_extents(const struct nbd_handle *h, const struct command *cmd, uint32_t *entries)
{
	const uint32_t granule = sim_draw(3) == 0 ? BLOCK_MINIMUM : SIM_BLOCK;
	uint64_t at = cmd->offset, end = cmd->offset + cmd->count;
	size_t n = 0;

	/* without the flag REQ_ONE the last extent can be longer than the range */
	if (sim_draw(4) == 0)
		end = h->size - end > SIM_BLOCK ? end + SIM_BLOCK : h->size;
	while (at < end) {
		uint32_t length = end - at < granule ? (uint32_t)(end - at) : granule;
		uint32_t flags = sim_remote_is_hole(h->fd, at, length)
					 ? LIBNBD_STATE_HOLE | LIBNBD_STATE_ZERO
					 : 0;

		if (n != 0 && entries[n - 1] == flags && sim_draw(16) != 0) {
			entries[n - 2] += length;
		} else if (n == 2 * (size_t)EXTENTS_MOST || (n != 0 && sim_draw(16) == 0)) {
			break;
		} else {
			entries[n++] = length;
			entries[n++] = flags;
		}
		at += length;
	}
	return n;
}

/*
 * Returns 0; -1: out of memory. libnbd keeps the entries until the next reply with extents; here
 * they are freed at once, so that a connection that was used has no more memory than a new one.
 */
static int reply_extents(struct nbd_handle *h, struct command *cmd)
{
	int error = cmd->error;
	uint32_t *entries;
	size_t n;

	if (error != 0)
		return 0;
	entries = malloc(2 * EXTENTS_MOST * sizeof(*entries));
	if (!entries)
		return fail(ENOMEM, "malloc");
	n = find_extents(h, cmd, entries);
	if (cmd->extent.callback(cmd->extent.user_data, h->context, cmd->offset, entries, n,
				 &error) == -1)
		cmd->error = error ? error : EPROTO;
	free(entries);
	return 0;
}

/* Process the reply to an operation. Returns the result of the call that processes it. */
static int reply(struct nbd_handle *h, uint64_t number, int result)
{
	struct command **at = &h->in_flight, *cmd;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	cmd = *at;
	if (!cmd)
		sim_fail("a reply to an operation that the double of libnbd did not submit");
	cmd->error = result < 0 ? -result : 0;
	if (cmd->op == SIM_REMOTE_READ)
		reply_read(cmd, result == SIM_REMOTE_SHORT);
	else if (cmd->op == SIM_REMOTE_STATUS && reply_extents(h, cmd) != 0)
		return end(h, DEAD);
	*at = cmd->next;
	complete(h, cmd);
	return 0;
}

static int receive(struct nbd_handle *h)
{
	uint64_t number = 0;
	int result = 0;

	switch (sim_remote_event(h->fd, &number, &result)) {
	case SIM_REMOTE_DONE:
		return reply(h, number, result);
	case SIM_REMOTE_LOST:
		if (sim_draw(2) == 0)
			return end(h, CLOSED);
		fail(ECONNRESET, "recv: Connection reset by peer");
		return end(h, DEAD);
	default: /* the protocol does not report a new size */
		return 0;
	}
}

/* -- sending -- */

static bool is_lost(const struct nbd_handle *h)
{
	struct pollfd p = {.fd = h->fd};

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

static int issue(struct nbd_handle *h)
{
	struct command *cmd;

	while ((cmd = h->to_issue)) {
		const struct iovec data = {cmd->data, cmd->count};
		const struct sim_remote_request request = {.op = cmd->op,
							   .fua = cmd->fua,
							   .offset = cmd->offset,
							   .bytes = cmd->count,
							   .data = &data,
							   .n = cmd->data ? 1 : 0};

		if (sim_draw(4) == 0 && is_lost(h)) {
			fail(EPIPE, "send: Broken pipe");
			return end(h, DEAD);
		}
		if (sim_draw(16) == 0)
			return 0;
		h->to_issue = cmd->next;
		cmd->next = h->in_flight;
		h->in_flight = cmd;
		cmd->number = sim_remote_submit(h->fd, &request);
	}
	return 0;
}

/* Returns 0; -1: libnbd does not submit the command. */
static int check(const struct nbd_handle *h, const struct command *cmd, uint32_t flags)
{
	const bool writes = cmd->op == SIM_REMOTE_WRITE || cmd->op == SIM_REMOTE_ZERO ||
			    cmd->op == SIM_REMOTE_DISCARD;

	if (h->state != READY)
		return fail(h->state == CREATED ? ENOTCONN : EINVAL, "invalid state");
	if ((flags & ~(writes ? LIBNBD_CMD_FLAG_FUA : 0)) != 0)
		return fail(EINVAL, "invalid value for flag");
	if (cmd->op == SIM_REMOTE_STATUS && !h->context)
		return fail(ENOTSUP, "did not negotiate any metadata contexts");
	if (h->disconnecting)
		return fail(EINVAL, "cannot request more commands after NBD_CMD_DISC");
	if (cmd->op == SIM_REMOTE_FLUSH)
		return 0;
	if (cmd->count == 0)
		return fail(EINVAL, "count cannot be 0");
	if (cmd->offset > h->size || cmd->count > h->size - cmd->offset)
		return fail(writes ? ENOSPC : EINVAL, "request out of bounds");
	if ((cmd->offset | cmd->count) % BLOCK_MINIMUM != 0)
		return fail(EINVAL, "request is unaligned");
	if (cmd->count > BLOCK_MAXIMUM)
		sim_wrong("a request is longer than the limit of the server");
	return 0;
}

static int64_t submit(struct nbd_handle *h, const struct command *wanted, uint32_t flags)
{
	struct command *cmd = NULL;

	lock(h);
	if (check(h, wanted, flags) == 0) {
		cmd = malloc(sizeof(*cmd));
		if (!cmd)
			fail(ENOMEM, "calloc");
	}
	if (!cmd) {
		struct command rejected = *wanted;

		retire(&rejected);
		return unlock(h, -1);
	}
	*cmd = *wanted;
	cmd->fua = flags & LIBNBD_CMD_FLAG_FUA;
	h->submitted = cmd;
	append(&h->to_issue, cmd);
	/* libnbd returns a cookie also if the call finds that the connection is lost */
	if (h->to_issue == cmd)
		(void)issue(h);
	h->submitted = NULL;
	unlock(h, 0);
	return ++h->cookie;
}

int64_t nbd_aio_pread_structured(struct nbd_handle *h, void *buf, size_t count, uint64_t offset,
				 nbd_chunk_callback chunk, nbd_completion_callback completion,
				 uint32_t flags)
{
	const struct command cmd = {.op = SIM_REMOTE_READ,
				    .data = buf,
				    .count = count,
				    .offset = offset,
				    .chunk = chunk,
				    .completion = completion};

	if (h->initializes)
		memset(buf, 0, count);
	return submit(h, &cmd, flags);
}

int64_t nbd_aio_pwrite(struct nbd_handle *h, const void *buf, size_t count, uint64_t offset,
		       nbd_completion_callback completion, uint32_t flags)
{
	const struct command cmd = {.op = SIM_REMOTE_WRITE,
				    .data = (uint8_t *)(uintptr_t)buf,
				    .count = count,
				    .offset = offset,
				    .completion = completion};

	return submit(h, &cmd, flags);
}

int64_t nbd_aio_zero(struct nbd_handle *h, uint64_t count, uint64_t offset,
		     nbd_completion_callback completion, uint32_t flags)
{
	const struct command cmd = {
		.op = SIM_REMOTE_ZERO, .count = count, .offset = offset, .completion = completion};

	return submit(h, &cmd, flags);
}

int64_t nbd_aio_trim(struct nbd_handle *h, uint64_t count, uint64_t offset,
		     nbd_completion_callback completion, uint32_t flags)
{
	const struct command cmd = {.op = SIM_REMOTE_DISCARD,
				    .count = count,
				    .offset = offset,
				    .completion = completion};

	return submit(h, &cmd, flags);
}

int64_t nbd_aio_flush(struct nbd_handle *h, nbd_completion_callback completion, uint32_t flags)
{
	const struct command cmd = {.op = SIM_REMOTE_FLUSH, .completion = completion};

	return submit(h, &cmd, flags);
}

/* The extents are those of the moment at which the reply arrives. */
int64_t nbd_aio_block_status(struct nbd_handle *h, uint64_t count, uint64_t offset,
			     nbd_extent_callback extent, nbd_completion_callback completion,
			     uint32_t flags)
{
	const struct command cmd = {.op = SIM_REMOTE_STATUS,
				    .count = count,
				    .offset = offset,
				    .extent = extent,
				    .completion = completion};

	return submit(h, &cmd, flags);
}

/* The server closes the connection afterwards. The caller does not wait for that. */
int nbd_aio_disconnect(struct nbd_handle *h, uint32_t flags)
{
	(void)flags;
	lock(h);
	if (h->state != READY)
		return unlock(h, fail(EINVAL, "invalid state"));
	h->disconnecting = true;
	return unlock(h, 0);
}

/* -- connecting -- */

/* One step of the handshake. */
static int step(struct nbd_handle *h)
{
	int64_t size = sim_remote_size(h->fd);

	h->greeted = sim_remote_take_greeting(h->fd);
	if (size < 0 || is_lost(h)) {
		fail(0, "recv: server disconnected unexpectedly");
		return end(h, DEAD);
	}
	if (!h->greeted)
		return 0;
	if (h->steps > 1) {
		h->steps--;
		return 0;
	}
	h->size = (uint64_t)size;
	h->state = READY;
	return 0;
}

/* Returns the parameter `socket`, which the caller frees, or NULL with an error set. */
static char *socket_of(const char *uri)
{
	const char *at = strncmp(uri, "nbd+unix://", 11) == 0 ? strstr(uri, "socket=") : NULL;
	char *path;

	if (!at || strchr(at, '%')) {
		fail(EINVAL, "cannot parse socket parameter from NBD URI");
		return NULL;
	}
	at += strlen("socket=");
	path = strndup(at, strcspn(at, "&;#"));
	if (!path)
		fail(ENOMEM, "malloc");
	return path;
}

int nbd_aio_connect_uri(struct nbd_handle *h, const char *uri)
{
	char *path;

	lock(h);
	if (h->state != CREATED)
		return unlock(h, fail(EINVAL, "invalid state"));
	path = socket_of(uri);
	if (!path)
		return unlock(h, -1);
	h->fd = sim_remote_connect(path);
	free(path);
	if (h->fd < 0) {
		h->state = DEAD;
		return unlock(h, fail(errno, "connect"));
	}
	h->state = CONNECTING;
	h->steps = 1 + sim_draw(STEPS_MOST);
	return unlock(h, 0);
}

/* -- states and events -- */

int nbd_aio_is_ready(struct nbd_handle *h)
{
	return h->state == READY && !h->to_issue;
}

int nbd_aio_is_dead(struct nbd_handle *h)
{
	return h->state == DEAD;
}

int nbd_aio_is_closed(struct nbd_handle *h)
{
	return h->state == CLOSED;
}

int nbd_aio_get_fd(struct nbd_handle *h)
{
	return h->fd >= 0 ? h->fd : fail(EINVAL, "connection is not in a connected state");
}

unsigned nbd_aio_get_direction(struct nbd_handle *h)
{
	if (h->state == CONNECTING)
		return h->greeted ? LIBNBD_AIO_DIRECTION_BOTH : LIBNBD_AIO_DIRECTION_READ;
	if (h->state != READY)
		return 0;
	return h->to_issue ? LIBNBD_AIO_DIRECTION_BOTH : LIBNBD_AIO_DIRECTION_READ;
}

int nbd_aio_notify_read(struct nbd_handle *h)
{
	int rc;

	lock(h);
	if (h->state == CONNECTING)
		rc = step(h);
	else if (h->state == READY)
		rc = receive(h);
	else
		rc = fail(EINVAL, "external event is invalid in this state");
	return unlock(h, rc);
}

int nbd_aio_notify_write(struct nbd_handle *h)
{
	int rc;

	lock(h);
	if (h->state == CONNECTING)
		rc = step(h);
	else if (h->state == READY && h->to_issue)
		rc = issue(h);
	else
		rc = fail(EINVAL, "external event is invalid in this state");
	return unlock(h, rc);
}

/* -- handles -- */

struct nbd_handle *nbd_create(void)
{
	struct nbd_handle *h = calloc(1, sizeof(*h));

	if (!h) {
		fail(ENOMEM, "calloc");
		return NULL;
	}
	h->fd = -1;
	h->initializes = true;
	return h;
}

void nbd_close(struct nbd_handle *h)
{
	if (!h)
		return;
	lock(h);
	retire_list(h->to_issue);
	retire_list(h->in_flight);
	retire_list(h->done);
	if (h->fd >= 0)
		close(h->fd);
	free(h->context);
	free(h);
}

const char *nbd_get_error(void)
{
	return last_error;
}

int nbd_get_errno(void)
{
	return last_errno;
}

int nbd_set_tls_certificates(struct nbd_handle *h, const char *dir)
{
	(void)h;
	sim_fail("libnbd: TLS with certificates in %s", dir);
}

int nbd_set_tls_psk_file(struct nbd_handle *h, const char *filename)
{
	(void)h;
	sim_fail("libnbd: TLS with keys in %s", filename);
}

int nbd_set_tls_username(struct nbd_handle *h, const char *username)
{
	(void)h;
	sim_fail("libnbd: TLS with the user name %s", username);
}

int nbd_set_pread_initialize(struct nbd_handle *h, bool request)
{
	h->initializes = request;
	return 0;
}

int nbd_add_meta_context(struct nbd_handle *h, const char *name)
{
	if (strcmp(name, LIBNBD_CONTEXT_BASE_ALLOCATION) != 0)
		sim_fail("libnbd: the context %s", name);
	h->context = strdup(name);
	return h->context ? 0 : fail(ENOMEM, "strdup");
}

/* -- the export -- */

/* Returns `value`, or -1 if the handle does not know the export. */
static int64_t known(const struct nbd_handle *h, int64_t value)
{
	if (h->state == READY || h->state == CLOSED)
		return value;
	return fail(h->state == CREATED ? ENOTCONN : EINVAL, "invalid state");
}

int64_t nbd_get_size(struct nbd_handle *h)
{
	return known(h, (int64_t)h->size);
}

int64_t nbd_get_block_size(struct nbd_handle *h, int size_type)
{
	return known(h, size_type == LIBNBD_SIZE_MINIMUM     ? BLOCK_MINIMUM
			: size_type == LIBNBD_SIZE_PREFERRED ? BLOCK_PREFERRED
							     : BLOCK_MAXIMUM);
}

int nbd_is_read_only(struct nbd_handle *h)
{
	return (int)known(h, 0);
}

int nbd_can_flush(struct nbd_handle *h)
{
	return (int)known(h, 1);
}

int nbd_can_fua(struct nbd_handle *h)
{
	return (int)known(h, 1);
}

int nbd_can_trim(struct nbd_handle *h)
{
	return (int)known(h, 1);
}

int nbd_can_zero(struct nbd_handle *h)
{
	return (int)known(h, 1);
}

int nbd_can_multi_conn(struct nbd_handle *h)
{
	return (int)known(h, 1);
}

int nbd_can_meta_context(struct nbd_handle *h, const char *metacontext)
{
	return (int)known(h, h->context && strcmp(h->context, metacontext) == 0);
}
