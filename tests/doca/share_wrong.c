/* SPDX-License-Identifier: BSD-3-Clause */
/* Export descriptors that are not what an owner gave, and importers that do not keep to the protocol. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter.h"
#include "mmap/share_wire.h"

void setUp(void) {}
void tearDown(void) {}

static void flip_bytes(struct exporter *e)
{
	struct doca_mmap *map;
	char copy[GD_BLOB_MAX];

	if (freopen("/dev/null", "w", stderr) == NULL) /* a line of the log for each */
		exit(1);
	for (size_t i = 0; i < e->len; i++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, e->desc, e->len);
			copy[i] = (char)(copy[i] ^ 1 << bit);
			if (doca_mmap_create_from_export(NULL, copy, e->len, dev, &map) != DOCA_SUCCESS)
				continue;
			TEST_FAIL_MESSAGE("a damaged descriptor was taken");
		}
	for (size_t len = 0; len < e->len; len++)
		IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, e->desc, len, dev, &map));
	IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, e->desc, e->len + 1, dev, &map));
}

/* One that is whole, and still not what the owner gave: by somebody who knows how they are made. */
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

static void wrong_id(struct gd_blob *blob) { blob->id.bytes[15] ^= 1; }
static void wrong_addr(struct gd_blob *blob) { blob->addr += 4096; }
static void longer(struct gd_blob *blob) { blob->length += 4096; }
static void more_rights(struct gd_blob *blob) { blob->access = DOCA_ACCESS_FLAG_PCI_READ_WRITE; }
static void wrong_flags(struct gd_blob *blob) { blob->access = DOCA_ACCESS_FLAG_RDMA_WRITE; }
static void by_rdma(struct gd_blob *blob)
{
	blob->kind = GD_BLOB_RDMA;
	blob->access = DOCA_ACCESS_FLAG_RDMA_WRITE;
}
static void wrong_path(struct gd_blob *blob) { blob->path[1] = '/'; }
static void endless_path(struct gd_blob *blob) { memset(blob->path, '/', sizeof(blob->path)); }
static void another_host(struct gd_blob *blob) { blob->host++; }
static void nothing(struct gd_blob *blob) { (void)blob; }

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

/* -- an importer that does not keep to the protocol -- */

static void attack(struct exporter *e)
{
	const struct gd_blob *blob = (const struct gd_blob *)e->desc;
	struct gd_share_ask good = {.magic = GD_SHARE_MAGIC, .kind = blob->kind, .access = blob->access, .id = blob->id}, bad;
	struct gd_share_reply reply;
	int conn, memfds[GD_RUNS];
	char byte;

	for (size_t i = 0; i < sizeof(good); i++) {
		if (i >= offsetof(struct gd_share_ask, access) && i < offsetof(struct gd_share_ask, zero))
			continue; /* who wants more gets what there is */
		bad = good;
		((char *)&bad)[i] ^= 0x41;
		TEST_ASSERT_TRUE(gd_wire_ask(blob, &bad, &reply, &conn, memfds) != DOCA_SUCCESS);
		if (conn >= 0)
			close(conn);
		TEST_ASSERT_EQUAL_INT(-1, memfds[0]);
	}
	OK(gd_wire_ask(blob, &good, &reply, &conn, memfds));
	close(memfds[0]);
	/* once is enough */
	TEST_ASSERT_EQUAL_INT(sizeof(good), send(conn, &good, sizeof(good), 0));
	TEST_ASSERT_EQUAL_INT(sizeof(reply), recv(conn, &reply, sizeof(reply), 0));
	TEST_ASSERT_EQUAL_INT(-EACCES, reply.status);
	TEST_ASSERT_EQUAL_INT(3, send(conn, "abc", 3, 0));
	TEST_ASSERT_EQUAL_INT(0, recv(conn, &byte, 1, 0)); /* hung up */
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

int main(void)
{
	begin_rig();
	UNITY_BEGIN();
	RUN_TEST(a_descriptor_that_is_damaged_or_forged_is_an_error);
	RUN_TEST(an_importer_that_misbehaves_is_dropped);
	return end_rig(UNITY_END());
}
