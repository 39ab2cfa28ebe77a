/* SPDX-License-Identifier: BSD-3-Clause */
/* dma.h - the limits of one copy, and the copy itself, for tasks and for jobs */
#ifndef GD_DMA_H
#define GD_DMA_H

#include "buf/buf.h"

enum { GD_DMA_MAX_LIST = 64, GD_DMA_MAX_BYTES = 2 << 20 };

/*
 * Like gd_buf_copy(). In addition INVALID_VALUE if there is no data, more than GD_DMA_MAX_BYTES, a
 * list longer than GD_DMA_MAX_LIST, or if none of the devices can use all buffers of a list.
 */
doca_error_t gd_dma_copy(struct doca_dev *const *devs, uint32_t n_devs, const struct doca_buf *src,
			 struct doca_buf *dst);

#endif
