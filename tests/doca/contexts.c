/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of all kinds of contexts whose start does not wait, tested with each kind: the states, the
 * calls that each state rejects, and their errors. The tests of Comch cover clients and consumers,
 * whose start waits, and producers.
 */
#include <doca_aes_gcm.h>
#include <doca_comch.h>
#include <doca_compress.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_erasure_coding.h>
#include <doca_mmap_advise.h>
#include <doca_pe.h>
#include <doca_rdma.h>
#include <doca_sha.h>
#include <doca_sync_event.h>

#include <stdlib.h>
#include <string.h>

#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT_MESSAGE(DOCA_SUCCESS, (call), kind->name)
#define IS(error, call) TEST_ASSERT_EQUAL_INT_MESSAGE((error), (call), kind->name)

static struct doca_devinfo **list;
static struct doca_dev *dev;
static struct doca_dev_rep *rep;
static struct doca_pe *pe;

static union {
	struct doca_aes_gcm *aes_gcm;
	struct doca_comch_server *server;
	struct doca_compress *compress;
	struct doca_dma *dma;
	struct doca_ec *ec;
	struct doca_mmap_advise *advise;
	struct doca_rdma *rdma;
	struct doca_sha *sha;
	struct doca_sync_event *event;
} made;

/* The callback of all kinds of tasks; no task runs in these tests. */
static void on_task(void)
{
}

static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *buf, uint32_t len,
		       struct doca_comch_connection *conn)
{
	(void)event;
	(void)buf;
	(void)len;
	(void)conn;
}

static void on_connection(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *conn, uint8_t ok)
{
	(void)event;
	(void)conn;
	(void)ok;
}

/* -- each kind: creation, configuration, destruction -- */

static struct doca_ctx *make_server(void)
{
	return doca_comch_server_create(dev, rep, "contexts", &made.server)
		       ? NULL
		       : doca_comch_server_as_ctx(made.server);
}

static doca_error_t set_server(void)
{
	doca_error_t result = doca_comch_server_event_msg_recv_register(made.server, on_message);

	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_connection_status_changed_register(
			made.server, on_connection, on_connection);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_task_send_set_conf(
			made.server, (doca_comch_task_send_completion_cb_t)on_task,
			(doca_comch_task_send_completion_cb_t)on_task, 4);
	return result;
}

static doca_error_t destroy_server(void)
{
	return doca_comch_server_destroy(made.server);
}

static struct doca_ctx *make_compress(void)
{
	return doca_compress_create(dev, &made.compress) ? NULL
							 : doca_compress_as_ctx(made.compress);
}

static doca_error_t set_compress(void)
{
	return doca_compress_task_compress_deflate_set_conf(
		made.compress, (doca_compress_task_compress_deflate_completion_cb_t)on_task,
		(doca_compress_task_compress_deflate_completion_cb_t)on_task, 4);
}

static doca_error_t destroy_compress(void)
{
	return doca_compress_destroy(made.compress);
}

static struct doca_ctx *make_dma(void)
{
	return doca_dma_create(dev, &made.dma) ? NULL : doca_dma_as_ctx(made.dma);
}

static doca_error_t set_dma(void)
{
	return doca_dma_task_memcpy_set_conf(made.dma,
					     (doca_dma_task_memcpy_completion_cb_t)on_task,
					     (doca_dma_task_memcpy_completion_cb_t)on_task, 4);
}

static doca_error_t destroy_dma(void)
{
	return doca_dma_destroy(made.dma);
}

static struct doca_ctx *make_ec(void)
{
	return doca_ec_create(dev, &made.ec) ? NULL : doca_ec_as_ctx(made.ec);
}

static doca_error_t set_ec(void)
{
	return doca_ec_task_create_set_conf(made.ec, (doca_ec_task_create_completion_cb_t)on_task,
					    (doca_ec_task_create_completion_cb_t)on_task, 4);
}

static doca_error_t destroy_ec(void)
{
	return doca_ec_destroy(made.ec);
}

static struct doca_ctx *make_advise(void)
{
	return doca_mmap_advise_create(dev, &made.advise) ? NULL
							  : doca_mmap_advise_as_ctx(made.advise);
}

static doca_error_t set_advise(void)
{
	return doca_mmap_advise_task_invalidate_cache_set_conf(
		made.advise, (doca_mmap_advise_task_invalidate_cache_completion_cb_t)on_task,
		(doca_mmap_advise_task_invalidate_cache_completion_cb_t)on_task, 4);
}

