/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory maps between processes: export, import, passing on; what rights allow, and what the end of a process does. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "memory.h"
#include "share_wire.h"
#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define IS(error, call) TEST_ASSERT_EQUAL_INT(DOCA_ERROR_##error, (call))
#define LENGTH 10000
#define SHIFT 123
#define DEADLINE_MS 10000

static char dir[64];
static struct doca_devinfo **list;
static struct doca_dev *dev;

void setUp(void) {}
void tearDown(void) {}

static void open_device(void)
{
	uint32_t n;

	OK(doca_devinfo_create_list(&list, &n));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_devinfo_destroy_list(list));
}

/* Wait until something is so; nobody tells us. */
static bool soon(bool (*is_so)(void *arg), void *arg)
{
	for (int ms = 0; ms < DEADLINE_MS; ms++) {
		if (is_so(arg))
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}

/* -- an exporter: a process that makes a map, writes its descriptor to a pipe, and then sits in read() -- */

struct exporter {
	pid_t pid;
	int to, from; /* pipes */
	char desc[GD_BLOB_MAX] __attribute__((aligned(8)));
	size_t len;
};

struct told {
	char desc[GD_BLOB_MAX];
	size_t len;
};

struct question {
	int what, at;
};

static char of_the_program[64 * 1024];

static char *volatile allocated; /* so that it is not lost */

static char *memory_of(char kind)
{
	if (kind == 'd')
		return of_the_program + SHIFT;
	allocated = malloc(LENGTH + SHIFT);
	return allocated + SHIFT;
}

static struct doca_mmap *make_map(char *memory, uint32_t access)
{
	struct doca_mmap *map;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, access));
	OK(doca_mmap_set_memrange(map, memory, LENGTH));
	OK(doca_mmap_start(map));
	return map;
}

/* Blocks in read(); answers what byte it sees where, and stops the map when told to. */
static void serve(int from, int to, const char *memory, struct doca_mmap *map)
{
	struct question ask;
	char byte;

	while (read(from, &ask, sizeof(ask)) == sizeof(ask)) {
		byte = memory[ask.at];
		if (ask.what == 's')
			OK(doca_mmap_stop(map));
		if (ask.what == 'q')
			break;
		if (write(to, &byte, 1) != 1)
			break;
	}
	exit(0);
}

static void export_and_serve(int from, int to, char kind, uint32_t access, bool rdma)
{
	char *memory = memory_of(kind);
	struct doca_mmap *map;
	struct told told = {.len = 0};
	const void *desc;

	open_device();
	memset(memory, 'a', LENGTH);
	map = make_map(memory, access);
	OK(rdma ? doca_mmap_export_rdma(map, dev, &desc, &told.len) : doca_mmap_export_pci(map, dev, &desc, &told.len));
	memcpy(told.desc, desc, told.len);
	if (write(to, &told, sizeof(told)) == sizeof(told))
		serve(from, to, memory, map);
	_exit(1);
}

static void start_exporter(struct exporter *e, char kind, uint32_t access, bool rdma)
{
	int to[2], from[2];
	struct told told;

	TEST_ASSERT_EQUAL_INT(0, pipe(to) | pipe(from));
	e->pid = fork();
	if (e->pid == 0) {
		close(to[1]);
		close(from[0]);
		if (TEST_PROTECT())
			export_and_serve(to[0], from[1], kind, access, rdma);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	e->to = to[1];
	e->from = from[0];
	TEST_ASSERT_EQUAL_INT(sizeof(told), read(e->from, &told, sizeof(told)));
	e->len = told.len;
	memcpy(e->desc, told.desc, told.len);
}

static int ask(struct exporter *e, int what, int at)
{
	struct question message = {what, at};
	char byte;

	if (write(e->to, &message, sizeof(message)) != sizeof(message) || read(e->from, &byte, 1) != 1)
		return -1;
	return byte;
}

static void end_exporter(struct exporter *e)
{
	struct question message = {'q', 0};
	int status;

	TEST_ASSERT_EQUAL_INT(sizeof(message), write(e->to, &message, sizeof(message)));
	TEST_ASSERT_EQUAL_INT(e->pid, waitpid(e->pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(e->to);
	close(e->from);
}

/* Run something in a process that has used nothing of the library yet. */
static void in_process(void (*fn)(struct exporter *e), struct exporter *e)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (TEST_PROTECT()) {
			open_device();
			fn(e);
			exit(0);
		}
		fflush(NULL);
		_exit(1);
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status), "an importer was killed by a signal");
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
}

