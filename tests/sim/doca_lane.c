/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_lane.c - in the image: a consumer and a producer of a connection, with the memory that they
 * use
 */
#include "doca_image.h"

#include <string.h>
#include <sys/mman.h>

#define STRIDE SIM_DOCA_BUF /* bytes from one slot to the next */
#define POSTED 0x5a         /* fills a posted buffer: a receive may overwrite it */
#define TAKEN 0xc3          /* fills a buffer whose receive has completed: it must not change */
#define STOPPED 0x77        /* fills a buffer whose map was stopped: it must not change */

static void check_bytes(const struct lane *lane, const uint8_t *at, size_t bytes, uint8_t wanted,
			const char *when)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != wanted) {
			sim_wrong("side %u: byte %zu of a buffer was written %s",
				  lane->peer->program->job->side, i, when);
			return;
		}
}

static const struct sim_doca_job *job_of(const struct lane *lane)
{
	return lane->peer->program->job;
}

/* -- receives -- */

static void end_post(struct slot *slot)
{
	if (slot->buf)
		OK(doca_buf_dec_refcount(slot->buf, NULL));
	slot->buf = NULL;
	slot->busy = false;
	slot->lane->n_posted--;
}

static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
			union doca_data ctx_data)
{
	struct slot *slot = task_data.ptr;
	struct lane *lane = ctx_data.ptr;
	uint32_t room = job_of(lane)->buf_bytes;
	size_t bytes = 0;

	OK(doca_buf_get_data_len(slot->buf, &bytes));
	if (bytes > room)
		sim_wrong("a receive has %zu bytes, in a buffer of %u", bytes, room);
	sim_doca_arrived(slot->task, doca_comch_consumer_task_post_recv_get_producer_id(task),
			 slot->at, (uint32_t)bytes,
			 doca_comch_consumer_task_post_recv_get_imm_data(task),
			 doca_comch_consumer_task_post_recv_get_imm_data_len(task));
	sim_doca_done(slot->task, DOCA_SUCCESS);
	check_bytes(lane, slot->at + bytes, room - bytes, POSTED, "behind the data of a receive");
	memset(slot->at, TAKEN, room);
	__atomic_fetch_add(&lane->n_received, 1, __ATOMIC_RELAXED);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	end_post(slot);
}

static void on_recv_error(struct doca_comch_consumer_task_post_recv *task,
			  union doca_data task_data, union doca_data ctx_data)
{
	struct slot *slot = task_data.ptr;

	(void)ctx_data;
	slot->lane->is_reset = true;
	sim_doca_done(slot->task,
		      (int)doca_task_get_status(doca_comch_consumer_task_post_recv_as_task(task)));
	memset(slot->at, TAKEN, job_of(slot->lane)->buf_bytes);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	end_post(slot);
}

static void post(struct lane *lane, struct slot *slot)
{
	struct doca_comch_consumer_task_post_recv *task;
	uint32_t room = job_of(lane)->buf_bytes;
	doca_error_t result;

	check_bytes(lane, slot->at, room, TAKEN, "after its receive had completed");
	memset(slot->at, POSTED, room);
	OK(doca_buf_inventory_buf_get_by_addr(lane->inventory, lane->mmap, slot->at, room,
					      &slot->buf));
	OK(doca_comch_consumer_task_post_recv_alloc_init(lane->consumer, slot->buf, &task));
	doca_task_set_user_data(doca_comch_consumer_task_post_recv_as_task(task),
				(union doca_data){.ptr = slot});
	slot->task = sim_doca_post(lane->in_queue);
	slot->handle = doca_comch_consumer_task_post_recv_as_task(task);
	slot->busy = true;
	lane->n_posted++;
	result = doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task));
	if (result == DOCA_SUCCESS)
		return;
	sim_doca_refused(slot->task, (int)result);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	memset(slot->at, TAKEN, room);
	end_post(slot);
}

/* -- sends -- */

static void on_send_end(struct doca_comch_producer_task_send *task, union doca_data task_data,
			union doca_data ctx_data)
{
	struct doca_task *t = doca_comch_producer_task_send_as_task(task);
	struct slot *slot = task_data.ptr;
	struct lane *lane = ctx_data.ptr;
	doca_error_t status = doca_task_get_status(t);

