/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that libgantry rejects, and the text of gantry_error() for each: every invalid IO, and
 * every volume that cannot be opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define SHARED (4u * BLOCK)

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct gantry_volume_attr attr;

static int cannot_wait; /* epoll_wait() fails; accessed by __atomic */

/* Replaces the function of the C library. */
__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int max,
						      int timeout_ms)
{
	if (!__atomic_load_n(&cannot_wait, __ATOMIC_RELAXED))
		return epoll_pwait(fd, events, max, timeout_ms, NULL);
	errno = EBADF;
	return -1;
}

void setUp(void)
{
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	volume = NULL;
	queue = NULL;
}

void tearDown(void)
{
	served_finish(&queue, &volume);
}

static void says(const char *text)
{
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), text), gantry_error());
	TEST_ASSERT_NULL_MESSAGE(strchr(gantry_error(), '\n'), "more than one line");
}

static void open_direct(void)
{
	int rc = gantry_volume_open_role(served_file, "direct", &attr, &volume);

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

/* -- IOs -- */

enum where { OWN, SHARED_BUFFER, SHARED_END, NOWHERE };

struct wrong {
	unsigned op;
	enum where where;
	uint64_t length, offset;
	unsigned flags;
	int rc;
	const char *text;
};

static uint8_t own[3 << 20];

static void *buffer(enum where where)
{
	uint64_t bytes;
	uint8_t *shared = gantry_volume_buffers(volume, &bytes);

	switch (where) {
	case OWN:
		return own;
	case SHARED_BUFFER:
		return shared;
	case SHARED_END:
		return shared + bytes - BLOCK;
	default:
		return NULL;
	}
}

static int submit(const struct wrong *w, gantry_done_fn *done, struct served_io *io)
{
	switch (w->op) {
	case GANTRY_OP_READ:
		return gantry_queue_read(queue, buffer(w->where), w->length, w->offset, done, io);
	case GANTRY_OP_WRITE:
		return gantry_queue_write(queue, buffer(w->where), w->length, w->offset, w->flags,
					  done, io);
	case GANTRY_OP_DISCARD:
		return gantry_queue_discard(queue, w->length, w->offset, done, io);
	case GANTRY_OP_WRITE_ZEROES:
		return gantry_queue_write_zeroes(queue, w->length, w->offset, w->flags, done, io);
	default:
		return gantry_queue_flush(queue, done, io);
	}
}

static void refuse(const struct wrong *w, unsigned n)
{
	struct served_io io = {0, 1};

	for (; n--; w++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(w->rc, submit(w, served_done, &io), w->text);
		says(w->text);
		TEST_ASSERT_EQUAL_UINT32(0, gantry_queue_inflight(queue));
	}
	gantry_queue_poll(queue);
	TEST_ASSERT_EQUAL_INT(0, io.n);
}

#define REFUSE(table) refuse(table, sizeof(table) / sizeof((table)[0]))

static void test_invalid_ios_are_rejected(void)
{
	static const struct wrong table[] = {
		{GANTRY_OP_READ, OWN, 0, 0, 0, -EINVAL, "block_size=4096"},
		{GANTRY_OP_READ, OWN, 1, 0, 0, -EINVAL, "block_size=4096"},
		{GANTRY_OP_WRITE, OWN, BLOCK + 512, 0, 0, -EINVAL, "block_size=4096"},
		{GANTRY_OP_WRITE, OWN, BLOCK, 512, 0, -EINVAL, "block_size=4096"},
		{GANTRY_OP_DISCARD, OWN, 512, 0, 0, -EINVAL, "block_size=4096"},
		{GANTRY_OP_READ, OWN, BLOCK, SERVED_BYTES, 0, -ERANGE, "limit size=16777216"},
		{GANTRY_OP_WRITE, OWN, 2 * BLOCK, SERVED_BYTES - BLOCK, 0, -ERANGE,
		 "range exceeds the volume"},
		{GANTRY_OP_WRITE_ZEROES, OWN, BLOCK, 0 - (uint64_t)BLOCK, 0, -ERANGE,
		 "range exceeds the volume"},
		{GANTRY_OP_DISCARD, OWN, 0 - (uint64_t)BLOCK, BLOCK, 0, -ERANGE,
		 "range exceeds the volume"},
		{GANTRY_OP_READ, OWN, 2 * BLOCK, 0, 0, -EMSGSIZE, "limit copy_bytes=4096"},
		{GANTRY_OP_WRITE, OWN, 2 << 20, 0, 0, -EMSGSIZE, "gantry_volume_buffers()"},
		{GANTRY_OP_WRITE, OWN, BLOCK, 0, 0x80, -EINVAL, "unknown flags 0x80"},
		{GANTRY_OP_WRITE, OWN, BLOCK, 0, GANTRY_IO_CRC, -EINVAL, "unknown flags 0x2"},
		{GANTRY_OP_WRITE_ZEROES, OWN, BLOCK, 0, 0x101, -EINVAL, "unknown flags 0x101"},
		{GANTRY_OP_READ, NOWHERE, BLOCK, 0, 0, -EINVAL, "no buffer"},
		{GANTRY_OP_WRITE, SHARED_END, 2 * BLOCK, 0, 0, -EINVAL, "ends behind it"},
	};
	struct served_io io = {0, 1};

	served_begin(NULL);
	served_start("store");
	attr.copy_bytes = BLOCK;
	attr.buffer_bytes = SHARED;
	open_direct();
	REFUSE(table);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_queue_flush(queue, NULL, NULL));
	says("no function `done`");
	/* the largest valid range is accepted */
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_write(queue, buffer(SHARED_BUFFER), SHARED,
						    SERVED_BYTES - SHARED, GANTRY_IO_FUA,
						    served_done, &io));
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(0, io.result);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, own, BLOCK, SERVED_BYTES - BLOCK));
}

