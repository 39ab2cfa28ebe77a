/* SPDX-License-Identifier: BSD-3-Clause */
/* The rbd backend over a fake of librbd: lanes, FUA, order, errors, timeouts, fences and locks. */
#include <errno.h>
#include <poll.h>

#include "rbd.h"

static void waiting_becomes(unsigned n)
{
	for (unsigned i = 0; i < 20000 && fake_rbd_held() != n; i++) {
		fake_poll(&chain);
		pause_briefly();
	}
	TEST_ASSERT_EQUAL_UINT(n, fake_rbd_held());
}

static int is_zero(const uint8_t *data, size_t n)
{
	while (n--)
		if (*data++)
			return 0;
	return 1;
}

static void data_comes_back(void)
{
	struct gantry_pieces pieces = {.count = 3,
				       .piece = {{in, 1000}, {in + 5000, 1}, {in + 9000, 3095}}};

	OPEN("block=4KiB");
	OK(GANTRY_OP_WRITE, 0, 64 * KIB, sizeof out, out);
	OK(GANTRY_OP_READ, 0, 64 * KIB, sizeof in, in);
	TEST_ASSERT_EQUAL_MEMORY(out, in, sizeof in);
	OK(GANTRY_OP_READ, GANTRY_IO_LIST, 64 * KIB, 4096, &pieces);
	TEST_ASSERT_EQUAL_MEMORY(out, in, 1000);
	TEST_ASSERT_EQUAL_MEMORY(out + 1000, in + 5000, 1);
	TEST_ASSERT_EQUAL_MEMORY(out + 1001, in + 9000, 3095);
	OK(GANTRY_OP_WRITE, GANTRY_IO_LIST, 0, 4096, &pieces);
	OK(GANTRY_OP_READ, 0, 0, 4096, in);
	TEST_ASSERT_EQUAL_MEMORY(out, in, 4096);
	OK(GANTRY_OP_WRITE_ZEROES, 0, 0, 4096, NULL);
	OK(GANTRY_OP_DISCARD, 0, 64 * KIB, 4096, NULL);
	OK(GANTRY_OP_READ, 0, 64 * KIB, 8192, in);
	TEST_ASSERT_TRUE(is_zero(in, 4096));
	TEST_ASSERT_EQUAL_MEMORY(out + 4096, in + 4096, 4096);
	OK(GANTRY_OP_FLUSH, 0, 0, 0, NULL);
	OK(GANTRY_OP_NOP, 0, 0, 0, NULL);
}

/* A write with FUA is not complete while the flush that follows it is not. */
static void fua_completes_after_the_flush(void)
{
	static const unsigned ops[] = {GANTRY_OP_WRITE, GANTRY_OP_WRITE_ZEROES, GANTRY_OP_DISCARD};

	OPEN("cache=false");
	for (unsigned i = 0; i < 3; i++) {
		struct gantry_io *io;

		fake_rbd_hold_flush(1);
		io = begin(ops[i], GANTRY_IO_FUA, 0, 4096, out);
		for (unsigned turn = 0; turn < 20000 && fake_rbd_unflushed() == 0; turn++)
			pause_briefly();
		waiting_becomes(1);
		TEST_ASSERT_TRUE(io->busy);
		TEST_ASSERT_EQUAL_UINT(1, fake_rbd_unflushed());
		fake_rbd_hold_flush(0);
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(io));
		TEST_ASSERT_EQUAL_UINT(0, fake_rbd_unflushed());
	}
}

static void a_failed_flush_fails_the_write_with_fua(void)
{
	struct gantry_io *io;

	OPEN("cache=false");
	fake_rbd_hold_flush(1);
	io = begin(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4096, out);
	for (unsigned turn = 0; turn < 20000 && fake_rbd_unflushed() == 0; turn++)
		pause_briefly();
	waiting_becomes(1);
	fake_rbd_break(-EIO, 1);
	fake_rbd_hold_flush(0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(io));
}

static void completions_in_any_order(void)
{
	struct gantry_io *ios[FAKE_IOS];

	OPEN("cache=false");
	fake_rbd_reverse(1);
	fake_rbd_hold(1);
	for (unsigned i = 0; i < FAKE_IOS; i++)
		ios[i] = begin(GANTRY_OP_WRITE, 0, i * 4096, 4096, out + i * 4096);
	fake_rbd_hold(0);
	for (unsigned i = 0; i < FAKE_IOS; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(ios[i]));
	TEST_ASSERT_EQUAL_UINT(FAKE_IOS, chain.n_done);
	OK(GANTRY_OP_READ, 0, 0, sizeof in, in);
	TEST_ASSERT_EQUAL_MEMORY(out, in, sizeof in);
}

