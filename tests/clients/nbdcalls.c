/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbdcalls - make valid and invalid calls of libnbd, and print the result of the server for each.
 *
 *     nbdcalls URI [CONNECTIONS] CALL...
 *
 * CALL is OPERATION[:OFFSET[:LENGTH[:fua]]]. OPERATION is read, write, zero, trim, flush, or fast:
 * zero with LIBNBD_CMD_FLAG_FAST_ZERO. OFFSET and LENGTH are in bytes.
 *
 * libnbd's own checks are off, so that the server sees everything. All calls are made on each of
 * the connections (default 1), which are all open at the same time; each connection has all its
 * calls in flight together. Prints a line for each call: the call, and OK or the name of an errno.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libnbd.h>

#define MOST_CONNECTIONS 256
#define MOST_CALLS 64
#define PATIENCE_S 60

struct call {
	const char *text;
	char operation[8];
	uint64_t offset;
	uint64_t length;
	uint32_t flags;
	void *data;
	int64_t cookie;
	int err;
};

static int fail(const char *what)
{
	fprintf(stderr, "nbdcalls: %s: %s\n", what, nbd_get_error());
	return 2;
}

static int parse(const char *text, struct call *call)
{
	char fua[4] = "";
	unsigned long long offset = 0, length = 0;

	*call = (struct call){.text = text};
	if (sscanf(text, "%7[a-z]:%llu:%llu:%3s", call->operation, &offset, &length, fua) < 1)
		return -1;
	call->offset = offset;
	call->length = length;
	call->flags = strcmp(fua, "fua") ? 0 : LIBNBD_CMD_FLAG_FUA;
	call->data = calloc(1, length + 1);
	return call->data ? 0 : -1;
}

/* Send a call. libnbd itself rejects a few that it cannot express. */
static void begin(struct nbd_handle *nbd, struct call *call)
{
	const char *op = call->operation;

	if (!strcmp(op, "read"))
		call->cookie = nbd_aio_pread(nbd, call->data, call->length, call->offset,
					     NBD_NULL_COMPLETION, call->flags);
	else if (!strcmp(op, "write"))
		call->cookie = nbd_aio_pwrite(nbd, call->data, call->length, call->offset,
					      NBD_NULL_COMPLETION, call->flags);
	else if (!strcmp(op, "zero"))
		call->cookie = nbd_aio_zero(nbd, call->length, call->offset, NBD_NULL_COMPLETION,
					    call->flags);
	else if (!strcmp(op, "fast"))
		call->cookie = nbd_aio_zero(nbd, call->length, call->offset, NBD_NULL_COMPLETION,
					    call->flags | LIBNBD_CMD_FLAG_FAST_ZERO);
	else if (!strcmp(op, "trim"))
		call->cookie = nbd_aio_trim(nbd, call->length, call->offset, NBD_NULL_COMPLETION,
					    call->flags);
	else
		call->cookie = nbd_aio_flush(nbd, NBD_NULL_COMPLETION, 0);
	call->err = call->cookie < 0 ? nbd_get_errno() : 0;
}

/* Wait for the answer. */
static int finish(struct nbd_handle *nbd, struct call *call, time_t end)
{
	int done;

	if (call->cookie < 0)
		return 0;
	while ((done = nbd_aio_command_completed(nbd, (uint64_t)call->cookie)) == 0) {
		if (time(NULL) > end) {
			fprintf(stderr, "nbdcalls: %s: no answer\n", call->text);
			return -1;
		}
		if (nbd_poll(nbd, 1000) < 0)
			break;
	}
	if (done <= 0)
		call->err = nbd_get_errno() ? nbd_get_errno() : ENOTCONN;
	return 0;
}

static int make_calls(struct nbd_handle *nbd, struct call *calls, int n)
{
	time_t end = time(NULL) + PATIENCE_S;
	int i;

	for (i = 0; i < n; i++)
		begin(nbd, &calls[i]);
	for (i = 0; i < n; i++)
		if (finish(nbd, &calls[i], end))
			return -1;
	for (i = 0; i < n; i++)
		printf("%s %s\n", calls[i].text,
		       calls[i].err ? strerrorname_np(calls[i].err) : "OK");
	return 0;
}

int main(int argc, char **argv)
{
	static struct nbd_handle *nbd[MOST_CONNECTIONS];
	static struct call calls[MOST_CALLS];
	int i, n, first = 2, connections = 1;

	if (argc > 2 && atoi(argv[2]) > 0)
		connections = atoi(argv[first++]);
	n = argc - first;
	if (n < 1 || n > MOST_CALLS || connections > MOST_CONNECTIONS)
		return 2;
	for (i = 0; i < n; i++)
		if (parse(argv[first + i], &calls[i]))
			return 2;
	for (i = 0; i < connections; i++) {
		nbd[i] = nbd_create();
		if (!nbd[i] || nbd_set_strict_mode(nbd[i], 0) || nbd_connect_uri(nbd[i], argv[1]))
			return fail("cannot connect");
	}
	for (i = 0; i < connections; i++)
		if (make_calls(nbd[i], calls, n))
			return 1;
	for (i = 0; i < connections; i++)
		nbd_close(nbd[i]);
	for (i = 0; i < n; i++)
		free(calls[i].data);
	return 0;
}
