/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the program: registered, it carries IO without a copy. After it is deregistered no
 * server has it mapped, or writes to it. SERVED_TCP: over TCP instead of shared memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define BYTES (1u << 20)            /* of the memfd */
#define OFFSET (16u * BLOCK)        /* of the registered range */
#define LENGTH (BYTES - OFFSET)     /* of the registered range */
#define LAST (SERVED_BYTES - BLOCK) /* the gate holds IO at this offset */
#define NAME "memory-of-the-test"
#ifdef SERVED_TCP
#define LIMIT "max_region_bytes = \"64MiB\";"
#else
#define LIMIT "max_bytes = \"64MiB\";"
#endif

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct gantry_memory *memory;
static struct gantry_volume_attr attr;
static int fd;
static uint8_t *mine; /* mapping of the range by this program */

void setUp(void)
{
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	attr.memories = 3;
	attr.buffer_bytes = 4 * BLOCK;
	memory = NULL;
	fd = gantry_memfd_create(NAME, BYTES, 0);
	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	mine = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, OFFSET);
	TEST_ASSERT_NOT_EQUAL(MAP_FAILED, mine);
}

void tearDown(void)
{
	served_open_gate();
	if (memory)
		gantry_memory_deregister(&memory);
	served_finish(&queue, &volume);
	munmap(mine, LENGTH);
	close(fd);
}

static void open_all(void)
{
	int rc = gantry_volume_open_role(served_file, "load", &attr, &volume);

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

static void serve(struct served_options options)
{
	served_begin(&options);
	served_start("store");
	served_start("bridge");
	open_all();
}

static void register_mine(void)
{
	int rc = gantry_memory_register(volume, fd, OFFSET, LENGTH, mine, &memory);

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_NOT_NULL(memory);
}

/* Returns how many mappings of the memfd a server has. */
static int mappings_of(const char *role)
{
	char path[64], line[512];
	FILE *file;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)served_pid(role));
	file = fopen(path, "r");
	TEST_ASSERT_NOT_NULL(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, NAME) != NULL;
	fclose(file);
	return n;
}

/* -- data -- */

static void check_data(uint8_t *base)
{
	uint8_t plain[2 * BLOCK];
	uint8_t *from = base + 3 * BLOCK + 8, *to = base + 40 * BLOCK + 24;

	served_fill(from, 9 * BLOCK, 1);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, served_write(queue, from, 9 * BLOCK, 5 * BLOCK),
				      gantry_error());
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, to, 9 * BLOCK, 5 * BLOCK));
	TEST_ASSERT_EQUAL_UINT64(9 * BLOCK, served_check(to, 9 * BLOCK, 1));
	/* up to the last byte */
	TEST_ASSERT_EQUAL_INT(0,
			      served_read(queue, base + LENGTH - 9 * BLOCK, 9 * BLOCK, 5 * BLOCK));
	TEST_ASSERT_EQUAL_UINT64(9 * BLOCK, served_check(base + LENGTH - 9 * BLOCK, 9 * BLOCK, 1));
	TEST_ASSERT_EQUAL_UINT64(0, gantry_queue_copied_bytes(queue));
	/* other memory is copied */
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, plain, sizeof(plain), 5 * BLOCK));
	TEST_ASSERT_EQUAL_MEMORY(to, plain, sizeof(plain));
	TEST_ASSERT_EQUAL_UINT64(sizeof(plain), gantry_queue_copied_bytes(queue));
}

static void test_buffers_in_the_mapping_of_the_program(void)
{
	serve((struct served_options){.connect = NULL});
	register_mine();
	check_data(mine);
}

static void test_buffers_in_the_mapping_of_the_library(void)
{
	serve((struct served_options){.connect = NULL});
	TEST_ASSERT_EQUAL_INT(0, gantry_memory_register(volume, fd, OFFSET, LENGTH, NULL, &memory));
	check_data(gantry_memory_address(memory));
}

/* Pieces in gantry_volume_buffers() and in two memories. */
static void test_an_io_with_pieces_in_several_memories(void)
{
	struct gantry_memory *second;
	struct served_io io = {0, 1};
	struct iovec iov[3];
	uint8_t *buffers, data[2 * BLOCK];

	serve((struct served_options){.connect = NULL});
	buffers = gantry_volume_buffers(volume, NULL);
	register_mine();
	TEST_ASSERT_EQUAL_INT(0, gantry_memory_register(volume, fd, 0, OFFSET, NULL, &second));
	iov[0] = (struct iovec){mine + 100, 1000};
	iov[1] = (struct iovec){buffers + 512, 5000};
	iov[2] = (struct iovec){gantry_memory_address(second), 2192};
	for (int i = 0; i < 3; i++)
		memset(iov[i].iov_base, 'a' + i, iov[i].iov_len);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gantry_queue_writev(queue, iov, 3, 0, 0, served_done, &io),
				      gantry_error());
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_memory_deregister(&memory));
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_memory_deregister(&second));
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(0, io.result);
	TEST_ASSERT_EQUAL_UINT64(0, gantry_queue_copied_bytes(queue));
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, data, sizeof(data), 0));
	for (size_t i = 0; i < sizeof(data); i++)
		TEST_ASSERT_EQUAL_HEX8(i < 1000 ? 'a' : i < 6000 ? 'b' : 'c', data[i]);
	TEST_ASSERT_EQUAL_INT(0, gantry_memory_deregister(&second));
	TEST_ASSERT_NULL(second);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_queue_writev(queue, iov, 3, 0, 0, served_done, &io));
}

