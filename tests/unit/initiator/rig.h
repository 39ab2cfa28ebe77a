/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - runs an initiator in a fake role host */
#ifndef RIG_H
#define RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/role_host.h"
#include "unity.h"

struct rig {
	struct fake_host host;
	struct fake_role_host rh;
	struct fake_report report;
	void *conf, *role;
};

static struct rig rig;

static const struct gantry_role_ops *rig_ops(void)
{
	return fake_plugin("initiator")->ops;
}

/* Make a conf for rig_open() or rig_run(). The test can change rig.rh before it opens. */
#define RIG_CONF(...) fake_conf(fake_plugin("initiator"), __VA_ARGS__, NULL)

static void rig_init(uint32_t n_lanes, uint64_t size, uint32_t block_size)
{
	fake_role_fini(&rig.rh);
	fake_host_init(&rig.host, "roles.load");
	fake_role_init(&rig.rh, &rig.host, n_lanes, size, block_size);
}

static int rig_open(void *conf)
{
	int rc;

	free(rig.conf);
	rig.conf = conf;
	rc = fake_check(&rig.host, fake_plugin("initiator"), conf);
	if (!rc)
		rc = rig_ops()->open(&rig.rh.pub, conf, &rig.role);
	if (rc)
		rig.role = NULL;
	return rc;
}

static void rig_close(void)
{
	if (rig.role)
		rig_ops()->close(rig.role);
	rig.role = NULL;
	free(rig.conf);
	rig.conf = NULL;
}

/*
 * Open and start the initiator, run it to its end, keep its report, close it. Returns its status.
 */
__attribute__((unused)) static int rig_run(void *conf)
{
	int status;

	TEST_ASSERT_EQUAL_INT(0, rig_open(conf));
	TEST_ASSERT_EQUAL_INT(0, rig_ops()->start(rig.role));
	rig.rh.finished = 0;
	status = fake_role_run(&rig.rh);
	fake_report_init(&rig.report);
	rig_ops()->report(rig.role, &rig.report.pub);
	rig_close();
	TEST_ASSERT_EQUAL_INT(1, rig.rh.finished);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_bad);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_chains);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_regions);
	return status;
}

static uint64_t reported(const char *path)
{
	return fake_reported_u64(&rig.report, path);
}

void tearDown(void)
{
	rig_close();
	fake_role_fini(&rig.rh);
}

#endif