static struct doca_mmap *import(struct exporter *e)
{
	struct doca_mmap *map;

	OK(doca_mmap_create_from_export(NULL, e->desc, e->len, dev, &map));
	return map;
}

/* -- tests -- */

static void read_and_write(struct exporter *e)
{
	union doca_data data = {.u64 = 5}, got;
	struct doca_mmap *map;
	uint8_t imported;
	size_t len;
	void *addr;

	OK(doca_mmap_create_from_export(&data, e->desc, e->len, dev, &map));
	OK(doca_mmap_get_user_data(map, &got));
	TEST_ASSERT_EQUAL_UINT64(5, got.u64);
	OK(doca_mmap_get_from_export(map, &imported));
	TEST_ASSERT_EQUAL_UINT8(1, imported);
	/* the range is that of the exporter, not of this process */
	OK(doca_mmap_get_memrange(map, &addr, &len));
	TEST_ASSERT_EQUAL_UINT64(LENGTH, len);
	TEST_ASSERT_TRUE(addr == map->addr && map->local != NULL && map->local != addr);
	for (size_t i = 0; i < LENGTH; i++)
		TEST_ASSERT_TRUE(((char *)map->local)[i] == 'a');
	((char *)map->local)[0] = 'b';
	((char *)map->local)[LENGTH - 1] = 'c';
	TEST_ASSERT_EQUAL_INT('b', ask(e, 'r', 0));
	TEST_ASSERT_EQUAL_INT('c', ask(e, 'r', LENGTH - 1));
	TEST_ASSERT_EQUAL_INT('a', ask(e, 'r', 1));
	IS(NOT_PERMITTED, doca_mmap_set_memrange(map, e->desc, 5));
	IS(NOT_PERMITTED, doca_mmap_start(map));
	IS(NOT_PERMITTED, doca_mmap_add_dev(map, dev));
	/* MUST: a program switches it on for imported maps */
	OK(doca_mmap_enable_thread_safety(map));
	/* MUST: programs take an error of stop for a failure, also of an imported map */
	OK(doca_mmap_stop(map));
	OK(doca_mmap_destroy(map));
}

/* the exporter sits in read() all the time: nobody of its program helps */
static void an_importer_reads_and_writes_the_memory_of_a_blocked_process(void)
{
	const char kinds[] = {'h', 'd'};
	struct exporter e;

	for (int i = 0; i < 2; i++) {
		start_exporter(&e, kinds[i], DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
		in_process(read_and_write, &e);
		end_exporter(&e);
	}
	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE, true);
	in_process(read_and_write, &e);
	end_exporter(&e);
}

static void try_to_write(struct exporter *e)
{
	struct doca_mmap *map = import(e);
	uintptr_t page = (uintptr_t)map->local & ~4095ul;
	struct gantry_region region;
	char byte = 1;
	pid_t pid;
	int status;

	TEST_ASSERT_EQUAL_INT('a', *(char *)map->local);
	OK(gd_mmap_region(map, 0, &region));
	TEST_ASSERT_EQUAL_UINT32(GANTRY_REMOTE_READ, region.rights);
	TEST_ASSERT_EQUAL_INT(-1, pwrite(region.fd, &byte, 1, (off_t)region.fd_offset));
	TEST_ASSERT_EQUAL_INT(-1, mprotect((void *)page, 4096, PROT_READ | PROT_WRITE));
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		*(volatile char *)map->local = 1;
		_exit(0);
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	OK(doca_mmap_destroy(map));
}

static void what_is_read_only_cannot_be_written(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_ONLY, false);
	in_process(try_to_write, &e);
	TEST_ASSERT_EQUAL_INT('a', ask(&e, 'r', 0));
	end_exporter(&e);
}