static void errors_have_a_status(void)
{
	static const struct {
		int error;
		unsigned status;
	} errors[] = {
		{-EIO, GANTRY_S_IO},        {-ENOSPC, GANTRY_S_NOSPC}, {-EDQUOT, GANTRY_S_NOSPC},
		{-ENOENT, GANTRY_S_IO},     {-EBUSY, GANTRY_S_IO},     {-ECANCELED, GANTRY_S_IO},
		{-EOWNERDEAD, GANTRY_S_IO},
	};

	OPEN("cache=false");
	for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
		fake_rbd_break(errors[i].error, 1);
		FAILS(errors[i].status, GANTRY_OP_WRITE, 0, 0, 4096, out);
		OK(GANTRY_OP_WRITE, 0, 0, 4096, out);
	}
	fake_rbd_fail(FAKE_RBD_submit, -EINVAL, 1);
	FAILS(GANTRY_S_INVALID, GANTRY_OP_WRITE, 0, 0, 4096, out);
	fake_rbd_fail(FAKE_RBD_completion, -ENOMEM, 1);
	FAILS(GANTRY_S_NOMEM, GANTRY_OP_WRITE, 0, 0, 4096, out);
	TEST_ASSERT_EQUAL_STRING("open", reported("state"));
	TEST_ASSERT_EQUAL_UINT(9, n_reported("error_ops"));
}

static void a_second_callback_is_counted_and_ignored(void)
{
	struct gantry_io *ios[8];

	OPEN("cache=false");
	fake_rbd_repeat(8);
	for (unsigned i = 0; i < 8; i++)
		ios[i] = begin(GANTRY_OP_WRITE, 0, i * 4096, 4096, out);
	/* the requests stay in the list until librbd has called back twice for each */
	for (unsigned i = 0; i < 20000 && n_reported("repeated_ops") < 8; i++)
		pause_briefly();
	for (unsigned i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(ios[i]));
	for (unsigned i = 0; i < 1000; i++)
		fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(8, chain.n_done);
	TEST_ASSERT_EQUAL_UINT(0, chain.n_stray);
	TEST_ASSERT_EQUAL_UINT(8, n_reported("repeated_ops"));
}

static int is_readable(void)
{
	struct pollfd fd = {.fd = chain.backend_ops->fd(chain.backend_self), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void a_sleeping_lane_wakes(void)
{
	struct pollfd fd = {.events = POLLIN};
	struct gantry_io *io;

	OPEN("cache=false");
	fd.fd = chain.backend_ops->fd(chain.backend_self);
	for (unsigned i = 0; i < 100; i++) {
		fake_rbd_hold(1);
		io = begin(GANTRY_OP_WRITE, 0, 0, 4096, out);
		TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->arm(chain.backend_self));
		TEST_ASSERT_FALSE(is_readable());
		fake_rbd_hold(0);
		TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, 10000));
		chain.backend_ops->disarm(chain.backend_self);
		TEST_ASSERT_FALSE(is_readable());
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(io));
	}
	/* a completion before `arm` */
	io = begin(GANTRY_OP_WRITE, 0, 0, 4096, out);
	for (unsigned i = 0; i < 20000 && fake_rbd_unflushed() < 101; i++)
		pause_briefly();
	while (!chain.backend_ops->arm(chain.backend_self)) {
		chain.backend_ops->disarm(chain.backend_self);
		pause_briefly();
	}
	chain.backend_ops->disarm(chain.backend_self);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(io));
}

/* The write that timed out does not reach the image after the write that replaces it. */
static void a_timeout_fences_the_client(void)
{
	uint64_t mark = 0;

	OPEN("cache=false");
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->quiesce(chain.backend, &mark));
	fake_rbd_give_up(1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	fake_rbd_give_up(0);
	OK(GANTRY_OP_WRITE, 0, 0, 4096, out + 4096);
	OK(GANTRY_OP_READ, 0, 0, 4096, in);
	TEST_ASSERT_EQUAL_MEMORY(out + 4096, in, 4096);
	TEST_ASSERT_EQUAL_UINT(1, n_reported("fences"));
	TEST_ASSERT_EQUAL_UINT(1, n_reported("timeout_ops"));
	TEST_ASSERT_EQUAL_UINT(1, fake_rbd_calls(FAKE_RBD_blocklist));
	TEST_ASSERT_EQUAL_UINT(2, fake_rbd_calls(FAKE_RBD_lock));
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->quiesce(chain.backend, &mark));
}

