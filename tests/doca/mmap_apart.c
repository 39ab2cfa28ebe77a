/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several maps of one process: an importer of one map has no access to the other maps. And
 * doca_mmap_stop() waits while a thread of the library copies data of the map.
 */
#include "mmap_importer.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

/*
 * Check that the memfd of an import has only the pages of its map. The offset of a page in the
 * memfd is the address of the page.
 */
static void check_extent(const struct doca_mmap *map)
{
	struct gantry_region region;
	off_t from, to, first = (off_t)((uintptr_t)map->addr & ~(PAGE - 1ul));
	off_t last = (off_t)(((uintptr_t)map->addr + map->length + PAGE - 1) & ~(PAGE - 1ul));

	OK(gd_mmap_region((struct doca_mmap *)(uintptr_t)map, 0, &region));
	from = lseek(region.fd, 0, SEEK_DATA);
	TEST_ASSERT_EQUAL_INT64(first, from);
	to = lseek(region.fd, from, SEEK_HOLE);
	TEST_ASSERT_EQUAL_INT64(last, to);
	TEST_ASSERT_EQUAL_INT64(-1, lseek(region.fd, to, SEEK_DATA));
}

static void import_one_of_three(struct exporter *e)
{
	char *memory = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	struct doca_mmap *maps[3], *imported;

	memset(memory, 5, 3 * BYTES);
	for (int i = 0; i < 3; i++)
		maps[i] = export(memory + i * BYTES, BYTES, e);
	imported = import(e);
	check_extent(imported);
	OK(doca_mmap_destroy(imported));
	for (int i = 0; i < 3; i++)
		OK(doca_mmap_destroy(maps[i]));
	/* a range that overlaps two of the earlier maps */
	maps[0] = export(memory + PAGE + 100, BYTES, e);
	imported = import(e);
	check_extent(imported);
	OK(doca_mmap_destroy(imported));
	OK(doca_mmap_destroy(maps[0]));
}

static void an_importer_of_one_map_cannot_map_another(void)
{
	struct exporter e = {.pid = 0};

	in_process(import_one_of_three, &e);
}

/* -- maps that have a page in common -- */

static void wait_until_gone(const struct doca_mmap *map)
{
	while (gd_mmap_check(map) != DOCA_ERROR_IO_FAILED)
		sched_yield();
}

/*
 * Stopping one map replaces the common page for both maps. The importers of the other map lose it,
 * import it again, and then have its current memory.
 */
static void stop_a_neighbour(struct exporter *e)
{
	char *memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	char *shared = memory + BYTES - 100;
	struct exporter stale;
	struct doca_mmap *map, *other, *imported;

	start_importer();
	memset(memory, 5, 2 * BYTES);
	map = export(memory, BYTES - 100, &stale);
	other = export(shared, BYTES, e);
	imported = import(e);
	begin_writes(BY_CPU, &stale);
	silence();
	OK(doca_mmap_destroy(map));
	memset(memory, 0, BYTES - 100);
	wait_until_gone(imported);
	memset(imported->local, 1, BYTES); /* must change no other map */
	speak();
	wait_for_passes(PASSES);
	TEST_ASSERT_EQUAL_size_t(0, count_marks(memory, BYTES - 100));
	for (size_t i = 0; i < BYTES; i++)
		TEST_ASSERT_EQUAL_INT(5, shared[i]);
	OK(doca_mmap_destroy(imported));
	imported = import(e);
	memset(imported->local, 9, BYTES);
	TEST_ASSERT_TRUE(shared[0] == 9 && shared[BYTES - 1] == 9 && memory[BYTES - 101] == 0);
	OK(doca_mmap_destroy(imported));
	OK(doca_mmap_destroy(other));
	end_writes(BY_CPU);
	end_importer();
}

static void a_map_that_shares_a_page_with_a_stopped_one_keeps_its_contents(void)
{
	struct exporter e = {.pid = 0};

	in_process(stop_a_neighbour, &e);
}

/* Export three ranges so that the last one lies between two that other processes have imported. */
static void import_between(struct exporter *e)
{
	char *memory = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	static const int order[] = {0, 2, 1};
	struct doca_mmap *maps[3], *imported[3];

	for (int i = 0; i < 3; i++) {
		maps[i] = export(memory + 100 + order[i] * (BYTES - 200), BYTES - 200, e);
		imported[i] = import(e);
		memset(imported[i]->local, i + 1, BYTES - 200);
	}
	for (int i = 0; i < 3; i++)
		for (size_t at = 0; at < BYTES - 200; at++)
			TEST_ASSERT_EQUAL_INT(i + 1, ((char *)maps[i]->local)[at]);
	for (int i = 0; i < 3; i++) {
		OK(doca_mmap_destroy(imported[i]));
		OK(doca_mmap_destroy(maps[i]));
	}
}

static void neighbours_are_imported_in_any_order(void)
{
	struct exporter e = {.pid = 0};

	in_process(import_between, &e);
}

/* -- threads of the library that copy -- */

static unsigned is_stopped;

static void *stop_it(void *map)
{
	OK(doca_mmap_stop(map));
	__atomic_store_n(&is_stopped, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void stop_while_used(struct exporter *e)
{
	static char memory[PAGE];
	struct doca_mmap *map, *used;
	uint32_t handle;
	pthread_t thread;

	map = export(memory, sizeof(memory), e);
	OK(doca_mmap_dev_get_dpa_handle(map, dev, &handle));
	TEST_ASSERT_EQUAL_PTR(map, gd_mmap_use(handle));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, stop_it, map));
	while ((used = gd_mmap_use(handle))) {
		gd_mmap_unuse(used);
		sched_yield();
	}
	TEST_ASSERT_EQUAL_UINT(0, __atomic_load_n(&is_stopped, __ATOMIC_SEQ_CST));
	gd_mmap_unuse(map);
	pthread_join(thread, NULL);
	OK(doca_mmap_destroy(map));
}

static void stop_waits_for_a_copy_of_the_dpa(void)
{
	struct exporter e = {.pid = 0};

	in_process(stop_while_used, &e);
}

int main(void)
{
	begin_rig();
	UNITY_BEGIN();
	RUN_TEST(an_importer_of_one_map_cannot_map_another);
	RUN_TEST(a_map_that_shares_a_page_with_a_stopped_one_keeps_its_contents);
	RUN_TEST(neighbours_are_imported_in_any_order);
	RUN_TEST(stop_waits_for_a_copy_of_the_dpa);
	return end_rig(UNITY_END());
}
