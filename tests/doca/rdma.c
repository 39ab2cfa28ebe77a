/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA between two processes: every operation, and the memory of both processes afterwards. */
#include "rdma_rig.h"
#include "unity.h"

#include <stdlib.h>
#include <string.h>

#define BIG (3u << 20)
#define ODD 100003u /* not a multiple of any size into which a transport splits data */
#define GUARD 64u

/* -- send and receive -- */

static const uint32_t sizes[] = {0, 1, 44, 45, 64, 100, 4096, 4140, 4141, ODD, BIG};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void send_all_sizes(int fd)
{
	struct rig_side *s = rig_begin(fd, false);

	for (uint32_t i = 0; i < N_SIZES; i++) {
		struct doca_buf *buf = sizes[i] ? rig_data(s, 0, sizes[i]) : NULL;

		rig_fill(s->memory, sizes[i], i);
		rig_send(s, s->conns[0], buf, i);
		rig_end_ok(s, i);
		if (buf)
			rig_put(buf);
	}
	rig_hark(fd);
	rig_close(s);
}

static void receive_all_sizes(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	size_t length;

	for (uint32_t i = 0; i < N_SIZES; i++) {
		struct doca_buf *buf = rig_room(s, GUARD, BIG);
		const struct rig_end *end;

		memset(s->memory, 0xee, RIG_BYTES);
		rig_receive(s, buf, i);
		end = rig_end(s);
		OK(end->status);
		CHECK(end->opcode == DOCA_RDMA_OPCODE_RECV_SEND && end->length == sizes[i] &&
		      end->conn == s->conns[0]);
		OK(doca_buf_get_data_len(buf, &length));
		CHECK(length == sizes[i]);
		CHECK(rig_differs(s->memory + GUARD, sizes[i], i) == sizes[i]);
		CHECK(s->memory[GUARD - 1] == 0xee && s->memory[GUARD + sizes[i]] == 0xee);
		rig_put(buf);
	}
	rig_tell(fd);
	rig_close(s);
}

static void messages_of_all_sizes_arrive_whole(void)
{
	rig_both(send_all_sizes, receive_all_sizes);
}

#define MANY 500u

static void send_many(int fd)
{
	struct rig_side *s = rig_begin(fd, false);

	for (uint32_t i = 0; i < MANY; i++) {
		struct doca_buf *buf = rig_data(s, (i % 32) * 8192, 1 + i * 13 % 8000);

		rig_fill(s->memory + (i % 32) * 8192, 1 + i * 13 % 8000, i);
		rig_send_imm(s, s->conns[0], buf, i * 7, i);
		rig_end_ok(s, i);
		rig_put(buf);
	}
	rig_hark(fd);
	rig_close(s);
}

/* Submit the task again inside its callback, with another range for its data. */
static void again(struct rig_side *s, struct doca_task *task, const struct rig_end *end)
{
	struct doca_buf *buf =
		doca_rdma_task_receive_get_dst_buf((struct doca_rdma_task_receive *)task);
	const uint32_t n = s->n_ends - 1;
	void *data;
	size_t length;

	OK(end->status);
	OK(doca_buf_get_data(buf, &data));
	OK(doca_buf_get_data_len(buf, &length));
	CHECK(end->opcode == DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM && end->imm == n * 7);
	CHECK(length == 1 + n * 13 % 8000 && end->length == length);
	CHECK(rig_differs(data, length, n) == length);
	OK(doca_buf_reset_data_len(buf));
	if (n + RIG_TASKS / 2 < MANY)
		OK(doca_task_submit(task));
	else
		doca_task_free(task);
}

static void receive_many(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	struct doca_buf *bufs[RIG_TASKS / 2];

	s->hook = again;
	for (unsigned i = 0; i < RIG_TASKS / 2; i++) {
		bufs[i] = rig_room(s, i * 8192, 8192);
		rig_receive(s, bufs[i], i);
	}
	rig_until(s, &s->n_ends, MANY);
	for (unsigned i = 0; i < RIG_TASKS / 2; i++)
		rig_put(bufs[i]);
	rig_tell(fd);
	rig_close(s);
}

static void
messages_come_in_order_with_their_immediate_data_and_receives_are_resubmitted_in_callbacks(void)
{
	rig_both(send_many, receive_many);
}

