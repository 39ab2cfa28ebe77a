/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory maps between processes: export, import, export of an imported map, access rights, and the
 * end of a process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mmap/mmap_blob.h"
#include "exporter.h"

#define DEADLINE_MS 10000

/* Poll until a condition holds; there is no notification for it. */
static bool soon(bool (*is_so)(void *arg), void *arg)
{
	for (int ms = 0; ms < DEADLINE_MS; ms++) {
		if (is_so(arg))
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}

/* the exporter blocks in read() all the time: its program makes no progress */
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

static void read_only_memory_cannot_be_written(void)
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
	/* the memory of the ended process stays mapped: no SIGBUS */
	TEST_ASSERT_EQUAL_INT('a', *(char *)map->local);
	((char *)map->local)[LENGTH - 1] = 'x';
	IS(DRIVER, doca_mmap_create_from_export(NULL, e->desc, e->len, dev, &again));
	OK(doca_mmap_destroy(map));
}

static void importer_detects_the_death_of_the_owner(void)
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

static void importer_detects_that_the_owner_has_stopped_the_map(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	in_process(stop_the_owner, &e);
	end_exporter(&e);
}

static int n_sockets(void)
{
	DIR *d = opendir(getenv("GANTRY_RUNDIR"));
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(d)))
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

static void nothing_is_left_in_the_run_directory(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	TEST_ASSERT_EQUAL_INT(1, n_sockets()); /* sockets of killed processes were removed */
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

/*
 * -- three processes: the second passes on what it has imported; all are forked while there is one
 * thread --
 */

/*
 * told: pipe by which the second process sends its export to the third. over: pipe whose end of
 * file notifies the second process that the third has ended.
 */
static int told[2], over[2];

static void third(struct exporter *e)
{
	struct doca_mmap *map;
	struct gantry_region region;

	TEST_ASSERT_EQUAL_INT(sizeof(*e), read(told[0], e, sizeof(*e)));
	map = import(e);
	TEST_ASSERT_EQUAL_UINT32(GD_RDMA_FLAGS, map->access);
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
	char end;

	TEST_ASSERT_NULL(gd_mmap_find(&id));
	IS(NOT_PERMITTED, doca_mmap_export_pci(map, dev, &desc, &passed.len));
	OK(doca_mmap_export_rdma(map, dev, &desc, &passed.len));
	TEST_ASSERT_EQUAL_PTR(map, gd_mmap_find(&id));
	memcpy(passed.desc, desc, passed.len);
	TEST_ASSERT_EQUAL_INT(sizeof(passed), write(told[1], &passed, sizeof(passed)));
	TEST_ASSERT_EQUAL_INT(0, read(over[0], &end, 1));
	OK(doca_mmap_stop(map));
	TEST_ASSERT_NULL(gd_mmap_find(&id));
	OK(doca_mmap_destroy(map));
}

/*
 * MUST: a program exports memory by RDMA that it has imported by PCI; the third process then
 * accesses the memory of the first one
 */
static void memory_exported_again_is_that_of_its_owner(void)
{
	struct exporter e, passed;
	pid_t pid;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	TEST_ASSERT_EQUAL_INT(0, pipe2(told, O_CLOEXEC));
	TEST_ASSERT_EQUAL_INT(0, pipe2(over, O_CLOEXEC));
	pid = begin_process(third, &passed);
	close(over[1]);
	in_process(second, &e);
	end_process(pid);
	end_exporter(&e);
	close(over[0]);
	close(told[0]);
	close(told[1]);
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

static void exporting_again_adds_no_rights(void)
{
	struct exporter e;

	start_exporter(&e, 'h', DOCA_ACCESS_FLAG_PCI_READ_ONLY, false);
	in_process(second_read_only, &e);
	end_exporter(&e);
}

/* -- a device of a network: memory is not moved, and exports name it by its id -- */

static void over_a_network(struct exporter *e)
{
	struct doca_mmap *owned, *imported;
	struct gantry_region region;
	char *memory = memory_of('h');
	const void *desc;
	size_t len;

	(void)e;
	dev->info->network = true;
	owned = make_map(memory, DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_PCI_READ_WRITE);
	OK(doca_mmap_export_rdma(owned, dev, &desc, &len));
	OK(gd_mmap_region(owned, 0, &region));
	TEST_ASSERT_TRUE(region.fd < 0 && region.addr == memory);
	OK(doca_mmap_create_from_export(NULL, desc, len, dev, &imported));
	TEST_ASSERT_TRUE(imported->addr == memory && !imported->local);
	IS(NOT_SUPPORTED, gd_mmap_region(imported, 0, &region));
	TEST_ASSERT_EQUAL_PTR(owned, gd_mmap_find(&imported->id));
	OK(doca_mmap_destroy(imported));
	/* an export by PCI shares the memory, also on such a device */
	OK(doca_mmap_export_pci(owned, dev, &desc, &len));
	OK(doca_mmap_create_from_export(NULL, desc, len, dev, &imported));
	TEST_ASSERT_NOT_NULL(imported->local);
	OK(doca_mmap_destroy(imported));
	OK(doca_mmap_destroy(owned));
}

static void memory_for_a_network_is_not_shared_here(void)
{
	struct exporter none = {.pid = 0};

	in_process(over_a_network, &none);
}

/* -- fork in between -- */

/*
 * A forked child that outlives the owner does not hide the end of the owner. Writes of the child do
 * not reach importers.
 */
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
	mine = import(&self); /* an owner can also import its own export */
	TEST_ASSERT_EQUAL_INT(0, pipe(held));
	pid = fork();
	if (pid == 0) {
		char byte;

		memory[5] = 'c';
		if (gd_mmap_check(mine) != DOCA_ERROR_IO_FAILED ||
		    doca_mmap_stop(mine) != DOCA_SUCCESS ||
		    doca_mmap_destroy(mine) != DOCA_SUCCESS ||
		    doca_mmap_destroy(map) != DOCA_SUCCESS)
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

static void child_of_the_owner_does_not_keep_the_memory_valid(void)
{
	struct exporter none = {.pid = 0};

	in_process(owner_with_a_child, &none);
}

int main(void)
{
	begin_rig();
	UNITY_BEGIN();
	RUN_TEST(an_importer_reads_and_writes_the_memory_of_a_blocked_process);
	RUN_TEST(read_only_memory_cannot_be_written);
	RUN_TEST(importer_detects_the_death_of_the_owner);
	RUN_TEST(importer_detects_that_the_owner_has_stopped_the_map);
	RUN_TEST(nothing_is_left_in_the_run_directory);
	RUN_TEST(memory_exported_again_is_that_of_its_owner);
	RUN_TEST(exporting_again_adds_no_rights);
	RUN_TEST(memory_for_a_network_is_not_shared_here);
	RUN_TEST(child_of_the_owner_does_not_keep_the_memory_valid);
	return end_rig(UNITY_END());
}
