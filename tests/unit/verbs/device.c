/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA devices: which one is opened, its capabilities and limits, its events, and what a scan
 * reports of all of them.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/host.h"
#include "rig.h"

#define NOBODY 65534

static struct vb_device dev;
static char root[64]; /* root directory of a simulated machine; "": none */

static void unmake(void)
{
	static const char *const paths[] = {"/sys/class/infiniband/rxe0",
					    "/sys/class/infiniband",
					    "/sys/class",
					    "/sys",
					    "/dev/infiniband/uverbs0",
					    "/dev/infiniband/rdma_cm",
					    "/dev/infiniband",
					    "/dev",
					    ""};
	char full[128];

	for (size_t i = 0; *root && i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(full, sizeof(full), "%s%s", root, paths[i]);
		rmdir(full);
	}
	*root = 0;
}

void setUp(void)
{
	rig_init();
	dev = (struct vb_device){.list = NULL};
}

void tearDown(void)
{
	rig_down();
	vb_device_close(&dev);
	unmake();
	rig_clean();
}

/* -- open -- */

static void test_by_name(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake1"));
	TEST_ASSERT_EQUAL_STRING("fake1", ibv_get_device_name(dev.context->device));
	rig_check_fd(dev.context->async_fd);
	vb_device_close(&dev);
	TEST_ASSERT_NULL(dev.list);
	TEST_ASSERT_NULL(dev.context);
	vb_device_close(&dev);
}

static void test_empty_name_opens_the_only_device(void)
{
	fake_devices(1);
	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, ""));
	TEST_ASSERT_EQUAL_STRING("fake0", ibv_get_device_name(dev.context->device));
}

static void expect_none(int rc, const char *name)
{
	TEST_ASSERT_EQUAL_INT(rc, vb_device_open(&dev, name));
	TEST_ASSERT_NULL(dev.list);
	TEST_ASSERT_NULL(dev.context);
}

static void test_ambiguous_or_unknown_name(void)
{
	expect_none(-ENOTUNIQ, "");
	expect_none(-ENODEV, "fake");
	expect_none(-ENODEV, "fake01");
}

/*
 * Without a device, the error of vb_device_open() is the reason that vb_device_why_none() finds on
 * the machine where the test runs.
 */
static void test_no_device(void)
{
	int why = vb_device_why_none("");

	fake_devices(0);
	expect_none(why, "");
	expect_none(why, "fake0");
	fake_devices(2);
	fake_verbs_fail("rdma_get_devices", 1, ENODEV);
	expect_none(why, "fake0");
	/* the library returns EPERM if a kernel module is missing */
	fake_verbs_fail("rdma_get_devices", 1, EPERM);
	expect_none(why, "fake0");
}

static void test_open_fails(void)
{
	static const struct {
		const char *function;
		int error;
	} rows[] = {{"rdma_get_devices", ENOMEM},
		    {"rdma_get_devices", EMFILE},
		    {"rdma_get_devices", ENFILE},
		    {"ibv_query_device", EIO},
		    {"ibv_query_port", EINVAL}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_verbs_fail(rows[i].function, 1, rows[i].error);
		expect_none(-rows[i].error, "fake0");
	}
	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
}

static void test_context_of_ids(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_PTR(dev.context, rig.a.id->verbs);
	TEST_ASSERT_TRUE(dev.context != rig.listener->verbs);
}

/* -- limits -- */

