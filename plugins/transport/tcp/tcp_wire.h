/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_wire.h - the protocol between the two ends of a connection. Integers are little-endian; the
 * structs are the wire format.
 *
 * A connection has a control socket, and a link, which is a socket of its own, for each pair of
 * lanes that communicate. The client opens the sockets of both kinds; the first bytes on each are
 * its hello. The server sends control messages on the control socket, the first of which is WELCOME
 * or REFUSED, and frames on a link, the first of which is READY. If the ends have a record filter,
 * all control messages after WELCOME are in its records.
 */
#ifndef TCP_WIRE_H
#define TCP_WIRE_H

#include <stdint.h>

#include <gantry/transport.h>

#define TCP_MAGIC 0x50435447u /* "GTCP" */
#define TCP_VERSION 2u
#define TCP_RECORDS 0x100u /* flag in `version`: the end has a record filter */
#define TCP_SECRET 16

enum tcp_hello_kind { TCP_CONTROL = 1, TCP_LINK, TCP_DIRECT };

struct tcp_hello {
	uint32_t magic;
	uint16_t version;
	uint8_t kind; /* enum tcp_hello_kind */
	uint8_t zero;
	uint64_t session;           /* number of the connection, chosen by the client */
	uint8_t secret[TCP_SECRET]; /* LINK: that of WELCOME, or of the record filter */
	/* LINK: lanes of both ends */
	uint16_t connects_lane, listens_lane;
	uint32_t ops; /* LINK: accesses that the sender of this accepts at a time */
	uint8_t reserved[24];
};

/* -- control messages: the header, then `length` bytes -- */

enum tcp_ctrl_kind {
	TCP_CTRL_WELCOME = 1, /* struct tcp_welcome */
	TCP_CTRL_REFUSED,     /* struct tcp_refused, and a text */
	TCP_CTRL_USER,        /* control message of the user */
	TCP_CTRL_CONSUMER,    /* struct tcp_ctrl_consumer: a consumer was created or destroyed */
	TCP_CTRL_REGION,      /* struct tcp_ctrl_region: the sender exports a region */
	TCP_CTRL_REVOKE,      /* struct tcp_name: the sender revokes its region */
	TCP_CTRL_RELEASED,    /* struct tcp_name: the sender has released the receiver's region */
	TCP_CTRL_LINK,        /* struct tcp_ctrl_link: the server asks the client for a link */
	TCP_CTRL_BYE,         /* the sender ends the connection intentionally */
};

struct tcp_ctrl {
	uint8_t kind; /* enum tcp_ctrl_kind */
	uint8_t zero;
	uint16_t length;
};

struct tcp_welcome {
	uint8_t secret[TCP_SECRET]; /* of the session; the client repeats it on each link */
};

#define TCP_REFUSED_TEXT 136

struct tcp_refused {
	uint32_t reason;             /* errno of Linux */
	char text[TCP_REFUSED_TEXT]; /* zero-terminated */
};

struct tcp_ctrl_consumer {
	uint32_t id;
	uint16_t lane;
	uint16_t up;
	uint32_t max_data; /* bytes of data in one message; 0: immediate data only */
};

struct tcp_name { /* of an export */
	uint32_t handle, generation;
};

struct tcp_ctrl_region {
	struct tcp_name name;
	uint64_t length;
	uint32_t rights;
	/*
	 * where a third party can open a DIRECT link to the owner of the memory, with this session
	 * and secret, and the name of the region there; family 0: the owner accepts no such links
	 */
	uint16_t family; /* AF_INET, AF_INET6, as Linux numbers them */
	uint16_t port;
	uint8_t address[16];
	uint64_t session;
	uint8_t secret[TCP_SECRET];
	struct tcp_name owner_name;
	uint32_t third; /* 1: the owner is a third party, for which the sender relays */
	uint32_t zero;
};

struct tcp_ctrl_link {
	uint16_t connects_lane, listens_lane;
};

#define TCP_CTRL_BYTES (sizeof(struct tcp_ctrl) + GANTRY_CTRL_MAX)

/* -- frames of a link: each has 64 bytes; data follows MESSAGE, WRITE and DATA -- */

enum tcp_frame_kind {
	TCP_READY = 1, /* `ops`: the server has accepted the link */
	TCP_OPEN,      /* producer `queue` of the sender sends to `open.consumer` */
	TCP_SHUT,      /* producer `queue` of the sender ends */
	TCP_CREDIT,    /* producer `queue` of the receiver may send up to `credit.allowed` */
	TCP_MESSAGE,   /* of producer `queue`; `length` bytes of data follow */
	TCP_READ,      /* access `op` of the sender: read `length` bytes */
	TCP_WRITE,     /* access `op` of the sender: write the `length` bytes that follow */
	TCP_DATA,      /* the next `length` bytes of the read `op` of the receiver */
	TCP_ACK,       /* the `n` writes of the receiver in `done` have been executed */
	TCP_ASK,       /* producer `queue` of the sender has no credit, and needs some */
	TCP_RECALL,    /* producer `queue` of the receiver gives its credit back: `credit.serial` */
	TCP_RETURN,    /* producer `queue` of the sender has given its credit back */
	TCP_FRAMES
};

#define TCP_ACKS 27 /* writes in one ACK */

struct tcp_access {
	struct tcp_name name;
	uint64_t offset; /* bytes, in the region */
};

struct tcp_acks {
	uint16_t n, done[TCP_ACKS];
};

struct tcp_open {
	uint32_t consumer;
	uint32_t serial; /* of the producer, because `queue` is used again */
};

struct tcp_credit {
	uint32_t allowed;
	uint32_t serial; /* of the producer */
};

struct tcp_frame {
	uint8_t kind;    /* enum tcp_frame_kind */
	uint8_t imm_len; /* MESSAGE: bytes of imm */
	uint16_t queue;  /* producer; READ, WRITE, DATA: `op` */
	uint32_t length; /* bytes of data */
	union {
		uint8_t imm[GANTRY_IMM_MAX];
		struct tcp_access access;
		uint32_t ops;
		struct tcp_open open;
		struct tcp_credit credit;
		struct tcp_acks acks;
	};
};

_Static_assert(sizeof(struct tcp_hello) == 64, "the first bytes of a socket");
_Static_assert(sizeof(struct tcp_frame) == 64, "a cache line");
_Static_assert(sizeof(struct tcp_ctrl) == 4, "control header");

#endif