static void test_io_longer_than_the_volume_accepts_is_rejected(void)
{
	static const struct wrong table[] = {
		{GANTRY_OP_DISCARD, OWN, 2ull << 30, 0, 0, -EMSGSIZE, "IO too long"},
		{GANTRY_OP_WRITE_ZEROES, OWN, 6ull << 30, 0, 0, -EMSGSIZE, "IO too long"},
	};
	const struct served_options options = {.backend = "type = \"null\"; size = \"64GiB\";"};

	served_begin(&options);
	served_start("store");
	open_direct();
	REFUSE(table);
}

static void test_writes_to_a_read_only_volume_are_rejected(void)
{
	static const struct wrong table[] = {
		{GANTRY_OP_WRITE, OWN, BLOCK, 0, 0, -EROFS, "read-only"},
		{GANTRY_OP_DISCARD, OWN, BLOCK, 0, 0, -EROFS, "read-only"},
		{GANTRY_OP_WRITE_ZEROES, OWN, BLOCK, 0, 0, -EROFS, "read-only"},
	};
	char path[] = "/tmp/gantry-clients-read-only.XXXXXX", backend[256];
	struct served_options options = {.backend = backend};
	int fd = mkostemp(path, O_CLOEXEC);

	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, 1 << 20));
	close(fd);
	snprintf(backend, sizeof(backend), "type = \"file\"; path = \"%s\"; read_only = true;",
		 path);
	served_begin(&options);
	served_start("store");
	open_direct();
	REFUSE(table);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, own, BLOCK, 0));
	unlink(path);
}

static void test_io_beyond_the_queue_depth_is_rejected(void)
{
	struct served_io ios[3] = {{0, 1}};

	attr.depth = 2;
	served_begin(NULL);
	served_start("store");
	open_direct();
	served_signal("store", SIGSTOP);
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, gantry_queue_flush(queue, served_done, &ios[i]));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, gantry_queue_flush(queue, served_done, &ios[2]));
	says("gantry_queue_poll");
	TEST_ASSERT_EQUAL_UINT32(2, gantry_queue_inflight(queue));
	served_signal("store", SIGCONT);
	served_wait(queue, ios, 3, 2);
	TEST_ASSERT_EQUAL_INT(0, ios[2].n);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_flush(queue, served_done, &ios[2]));
	served_wait(queue, ios, 3, 3);
}

/* -- volumes -- */

