/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_sleep_until_event.c - RDMA messages wake an engine that sleeps for a short time, see
 * pe_sleep.c.
 */
#include "engine/pe.h"
#include "rdma_rig.h"
#include "unity.h"

#include <poll.h>
#include <stdlib.h>

#define BYTES 64u

static bool is_readable(int fd, int ms)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ms) == 1;
}

static void sleep_for_a_message(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	const struct gd_ctx_ops *ops = s->ctx->ops;
	struct doca_buf *buf = rig_room(s, 0, BYTES);
	struct pollfd fds[2];

	rig_receive(s, buf, 1);
	/* without a connection the result is 0; -1: it is up, and 0 fds are too few for its fd */
	UNTIL(s, ops->sleep_until_event(s->ctx, fds, 0) == -1);
	ops->rouse(s->ctx);
	rig_tell(fd);
	/* some rings can belong to earlier events; the last one belongs to the message */
	for (; ops->sleep_until_event(s->ctx, fds, 2) == 1; ops->rouse(s->ctx))
		CHECK(is_readable(fds[0].fd, RIG_WAIT_MS));
	ops->rouse(s->ctx);
	rig_end_ok(s, 1);
	rig_put(buf);
	rig_close(s);
}

static void send_one(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	struct doca_buf *buf = rig_data(s, 0, BYTES);

	rig_hark(fd);
	rig_send(s, s->conns[0], buf, 2);
	rig_end_ok(s, 2);
	rig_put(buf);
	rig_close(s);
}

static void test_message_wakes_a_sleeping_engine(void)
{
	TEST_ASSERT_TRUE(rig_run(sleep_for_a_message, send_one, false));
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(test_message_wakes_a_sleeping_engine);
	return UNITY_END();
}
