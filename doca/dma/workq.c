/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workq.c - DMA by the WorkQ interface: contexts and queues of jobs, which programs used before
 * tasks existed. The headers are in include/doca/workq.
 *
 * A queue is a ring of copies of jobs. The thread that retrieves an event runs the oldest job, so a
 * queue with jobs always has an event to retrieve. Functions whose names have another meaning in
 * the current interface are named doca_workq_* in the library; the headers rename them.
 */
#include <doca_dma.h> /* the WorkQ header */

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/gd_log.h"
#include "device/gd_device.h"
#include "dma/dma.h"

enum { MAX_DEVS = 16, MAX_CONTEXTS = 512 };

struct doca_workq {
	struct doca_dma_job_memcpy *jobs;
	uint32_t depth, first, n;
	uint32_t n_contexts;
	int fd; /* -1: waiting is not enabled */
	bool is_armed;
};

/* Link of a context to a queue. */
struct link {
	struct link *next;
	struct doca_workq *workq;
};

/* A context of this interface. Programs use it as struct doca_dma and struct doca_ctx. */
struct old_ctx {
	struct doca_dev *devs[MAX_DEVS];
	uint32_t n_devs;
	bool is_started;
	struct link *links;
};

static struct old_ctx *of(struct doca_ctx *ctx)
{
	return (struct old_ctx *)ctx;
}

/* -- contexts -- */

doca_error_t doca_workq_dma_create(struct doca_dma **dma)
{
	struct old_ctx *ctx;

	if (!dma)
		return DOCA_ERROR_INVALID_VALUE;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return DOCA_ERROR_NO_MEMORY;
	*dma = (struct doca_dma *)ctx;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_dma_destroy(struct doca_dma *dma)
{
	if (!dma)
		return DOCA_ERROR_INVALID_VALUE;
	if (((struct old_ctx *)dma)->is_started)
		return DOCA_ERROR_IN_USE;
	free(dma);
	return DOCA_SUCCESS;
}

struct doca_ctx *doca_workq_dma_as_ctx(struct doca_dma *dma)
{
	return (struct doca_ctx *)dma;
}

static uint32_t find_dev(const struct old_ctx *ctx, const struct doca_dev *dev)
{
	uint32_t i;

	for (i = 0; i < ctx->n_devs && ctx->devs[i] != dev; i++)
		;
	return i;
}

doca_error_t doca_ctx_dev_add(struct doca_ctx *doca_ctx, struct doca_dev *dev)
{
	struct old_ctx *ctx = of(doca_ctx);

	if (!ctx || !gd_dev_is_open(dev))
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->is_started)
		return DOCA_ERROR_BAD_STATE;
	if (find_dev(ctx, dev) < ctx->n_devs)
		return DOCA_ERROR_IN_USE;
	if (ctx->n_devs == MAX_DEVS)
		return DOCA_ERROR_NO_MEMORY;
	ctx->devs[ctx->n_devs++] = dev;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_dev_rm(struct doca_ctx *doca_ctx, struct doca_dev *dev)
{
	struct old_ctx *ctx = of(doca_ctx);
	uint32_t i;

	if (!ctx || !dev)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->is_started)
		return DOCA_ERROR_BAD_STATE;
	i = find_dev(ctx, dev);
	if (i == ctx->n_devs)
		return DOCA_ERROR_NOT_FOUND;
	ctx->devs[i] = ctx->devs[--ctx->n_devs];
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_ctx_start(struct doca_ctx *doca_ctx)
{
	struct old_ctx *ctx = of(doca_ctx);

	if (!ctx)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->is_started)
		return DOCA_ERROR_BAD_STATE;
	if (ctx->n_devs == 0) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "DMA context cannot start: it has no device: call doca_ctx_dev_add() first");
		return DOCA_ERROR_BAD_STATE;
	}
	ctx->is_started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_ctx_stop(struct doca_ctx *doca_ctx)
{
	struct old_ctx *ctx = of(doca_ctx);

	if (!ctx)
		return DOCA_ERROR_INVALID_VALUE;
	if (!ctx->is_started)
		return DOCA_ERROR_BAD_STATE;
	if (ctx->links) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "DMA context cannot stop: it has a work queue: call doca_ctx_workq_rm() first");
		return DOCA_ERROR_NOT_PERMITTED;
	}
	ctx->is_started = false;
	return DOCA_SUCCESS;
}

/*
 * Returns the address of the pointer to the link of a queue. That pointer is NULL if the context
 * does not have the queue.
 */
