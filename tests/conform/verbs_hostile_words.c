/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_hostile_words.c - invalid control messages and messages of the attacker, and more of each
 * than it has credit for.
 */
#include "conform/verbs_hostile.h"

#define LANE 5
#define MAX_DATA 64

static uint32_t consumer_id;

/* -- control messages -- */

struct words {
	const char *what;
	uint32_t bytes; /* of the whole message */
	uint8_t kind;
	uint16_t length;  /* length in the header */
	uint32_t allowed; /* added to the valid credit */
	uint32_t body[4];
	const char *text;
};

#define HEAD 8

static const struct words control_words[] = {
	{"nothing", 0, 0, 0, 0, {0}, "without a header"},
	{"no head", 7, VB_CTRL_USER, 0, 0, {0}, "without a header"},
	{"more than it says", HEAD + 9, VB_CTRL_USER, 8, 0, {0}, "does not match its header"},
	{"less than it says", HEAD + 8, VB_CTRL_USER, 65535, 0, {0}, "does not match its header"},
	{"kind 0", HEAD, 0, 0, 0, {0}, "unknown kind"},
	{"record without a filter", HEAD, VB_CTRL_RECORD, 0, 0, {0}, "unknown kind"},
	{"start without a filter", HEAD + 24, VB_CTRL_START, 24, 0, {0}, "without a record"},
	{"next kind", HEAD, VB_CTRL_START + 1, 0, 0, {0}, "unknown kind"},
	{"region with a key", HEAD + 88, VB_CTRL_REGION, 88, 0, {0}, "invalid length"},
	{"kind 255", HEAD + 8, 255, 8, 0, {0}, "unknown kind"},
	{"nothing said", HEAD, VB_CTRL_USER, 0, 0, {0}, "invalid length"},
	{"short consumer", HEAD + 8, VB_CTRL_CONSUMER, 8, 0, {0}, "invalid length"},
	{"long consumer", HEAD + 16, VB_CTRL_CONSUMER, 16, 0, {0}, "invalid length"},
	{"short region", HEAD + 16, VB_CTRL_REGION, 16, 0, {0}, "invalid length"},
	{"no region", HEAD + 72, VB_CTRL_REGION, 72, 0, {0}, ""},
	{"region beyond all addresses", HEAD + 72, VB_CTRL_REGION, 72, 0, {~0u, ~0u, 4096, 0}, ""},
	{"revoke of no region", HEAD + 8, VB_CTRL_REVOKE, 8, 0, {3, 9}, "did not export"},
	{"return of no region", HEAD + 8, VB_CTRL_RELEASED, 8, 0, {3, 9}, "was not revoked"},
	{"open at who listens",
	 HEAD + 8,
	 VB_CTRL_OPEN,
	 8,
	 0,
	 {VB_MESSAGES, 0},
	 "invalid queue pair"},
	{"consumer of a lane that is none",
	 HEAD + 12,
	 VB_CTRL_CONSUMER,
	 12,
	 0,
	 {1, 0x10000 + 300, 64},
	 ""},
	{"long farewell", HEAD + 4, VB_CTRL_BYE, 4, 0, {0}, "invalid length"},
	{"credit that jumps",
	 HEAD + 4,
	 VB_CTRL_USER,
	 4,
	 100,
	 {0},
	 "more messages than it has slots"},
	{"credit that jumps far",
	 HEAD + 4,
	 VB_CTRL_USER,
	 4,
	 INT32_MAX,
	 {0},
	 "more messages than it has slots"},
};

static void invalid_control_messages(void)
{

	_Static_assert(sizeof(struct vb_ctrl_region) == 72, "a region in the table");
	hostile_begin(NULL);
	for (size_t i = 0; i < sizeof(control_words) / sizeof(control_words[0]); i++) {
		const struct words *w = &control_words[i];
		struct vb_ctrl head = {.kind = w->kind, .length = w->length};

		hostile_intrude();
		head.allowed = evil.n_in + VB_CTRL_SLOTS + w->allowed;
		memset(evil.out, 0, RAW_SLOT);
		memcpy(evil.out, &head, sizeof(head));
		memcpy(evil.out + sizeof(head), w->body, sizeof(w->body));
		raw_send(&evil, w->bytes);
		hostile_check_dropped(w->what, -EPROTO, w->text);
		hostile_leave();
	}
	hostile_check_honest();
	hostile_intrude();
	/* a note on the control queue pair is invalid, whatever the buffer of its receive holds */
	raw_move(&evil, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0);
	hostile_check_dropped("a note to nobody", -EPROTO, "without a header");
	hostile_leave();
	hostile_intrude();
	/* longer than a receive; the error depends on the device */
	TEST_ASSERT_TRUE(raw_send(&evil, VB_CTRL_SLOT + 1) != IBV_WC_SUCCESS);
	hostile_check_dropped("longer than a slot", 0, NULL);
	hostile_leave();
	hostile_end();
}

