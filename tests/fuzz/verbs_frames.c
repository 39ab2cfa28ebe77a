/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_frames.c - all input from a peer over RDMA: private data of requests, and control messages.
 * The first byte selects one of them. Pieces follow: a byte with the length, then the bytes. The
 * product must not crash or leak, and no object must remain at the device.
 */
#include "fuzz/kept_ends.h"

#define PIECES 24

struct input {
	const uint8_t *p;
	size_t left;
};

static size_t take(struct input *in, void *to, size_t max)
{
	size_t n = in->left < max ? in->left : max;

	if (n)
		memcpy(to, in->p, n);
	in->p += n;
	in->left -= n;
	return n;
}

static size_t piece(struct input *in, void *to, size_t max)
{
	uint8_t len = 0;

	take(in, &len, 1);
	return take(in, to, len < max ? len : max);
}

/* -- private data -- */

/* Make parts of a request valid, so that the later checks are reached. */
static void make_plausible(struct vb_hello *hello, uint8_t how)
{
	hello->magic = VB_MAGIC;
	hello->version = VB_VERSION;
	hello->end = VB_CONNECTS;
	if (how & 1)
		hello->kind = (uint8_t)(1 + hello->kind % 4);
	if (how & 2) {
		hello->session = b.conn->session;
		hello->secret = how & 4 ? b.conn->secret : b.conn->direct_secret;
	}
	if (how & 8)
		hello->slot_bytes = hello->kind == VB_CONTROL    ? VB_CTRL_SLOT
				    : hello->kind == VB_MESSAGES ? 64 + 128
								 : 0;
	if (how & 16) {
		hello->connects_lane %= 4;
		hello->listens_lane = hello->kind == VB_MESSAGES ? hello->listens_lane % 4
								 : VB_NO_LANE;
	}
}

static void requests(struct input *in)
{
	struct rdma_cm_id *id = ((struct vb_listener *)b.listener)->id;

	for (int i = 0; i < PIECES && in->left; i++) {
		uint8_t data[56] = {0}, how = 0;
		size_t n;

		take(in, &how, 1);
		n = piece(in, data, sizeof(data));
		if (how & 32) {
			make_plausible((struct vb_hello *)data, how);
			n = sizeof(struct vb_hello);
		}
		fake_cm_push(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, data, (unsigned)n);
		ends_turn();
	}
	/* forget misuse recorded so far: no id sent these requests, so nothing gets the answers */
	fake_verbs_forgive();
}

/* -- control messages -- */

static void say(const uint8_t *bytes, size_t n)
{
	static const struct vb_send send = {.kind = VB_R_MESSAGE};
	struct vb_pipe *pipe = a.conn->control;
	struct ibv_send_wr *wr;
	char *slot;

	if (a.conn->state != VB_C_UP || pipe->quiet)
		return;
	slot = vb_pipe_slot(pipe, &send, &wr);
	if (!slot)
		return;
	memcpy(slot, bytes, n);
	vb_pipe_push(pipe, wr, (uint32_t)n);
	vb_pipe_post(pipe);
}

/* The user at the other end does an action, which the input selects. */
static void user(struct input *in, struct gantry_region **held)
{
	struct gantry_token token;
	uint8_t what[4] = {0};

	take(in, what, sizeof(what));
	token.handle = what[1];
	token.generation = what[2];
	if (what[0] & 1 && !*held && vb_import_region(b.conn, &token, 0, held))
		*held = NULL;
	if (what[0] & 2 && *held) {
		vb_release(b.conn, *held);
		*held = NULL;
	}
	if (what[0] & 4)
		vb_revoke(b.conn, 1);
}

/* End b connects only to its own networks, whatever the peer has announced. */
static void check_direct(void)
{
	for (const struct vb_pipe *p = b.conn->pipes; p; p = p->all)
		if (p->kind == VB_DIRECT &&
		    !tc_networks_have(&b.conn->t->direct_networks, (const struct sockaddr *)&p->to))
			abort();
}

/* Run both ends: an answer takes a turn of each. */
static void settle(void)
{
	for (int i = 0; i < 4; i++)
		ends_turn();
}

static struct gantry_region own;
static void *rma;

/* Create the objects of end b before the first message. */
static void prepare(void)
{
	struct gantry_queue_attr attr = {.depth = 4};
	struct gantry_token token;

	own = (struct gantry_region){
		.addr = b.bytes, .length = 4096, .fd = -1, .rights = VB_RIGHTS};
	if (vb_export(b.conn, &own, VB_RIGHTS, 1, &token) || vb_rma_create(b.conn, &attr, &rma))
		abort();
	settle();
}

static void messages(struct input *in)
{
	struct gantry_region *held = NULL;

	for (int i = 0; i < PIECES && in->left && b.conn->state == VB_C_UP; i++) {
		union {
			struct vb_ctrl head;
			uint8_t bytes[256];
		} msg = {.bytes = {0}};
		uint8_t how = 0;
		size_t n;

		take(in, &how, 1);
		n = piece(in, msg.bytes, sizeof(msg.bytes));
		/* make header and credit valid */
		if (how & 1 && n >= sizeof(msg.head)) {
			msg.head.kind %= VB_CTRL_BYE + 1;
			msg.head.length = (uint16_t)(n - sizeof(msg.head));
			msg.head.allowed = a.conn->control->credit_sent;
		}
		if (n)
			say(msg.bytes, n);
		ends_turn();
		if (how & 2)
			user(in, &held);
		check_direct();
	}
	settle();
	if (held)
		vb_release(b.conn, held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tc_networks half; /* half of all addresses */
	static const struct tc_networks none;
	struct input in = {.p = data, .left = size};
	uint8_t what = 0;
	char why[160];

	if (!kept_ends_begin("max_depth=8 max_connections=8")) {
		if (!half.n && tc_networks_parse("0.0.0.0/1,::/1", &half, why, sizeof(why)))
			abort();
		prepare();
		rewind_mark();
	}
	take(&in, &what, 1);
	((struct vb_transport *)b.device)->direct_networks = what & 2 ? none : half;
	(what & 1 ? requests : messages)(&in);
	vb_rma_destroy(rma);
	kept_ends_leave();
	kept_ends_end();
	return 0;
}