static struct link **find_link(struct old_ctx *ctx, const struct doca_workq *workq)
{
	struct link **at = &ctx->links;

	while (*at && (*at)->workq != workq)
		at = &(*at)->next;
	return at;
}

doca_error_t doca_ctx_workq_add(struct doca_ctx *doca_ctx, struct doca_workq *workq)
{
	struct old_ctx *ctx = of(doca_ctx);
	struct link *link;

	if (!ctx || !workq)
		return DOCA_ERROR_INVALID_VALUE;
	if (!ctx->is_started)
		return DOCA_ERROR_BAD_STATE;
	if (*find_link(ctx, workq))
		return DOCA_ERROR_IN_USE;
	link = workq->n_contexts < MAX_CONTEXTS ? malloc(sizeof(*link)) : NULL;
	if (!link)
		return DOCA_ERROR_NO_MEMORY;
	*link = (struct link){.next = ctx->links, .workq = workq};
	ctx->links = link;
	workq->n_contexts++;
	return DOCA_SUCCESS;
}

static bool has_jobs_of(const struct doca_workq *workq, const struct doca_ctx *ctx)
{
	uint32_t i;

	for (i = 0; i < workq->n; i++)
		if (workq->jobs[(workq->first + i) % workq->depth].base.ctx == ctx)
			return true;
	return false;
}

