/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_checks.c - descriptors that change, and unusual orders of messages */
#include "virtio_front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUGE (2u << 20) /* bytes of a huge page */
/* less than the time after which the role ends (LOSS_NS), and enough to take a request */
#define LOST_MS 400

static uint64_t allocated(void)
{
	struct stat st;

	if (fstat(memory_fd, &st))
		fail("fstat: %s", strerror(errno));
	return (uint64_t)st.st_blocks * 512;
}

/* A file that is larger than the servers accept fails before the device allocates its pages. */
void large(void)
{
	connect_device();
	negotiate();
	make_large_memory(SEALS, 1ull << 30);
	if (set_memory() != 1)
		fail("a file of 1 GiB is accepted");
	if (allocated() != 0)
		fail("%llu bytes of the file are allocated", (unsigned long long)allocated());
	set_up();
	verify();
}

/* A device that copies maps memory without seals, but not beyond the end of its file. */
void short_memory(void)
{
	connect_device();
	negotiate();
	make_memory(0);
	if (ftruncate(memory_fd, HALF + GAP) || set_memory() != 1)
		fail("a file without the second region is accepted");
	if (ftruncate(memory_fd, 2 * HALF + GAP))
		fail("ftruncate: %s", strerror(errno));
	set_up();
	verify();
}

/* The front end runs as another user: huge pages fail, others work. */
void huge(void)
{
	const struct {
		uint32_t count, padding;
		struct region region;
	} m = {1, 0, {GPA, HUGE, GPA, 0}};
	const int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0 || ftruncate(fd, HUGE) || fcntl(fd, F_ADD_SEALS, SEALS))
		fail("huge pages: %s", strerror(errno));
	connect_device();
	negotiate();
	if (tell(SET_MEM_TABLE, &m, sizeof(m), &fd, 1) != 1)
		fail("huge pages are accepted");
	set_up();
	verify();
}

/* Write the descriptors of request i, which reads `bytes` bytes to DATA, without publishing it. */
static void describe(uint16_t i, uint32_t type, uint32_t bytes)
{
	const struct virtio_blk_outhdr header = {.type = type};
	const uint64_t to = HEADER + i * 32u;
	struct vring_desc *d = &descs()[4 * i];

	memcpy(at(to), &header, sizeof(header));
	*at(to + sizeof(header)) = 0x55;
	d[0] = (struct vring_desc){GPA + to, sizeof(header), VRING_DESC_F_NEXT,
				   (uint16_t)(4 * i + (bytes ? 1 : 2))};
	d[1] = (struct vring_desc){GPA + DATA, bytes, VRING_DESC_F_WRITE | VRING_DESC_F_NEXT,
				   (uint16_t)(4 * i + 2)};
	d[2] = (struct vring_desc){GPA + to + sizeof(header), 1, VRING_DESC_F_WRITE, 0};
}

/* A queue that stops returns the requests that an earlier device left in flight. */
void left_over(void)
{
	const uint32_t off[2] = {0, 0};
	const uint16_t n = 40; /* more than a lane takes in one turn */
	uint32_t base, first;

	set_up_inflight();
	stop_queue();
	must(SET_VRING_ENABLE, off, 8, NULL, 0); /* the queue stops before it takes the first one */
	describe(0, VIRTIO_BLK_T_FLUSH, 0);
	for (uint16_t i = 0; i < 2; i++) { /* all requests are the same indirect table */
		struct vring_desc d = descs()[i * 2];

		d.next = 1;
		set_entry(TABLE, i, d);
	}
	first = ring_base();
	for (uint16_t i = 0; i < n; i++) {
		descs()[i] = (struct vring_desc){GPA + TABLE, 32, VRING_DESC_F_INDIRECT, 0};
		publish(i);
	}
	mark_inflight(n);
	place_queue(first);
	set_fd(SET_VRING_KICK, kick);
	base = stop_queue();
	if (!all_returned())
		fail("not all requests are returned");
	while (has_used())
		take_used();
	if (base != ring_base())
		fail("base 0x%x, not 0x%x", base, ring_base());
	start_queue(base);
	use(2);
}

static ino_t inode_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		fail("fstat: %s", strerror(errno));
	return st.st_ino;
}

/*
 * A front end that asks again for memory for requests in flight gets the same memory, with zeroes,
 * unless a queue uses it. The device creates a limited number of such memories.
 */