/* -- messages -- */

/* Create a consumer of end b with n receives, and a queue pair of the attacker to it. */
static void reach_consumer(uint32_t n)
{
	const struct gantry_queue_attr attr = {.depth = 8, .max_data = MAX_DATA, .lane = LANE};
	struct gantry_recv recvs[8] = {{.buf = NULL}};
	struct vb_hello hello;

	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->consumer_create(rig.b.conn, &attr, &consumer_id, &hostile_consumer));
	for (uint32_t i = 0; i < n; i++)
		recvs[i] = (struct gantry_recv){.buf = rig_local(MAX_DATA), .length = MAX_DATA};
	TEST_ASSERT_EQUAL_INT(0, rig.ops->data->post_recv(hostile_consumer, recvs, n));
	raw_open(&more);
	hello = raw_hello(&more, VB_MESSAGES, &evil);
	hello.listens_lane = LANE;
	raw_ask(&more, &hello, sizeof(hello));
	TEST_ASSERT_TRUE_MESSAGE(more.up, more.refusal.text);
	hostile_taken = 0;
	for (uint64_t late = 0; n && ((volatile struct vb_credit *)more.credit)->allowed < n;) {
		rig_wait(&late, 0, "credit for the hostile producer");
		raw_turn(&more);
	}
}

static void put_message(const struct vb_msg *head, const struct vb_msg_region *ref)
{
	struct vb_msg msg = *head;

	msg.kind = (uint8_t)(msg.kind | consumer_id << 4);
	memset(more.out, 0x5a, RAW_SLOT);
	memcpy(more.out, &msg, sizeof(msg));
	if (ref)
		memcpy(more.out + sizeof(msg), ref, sizeof(*ref));
}

static void messages_without_credit(void)
{
	const struct vb_msg plain = {.kind = VB_MSG_PLAIN, .imm_len = 8};

	hostile_begin(NULL);
	hostile_intrude();
	reach_consumer(0);
	put_message(&plain, NULL);
	raw_send(&more, 16);
	hostile_check_dropped("a message without credit", -EPROTO,
			      "sends an invalid slot or exceeds its credit");
	hostile_leave();
	hostile_check_honest();
	hostile_intrude();
	reach_consumer(0);
	raw_move(&more, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0);
	hostile_check_dropped("a note without credit", -EPROTO,
			      "sends an invalid slot or exceeds its credit");
	hostile_leave();
	hostile_check_honest();
	hostile_intrude();
	reach_consumer(2);
	put_message(&plain, NULL);
	for (int i = 0; i < 100; i++)
		raw_post(&more, IBV_WR_SEND, 0, 0, 16);
	hostile_check_dropped("more messages than it has credit for", -EPROTO,
			      "sends an invalid slot or exceeds its credit");
	TEST_ASSERT_TRUE(hostile_taken <= 2);
	hostile_leave();
	hostile_check_honest();
	hostile_end();
}

/*
 * The attacker posts more control messages than end b has receives. They wait for receives, or the
 * queue pair of the attacker fails.
 */
static void flood(void)
{
	const struct vb_ctrl head = {.kind = VB_CTRL_USER, .length = 4, .allowed = VB_CTRL_SLOTS};

	hostile_begin(NULL);
	hostile_intrude();
	memcpy(evil.out, &head, sizeof(head));
	for (int i = 0; i < 200; i++)
		raw_post(&evil, IBV_WR_SEND, 0, 0, sizeof(head) + 4);
	hostile_check_honest();
	TEST_ASSERT_TRUE(raw_until(&evil, &evil.n_done, 200));
	TEST_ASSERT_TRUE_MESSAGE(evil.bad == IBV_WC_SUCCESS || evil.bad == IBV_WC_RNR_RETRY_EXC_ERR,
				 ibv_wc_status_str(evil.bad));
	hostile_leave();
	hostile_end();
}

struct letter {
	const char *what;
	uint32_t bytes;
	struct vb_msg head;
	struct vb_msg_region ref;
	const char *text;
};

