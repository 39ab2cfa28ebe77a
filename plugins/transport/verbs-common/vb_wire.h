/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_wire.h - the protocol between the two ends of a connection. Integers are little-endian; the
 * structs are the wire format.
 *
 * A connection has a control queue pair and, for each pair of lanes that communicate, a message
 * queue pair. It has a data queue pair for the remote reads and writes of a lane, unless the lane
 * shares the message queue pair. Through direct queue pairs a third party accesses memory that was
 * re-exported to it. Each queue pair is a separate RDMA connection, whose active side states the
 * kind in the private data. The active side is the client end; of a direct queue pair, the third
 * party.
 */
#ifndef VB_WIRE_H
#define VB_WIRE_H

#include <stdint.h>

#include <gantry/transport.h>

#define VB_MAGIC 0x4d445247u /* "GRDM" */
#define VB_VERSION 2u
#define VB_RECORDS 0x100u /* flag in `version`: the end has a record filter */

enum vb_kind { VB_CONTROL = 1, VB_MESSAGES, VB_DATA, VB_DIRECT };
enum vb_end { VB_CONNECTS = 1, VB_LISTENS };

/*
 * Lane of the passive side of a data or direct queue pair: one side posts requests, the other side
 * only provides memory.
 */
#define VB_NO_LANE 0xffffu

/* Private data of a connection request and of its reply: 48 of the 56 bytes available. */
struct vb_hello {
	uint32_t magic;
	uint16_t version;
	uint8_t kind;     /* enum vb_kind */
	uint8_t end;      /* enum vb_end: end of the connection that wrote this struct */
	uint64_t session; /* number of the connection, chosen by the client */
	/*
	 * Secret of the session. The server chooses it in its reply to VB_CONTROL. The client
	 * repeats it in each later request.
	 */
	uint64_t secret;
	/* lanes that post requests; VB_NO_LANE: that side posts none */
	uint16_t connects_lane, listens_lane;
	uint32_t slots;      /* receive slots of the sender of this; 0: it receives no messages */
	uint32_t slot_bytes; /* bytes of a slot: the same at both ends */
	/* memory of the writer into which the receiver writes struct vb_credit */
	uint32_t credit_key;
	uint64_t credit_addr;
} __attribute__((packed));

#define VB_PROOF 16u /* bytes of a proof */

/*
 * Private data with a record filter: 56 of the 56 bytes available. The fields up to `session` are
 * those of struct vb_hello.
 */
struct vb_sealed_hello {
	uint32_t magic;
	uint16_t version;
	uint8_t kind, end;
	uint64_t session;
	uint32_t sequence; /* the listener accepts each once; the reply repeats it; VB_CONTROL: 0 */
	uint16_t connects_lane, listens_lane;
	uint16_t slots, slot_bytes;
	/* masked: XORed with bytes that only the two ends know; VB_CONTROL: 0 */
	uint32_t credit_key;
	uint64_t credit_addr;
	/*
	 * keyed code of the fields above, of the proof of the request if this is a reply, and of
	 * the number of the queue pair of the writer; VB_CONTROL: 0
	 */
	uint8_t proof[VB_PROOF];
} __attribute__((packed));

/* Private data of a rejection: 144 of the 148 bytes available. */
#define VB_REFUSAL_TEXT 136

struct vb_refusal {
	uint32_t magic;
	uint16_t version;
	uint16_t reason;            /* errno of Linux */
	char text[VB_REFUSAL_TEXT]; /* zero-terminated */
} __attribute__((packed));

/*
 * Credit, written by the peer with RDMA WRITE: two counts of messages of this pipe since it came
 * up, modulo 2^32.
 */
struct vb_credit {
	uint32_t allowed; /* messages that the peer accepts */
	uint32_t taken;   /* REGION messages whose data the peer has fetched or discarded */
};

/* -- messages: VB_MESSAGES -- */

enum vb_msg_kind { VB_MSG_PLAIN = 1, VB_MSG_REGION };

/*
 * Start of a message. Without data the message ends after imm_len bytes of imm; data begins after
 * 64 bytes. Messages without data to one consumer can share a slot: each but the last then has 64
 * bytes.
 */
