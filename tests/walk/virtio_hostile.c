/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_hostile.c - rings, messages and memory that break the rules */
#include "virtio_front.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* -- hostile rings -- */

#define W VRING_DESC_F_WRITE
#define N VRING_DESC_F_NEXT
#define I VRING_DESC_F_INDIRECT

static const struct hostile {
	const char *what;
	struct vring_desc d[4]; /* an address below HALF counts from GPA */
	uint16_t head, n;       /* n: how far the index goes */
} hostiles[] = {
	{"a loop of one", {{HEADER, 16, N, 0}}, 0, 1},
	{"a loop of two", {{HEADER, 16, N, 1}, {DATA, 512, N, 0}}, 0, 1},
	{"a descriptor outside the table", {{HEADER, 16, N, NUM}}, 0, 1},
	{"a head outside the table", {{HEADER, 16, 0, 0}}, NUM, 1},
	{"an index that jumps", {{HEADER, 16, 0, 0}}, 0, NUM + 1},
	{"an address outside the memory", {{HEADER, 16, N, 1}, {~0ull - 511, 512, W, 0}}, 0, 1},
	{"an address that wraps around", {{HEADER, 16, N, 1}, {~0ull - 99, 512, W, 0}}, 0, 1},
	{"an end outside the memory", {{HEADER, 16, N, 1}, {DATA, 3 * HALF, W, 0}}, 0, 1},
	{"a length of 4 GiB", {{HEADER, 16, N, 1}, {DATA, ~0u, W | N, 2}, {DATA, ~0u, W, 0}}, 0, 1},
	{"no header", {{HEADER, 15, N, 1}, {HEADER + 16, 1, W, 0}}, 0, 1},
	{"no status", {{HEADER, 16, N, 1}, {DATA, 512, 0, 0}}, 0, 1},
	{"only an empty status", {{HEADER, 16, N, 1}, {DATA, 0, W, 0}}, 0, 1},
	{"readable after writable",
	 {{HEADER, 16, N, 1}, {DATA, 512, W | N, 2}, {DATA, 1, 0, 0}},
	 0,
	 1},
	{"a table outside the memory", {{~0ull - 4095, 64, I, 0}}, 0, 1},
	{"a table in two regions", {{HALF - 16, 64, I, 0}}, 0, 1},
	{"a table of a wrong length", {{TABLE, 24, I, 0}}, 0, 1},
	{"an empty table", {{TABLE, 0, I, 0}}, 0, 1},
	{"a table that is not aligned", {{TABLE + 1, 64, I, 0}}, 0, 1},
	{"a table with a successor", {{TABLE, 64, I | N, 1}, {HEADER, 16, 0, 0}}, 0, 1},
	{"a table in a table", {{0, 64, I, 0}}, 0, 1},
};

/* Wait until the device reports that the ring is broken. */
static void wait_broken(const char *what)
{
	struct pollfd p = {.fd = err, .events = POLLIN};
	eventfd_t value;

	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("%s: the device does not notice", what);
	eventfd_read(err, &value);
	if (has_used())
		fail("%s: the request is answered", what);
}

void hostile(void)
{
	fill_model();
	for (size_t i = 0; i < sizeof(hostiles) / sizeof(hostiles[0]); i++) {
		const struct hostile *h = &hostiles[i];

		for (unsigned k = 0; k < 4; k++) {
			descs()[k] = h->d[k];
			if (h->d[k].addr < 2 * HALF)
				descs()[k].addr += GPA;
		}
		avail()->ring[0] = h->head;
		__atomic_store_n(&avail()->idx, h->n, __ATOMIC_RELEASE);
		eventfd_write(kick, 1);
		wait_broken(h->what);
		ask(GET_FEATURES, NULL, 0); /* the device still answers */
		stop_queue();
		reset_ring();
		start_queue(ring_base());
		use(2);
	}
	verify_all();
	printf("%zu rings\n", sizeof(hostiles) / sizeof(hostiles[0]));
}

/* -- hostile packed rings -- */

#define A PACKED_NEW
#define B (PACKED_NEW | 1u << VRING_PACKED_DESC_F_USED) /* used, not available */
#define ALL NUM                                         /* as many descriptors as the ring */