	sim_doca_done(slot->task, (int)status);
	if (status == DOCA_SUCCESS)
		__atomic_fetch_add(&lane->n_sent, 1, __ATOMIC_RELAXED);
	if (slot->buf)
		OK(doca_buf_dec_refcount(slot->buf, NULL));
	slot->buf = NULL;
	slot->busy = false;
	lane->n_sending--;
	memset(slot->at, 0xee, STRIDE); /* the program owns the buffer again */
	doca_task_free(t);
}

static uint32_t draw_bytes(const struct sim_doca_job *job)
{
	static const uint32_t most[] = {1, 40, 150, 520, SIM_DOCA_BUF};
	uint32_t bytes = sim_draw(most[sim_draw(5)] + 1);

	if (bytes > job->data_bytes)
		bytes = job->data_bytes;
	if (is_odd(job) && job->buf_bytes < SIM_DOCA_BUF)
		bytes = job->buf_bytes + 1 + sim_draw(SIM_DOCA_BUF - job->buf_bytes);
	return bytes;
}

/* Returns the id of a consumer of the peer. 0: the program knows none. */
static uint32_t draw_consumer(struct lane *lane)
{
	uint32_t ids[IDS], n = 0;

	if (is_odd(job_of(lane)))
		return 0x1234; /* no consumer has this id */
	for (uint32_t i = 0; i < IDS; i++) {
		ids[n] = __atomic_load_n(&lane->peer->ids[i], __ATOMIC_RELAXED);
		n += ids[n] != 0;
	}
	return n != 0 ? ids[sim_draw(n)] : 0;
}

static void submit_send(struct lane *lane, struct slot *slot, uint32_t to)
{
	const struct sim_doca_job *job = job_of(lane);
	uint32_t bytes = draw_bytes(job), imm_bytes = sim_draw(job->imm_bytes + 1);
	struct doca_comch_producer_task_send *task;
	uint8_t imm[SIM_DOCA_IMM];
	doca_error_t result;

	slot->task = sim_doca_send(lane->out_queue, to, slot->at, bytes, imm, imm_bytes);
	if (bytes != 0)
		OK(doca_buf_inventory_buf_get_by_data(lane->inventory, lane->mmap, slot->at, bytes,
						      &slot->buf));
	OK(doca_comch_producer_task_send_alloc_init(lane->producer, slot->buf, imm, imm_bytes, to,
						    &task));
	doca_task_set_user_data(doca_comch_producer_task_send_as_task(task),
				(union doca_data){.ptr = slot});
	slot->busy = true;
	lane->n_sending++;
	result = doca_task_submit(doca_comch_producer_task_send_as_task(task));
	if (result == DOCA_SUCCESS)
		return;
	sim_doca_refused(slot->task, (int)result);
	doca_task_free(doca_comch_producer_task_send_as_task(task));
	if (slot->buf)
		OK(doca_buf_dec_refcount(slot->buf, NULL));
	slot->buf = NULL;
	slot->busy = false;
	lane->n_sending--;
}

static struct slot *free_slot(struct slot *slots, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!slots[i].busy)
			return &slots[i];
	return NULL;
}

/* -- start and stop -- */

static void configure(struct lane *lane, struct doca_ctx *ctx)
{
	OK(doca_pe_connect_ctx(lane->pe, ctx));
	OK(doca_ctx_set_user_data(ctx, (union doca_data){.ptr = lane}));
	OK(doca_ctx_set_state_changed_cb(ctx, on_state));
}