/*
 * Every message names its volume. None mentions --set, the option of gantry: the library loads the
 * settings of a URI in the same way as the arguments of that option.
 */
static void names(const char *name)
{
	char shown[129];

	snprintf(shown, sizeof(shown), "%.128s", name);
	says(shown);
	TEST_ASSERT_NULL_MESSAGE(strstr(gantry_error(), "--set"), gantry_error());
}

static void no_volume(int rc, const char *role, const char *text)
{
	int got;

	volume = (struct gantry_volume *)own;
	got = gantry_volume_open_role(served_file, role, &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(rc, got, gantry_error());
	TEST_ASSERT_NULL(volume);
	says(text);
	names(served_file);
}

static void no_uri(int rc, const char *uri, const char *text)
{
	int got;

	volume = (struct gantry_volume *)own;
	got = gantry_volume_open(uri, &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(rc, got, gantry_error());
	TEST_ASSERT_NULL(volume);
	says(text);
	if (uri && !strstr(uri, "config="))
		names(uri);
}

static void test_open_fails_without_a_listener(void)
{
	const struct served_options options = {.connect = "timeout = \"100ms\";"};

	served_begin(&options);
	no_volume(-ECONNREFUSED, "direct", "no listener");
	says("served.conf:");
	no_uri(-ECONNREFUSED, served_uri("volume", "&connect.timeout=100ms"), "no listener");
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, strncmp(gantry_error(), "gantry:///volume?", 17),
				      gantry_error());
}

static void test_a_gateway_without_its_target(void)
{
	const struct served_options options = {
		.connect = "timeout = \"20s\"; control_timeout = \"60s\";",
		.bridge = "timeout = \"200ms\";", /* the gateway reports the error first */
	};

	served_begin(&options);
	served_start("bridge");
	no_volume(-EIO, "load", "refused at hello: target: ");
	says("no listener");
}

static void test_open_fails_for_unsuitable_roles(void)
{
	served_begin(NULL);
	no_volume(-ENOENT, "nobody", "nobody");
	no_volume(-EINVAL, "store", "connect");
	no_volume(-EINVAL, "bridge", "connect");
	no_volume(-EINVAL, NULL, "load");
	says("direct");
	no_uri(-ENOENT, "gantry:///?config=/tmp/gantry-clients-none.conf",
	       "/tmp/gantry-clients-none.conf");
}

static void rewrite(const char *text)
{
	FILE *f = fopen(served_file, "we");

	TEST_ASSERT_NOT_NULL(f);
	fputs(text, f);
	fclose(f);
}

static void test_configurations_with_mistakes(void)
{
	char uri[256];

	served_begin(NULL);
	rewrite("devices = {\n d = { transport = \"loop\"; };\n};\nroles = {\n a = { role = \"initiator\";\n"
		"  connect = { device = \"e\"; name = \"v\"; }; };\n};\n");
	no_volume(-EINVAL, "a", "served.conf:6: roles.a.connect.device: there is no device \"e\"");
	rewrite("devices = {\n");
	no_volume(-EINVAL, "a", "served.conf:1");
	snprintf(uri, sizeof(uri), "gantry:///?config=%s&role=a", served_file);
	no_uri(-EINVAL, uri, "served.conf:1");
	rewrite("devices = { d = { transport = \"loop\"; }; };\nroles = { };\n");
	no_volume(-ENOENT, NULL, "role");
	unlink(served_file);
	no_volume(-ENOENT, "a", "served.conf");
}

static void test_uris_with_mistakes(void)
{
	served_begin(NULL);
	no_uri(-EINVAL, "volume0", "is no gantry URI");
	no_uri(-EINVAL, "gantry:///v?transport=none", "no plugin \"none\"");
	no_uri(-EINVAL, "gantry:///v?connect.heartbeat=never",
	       "gantry:///v?connect.heartbeat=never: roles.volume.connect.heartbeat");
	no_uri(-EINVAL, "gantry:///v?device.size=1", "devices.dpu0.size");
	no_uri(-EINVAL, "gantry:///v?device.max_depth=99999999999999999999",
	       "devices.dpu0.max_depth: \"99999999999999999999\" is too large; write 1 to 65536");
	no_uri(-EINVAL, "gantry:///v?device.max_bytes=99999999999GiB",
	       "devices.dpu0.max_bytes: \"99999999999GiB\" is too large; write 4KiB to 8388607TiB");
	no_uri(-EINVAL, "gantry:///v?device.max_bytes=-1",
	       "devices.dpu0.max_bytes: -1 is out of range; write 4KiB or more");
	no_uri(-EINVAL, "gantry:///v?device.max_depth=1e3",
	       "devices.dpu0.max_depth: \"1e3\" is not a whole number; write 1 to");
	no_uri(-EINVAL, "gantry:///v?connect.timeout=-1s",
	       "connect.timeout: \"-1s\" is too small; write ");
	no_uri(-EINVAL, "gantry:///v?connect.timeout=0x10",
	       "connect.timeout: \"0x10\" is not a time; write ");
	attr.queues = 65;
	no_uri(-EINVAL, "gantry:///v", "queues=65");
	attr.queues = 0;
	no_uri(-EINVAL, NULL, "no URI");
}

static void test_attributes_with_mistakes(void)
{
	struct {
		struct gantry_volume_attr attr;
		uint64_t more;
	} later = {.attr = {.struct_size = sizeof(later)}};

	served_begin(NULL);
	served_start("store");
	attr.queues = 65;
	no_volume(-EINVAL, "direct", "queues=65");
	attr.queues = 1;
	attr.depth = 65536;
	no_volume(-EINVAL, "direct", "depth=65536");
	attr.depth = 300; /* more than listen.max_depth */
	no_volume(-EINVAL, "direct", "max_depth");
	attr.depth = 0;
	attr.buffer_bytes = 1ull << 62;
	no_volume(-ENOMEM, "direct", "");
	attr.buffer_bytes = 0;
	attr.struct_size = 0;
	no_volume(-EINVAL, "direct", "GANTRY_VOLUME_ATTR_INIT");
	attr.struct_size = 0x5eed5eed; /* garbage, as from an uninitialised struct */
	no_volume(-EINVAL, "direct", "GANTRY_VOLUME_ATTR_INIT");
	attr.struct_size = 8; /* of an ABI version with fewer fields */
	attr.depth = 70000;
	open_direct();
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	TEST_ASSERT_EQUAL_INT(0,
			      gantry_volume_open_role(served_file, "direct", &later.attr, &volume));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	later.more = 1;
	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      gantry_volume_open_role(served_file, "direct", &later.attr, &volume));
	says("this version of libgantry");
}

