/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks of a device compared with those of the host, and memory hints. */
#include <doca_clock.h>
#include <doca_mmap_advise.h>

#include "serial_rig.h"

static struct doca_clock *clock_;

void setUp(void)
{
	rig_up();
	OK(doca_clock_create(&dev, &clock_));
}

void tearDown(void)
{
	OK(doca_clock_destroy(clock_));
	rig_down();
}

static const uint64_t nics[] = {DOCA_CLOCK_NIC_FREE_RUNNING, DOCA_CLOCK_NIC_REAL_TIME,
				DOCA_CLOCK_NIC_DPA_TIMER};
static const uint64_t hosts[] = {DOCA_CLOCK_HOST_REAL_TIME, DOCA_CLOCK_HOST_MONOTONIC,
				 DOCA_CLOCK_HOST_MONOTONIC_RAW};

static int64_t ns_of(const union doca_clock_timespec_t *ts)
{
	TEST_ASSERT_TRUE(ts->ts.tv_nsec >= 0 && ts->ts.tv_nsec < 1000000000);
	return (int64_t)ts->ts.tv_sec * 1000000000 + ts->ts.tv_nsec;
}

static void every_clock_goes_forward(void)
{
	union doca_clock_timespec_t a, b;
	struct timespec now;

	for (int i = 0; i < 3; i++) {
		OK(doca_clock_get_timestamp(clock_, nics[i], &a));
		OK(doca_clock_get_timestamp(clock_, nics[i], &b));
		TEST_ASSERT_TRUE(ns_of(&a) > 0 && ns_of(&b) >= ns_of(&a));
		OK(doca_clock_get_timestamp(clock_, hosts[i], &a));
		OK(doca_clock_get_timestamp(clock_, hosts[i], &b));
		TEST_ASSERT_TRUE(ns_of(&a) > 0 && ns_of(&b) >= ns_of(&a));
	}
	OK(doca_clock_get_timestamp(clock_, DOCA_CLOCK_HOST_COUNTER_CYCLES, &a));
	do /* the counter may advance so slowly that two reads return the same value */
		OK(doca_clock_get_timestamp(clock_, DOCA_CLOCK_HOST_COUNTER_CYCLES, &b));
	while (b.counter == a.counter);
	TEST_ASSERT_TRUE(b.counter > a.counter);
	clock_gettime(CLOCK_REALTIME, &now);
	OK(doca_clock_get_timestamp(clock_, DOCA_CLOCK_NIC_REAL_TIME, &a));
	TEST_ASSERT_TRUE(a.ts.tv_sec - now.tv_sec <= 1);
}

/*
 * The library reads HOST_MONOTONIC_RAW and NIC_FREE_RUNNING from the same clock of the kernel. So
 * the two timestamps of a pair differ by at most the margin.
 */
static void a_pair_was_read_within_its_margin(void)
{
	union doca_clock_timespec_t host, nic;
	uint64_t margin;
	int64_t apart;

	for (int i = 0; i < 100; i++) {
		OK(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_MONOTONIC_RAW,
						 DOCA_CLOCK_NIC_FREE_RUNNING, &host, &nic,
						 &margin));
		apart = ns_of(&host) - ns_of(&nic);
		TEST_ASSERT_TRUE((apart < 0 ? -apart : apart) <= (int64_t)margin + 1);
	}
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			OK(doca_clock_get_crosstimestamp(clock_, hosts[i], nics[j], &host, &nic,
							 &margin));
			TEST_ASSERT_TRUE(ns_of(&host) > 0 && ns_of(&nic) > 0);
		}
	OK(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_COUNTER_CYCLES,
					 DOCA_CLOCK_NIC_REAL_TIME, &host, &nic, &margin));
	TEST_ASSERT_TRUE(host.counter > 0 && margin > 0);
}

/*
 * The library reads five pairs and takes the best, so the margin is at most half of a fifth of the
 * time that the call took.
 */
static void margin_is_in_nanoseconds_for_each_clock(void)
{
	union doca_clock_timespec_t host, nic, before, after;
	uint64_t margin;

	for (int i = 0; i < 100; i++) {
		OK(doca_clock_get_timestamp(clock_, DOCA_CLOCK_NIC_FREE_RUNNING, &before));
		OK(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_COUNTER_CYCLES,
						 DOCA_CLOCK_NIC_FREE_RUNNING, &host, &nic,
						 &margin));
		OK(doca_clock_get_timestamp(clock_, DOCA_CLOCK_NIC_FREE_RUNNING, &after));
		TEST_ASSERT_TRUE(margin > 0 &&
				 (int64_t)margin <= (ns_of(&after) - ns_of(&before)) / 5 / 2 + 1);
		TEST_ASSERT_TRUE(ns_of(&before) <= ns_of(&nic) && ns_of(&nic) <= ns_of(&after));
	}
}

