/* SPDX-License-Identifier: BSD-3-Clause */
#include "mmap_importer.h"

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dma.h>
#include <doca_pe.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	enum writer writer;
	struct exporter export;
};

static struct board {
	uint64_t passes; /* __atomic; passes over the map, whether or not writes succeed */
} * board;

static struct importer {
	pid_t pid;
	int to, from;
} importer;

/* -- the importer -- */

static void count_pass(void)
{
	__atomic_fetch_add(&board->passes, 1, __ATOMIC_SEQ_CST);
}

static bool has_input(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

static void fill(char *memory, size_t length)
{
	for (size_t i = 0; i < length; i += 8)
		__atomic_store_n((uint64_t *)(memory + i), 0x0101010101010101ull * MARK,
				 __ATOMIC_RELAXED);
}

static void write_by_cpu(struct doca_mmap *map, int fd)
{
	char *from = (char *)(((uintptr_t)map->local + 7) & ~(uintptr_t)7);
	size_t length = (map->length - 8) & ~(size_t)7;

	do {
		fill(from, length);
		count_pass();
	} while (!has_input(fd));
}

static void write_by_child(struct doca_mmap *map, int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		write_by_cpu(map, fd);
		_exit(0);
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, NULL, 0));
}

/*
 * Close all descriptors, as a program does that becomes a daemon: this ends the connections of the
 * library, but the mapping stays.
 */
static void write_without_fds(struct doca_mmap *map, int from, int to)
{
	for (int fd = 3; fd < 256; fd++)
		if (fd != from && fd != to)
			close(fd);
	write_by_cpu(map, from);
}

/* -- the importer's DMA -- */

struct copier {
	struct doca_mmap *map;
	struct doca_buf_inventory *inventory;
	struct doca_buf *src, *dst;
	struct doca_pe *pe;
	struct doca_dma *dma;
	bool is_done;
};

static void on_end(struct doca_dma_task_memcpy *task, union doca_data task_data,
		   union doca_data ctx_data)
{
	(void)task_data;
	((struct copier *)ctx_data.ptr)->is_done = true;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void open_copier(struct copier *c, struct doca_mmap *far)
{
	char *memory = malloc(BYTES);

	memset(memory, MARK, BYTES);
	OK(doca_mmap_create(&c->map));
	OK(doca_mmap_set_memrange(c->map, memory, far->length));
	OK(doca_mmap_start(c->map));
	OK(doca_buf_inventory_create(2, &c->inventory));
	OK(doca_buf_inventory_start(c->inventory));
	OK(doca_buf_inventory_buf_get_by_data(c->inventory, c->map, memory, far->length, &c->src));
	OK(doca_buf_inventory_buf_get_by_addr(c->inventory, far, far->addr, far->length, &c->dst));
	OK(doca_pe_create(&c->pe));
	OK(doca_dma_create(dev, &c->dma));
	OK(doca_dma_task_memcpy_set_conf(c->dma, on_end, on_end, 1));
	OK(doca_ctx_set_user_data(doca_dma_as_ctx(c->dma), (union doca_data){.ptr = c}));
	OK(doca_pe_connect_ctx(c->pe, doca_dma_as_ctx(c->dma)));
}

static void close_copier(struct copier *c)
{
	void *memory;
	size_t length;

	doca_ctx_stop(doca_dma_as_ctx(c->dma));
	OK(doca_dma_destroy(c->dma));
	OK(doca_pe_destroy(c->pe));
	OK(doca_buf_dec_refcount(c->src, NULL));
	OK(doca_buf_dec_refcount(c->dst, NULL));
	OK(doca_buf_inventory_destroy(c->inventory));
	OK(doca_mmap_get_memrange(c->map, &memory, &length));
	OK(doca_mmap_destroy(c->map));
	free(memory);
}

/* Run one task; a failed task stops the context. */
static void copy_once(struct copier *c)
{
	struct doca_dma_task_memcpy *task;
	enum doca_ctx_states state;

	OK(doca_ctx_get_state(doca_dma_as_ctx(c->dma), &state));
	if (state == DOCA_CTX_STATE_IDLE)
		OK(doca_ctx_start(doca_dma_as_ctx(c->dma)));
	OK(doca_buf_reset_data_len(c->dst));
	OK(doca_dma_task_memcpy_alloc_init(c->dma, c->src, c->dst, (union doca_data){.u64 = 0},
					   &task));
	c->is_done = false;
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(task)));
	while (!c->is_done || doca_pe_progress(c->pe) != 0)
		doca_pe_progress(c->pe);
}

