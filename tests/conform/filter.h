/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter.h - a record filter for tests. It has a handshake of two messages, and a keyed XOR with a
 * checksum: it shows where the bytes go, and protects nothing.
 */
#ifndef CONFORM_FILTER_H
#define CONFORM_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include <gantry/records.h>

extern const struct gantry_records_ops filter;
extern int filter_silent;  /* ends that listen do not answer the handshake */
extern int filter_rejects; /* ends that listen send an alert, and fail the handshake */
extern int filter_busy;    /* ends that listen have too many handshakes */
extern unsigned n_filters; /* that are open */

/* The driver: call filter_search() for all bytes that the transport sends from now on. */
void filter_spy(void);
/* Look for secrets in these bytes; change the last byte if a case wants that. */
void filter_search(uint8_t *bytes, size_t n);
void filter_cases(void);

#endif