static void test_open_fails_if_a_limit_of_the_server_is_reached(void)
{
	const struct served_options options = {
		.listen = "max_sessions = 1; max_region_bytes = \"64MiB\";",
		.connect = "timeout = \"3s\";"};
	struct gantry_volume *first;

	served_begin(&options);
	served_start("store");
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(served_file, "direct", &attr, &first));
	no_volume(
		-EBUSY, "direct",
		"busy: listen.max_sessions=1 reached by all peers together: raise it or close connections");
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&first));
	attr.buffer_bytes = 65 << 20;
	no_volume(-EACCES, "direct", "max_region_bytes");
}

/* For each limit of descriptors that is too low, errno and message report the limit. */
static void test_out_of_file_descriptors(void)
{
	struct rlimit enough, few;
	char text[512];
	int rc;

	served_begin(NULL);
	served_start("store");
	open_direct(); /* wait until the server listens */
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	snprintf(
		text, sizeof(text),
		"devices = { back = { transport = \"shm-comch\"; dir = \"%s\"; pci = \"04:00.0\"; }; };\n"
		"roles = { host = { role = \"initiator\"; connect = { device = \"back\"; name = \"store\"; }; }; };\n",
		served_dir);
	rewrite(text);
	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &enough));
	few = enough;
	few.rlim_cur = 0;
	do {
		few.rlim_cur++;
		TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &few));
		rc = gantry_volume_open_role(served_file, NULL, &attr, &volume);
		TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &enough));
		if (rc) {
			TEST_ASSERT_EQUAL_INT_MESSAGE(-EMFILE, rc, gantry_error());
			says(strerror(EMFILE));
			names(served_file);
		}
	} while (rc && few.rlim_cur < 200);
	TEST_ASSERT_EQUAL_INT(0, rc);
}

