/* SPDX-License-Identifier: BSD-3-Clause */
/* dma.h - what one copy may be, by tasks and by jobs alike. */
#ifndef GD_DMA_H
#define GD_DMA_H

#include "buf/buf.h"

enum { GD_DMA_MAX_LIST = 64, GD_DMA_MAX_BYTES = 2 << 20 };

/* As gd_buf_copy, and INVALID_VALUE for nothing to copy, too much, or too long a list. */
doca_error_t gd_dma_copy(const struct doca_buf *src, struct doca_buf *dst);

#endif