void inflight_again(void)
{
	char dirty = 1;
	ino_t first;
	int n = 0, fd;

	stop_queue();
	inflight_fd = ask_inflight(NUM);
	first = inode_of(inflight_fd);
	for (int i = 0; i < 1000; i++) {
		fd = ask_inflight(NUM);
		if (fd < 0 || inode_of(fd) != first)
			fail("call %d creates other memory", i);
		if (pread(fd, &dirty, 1, 16) != 1 || dirty != 0)
			fail("call %d: the memory is not zero", i);
		dirty = 1;
		if (pwrite(fd, &dirty, 1, 16) != 1)
			fail("pwrite: %s", strerror(errno));
		close(fd);
	}
	close(inflight_fd);
	inflight_fd = ask_inflight(NUM);
	set_inflight();
	start_queue(ring_base());
	use(2);
	fd = ask_inflight(NUM);
	if (fd < 0 || inode_of(fd) == first)
		fail("memory that a queue uses is given away");
	use(2);
	for (; (fd = ask_inflight(n % 2 ? NUM : 2 * NUM)) >= 0; n++)
		close(fd);
	if (n > 100)
		fail("%d memories are created", n);
	set_up();
	verify();
}

/* A queue whose request the device has lost does not stop in order: the connection ends. */
void lost_request(void)
{
	const uint32_t index[2] = {0, 0};
	uint64_t state;

	describe(0, VIRTIO_BLK_T_FLUSH, 0);
	publish(0);
	poll(NULL, 0, LOST_MS); /* the device takes the request, and loses it */
	send_message(GET_VRING_BASE, 0, index, 8, NULL, 0);
	if (reply(&state, sizeof(state)) != 0)
		fail("a queue stops without its request: base 0x%x", (unsigned)(state >> 32));
}

static void flush(uint8_t wanted)
{
	const uint8_t status = request(VIRTIO_BLK_T_FLUSH, 0, NULL, 0);

	if (status != wanted)
		fail("a flush ends with status %u, not %u", status, wanted);
}

/*
 * Use the device until it ends, and connect to the next one, without the configuration space.
 * begun: path of a file to create when the device can be stopped
 */