/* The same if the store closes before it could fence the client, and another target follows. */
static void a_store_that_closes_fences_its_client(void)
{
	OPEN("cache=false");
	fake_rbd_fail(FAKE_RBD_blocklist, -ETIMEDOUT, 1);
	fake_rbd_give_up(1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	fake_rbd_give_up(0);
	fake_chain_fini(&chain);
	TEST_ASSERT_EQUAL_UINT(0, fake_rbd_objects());
	fake_chain_init(&chain, &host);
	OPEN("cache=false");
	OK(GANTRY_OP_WRITE, 0, 0, 4096, out + 4096);
	OK(GANTRY_OP_READ, 0, 0, 4096, in);
	TEST_ASSERT_EQUAL_MEMORY(out + 4096, in, 4096);
}

/* A read that times out changes nothing, so the client stays. */
static void a_read_that_times_out_is_only_an_error(void)
{
	OPEN("read_only=true");
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_FLUSH, 0, 0, 0, NULL);
	state_becomes("open");
}

/* Submit an IO with this deadline. */
static struct gantry_io *begin_within(unsigned opcode, uint32_t us, void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, 0, 4096, data);

	io->deadline_us = us;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return io;
}

static void stall(void)
{
	fake_rbd_fail(FAKE_RBD_connect, -ETIMEDOUT, 1000000);
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	TEST_ASSERT_EQUAL_STRING("fencing", reported("state"));
}

static void recover(void)
{
	fake_rbd_fail(FAKE_RBD_connect, 0, 0);
	state_becomes("open");
}

/* While the client cannot be replaced, IO waits; it fails after osd_op_timeout. */
static void io_fails_in_bounded_time_while_the_cluster_stalls(void)
{
	struct gantry_io *old, *new;
	uint64_t mark = 0;

	OPEN("cache=false");
	fake_rbd_fail(FAKE_RBD_connect, -ETIMEDOUT, 1000000);
	fake_rbd_give_up(1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	fake_rbd_give_up(0);
	TEST_ASSERT_EQUAL_STRING("fencing", reported("state"));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, chain.backend_ops->quiesce(chain.backend, &mark));
	old = begin_within(GANTRY_OP_WRITE, 60000000, out);
	fake_advance(&chain.lane, TIMEOUT_NS / 2);
	new = begin_within(GANTRY_OP_READ, 60000000, in);
	fake_poll(&chain);
	TEST_ASSERT_TRUE(old->busy);
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->arm(chain.backend_self));
	chain.backend_ops->disarm(chain.backend_self);
	fake_advance(&chain.lane, TIMEOUT_NS / 2);
	TEST_ASSERT_EQUAL_INT(1, chain.backend_ops->arm(chain.backend_self));
	chain.backend_ops->disarm(chain.backend_self);
	fake_poll(&chain);
	TEST_ASSERT_FALSE(old->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, old->status);
	TEST_ASSERT_TRUE(new->busy);
	fake_rbd_fail(FAKE_RBD_connect, 0, 0);
	state_becomes("open");
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->quiesce(chain.backend, &mark));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(new));
	TEST_ASSERT_TRUE(is_zero(in, 4096));
	OK(GANTRY_OP_WRITE, 0, 0, 4096, out);
}

/* IO that waits fails shortly before its deadline, also if it is not the oldest. */
static void waiting_io_fails_before_its_deadline(void)
{
	struct gantry_io *last, *first, *none;

	OPEN("cache=false");
	stall();
	last = begin_within(GANTRY_OP_WRITE, 1600000, out);
	first = begin_within(GANTRY_OP_WRITE, 80000, out);
	none = begin_within(GANTRY_OP_WRITE, 0, out);
	fake_advance(&chain.lane, 69999999);
	fake_poll(&chain);
	TEST_ASSERT_TRUE(first->busy);
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->arm(chain.backend_self));
	chain.backend_ops->disarm(chain.backend_self);
	fake_advance(&chain.lane, 1);
	TEST_ASSERT_EQUAL_INT(1, chain.backend_ops->arm(chain.backend_self));
	chain.backend_ops->disarm(chain.backend_self);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_FALSE(first->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, first->status);
	TEST_ASSERT_TRUE(last->busy);
	/* nor does it reach the image after a recovery that came too late */
	fake_advance(&chain.lane, 1400000000 - 70000000);
	recover();
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(last));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(none));
}

