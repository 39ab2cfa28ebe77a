/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dma.h - DMA by jobs of work queues, for programs of the WorkQ interface (DOCA before tasks)
 */
#ifndef DOCA_WORKQ_DMA_H
#define DOCA_WORKQ_DMA_H

#include <stdint.h>

#include <doca_buf.h>
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_devinfo;
struct doca_dma;

enum doca_dma_job_types {
	DOCA_DMA_JOB_MEMCPY = DOCA_ACTION_DMA_FIRST + 1,
};

/* Append the data of src_buff to the data of dst_buff. Both may be lists. */
struct doca_dma_job_memcpy {
	struct doca_job base; /* type DOCA_DMA_JOB_MEMCPY */
	struct doca_buf *dst_buff;
	const struct doca_buf *src_buff;
};

/* Result of the job. It is stored in result.u64 of the event. */
struct doca_dma_memcpy_result {
	doca_error_t result;
};

/*
 * Create a DMA context.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_STABLE doca_error_t doca_workq_dma_create(struct doca_dma **dma);
/*
 * Destroy the context.
 * Errors:
 *     IN_USE  the context is started
 */
DOCA_STABLE doca_error_t doca_workq_dma_destroy(struct doca_dma *dma);
/* Returns the generic context. Returns NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_workq_dma_as_ctx(struct doca_dma *dma);
#define doca_dma_create doca_workq_dma_create
#define doca_dma_destroy doca_workq_dma_destroy
#define doca_dma_as_ctx doca_workq_dma_as_ctx

/* Returns SUCCESS if the device supports jobs of the type, NOT_SUPPORTED if not. */
DOCA_STABLE doca_error_t doca_dma_job_get_supported(struct doca_devinfo *devinfo,
						    enum doca_dma_job_types job_type);
/* Get the maximum number of buffers in a list, and of bytes of a job. */
DOCA_STABLE doca_error_t doca_dma_get_max_list_buf_num_elem(const struct doca_devinfo *devinfo,
							    uint32_t *max_list_num_elem);
DOCA_STABLE doca_error_t doca_dma_get_max_buf_size(const struct doca_devinfo *devinfo,
						   uint64_t *max_buf_size);

#ifdef __cplusplus
}
#endif

#endif
