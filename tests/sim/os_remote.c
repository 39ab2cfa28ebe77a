/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_remote.c - the storage server of remote.h
 *
 * An operation is executed when its time has come and the simulator next looks at the server. So
 * no thread has to run for it, and it outlives its process.
 */
#include "remote.h"

#include <fcntl.h>
#include <string.h>

#include "disk.h"
#include "image.h"

/* SIM_RBD: the longest time that the end of its client adds to an operation */
#define LATE_MOST_NS 1000000000u
#define CLIENTS 256u /* connections of a run */

struct connection;

struct operation {
	struct operation *next; /* by due_ns */
	uint64_t number, due_ns, offset;
	size_t bytes;
	uint8_t *data;                 /* of a write, and of a read from its execution on */
	struct connection *connection; /* NULL: it has ended, or the operation is forgotten */
	uint32_t client;
	enum sim_remote_op op;
	bool fua;
	uint64_t covers; /* a flush covers the changes of its store up to this number */
	int result;
	bool fenced; /* fails when it is executed */
	struct iovec piece[SIM_REMOTE_PIECES];
	int n_pieces;
};

struct connection {
	struct sim_file file;
	struct connection *next; /* list of all connections */
	struct sim_inode *inode;
	struct operation *done; /* oldest first */
	uint64_t size;          /* that the client knows */
	uint32_t client;
	bool lost;
	bool greeted; /* the client has taken the greeting */
};

static struct sim_remote_faults faults;
static struct operation *pending;
static struct connection *connections;
static uint64_t last_number, stalled_until, refused_until, removed_until;
static uint32_t last_client, epoch;
static struct client {
	struct sim_inode *inode;
	uint32_t epoch;     /* of the map that the client knows */
	uint32_t fenced_at; /* epoch of the map that fences the client; 0: none does */
} clients[CLIENTS];
static uint32_t owners[2]; /* of the lock, by the volumes in `locks` */
static struct sim_inode *locks[2];
static uint32_t stalled_part; /* SIM_REMOTE_PARTS: all */

static bool one_in(uint32_t n)
{
	return n != 0 && sim_draw(n) == 0;
}

/* -- operations -- */

static void free_operation(struct operation *op)
{
	sim_host_free(op->data);
	sim_host_free(op);
}

static void insert(struct operation *op)
{
	struct operation **at = &pending;

	while (*at && (*at)->due_ns <= op->due_ns)
		at = &(*at)->next;
	op->next = *at;
	*at = op;
	sim_wake_at(op->due_ns);
}

/* Set the time of each pending operation to the result of `choose`; SIM_NEVER drops it. */
static void reschedule(uint64_t (*choose)(const struct operation *op, const void *arg),
		       const void *arg)
{
	struct operation *op = pending, *next;

	pending = NULL;
	for (; op; op = next) {
		next = op->next;
		op->due_ns = choose(op, arg);
		if (op->due_ns == SIM_NEVER)
			free_operation(op);
		else
			insert(op);
	}
}

static uint64_t duration(void)
{
	const uint64_t least = faults.slowest_ns / 16;

	return least + sim_draw64() % (faults.slowest_ns - least + 1);
}

static bool has_stalled(const struct operation *op)
{
	if (stalled_part == SIM_REMOTE_PARTS)
		return true;
	for (uint64_t at = op->offset; at < op->offset + op->bytes; at += SIM_BLOCK)
		if (at / SIM_BLOCK % SIM_REMOTE_PARTS == stalled_part)
			return true;
	return false;
}

static uint64_t after_stall(const struct operation *op, const void *none)
{
	(void)none;
	if (faults.kind == SIM_NBD && !op->connection)
		return op->due_ns;
	return op->due_ns < stalled_until && has_stalled(op)
		       ? stalled_until + sim_draw64() % (faults.slowest_ns + 1)
		       : op->due_ns;
}

/* The time of an operation whose connection has ended. */
static uint64_t late(const struct operation *op, const void *connection)
{
	if (op->connection != connection)
		return op->due_ns;
	if (faults.kind == SIM_RBD)
		return op->due_ns + (sim_draw(2) == 0 ? sim_draw(LATE_MOST_NS) : 0);
	return sim_draw(2) == 0 ? SIM_NEVER : sim_now() + sim_draw(SIM_REMOTE_LATE_NS);
}

/* The connection has ended: its operations are executed late or never, without an event. */
static void leave(struct connection *c)
{
	struct operation *op;

	reschedule(late, c);
	for (op = pending; op; op = op->next)
		if (op->connection == c)
			op->connection = NULL;
	while (c->done) {
		op = c->done;
		c->done = op->next;
		free_operation(op);
	}
}