static void send_early(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *buf = rig_data(s, 0, 1000);

	rig_fill(s->memory, 1000, 5);
	rig_send(s, s->conns[0], buf, 1); /* the peer has not even called connect */
	/* long enough for the HELLO of the peer to arrive */
	for (uint64_t until = rig_now_ms() + 20; rig_now_ms() < until;)
		doca_pe_progress(s->pe);
	CHECK(s->n_ends == 0);
	rig_tell(fd);
	rig_hark(fd); /* the peer has connected, but has posted no receive */
	for (int i = 0; i < 1000; i++)
		doca_pe_progress(s->pe);
	CHECK(s->n_ends == 0);
	rig_tell(fd);
	rig_end_ok(s, 1);
	rig_hark(fd);
	rig_put(buf);
	rig_close(s);
}

static void receive_late(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});
	struct doca_buf *buf = rig_room(s, 0, 1000);
	char peers[4096];
	const void *blob;
	size_t size;

	OK(doca_rdma_export(s->rdma, &blob, &size, &s->conns[0]));
	rig_say(fd, blob, size);
	size = rig_hear(fd, peers, sizeof(peers));
	rig_hark(fd); /* the peer has sent */
	OK(doca_rdma_connect(s->rdma, peers, size, s->conns[0]));
	for (int i = 0; i < 1000; i++)
		doca_pe_progress(s->pe);
	rig_sync(fd);
	rig_receive(s, buf, 2);
	rig_end_ok(s, 2);
	CHECK(rig_differs(s->memory, 1000, 5) == 1000);
	rig_put(buf);
	rig_tell(fd);
	rig_close(s);
}

static void connect_succeeds_before_the_peer_connects_and_a_send_waits_for_a_receive(void)
{
	/*
	 * repeat: ids are random, and the side with the smaller id connects; so in some runs the
	 * one side connects, in others the other
	 */
	for (int i = 0; i < 6; i++)
		rig_both(send_early, receive_late);
}

static struct doca_buf *chain(struct rig_side *s, bool has_data, size_t at, const size_t *lengths,
			      unsigned n)
{
	struct doca_buf *head = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct doca_buf *buf = has_data ? rig_data(s, at, lengths[i])
						: rig_room(s, at, lengths[i]);

		at += lengths[i] + GUARD;
		if (!head)
			head = buf;
		else
			OK(doca_buf_chain_list(head, buf));
	}
	return head;
}

static const size_t cuts[] = {1000, 1, 5000, 43}, other_cuts[] = {3000, 3044};
#define CUT_BYTES 6044u

static void gather(const struct rig_side *s, size_t at, const size_t *lengths, unsigned n,
		   uint8_t *out)
{
	for (unsigned i = 0; i < n; i++) {
		memcpy(out, s->memory + at, lengths[i]);
		out += lengths[i];
		at += lengths[i] + GUARD;
	}
}

static void scatter(struct rig_side *s, size_t at, const size_t *lengths, unsigned n,
		    const uint8_t *in)
{
	for (unsigned i = 0; i < n; i++) {
		memcpy(s->memory + at, in, lengths[i]);
		in += lengths[i];
		at += lengths[i] + GUARD;
	}
}

static void chains_out(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *src, *dst, *remote;
	uint8_t data[CUT_BYTES];

	rig_import(s, fd);
	rig_fill(data, sizeof(data), 11);
	scatter(s, 100, cuts, 4, data);
	src = chain(s, true, 100, cuts, 4);
	rig_send(s, s->conns[0], src, 1);
	rig_end_ok(s, 1);
	remote = rig_remote_room(s, 50000, CUT_BYTES);
	rig_write(s, s->conns[0], src, remote, 2);
	rig_end_ok(s, 2);
	rig_put(remote);
	remote = rig_remote_data(s, 50000, CUT_BYTES);
	dst = chain(s, false, 200000, other_cuts, 2);
	rig_read(s, s->conns[0], remote, dst, 3);
	rig_end_ok(s, 3);
	memset(data, 0, sizeof(data));
	gather(s, 200000, other_cuts, 2, data);
	CHECK(rig_differs(data, sizeof(data), 11) == sizeof(data));
	rig_sync(fd);
	rig_put(src);
	rig_put(dst);
	rig_put(remote);
	rig_close(s);
}

static void chains_in(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	struct doca_buf *dst = chain(s, false, 100, other_cuts, 2);
	uint8_t data[CUT_BYTES];

	rig_export(s, fd);
	rig_receive(s, dst, 1);
	rig_end_ok(s, 1);
	gather(s, 100, other_cuts, 2, data);
	CHECK(rig_differs(data, sizeof(data), 11) == sizeof(data));
	rig_sync(fd);
	CHECK(rig_differs(s->memory + 50000, CUT_BYTES, 11) == CUT_BYTES);
	rig_put(dst);
	rig_close(s);
}

static void chains_are_gathered_and_scattered(void)
{
	rig_both(chains_out, chains_in);
}

