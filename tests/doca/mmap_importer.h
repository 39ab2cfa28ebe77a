/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_importer.h - a process that imports a map and writes to it continuously. It counts its
 * passes over the map in memory that it shares with the owner, which is its parent.
 */
#ifndef TESTS_DOCA_MMAP_IMPORTER_H
#define TESTS_DOCA_MMAP_IMPORTER_H

#include "exporter.h"

#define BYTES (512 * 1024u) /* the longest map that the importer can write */
#define MARK 0xee           /* the byte that the importer writes */
#define PASSES 3

enum writer { BY_CPU, BY_DMA, BY_CHILD, WITHOUT_FDS };

void start_importer(void);
void end_importer(void);

/*
 * Let the importer import the map and write until end_writes(). Returns after PASSES passes.
 * end_writes() also ends an importer WITHOUT_FDS.
 */
void begin_writes(enum writer writer, const struct exporter *e);
void end_writes(enum writer writer);
/* Wait for n more passes, whether or not their writes succeed. */
void wait_for_passes(unsigned n);
/* Send SIGSTOP to the importer and wait until it has stopped. */
void silence(void);
/* Send SIGCONT to the importer. */
void speak(void);

/* Create a map and export it by PCI, for reading and writing. */
struct doca_mmap *export(char *memory, size_t length, struct exporter *e);
/* Returns the number of bytes that are not zero. */
size_t count_marks(const char *memory, size_t length);

#endif