static void lose(struct connection *c)
{
	if (c->lost)
		return;
	c->lost = true;
	leave(c);
	sim_file_changed(&c->file);
}

static bool overlap(const struct operation *a, const struct operation *b)
{
	return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* The server executes `by`, so it has the map that the client of `by` knows. */
static void apply_fences(const struct operation *by)
{
	for (struct operation *op = pending; op; op = op->next) {
		uint32_t fenced_at = clients[op->client].fenced_at;

		if (fenced_at != 0 && clients[by->client].epoch >= fenced_at && overlap(op, by) &&
		    clients[op->client].inode == clients[by->client].inode)
			op->fenced = true;
	}
}

static void change(struct sim_inode *inode, const struct operation *op)
{
	struct sim_cover cover = {.first_number = inode->n_changes + 1, .to = UINT64_MAX};

	if (op->op == SIM_REMOTE_WRITE)
		sim_inode_write(inode, op->offset, op->data, op->bytes);
	else if (op->op == SIM_REMOTE_ZERO)
		sim_inode_zero(inode, op->offset, op->bytes);
	else
		sim_inode_punch(inode, op->offset, op->bytes);
	cover.last_number = inode->n_changes;
	if (faults.kind == SIM_RBD || op->fua)
		sim_inode_sync(inode, &cover, false);
}

static void flush(struct sim_inode *inode, const struct operation *op)
{
	const struct sim_cover cover = {.last_number = op->covers, .to = UINT64_MAX};

	sim_inode_sync(inode, &cover, false);
}

static bool changes_store(enum sim_remote_op op)
{
	return op == SIM_REMOTE_WRITE || op == SIM_REMOTE_ZERO || op == SIM_REMOTE_DISCARD;
}

static int execute(struct operation *op)
{
	struct sim_inode *inode = clients[op->client].inode;
	uint64_t size = inode->layers[SIM_SEEN].size;
	bool fails;

	if (op->fenced)
		return -ESHUTDOWN;
	if (removed_until > sim_now())
		return -ENOENT;
	apply_fences(op);
	if (op->offset + op->bytes > size)
		return -EINVAL;
	/* an operation that fails can have an effect */
	fails = one_in(faults.fails_one_in);
	if (changes_store(op->op) && (!fails || sim_draw(2) == 0))
		change(inode, op);
	if (fails)
		return -EIO;
	if (op->op == SIM_REMOTE_FLUSH)
		flush(inode, op);
	if (op->op != SIM_REMOTE_READ)
		return 0;
	op->data = sim_host_alloc(op->bytes);
	sim_inode_read(inode, op->offset, op->data, op->bytes);
	return one_in(faults.short_one_in) ? SIM_REMOTE_SHORT : 0;
}

/* Pass the reply to the connection. */
static void reply(struct operation *op)
{
	struct connection *c = op->connection;
	struct operation **at;

	if (!c || one_in(faults.silent_one_in)) {
		free_operation(op);
		return;
	}
	if (one_in(faults.garbled_one_in)) {
		free_operation(op);
		lose(c);
		return;
	}
	op->next = NULL;
	for (at = &c->done; *at; at = &(*at)->next)
		;
	*at = op;
	sim_file_changed(&c->file);
}

void sim_remote_settle(void)
{
	while (pending && pending->due_ns <= sim_now()) {
		struct operation *op = pending;

		pending = op->next;
		op->result = execute(op);
		reply(op);
	}
}

/* -- connections -- */

static uint32_t connection_poll(struct sim_file *file)
{
	const struct connection *c = (const struct connection *)file;

	sim_remote_settle();
	if (c->lost)
		return POLLIN | POLLOUT | POLLHUP;
	if (c->done || (faults.kind == SIM_RBD && c->size != c->inode->layers[SIM_SEEN].size))
		return POLLIN | POLLOUT;
	if (faults.kind == SIM_NBD && !c->greeted) {
		if (stalled_until <= sim_now())
			return POLLIN | POLLOUT;
		sim_wake_at(stalled_until);
		return POLLOUT;
	}
	if (pending)
		sim_wake_at(pending->due_ns);
	return POLLOUT;
}

static uint32_t *owner_of(const struct sim_inode *inode)
{
	for (unsigned i = 0; i < 2; i++)
		if (locks[i] == inode)
			return &owners[i];
	for (unsigned i = 0; i < 2; i++)
		if (!locks[i]) {
			locks[i] = (struct sim_inode *)(uintptr_t)inode;
			return &owners[i];
		}
	sim_fail("more than two remote volumes");
}

static void connection_close(struct sim_file *file)
{
	struct connection *c = (struct connection *)file, **at = &connections;

	sim_remote_settle();
	leave(c);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
}

static const struct sim_file_ops connection_ops = {
	.kind = "remote", .poll = connection_poll, .close = connection_close};

static struct connection *find(int fd)
{
	struct sim_file *file;

	sim_call();
	sim_remote_settle();
	file = sim_fd_file(fd);
	if (!file || file->ops != &connection_ops)
		sim_fail("descriptor %d is no connection to a storage server", fd);
	return (struct connection *)file;
}

int sim_remote_connect(const char *path)
{
	struct sim_inode *inode;
	struct connection *c;
	int rc;

	sim_call();
	if (faults.kind == SIM_RBD && stalled_until > sim_now() && stalled_part == SIM_REMOTE_PARTS)
		sim_block(NULL, NULL, stalled_until);
	rc = sim_path_find_inode(AT_FDCWD, path, true, &inode);
	if (refused_until > sim_now())
		rc = -ECONNREFUSED;
	else if (removed_until > sim_now())
		rc = -ENOENT;
	if (rc != 0)
		return (int)sim_done(rc, 201);
	if (last_client + 1 == CLIENTS)
		sim_fail("more than %u connections to a storage server", CLIENTS);
	c = sim_file_new(&connection_ops, sizeof(*c), O_RDWR);
	c->inode = inode;
	c->size = inode->layers[SIM_SEEN].size;
	c->client = ++last_client;
	c->next = connections;
	connections = c;
	clients[c->client] = (struct client){.inode = inode, .epoch = epoch};
	return (int)sim_done(sim_fd_new(&c->file, true), 202);
}

static void set_due(struct operation *op)
{
	op->due_ns = sim_now() + duration();
	op->due_ns = after_stall(op, NULL);
	if (op->op != SIM_REMOTE_FLUSH || faults.kind != SIM_RBD)
		return;
	/* librbd flushes after the writes in flight */
	for (const struct operation *other = pending; other; other = other->next)
		if (other->connection == op->connection && other->due_ns > op->due_ns)
			op->due_ns = other->due_ns;
}

static void copy_data(struct operation *op)
{
	size_t at = 0;

	op->data = sim_host_alloc(op->bytes);
	for (int i = 0; i < op->n_pieces; i++) {
		memcpy(op->data + at, op->piece[i].iov_base, op->piece[i].iov_len);
		at += op->piece[i].iov_len;
	}
}

uint64_t sim_remote_submit(int fd, const struct sim_remote_request *r)
{
	struct connection *c = find(fd);
	struct operation *op = sim_host_alloc(sizeof(*op));

	*op = (struct operation){.number = ++last_number,
				 .offset = r->offset,
				 .bytes = r->bytes,
				 .connection = c->lost ? NULL : c,
				 .client = c->client,
				 .op = r->op,
				 .fua = r->fua,
				 .covers = c->inode->n_changes,
				 .fenced = clients[c->client].fenced_at != 0,
				 .n_pieces = r->n};
	if (r->n > SIM_REMOTE_PIECES)
		sim_fail("an operation of %d pieces", r->n);
	memcpy(op->piece, r->data, (size_t)r->n * sizeof(*r->data));
	if (r->op == SIM_REMOTE_WRITE)
		copy_data(op);
	sim_note(op->number << 8 | r->op);
	if (c->lost) {
		free_operation(op);
		return last_number;
	}
	set_due(op);
	insert(op);
	return last_number;
}

void sim_remote_forget(int fd, uint64_t number)
{
	struct connection *c = find(fd);
	struct operation *op, **at;

	for (op = pending; op; op = op->next)
		if (op->number == number)
			op->connection = NULL;
	for (at = &c->done; *at && (*at)->number != number; at = &(*at)->next)
		;
	op = *at;
	if (!op)
		return;
	*at = op->next;
	free_operation(op);
}

static void store_data(const struct operation *op)
{
	size_t at = 0;

	for (int i = 0; i < op->n_pieces && op->result == 0; i++) {
		memcpy(op->piece[i].iov_base, op->data + at, op->piece[i].iov_len);
		at += op->piece[i].iov_len;
	}
}

enum sim_remote_event sim_remote_event(int fd, uint64_t *number, int *result)
{
	struct connection *c = find(fd);
	struct operation *op = c->done;

	if (c->lost)
		return SIM_REMOTE_LOST;
	if (op) {
		c->done = op->next;
		if (op->op == SIM_REMOTE_READ)
			store_data(op);
		*number = op->number;
		*result = op->result;
		sim_note(op->number << 8 | (uint8_t)-op->result);
		free_operation(op);
		return SIM_REMOTE_DONE;
	}
	if (faults.kind != SIM_RBD || c->size == c->inode->layers[SIM_SEEN].size)
		return SIM_REMOTE_NOTHING;
	c->size = c->inode->layers[SIM_SEEN].size;
	return SIM_REMOTE_RESIZED;
}

bool sim_remote_take_greeting(int fd)
{
	struct connection *c = find(fd);

	if (!c->greeted && stalled_until <= sim_now()) {
		c->greeted = true;
		sim_file_changed(&c->file);
	}
	return c->greeted;
}

int64_t sim_remote_size(int fd)
{
	const struct connection *c = find(fd);

	if (removed_until > sim_now())
		return -ENOENT;
	return (int64_t)c->inode->layers[SIM_SEEN].size;
}

bool sim_remote_is_hole(int fd, uint64_t offset, size_t bytes)
{
	struct connection *c = find(fd);
	struct operation look = {.client = c->client, .offset = offset, .bytes = bytes};
	off_t data = sim_inode_seek(c->inode, (off_t)offset, SEEK_DATA);

	apply_fences(&look);
	return data < 0 || (uint64_t)data >= offset + bytes;
}

/* -- clients, the fence, the lock -- */

uint32_t sim_remote_client(int fd)
{
	return find(fd)->client;
}

static void fence(uint32_t client)
{
	if (clients[client].fenced_at == 0)
		clients[client].fenced_at = ++epoch;
}

void sim_remote_fence(uint32_t client)
{
	sim_call();
	sim_remote_settle();
	fence(client);
}

void sim_remote_update(int fd)
{
	clients[find(fd)->client].epoch = epoch;
}

void sim_remote_unlock(int fd)
{
	const struct connection *c = find(fd);

	if (*owner_of(c->inode) == c->client && clients[c->client].fenced_at == 0)
		*owner_of(c->inode) = 0;
}

uint32_t sim_remote_lock(int fd)
{
	struct connection *c = find(fd), *other;
	uint32_t *owner = owner_of(c->inode);

	for (other = connections; other && other->client != *owner; other = other->next)
		;
	if (other && other != c && clients[*owner].fenced_at == 0)
		return *owner;
	if (*owner != 0 && *owner != c->client)
		fence(*owner);
	clients[c->client].epoch = epoch;
	*owner = c->client;
	return 0;
}

/* -- the run -- */

void sim_remote_begin(const struct sim_remote_faults *f)
{
	faults = *f;
	while (pending) {
		struct operation *op = pending;

		pending = op->next;
		free_operation(op);
	}
	last_number = stalled_until = refused_until = removed_until = 0;
	last_client = epoch = 0;
	stalled_part = SIM_REMOTE_PARTS;
	memset(clients, 0, sizeof(clients));
	if (connections)
		sim_fail("a connection to a storage server has outlived its run");
	memset(owners, 0, sizeof(owners));
	memset(locks, 0, sizeof(locks));
}

void sim_remote_repair(void)
{
	faults.fails_one_in = faults.silent_one_in = 0;
	faults.garbled_one_in = faults.short_one_in = 0;
	stalled_until = refused_until = removed_until = 0;
	if (faults.slowest_ns > SIM_REMOTE_FAST_NS)
		faults.slowest_ns = SIM_REMOTE_FAST_NS;
}

void sim_remote_stall(uint64_t ns, uint32_t part)
{
	sim_remote_settle();
	stalled_part = part;
	stalled_until = sim_now() + ns;
	reschedule(after_stall, NULL);
}

void sim_remote_kill(uint64_t ns)
{
	sim_remote_settle();
	refused_until = sim_now() + ns;
	for (struct connection *c = connections; c; c = c->next)
		lose(c);
}

static uint64_t never(const struct operation *op, const void *none)
{
	(void)op;
	(void)none;
	return SIM_NEVER;
}

void sim_remote_power_cut(uint64_t ns)
{
	sim_remote_kill(ns);
	reschedule(never, NULL);
	for (uint32_t i = 1; i <= last_client; i++)
		sim_inode_cut(clients[i].inode);
}

void sim_remote_remove(uint64_t ns)
{
	sim_remote_settle();
	removed_until = sim_now() + ns;
}