static doca_error_t destroy_advise(void)
{
	return doca_mmap_advise_destroy(made.advise);
}

static struct doca_ctx *make_rdma(void)
{
	return doca_rdma_create(dev, &made.rdma) ? NULL : doca_rdma_as_ctx(made.rdma);
}

static doca_error_t set_rdma(void)
{
	return doca_rdma_task_send_set_conf(made.rdma, (doca_rdma_task_send_completion_cb_t)on_task,
					    (doca_rdma_task_send_completion_cb_t)on_task, 4);
}

static doca_error_t destroy_rdma(void)
{
	return doca_rdma_destroy(made.rdma);
}

static struct doca_ctx *make_aes_gcm(void)
{
	return doca_aes_gcm_create(dev, &made.aes_gcm) ? NULL : doca_aes_gcm_as_ctx(made.aes_gcm);
}

static doca_error_t set_aes_gcm(void)
{
	return doca_aes_gcm_task_encrypt_set_conf(
		made.aes_gcm, (doca_aes_gcm_task_encrypt_completion_cb_t)on_task,
		(doca_aes_gcm_task_encrypt_completion_cb_t)on_task, 4);
}

static doca_error_t destroy_aes_gcm(void)
{
	return doca_aes_gcm_destroy(made.aes_gcm);
}

static struct doca_ctx *make_sha(void)
{
	return doca_sha_create(dev, &made.sha) ? NULL : doca_sha_as_ctx(made.sha);
}

static doca_error_t set_sha(void)
{
	return doca_sha_task_hash_set_conf(made.sha, (doca_sha_task_hash_completion_cb_t)on_task,
					   (doca_sha_task_hash_completion_cb_t)on_task, 2);
}

static doca_error_t destroy_sha(void)
{
	return doca_sha_destroy(made.sha);
}

static struct doca_ctx *make_event(void)
{
	if (doca_sync_event_create(&made.event) ||
	    doca_sync_event_add_publisher_location_cpu(made.event, dev) ||
	    doca_sync_event_add_subscriber_location_cpu(made.event, dev))
		return NULL;
	return doca_sync_event_as_ctx(made.event);
}

static doca_error_t set_event(void)
{
	return doca_sync_event_task_notify_add_set_conf(
		made.event, (doca_sync_event_task_notify_add_completion_cb_t)on_task,
		(doca_sync_event_task_notify_add_completion_cb_t)on_task, 4);
}

static doca_error_t destroy_event(void)
{
	return doca_sync_event_destroy(made.event);
}

static doca_error_t can_aes_gcm(const struct doca_devinfo *info)
{
	return doca_aes_gcm_cap_task_encrypt_is_supported(info);
}

static doca_error_t can_compress(const struct doca_devinfo *info)
{
	return doca_compress_cap_task_compress_deflate_is_supported(info);
}

static doca_error_t can_ec(const struct doca_devinfo *info)
{
	return doca_ec_cap_task_create_is_supported(info);
}

static doca_error_t can_sha(const struct doca_devinfo *info)
{
	return doca_sha_cap_task_hash_get_supported(info, DOCA_SHA_ALGORITHM_SHA256);
}

static const struct kind {
	const char *name;
	struct doca_ctx *(*make)(void);
	doca_error_t (*set)(void);
	doca_error_t (*destroy)(void);
	/* busy: error of destroy if the context is not idle; late: of a setter after start */
	doca_error_t busy, late;
	doca_error_t (*can)(const struct doca_devinfo *info); /* NULL: every build has this kind */
} kinds[] = {
	{"aes gcm", make_aes_gcm, set_aes_gcm, destroy_aes_gcm, DOCA_ERROR_BAD_STATE,
	 DOCA_ERROR_BAD_STATE, can_aes_gcm},
	{"comch server", make_server, set_server, destroy_server, DOCA_ERROR_IN_USE,
	 DOCA_ERROR_BAD_STATE, NULL},
	{"compress", make_compress, set_compress, destroy_compress, DOCA_ERROR_IN_USE,
	 DOCA_ERROR_BAD_STATE, can_compress},
	{"dma", make_dma, set_dma, destroy_dma, DOCA_ERROR_IN_USE, DOCA_ERROR_BAD_STATE, NULL},
	{"erasure coding", make_ec, set_ec, destroy_ec, DOCA_ERROR_BAD_STATE, DOCA_ERROR_BAD_STATE,
	 can_ec},
	{"mmap advise", make_advise, set_advise, destroy_advise, DOCA_ERROR_IN_USE,
	 DOCA_ERROR_NOT_PERMITTED, NULL},
	{"rdma", make_rdma, set_rdma, destroy_rdma, DOCA_ERROR_BAD_STATE, DOCA_ERROR_BAD_STATE,
	 NULL},
	{"sha", make_sha, set_sha, destroy_sha, DOCA_ERROR_IN_USE, DOCA_ERROR_BAD_STATE, can_sha},
	{"sync event", make_event, set_event, destroy_event, DOCA_ERROR_BAD_STATE,
	 DOCA_ERROR_NOT_PERMITTED, NULL},
};