doca_error_t doca_ctx_workq_rm(struct doca_ctx *doca_ctx, struct doca_workq *workq)
{
	struct old_ctx *ctx = of(doca_ctx);
	struct link **at, *link;

	if (!ctx || !workq)
		return DOCA_ERROR_INVALID_VALUE;
	if (!ctx->is_started)
		return DOCA_ERROR_BAD_STATE;
	at = find_link(ctx, workq);
	link = *at;
	if (!link)
		return DOCA_ERROR_NOT_FOUND;
	if (has_jobs_of(workq, doca_ctx))
		return DOCA_ERROR_NOT_PERMITTED;
	*at = link->next;
	free(link);
	workq->n_contexts--;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_max_num_ctx(uint32_t *max_num_ctx)
{
	if (!max_num_ctx)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_ctx = MAX_CONTEXTS;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_event_driven_supported(struct doca_ctx *ctx,
						 uint8_t *event_driven_supported)
{
	if (!ctx || !event_driven_supported)
		return DOCA_ERROR_INVALID_VALUE;
	*event_driven_supported = 1;
	return DOCA_SUCCESS;
}

doca_error_t doca_dma_job_get_supported(struct doca_devinfo *devinfo,
					enum doca_dma_job_types job_type)
{
	if (!devinfo)
		return DOCA_ERROR_INVALID_VALUE;
	return job_type == DOCA_DMA_JOB_MEMCPY ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_dma_get_max_list_buf_num_elem(const struct doca_devinfo *devinfo,
						uint32_t *max_list_num_elem)
{
	if (!devinfo || !max_list_num_elem)
		return DOCA_ERROR_INVALID_VALUE;
	*max_list_num_elem = GD_DMA_MAX_LIST;
	return DOCA_SUCCESS;
}

doca_error_t doca_dma_get_max_buf_size(const struct doca_devinfo *devinfo, uint64_t *max_buf_size)
{
	if (!devinfo || !max_buf_size)
		return DOCA_ERROR_INVALID_VALUE;
	*max_buf_size = GD_DMA_MAX_BYTES;
	return DOCA_SUCCESS;
}

/* -- work queues -- */

static doca_error_t set_depth(struct doca_workq *workq, uint32_t depth)
{
	struct doca_dma_job_memcpy *jobs = calloc(depth, sizeof(*jobs));

	if (!jobs)
		return DOCA_ERROR_NO_MEMORY;
	free(workq->jobs);
	workq->jobs = jobs;
	workq->depth = depth;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_create(uint32_t depth, struct doca_workq **workq_p)
{
	struct doca_workq *workq;

	if (depth == 0 || !workq_p)
		return DOCA_ERROR_INVALID_VALUE;
	workq = calloc(1, sizeof(*workq));
	if (!workq || set_depth(workq, depth) != DOCA_SUCCESS) {
		free(workq);
		return DOCA_ERROR_NO_MEMORY;
	}
	workq->fd = -1;
	*workq_p = workq;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_destroy(struct doca_workq *workq)
{
	if (!workq)
		return DOCA_ERROR_INVALID_VALUE;
	if (workq->n_contexts)
		return DOCA_ERROR_IN_USE;
	if (workq->fd >= 0)
		close(workq->fd);
	free(workq->jobs);
	free(workq);
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_get_depth(const struct doca_workq *workq, uint32_t *depth)
{
	if (!workq || !depth)
		return DOCA_ERROR_INVALID_VALUE;
	*depth = workq->depth;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_set_depth(struct doca_workq *workq, uint32_t depth)
{
	if (!workq || depth == 0)
		return DOCA_ERROR_INVALID_VALUE;
	return workq->n_contexts ? DOCA_ERROR_BAD_STATE : set_depth(workq, depth);
}

static void signal_armed(struct doca_workq *workq)
{
	const uint64_t one = 1;
	ssize_t n;

	if (!workq->is_armed)
		return;
	workq->is_armed = false;
	do
		n = write(workq->fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

doca_error_t doca_workq_submit(struct doca_workq *workq, const struct doca_job *job)
{
	const struct doca_dma_job_memcpy *copy = (const struct doca_dma_job_memcpy *)job;
	struct old_ctx *ctx;

	if (!workq || !job || !job->ctx || job->type != DOCA_DMA_JOB_MEMCPY || !copy->src_buff ||
	    !copy->dst_buff)
		return DOCA_ERROR_INVALID_VALUE;
	ctx = of(job->ctx);
	if (!ctx->is_started)
		return DOCA_ERROR_BAD_STATE;
	if (!*find_link(ctx, workq))
		return DOCA_ERROR_NOT_FOUND;
	if (workq->n == workq->depth)
		return DOCA_ERROR_NO_MEMORY;
	workq->jobs[(workq->first + workq->n++) % workq->depth] = *copy;
	signal_armed(workq);
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_progress_retrieve(struct doca_workq *workq, struct doca_event *ev,
					  int flags)
{
	const struct doca_dma_job_memcpy *job;
	const struct old_ctx *ctx;
	doca_error_t result;

	if (!workq || !ev || flags != DOCA_WORKQ_RETRIEVE_FLAGS_NONE)
		return DOCA_ERROR_INVALID_VALUE;
	if (workq->n == 0)
		return DOCA_ERROR_AGAIN;
	job = &workq->jobs[workq->first];
	ctx = of(job->base.ctx);
	result = gd_dma_copy(ctx->devs, ctx->n_devs, job->src_buff, job->dst_buff);
	*ev = (struct doca_event){
		.type = job->base.type, .user_data = job->base.user_data, .result.u64 = result};
	workq->first = (workq->first + 1) % workq->depth;
	workq->n--;
	return result == DOCA_SUCCESS ? DOCA_SUCCESS : DOCA_ERROR_IO_FAILED;
}

doca_error_t doca_workq_set_event_driven_enable(struct doca_workq *workq, uint8_t enable)
{
	if (!workq)
		return DOCA_ERROR_INVALID_VALUE;
	if (workq->n_contexts)
		return DOCA_ERROR_BAD_STATE;
	if ((workq->fd >= 0) == (enable != 0))
		return DOCA_SUCCESS;
	if (enable) {
		workq->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		return workq->fd < 0 ? DOCA_ERROR_DRIVER : DOCA_SUCCESS;
	}
	close(workq->fd);
	workq->fd = -1;
	workq->is_armed = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_get_event_driven_enable(struct doca_workq *workq, uint8_t *enabled)
{
	if (!workq || !enabled)
		return DOCA_ERROR_INVALID_VALUE;
	*enabled = workq->fd >= 0;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_get_event_handle(struct doca_workq *workq, doca_event_handle_t *handle)
{
	if (!workq || !handle)
		return DOCA_ERROR_INVALID_VALUE;
	if (workq->fd < 0)
		return DOCA_ERROR_BAD_STATE;
	*handle = workq->fd;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_event_handle_arm(struct doca_workq *workq)
{
	if (!workq)
		return DOCA_ERROR_INVALID_VALUE;
	if (workq->fd < 0)
		return DOCA_ERROR_BAD_STATE;
	workq->is_armed = true;
	if (workq->n)
		signal_armed(workq);
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_event_handle_clear(struct doca_workq *workq, doca_event_handle_t handle)
{
	uint64_t count;

	(void)handle;
	if (!workq)
		return DOCA_ERROR_INVALID_VALUE;
	if (workq->fd < 0)
		return DOCA_ERROR_BAD_STATE;
	while (read(workq->fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	return DOCA_SUCCESS;
}