/* -- the end of an export -- */

static void test_no_server_has_the_memory_after_the_call(void)
{
	serve((struct served_options){.connect = NULL});
	TEST_ASSERT_EQUAL_INT(0, mappings_of("store"));
	for (int i = 0; i < 20; i++) {
		register_mine();
		TEST_ASSERT_EQUAL_INT(0, served_write(queue, mine, BLOCK, 0));
#ifndef SERVED_TCP
		TEST_ASSERT_EQUAL_INT(1, mappings_of("store"));
#endif
		TEST_ASSERT_EQUAL_INT(0, gantry_memory_deregister(&memory));
		TEST_ASSERT_NULL(memory);
		TEST_ASSERT_EQUAL_INT(0, mappings_of("store"));
		TEST_ASSERT_EQUAL_INT(0, mappings_of("bridge"));
	}
	/* the memory is ordinary memory again */
	TEST_ASSERT_EQUAL_UINT64(0, gantry_queue_copied_bytes(queue));
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, mine, BLOCK, 0));
	TEST_ASSERT_EQUAL_UINT64(BLOCK, gantry_queue_copied_bytes(queue));
}

static void *open_gate_later(void *arg)
{
	usleep(300000); /* lint: allowed, the time for which the call must wait */
	*(_Atomic int *)arg = 1;
	served_open_gate();
	return NULL;
}

/* A read that timed out may still write to its buffer: the call waits for the late reply. */
static void test_the_call_waits_for_an_io_that_timed_out(void)
{
	struct served_io io = {0, 1};
	pthread_t thread;
	_Atomic int opened = 0;

	served_gated((struct served_options){.connect = "io_timeout = \"100ms\";"});
	open_all();
	register_mine();
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_read(queue, mine, BLOCK, LAST, served_done, &io));
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_memory_deregister(&memory));
	TEST_ASSERT_NOT_NULL(memory);
	served_wait_gate(queue);
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, io.result);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, open_gate_later, &opened));
	TEST_ASSERT_EQUAL_INT(0, gantry_memory_deregister(&memory));
	TEST_ASSERT_EQUAL_INT(1, opened);
	pthread_join(thread, NULL);
	memset(mine, 0x3c, BLOCK);
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	for (unsigned i = 0; i < BLOCK; i++)
		TEST_ASSERT_EQUAL_HEX8(0x3c, mine[i]);
}

/* -- the session -- */

static void test_a_session_that_resumes_exports_the_memory_again(void)
{
	serve((struct served_options){.connect = "resume = \"60s\";"});
	register_mine();
	served_fill(mine, 8 * BLOCK, 7);
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, mine, 8 * BLOCK, 0));
	served_kill("bridge", SIGKILL);
	served_start("bridge");
	memset(mine, 0, 8 * BLOCK);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, mine, 8 * BLOCK, 0));
	TEST_ASSERT_EQUAL_UINT64(8 * BLOCK, served_check(mine, 8 * BLOCK, 7));
	TEST_ASSERT_EQUAL_UINT64(0, gantry_queue_copied_bytes(queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_memory_deregister(&memory));
	TEST_ASSERT_EQUAL_INT(0, mappings_of("store"));
	register_mine();
}

static void test_a_session_that_is_lost(void)
{
	struct served_io io = {0, 1};
	struct gantry_memory *other;

	serve((struct served_options){.connect = NULL});
	register_mine();
	served_kill("bridge", SIGKILL);
	if (gantry_queue_read(queue, mine, BLOCK, 0, served_done, &io) == 0) {
		served_wait(queue, &io, 1, 1);
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, io.result);
	}
	TEST_ASSERT_EQUAL_INT(-ENOTCONN,
			      gantry_memory_register(volume, fd, 0, OFFSET, NULL, &other));
	TEST_ASSERT_NULL(other);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gantry_memory_deregister(&memory));
	TEST_ASSERT_NULL(memory);
	TEST_ASSERT_NOT_NULL(strstr(gantry_error(), "the session has ended"));
}

/* -- threads -- */

/* Returns NULL, or the failure. */
static void *register_again_and_again(void *arg)
{
	static char error[256];
	struct gantry_memory *other;

	(void)arg;
	for (int i = 0; i < 30; i++) {
		if (gantry_memory_register(volume, fd, 0, OFFSET, NULL, &other) == 0 &&
		    gantry_memory_deregister(&other) == 0)
			continue;
		snprintf(error, sizeof(error), "round %d: %s", i, gantry_error());
		return error;
	}
	return NULL;
}