#define FOR_EACH_KIND(kind) \
	for (const struct kind *kind = kinds; kind < kinds + sizeof(kinds) / sizeof(*kinds); \
	     kind++) \
		if (!kind->can || kind->can(doca_dev_as_devinfo(dev)) == DOCA_SUCCESS)

/* -- states, as the callback reports them -- */

static char seen[64]; /* "02 ": from IDLE to RUNNING */
static bool stops_when_running;

static void on_state(const union doca_data user_data, struct doca_ctx *ctx,
		     enum doca_ctx_states prev, enum doca_ctx_states next)
{
	const size_t n = strlen(seen);

	TEST_ASSERT_EQUAL_UINT64(42, user_data.u64);
	if (n + 4 < sizeof(seen)) {
		seen[n] = (char)('0' + prev);
		seen[n + 1] = (char)('0' + next);
		seen[n + 2] = ' ';
		seen[n + 3] = '\0';
	}
	if (stops_when_running && next == DOCA_CTX_STATE_RUNNING)
		(void)doca_ctx_stop(ctx);
}

static enum doca_ctx_states state_of(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_get_state(ctx, &state));
	return state;
}

static struct doca_ctx *make(const struct kind *kind)
{
	struct doca_ctx *ctx = kind->make();

	seen[0] = '\0';
	stops_when_running = false;
	TEST_ASSERT_NOT_NULL_MESSAGE(ctx, kind->name);
	OK(kind->set());
	OK(doca_ctx_set_user_data(ctx, (union doca_data){.u64 = 42}));
	OK(doca_ctx_set_state_changed_cb(ctx, on_state));
	OK(doca_pe_connect_ctx(pe, ctx));
	return ctx;
}