static const struct hostile_packed {
	const char *what;
	struct vring_packed_desc d[4]; /* an address below HALF counts from GPA */
	uint16_t n;                    /* ALL: the last one is repeated; else not used */
} packed_hostiles[] = {
	{"a chain as long as the ring that continues", {{HEADER, 16, 0, A | N}}, ALL},
	{"a chain that continues with a used descriptor",
	 {{HEADER, 16, 0, A | N}, {HEADER, 16, 0, B}},
	 0},
	{"a chain that continues in the next lap",
	 {{HEADER, 16, 0, A | N}, {HEADER, 16, 0, 1u << VRING_PACKED_DESC_F_USED}},
	 0},
	{"a buffer id outside the ring", {{HEADER, 16, 0, A | N}, {HEADER + 16, 1, NUM, A | W}}, 0},
	{"a buffer id of 65535", {{HEADER, 16, 0, A | N}, {HEADER + 16, 1, 65535, A | W}}, 0},
	{"an address outside the memory",
	 {{HEADER, 16, 0, A | N}, {~0ull - 511, 512, 0, A | W}},
	 0},
	{"an address that wraps around", {{HEADER, 16, 0, A | N}, {~0ull - 99, 512, 0, A | W}}, 0},
	{"an end outside the memory", {{HEADER, 16, 0, A | N}, {DATA, 3 * HALF, 0, A | W}}, 0},
	{"a length of 4 GiB",
	 {{HEADER, 16, 0, A | N}, {DATA, ~0u, 0, A | W | N}, {DATA, ~0u, 0, A | W}},
	 0},
	{"no header", {{HEADER, 15, 0, A | N}, {HEADER + 16, 1, 0, A | W}}, 0},
	{"no status", {{HEADER, 16, 0, A | N}, {DATA, 512, 0, A}}, 0},
	{"only an empty status", {{HEADER, 16, 0, A | N}, {DATA, 0, 0, A | W}}, 0},
	{"readable after writable",
	 {{HEADER, 16, 0, A | N}, {DATA, 512, 0, A | W | N}, {DATA, 1, 0, A}},
	 0},
	{"a table outside the memory", {{~0ull - 4095, 64, 0, A | I}}, 0},
	{"a table in two regions", {{HALF - 16, 64, 0, A | I}}, 0},
	{"a table of a wrong length", {{TABLE, 24, 0, A | I}}, 0},
	{"an empty table", {{TABLE, 0, 0, A | I}}, 0},
	{"a table that is not aligned", {{TABLE + 1, 64, 0, A | I}}, 0},
	{"a table with a successor", {{TABLE, 64, 0, A | I | N}, {HEADER, 16, 0, A}}, 0},
	{"a table at the end of a chain", {{HEADER, 16, 0, A | N}, {TABLE, 64, 0, A | I}}, 0},
};

static void place_hostile(const struct hostile_packed *h)
{
	const uint16_t n = h->n == ALL ? ALL : 4;

	for (uint16_t k = n; k-- > 0;) { /* the first one last */
		struct vring_packed_desc d = h->d[h->n == ALL ? 0 : k];

		if (d.addr < 2 * HALF)
			d.addr += GPA;
		packed(k)->addr = d.addr;
		packed(k)->len = d.len;
		packed(k)->id = d.id;
		__atomic_store_n(&packed(k)->flags, d.flags, __ATOMIC_RELEASE);
	}
}

void hostile_packed(void)
{
	const size_t n = sizeof(packed_hostiles) / sizeof(packed_hostiles[0]);

	fill_model();
	for (size_t i = 0; i < n; i++) {
		stop_queue();
		reset_ring();
		start_queue(ring_base());
		place_hostile(&packed_hostiles[i]);
		eventfd_write(kick, 1);
		wait_broken(packed_hostiles[i].what);
		ask(GET_FEATURES, NULL, 0);
		stop_queue();
		reset_ring();
		start_queue(ring_base());
		use(2);
	}
	verify_all();
	printf("%zu rings\n", n);
}

/* -- hostile segments of discards and writes of zeroes -- */

#define DISCARD VIRTIO_BLK_T_DISCARD
#define ZEROES VIRTIO_BLK_T_WRITE_ZEROES
#define END (uint64_t) - 1 /* of the volume */
#define ONE 1              /* as many sectors as a block */
#define MANY 2             /* more sectors than the limit */