/* A program that closes all descriptors closes those of the library as well. */
static void test_open_fails_if_the_control_thread_cannot_wait(void)
{
	served_begin(NULL);
	served_start("store");
	__atomic_store_n(&cannot_wait, 1, __ATOMIC_RELAXED);
	TEST_ASSERT_EQUAL_INT(-EBADF,
			      gantry_volume_open_role(served_file, "direct", &attr, &volume));
	__atomic_store_n(&cannot_wait, 0, __ATOMIC_RELAXED);
	TEST_ASSERT_NULL(volume);
	says(strerror(EBADF));
}

/* -- missing access rights -- */

/*
 * Open the volume in a child process, which runs as the user `nobody` if this process is root.
 * Returns the result of the open, -errno; its message in `text`.
 */
static int open_as_nobody(char *text, size_t bytes)
{
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	pid = fork();
	TEST_ASSERT_GREATER_OR_EQUAL(0, pid);
	if (pid == 0) {
		int rc;

		if (getuid() == 0 && (setgroups(0, NULL) || setgid(65534) || setuid(65534)))
			_exit(1);
		rc = gantry_volume_open_role(served_file, "direct", &attr, &volume);
		if (write(ends[1], gantry_error(), strlen(gantry_error())) < 0)
			_exit(1);
		_exit(-rc);
	}
	close(ends[1]);
	n = read(ends[0], text, bytes - 1);
	close(ends[0]);
	text[n > 0 ? n : 0] = '\0';
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void no_right(const char *why)
{
	char text[1024];
	int rc = open_as_nobody(text, sizeof(text));

	TEST_ASSERT_EQUAL_INT_MESSAGE(-EACCES, rc, text);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, why), text);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, served_file), text);
}

/* Access rights that an open needs, in order: from the configuration to the server. */
static void test_open_fails_without_access_rights(void)
{
	char sockets[128], socket[192];

	served_begin(NULL);
	served_start("store");
	open_direct(); /* wait until the server listens */
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	snprintf(sockets, sizeof(sockets), "%s/04%%3A00.0", served_dir);
	snprintf(socket, sizeof(socket), "%s/store.sock", sockets);
	TEST_ASSERT_EQUAL_INT(0, chmod(served_dir, 0755));
	TEST_ASSERT_EQUAL_INT(0, chmod(served_file, 0));
	no_right("served.conf: ");
	TEST_ASSERT_EQUAL_INT(0, chmod(served_file, 0644));
	TEST_ASSERT_EQUAL_INT(0, chmod(sockets, 0));
	no_right(strerror(EACCES));
	TEST_ASSERT_EQUAL_INT(0, chmod(sockets, 0755));
	TEST_ASSERT_EQUAL_INT(0, chmod(socket, 0));
	no_right(strerror(EACCES));
	if (getuid()) /* a server always accepts its own user */
		return;
	TEST_ASSERT_EQUAL_INT(0, chmod(socket, 0666));
	no_right("uid 0 of the peer is not in devices.back.uids of this process");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_invalid_ios_are_rejected);
	RUN_TEST(test_io_longer_than_the_volume_accepts_is_rejected);
	RUN_TEST(test_writes_to_a_read_only_volume_are_rejected);
	RUN_TEST(test_io_beyond_the_queue_depth_is_rejected);
	RUN_TEST(test_open_fails_without_a_listener);
	RUN_TEST(test_a_gateway_without_its_target);
	RUN_TEST(test_open_fails_for_unsuitable_roles);
	RUN_TEST(test_configurations_with_mistakes);
	RUN_TEST(test_uris_with_mistakes);
	RUN_TEST(test_attributes_with_mistakes);
	RUN_TEST(test_open_fails_if_a_limit_of_the_server_is_reached);
	RUN_TEST(test_out_of_file_descriptors);
	RUN_TEST(test_open_fails_if_the_control_thread_cannot_wait);
	RUN_TEST(test_open_fails_without_access_rights);
	return UNITY_END();
}
