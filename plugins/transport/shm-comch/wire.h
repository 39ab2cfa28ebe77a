/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what the two ends say to each other on the control socket.
 *
 * One frame is one SOCK_SEQPACKET message: a header, a body, and an exact number of file
 * descriptors. Both ends run on one machine, so integers are in its byte order. Whatever the peer
 * sends is checked against one table before any of it is used; a frame that does not fit ends the
 * connection.
 */
#ifndef COMCH_WIRE_H
#define COMCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <gantry/transport.h>

#define COMCH_MAGIC 0x48434d43u /* "CMCH" */
#define COMCH_VERSION 2
#define COMCH_FDS_MAX 2

enum comch_type {
	COMCH_HELLO = 1, /* both ways, first */
	COMCH_BYE,       /* the last: all memory of the receiver has been unmapped */
	COMCH_DATA,      /* a control message of the user */
	COMCH_CONSUMER,  /* I made a consumer; fds: its credit page, its doorbell */
	COMCH_CONSUMER_GONE,
	COMCH_PRODUCER,    /* I made a producer for your consumer; fd: its ring */
	COMCH_PRODUCER_OK, /* your producer finds its credit in this line */
	COMCH_PRODUCER_GONE,
	COMCH_REGION,    /* I export a region; fd: the memory */
	COMCH_REGION_OK, /* your region is mapped here */
	COMCH_REVOKE,    /* give my region back */
	COMCH_RELEASED,  /* your region is unmapped here */
	/* instead of HELLO, or before BYE: the listener ends the connection, for this reason */
	COMCH_REFUSED,
	COMCH_TYPES
};

struct comch_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;   /* enum comch_type */
	uint32_t length; /* bytes of body */
	uint32_t zero;
};

#define COMCH_F_MEMBARRIER 0x1u /* I registered for membarrier(2), and use it before I sleep */

struct comch_hello {
	uint32_t features; /* COMCH_F_* */
	/*
	 * units of COMCH_ROOM that may be exported to me, rounded up; 0: not told; COMCH_ROOM_ANY:
	 * or more
	 */
	uint32_t room;
};

#define COMCH_ROOM 4096ull /* bytes */
#define COMCH_ROOM_ANY UINT32_MAX

#define COMCH_REASON_BUSY 1u     /* the client may try again */
#define COMCH_REASON_ACCESS 2u   /* this user may not connect */
#define COMCH_REASON_PROTOCOL 3u /* the client broke the rules */
#define COMCH_REFUSED_TEXT 120

struct comch_refused {
	uint32_t reason; /* COMCH_REASON_* */
	uint32_t zero;
	char text[COMCH_REFUSED_TEXT]; /* ends with a zero byte */
};

struct comch_consumer_up {
	uint32_t id;
	uint32_t depth;
	uint32_t max_data; /* bytes */
	uint32_t zero;
};

struct comch_producer_up {
	uint32_t id;
	uint32_t consumer;
	uint32_t slots; /* in its ring: a power of two */
	uint32_t zero;
};

struct comch_producer_ok {
	uint32_t id;
	uint32_t line; /* COMCH_NO_LINE: no room for it */
};

#define COMCH_NO_LINE UINT32_MAX

struct comch_region_up {
	uint32_t ref; /* slot in the exporter's table and generation: see COMCH_REF */
	uint32_t handle;
	uint64_t length;
	uint64_t fd_offset;
	uint32_t rights;
	uint32_t zero;
};

struct comch_id {
	uint32_t id; /* of a consumer or producer, or the ref of a region */
	uint32_t zero;
};

struct comch_frame {
	struct comch_head head;
	union {
		struct comch_hello hello;
		struct comch_consumer_up consumer;
		struct comch_producer_up producer;
		struct comch_producer_ok ok;
		struct comch_region_up region;
		struct comch_id id;
		struct comch_refused refused;
		uint8_t data[GANTRY_CTRL_MAX];
	};
};

#define COMCH_FRAME_MIN sizeof(struct comch_head)

/* A region on the wire: slot in the low bits, above them a generation that only grows. */
#define COMCH_REGIONS 64u
#define COMCH_REF(slot, generation) ((generation)*COMCH_REGIONS + (slot))
#define COMCH_REF_SLOT(ref) ((ref) % COMCH_REGIONS)
#define COMCH_REF_GENERATION(ref) ((ref) / COMCH_REGIONS)

/* Phases of a connection, as far as frames are concerned. */
#define COMCH_P_HELLO 0x1u /* the peer's HELLO is awaited */
#define COMCH_P_OPEN 0x2u

/*
 * comch_frame_check - may this frame be looked at?
 *
 * frame    private copy of what arrived; len: bytes that arrived; n_fds: descriptors that came with
 *          it
 * phase    COMCH_P_*: where the connection stands
 * returns  NULL, or what is wrong with it, for the log
 * thread   any
 */
const char *comch_frame_check(const struct comch_frame *frame, size_t len, unsigned int n_fds,
			      unsigned int phase);

/* comch_frame_init - fill the head of a frame with `bytes` of body; clears the start of the body */
void comch_frame_init(struct comch_frame *frame, enum comch_type type, uint32_t bytes);

#endif