static void write_by_dma(struct doca_mmap *far, int fd)
{
	struct copier c = {.map = NULL};

	open_copier(&c, far);
	do {
		copy_once(&c);
		count_pass();
	} while (!has_input(fd));
	close_copier(&c);
}

static void run_importer(int from, int to)
{
	struct order order;
	char byte = 'k';

	open_device();
	while (read(from, &order, sizeof(order)) == sizeof(order)) {
		struct doca_mmap *map = import(&order.export);

		switch (order.writer) {
		case BY_CPU:
			write_by_cpu(map, from);
			break;
		case BY_DMA:
			write_by_dma(map, from);
			break;
		case BY_CHILD:
			write_by_child(map, from);
			break;
		case WITHOUT_FDS:
			write_without_fds(map, from, to);
			_exit(0);
		}
		if (read(from, &byte, 1) != 1)
			break;
		OK(doca_mmap_destroy(map));
		if (write(to, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

void start_importer(void)
{
	int to[2], from[2];

	if (!board)
		board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT_EQUAL_INT(0, pipe(to) | pipe(from));
	importer.pid = fork();
	if (importer.pid == 0) {
		close(to[1]);
		close(from[0]);
		if (TEST_PROTECT())
			run_importer(to[0], from[1]);
		fflush(NULL);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	importer.to = to[1];
	importer.from = from[0];
}

void end_importer(void)
{
	int status = -1;

	close(importer.to);
	close(importer.from);
	TEST_ASSERT_EQUAL_INT(importer.pid, waitpid(importer.pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
}

/* -- the owner -- */

void wait_for_passes(unsigned n)
{
	const uint64_t until = __atomic_load_n(&board->passes, __ATOMIC_SEQ_CST) + n;

	while (__atomic_load_n(&board->passes, __ATOMIC_SEQ_CST) < until)
		if (waitpid(importer.pid, NULL, WNOHANG) != 0)
			TEST_FAIL_MESSAGE("the importer has ended");
		else
			sched_yield();
}

void silence(void)
{
	int status;

	TEST_ASSERT_EQUAL_INT(0, kill(importer.pid, SIGSTOP));
	TEST_ASSERT_EQUAL_INT(importer.pid, waitpid(importer.pid, &status, WUNTRACED));
	TEST_ASSERT_TRUE(WIFSTOPPED(status));
}

struct doca_mmap *export(char *memory, size_t length, struct exporter *e)
{
	struct doca_mmap *map;
	const void *desc;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_memrange(map, memory, length));
	OK(doca_mmap_start(map));
	OK(doca_mmap_export_pci(map, dev, &desc, &e->len));
	memcpy(e->desc, desc, e->len);
	return map;
}

size_t count_marks(const char *memory, size_t length)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++)
		n += ((volatile const char *)memory)[i] != 0;
	return n;
}

void begin_writes(enum writer writer, const struct exporter *e)
{
	struct order order = {.writer = writer, .export = *e};

	TEST_ASSERT_EQUAL_INT(sizeof(order), write(importer.to, &order, sizeof(order)));
	wait_for_passes(PASSES);
}

void speak(void)
{
	TEST_ASSERT_EQUAL_INT(0, kill(importer.pid, SIGCONT));
}

void end_writes(enum writer writer)
{
	char byte = 'e';

	TEST_ASSERT_EQUAL_INT(1, write(importer.to, &byte, 1));
	if (writer != WITHOUT_FDS)
		TEST_ASSERT_EQUAL_INT(1, read(importer.from, &byte, 1));
}