static struct {
	uint64_t (*now_ns)(const struct gantry_host *host);
	void (*complete)(void *self, struct gantry_io *io);
	struct gantry_io *io;
	unsigned n;
} repeated;

/* The clock goes on with each reading, and the owner repeats an IO that has failed. */
static uint64_t clock_goes_on(const struct gantry_host *pub)
{
	fake_advance(&chain.lane, 1);
	return repeated.now_ns(pub);
}

static void repeat(void *self, struct gantry_io *io)
{
	repeated.complete(self, io);
	if (repeated.n++ == 0)
		repeated.io = begin_within(GANTRY_OP_WRITE, 0, out);
}

/* An IO that its owner submits again at the completion waits anew. */
static void an_io_repeated_at_its_failure_waits(void)
{
	OPEN("cache=false");
	stall();
	repeated.now_ns = host.pub.now_ns;
	repeated.complete = chain.hops[1].complete;
	repeated.n = 0;
	host.pub.now_ns = clock_goes_on;
	chain.hops[1].complete = repeat;
	begin_within(GANTRY_OP_WRITE, 0, out);
	fake_advance(&chain.lane, TIMEOUT_NS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
	TEST_ASSERT_EQUAL_UINT(1, repeated.n);
	TEST_ASSERT_TRUE(repeated.io->busy);
	recover();
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(repeated.io));
}

/* The timer wakes a lane that sleeps while IO waits. */
static void a_lane_wakes_when_waiting_io_must_fail(void)
{
	struct pollfd fd = {.events = POLLIN};
	struct gantry_io *io;

	host.real_clock = 1;
	OPEN("osd_op_timeout=1s");
	fd.fd = chain.backend_ops->fd(chain.backend_self);
	fake_rbd_fail(FAKE_RBD_connect, -ETIMEDOUT, 1000000);
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	io = begin_within(GANTRY_OP_WRITE, 0, out);
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->arm(chain.backend_self));
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, 10000));
	chain.backend_ops->disarm(chain.backend_self);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(io));
	fake_rbd_fail(FAKE_RBD_connect, 0, 0);
	state_becomes("open");
}

static void a_fence_repeats_the_step_that_failed(void)
{
	static const enum fake_rbd_fn steps[] = {FAKE_RBD_connect, FAKE_RBD_blocklist,
						 FAKE_RBD_osdmap, FAKE_RBD_open, FAKE_RBD_size};

	OPEN("cache=false");
	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		fake_rbd_fail(steps[i], -EIO, 1);
		fake_rbd_give_up(1);
		FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
		fake_rbd_give_up(0);
		OK(GANTRY_OP_WRITE, 0, 0, 4096, out + 4096);
		OK(GANTRY_OP_READ, 0, 0, 4096, in);
		TEST_ASSERT_EQUAL_MEMORY(out + 4096, in, 4096);
		TEST_ASSERT_EQUAL_UINT(i + 1, n_reported("fences"));
	}
}

/* Each new client waits for the map with the blocklist, also after an error of the last step. */
static void each_new_client_gets_the_map(void)
{
	OPEN("cache=false");
	fake_rbd_fail(FAKE_RBD_open, -EIO, 1);
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	state_becomes("open");
	TEST_ASSERT_EQUAL_UINT(3, fake_rbd_calls(FAKE_RBD_connect));
	TEST_ASSERT_EQUAL_UINT(2, fake_rbd_calls(FAKE_RBD_osdmap));
}

static void is_lost(void)
{
	uint64_t mark = 0;

	state_becomes("lost");
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	FAILS(GANTRY_S_IO, GANTRY_OP_READ, 0, 0, 4096, in);
	FAILS(GANTRY_S_IO, GANTRY_OP_FLUSH, 0, 0, 0, NULL);
	TEST_ASSERT_EQUAL_INT(-EIO, chain.backend_ops->quiesce(chain.backend, &mark));
}