/* -- data that is appended to a buffer -- */

#define THERE 10u
#define MORE 90u

/* Returns a buffer of THERE + MORE bytes, of which the first THERE bytes are data. */
static struct doca_buf *partly_filled(struct rig_side *s, size_t at)
{
	struct doca_buf *buf = rig_room(s, at, THERE + MORE);

	memset(s->memory + at, 0xab, THERE);
	OK(doca_buf_set_data(buf, s->memory + at, THERE));
	return buf;
}

static void check_both(const struct rig_side *s, const struct doca_buf *buf, size_t at,
		       uint32_t generation)
{
	size_t length;

	OK(doca_buf_get_data_len(buf, &length));
	CHECK(length == THERE + MORE && s->memory[at] == 0xab && s->memory[at + THERE - 1] == 0xab);
	CHECK(rig_differs(s->memory + at + THERE, MORE, generation) == MORE);
}

static void append_there(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *src = rig_data(s, 0, MORE), *dst = partly_filled(s, 4096), *remote;
	struct doca_rdma_task_read *read;
	size_t length;
	void *data;

	rig_import(s, fd);
	rig_fill(s->memory, MORE, 1);
	rig_send(s, s->conns[0], src, 1);
	rig_end_ok(s, 1);
	remote = rig_remote_room(s, 50000, THERE + MORE);
	OK(doca_buf_get_data(remote, &data));
	OK(doca_buf_set_data(remote, data, THERE));
	rig_write(s, s->conns[0], src, remote, 2);
	rig_end_ok(s, 2);
	OK(doca_buf_get_data_len(remote, &length));
	/* a write does not change the length: the buffer belongs to the peer */
	CHECK(length == THERE);
	OK(doca_buf_set_data(remote, (char *)data + THERE, MORE));
	OK(doca_rdma_task_read_allocate_init(s->rdma, s->conns[0], remote, dst,
					     (union doca_data){.u64 = 3}, &read));
	OK(doca_task_submit(doca_rdma_task_read_as_task(read)));
	rig_end_ok(s, 3);
	/* programs read this field after they have freed the task */
	CHECK(doca_rdma_task_read_get_result_len(read) == MORE);
	check_both(s, dst, 4096, 1);
	rig_sync(fd);
	rig_put(src);
	rig_put(dst);
	rig_put(remote);
	rig_close(s);
}

static void append_here(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	struct doca_buf *dst = partly_filled(s, 4096);

	rig_export(s, fd);
	rig_receive(s, dst, 1);
	CHECK(rig_end(s)->length == MORE);
	check_both(s, dst, 4096, 1);
	rig_sync(fd);
	CHECK(s->memory[50000 + THERE - 1] == 0 &&
	      rig_differs(s->memory + 50000 + THERE, MORE, 1) == MORE);
	rig_put(dst);
	rig_close(s);
}

static void received_data_is_appended_to_the_data_of_the_buffer(void)
{
	rig_both(append_there, append_here);
}

/* -- access to the peer's memory -- */

/* This process blocks, as programs do in getchar(), and never progresses its engine. */
static void lie_still(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	uint8_t *expected;

	rig_fill(s->memory, RIG_BYTES, 3);
	rig_export(s, fd);
	rig_hark(fd);
	expected = malloc(RIG_BYTES);
	CHECK(expected);
	rig_fill(expected, RIG_BYTES, 3);
	rig_fill(expected + 1000, ODD, 77);
	/* bytes that were not written are unchanged */
	CHECK(memcmp(s->memory, expected, RIG_BYTES) == 0);
	free(expected);
	rig_close(s);
}

static void read_and_write(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *remote, *own;
	size_t length;

	rig_import(s, fd);
	remote = rig_remote_data(s, 0, BIG);
	own = rig_room(s, GUARD, BIG);
	rig_read(s, s->conns[0], remote, own, 1);
	rig_end_ok(s, 1);
	CHECK(rig_differs(s->memory + GUARD, BIG, 3) == BIG);
	OK(doca_buf_get_data_len(own, &length));
	CHECK(length == BIG && s->memory[GUARD - 1] == 0 && s->memory[GUARD + BIG] == 0);
	rig_put(remote);
	rig_put(own);

	rig_fill(s->memory, ODD, 77);
	own = rig_data(s, 0, ODD);
	remote = rig_remote_room(s, 1000, ODD);
	rig_write(s, s->conns[0], own, remote, 2);
	rig_end_ok(s, 2);
	rig_tell(fd);
	rig_put(own);
	rig_put(remote);
	rig_close(s);
}

