/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Export descriptors that the owner did not create, and importers that violate the protocol.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "exporter.h"
#include "mmap/mmap_share_wire.h"

#define OWNED 65536u

static void flip_bytes(struct exporter *e)
{
	struct doca_mmap *map;
	char copy[GD_BLOB_MAX];

	if (!freopen("/dev/null", "w", stderr)) /* hide the log lines of failed imports */
		exit(1);
	for (size_t i = 0; i < e->len; i++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, e->desc, e->len);
			copy[i] = (char)(copy[i] ^ 1 << bit);
			if (doca_mmap_create_from_export(NULL, copy, e->len, dev, &map) !=
			    DOCA_SUCCESS)
				continue;
			TEST_FAIL_MESSAGE("a damaged descriptor was taken");
		}
	for (size_t len = 0; len < e->len; len++)
		IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, e->desc, len, dev, &map));
	IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, e->desc, e->len + 1, dev, &map));
}

/* A well-formed blob that the owner did not make, from an attacker who knows the format. */
static doca_error_t forge(const struct gd_blob *from, void (*change)(struct gd_blob *blob))
{
	struct gd_blob blob = *from;
	struct doca_mmap *map;
	doca_error_t result;

	change(&blob);
	gd_blob_seal(&blob);
	result = doca_mmap_create_from_export(NULL, &blob, sizeof(blob), dev, &map);
	if (result == DOCA_SUCCESS)
		OK(doca_mmap_destroy(map));
	return result;
}

static void wrong_id(struct gd_blob *blob)
{
	blob->id.bytes[15] ^= 1;
}
static void wrong_addr(struct gd_blob *blob)
{
	blob->addr += 4096;
}
static void longer(struct gd_blob *blob)
{
	blob->length += 4096;
}
static void more_rights(struct gd_blob *blob)
{
	blob->access = DOCA_ACCESS_FLAG_PCI_READ_WRITE;
}
static void wrong_flags(struct gd_blob *blob)
{
	blob->access = DOCA_ACCESS_FLAG_RDMA_WRITE;
}
static void by_rdma(struct gd_blob *blob)
{
	blob->kind = GD_BLOB_RDMA;
	blob->access = DOCA_ACCESS_FLAG_RDMA_WRITE;
}
static void wrong_path(struct gd_blob *blob)
{
	blob->path[1] = '/';
}
static void endless_path(struct gd_blob *blob)
{
	memset(blob->path, '/', sizeof(blob->path));
}
static void another_host(struct gd_blob *blob)
{
	blob->host++;
}
static void nothing(struct gd_blob *blob)
{
	(void)blob;
}

static void forge_all(struct exporter *e)
{
	const struct gd_blob *from = (const struct gd_blob *)e->desc;

	IS(NOT_PERMITTED, forge(from, wrong_id));
	IS(NOT_PERMITTED, forge(from, wrong_addr));
	IS(NOT_PERMITTED, forge(from, longer));
	IS(NOT_PERMITTED, forge(from, more_rights));
	IS(INVALID_VALUE, forge(from, wrong_flags));
	IS(NOT_PERMITTED, forge(from, by_rdma));
	IS(DRIVER, forge(from, wrong_path));
	IS(INVALID_VALUE, forge(from, endless_path));
	IS(NOT_SUPPORTED, forge(from, another_host));
	OK(forge(from, nothing));
}

static void a_descriptor_that_is_damaged_or_forged_is_an_error(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_ONLY, false);
	TEST_ASSERT_TRUE(e.len <= 300);
	in_process(flip_bytes, &e);
	in_process(forge_all, &e);
	end_exporter(&e);
}

/* -- an importer that violates the protocol -- */

static void attack(struct exporter *e)
{
	const struct gd_blob *blob = (const struct gd_blob *)e->desc;
	struct gd_share_ask good = {.magic = GD_SHARE_MAGIC,
				    .kind = blob->kind,
				    .access = blob->access,
				    .id = blob->id},
			    bad;
	struct gd_share_reply reply;
	int conn, memfds[GD_RUNS];
	char byte;

	for (size_t i = 0; i < sizeof(good); i++) {
		if (i >= offsetof(struct gd_share_ask, access) &&
		    i < offsetof(struct gd_share_ask, zero))
			continue; /* a request for more access gets the granted access */
		bad = good;
		((char *)&bad)[i] ^= 0x41;
		TEST_ASSERT_TRUE(gd_wire_ask(blob, &bad, &reply, &conn, memfds) != DOCA_SUCCESS);
		if (conn >= 0)
			close(conn);
		TEST_ASSERT_EQUAL_INT(-1, memfds[0]);
	}
	OK(gd_wire_ask(blob, &good, &reply, &conn, memfds));
	close(memfds[0]);
	/* the owner rejects a second request on the same connection */
	TEST_ASSERT_EQUAL_INT(sizeof(good), send(conn, &good, sizeof(good), 0));
	TEST_ASSERT_EQUAL_INT(sizeof(reply), recv(conn, &reply, sizeof(reply), 0));
	TEST_ASSERT_EQUAL_INT(-EACCES, reply.status);
	TEST_ASSERT_EQUAL_INT(3, send(conn, "abc", 3, 0));
	TEST_ASSERT_EQUAL_INT(0, recv(conn, &byte, 1, 0)); /* the owner has closed the connection */
	close(conn);
	read_and_write(e);
}

