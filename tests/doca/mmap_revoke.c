/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_revoke.c - no importer writes to memory after doca_mmap_stop() of its owner has returned.
 *
 * The owner forks an importer, which writes to the imported map continuously, by CPU or by
 * doca_dma. In each round the owner exports a range, waits for passes, stops and destroys the map,
 * fills the range with zeroes and waits for more passes: each byte that is not zero then is a
 * fault.
 *
 * GANTRY_ROUNDS sets the rounds of each test (default 4).
 */
#include "mmap_importer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static unsigned rounds(void)
{
	const char *text = getenv("GANTRY_ROUNDS");

	return text ? (unsigned)strtoul(text, NULL, 10) : 4;
}

/* Returns the number of bytes that the importer wrote to the range after stop returned. */
static size_t late_bytes(char *memory, size_t length, enum writer writer, bool silent)
{
	struct exporter e;
	struct doca_mmap *map = export(memory, length, &e);
	size_t n;

	begin_writes(writer, &e);
	if (silent)
		silence();
	OK(doca_mmap_stop(map));
	OK(doca_mmap_destroy(map));
	memset(memory, 0, length);
	if (silent)
		speak();
	wait_for_passes(PASSES);
	n = count_marks(memory, length);
	end_writes(writer);
	return n;
}

/*
 * Half of the rounds use whole pages, the other half the middle of a heap block. The bytes of the
 * owner around the range must not change.
 */
static size_t late_round(unsigned i, enum writer writer, bool silent)
{
	char *memory = i % 2 ? malloc(BYTES)
			     : mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t shift = i % 2 ? 1000 : 0, n;

	memset(memory, 7, BYTES);
	n = late_bytes(memory + shift, BYTES - 2 * shift, writer, silent);
	for (size_t at = 0; at < shift; at++)
		TEST_ASSERT_TRUE(memory[at] == 7 && memory[BYTES - 1 - at] == 7);
	if (i % 2)
		free(memory);
	else
		munmap(memory, BYTES);
	return n;
}

static size_t faults;
static enum writer the_writer;
static bool is_silent;

static void own(struct exporter *e)
{
	(void)e;
	start_importer();
	for (unsigned i = 0; i < rounds(); i++) {
		faults += late_round(i, the_writer, is_silent) != 0;
		if (the_writer == WITHOUT_FDS) {
			end_importer();
			start_importer();
		}
	}
	end_importer();
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(
		0, faults, "rounds with bytes of the importer after doca_mmap_stop returned");
}

static void no_late_bytes(enum writer writer, bool silent)
{
	struct exporter none = {.pid = 0};

	the_writer = writer;
	is_silent = silent;
	in_process(own, &none);
}

static void no_byte_by_cpu_after_stop(void)
{
	no_late_bytes(BY_CPU, false);
}

static void no_byte_by_dma_after_stop(void)
{
	no_late_bytes(BY_DMA, false);
}

static void no_byte_by_cpu_of_a_silent_importer(void)
{
	no_late_bytes(BY_CPU, true);
}

static void no_byte_by_dma_of_a_silent_importer(void)
{
	no_late_bytes(BY_DMA, true);
}

static void no_byte_of_a_child_of_the_importer(void)
{
	no_late_bytes(BY_CHILD, false);
}

static void no_byte_of_an_importer_that_closed_its_connections(void)
{
	no_late_bytes(WITHOUT_FDS, false);
}

/* -- the same memory again, and other memory -- */

/*
 * The importer of the first export never unmaps it. It must not reach the second export of the same
 * range.
 */
static void export_again(struct exporter *e)
{
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	struct exporter stale;
	struct doca_mmap *map, *again;

	start_importer();
	map = export(memory, BYTES, &stale);
	begin_writes(WITHOUT_FDS, &stale);
	OK(doca_mmap_destroy(map));
	map = export(memory, BYTES, e);
	again = import(e);
	memset(memory, 0, BYTES);
	wait_for_passes(PASSES);
	TEST_ASSERT_EQUAL_size_t(0, count_marks(memory, BYTES));
	memset(again->local, 9, BYTES); /* a new import maps the current memory */
	TEST_ASSERT_EQUAL_INT(9, memory[BYTES - 1]);
	OK(doca_mmap_destroy(again));
	OK(doca_mmap_destroy(map));
	end_writes(WITHOUT_FDS);
	end_importer();
}

static void a_stale_importer_has_nothing_of_the_next_export(void)
{
	struct exporter e = {.pid = 0};

	in_process(export_again, &e);
}

int main(void)
{
	begin_rig();
	UNITY_BEGIN();
	RUN_TEST(no_byte_by_cpu_after_stop);
	RUN_TEST(no_byte_by_dma_after_stop);
	RUN_TEST(no_byte_by_cpu_of_a_silent_importer);
	RUN_TEST(no_byte_by_dma_of_a_silent_importer);
	RUN_TEST(no_byte_of_a_child_of_the_importer);
	RUN_TEST(no_byte_of_an_importer_that_closed_its_connections);
	RUN_TEST(a_stale_importer_has_nothing_of_the_next_export);
	return end_rig(UNITY_END());
}
