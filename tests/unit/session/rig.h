/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h - shared by the tests of the server end: a role of the core, to which the test sends each
 * frame.
 */
#ifndef TEST_SESSION_RIG_H
#define TEST_SESSION_RIG_H

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "fake/core.h"
#include "fake/host.h"
#include "unity.h"

static struct fake_core fc;
static struct gn_parsed p;
static uint8_t payload[GANTRY_CTRL_MAX];

void setUp(void)
{
	gn_log_set_level(GN_LOG_ERROR);
	fake_core_init(&fc);
}

void tearDown(void)
{
	fake_core_fini(&fc);
}

static inline void ask(struct fake_conn *conn, unsigned type)
{
	fake_ask(&fc, conn, type, 9, payload, fake_payload(type, payload));
}

/* Expect that the next frame is an answer to `type` with this status. */
static inline void expect_answer(struct fake_conn *conn, unsigned type, unsigned status)
{
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_STRING(gn_frame_name(type), gn_frame_name(p.type));
	TEST_ASSERT_TRUE(p.answer || type == GN_FRAME_END);
	TEST_ASSERT_EQUAL_INT(status, p.verdict.status);
}

/*
 * Expect that the session of conn has ended: conn is disconnected, its queues and regions are
 * released, and the role has got `closed` for as many sessions as the argument says.
 */
static inline void gone(struct fake_conn *conn, unsigned closed)
{
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
	TEST_ASSERT_EQUAL_UINT(closed, fc.n_closed);
	TEST_ASSERT_EQUAL_UINT(0, fc.n_open);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_imports);
}

/* Returns a value of the report of the role. */
static inline uint64_t role_value(const char *path)
{
	struct fake_report *report = malloc(sizeof(*report));
	char key[80];
	uint64_t value;

	fake_report_init(report);
	gn_role_report(fc.role, &report->pub);
	snprintf(key, sizeof(key), "test.%s", path);
	value = fake_reported_u64(report, key);
	free(report);
	return value;
}

static inline uint64_t counter(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "counters.%s", name);
	return role_value(path);
}

static inline struct gantry_io request(uint32_t tag)
{
	return (struct gantry_io){.opcode = GANTRY_OP_READ, .tag = tag, .length = 512, .region = 1};
}

static inline void arrive(struct fake_conn *conn, unsigned lane, uint32_t tag)
{
	struct gantry_io io = request(tag);

	fake_arrive(&conn->consumers[lane], &io, GANTRY_IO_WIRE_BYTES);
	fake_core_turn(&fc);
}

#endif
