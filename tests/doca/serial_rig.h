/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serial_rig.h - an engine, memory with buffers in it, and callbacks that note how tasks ended; for
 * tests of contexts.
 */
#ifndef TESTS_DOCA_SERIAL_RIG_H
#define TESTS_DOCA_SERIAL_RIG_H

#include <doca_ctx.h>
#include <doca_pe.h>
#include <string.h>

#include "device/gd_device.h"
#include "fake_map.h"
#include "unity.h"

#define RIG_BYTES (4 << 20)

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define REFUSED(error, call) TEST_ASSERT_EQUAL_INT(DOCA_ERROR_##error, (call))

static struct doca_devinfo info;
static struct doca_dev dev = {.info = &info, .references = 1};
static uint8_t from[RIG_BYTES], to[RIG_BYTES];
static struct doca_mmap from_map, to_map;
static struct doca_buf_inventory *inventory;
static struct doca_pe *pe;
static int n_done, n_error;
static doca_error_t status; /* status of the task that ended last */
static const union doca_data no_data = {.u64 = 0};

/* Callbacks of all kinds of tasks; they do not free the task. */
static inline void on_done(void *task, union doca_data task_user_data,
			   union doca_data ctx_user_data)
{
	(void)task_user_data;
	(void)ctx_user_data;
	n_done++;
	status = doca_task_get_status(task);
}

static inline void on_error(void *task, union doca_data task_user_data,
			    union doca_data ctx_user_data)
{
	(void)task_user_data;
	(void)ctx_user_data;
	n_error++;
	status = doca_task_get_status(task);
}

#define DONE_AND_ERROR(type) (type)(void (*)(void)) on_done, (type)(void (*)(void))on_error

static inline void rig_up(void)
{
	n_done = n_error = 0;
	status = DOCA_SUCCESS;
	memset(to, 0, sizeof(to));
	fake_dev = &dev;
	from_map = (struct doca_mmap)FAKE_MAP(from, RIG_BYTES);
	to_map = (struct doca_mmap)FAKE_MAP(to, RIG_BYTES);
	OK(doca_buf_inventory_create(1024, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_pe_create(&pe));
}

static inline void rig_down(void)
{
	OK(doca_pe_destroy(pe));
	OK(doca_buf_inventory_destroy(inventory));
}

static inline void rig_start(struct doca_ctx *ctx)
{
	OK(doca_pe_connect_ctx(pe, ctx));
	OK(doca_ctx_start(ctx));
}

/* Returns a buffer with data at an offset of the memory `from`. */
static inline struct doca_buf *source(size_t offset, size_t length)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_data(inventory, &from_map, from + offset, length, &buf));
	return buf;
}

/* Returns an empty buffer at an offset of the memory `to`. */
static inline struct doca_buf *room(size_t offset, size_t length)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_addr(inventory, &to_map, to + offset, length, &buf));
	return buf;
}

#define APART (RIG_BYTES - 64)
#define APART_BYTES 7

/*
 * Returns a list of three buffers. The middle one is short and far from the other two, so that a
 * read beyond the end of a buffer returns wrong data.
 */
static inline struct doca_buf *in_pieces(struct doca_buf *(*make)(size_t offset, size_t length),
					 size_t length)
{
	struct doca_buf *list = make(0, length / 2);

	OK(doca_buf_chain_list(list, make(APART, APART_BYTES)));
	OK(doca_buf_chain_list(list,
			       make(length / 2 + APART_BYTES, length - length / 2 - APART_BYTES)));
	return list;
}

/* Returns a list of as many empty buffers as a task can have. */
static inline struct doca_buf *longest_room(void)
{
	struct doca_buf *list = room(0, 64);

	for (size_t i = 1; i < 64; i++)
		OK(doca_buf_chain_list(list, room(64 * i, 64)));
	return list;
}

static inline void lengthen(struct doca_buf *list)
{
	OK(doca_buf_chain_list(list, room(64 * 64, 64)));
}

/* Convert contiguous memory to the layout of these pieces, and back. */
static inline void set_apart(uint8_t *memory, size_t length)
{
	memcpy(memory + APART, memory + length / 2, APART_BYTES);
	memset(memory + length / 2, 0xee, APART_BYTES);
}

static inline void put_together(uint8_t *memory, size_t length)
{
	memcpy(memory + length / 2, memory + APART, APART_BYTES);
}

static inline size_t length_of(const struct doca_buf *buf)
{
	return gd_buf_data_bytes(buf);
}

static inline void give_back(struct doca_buf *a, struct doca_buf *b)
{
	OK(doca_buf_dec_refcount(a, NULL));
	if (b)
		OK(doca_buf_dec_refcount(b, NULL));
}

/* Check a field of a task: it is `made` at first, then set to `other`. Task NULL has no effect. */
#define FIELD(get, set, task, made, other) \
	do { \
		TEST_ASSERT_TRUE(get(task) == (made)); \
		set(task, other); \
		TEST_ASSERT_TRUE(get(task) == (other)); \
		set(NULL, other); \
		TEST_ASSERT_TRUE(!get(NULL)); \
	} while (0)

/*
 * Submit a task and progress until it has ended. Returns its status. Checks that it ends in
 * doca_pe_progress(), not inside submit.
 */
static inline doca_error_t run_task(struct doca_task *task)
{
	int ended = n_done + n_error;

	OK(doca_task_submit(task));
	TEST_ASSERT_EQUAL_INT(ended, n_done + n_error);
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(ended + 1, n_done + n_error);
	return status;
}

/* Stop the context after all tasks were freed. */
static inline void rig_stop(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;

	OK(doca_ctx_stop(ctx));
	OK(doca_ctx_get_state(ctx, &state));
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_IDLE, state);
}

#endif