static void test_threads_register_while_io_is_in_flight(void)
{
	pthread_t threads[2];
	void *failed;
	int n = 0;

	serve((struct served_options){.connect = NULL});
	register_mine();
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(
			0, pthread_create(&threads[i], NULL, register_again_and_again, &n));
	for (; n < 300; n++) {
		served_fill(mine, 2 * BLOCK, (uint64_t)n);
		TEST_ASSERT_EQUAL_INT(0, served_write(queue, mine, 2 * BLOCK, 0));
		TEST_ASSERT_EQUAL_INT(0, served_read(queue, mine + 4 * BLOCK, 2 * BLOCK, 0));
		TEST_ASSERT_EQUAL_UINT64(2 * BLOCK,
					 served_check(mine + 4 * BLOCK, 2 * BLOCK, (uint64_t)n));
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &failed);
		TEST_ASSERT_NULL_MESSAGE(failed, failed);
	}
	TEST_ASSERT_EQUAL_UINT64(0, gantry_queue_copied_bytes(queue));
}

/* -- errors -- */

static void expect(int rc, int descriptor, uint64_t offset, uint64_t length, void *addr,
		   const char *text)
{
	struct gantry_memory *other = (void *)1;

	TEST_ASSERT_EQUAL_INT_MESSAGE(
		rc, gantry_memory_register(volume, descriptor, offset, length, addr, &other),
		gantry_error());
	TEST_ASSERT_NULL(other);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), text), gantry_error());
}

static void test_arguments_that_are_wrong(void)
{
	struct gantry_memory *more[2];
	int open_fd = gantry_memfd_create(NAME, BYTES, 0),
	    huge = gantry_memfd_create(NAME, 1ull << 40, 0), pipes[2];

	TEST_ASSERT_EQUAL_INT(0, pipe(pipes));
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(huge, 0));
	serve((struct served_options){.device = LIMIT});
	expect(-EINVAL, fd, 1, BLOCK, NULL, "not a multiple of the page size");
	expect(-EINVAL, fd, 0, 0, NULL, "not a multiple of the page size");
	expect(-EINVAL, pipes[0], 0, BLOCK, NULL, "not a memory file");
	expect(-EBADF, 10000, 0, BLOCK, NULL, "cannot be duplicated");
	expect(-EPERM, open_fd, 0, BYTES, NULL, "not sealed");
	expect(-ERANGE, fd, BLOCK, BYTES, NULL, "smaller than claimed");
	expect(-E2BIG, huge, 0, 1ull << 40, NULL, "larger than");
	expect(-EINVAL, fd, 0, BYTES, (void *)(UINTPTR_MAX - BLOCK), "wrap around");
	TEST_ASSERT_EQUAL_INT(
		0, fcntl(open_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE));
	expect(-EPERM, open_fd, 0, BYTES, NULL, "sealed against writing");
	register_mine();
	expect(-EEXIST, fd, OFFSET, LENGTH, mine + BLOCK, "overlap");
	expect(-EEXIST, fd, 0, OFFSET, gantry_volume_buffers(volume, NULL), "overlap");
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(
			0, gantry_memory_register(volume, fd, OFFSET, LENGTH, NULL, &more[i]));
	expect(-ENOSPC, fd, 0, OFFSET, NULL, "limit memories=3");
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, gantry_memory_deregister(&more[i]));
	TEST_ASSERT_EQUAL_INT(0, gantry_memory_deregister(&more[0]));
	/* a buffer that ends behind the memory */
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_queue_read(queue, mine + LENGTH - BLOCK, 2 * BLOCK, 0,
							 served_done, NULL));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_volume_close(&volume));
	TEST_ASSERT_NOT_NULL(strstr(gantry_error(), "registered memory (memories=1)"));
	TEST_ASSERT_EQUAL_INT(0, gantry_memory_deregister(&memory));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	attr.memories = 65;
	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      gantry_volume_open_role(served_file, "load", &attr, &volume));
	close(open_fd);
	close(huge);
	close(pipes[0]);
	close(pipes[1]);
}

/* A program of an earlier version has a shorter structure. */
static void test_a_program_of_an_earlier_version(void)
{
	struct gantry_memory *other;

	attr.struct_size = offsetof(struct gantry_volume_attr, memories);
	serve((struct served_options){.connect = NULL});
	TEST_ASSERT_EQUAL_INT(-ENOSPC, gantry_memory_register(volume, fd, 0, OFFSET, NULL, &other));
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, mine, BLOCK, 0));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_ROUNDS(test_buffers_in_the_mapping_of_the_program);
	RUN_ROUNDS(test_buffers_in_the_mapping_of_the_library);
	RUN_ROUNDS(test_an_io_with_pieces_in_several_memories);
	RUN_ROUNDS(test_no_server_has_the_memory_after_the_call);
	RUN_ROUNDS(test_the_call_waits_for_an_io_that_timed_out);
	RUN_ROUNDS(test_a_session_that_resumes_exports_the_memory_again);
	RUN_ROUNDS(test_a_session_that_is_lost);
	RUN_ROUNDS(test_threads_register_while_io_is_in_flight);
	RUN_ROUNDS(test_arguments_that_are_wrong);
	RUN_ROUNDS(test_a_program_of_an_earlier_version);
	return UNITY_END();
}
