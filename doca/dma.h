/* SPDX-License-Identifier: BSD-3-Clause */
/* dma.h - what one copy may be, by tasks and by jobs alike. */
#ifndef GD_DMA_H
#define GD_DMA_H

#include "memory.h"

enum { GD_DMA_MAX_LIST = 64, GD_DMA_MAX_BYTES = 2 << 20 };

/* Could it be done? SUCCESS or INVALID_VALUE: nothing to copy, too much, too long a list, no room. */
doca_error_t gd_dma_check(const struct doca_buf *src, const struct doca_buf *dst);
/* Do it: as gd_dma_check and gd_buf_copy. */
doca_error_t gd_dma_copy(const struct doca_buf *src, struct doca_buf *dst);

#endif