static bool is_gone(void *map)
{
	return gd_mmap_check(map) == DOCA_ERROR_IO_FAILED;
}

static void kill_the_owner(struct exporter *e)
{
	struct doca_mmap *map = import(e), *again;
	struct gantry_region region;

	OK(gd_mmap_check(map));
	kill(e->pid, SIGKILL);
	TEST_ASSERT_TRUE(soon(is_gone, map));
	IS(IO_FAILED, gd_mmap_region(map, 0, &region));
	/* its memory is still there: no SIGBUS */
	TEST_ASSERT_EQUAL_INT('a', *(char *)map->local);
	((char *)map->local)[LENGTH - 1] = 'x';
	IS(DRIVER, doca_mmap_create_from_export(NULL, e->desc, e->len, dev, &again));
	OK(doca_mmap_destroy(map));
}

static void an_importer_is_told_of_the_death_of_the_owner(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	in_process(kill_the_owner, &e);
	TEST_ASSERT_EQUAL_INT(e.pid, waitpid(e.pid, NULL, 0));
	close(e.to);
	close(e.from);
}

static void stop_the_owner(struct exporter *e)
{
	struct doca_mmap *map = import(e), *again;

	OK(gd_mmap_check(map));
	TEST_ASSERT_EQUAL_INT('a', ask(e, 's', 0));
	TEST_ASSERT_TRUE(soon(is_gone, map));
	IS(NOT_PERMITTED, doca_mmap_create_from_export(NULL, e->desc, e->len, dev, &again));
	OK(doca_mmap_destroy(map));
}

static void an_importer_is_told_that_the_owner_has_stopped_the_map(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	in_process(stop_the_owner, &e);
	end_exporter(&e);
}

static int n_sockets(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(d)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

static void nothing_is_left_in_the_run_directory(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	TEST_ASSERT_EQUAL_INT(1, n_sockets()); /* what killed ones had left is gone */
	kill(e.pid, SIGKILL);
	waitpid(e.pid, NULL, 0);
	close(e.to);
	close(e.from);
	TEST_ASSERT_EQUAL_INT(1, n_sockets());
	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	TEST_ASSERT_EQUAL_INT(1, n_sockets());
	end_exporter(&e);
	TEST_ASSERT_EQUAL_INT(0, n_sockets());
}

/* -- three processes: the second passes on what it has imported -- */

static void third(struct exporter *e)
{
	struct doca_mmap *map = import(e);
	struct gantry_region region;

	TEST_ASSERT_EQUAL_UINT32(DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC, map->access);
	OK(gd_mmap_region(map, 0, &region));
	TEST_ASSERT_EQUAL_UINT32(GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, region.rights);
	((char *)map->local)[77] = 'z';
	TEST_ASSERT_EQUAL_INT('z', ask(e, 'r', 77));
	OK(doca_mmap_destroy(map));
}

static void second(struct exporter *e)
{
	struct doca_mmap *map = import(e);
	struct gd_mmap_id id = map->id;
	struct exporter passed = *e;
	const void *desc;

	TEST_ASSERT_NULL(gd_mmap_find(&id));
	IS(NOT_PERMITTED, doca_mmap_export_pci(map, dev, &desc, &passed.len));
	OK(doca_mmap_export_rdma(map, dev, &desc, &passed.len));
	TEST_ASSERT_EQUAL_PTR(map, gd_mmap_find(&id));
	memcpy(passed.desc, desc, passed.len);
	in_process(third, &passed);
	OK(doca_mmap_stop(map));
	TEST_ASSERT_NULL(gd_mmap_find(&id));
	OK(doca_mmap_destroy(map));
}

/* MUST: a program passes the memory that it has by PCI on by RDMA; the third has it from the first */
static void what_is_passed_on_comes_from_its_owner(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	in_process(second, &e);
	end_exporter(&e);
}

static void second_read_only(struct exporter *e)
{
	struct doca_mmap *map = import(e), *self;
	const void *desc;
	size_t len;

	OK(doca_mmap_export_rdma(map, dev, &desc, &len));
	OK(doca_mmap_create_from_export(NULL, desc, len, dev, &self));
	TEST_ASSERT_EQUAL_UINT32(DOCA_ACCESS_FLAG_RDMA_READ, self->access);
	OK(doca_mmap_destroy(self));
	OK(doca_mmap_destroy(map));
}

static void passing_on_adds_no_rights(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_ONLY, false);
	in_process(second_read_only, &e);
	end_exporter(&e);
}