static void reads_and_writes_complete_while_the_responder_never_progresses(void)
{
	rig_both(read_and_write, lie_still);
}

#define SLOTS 16u
#define SLOT 65536u
#define ROUNDS 200u

static void lie_still_for_long(int fd)
{
	struct rig_side *s = rig_begin(fd, true);

	rig_export(s, fd);
	rig_hark(fd);
	for (uint32_t i = 0; i < SLOTS; i++)
		CHECK(rig_differs(s->memory + i * SLOT, SLOT, ROUNDS - SLOTS + i) == SLOT);
	rig_close(s);
}

/* Write every slot, read it back into another range, and compare; many tasks are in flight. */
static void write_and_read_many(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *own[SLOTS], *there[SLOTS], *back[SLOTS], *from[SLOTS];

	rig_import(s, fd);
	for (uint32_t i = 0; i < SLOTS; i++) {
		own[i] = rig_data(s, i * SLOT, SLOT);
		there[i] = rig_remote_room(s, i * SLOT, SLOT);
		from[i] = rig_remote_data(s, i * SLOT, SLOT);
		back[i] = rig_room(s, (2u << 20) + i * SLOT, SLOT);
	}
	for (uint32_t g = 0; g < ROUNDS; g += SLOTS) {
		const uint32_t n = ROUNDS - g < SLOTS ? ROUNDS - g : SLOTS;

		for (uint32_t i = 0; i < n; i++) {
			const uint32_t at = (g + i + SLOTS - ROUNDS % SLOTS) % SLOTS;

			rig_fill(s->memory + at * SLOT, SLOT, g + i);
			OK(doca_buf_reset_data_len(back[at]));
			rig_write(s, s->conns[0], own[at], there[at], g + i);
			/* the read returns the data of the earlier write */
			rig_read(s, s->conns[0], from[at], back[at], 1000 + g + i);
		}
		for (uint32_t i = 0; i < 2 * n; i++)
			OK(rig_end(s)->status);
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t at = (g + i + SLOTS - ROUNDS % SLOTS) % SLOTS;

			CHECK(rig_differs(s->memory + (2u << 20) + at * SLOT, SLOT, g + i) == SLOT);
		}
	}
	rig_tell(fd);
	for (uint32_t i = 0; i < SLOTS; i++) {
		rig_put(own[i]);
		rig_put(there[i]);
		rig_put(from[i]);
		rig_put(back[i]);
	}
	rig_close(s);
}

static void a_read_after_a_write_sees_it_with_many_under_way(void)
{
	rig_both(write_and_read_many, lie_still_for_long);
}

static void write_with_words(int fd)
{
	struct rig_side *s = rig_begin(fd, false);

	rig_import(s, fd);
	for (uint32_t i = 0; i < 50; i++) {
		const uint32_t length = i * 1777;
		struct doca_buf *own = rig_data(s, 0, length ? length : 1),
				*remote = rig_remote_room(s, 4096, 1u << 20);

		if (!length)
			OK(doca_buf_set_data(own, s->memory, 0));
		rig_fill(s->memory, length, i);
		if (i % 2) {
			rig_write_imm(s, s->conns[0], own, remote, 1000 + i, i);
			rig_end_ok(s, i);
		} else { /* a message does not overtake the data that was written before */
			rig_write(s, s->conns[0], own, remote, i);
			rig_send_imm(s, s->conns[0], NULL, 1000 + i, 100 + i);
			rig_end_ok(s, i);
			rig_end_ok(s, 100 + i);
		}
		rig_hark(fd);
		rig_put(own);
		rig_put(remote);
	}
	rig_close(s);
}

static void read_the_words(int fd)
{
	struct rig_side *s = rig_begin(fd, true);

	rig_export(s, fd);
	for (uint32_t i = 0; i < 50; i++) {
		const struct rig_end *end;

		rig_receive(s, NULL, i); /* no buffer: the data is not part of the message */
		end = rig_end(s);
		OK(end->status);
		CHECK(end->imm == 1000 + i);
		CHECK(end->opcode == (i % 2 ? DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM
					    : DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM));
		CHECK(rig_differs(s->memory + 4096, i * 1777, i) == i * 1777);
		rig_tell(fd);
	}
	rig_close(s);
}

static void a_write_with_immediate_data_takes_a_receive_without_buffer_and_comes_after_its_data(
	void)
{
	rig_both(write_with_words, read_the_words);
}

#define WORDS 5u
#define WORD_BYTES 50000u

#define FENCE 99u

