/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_ring.c - the lanes of shm-comch with a peer that changes shared memory between any two loads
 *
 * The input determines the value of each load through gantry/shm.h: sometimes the value of a
 * correct peer, mostly a value near it. The memory itself is not readable, so a load that does not
 * use the functions of the header faults.
 */
#define GANTRY_SHM_TEST
#include <stdint.h>

uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width);

#include "../../plugins/transport/shm-comch/shm_consumer.c"
#include "../../plugins/transport/shm-comch/shm_producer.c"
#include "fuzz/require.h"

#include <stdlib.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLOTS 128u
#define RINGS 2u
#define DEPTH 8u
#define REGION_BYTES 777u

static const uint8_t *input;
static size_t left;
static struct comch_slot *forbidden;  /* memory of RINGS rings of the peer, not readable */
static struct comch_page *their_page; /* page of the peer, not readable */
static struct comch_consumer *consumer;
static struct comch_producer *producer;
static int poisoned, rung;

static uint64_t bytes(unsigned int n)
{
	uint64_t v = 0;

	for (; n && left; n--, left--)
		v = v << 8 | *input++;
	return v;
}

static uint64_t trailer_for(size_t index)
{
	const struct comch_in *in = consumer->in[index / SLOTS];
	uint64_t position = in->position + ((index - in->position) & in->mask);
	struct comch_trailer t = {.seq = (uint32_t)position + 1,
				  .kind = (uint8_t)(bytes(1) % (COMCH_K_MORE + 2))};

	switch (bytes(1) % 8) {
	case 0:
		return bytes(8);
	case 1:
		return position < SLOTS ? 0 : (uint32_t)(position + 1 - SLOTS);
	case 2:
		t.kind = COMCH_K_MORE;
		break;
	case 3:
		t.imm_len = (uint8_t)bytes(1);
		t.length = (uint16_t)bytes(2);
		break;
	default:
		t.imm_len = (uint8_t)(bytes(1) % (GANTRY_IMM_MAX + 2));
		t.length = (uint16_t)(t.kind == COMCH_K_IMM || t.kind >= COMCH_K_REGION
					      ? 0
					      : bytes(2) % 4100);
		break;
	}
	return comch_trailer_pack(t);
}

/* Returns a word of a slot; the first words are mostly those of a send from a region. */
static uint64_t payload(size_t word)
{
	uint64_t choice = bytes(1);

	if (word == 0 && choice % 4)
		return COMCH_REF(choice % 3, choice % 5) | (bytes(2) % (REGION_BYTES + 20)) << 32;
	if (word == 1 && choice % 4)
		return bytes(2) % (REGION_BYTES + 20);
	return bytes(8);
}

uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width)
{
	uintptr_t at = (uintptr_t)p, slots = (uintptr_t)forbidden;

	require(width == 32 || width == 64);
	if (at >= slots && at < slots + RINGS * SLOTS * sizeof(struct comch_slot)) {
		size_t offset = at - slots, word = offset % sizeof(struct comch_slot) / 8;

		return word == COMCH_SLOT_PAYLOAD / 8
			       ? trailer_for(offset / sizeof(struct comch_slot))
			       : payload(word);
	}
	if (p == &their_page->asleep.asleep)
		return bytes(1) % 2;
	if (bytes(1) % 4 == 0)
		return bytes(8);
	/* credit: slightly more consumed, and slightly more allowed */
	return comch_credit_pack((uint32_t)(producer->tail + bytes(1) % 16),
				 producer->limit + (uint32_t)bytes(1) % 16);
}

void comch_bell_ring(const struct comch_conn *conn, int fd)
{
	(void)conn;
	(void)fd;
	rung++;
}

void comch_bell_clear(struct comch_conn *conn, int fd)
{
	(void)conn;
	(void)fd;
}

void comch_conn_poison(struct comch_conn *conn, enum comch_corruption what)
{
	(void)what;
	conn->lost = 1;
	poisoned = 1;
}

static struct comch_conn *make_conn(uint8_t *region, const struct gantry_region *exported)
{
	static const uint32_t states[] = {COMCH_I_LIVE, COMCH_I_REVOKED, COMCH_I_FREE};
	struct comch_conn *conn = calloc(1, sizeof(*conn));

	require(conn != NULL);
	for (uint32_t i = 0; i < 3; i++)
		conn->imported[i] = (struct comch_import){.state = states[i],
							  .ref = COMCH_REF(i, 2),
							  .length = REGION_BYTES,
							  .rights = GANTRY_REMOTE_READ,
							  .addr = region};
	conn->exported[5] = (struct comch_export){.state = COMCH_E_LIVE,
						  .ref = COMCH_REF(5, 1),
						  .length = REGION_BYTES,
						  .rights = GANTRY_REMOTE_READ,
						  .region = exported};
	return conn;
}

static void make_consumer(struct comch_conn *conn, uint64_t *payload_bytes, uint64_t position)
{
	consumer = aligned_alloc(64, sizeof(*consumer));
	require(consumer != NULL);
	memset(consumer, 0, sizeof(*consumer));
	consumer->conn = conn;
	consumer->depth = DEPTH;
	consumer->posts_last = DEPTH - 1;
	consumer->credit_batch = DEPTH / 4;
	consumer->max_data = 4096;
	consumer->posts = calloc(DEPTH, sizeof(*consumer->posts));
	consumer->page = aligned_alloc(128, sizeof(*consumer->page));
	consumer->payload = payload_bytes;
	require(consumer->posts && consumer->page);
	for (uint32_t i = 0; i < RINGS; i++) {
		consumer->in[i] = calloc(1, sizeof(struct comch_in));
		require(consumer->in[i] != NULL);
		consumer->in[i]->slots = forbidden + i * SLOTS;
		consumer->in[i]->mask = SLOTS - 1;
		consumer->in[i]->line = &consumer->page->ring[i];
		/* one ring is near the wraparound of its sequence */
		consumer->in[i]->position = i ? position : 0;
		consumer->in[i]->given_tail = (uint32_t)consumer->in[i]->position;
	}
	consumer->active = (1u << RINGS) - 1;
}