/* -- descriptors that are not what an owner gave -- */

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
	int conn, memfd;
	char byte;

	for (size_t i = 0; i < sizeof(good); i++) {
		if (i >= offsetof(struct gd_share_ask, access) && i < offsetof(struct gd_share_ask, zero))
			continue; /* who wants more gets what there is */
		bad = good;
		((char *)&bad)[i] ^= 0x41;
		TEST_ASSERT_TRUE(gd_wire_ask(blob, &bad, &reply, &conn, &memfd) != DOCA_SUCCESS);
		if (conn >= 0)
			close(conn);
		TEST_ASSERT_EQUAL_INT(-1, memfd);
	}
	OK(gd_wire_ask(blob, &good, &reply, &conn, &memfd));
	close(memfd);
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

/* -- fork in between -- */

/* A child of the owner that lives on does not hide the owner's death; and what it writes is its own. */
static void owner_with_a_child(struct exporter *e)
{
	char *memory = memory_of('h');
	struct doca_mmap *map = make_map(memory, DOCA_ACCESS_FLAG_PCI_READ_WRITE), *mine;
	struct exporter self;
	const void *desc;
	int held[2], status = -1;
	pid_t pid;

	(void)e;
	memset(memory, 'a', LENGTH);
	OK(doca_mmap_export_pci(map, dev, &desc, &self.len));
	memcpy(self.desc, desc, self.len);
	mine = import(&self); /* an owner may import from itself, too */
	TEST_ASSERT_EQUAL_INT(0, pipe(held));
	pid = fork();
	if (pid == 0) {
		char byte;

		memory[5] = 'c';
		if (gd_mmap_check(mine) != DOCA_ERROR_IO_FAILED || doca_mmap_stop(mine) != DOCA_SUCCESS ||
		    doca_mmap_destroy(mine) != DOCA_SUCCESS || doca_mmap_destroy(map) != DOCA_SUCCESS)
			_exit(1);
		close(held[1]);
		_exit(read(held[0], &byte, 1) == 0 ? 0 : 2);
	}
	((char *)mine->local)[6] = 'd';
	TEST_ASSERT_TRUE(memory[5] == 'a' && memory[6] == 'd');
	OK(gd_mmap_check(mine));
	OK(doca_mmap_stop(map));
	TEST_ASSERT_TRUE(soon(is_gone, mine)); /* though the child lives */
	close(held[1]);
	close(held[0]);
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
	OK(doca_mmap_destroy(mine));
	OK(doca_mmap_destroy(map));
	free(memory - SHIFT);
}

static void a_child_of_the_owner_does_not_stand_for_it(void)
{
	struct exporter none = {.pid = 0};

	in_process(owner_with_a_child, &none);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int main(void)
{
	int rc;

	snprintf(dir, sizeof(dir), "/tmp/gantry-share.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return 1;
	setenv("GANTRY_RUNDIR", dir, 1);
	signal(SIGPIPE, SIG_IGN);
	UNITY_BEGIN();
	RUN_TEST(an_importer_reads_and_writes_the_memory_of_a_blocked_process);
	RUN_TEST(what_is_read_only_cannot_be_written);
	RUN_TEST(an_importer_is_told_of_the_death_of_the_owner);
	RUN_TEST(an_importer_is_told_that_the_owner_has_stopped_the_map);
	RUN_TEST(nothing_is_left_in_the_run_directory);
	RUN_TEST(what_is_passed_on_comes_from_its_owner);
	RUN_TEST(passing_on_adds_no_rights);
	RUN_TEST(a_descriptor_that_is_damaged_or_forged_is_an_error);
	RUN_TEST(an_importer_that_misbehaves_is_dropped);
	RUN_TEST(a_child_of_the_owner_does_not_stand_for_it);
	rc = UNITY_END();
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return rc;
}