static void test_limits(void)
{
	struct fake_device *fake = fake_device(0);
	const struct vb_limits *limits = &dev.limits;

	fake->attr.max_qp = 11;
	fake->attr.max_qp_wr = 12;
	fake->attr.max_cqe = 14;
	fake->attr.max_mr = 15;
	fake->attr.max_qp_rd_atom = 17;
	fake->attr.max_qp_init_rd_atom = 18;
	fake->attr.max_mr_size = 1ull << 50;
	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
	TEST_ASSERT_EQUAL_UINT32(11, limits->max_qp);
	TEST_ASSERT_EQUAL_UINT32(12, limits->max_qp_wr);
	TEST_ASSERT_EQUAL_UINT32(14, limits->max_cqe);
	TEST_ASSERT_EQUAL_UINT32(15, limits->max_mr);
	TEST_ASSERT_EQUAL_UINT32(17, limits->max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT32(18, limits->max_init_rd_atomic);
	TEST_ASSERT_EQUAL_UINT64(1ull << 50, limits->max_mr_bytes);
	TEST_ASSERT_EQUAL_UINT32(1024, limits->mtu);
	TEST_ASSERT_EQUAL_INT(1, limits->port_up);
	TEST_ASSERT_EQUAL_INT(0, limits->odp);
}

static void test_port(void)
{
	static const uint32_t mtus[] = {[IBV_MTU_256] = 256,
					[IBV_MTU_512] = 512,
					[IBV_MTU_1024] = 1024,
					[IBV_MTU_2048] = 2048,
					[IBV_MTU_4096] = 4096};

	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		fake_device(0)->port.active_mtu = mtu;
		TEST_ASSERT_EQUAL_INT(0, vb_device_limits(dev.context, &dev.limits));
		TEST_ASSERT_EQUAL_UINT32(mtus[mtu], dev.limits.mtu);
	}
	for (int state = IBV_PORT_NOP; state <= IBV_PORT_ACTIVE_DEFER; state++) {
		fake_device(0)->port.state = state;
		TEST_ASSERT_EQUAL_INT(0, vb_device_limits(dev.context, &dev.limits));
		TEST_ASSERT_EQUAL_INT(state == IBV_PORT_ACTIVE, dev.limits.port_up);
	}
}

static int has_odp(uint64_t general, uint32_t rc_caps)
{
	fake_device(0)->odp_caps.general_caps = general;
	fake_device(0)->odp_caps.per_transport_caps.rc_odp_caps = rc_caps;
	TEST_ASSERT_EQUAL_INT(0, vb_device_limits(dev.context, &dev.limits));
	return dev.limits.odp;
}

/* On-demand paging is used only if all operations of a queue pair support it. */
static void test_paging_on_demand(void)
{
	static const uint32_t needed[] = {IBV_ODP_SUPPORT_SEND, IBV_ODP_SUPPORT_RECV,
					  IBV_ODP_SUPPORT_WRITE, IBV_ODP_SUPPORT_READ};

	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
	TEST_ASSERT_EQUAL_INT(1, has_odp(IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT, 0xff));
	TEST_ASSERT_EQUAL_INT(0, has_odp(0, 0xff));
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, has_odp(IBV_ODP_SUPPORT, 0xff & ~needed[i]));
	TEST_ASSERT_EQUAL_INT(1, has_odp(IBV_ODP_SUPPORT, 0xff));
	fake_verbs_fail("ibv_query_device_ex", 1, EIO);
	TEST_ASSERT_EQUAL_INT(0, has_odp(IBV_ODP_SUPPORT, 0xff));
}

/* -- events -- */

enum whose { NOBODYS, OF_QP, OF_CQ };

static void expect_event(enum ibv_event_type type, enum whose whose, int marks)
{
	struct vb_async_event *async = whose == OF_CQ ? &rig.a.cq.async : &rig.a.async;
	struct vb_async_event *other = whose == OF_CQ ? &rig.a.async : &rig.a.cq.async;
	enum ibv_event_type got = -1;

	fake_async_push(0, type,
			whose == OF_QP   ? (void *)rig.a.qp.qp
			: whose == OF_CQ ? (void *)rig.a.cq.cq
					 : NULL);
	TEST_ASSERT_EQUAL_INT(1, rig_ready(dev.context->async_fd));
	TEST_ASSERT_EQUAL_INT(1, vb_device_next_event(&dev, &got));
	TEST_ASSERT_EQUAL_STRING(ibv_event_type_str(type), ibv_event_type_str(got));
	TEST_ASSERT_EQUAL_INT_MESSAGE(marks ? (int)type + 1 : 0, async->event,
				      ibv_event_type_str(type));
	TEST_ASSERT_EQUAL_INT(0, other->event);
	TEST_ASSERT_EQUAL_INT(0, rig.b.async.event);
	TEST_ASSERT_EQUAL_INT(0, vb_device_next_event(&dev, &got));
	TEST_ASSERT_EQUAL_UINT64(rig_counters().async_events, rig_counters().async_acks);
	async->event = 0;
}