static const struct wrong_segment {
	const char *what;
	uint32_t type, bytes; /* bytes: length of the data */
	uint64_t sector;
	uint32_t sectors, flags;
	uint16_t in; /* flag of its descriptor */
	uint8_t status;
} wrong_segments[] = {
	{"a discard beyond the end", DISCARD, 16, 1ull << 40, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"zeroes beyond the end", ZEROES, 16, 1ull << 40, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"a discard that begins at the end", DISCARD, 16, END, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"zeroes that begin at the end", ZEROES, 16, END, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"a discard whose offset wraps around", DISCARD, 16, 1ull << 55, ONE, 0, 0,
	 VIRTIO_BLK_S_IOERR},
	{"zeroes whose offset wraps around", ZEROES, 16, 1ull << 55, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"a discard that is too long", DISCARD, 16, 0, MANY, 0, 0, VIRTIO_BLK_S_IOERR},
	{"zeroes that are too long", ZEROES, 16, 0, MANY, 0, 0, VIRTIO_BLK_S_IOERR},
	{"a discard of 2^32 - 1 sectors", DISCARD, 16, 0, ~0u, 0, 0, VIRTIO_BLK_S_IOERR},
	{"zeroes of 2^32 - 1 sectors", ZEROES, 16, 0, ~0u, 0, 0, VIRTIO_BLK_S_IOERR},
	{"a discard with the flag for zeroes", DISCARD, 16, 0, ONE, 1, 0, VIRTIO_BLK_S_UNSUPP},
	{"a discard with an unknown flag", DISCARD, 16, 0, ONE, 2, 0, VIRTIO_BLK_S_UNSUPP},
	{"zeroes with an unknown flag", ZEROES, 16, 0, ONE, 2, 0, VIRTIO_BLK_S_UNSUPP},
	{"zeroes with an unknown flag and a known one", ZEROES, 16, 0, ONE, 1 | 1u << 31, 0,
	 VIRTIO_BLK_S_UNSUPP},
	{"a discard with a writable segment", DISCARD, 16, 0, ONE, 0, W, VIRTIO_BLK_S_IOERR},
	{"zeroes with a writable segment", ZEROES, 16, 0, ONE, 0, W, VIRTIO_BLK_S_IOERR},
	{"a discard without a segment", DISCARD, 0, 0, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"zeroes with a part of a segment", ZEROES, 15, 0, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"a discard with a longer segment", DISCARD, 17, 0, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"zeroes with two segments", ZEROES, 32, 0, ONE, 0, 0, VIRTIO_BLK_S_IOERR},
	{"a secure erase", VIRTIO_BLK_T_SECURE_ERASE, 16, 0, ONE, 0, 0, VIRTIO_BLK_S_UNSUPP},
	{"a discard of no sector", DISCARD, 16, 0, 0, 0, 0, VIRTIO_BLK_S_OK},
	{"zeroes of no sector", ZEROES, 16, 0, 0, 0, 0, VIRTIO_BLK_S_OK},
};

/* Returns the status of a request, and checks the length that the device reports. */
static uint8_t do_segment(const struct wrong_segment *w)
{
	const struct virtio_blk_outhdr header = {.type = w->type};
	const uint32_t block = blk_size / SECTOR,
		       most = w->type == DISCARD ? discard_max : zeroes_max;
	const struct virtio_blk_discard_write_zeroes range = {w->sector == END ? capacity
									       : w->sector,
							      w->sectors == ONE    ? block
							      : w->sectors == MANY ? most + block
										   : w->sectors,
							      w->flags};
	char *status = at(HEADER + sizeof(header));

	memcpy(at(HEADER), &header, sizeof(header));
	for (unsigned i = 0; i < 4; i++)
		memcpy(at(DATA + i * sizeof(range)), &range, sizeof(range));
	*status = 0x55;
	descs()[0] = (struct vring_desc){GPA + HEADER, sizeof(header), N, 1};
	descs()[1] = (struct vring_desc){GPA + DATA, w->bytes, w->in | N, 2};
	descs()[2] = (struct vring_desc){GPA + HEADER + sizeof(header), 1, W, 0};
	publish(0);
	if (wait_used() != !w->in)
		fail("%s: wrong length of the answer", w->what);
	return (uint8_t)*status;
}