static void wrong_clocks_are_refused(void)
{
	union doca_clock_timespec_t a, b;
	struct doca_clock *c;
	uint64_t margin;

	OK(doca_clock_cap_nic_free_running_is_supported(&info));
	OK(doca_clock_cap_nic_real_time_is_supported(&info));
	OK(doca_clock_cap_nic_dpa_timer_is_supported(&info));
	REFUSED(INVALID_VALUE, doca_clock_cap_nic_real_time_is_supported(NULL));
	REFUSED(INVALID_VALUE, doca_clock_create(NULL, &c));
	REFUSED(INVALID_VALUE, doca_clock_create(&dev, NULL));
	REFUSED(INVALID_VALUE, doca_clock_destroy(NULL));
	REFUSED(INVALID_VALUE, doca_clock_get_timestamp(clock_, 0, &a));
	REFUSED(INVALID_VALUE, doca_clock_get_timestamp(clock_, 1 << 5, &a));
	REFUSED(INVALID_VALUE,
		doca_clock_get_timestamp(
			clock_, DOCA_CLOCK_NIC_REAL_TIME | DOCA_CLOCK_NIC_FREE_RUNNING, &a));
	REFUSED(INVALID_VALUE, doca_clock_get_timestamp(NULL, DOCA_CLOCK_NIC_REAL_TIME, &a));
	REFUSED(INVALID_VALUE, doca_clock_get_timestamp(clock_, DOCA_CLOCK_NIC_REAL_TIME, NULL));
	REFUSED(INVALID_VALUE,
		doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_NIC_REAL_TIME,
					      DOCA_CLOCK_HOST_MONOTONIC, &a, &b, &margin));
	REFUSED(INVALID_VALUE, doca_clock_get_crosstimestamp(clock_, 0, DOCA_CLOCK_NIC_REAL_TIME,
							     &a, &b, &margin));
	REFUSED(INVALID_VALUE,
		doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_MONOTONIC,
					      DOCA_CLOCK_NIC_REAL_TIME, &a, &b, NULL));
}

static void device_of_a_clock_cannot_be_closed(void)
{
	REFUSED(IN_USE, doca_dev_close(&dev));
	OK(doca_clock_destroy(clock_));
	OK(doca_dev_close(&dev));
	dev.references = 1;
	OK(doca_clock_create(&dev, &clock_));
}

/* -- hints -- */

static void a_cache_is_invalidated_by_a_task(void)
{
	struct doca_mmap_advise_task_invalidate_cache *task, *more;
	struct doca_mmap_advise *advise;
	struct doca_buf *src = source(0, 1024), *dst = room(0, 64);
	uint64_t size;

	OK(doca_mmap_advise_cap_task_cache_invalidate_is_supported(&info));
	REFUSED(INVALID_VALUE, doca_mmap_advise_cap_task_cache_invalidate_is_supported(NULL));
	OK(doca_mmap_advise_task_cache_invalidate_get_max_buf_size(&info, &size));
	REFUSED(INVALID_VALUE, doca_mmap_advise_create(NULL, &advise));
	OK(doca_mmap_advise_create(&dev, &advise));
	REFUSED(INVALID_VALUE,
		doca_mmap_advise_task_invalidate_cache_set_conf(advise, NULL, NULL, 1));
	OK(doca_mmap_advise_task_invalidate_cache_set_conf(
		advise, DONE_AND_ERROR(doca_mmap_advise_task_invalidate_cache_completion_cb_t), 1));
	rig_start(doca_mmap_advise_as_ctx(advise));
	/* after start the setter returns NOT_PERMITTED, not BAD_STATE */
	REFUSED(NOT_PERMITTED,
		doca_mmap_advise_task_invalidate_cache_set_conf(
			advise,
			DONE_AND_ERROR(doca_mmap_advise_task_invalidate_cache_completion_cb_t), 1));
	OK(doca_mmap_advise_task_invalidate_cache_alloc_init(advise, src, no_data, &task));
	REFUSED(NO_MEMORY,
		doca_mmap_advise_task_invalidate_cache_alloc_init(advise, src, no_data, &more));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      run_task(doca_mmap_advise_task_invalidate_cache_as_doca_task(task)));
	doca_mmap_advise_task_invalidate_cache_set_buf(task, dst);
	TEST_ASSERT_EQUAL_PTR(dst, doca_mmap_advise_task_invalidate_cache_get_buf(task));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      run_task(doca_mmap_advise_task_invalidate_cache_as_doca_task(task)));
	doca_mmap_advise_task_invalidate_cache_set_buf(task, NULL);
	REFUSED(INVALID_VALUE,
		doca_task_try_submit(doca_mmap_advise_task_invalidate_cache_as_doca_task(task)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      run_task(doca_mmap_advise_task_invalidate_cache_as_doca_task(task)));
	REFUSED(IN_USE, doca_mmap_advise_destroy(advise));
	doca_task_free(doca_mmap_advise_task_invalidate_cache_as_doca_task(task));
	rig_stop(doca_mmap_advise_as_ctx(advise));
	OK(doca_mmap_advise_destroy(advise));
	REFUSED(INVALID_VALUE, doca_mmap_advise_destroy(NULL));
	give_back(src, dst);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(every_clock_goes_forward);
	RUN_TEST(a_pair_was_read_within_its_margin);
	RUN_TEST(margin_is_in_nanoseconds_for_each_clock);
	RUN_TEST(wrong_clocks_are_refused);
	RUN_TEST(device_of_a_clock_cannot_be_closed);
	RUN_TEST(a_cache_is_invalidated_by_a_task);
	return UNITY_END();
}