static void make_producer(struct comch_conn *conn)
{
	producer = calloc(1, sizeof(*producer));
	require(producer != NULL);
	producer->conn = conn;
	producer->n_slots = SLOTS;
	producer->mask = SLOTS - 1;
	producer->slots = aligned_alloc(64, SLOTS * sizeof(struct comch_slot));
	producer->cookies = calloc(DEPTH, sizeof(*producer->cookies));
	producer->cookie_mask = DEPTH - 1;
	producer->max_data = 4096;
	producer->fence = true;
	producer->line = &their_page->ring[3];
	producer->asleep = &their_page->asleep.asleep;
	require(producer->slots && producer->cookies);
}

/* Buffers have exactly the announced length, so that ASan detects an overflow. */
static void post(void)
{
	struct gantry_recv recv = {.length = (uint32_t)(bytes(2) % 4200), .cookie = 1};
	int rc;

	recv.buf = malloc(recv.length ? recv.length : 1);
	require(recv.buf != NULL);
	recv.cookie = (uintptr_t)recv.buf;
	rc = comch_post_recv_data(consumer, &recv, 1);
	require(rc == 0 || rc == -ENOSPC);
	if (rc)
		free(recv.buf);
}

static void poll(void)
{
	struct gantry_msg msgs[5];
	uint32_t posted = consumer->n_posted - consumer->n_used;
	int n = comch_poll_recv(consumer, msgs, (uint32_t)bytes(1) % 6);

	if (n < 0) {
		require(n == -EPROTO && consumer->broken && poisoned);
		return;
	}
	require((uint32_t)n <= posted && (uint32_t)n <= 5);
	require(posted - (uint32_t)n == consumer->n_posted - consumer->n_used);
	for (int i = 0; i < n; i++) {
		require(msgs[i].imm_len <= GANTRY_IMM_MAX);
		require(msgs[i].status == 0 || msgs[i].status == -EMSGSIZE ||
			msgs[i].status == -EFAULT);
		require(msgs[i].status == 0 || msgs[i].length == 0);
		free((void *)(uintptr_t)msgs[i].cookie);
	}
}

static void send(const struct gantry_region *exported)
{
	static const uint8_t source[4200];
	uint64_t before = producer->position, kind = bytes(1);
	struct gantry_send s = {.imm = source, .imm_len = (uint32_t)bytes(1) % 60, .cookie = 5};
	int rc;

	if (kind % 3)
		s.length = (uint32_t)bytes(2) % 4200;
	if (kind % 3 == 1)
		s.data = source;
	if (kind % 3 == 2) {
		s.region = kind & 8 ? exported : exported + 1;
		s.region_offset = bytes(2) % (REGION_BYTES + 20);
	}
	rc = comch_send_data(producer, &s, (uint32_t)bytes(1) % 2);
	require(rc == 0 || rc == -EAGAIN || rc == -EMSGSIZE || rc == -EINVAL ||
		(rc == -ENOTCONN && poisoned));
	require(rc == 0 ? producer->position > before : producer->position == before);
	require(producer->position - producer->tail <= SLOTS); /* no unread slot is overwritten */
}

static void completions(void)
{
	uint64_t cookies[3];
	uint32_t flying = producer->cookie_head - producer->cookie_tail;
	int n = comch_poll_send(producer, cookies, 3);

	require(n >= 0 && (uint32_t)n <= flying && n <= 3);
	for (int i = 0; i < n; i++)
		require(cookies[i] == 5);
}

static void step(const struct gantry_region *exported)
{
	switch (bytes(1) % 8) {
	case 0:
	case 1:
		post();
		break;
	case 2:
	case 3:
		poll();
		break;
	case 4:
	case 5:
		send(exported);
		break;
	case 6:
		completions();
		break;
	default:
		comch_consumer_arm(consumer);
		comch_consumer_disarm(consumer);
		comch_flush(producer);
		consumer->in[0]->gone = bytes(1) % 16 == 0;
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gantry_region exported[2] = {{.length = REGION_BYTES, .fd = -1},
					    {.length = 1, .fd = -1}};
	uint8_t *region = calloc(1, REGION_BYTES);
	uint64_t payload_bytes = 0;
	struct comch_conn *conn;

	if (!forbidden) {
		forbidden = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		require(forbidden != MAP_FAILED);
		their_page = (struct comch_page *)(forbidden + RINGS * SLOTS);
	}
	require(region != NULL);
	input = data;
	left = size;
	poisoned = 0;
	conn = make_conn(region, exported);
	make_consumer(conn, &payload_bytes, UINT32_MAX - bytes(1));
	make_producer(conn);
	for (int i = 0; i < 400 && left; i++)
		step(exported);
	for (; consumer->n_used != consumer->n_posted; consumer->n_used++)
		free((void *)(uintptr_t)consumer->posts[consumer->n_used & consumer->post_mask]
			     .cookie);
	for (uint32_t i = 0; i < RINGS; i++)
		free(consumer->in[i]);
	free(consumer->page);
	free(consumer->posts);
	free(consumer);
	free(producer->slots);
	free(producer->cookies);
	free(producer);
	free(conn);
	free(region);
	return 0;
}