void segments(void)
{
	const uint32_t block = blk_size / SECTOR;

	fill_model();
	for (size_t i = 0; i < sizeof(wrong_segments) / sizeof(wrong_segments[0]); i++) {
		const struct wrong_segment *w = &wrong_segments[i];
		const uint8_t status = do_segment(w);

		if (status != w->status)
			fail("%s: status %u, not %u", w->what, status, w->status);
	}
	for (uint32_t type = DISCARD; block > 1 && type <= ZEROES; type += ZEROES - DISCARD)
		if (segment(type, 1, block, 0) != VIRTIO_BLK_S_IOERR ||
		    segment(type, 0, block - 1, 0) != VIRTIO_BLK_S_IOERR)
			fail("request of type %u: a part of a block is accepted", type);
	verify_all();
	use(10);
	printf("%zu segments\n", sizeof(wrong_segments) / sizeof(wrong_segments[0]));
}

/* -- hostile messages -- */

static const struct wrong {
	const char *what;
	uint32_t type, flags, size;
	uint64_t payload[2];
	unsigned n_fds;
} wrongs[] = {
	{"an unknown request", 99, 1, 0, {0}, 0},
	{"request 0", 0, 1, 0, {0}, 0},
	{"version 2", 1, 2, 0, {0}, 0},
	{"a reply", 1, 5, 0, {0}, 0},
	{"a payload that is too long", 2, 1, 16, {0}, 0},
	{"a payload of 4 GiB", 2, 1, ~0u, {0}, 0},
	{"features that were not offered", 2, 1, 8, {1ull << 63}, 0},
	{"protocol features that were not offered", 16, 1, 8, {1ull << 63}, 0},
	{"a queue that does not exist", 8, 1, 8, {(uint64_t)NUM << 32 | 16}, 0},
	{"a ring of 3 entries", 8, 1, 8, {3ull << 32}, 0},
	{"a ring of 65536 entries", 8, 1, 8, {65536ull << 32}, 0},
	{"more regions than the size", 5, 1, 8, {8}, 0},
	{"2^32 - 1 regions", 5, 1, 8, {~0u}, 0},
	{"a kick without memory", 12, 1, 8, {0}, 1},
	{"a kick without a descriptor", 12, 1, 8, {0}, 0},
	{"a descriptor with the flag for none", 13, 1, 8, {0x100}, 1},
	{"a descriptor that is no eventfd", 13, 1, 8, {0}, 1},
	{"8 descriptors too many", 13, 1, 8, {0}, 9},
	{"60 descriptors", 5, 1, 8, {0}, 60},
	{"memory for requests in flight of no queue", 31, 1, 20, {0}, 0},
	{"memory for requests in flight that is no memory", 32, 1, 20, {4096}, 1},
	{"a range outside the configuration", 24, 1, 12, {255ull | 8ull << 32}, 0},
};

void messages(void)
{
	char c;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *w = &wrongs[i];
		const uint32_t size = w->size < 20 ? w->size : 20;
		uint32_t m[8] = {w->type, w->flags, w->size};
		struct pollfd p = {.events = POLLIN};
		int fds[60];

		for (unsigned k = 0; k < 60; k++)
			fds[k] = STDIN_FILENO;
		memcpy(m + 3, w->payload, sizeof(w->payload));
		connect_device();
		send_raw(m, 12 + size, fds, w->n_fds);
		p.fd = conn;
		if (poll(&p, 1, TIMEOUT_MS) != 1 || recv(conn, &c, 1, 0) > 0)
			fail("%s: the connection is not closed", w->what);
	}
	set_up();
	verify();
	printf("%zu messages\n", sizeof(wrongs) / sizeof(wrongs[0]));
}

void memory(void)
{
	connect_device();
	negotiate();
	make_memory(0);
	if (set_memory() != 1)
		fail("memory without seals is accepted");
	make_memory(F_SEAL_SHRINK);
	if (set_memory() != 1)
		fail("memory that can grow is accepted");
	set_up();
	verify();
}
