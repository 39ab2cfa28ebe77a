/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exporter.h - a process that exports memory and then blocks in read(), and processes that import
 * the memory.
 */
#ifndef TESTS_DOCA_EXPORTER_H
#define TESTS_DOCA_EXPORTER_H

#include "device/gd_device.h"
#include "mmap/mmap.h"
#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define IS(error, call) TEST_ASSERT_EQUAL_INT(DOCA_ERROR_##error, (call))
#define LENGTH 10000
#define SHIFT 123

struct exporter {
	pid_t pid;
	int to, from; /* pipes */
	char desc[GD_BLOB_MAX] __attribute__((aligned(8)));
	size_t len;
};

extern struct doca_dev *dev;

/*
 * Set up a private directory for sockets, and the plugins of this build. main() passes its result
 * to end_rig().
 */
void begin_rig(void);
int end_rig(int rc);

void open_device(void);
/* Returns LENGTH bytes at an odd address, in the heap ('h') or in the program's data ('d'). */
char *memory_of(char kind);
struct doca_mmap *make_map(char *memory, uint32_t access);

void start_exporter(struct exporter *e, char kind, uint32_t access, bool rdma);
/* Returns the byte of the exporter at this offset. what 'r': only read; 's': stop the map, too. */
int ask(struct exporter *e, int what, int at);
void end_exporter(struct exporter *e);

/* Run fn in a process that has not called the library yet, with the device open. */
void in_process(void (*fn)(struct exporter *e), struct exporter *e);
/* Like in_process() in two steps: for a fork before this process has threads. */
pid_t begin_process(void (*fn)(struct exporter *e), struct exporter *e);
void end_process(pid_t pid);
struct doca_mmap *import(struct exporter *e);

/* Import the memory, read it, write to it, and check that the exporter sees the new values. */
void read_and_write(struct exporter *e);

#endif