static void outlive(const char *begun)
{
	struct pollfd p = {.events = POLLIN};
	int fd;

	set_up_inflight();
	flush(VIRTIO_BLK_S_OK);
	fd = open(begun, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	p.fd = conn;
	if (fd < 0 || close(fd) != 0 || poll(&p, 1, TIMEOUT_MS) != 1)
		fail("the device does not stop");
	reconnect();
}

/* The device is started again, and its target may have lost writes meanwhile: one flush fails. */
void lost_writes(const char *begun)
{
	outlive(begun);
	flush(VIRTIO_BLK_S_IOERR);
	flush(VIRTIO_BLK_S_OK);
}

/* Returns 1 if the device signals an interrupt in time. */
static int is_called(int ms)
{
	struct pollfd p = {.fd = call, .events = POLLIN};
	eventfd_t value;

	return poll(&p, 1, ms) == 1 && eventfd_read(call, &value) == 0;
}

/* Wait without interrupts until the device has returned a request. */
static void wait_used_idx(void)
{
	for (int ms = 0; !has_used(); ms++)
		if (ms == TIMEOUT_MS || poll(NULL, 0, 1) < 0)
			fail("the request is not returned");
}

/*
 * The descriptor for interrupts comes last, as in QEMU: the device signals it for a request that
 * it returned before.
 */
void late_call(void)
{
	const uint32_t base = stop_queue();

	is_called(0);
	describe(0, VIRTIO_BLK_T_FLUSH, 0);
	publish(0);
	place_queue(base);
	set_fd(SET_VRING_KICK, kick);
	enable_queue();
	wait_used_idx();
	poll(NULL, 0, 20); /* the lane ends its turn */
	set_fd(SET_VRING_CALL, call);
	if (!is_called(TIMEOUT_MS))
		fail("no interrupt by a descriptor that follows the request");
}

/* The front end ends while the device allocates its memory: the device notices it. */
void gone(void)
{
	const uint64_t bytes = 2ull << 30;
	uint64_t before;

	make_large_memory(SEALS, bytes);
	send_memory(0);
	close(conn);
	do {
		before = allocated();
		poll(NULL, 0, 500);
	} while (allocated() != before);
	if (before > bytes / 2)
		fail("%llu bytes are allocated", (unsigned long long)before);
	set_up();
	verify();
}

/* After memory without the ring of a started queue nothing can run: the connection ends. */
void lost_ring(void)
{
	const struct {
		uint32_t count, padding;
		struct region region;
	} m = {1, 0, {GPA + HALF, HALF, (uintptr_t)high, HALF + GAP}};
	uint64_t value;

	use(2);
	send_message(SET_MEM_TABLE, NEED_REPLY, &m, sizeof(m), &memory_fd, 1);
	if (reply(&value, sizeof(value)) != 0)
		fail("the connection stays open");
	set_up();
	verify();
}

/* A request that is complete at once, and then a broken ring: the device signals both. */
void half_broken(void)
{
	struct pollfd p = {.fd = err, .events = POLLIN};

	use(2);
	is_called(0);
	describe(0, VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_ID_BYTES);
	want_call(0);
	publish_half(0);
	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("the device does not notice the broken ring");
	if (!has_used() || !is_called(TIMEOUT_MS))
		fail("no interrupt for a request before the broken one");
}

/* Wait until the device sleeps: it has returned all requests, and asks for a kick. */
static void wait_asleep(void)
{
	for (int ms = 0; !is_asleep(); ms++)
		if (ms == TIMEOUT_MS || poll(NULL, 0, 1) < 0)
			fail("the device does not ask for a kick at the next entry");
}

/* Do a request, and wait until the device sleeps again. */
static void flush_asleep(void)
{
	describe(0, VIRTIO_BLK_T_FLUSH, 0);
	publish(0);
	wait_used_idx();
	take_used();
	wait_asleep();
}

/* With event index the device asks for a kick before it sleeps, and calls only when asked. */
void events(void)
{
	const uint32_t off[2] = {0, 0};

	use(2);
	wait_asleep();
	flush_asleep(); /* a request with as many descriptors as those that follow */
	is_called(0);
	for (uint16_t i = 0; i < 20; i++) {
		want_call((uint16_t)(i % 2 ? 0 : 1)); /* by this request, or by the next one */
		flush_asleep();
		if (is_called(0) != i % 2)
			fail("request %u: %s interrupt", i, i % 2 ? "no" : "an");
	}
	must(SET_VRING_ENABLE, off, 8, NULL, 0);
	describe(0, VIRTIO_BLK_T_FLUSH, 0);
	publish(0);
	poll(NULL, 0, 20);
	if (has_used())
		fail("a suspended queue returns a request");
	is_called(0);
	enable_queue();
	wait_used_idx();
	take_used();
	if (!is_called(TIMEOUT_MS))
		fail("no interrupt after the queue was suspended");
	wait_asleep();
	use(2);
}

/* The front end makes the eventfds of a queue block: the device must not wait for it. */
void blocking(void)
{
	const uint32_t on[2] = {0, 1};

	use(2);
	poll(NULL, 0, 100); /* the lane sleeps, and has read the kicks */
	if (fcntl(kick, F_SETFL, 0) || fcntl(call, F_SETFL, 0) || fcntl(err, F_SETFL, 0))
		fail("fcntl: %s", strerror(errno));
	for (int i = 0; i < 3; i++) /* the lane wakes up without a kick */
		must(SET_VRING_ENABLE, on, 8, NULL, 0);
	use(2);
	is_called(0);
	if (eventfd_write(call, UINT64_MAX - 1)) /* the next write of 1 blocks */
		fail("eventfd_write: %s", strerror(errno));
	want_call(0);
	describe(0, VIRTIO_BLK_T_FLUSH, 0);
	publish(0);
	wait_used_idx();
	for (int i = 0; i < 3; i++)
		must(SET_VRING_ENABLE, on, 8, NULL, 0);
	take_used();
	is_called(0);
	use(2);
}

/* A descriptor that is no eventfd fails, and the device keeps the former one. */
void descriptors(void)
{
	const uint64_t index = 0;
	int ends[2], sockets[2];

	if (pipe2(ends, O_CLOEXEC) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		fail("pipe or socketpair");
	use(2);
	if (tell(SET_VRING_CALL, &index, 8, ends, 1) != 1)
		fail("a pipe is accepted for interrupts");
	use(2);
	if (tell(SET_VRING_ERR, &index, 8, ends, 1) != 1)
		fail("a pipe is accepted for errors");
	use(2);
	place_queue(stop_queue());
	if (tell(SET_VRING_KICK, &index, 8, ends, 1) != 1 ||
	    tell(SET_VRING_KICK, &index, 8, sockets, 1) != 1)
		fail("a pipe or a socket is accepted for kicks");
	enable_queue();
	if (set_memory() != 0) /* the device must not start the queue */
		fail("memory cannot be set");
	start_queue(ring_base());
	close(sockets[1]); /* nothing reads what the device writes */
	set_fd(SET_VRING_CALL, sockets[0]);
	set_fd(SET_VRING_CALL, call);
	use(2);
	verify_all();
}

/* Returns 1 if the device reports a change of the configuration space in time. */
static int is_config_changed(int channel, int ms)
{
	struct pollfd p = {.fd = channel, .events = POLLIN};
	uint32_t m[3];

	if (poll(&p, 1, ms) != 1)
		return 0;
	if (recv(channel, m, sizeof(m), MSG_WAITALL) != sizeof(m) || m[0] != 2 || m[1] != 1 ||
	    m[2] != 0)
		fail("wrong request of the device: type %u, flags %x, %u bytes", m[0], m[1], m[2]);
	return 1;
}

static void wait_config_change(int channel)
{
	if (!is_config_changed(channel, TIMEOUT_MS))
		fail("no request of the device");
	read_config();
	printf("capacity %llu\n", (unsigned long long)capacity);
}

void resize(const char *begun)
{
	const struct piece piece = {DATA, blk_size};
	const int channel = open_channel();
	const uint64_t before = capacity, end = before + blk_size / SECTOR;

	if (request(VIRTIO_BLK_T_OUT, before, &piece, 1) == VIRTIO_BLK_S_OK)
		fail("a write beyond the end succeeds");
	close(creat(begun, 0600));
	wait_config_change(channel);
	if (capacity < end)
		fail("the volume has not grown");
	memset(at(DATA), 0x5a, blk_size);
	if (request(VIRTIO_BLK_T_OUT, before, &piece, 1) != VIRTIO_BLK_S_OK)
		fail("a write to the new part fails");
	memset(at(DATA), 0, blk_size);
	if (request(VIRTIO_BLK_T_IN, before, &piece, 1) != VIRTIO_BLK_S_OK || *at(DATA) != 0x5a)
		fail("a read of the new part fails");
	close(open_channel()); /* a second channel replaces the first */
	close(channel);
}

/* The device is started again, and the volume has grown: it reports that until it is read. */
void new_size(const char *begun)
{
	const uint64_t before = capacity;
	int channel;

	outlive(begun);
	channel = open_channel();
	if (!is_config_changed(channel, TIMEOUT_MS) || !is_config_changed(channel, TIMEOUT_MS))
		fail("the device does not repeat its report");
	read_config();
	if (capacity == before)
		fail("the size is the same");
	if (is_config_changed(channel, 1500))
		fail("the device reports a size that was read");
	use(2);
	close(channel);
}

/* -- the status of the device -- */

#define READY \
	(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK | \
	 VIRTIO_CONFIG_S_DRIVER_OK)

static void set_status(uint64_t value)
{
	must(SET_STATUS, &value, 8, NULL, 0);
}

static void expect_status(uint64_t expected)
{
	const uint64_t value = ask(GET_STATUS, NULL, 0);

	if (value != expected)
		fail("status 0x%llx, not 0x%llx", (unsigned long long)value,
		     (unsigned long long)expected);
}

static void break_ring(void)
{
	struct pollfd p = {.fd = err, .events = POLLIN};
	eventfd_t value;

	describe(0, VIRTIO_BLK_T_FLUSH, 0);
	publish_half(0);
	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("the device does not notice the broken ring");
	eventfd_read(err, &value);
}

/* Reset the device, which must work afterwards. Its queue must be stopped by that, and drained. */
static void reset_device(uint64_t status_after)
{
	describe(1, VIRTIO_BLK_T_FLUSH, 0); /* the device does not take it after the reset */
	set_status(0);
	expect_status(0);
	publish(4);
	poll(NULL, 0, 50);
	while (has_used())
		if (take_used().id == 4)
			fail("a device that was reset takes a request");
	stop_queue();
	reset_ring();
	start_queue(ring_base());
	set_status(status_after);
	expect_status(status_after);
	use(2);
}

void status(void)
{
	const uint64_t on = READY;
	const uint64_t broken = READY | VIRTIO_CONFIG_S_NEEDS_RESET;
	const int channel = open_channel();

	fill_model();
	set_status(on);
	expect_status(on);
	break_ring();
	if (!is_config_changed(channel, TIMEOUT_MS))
		fail("the device does not report that it needs a reset");
	expect_status(broken);
	set_status(on); /* does not clear the bit */
	expect_status(broken);
	reset_device(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER);
	break_ring(); /* the driver does not run */
	if (is_config_changed(channel, 100))
		fail("the device reports a change before the driver runs");
	expect_status(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
		      VIRTIO_CONFIG_S_NEEDS_RESET);
	reset_device(on);
	reset_device(on); /* of a device that is intact */
	if (is_config_changed(channel, 0))
		fail("the device reports a change, but is intact");
	verify_all();
	close(channel);
	connect_device(); /* the front end does not negotiate the status */
	send_message(GET_STATUS, 0, NULL, 0, NULL, 0);
	if (reply(&(uint64_t){0}, 8) != 0)
		fail("the connection stays open");
	set_up();
	expect_status(0);
	use(2);
}