static void an_importer_that_misbehaves_is_dropped(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	in_process(attack, &e);
	end_exporter(&e);
}

/* -- an owner whose memory differs from its description -- */

/*
 * The owner's memfd covers the whole address space, as usual, and has `present` bytes of pages. The
 * request of an importer must return `expected`.
 */
static void expect_of_owner(size_t present, doca_error_t expected)
{
	struct gd_share_reply reply = {.magic = GD_SHARE_MAGIC,
				       .access = DOCA_ACCESS_FLAG_PCI_READ_WRITE,
				       .n_runs = 1,
				       .addr = 1ull << 32,
				       .length = OWNED};
	struct gd_blob blob = {.addr = 1ull << 32,
			       .length = OWNED,
			       .access = DOCA_ACCESS_FLAG_PCI_READ_WRITE,
			       .kind = GD_BLOB_PCI};
	struct gd_share_ask ask = {.magic = GD_SHARE_MAGIC,
				   .kind = GD_BLOB_PCI,
				   .access = DOCA_ACCESS_FLAG_PCI_READ_WRITE};
	struct gd_run run = {.fd = gantry_memfd_create("owner", 1ull << 48, 0),
			     .from = 1ull << 32,
			     .to = (1ull << 32) + OWNED};
	struct gd_listener listener = {.fd = -1};
	int conn, memfds[GD_RUNS], status;
	pid_t pid;

	TEST_ASSERT_EQUAL_INT(0, fallocate(run.fd, 0, (off_t)run.from, (off_t)present));
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(run.fd, 0));
	reply.runs[0].from = run.from;
	reply.runs[0].to = run.to;
	OK(gd_listener_open(&listener));
	strcpy(blob.path, listener.path);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct pollfd p = {.fd = listener.fd, .events = POLLIN};
		int peer = poll(&p, 1, -1) == 1 ? gd_listener_accept(&listener) : -1;

		/*
		 * read the request: closing a socket with unread bytes resets the connection, and
		 * the reply would be lost
		 */
		p.fd = peer;
		if (peer < 0 || poll(&p, 1, -1) != 1 || gd_wire_read_ask(peer, &ask) != 0)
			_exit(1);
		gd_wire_reply(peer, &reply, &run);
		_exit(0);
	}
	TEST_ASSERT_EQUAL_INT(expected, gd_wire_ask(&blob, &ask, &reply, &conn, memfds));
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	close(conn);
	close(memfds[0]);
	close(run.fd);
	gd_listener_close(&listener);
}

static void an_owner_that_gives_memory_with_holes(struct exporter *e)
{
	char text[512] = "";
	int log = memfd_create("log", MFD_CLOEXEC), err = dup(STDERR_FILENO);

	(void)e;
	dup2(log, STDERR_FILENO);
	expect_of_owner(OWNED - 4096, DOCA_ERROR_NOT_PERMITTED);
	dup2(err, STDERR_FILENO);
	TEST_ASSERT_TRUE(pread(log, text, sizeof(text) - 1, 0) > 0);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(text, "the memory has holes (present=61440, bytes=65536)"), text);
	expect_of_owner(OWNED, DOCA_SUCCESS);
	close(log);
	close(err);
}

static void memory_with_holes_is_not_imported(void)
{
	in_process(an_owner_that_gives_memory_with_holes, NULL);
}

int main(void)
{
	begin_rig();
	UNITY_BEGIN();
	RUN_TEST(a_descriptor_that_is_damaged_or_forged_is_an_error);
	RUN_TEST(an_importer_that_misbehaves_is_dropped);
	RUN_TEST(memory_with_holes_is_not_imported);
	return end_rig(UNITY_END());
}