static void a_client_that_others_fence_is_lost(void)
{
	OPEN("cache=false");
	fake_rbd_break(-ESHUTDOWN, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	is_lost();
	TEST_ASSERT_TRUE(fake_logged(&host, "another client has fenced this one"));
}

static void a_lock_that_another_client_got_is_lost(void)
{
	OPEN("cache=false");
	fake_rbd_owner("client.4242");
	fake_rbd_break(-EROFS, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	is_lost();
	TEST_ASSERT_TRUE(fake_logged(&host, "client.4242"));
}

static void an_image_that_was_replaced_is_lost(void)
{
	OPEN("cache=false");
	fake_rbd_rename("another");
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	is_lost();
}

/* The option uuid names the volume, but does not make another image the same. */
static void an_image_with_a_uuid_that_was_replaced_is_lost(void)
{
	OPEN("uuid=0f4ce3a2-94d5-4d2c-8d5d-9b4b0d3c1f11");
	fake_rbd_rename("another");
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	is_lost();
}

static void a_cache_is_lost_with_its_client(void)
{
	OPEN("cache=true");
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_FLUSH, 0, 0, 0, NULL);
	state_becomes("open"); /* the fake reports no cache unless its metadata has it */
	fake_chain_fini(&chain);
	fake_rbd_setting("rbd_cache", "true");
	fake_chain_init(&chain, &host);
	OPEN("cache=false");
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_FLUSH, 0, 0, 0, NULL);
	is_lost();
	TEST_ASSERT_TRUE(fake_logged(&host, "data of the writeback cache is lost"));
}

/* librbd reports the text of the metadata. */
static void each_value_but_false_is_a_cache(void)
{
	static const struct {
		const char *value, *state;
	} values[] = {{"false", "open"}, {"0", "open"}, {"1", "lost"},
		      {"True", "lost"},  {"", "lost"},  {"2", "lost"}};

	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		fake_rbd_setting("rbd_cache", values[i].value);
		OPEN("cache=false");
		fake_rbd_break(-ETIMEDOUT, 1);
		FAILS(GANTRY_S_IO, GANTRY_OP_FLUSH, 0, 0, 0, NULL);
		state_becomes(values[i].state);
		fake_chain_fini(&chain);
		fake_chain_init(&chain, &host);
	}
}

static void open_fails(const char *text, int error, const char *setting)
{
	TEST_ASSERT_EQUAL_INT(error, TRY(setting));
	TEST_ASSERT_TRUE(fake_logged(&host, text));
	TEST_ASSERT_EQUAL_UINT(0, fake_rbd_objects());
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
}

static void open_names_the_cause(void)
{
	static const struct {
		enum fake_rbd_fn fn;
		const char *text;
	} steps[] = {
		{FAKE_RBD_create, "cannot create a client"},
		{FAKE_RBD_conf, "cannot read the configuration"},
		{FAKE_RBD_connect, "cannot connect to the cluster"},
		{FAKE_RBD_addrs, "cannot get the address"},
		{FAKE_RBD_ioctx, "cannot open the pool"},
		{FAKE_RBD_open, "cannot open the image"},
		{FAKE_RBD_lock, "cannot lock the image"},
		{FAKE_RBD_watch, "cannot get the properties"},
		{FAKE_RBD_fsid, "cannot get the properties"},
		{FAKE_RBD_id, "cannot get the properties"},
		{FAKE_RBD_size, "cannot get the properties"},
	};

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		fake_rbd_fail(steps[i].fn, -EIO, 1);
		open_fails(steps[i].text, -EIO, "cache=false");
	}
	fake_rbd_fail(FAKE_RBD_features, -1, 1);
	open_fails("the image has no exclusive lock", -EOPNOTSUPP, "cache=false");
	fake_rbd_owner("client.4242");
	open_fails("another client serves the image (owner=client.4242)", -EBUSY, "cache=false");
	fake_rbd_owner(NULL);
	fake_rbd_resize(4096 + 512);
	open_fails("not a multiple of the block size", -EINVAL, "block=4KiB");
	open_fails("cannot open the image", -ENOENT, "image=missing");
	open_fails("cannot open the pool", -ENOENT, "pool=missing");
	fake_rbd_resize(FAKE_RBD_BYTES);
	OPEN("cache=false");
}

