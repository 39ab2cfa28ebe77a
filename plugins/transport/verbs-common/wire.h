/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what two ends of a connection say to each other. Little-endian, laid out as it stands
 * here.
 *
 * A connection is a control queue pair and, for each pair of lanes that talk, a message queue pair;
 * a data queue pair for the remote reads and writes of a lane unless it shares the message queue
 * pair; and direct queue pairs, by which a third party reaches memory that was re-exported to it.
 * Each is an RDMA connection of its own, made by the side that connects, and says in its private
 * data what it is.
 */
#ifndef VB_WIRE_H
#define VB_WIRE_H

#include <stdint.h>

#include <gantry/transport.h>

#define VB_MAGIC 0x4d445247u /* "GRDM" */
#define VB_VERSION 2u
#define VB_TOKEN_KIND 0x62726576u /* "verb" */

enum vb_kind { VB_CONTROL = 1, VB_MESSAGES, VB_DATA, VB_DIRECT };
enum vb_end { VB_CONNECTS = 1, VB_LISTENS };

/* of a data or direct queue pair: one side posts, the other one's memory is reached */
#define VB_NO_LANE 0xffffu

/* Private data of a request and of its answer: 48 bytes of the 56 that fit. */
struct vb_hello {
	uint32_t magic;
	uint16_t version;
	uint8_t kind;     /* enum vb_kind */
	uint8_t end;      /* enum vb_end: of who wrote it */
	uint64_t session; /* number of the connection: chosen by the side that connects */
	/*
	 * of the session: chosen by the side that listens, in its answer to VB_CONTROL; asked for
	 * ever after
	 */
	uint64_t secret;
	/* of who posts there; VB_NO_LANE: that side posts nothing */
	uint16_t connects_lane, listens_lane;
	uint32_t slots;      /* messages that the writer has room for; 0: none come here */
	uint32_t slot_bytes; /* of each: the same at both ends */
	/* where the peer writes how many messages it takes: struct vb_credit */
	uint32_t credit_key;
	uint64_t credit_addr;
} __attribute__((packed));

/* Private data of a rejection: 144 bytes of the 148 that fit. */
#define VB_REFUSAL_TEXT 136

struct vb_refusal {
	uint32_t magic;
	uint16_t version;
	uint16_t reason;            /* errno of Linux */
	char text[VB_REFUSAL_TEXT]; /* ends with a zero byte */
} __attribute__((packed));

/*
 * Written by the peer, RDMA WRITE: two numbers of messages of this pipe, counted from the
 * beginning, modulo 2^32.
 */
struct vb_credit {
	uint32_t allowed; /* that it takes */
	uint32_t taken;   /* REGION: whose data it has, or does not want */
};

/* -- messages: VB_MESSAGES -- */

enum vb_msg_kind { VB_MSG_PLAIN = 1, VB_MSG_REGION };

/*
 * At the start of a slot; followed by imm, then data. 64 bytes where there is data. Messages
 * without data to one consumer may share a slot: each but the last has 64 bytes then.
 */
struct vb_msg {
	/*
	 * low half: enum vb_msg_kind; high half: low bits of the number of the consumer that it is
	 * for
	 */
	uint8_t kind;
	uint8_t imm_len;
	uint16_t allowed;  /* low half of what struct vb_credit would say */
	uint16_t producer; /* of the sender */
	uint16_t length;   /* PLAIN: bytes of data that follow */
	uint8_t imm[GANTRY_IMM_MAX];
} __attribute__((packed));

/*
 * A note is a message that has no bytes here: the immediate data, big-endian, of a write to a
 * region. It uses a receive and credit as others do, and is for whichever consumer the lane has. A
 * connection may bring them at any time; whether they say something is up to the users of it.
 */

/* REGION: where the data of the message is, to be fetched by a remote read. */
struct vb_msg_region {
	uint64_t offset;             /* bytes in it */
	uint32_t handle, generation; /* of VB_CTRL_REGION */
	uint32_t length;
	uint32_t reserved;
};

/* -- control messages: VB_CONTROL -- */

enum vb_ctrl_kind {
	VB_CTRL_USER = 1, /* send_ctrl: the user's bytes */
	VB_CTRL_CONSUMER, /* a consumer came or went */
	VB_CTRL_REGION,   /* a region that the peer may use */
	VB_CTRL_REVOKE,   /* it is wanted back */
	VB_CTRL_RELEASED, /* it is not used any more */
	VB_CTRL_OPEN,     /* to the side that connects: make this queue pair */
	VB_CTRL_BYE,      /* the end, by intent */
};

struct vb_ctrl {
	uint8_t kind; /* enum vb_ctrl_kind */
	uint8_t reserved;
	uint16_t length;  /* bytes that follow */
	uint32_t allowed; /* as struct vb_credit */
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
	/* where its owner takes VB_DIRECT, and what is said there; family 0: nowhere */
	uint64_t session, secret;
	uint16_t direct; /* it is not the peer's own: reach it in that way */
	uint16_t port;
	uint16_t family; /* AF_INET, AF_INET6, as Linux numbers them */
	uint16_t reserved;
	uint8_t address[16];
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
_Static_assert(sizeof(struct vb_refusal) == 144, "private data of a rejection");
_Static_assert(sizeof(struct vb_msg) == 64, "a cache line");
_Static_assert(sizeof(struct vb_ctrl) == 8, "control header");

#endif