static void test_every_event(void)
{
	static const struct {
		enum whose whose;
		int marks;
	} rows[] = {
		[IBV_EVENT_CQ_ERR] = {OF_CQ, 1},
		[IBV_EVENT_QP_FATAL] = {OF_QP, 1},
		[IBV_EVENT_QP_REQ_ERR] = {OF_QP, 1},
		[IBV_EVENT_QP_ACCESS_ERR] = {OF_QP, 1},
		[IBV_EVENT_COMM_EST] = {OF_QP, 0},
		[IBV_EVENT_SQ_DRAINED] = {OF_QP, 0},
		[IBV_EVENT_PATH_MIG] = {OF_QP, 0},
		[IBV_EVENT_PATH_MIG_ERR] = {OF_QP, 0}, /* the connection stays on its path */
		[IBV_EVENT_DEVICE_FATAL] = {NOBODYS, 0},
		[IBV_EVENT_PORT_ACTIVE] = {NOBODYS, 0},
		[IBV_EVENT_PORT_ERR] = {NOBODYS, 0},
		[IBV_EVENT_LID_CHANGE] = {NOBODYS, 0},
		[IBV_EVENT_PKEY_CHANGE] = {NOBODYS, 0},
		[IBV_EVENT_SM_CHANGE] = {NOBODYS, 0},
		[IBV_EVENT_SRQ_ERR] = {NOBODYS, 0},
		[IBV_EVENT_SRQ_LIMIT_REACHED] = {NOBODYS, 0},
		[IBV_EVENT_QP_LAST_WQE_REACHED] = {OF_QP, 0},
		[IBV_EVENT_CLIENT_REREGISTER] = {NOBODYS, 0},
		[IBV_EVENT_GID_CHANGE] = {NOBODYS, 0},
		[IBV_EVENT_WQ_FATAL] = {NOBODYS, 0},
	};

	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_event((enum ibv_event_type)i, rows[i].whose, rows[i].marks);
}

static void test_no_event(void)
{
	enum ibv_event_type type;

	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
	TEST_ASSERT_EQUAL_INT(0, rig_ready(dev.context->async_fd));
	TEST_ASSERT_EQUAL_INT(0, vb_device_next_event(&dev, &type));
	fake_verbs_fail("ibv_get_async_event", 1, EINTR);
	TEST_ASSERT_EQUAL_INT(0, vb_device_next_event(&dev, &type));
	fake_verbs_fail("ibv_get_async_event", 1, ENODEV);
	TEST_ASSERT_EQUAL_INT(-ENODEV, vb_device_next_event(&dev, &type));
}

/*
 * A device reports an access violation to both ends: to the requester by a completion, to the
 * responder by an event.
 */
static void test_event_of_its_own(void)
{
	enum ibv_event_type type;

	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake1"));
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, rig_do(IBV_WR_RDMA_READ, RIG_BYTES, 1));
	TEST_ASSERT_EQUAL_INT(1, vb_device_next_event(&dev, &type));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_QP_ACCESS_ERR, type);
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_QP_ACCESS_ERR + 1, rig.b.async.event);
	TEST_ASSERT_EQUAL_INT(0, rig.a.async.event);
}

/* -- scan -- */

static struct fake_report report;

static int scan_for(int (*wanted)(const char *name))
{
	int rc;

	fake_report_init(&report);
	report.pub.array(&report.pub, "devices");
	rc = vb_device_scan(&report.pub, wanted);
	report.pub.end(&report.pub);
	TEST_ASSERT_EQUAL_INT(0, report.depth);
	return rc;
}

static int scan(void)
{
	return scan_for(NULL);
}

