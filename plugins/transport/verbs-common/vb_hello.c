/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_hello.c - private data of connection requests and replies.
 *
 * With a record filter a request for a further queue pair proves that its sender is the peer of the
 * connection, and the reply proves the same of the listener. A proof is a keyed code of the private
 * data before it, of the proof of the request in a reply, and of the number of the queue pair of
 * its writer, so that it is valid for one queue pair of one lane in one direction. The key is that
 * of the filter; for a direct pipe that of the region. The listener accepts each request once.
 *
 * The key and the address of the credit word are masked: a message in the filter could arrive after
 * the first credit is due on the lane. The control pipe, which is older than the filter, has
 * neither proof nor credit word in its private data: both follow in START, the first message in the
 * filter. Thread: control.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vb_hello.h"

#define MAX_SEEN 16384u /* limit of accepted requests per connection */

/* What a proof covers. The mask covers the fields of `hello` before the credit. */
struct context {
	uint8_t hello[offsetof(struct vb_sealed_hello, proof)];
	uint8_t request[VB_PROOF]; /* a reply: proof of the request */
	uint32_t qpn;
} __attribute__((packed));

struct credit {
	uint32_t key;
	uint64_t addr;
} __attribute__((packed));

#define MASKED offsetof(struct vb_sealed_hello, credit_key)

_Static_assert(MASKED + sizeof(struct credit) == sizeof(((struct context *)0)->hello),
	       "the credit is the end of what the proof covers");

uint32_t vb_hello_qpn(const struct vb_transport *t, uint32_t qpn)
{
	/* a connection request of iWARP does not have the number */
	return t->device.context->device->transport_type == IBV_TRANSPORT_IB ? qpn : 0;
}

/* -- keys -- */

/* Derive at most GANTRY_RECORDS_MAC bytes. direct_key: NULL: by the filter. Returns 0 or -errno. */
static int derive(const struct vb_conn *conn, const uint8_t *direct_key, const char *label,
		  const void *context, size_t n, void *out, size_t bytes)
{
	const struct gantry_records_ops *ops = conn->t->host->records;
	uint8_t data[32 + sizeof(struct context)] = {0}, mac[GANTRY_RECORDS_MAC];
	int rc;

	if (!direct_key)
		return ops->export_secret(conn->records, label, context, n, out, bytes);
	memcpy(data, label, strlen(label));
	memcpy(data + 32, context, n);
	rc = ops->mac(direct_key, VB_DIRECT_KEY, data, 32 + n, mac);
	if (!rc)
		memcpy(out, mac, bytes);
	return rc;
}

static int prove(const struct vb_conn *conn, const uint8_t *direct_key,
		 const struct vb_sealed_hello *hello, const uint8_t *request, uint32_t qpn,
		 uint8_t *proof)
{
	struct context context = {.qpn = vb_hello_qpn(conn->t, qpn)};

	memcpy(context.hello, hello, sizeof(context.hello));
	if (request)
		memcpy(context.request, request, sizeof(context.request));
	return derive(conn, direct_key, "gantry rdma hello", &context, sizeof(context), proof,
		      VB_PROOF);
}

/* Mask the credit, or remove the mask. Each private data has another mask: see `sequence`. */
static int mask(const struct vb_conn *conn, const uint8_t *direct_key,
		const struct vb_sealed_hello *hello, struct credit *credit)
{
	struct credit bytes;
	int rc = derive(conn, direct_key, "gantry rdma credit", hello, MASKED, &bytes,
			sizeof(bytes));

	credit->key ^= bytes.key;
	credit->addr ^= bytes.addr;
	return rc;
}

/* Compare two proofs in a time that does not depend on their bytes. */
static bool same(const uint8_t *a, const uint8_t *b)
{
	uint8_t differs = 0;

	for (unsigned i = 0; i < VB_PROOF; i++)
		differs |= a[i] ^ b[i];
	return differs == 0;
}

static const uint8_t *key_of(const struct vb_pipe *pipe)
{
	if (pipe->kind != VB_DIRECT)
		return NULL;
	return pipe->peer ? pipe->peer->key : pipe->conn->direct_key;
}

/* -- writing -- */

static int seal(struct vb_pipe *pipe, const struct vb_hello *hello, struct vb_sealed_hello *sealed)
{
	struct credit credit = {.key = hello->credit_key, .addr = hello->credit_addr};
	const struct vb_conn *conn = pipe->conn;
	bool asks = pipe->end == VB_CONNECTS;
	int rc;

	*sealed = (struct vb_sealed_hello){
		.magic = hello->magic,
		.version = hello->version,
		.kind = hello->kind,
		.end = hello->end,
		.session = hello->session,
		.connects_lane = hello->connects_lane,
		.listens_lane = hello->listens_lane,
		.slots = (uint16_t)hello->slots,
		.slot_bytes = (uint16_t)hello->slot_bytes,
	};
	if (pipe->kind == VB_CONTROL)
		return 0;
	if (asks)
		pipe->sequence = ++conn->t->sequence;
	sealed->sequence = pipe->sequence;
	rc = mask(conn, key_of(pipe), sealed, &credit);
	if (rc)
		return rc;
	sealed->credit_key = credit.key;
	sealed->credit_addr = credit.addr;
	rc = prove(conn, key_of(pipe), sealed, asks ? NULL : pipe->proof, pipe->qp.qp->qp_num,
		   sealed->proof);
	if (!rc && asks)
		memcpy(pipe->proof, sealed->proof, sizeof(pipe->proof));
	return rc;
}