/* Let the peer send a message, and receive it: all that the peer sent before has arrived. */
static void ask_for_fence(struct rig_side *s, int fd)
{
	rig_receive(s, NULL, FENCE);
	rig_tell(fd);
	rig_end_ok(s, FENCE);
	rig_hark(fd);
}

static void send_fence(struct rig_side *s, int fd)
{
	rig_hark(fd);
	rig_send_imm(s, s->conns[0], NULL, FENCE, FENCE);
	rig_end_ok(s, FENCE);
	rig_tell(fd);
}

static void write_before_receives(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *own[WORDS], *remote[WORDS];

	rig_import(s, fd);
	for (uint32_t i = 0; i < WORDS; i++) {
		own[i] = rig_data(s, i * WORD_BYTES, WORD_BYTES);
		remote[i] = rig_remote_room(s, (1u << 20) + i * WORD_BYTES, WORD_BYTES);
		rig_fill(s->memory + i * WORD_BYTES, WORD_BYTES, i);
		rig_write_imm(s, s->conns[0], own[i], remote[i], 1000 + i, i);
	}
	for (uint32_t i = 0; i < WORDS; i++) {
		/* each receive has ended one write, and no other */
		ask_for_fence(s, fd);
		CHECK(s->n_ends == s->n_seen);
		rig_tell(fd);
		rig_end_ok(s, i);
		rig_hark(fd);
	}
	for (uint32_t i = 0; i < WORDS; i++) {
		rig_put(own[i]);
		rig_put(remote[i]);
	}
	rig_close(s);
}

static void receive_the_words_late(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	struct doca_buf *buf = rig_room(s, 0, 100);
	const struct rig_end *end;
	size_t length;

	rig_export(s, fd);
	for (uint32_t i = 0; i < WORDS; i++) {
		send_fence(s, fd);
		rig_hark(fd);
		rig_receive(s, buf, i);
		end = rig_end(s);
		OK(end->status);
		CHECK(end->tag == i && end->imm == 1000 + i);
		CHECK(end->opcode == DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM);
		CHECK(rig_differs(s->memory + (1u << 20) + i * WORD_BYTES, WORD_BYTES, i) ==
		      WORD_BYTES);
		OK(doca_buf_get_data_len(buf, &length));
		CHECK(length == 0);
		rig_tell(fd);
	}
	rig_put(buf);
	rig_close(s);
}

static void writes_with_immediate_data_wait_for_one_receive_each(void)
{
	rig_both(write_before_receives, receive_the_words_late);
}

/*
 * Export moves memory to pages that other processes can map. A device that has the old pages
 * registered must register the new ones.
 */
static void export_between(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *remote, *own = rig_room(s, 0, 100000);
	const void *blob;
	size_t size;

	rig_import(s, fd);
	remote = rig_remote_data(s, 0, 100000);
	rig_read(s, s->conns[0], remote, own, 1);
	rig_end_ok(s, 1);
	CHECK(rig_differs(s->memory, 100000, 8) == 100000);
	OK(doca_mmap_export_rdma(s->map, s->dev, &blob, &size));
	memset(s->memory, 0, RIG_BYTES);
	OK(doca_buf_reset_data_len(own));
	rig_read(s, s->conns[0], remote, own, 2);
	rig_end_ok(s, 2);
	CHECK(rig_differs(s->memory, 100000, 8) == 100000);
	rig_tell(fd);
	rig_put(remote);
	rig_put(own);
	rig_close(s);
}

static void be_read(int fd)
{
	struct rig_side *s = rig_begin(fd, true);

	rig_fill(s->memory, RIG_BYTES, 8);
	rig_export(s, fd);
	rig_hark(fd);
	rig_close(s);
}

static void read_reaches_memory_that_is_exported_after_its_first_use(void)
{
	rig_both(export_between, be_read);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(messages_of_all_sizes_arrive_whole);
	RUN_TEST(
		messages_come_in_order_with_their_immediate_data_and_receives_are_resubmitted_in_callbacks);
	RUN_TEST(connect_succeeds_before_the_peer_connects_and_a_send_waits_for_a_receive);
	RUN_TEST(chains_are_gathered_and_scattered);
	RUN_TEST(received_data_is_appended_to_the_data_of_the_buffer);
	RUN_TEST(reads_and_writes_complete_while_the_responder_never_progresses);
	RUN_TEST(a_read_after_a_write_sees_it_with_many_under_way);
	RUN_TEST(
		a_write_with_immediate_data_takes_a_receive_without_buffer_and_comes_after_its_data);
	RUN_TEST(writes_with_immediate_data_wait_for_one_receive_each);
	RUN_TEST(read_reaches_memory_that_is_exported_after_its_first_use);
	return UNITY_END();
}