struct vb_msg {
	/*
	 * low 4 bits: enum vb_msg_kind; high 4 bits: low bits of the id of the receiving consumer
	 */
	uint8_t kind;
	uint8_t imm_len;
	uint16_t allowed; /* low half of struct vb_credit.allowed */
	uint16_t zero;
	uint16_t length; /* PLAIN: bytes of data */
	uint8_t imm[GANTRY_IMM_MAX];
} __attribute__((packed));

/*
 * A note is a message without struct vb_msg: the immediate data, big-endian, of a write to a
 * region. It uses a receive and credit like other messages, and goes to the consumer of the lane. A
 * note can arrive at any time; the users of the connection define its meaning.
 */

/* REGION: the location of the data, which the receiver fetches with a remote read. */
struct vb_msg_region {
	uint64_t offset;             /* offset of the data in the region, bytes */
	uint32_t handle, generation; /* as in the VB_CTRL_REGION message of the region */
	uint32_t length;
	uint32_t reserved;
};

/* -- control messages: VB_CONTROL -- */

enum vb_ctrl_kind {
	VB_CTRL_USER = 1, /* control message of the user */
	VB_CTRL_CONSUMER, /* a consumer was created or destroyed */
	VB_CTRL_REGION,   /* the sender exports a region */
	VB_CTRL_REVOKE,   /* the sender revokes its region */
	VB_CTRL_RELEASED, /* the sender has released the receiver's region */
	VB_CTRL_OPEN,     /* the server asks the client to establish a queue pair */
	VB_CTRL_BYE,      /* the sender ends the connection intentionally */
	VB_CTRL_RECORD,   /* bytes of the record filter; with a filter all messages are in them */
	VB_CTRL_START,    /* first message of each end in the record filter */
};

struct vb_ctrl {
	uint8_t kind; /* enum vb_ctrl_kind */
	uint8_t reserved;
	uint16_t length;  /* bytes of body */
	uint32_t allowed; /* credit, as `allowed` of struct vb_credit */
};

struct vb_ctrl_consumer {
	uint32_t id;
	uint16_t lane;
	uint16_t up;
	uint32_t max_data;
};

struct vb_ctrl_region {
	uint64_t addr, length;
	uint32_t key, handle, generation, rights;
	/*
	 * address, session and secret with which a third party opens a VB_DIRECT queue pair to the
	 * owner of the memory; family 0: the owner accepts no such queue pairs
	 */
	uint64_t session, secret;
	uint16_t direct; /* the memory belongs to a third party: access it through VB_DIRECT */
	uint16_t port;
	uint16_t family; /* AF_INET, AF_INET6, as Linux numbers them */
	uint16_t reserved;
	uint8_t address[16];
};

/* REGION with a record filter. */
struct vb_ctrl_keyed_region {
	struct vb_ctrl_region region;
	uint8_t direct_key[16]; /* key of the proofs of VB_DIRECT, instead of region.secret */
};

/* START: what the private data of VB_CONTROL leaves out, or does not prove. */
struct vb_ctrl_start {
	uint64_t session;
	uint64_t credit_addr; /* as in struct vb_hello */
	uint32_t credit_key;
	uint32_t qpn; /* number of the control queue pair of the sender; iWARP: 0 */
};

struct vb_ctrl_handle { /* REVOKE, RELEASED */
	uint32_t handle, generation;
};

struct vb_ctrl_open {
	uint8_t kind; /* VB_MESSAGES, VB_DATA */
	uint8_t reserved;
	uint16_t connects_lane, listens_lane;
	uint16_t reserved2;
};

#define VB_CTRL_SLOT (sizeof(struct vb_ctrl) + GANTRY_CTRL_MAX)
#define VB_CTRL_SLOTS 16u

_Static_assert(sizeof(struct vb_hello) == 48, "private data of a connection request");
_Static_assert(sizeof(struct vb_sealed_hello) == 56, "private data with a record filter");
_Static_assert(sizeof(struct vb_refusal) == 144, "private data of a rejection");
_Static_assert(sizeof(struct vb_msg) == 64, "a cache line");
_Static_assert(sizeof(struct vb_ctrl) == 8, "control header");

#endif