static void expect_text(const char *path, const char *value)
{
	const char *got = fake_reported(&report, path);

	TEST_ASSERT_NOT_NULL_MESSAGE(got, path);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(value, got, strlen(value), path);
	TEST_ASSERT_EQUAL_INT_MESSAGE('\n', got[strlen(value)], path);
}

static void test_scan(void)
{
	fake_device(1)->attr.max_qp = 77;
	fake_device(1)->port.state = IBV_PORT_DOWN;
	TEST_ASSERT_EQUAL_INT(2, scan());
	expect_text("devices.0.name", "fake0");
	expect_text("devices.0.state", "active");
	expect_text("devices.0.gids.0", "::ffff:10.99.0.1");
	TEST_ASSERT_NULL(fake_reported(&report, "devices.0.gids.1"));
	expect_text("devices.0.mtu_bytes", "1024");
	expect_text("devices.0.max_requests", "4096");
	expect_text("devices.0.max_completions", "32767");
	expect_text("devices.0.max_regions", "8192");
	expect_text("devices.0.max_region_bytes", "1099511627776");
	expect_text("devices.0.max_reads_under_way", "128");
	expect_text("devices.0.on_demand_paging", "false");
	expect_text("devices.1.name", "fake1");
	expect_text("devices.1.state", "down");
	expect_text("devices.1.gids.0", "::ffff:10.99.0.2");
	expect_text("devices.1.max_queue_pairs", "77");
}

static int is_fake1(const char *name)
{
	return !strcmp(name, "fake1");
}

static void test_scan_of_selected_devices(void)
{
	TEST_ASSERT_EQUAL_INT(1, scan_for(is_fake1));
	expect_text("devices.0.name", "fake1");
	TEST_ASSERT_NULL(fake_reported(&report, "devices.1.name"));
}

static void test_states(void)
{
	static const char *const states[] = {
		[IBV_PORT_NOP] = "unknown",   [IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "starting", [IBV_PORT_ARMED] = "starting",
		[IBV_PORT_ACTIVE] = "active", [IBV_PORT_ACTIVE_DEFER] = "unknown"};

	for (int state = IBV_PORT_NOP; state <= IBV_PORT_ACTIVE_DEFER; state++) {
		fake_device(0)->port.state = state;
		TEST_ASSERT_EQUAL_INT(2, scan());
		expect_text("devices.0.state", states[state]);
	}
}

static void test_scan_without_answer(void)
{
	static const char *const functions[] = {"ibv_query_device", "ibv_query_port"};

	for (int i = 0; i < 2; i++) {
		fake_verbs_fail(functions[i], 1, EIO);
		TEST_ASSERT_EQUAL_INT(2, scan());
		expect_text("devices.0.state", "does not answer");
		TEST_ASSERT_NULL(fake_reported(&report, "devices.0.mtu_bytes"));
		expect_text("devices.1.state", "active");
	}
	fake_verbs_fail("ibv_query_gid", 1, EIO);
	TEST_ASSERT_EQUAL_INT(2, scan());
	TEST_ASSERT_NULL(fake_reported(&report, "devices.0.gids.0"));
}

static void test_scan_finds_none(void)
{
	int why = vb_device_why_none("");

	fake_devices(0);
	TEST_ASSERT_EQUAL_INT(why == -ENODEV ? 0 : why, scan());
	TEST_ASSERT_EQUAL_STRING("", report.text);
	fake_verbs_fail("rdma_get_devices", 1, ENOMEM);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, scan());
}

/* -- reasons for having no device -- */

static void make(const char *path)
{
	char full[128];

	snprintf(full, sizeof(full), "%s%s", root, path);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, mkdir(full, 0755), full);
}

static void set_mode(const char *path, mode_t mode)
{
	char full[128];

	snprintf(full, sizeof(full), "%s%s", root, path);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, chmod(full, mode), full);
}

static int why_as_nobody(void)
{
	uid_t me = geteuid();
	int rc;

	TEST_ASSERT_EQUAL_INT(0, me == 0 ? seteuid(NOBODY) : 0);
	rc = vb_device_why_none(root);
	TEST_ASSERT_EQUAL_INT(0, me == 0 ? seteuid(me) : 0);
	return rc;
}