void setUp(void)
{
	struct doca_devinfo_rep **reps;
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_create_list(
						    dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_open(reps[0], &rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_destroy_list(reps));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(pe));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_close(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
}

static void stop(const struct kind *kind, struct doca_ctx *ctx)
{
	doca_error_t result = doca_ctx_stop(ctx);

	TEST_ASSERT_TRUE_MESSAGE(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS,
				 kind->name);
	for (int i = 0; i < 1000000 && state_of(ctx) != DOCA_CTX_STATE_IDLE; i++)
		(void)doca_pe_progress(pe);
	TEST_ASSERT_EQUAL_INT_MESSAGE(DOCA_CTX_STATE_IDLE, state_of(ctx), kind->name);
}

/* MUST: start is SUCCESS, and the state RUNNING when it returns; the callback has run inside it. */
static void MUST_start_is_SUCCESS_and_reports_RUNNING_before_it_returns(void)
{
	FOR_EACH_KIND (kind) {
		struct doca_ctx *ctx = make(kind);

		IS(DOCA_CTX_STATE_IDLE, state_of(ctx));
		OK(doca_ctx_start(ctx));
		IS(DOCA_CTX_STATE_RUNNING, state_of(ctx));
		TEST_ASSERT_EQUAL_STRING_MESSAGE("02 ", seen, kind->name);
		stop(kind, ctx);
		OK(kind->destroy());
	}
}

/*
 * MUST: with nothing outstanding, stop returns SUCCESS and reports IDLE before it returns. On an
 * idle context it returns SUCCESS and reports nothing.
 */
static void MUST_stop_is_SUCCESS_when_nothing_is_outstanding_or_already_idle(void)
{
	FOR_EACH_KIND (kind) {
		struct doca_ctx *ctx = make(kind);

		OK(doca_ctx_stop(ctx));
		OK(doca_ctx_start(ctx));
		if (kind->make == make_server) {
			stop(kind, ctx); /* may be IN_PROGRESS: a server waits for its clients */
		} else {
			OK(doca_ctx_stop(ctx));
			TEST_ASSERT_EQUAL_STRING_MESSAGE("02 20 ", seen, kind->name);
		}
		IS(DOCA_CTX_STATE_IDLE, state_of(ctx));
		seen[0] = '\0';
		OK(doca_ctx_stop(ctx));
		OK(doca_ctx_stop(ctx));
		TEST_ASSERT_EQUAL_STRING_MESSAGE("", seen, kind->name);
		OK(kind->destroy());
	}
}

/* The callback can make any call, also stop; start returns SUCCESS nevertheless. */
static void start_is_SUCCESS_when_the_callback_stops(void)
{
	FOR_EACH_KIND (kind) {
		struct doca_ctx *ctx = make(kind);

		stops_when_running = true;
		OK(doca_ctx_start(ctx));
		TEST_ASSERT_TRUE_MESSAGE(strncmp(seen, "02 2", 4) == 0, kind->name);
		stop(kind, ctx);
		OK(kind->destroy());
	}
}

static void start_needs_an_engine(void)
{
	FOR_EACH_KIND (kind) {
		struct doca_ctx *ctx = kind->make();

		TEST_ASSERT_NOT_NULL_MESSAGE(ctx, kind->name);
		OK(kind->set());
		IS(DOCA_ERROR_NOT_CONNECTED, doca_ctx_start(ctx));
		IS(DOCA_CTX_STATE_IDLE, state_of(ctx));
		OK(kind->destroy());
	}
}

/*
 * After start, setters and destroy fail; each returns the error that its header documents.
 */
static void running_context_cannot_be_configured_or_destroyed(void)
{
	FOR_EACH_KIND (kind) {
		struct doca_ctx *ctx = make(kind);

		OK(kind->set()); /* a second call before start replaces the first */
		OK(doca_ctx_start(ctx));
		IS(kind->late, kind->set());
		IS(kind->busy, kind->destroy());
		IS(DOCA_ERROR_BAD_STATE, doca_ctx_start(ctx));
		IS(DOCA_CTX_STATE_RUNNING, state_of(ctx));
		IS(DOCA_ERROR_IN_USE, doca_pe_destroy(pe));
		IS(DOCA_ERROR_IN_USE, doca_dev_close(dev));
		stop(kind, ctx);
		IS(DOCA_ERROR_IN_USE, doca_pe_destroy(pe)); /* until the context is destroyed */
		OK(kind->destroy());
	}
}

/* User data can be set at any time; the next callback gets the new value. */
static void user_data_is_set_at_any_time(void)
{
	FOR_EACH_KIND (kind) {
		struct doca_ctx *ctx = make(kind);
		union doca_data data;

		OK(doca_ctx_start(ctx));
		OK(doca_ctx_set_user_data(ctx, (union doca_data){.u64 = 7}));
		OK(doca_ctx_get_user_data(ctx, &data));
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(7, data.u64, kind->name);
		OK(doca_ctx_set_user_data(ctx, (union doca_data){.u64 = 42}));
		stop(kind, ctx);
		OK(kind->destroy());
	}
}

static void idle_context_can_be_started_again(void)
{
	FOR_EACH_KIND (kind) {
		struct doca_ctx *ctx = make(kind);

		for (int i = 0; i < 3; i++) {
			seen[0] = '\0';
			OK(doca_ctx_start(ctx));
			TEST_ASSERT_EQUAL_STRING_MESSAGE("02 ", seen, kind->name);
			stop(kind, ctx);
		}
		OK(kind->destroy());
	}
}

int main(void)
{
	const char *plugins = getenv("GANTRY_PLUGINS");

	if (plugins)
		setenv("GANTRY_PLUGIN_PATH", plugins, 1);
	UNITY_BEGIN();
	RUN_TEST(MUST_start_is_SUCCESS_and_reports_RUNNING_before_it_returns);
	RUN_TEST(MUST_stop_is_SUCCESS_when_nothing_is_outstanding_or_already_idle);
	RUN_TEST(start_is_SUCCESS_when_the_callback_stops);
	RUN_TEST(start_needs_an_engine);
	RUN_TEST(running_context_cannot_be_configured_or_destroyed);
	RUN_TEST(user_data_is_set_at_any_time);
	RUN_TEST(idle_context_can_be_started_again);
	return UNITY_END();
}