/* Without the blocklist, the lock does not keep late writes of its last owner out. */
static void a_lock_without_the_blocklist_is_rejected(void)
{
	static const char *const bad[] = {"false", "False", "0"}, *const good[] = {"1", "True"};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		fake_rbd_setting("rbd_blocklist_on_break_lock", bad[i]);
		open_fails("rbd_blocklist_on_break_lock=", -EOPNOTSUPP, "cache=false");
	}
	TEST_ASSERT_EQUAL_UINT(0, fake_rbd_calls(FAKE_RBD_lock));
	OPEN("read_only=true");
	for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
		fake_chain_fini(&chain);
		fake_chain_init(&chain, &host);
		fake_rbd_setting("rbd_blocklist_on_break_lock", good[i]);
		OPEN("cache=false");
	}
}

static void a_reader_takes_no_lock(void)
{
	fake_rbd_owner("client.4242");
	OPEN("snapshot=old");
	TEST_ASSERT_EQUAL_UINT(0, fake_rbd_calls(FAKE_RBD_lock));
	OK(GANTRY_OP_READ, 0, 0, 4096, in);
	FAILS(GANTRY_S_READ_ONLY, GANTRY_OP_WRITE, 0, 0, 4096, out);
}

static struct gantry_volume_info volume(void)
{
	struct gantry_volume_info info = {.size = 0};

	chain.backend_ops->volume(chain.backend, &info);
	return info;
}

static void a_new_size_is_noticed(void)
{
	OPEN("cache=false");
	TEST_ASSERT_EQUAL_UINT64(FAKE_RBD_BYTES, volume().size);
	fake_rbd_resize(FAKE_RBD_BYTES / 2 + 512);
	for (unsigned i = 0; i < 20000 && volume().size == FAKE_RBD_BYTES; i++)
		pause_briefly();
	TEST_ASSERT_EQUAL_UINT64(FAKE_RBD_BYTES / 2, volume().size);
	FAILS(GANTRY_S_RANGE, GANTRY_OP_READ, 0, FAKE_RBD_BYTES / 2, 4096, in);
}

static void identity_depends_on_image_and_cache(void)
{
	struct gantry_volume_info first, second;

	OPEN("cache=false");
	first = volume();
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
	OPEN("snapshot=old");
	second = volume();
	TEST_ASSERT_FALSE(memcmp(first.uuid, second.uuid, 16) == 0);
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
	fake_rbd_setting("rbd_cache", "true");
	OPEN("cache=true");
	second = volume();
	TEST_ASSERT_EQUAL_MEMORY(first.uuid, second.uuid, 16);
	TEST_ASSERT_FALSE(first.verifier == second.verifier);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(data_comes_back);
	RUN_TEST(fua_completes_after_the_flush);
	RUN_TEST(a_failed_flush_fails_the_write_with_fua);
	RUN_TEST(completions_in_any_order);
	RUN_TEST(errors_have_a_status);
	RUN_TEST(a_second_callback_is_counted_and_ignored);
	RUN_TEST(a_sleeping_lane_wakes);
	RUN_TEST(a_timeout_fences_the_client);
	RUN_TEST(a_store_that_closes_fences_its_client);
	RUN_TEST(a_read_that_times_out_is_only_an_error);
	RUN_TEST(io_fails_in_bounded_time_while_the_cluster_stalls);
	RUN_TEST(waiting_io_fails_before_its_deadline);
	RUN_TEST(an_io_repeated_at_its_failure_waits);
	RUN_TEST(a_lane_wakes_when_waiting_io_must_fail);
	RUN_TEST(a_fence_repeats_the_step_that_failed);
	RUN_TEST(each_new_client_gets_the_map);
	RUN_TEST(a_client_that_others_fence_is_lost);
	RUN_TEST(a_lock_that_another_client_got_is_lost);
	RUN_TEST(an_image_that_was_replaced_is_lost);
	RUN_TEST(an_image_with_a_uuid_that_was_replaced_is_lost);
	RUN_TEST(a_cache_is_lost_with_its_client);
	RUN_TEST(each_value_but_false_is_a_cache);
	RUN_TEST(open_names_the_cause);
	RUN_TEST(a_lock_without_the_blocklist_is_rejected);
	RUN_TEST(a_reader_takes_no_lock);
	RUN_TEST(a_new_size_is_noticed);
	RUN_TEST(identity_depends_on_image_and_cache);
	return UNITY_END();
}
