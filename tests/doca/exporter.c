/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporter.h"

#include <doca_buf.h>
#include <doca_buf_inventory.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_dir.h"

static struct doca_devinfo **list;
struct doca_dev *dev;

/*
 * A forked child starts threads, as programs do. The thread sanitizer permits this only with an
 * option.
 */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

void open_device(void)
{
	uint32_t n;

	OK(doca_devinfo_create_list(&list, &n));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_devinfo_destroy_list(list));
}

struct told {
	char desc[GD_BLOB_MAX];
	size_t len;
};

struct question {
	int what, at;
};

static char of_the_program[64 * 1024];

static char *volatile allocated; /* static, so that leak checkers find the block */

char *memory_of(char kind)
{
	if (kind == 'd')
		return of_the_program + SHIFT;
	allocated = malloc(LENGTH + SHIFT);
	return allocated + SHIFT;
}

struct doca_mmap *make_map(char *memory, uint32_t access)
{
	struct doca_mmap *map;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, access));
	OK(doca_mmap_set_memrange(map, memory, LENGTH));
	OK(doca_mmap_start(map));
	return map;
}

/* Blocks in read(); replies to each request with a byte of its memory, and stops the map on 's'. */
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
	OK(rdma ? doca_mmap_export_rdma(map, dev, &desc, &told.len)
		: doca_mmap_export_pci(map, dev, &desc, &told.len));
	memcpy(told.desc, desc, told.len);
	if (write(to, &told, sizeof(told)) == sizeof(told))
		serve(from, to, memory, map);
	_exit(1);
}

void start_exporter(struct exporter *e, char kind, uint32_t access, bool rdma)
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

int ask(struct exporter *e, int what, int at)
{
	struct question message = {what, at};
	char byte;

	if (write(e->to, &message, sizeof(message)) != sizeof(message) ||
	    read(e->from, &byte, 1) != 1)
		return -1;
	return byte;
}

void end_exporter(struct exporter *e)
{
	struct question message = {'q', 0};
	int status;

	TEST_ASSERT_EQUAL_INT(sizeof(message), write(e->to, &message, sizeof(message)));
	TEST_ASSERT_EQUAL_INT(e->pid, waitpid(e->pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(e->to);
	close(e->from);
}

/* Run fn in a process that has not called the library yet. */
pid_t begin_process(void (*fn)(struct exporter *e), struct exporter *e)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	if (TEST_PROTECT()) {
		open_device();
		fn(e);
		exit(0);
	}
	fflush(NULL);
	_exit(1);
}

void end_process(pid_t pid)
{
	int status = -1;

	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status), "an importer was killed by a signal");
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
}

void in_process(void (*fn)(struct exporter *e), struct exporter *e)
{
	end_process(begin_process(fn, e));
}

struct doca_mmap *import(struct exporter *e)
{
	struct doca_mmap *map;

	OK(doca_mmap_create_from_export(NULL, e->desc, e->len, dev, &map));
	return map;
}

void read_and_write(struct exporter *e)
{
	union doca_data data = {.u64 = 5}, got;
	struct doca_buf_inventory *inventory;
	struct doca_mmap *map;
	struct doca_buf *buf;
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
	TEST_ASSERT_TRUE(addr == map->addr && map->local && map->local != addr);
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
	/* MUST: a program can enable thread safety for imported maps */
	OK(doca_mmap_enable_thread_safety(map));
	/*
	 * MUST: programs create buffers with the addresses of the exporter. A thread-safe map does
	 * not count its buffers, so it can be stopped before they are released
	 */
	OK(doca_buf_inventory_create(1, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, (char *)addr + 10, len - 10, &buf));
	/* MUST: stop of an imported map returns SUCCESS; programs treat an error as a failure */
	OK(doca_mmap_stop(map));
	OK(doca_mmap_destroy(map));
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_buf_inventory_destroy(inventory));
}

void begin_rig(void)
{
	make_run_dir();
	signal(SIGPIPE, SIG_IGN);
}

int end_rig(int rc)
{
	remove_run_dir();
	return rc;
}
