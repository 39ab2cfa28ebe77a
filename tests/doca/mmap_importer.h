/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_importer.h - a process that imports a map and writes into it all the time, and counts its
 * passes over the map in memory that it shares with the owner. The owner is its parent.
 */
#ifndef TESTS_DOCA_MMAP_IMPORTER_H
#define TESTS_DOCA_MMAP_IMPORTER_H

#include "exporter.h"

#define BYTES (512 * 1024u) /* the longest map that it can write */
#define MARK 0xee           /* what it writes */
#define PASSES 3

enum writer { BY_CPU, BY_DMA, BY_CHILD, WITHOUT_FDS };

void start_importer(void);
void end_importer(void);

/*
 * Import it and write until end_writes; returns after PASSES passes. An importer WITHOUT_FDS ends
 * then.
 */
void begin_writes(enum writer writer, const struct exporter *e);
void end_writes(enum writer writer);
/* n more passes from now on, whether or not their writes succeed. */
void wait_for_passes(unsigned n);
/* SIGSTOP, until it has stopped; SIGCONT. */
void silence(void);
void speak(void);

/* Export by PCI, for reading and writing. */
struct doca_mmap *export(char *memory, size_t length, struct exporter *e);
/* Bytes that are not zero. */
size_t count_marks(const char *memory, size_t length);

#endif