static void invalid_messages(void)
{
	static const char cannot[] = "sends an invalid message",
			  region[] = "sends data of an invalid region";
	static const char no[] = "sends an invalid slot or exceeds its credit";
	/*
	 * invalid credit in a valid message: the consumer can take the message before the
	 * connection ends
	 */
	static const char jump[] = "more messages than it has slots";
	static const struct letter rows[] = {
		{"nothing", 0, {.kind = 0}, {0}, no},
		{"no head", 7, {.kind = VB_MSG_PLAIN}, {0}, no},
		{"kind 0", 64, {.kind = 0}, {0}, cannot},
		{"next kind", 64, {.kind = VB_MSG_REGION + 1}, {0}, cannot},
		{"imm beyond the head", 64, {.kind = VB_MSG_PLAIN, .imm_len = 255}, {0}, cannot},
		{"less imm than it says", 15, {.kind = VB_MSG_PLAIN, .imm_len = 8}, {0}, cannot},
		{"less data than it says",
		 64 + 31,
		 {.kind = VB_MSG_PLAIN, .length = 32},
		 {0},
		 cannot},
		{"more data than it says",
		 64 + 33,
		 {.kind = VB_MSG_PLAIN, .length = 32},
		 {0},
		 cannot},
		{"more data than there may be",
		 64 + MAX_DATA + 1,
		 {.kind = VB_MSG_PLAIN, .length = MAX_DATA + 1},
		 {0},
		 cannot},
		{"data beyond all", 64 + 16, {.kind = VB_MSG_PLAIN, .length = 65535}, {0}, cannot},
		{"half a region", 64 + 8, {.kind = VB_MSG_REGION}, {0}, cannot},
		{"no data of a region",
		 64 + 24,
		 {.kind = VB_MSG_REGION},
		 {.handle = 1, .generation = 1},
		 region},
		{"too much of a region",
		 64 + 24,
		 {.kind = VB_MSG_REGION},
		 {.handle = 1, .generation = 1, .length = MAX_DATA + 1},
		 region},
		{"beyond a region",
		 64 + 24,
		 {.kind = VB_MSG_REGION},
		 {.handle = 1, .generation = 1, .offset = 4096 - 31, .length = 32},
		 region},
		{"offset that wraps",
		 64 + 24,
		 {.kind = VB_MSG_REGION},
		 {.handle = 1, .generation = 1, .offset = UINT64_MAX - 15, .length = 32},
		 region},
		{"another kind behind it",
		 64 + 24,
		 {.kind = VB_MSG_PLAIN},
		 {.offset = VB_MSG_REGION},
		 no},
		{"less than a head behind it",
		 64 + 7,
		 {.kind = VB_MSG_PLAIN},
		 {.offset = VB_MSG_PLAIN},
		 no},
		{"data behind it",
		 64 + 24,
		 {.kind = VB_MSG_PLAIN},
		 {.offset = 16ull << 48 | VB_MSG_PLAIN},
		 no},
		{"credit that jumps",
		 16,
		 {.kind = VB_MSG_PLAIN, .imm_len = 8, .allowed = 0x4000},
		 {0},
		 jump},
	};

	hostile_begin(NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_ctrl_region r = {
			.length = 4096, .rights = GANTRY_REMOTE_READ, .handle = 1, .generation = 1};

		hostile_intrude();
		r.addr = (uintptr_t)evil.block;
		r.key = evil.mr->rkey;
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
				      raw_ctrl(&evil, VB_CTRL_REGION, &r, sizeof(r)));
		reach_consumer(4);
		put_message(&rows[i].head, &rows[i].ref);
		raw_send(&more, rows[i].bytes);
		hostile_check_dropped(rows[i].what, -EPROTO, rows[i].text);
		TEST_ASSERT_TRUE_MESSAGE(hostile_taken == 0 || rows[i].text == jump, rows[i].what);
		hostile_leave();
	}
	hostile_check_honest();
	hostile_end();
}

/* The attacker announces memory that does not exist: the fetch fails and ends its connection. */
static void fetch_from_unmapped_memory(void)
{
	const struct vb_msg head = {.kind = VB_MSG_REGION};
	const struct vb_msg_region ref = {.handle = 1, .generation = 1, .length = 32};
	struct vb_ctrl_region r = {.length = 4096,
				   .rights = GANTRY_REMOTE_READ,
				   .handle = 1,
				   .generation = 1,
				   .key = 0xdead};

	hostile_begin(NULL);
	hostile_intrude();
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, raw_ctrl(&evil, VB_CTRL_REGION, &r, sizeof(r)));
	reach_consumer(4);
	put_message(&head, &ref);
	raw_send(&more, sizeof(head) + sizeof(ref));
	hostile_check_dropped("fetch", 0, "message queue pair");
	hostile_leave();
	hostile_end();
}

void hostile_words(void)
{
	RIG_CASE(invalid_control_messages);
	RIG_CASE(messages_without_credit);
	RIG_CASE(flood);
	RIG_CASE(invalid_messages);
	RIG_CASE(fetch_from_unmapped_memory);
}