static void look_for_reasons(void)
{
	TEST_ASSERT_EQUAL_INT(-ENODEV, vb_device_why_none(root));
	make("/sys");
	make("/sys/class");
	make("/sys/class/infiniband");
	TEST_ASSERT_EQUAL_INT(-ENODEV, vb_device_why_none(root));
	make("/sys/class/infiniband/rxe0");
	TEST_ASSERT_EQUAL_INT(-ENOENT, vb_device_why_none(root));
	make("/dev");
	make("/dev/infiniband");
	make("/dev/infiniband/rdma_cm");
	TEST_ASSERT_EQUAL_INT(-ENOENT, vb_device_why_none(root));
	make("/dev/infiniband/uverbs0");
	TEST_ASSERT_EQUAL_INT(-EOPNOTSUPP, vb_device_why_none(root));
	set_mode("/dev/infiniband/rdma_cm", 0777);
	set_mode("/dev/infiniband/uverbs0", 0);
	TEST_ASSERT_EQUAL_INT(-EACCES, why_as_nobody());
	set_mode("/dev/infiniband/uverbs0", 0777);
	set_mode("/dev/infiniband/rdma_cm", 0444);
	TEST_ASSERT_EQUAL_INT(-EACCES, why_as_nobody());
	set_mode("/dev/infiniband/rdma_cm", 0777);
	TEST_ASSERT_EQUAL_INT(-EOPNOTSUPP, why_as_nobody());
}

static void test_reason_for_no_device(void)
{
	static char far_away[8192];

	strcpy(root, "/tmp/gantry-device-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(root));
	chmod(root, 0755);
	look_for_reasons();
	memset(far_away, '/', sizeof(far_away) - 1);
	TEST_ASSERT_EQUAL_INT(-ENODEV, vb_device_why_none(far_away));
}

static void test_advice(void)
{
	static const struct {
		int rc;
		const char *word;
	} rows[] = {
		{0, "rdma link add rxe0 type rxe netdev eth0"},
		{-ENODEV, "modprobe rdma_rxe"},
		{-ENOENT, "/dev/infiniband"},
		{-EACCES, "group"},
		{-EOPNOTSUPP, "ibverbs-providers"},
		{-ENOTUNIQ, "ibdev"},
		{-ENOMEM, "RLIMIT_MEMLOCK"},
		{-EIO, "Input/output error"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		TEST_ASSERT_TRUE_MESSAGE(strstr(vb_device_advice(rows[i].rc), rows[i].word),
					 rows[i].word);
}

static void test_unblock(void)
{
	int fds[2];

	TEST_ASSERT_EQUAL_INT(0, pipe(fds));
	TEST_ASSERT_EQUAL_INT(0, vb_fd_unblock(fds[0]));
	rig_check_fd(fds[0]);
	TEST_ASSERT_EQUAL_INT(O_RDONLY, fcntl(fds[0], F_GETFL) & O_ACCMODE);
	close(fds[0]);
	close(fds[1]);
	TEST_ASSERT_EQUAL_INT(-EBADF, vb_fd_unblock(fds[0]));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_by_name);
	RUN_TEST(test_empty_name_opens_the_only_device);
	RUN_TEST(test_ambiguous_or_unknown_name);
	RUN_TEST(test_no_device);
	RUN_TEST(test_open_fails);
	RUN_TEST(test_context_of_ids);
	RUN_TEST(test_limits);
	RUN_TEST(test_port);
	RUN_TEST(test_paging_on_demand);
	RUN_TEST(test_every_event);
	RUN_TEST(test_no_event);
	RUN_TEST(test_event_of_its_own);
	RUN_TEST(test_scan);
	RUN_TEST(test_scan_of_selected_devices);
	RUN_TEST(test_states);
	RUN_TEST(test_scan_without_answer);
	RUN_TEST(test_scan_finds_none);
	RUN_TEST(test_reason_for_no_device);
	RUN_TEST(test_advice);
	RUN_TEST(test_unblock);
	return UNITY_END();
}
