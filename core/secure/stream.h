/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.h - streams of the host: TLS 1.3 on a socket, by OpenSSL. Thread: any, see records.h. */
#ifndef GN_SECURE_STREAM_H
#define GN_SECURE_STREAM_H

#include <gantry/records.h>

extern const struct gantry_stream_ops gn_stream_ops;

/*
 * gn_stream_rekey_after - change after how many sent bytes a stream replaces its key; for tests
 *
 *     stream  of gn_stream_ops.open
 *     bytes   at least 1
 */
void gn_stream_rekey_after(void *stream, uint64_t bytes);

/* Returns how often the stream has replaced the key by which it sends; for tests. */
unsigned gn_stream_rekeyed(const void *stream);

#endif