static void open_memory(struct lane *lane)
{
	const struct sim_doca_job *job = job_of(lane);

	lane->bytes = (size_t)(job->posts + job->depth) * STRIDE;
	lane->memory = mmap(NULL, lane->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	memset(lane->memory, TAKEN, lane->bytes);
	for (uint32_t i = 0; i < job->posts; i++)
		lane->posts[i] = (struct slot){.lane = lane, .at = lane->memory + i * STRIDE};
	for (uint32_t i = 0; i < job->depth; i++)
		lane->sends[i] = (struct slot){.lane = lane,
					       .at = lane->memory + (job->posts + i) * STRIDE};
	OK(doca_mmap_create(&lane->mmap));
	OK(doca_mmap_add_dev(lane->mmap, lane->peer->program->dev));
	OK(doca_mmap_set_permissions(lane->mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_memrange(lane->mmap, lane->memory, lane->bytes));
	OK(doca_mmap_start(lane->mmap));
	OK(doca_buf_inventory_create(2 * SIM_DOCA_DEPTH, &lane->inventory));
	OK(doca_buf_inventory_start(lane->inventory));
}

/* True for SUCCESS and IN_PROGRESS; false for BAD_STATE: the connection has ended. */
static bool is_started(doca_error_t result)
{
	if (result != DOCA_SUCCESS && result != DOCA_ERROR_IN_PROGRESS &&
	    result != DOCA_ERROR_BAD_STATE)
		doca_must("start of a consumer or producer", result);
	return result != DOCA_ERROR_BAD_STATE;
}

static bool open_consumer(struct lane *lane)
{
	doca_error_t result = doca_comch_consumer_create(lane->peer->conn, lane->mmap,
							 &lane->consumer);

	if (!is_started(result))
		return false;
	lane->in = doca_comch_consumer_as_ctx(lane->consumer);
	configure(lane, lane->in);
	OK(doca_comch_consumer_task_post_recv_set_conf(lane->consumer, on_received, on_recv_error,
						       SIM_DOCA_DEPTH));
	OK(doca_comch_consumer_set_imm_data_len(lane->consumer, job_of(lane)->imm_bytes));
	OK(doca_comch_consumer_get_id(lane->consumer, &lane->consumer_id));
	lane->in_queue = sim_doca_queue(lane->peer->number, true, lane->consumer_id);
	return is_started(doca_ctx_start(lane->in));
}

static bool open_producer(struct lane *lane)
{
	doca_error_t result = doca_comch_producer_create(lane->peer->conn, &lane->producer);
	uint32_t id;

	if (!is_started(result))
		return false;
	lane->out = doca_comch_producer_as_ctx(lane->producer);
	configure(lane, lane->out);
	OK(doca_comch_producer_task_send_set_conf(lane->producer, on_send_end, on_send_end,
						  SIM_DOCA_DEPTH));
	OK(doca_comch_producer_get_id(lane->producer, &id));
	lane->out_queue = sim_doca_queue(lane->peer->number, false, id);
	return is_started(doca_ctx_start(lane->out));
}

static void begin(struct lane *lane)
{
	lane->pe = lane->peer->program->pe;
	if (lane->own_pe)
		OK(doca_pe_create(&lane->pe));
	open_memory(lane);
	lane->is_bad = !open_consumer(lane) || !open_producer(lane);
}

static bool is_idle(struct doca_ctx *ctx)
{
	return !ctx || state_of(ctx) == DOCA_CTX_STATE_IDLE;
}

static void stop_ctx(struct doca_ctx *ctx, uint32_t queue)
{
	doca_error_t result;

	if (!ctx)
		return;
	sim_doca_queue_stop(queue);
	result = doca_ctx_stop(ctx);
	if (result != DOCA_SUCCESS && result != DOCA_ERROR_IN_PROGRESS)
		doca_must("stop of a consumer or producer", result);
}

/*
 * Free tasks in flight: their callbacks do not run, and their buffers stay in use until the
 * consumer is idle.
 */
static void drop_posts(struct lane *lane)
{
	for (uint32_t i = 0; i < SIM_DOCA_DEPTH; i++) {
		struct slot *slot = &lane->posts[i];

		if (!slot->busy || slot->is_dropped || !is_odd(job_of(lane)))
			continue;
		slot->is_dropped = true;
		lane->n_posted--;
		sim_doca_dropped(slot->task);
		doca_task_free(slot->handle);
	}
}

static void release_dropped(struct lane *lane)
{
	for (uint32_t i = 0; i < SIM_DOCA_DEPTH; i++)
		if (lane->posts[i].is_dropped)
			OK(doca_buf_dec_refcount(lane->posts[i].buf, NULL));
}

static void begin_to_stop(struct lane *lane)
{
	bool producer_first = sim_draw(2) != 0;

	lane->stops = true;
	drop_posts(lane);
	if (lane->n_posted != 0 && is_odd(job_of(lane)) &&
	    doca_mmap_stop(lane->mmap) != DOCA_ERROR_NOT_PERMITTED)
		sim_wrong("doca_mmap_stop() does not reject a map that has buffers");
	if (producer_first)
		stop_ctx(lane->out, lane->out_queue);
	stop_ctx(lane->in, lane->in_queue);
	if (!producer_first)
		stop_ctx(lane->out, lane->out_queue);
}

static void destroy_contexts(struct lane *lane)
{
	if (lane->in) {
		OK(doca_comch_consumer_destroy(lane->consumer));
		sim_doca_destroyed(lane->in);
	}
	if (lane->out) {
		OK(doca_comch_producer_destroy(lane->producer));
		sim_doca_destroyed(lane->out);
	}
	lane->in = lane->out = NULL;
}

static void close_lane(struct lane *lane)
{
	bool map_first = sim_draw(2) != 0;

	if (lane->n_posted != 0 || lane->n_sending != 0)
		sim_wrong(
			"a consumer or producer is idle, and %u receives and %u sends have not completed",
			lane->n_posted, lane->n_sending);
	release_dropped(lane);
	if (!map_first)
		destroy_contexts(lane);
	OK(doca_mmap_stop(lane->mmap));
	memset(lane->memory, STOPPED, lane->bytes);
	pause_ns(sim_draw(50000));
	check_bytes(lane, lane->memory, lane->bytes, STOPPED,
		    "after doca_mmap_stop() had returned");
	destroy_contexts(lane);
	OK(doca_mmap_destroy(lane->mmap));
	OK(doca_buf_inventory_destroy(lane->inventory));
	munmap(lane->memory, lane->bytes);
	if (lane->own_pe)
		OK(doca_pe_destroy(lane->pe));
}

/* Submit a task while its queue stops: the library ends the task without executing it. */
static void submit_late(struct lane *lane)
{
	struct slot *slot = free_slot(lane->posts, job_of(lane)->posts);

	if (lane->in && state_of(lane->in) == DOCA_CTX_STATE_STOPPING && slot)
		post(lane, slot);
}

static void work(struct lane *lane)
{
	const struct sim_doca_job *job = job_of(lane);
	struct slot *slot;
	uint32_t to;

	if (state_of(lane->in) == DOCA_CTX_STATE_RUNNING)
		while ((slot = free_slot(lane->posts, job->posts)) &&
		       (!lane->is_reset || is_odd(job)) && sim_draw(8) != 0)
			post(lane, slot);
	if (state_of(lane->out) != DOCA_CTX_STATE_RUNNING || sim_now() < lane->again_ns)
		return;
	while (__atomic_load_n(&lane->n_sent, __ATOMIC_RELAXED) + lane->n_sending < job->sends &&
	       sim_draw(4) != 0) {
		slot = free_slot(lane->sends, job->depth);
		to = draw_consumer(lane);
		if (!slot || to == 0)
			return;
		submit_send(lane, slot, to);
		if (!slot->busy) { /* the library rejected the task */
			lane->again_ns = sim_now() + sim_draw(20000);
			return;
		}
	}
}

bool lane_step(struct lane *lane)
{
	if (__atomic_load_n(&lane->is_done, __ATOMIC_ACQUIRE))
		return true;
	if (!lane->stops && !lane->is_bad &&
	    !__atomic_load_n(&lane->wants_stop, __ATOMIC_ACQUIRE)) {
		work(lane);
		return false;
	}
	if (!lane->stops && __atomic_load_n(&lane->wants_stop, __ATOMIC_ACQUIRE))
		begin_to_stop(lane);
	if (!lane->stops)
		return false;
	if (!is_idle(lane->in) || !is_idle(lane->out)) {
		if (is_odd(job_of(lane)))
			submit_late(lane);
		return false;
	}
	close_lane(lane);
	__atomic_store_n(&lane->is_done, true, __ATOMIC_RELEASE);
	return true;
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;

	begin(lane);
	while (!lane_step(lane))
		if (!doca_pe_progress(lane->pe) && sim_draw(3) == 0)
			pause_ns(sim_draw(20000));
	return NULL;
}

void lane_open(struct lane *lane, struct peer *peer, uint32_t number)
{
	*lane = (struct lane){
		.peer = peer, .number = number, .own_pe = peer->program->job->threads};
	if (lane->own_pe)
		pthread_create(&lane->thread, NULL, run_lane, lane);
	else
		begin(lane);
}

void lane_stop(struct lane *lane)
{
	__atomic_store_n(&lane->wants_stop, true, __ATOMIC_RELEASE);
}

void lane_join(struct lane *lane)
{
	if (lane->own_pe)
		pthread_join(lane->thread, NULL);
}