int vb_hello_write(struct vb_pipe *pipe, uint8_t *bytes, size_t *len_p)
{
	struct vb_sealed_hello sealed;
	struct vb_hello hello;
	int rc;

	vb_pipe_hello(pipe, &hello);
	if (!pipe->conn->t->host->records) {
		memcpy(bytes, &hello, sizeof(hello));
		*len_p = sizeof(hello);
		return 0;
	}
	rc = seal(pipe, &hello, &sealed);
	memcpy(bytes, &sealed, sizeof(sealed));
	*len_p = sizeof(sealed);
	return rc;
}

/* -- reading -- */

static void unseal(const struct vb_sealed_hello *sealed, struct vb_hello *hello)
{
	*hello = (struct vb_hello){
		.magic = sealed->magic,
		.version = sealed->version,
		.kind = sealed->kind,
		.end = sealed->end,
		.session = sealed->session,
		.connects_lane = sealed->connects_lane,
		.listens_lane = sealed->listens_lane,
		.slots = sealed->slots,
		.slot_bytes = sealed->slot_bytes,
	};
}

/* Returns whether the fields of VB_CONTROL that START does not prove have their only value. */
static bool is_plain(const struct vb_sealed_hello *sealed)
{
	struct vb_sealed_hello due = {
		.magic = sealed->magic,
		.version = sealed->version,
		.kind = VB_CONTROL,
		.end = sealed->end,
		.session = sealed->session,
		.slots = VB_CTRL_SLOTS,
		.slot_bytes = VB_CTRL_SLOT,
	};

	return memcmp(&due, sealed, sizeof(due)) == 0;
}

const char *vb_hello_read(const struct vb_transport *t, const struct vb_event *event,
			  struct vb_greeting *request)
{
	static const char stranger[] = "the request does not belong to the protocol of gantry";
	struct vb_hello *hello = &request->hello;

	if (event->private_len < sizeof(*hello))
		return stranger;
	*request = (struct vb_greeting){.qpn = event->qpn};
	memcpy(hello, event->private_data, sizeof(*hello));
	if (hello->magic != VB_MAGIC)
		return stranger;
	if (hello->version == (vb_version(t) ^ VB_RECORDS))
		return "only one end protects control messages: use the same security at both ends";
	if (hello->version != vb_version(t))
		return "other protocol version: use the same release of gantry at both ends";
	if (!t->host->records)
		return NULL;
	if (event->private_len < sizeof(request->sealed))
		return stranger;
	memcpy(&request->sealed, event->private_data, sizeof(request->sealed));
	unseal(&request->sealed, hello);
	return hello->kind == VB_CONTROL && !is_plain(&request->sealed) ? "malformed request"
									: NULL;
}

/* Check the proof, and remove the mask of the credit. proof: of the request, if this is a reply. */
static bool is_proven(const struct vb_conn *conn, const uint8_t *direct_key,
		      struct vb_greeting *request, const uint8_t *proof)
{
	const struct vb_sealed_hello *sealed = &request->sealed;
	struct credit credit = {.key = sealed->credit_key, .addr = sealed->credit_addr};
	uint8_t due[VB_PROOF];

	if (prove(conn, direct_key, sealed, proof, request->qpn, due) ||
	    !same(due, sealed->proof) || mask(conn, direct_key, sealed, &credit))
		return false;
	request->hello.credit_key = credit.key;
	request->hello.credit_addr = credit.addr;
	return true;
}

bool vb_hello_belongs(const struct vb_conn *conn, struct vb_greeting *request)
{
	const struct vb_hello *hello = &request->hello;
	bool direct = hello->kind == VB_DIRECT;
	uint64_t secret = direct ? conn->direct_secret : conn->secret;

	if (conn->session != hello->session || !secret)
		return false;
	if (!conn->t->host->records)
		return secret == hello->secret;
	return conn->records_open &&
	       is_proven(conn, direct ? conn->direct_key : NULL, request, NULL);
}

bool vb_hello_answers(const struct vb_pipe *pipe, struct vb_greeting *reply)
{
	if (!pipe->conn->t->host->records)
		return true;
	if (reply->hello.end != VB_LISTENS)
		return false;
	if (pipe->kind == VB_CONTROL)
		return reply->hello.session == pipe->conn->session;
	return reply->sealed.sequence == pipe->sequence &&
	       is_proven(pipe->conn, key_of(pipe), reply, pipe->proof);
}

/* -- replayed requests -- */

/* The array grows when n_seen is a power of two of at least 16. */
static int grow(struct vb_conn *conn)
{
	uint32_t n = conn->n_seen;
	struct vb_seen *seen;

	if (n && (n < 16 || (n & (n - 1))))
		return 0;
	seen = realloc(conn->seen, (n ? 2 * n : 16) * sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	conn->seen = seen;
	return 0;
}

int vb_hello_remember(struct vb_conn *conn, const struct vb_greeting *request)
{
	const struct vb_sealed_hello *sealed = &request->sealed;
	int rc;

	if (!conn->t->host->records)
		return 0;
	for (uint32_t i = 0; i < conn->n_seen; i++) {
		const struct vb_seen *s = &conn->seen[i];

		if (s->sequence == sealed->sequence && s->kind == sealed->kind &&
		    s->connects_lane == sealed->connects_lane &&
		    s->listens_lane == sealed->listens_lane)
			return -EALREADY;
	}
	if (conn->n_seen >= MAX_SEEN)
		return -ENOSPC;
	rc = grow(conn);
	if (rc)
		return rc;
	conn->seen[conn->n_seen++] = (struct vb_seen){.sequence = sealed->sequence,
						      .connects_lane = sealed->connects_lane,
						      .listens_lane = sealed->listens_lane,
						      .kind = sealed->kind};
	return 0;
}
