/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file descriptors that the connections of one user make this process hold are counted
 * together, over all devices of the process. Each counts until the closer thread has closed it.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../plugins/transport/shm-comch/shm_share.c"
#define lock closer_lock /* both files define `lock` */
#include "../plugins/transport/shm-comch/shm_closer.c"
#undef lock
#include "unity.h"

static struct comch_device one, two;
static struct comch_closer closer;
static int n_kicked;

void comch_close_fds(const int *fds, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

unsigned int comch_count_open(const int *fds, unsigned int n)
{
	unsigned int n_open = 0;

	for (unsigned int i = 0; i < n; i++)
		n_open += fds[i] >= 0;
	return n_open;
}

void comch_device_kick(struct comch_device *dev)
{
	TEST_ASSERT_EQUAL_PTR(&one, dev);
	n_kicked++;
}

static void open_device(struct comch_device *dev)
{
	*dev = (struct comch_device){.uids = {1000, 1001}, .n_uids = 2, .pid = getpid()};
	TEST_ASSERT_EQUAL_INT(0, comch_shares_open(dev));
}

void setUp(void)
{
	open_device(&one);
	open_device(&two);
	/* no thread runs the closer: the test decides when descriptors are closed */
	memset(&closer, 0, sizeof(closer));
	closer.dev = &one;
	closer.last = &closer.first;
	pthread_mutex_init(&closer.closer_lock, NULL);
	pthread_cond_init(&closer.work, NULL);
	n_kicked = 0;
}

void tearDown(void)
{
	comch_shares_close(&one);
	comch_shares_close(&two);
	TEST_ASSERT_NULL(users);
}

static void user_can_use_three_quarters_if_others_are_permitted(void)
{
	TEST_ASSERT_EQUAL_UINT(768, fds_of_one(1024, 2));
	TEST_ASSERT_EQUAL_UINT(192, fds_of_one(256, 16));
	TEST_ASSERT_EQUAL_UINT(6, fds_of_one(9, 2));
	TEST_ASSERT_EQUAL_UINT(1024, fds_of_one(1024, 1));
	TEST_ASSERT_EQUAL_UINT(FDS_MOST / 4 * 3, fds_of_one(RLIM_INFINITY, 2));
	TEST_ASSERT_EQUAL_UINT(FDS_MOST, fds_of_one(RLIM_INFINITY, 1));
}

static void the_limit_is_that_of_the_process_when_the_device_opens(void)
{
	struct rlimit before, low;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &before));
	low = before;
	low.rlim_cur = 200;
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &low));
	comch_shares_close(&two);
	open_device(&two);
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &before));
	TEST_ASSERT_EQUAL_UINT(150, two.max_fds);
}

static void users_are_counted_one_by_one(void)
{
	struct comch_user *user = comch_share(&one, 1000)->user,
			  *other = comch_share(&one, 1001)->user;
	char text[COMCH_REFUSED_TEXT];

	one.max_fds = 10;
	TEST_ASSERT_TRUE(comch_fds_add(&one, user, 10));
	TEST_ASSERT_FALSE(comch_fds_add(&one, user, 1));
	TEST_ASSERT_TRUE(comch_fds_add(&one, other, 10));
	comch_fds_sub(user, 1);
	TEST_ASSERT_EQUAL_UINT(10, comch_fds_held(user));
	comch_fds_text(&one, other, text);
	TEST_ASSERT_EQUAL_STRING(
		"busy: limit of file descriptors=10 reached by uid 1001: end sessions, or raise ulimit -n of the listener",
		text);
	TEST_ASSERT_NULL(comch_share(&one, 1002));
}

static void user_of_two_devices_is_counted_once(void)
{
	struct comch_user *user = comch_share(&one, 1000)->user;

	TEST_ASSERT_EQUAL_PTR(user, comch_share(&two, 1000)->user);
	two.max_fds = 3;
	comch_fds_add(&one, user, 2);
	TEST_ASSERT_TRUE(comch_fds_add(&two, user, 1));
	TEST_ASSERT_FALSE(comch_fds_add(&two, user, 1));
}

static int open_one(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void a_descriptor_counts_until_it_is_closed(void)
{
	struct comch_user *user = comch_share(&one, 1000)->user,
			  *other = comch_share(&one, 1001)->user;
	int fds[4] = {open_one(), -1, open_one(), -1}, more = open_one();
	struct batch *list;

	one.closer = &closer;
	comch_fds_add(&one, user, 2);
	comch_fds_add(&one, other, 2);
	comch_close_foreign(&one, user, fds, 4);
	comch_close_foreign(&one, other, &more, 1);
	TEST_ASSERT_EQUAL_UINT(2, comch_fds_held(user));
	TEST_ASSERT_EQUAL_UINT(2, comch_fds_held(other));
	TEST_ASSERT_TRUE(fcntl(more, F_GETFD) >= 0);
	list = closer.first;
	close_all(list);
	TEST_ASSERT_EQUAL_UINT(0, comch_fds_held(user));
	TEST_ASSERT_EQUAL_UINT(1, comch_fds_held(other));
	TEST_ASSERT_EQUAL_INT(-1, fcntl(more, F_GETFD));
	TEST_ASSERT_EQUAL_INT(-1, fcntl(fds[0], F_GETFD));
	TEST_ASSERT_EQUAL_INT(-1, fcntl(fds[2], F_GETFD));
}

static void descriptors_are_closed_at_once_without_a_closer(void)
{
	struct comch_user *user = comch_share(&one, 1000)->user;
	int fds[2] = {-1, open_one()};

	comch_fds_add(&one, user, 1);
	comch_close_foreign(&one, user, fds, 2);
	TEST_ASSERT_EQUAL_INT(-1, fcntl(fds[1], F_GETFD));
	TEST_ASSERT_EQUAL_UINT(0, comch_fds_held(user));
}

static void paused_listener_resumes_when_descriptors_are_closed(void)
{
	struct comch_user *user = comch_share(&one, 1000)->user;
	int fd = open_one();

	one.paused = 1;
	comch_fds_add(&one, user, 1);
	TEST_ASSERT_EQUAL_INT(0, comch_closer_open(&one, &one.closer));
	comch_close_foreign(&one, user, &fd, 1);
	comch_closer_close(one.closer);
	TEST_ASSERT_EQUAL_INT(1, n_kicked);
	TEST_ASSERT_EQUAL_UINT(0, one.paused);
	TEST_ASSERT_EQUAL_UINT(0, comch_fds_held(user));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(user_can_use_three_quarters_if_others_are_permitted);
	RUN_TEST(the_limit_is_that_of_the_process_when_the_device_opens);
	RUN_TEST(users_are_counted_one_by_one);
	RUN_TEST(user_of_two_devices_is_counted_once);
	RUN_TEST(a_descriptor_counts_until_it_is_closed);
	RUN_TEST(descriptors_are_closed_at_once_without_a_closer);
	RUN_TEST(paused_listener_resumes_when_descriptors_are_closed);
	return UNITY_END();
}
