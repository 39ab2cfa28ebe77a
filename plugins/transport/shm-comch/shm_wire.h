/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_wire.h - frames that the two ends of a connection exchange on the control socket.
 *
 * One frame is one SOCK_SEQPACKET message: a header, a body, and the number of file descriptors
 * that its type requires. Both ends run on one machine, so integers are in its byte order. The
 * receiver checks each frame against one table before it uses any part of it. An invalid frame ends
 * the connection.
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
	COMCH_HELLO = 1, /* the first frame of each end */
	COMCH_BYE,       /* the last frame: the sender has unmapped all memory of the receiver */
	COMCH_DATA,      /* control message of the user */
	COMCH_CONSUMER,  /* the sender has a consumer; fds: credit page, doorbell */
	COMCH_CONSUMER_GONE,
	COMCH_PRODUCER,    /* the sender has a producer for a consumer of the receiver; fd: ring */
	COMCH_PRODUCER_OK, /* the receiver's producer gets its credit in this line */
	COMCH_PRODUCER_GONE,
	COMCH_REGION,    /* the sender exports a region; fds: its memory, or that and hold_socket */
	COMCH_REGION_OK, /* the sender has accepted the receiver's region */
	COMCH_REVOKE,    /* the sender revokes its region */
	COMCH_RELEASED,  /* the sender has released the receiver's region */
	/* from a listener, instead of HELLO or before BYE: why it ends the connection */
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

/* the sender is registered for membarrier(2), and calls it before it sleeps */
#define COMCH_F_MEMBARRIER 0x1u

struct comch_hello {
	uint32_t features; /* COMCH_F_* */
	/*
	 * Limit of the bytes exported to the sender, in units of COMCH_ROOM, rounded up. 0:
	 * unknown; COMCH_ROOM_ANY: that number of units, or more.
	 */
	uint32_t room;
};

#define COMCH_ROOM 4096ull /* bytes */
#define COMCH_ROOM_ANY UINT32_MAX

#define COMCH_REASON_BUSY 1u     /* the client may retry */
#define COMCH_REASON_ACCESS 2u   /* the user is not permitted to connect */
#define COMCH_REASON_PROTOCOL 3u /* the client violated the protocol */
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
	uint32_t slots; /* number of slots in the ring: a power of two */
	uint32_t zero;
};

struct comch_producer_ok {
	uint32_t id;
	uint32_t line; /* line of the credit page; COMCH_NO_LINE: the page is full */
};

#define COMCH_NO_LINE UINT32_MAX

struct comch_region_up {
	uint32_t ref; /* slot in the exporter's table and generation: COMCH_REF */
	uint32_t handle;
	uint64_t length;
	uint64_t fd_offset;
	uint32_t rights;
	uint32_t zero;
};

struct comch_id {
	uint32_t id; /* id of a consumer or producer, or ref of a region */
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

/* Reference of a region: slot in the low bits; above them a generation that only increases. */
#define COMCH_REGIONS 64u
#define COMCH_REF(slot, generation) ((generation)*COMCH_REGIONS + (slot))
#define COMCH_REF_SLOT(ref) ((ref) % COMCH_REGIONS)
#define COMCH_REF_GENERATION(ref) ((ref) / COMCH_REGIONS)

/* Phases of a connection, in which frames are permitted. */
#define COMCH_P_HELLO 0x1u /* this end waits for the HELLO of the peer */
#define COMCH_P_OPEN 0x2u

/*
 * comch_frame_check - check a received frame before its body is used
 *
 *     frame    private copy of the frame
 *     len      bytes received
 *     n_fds    descriptors received with it
 *     phase    COMCH_P_*: phase of the connection
 *
 * Returns NULL, or the reason why the frame is invalid, for the log. Thread: any.
 */
const char *comch_frame_check(const struct comch_frame *frame, size_t len, unsigned int n_fds,
			      unsigned int phase);

/*
 * comch_frame_init - fill the header of a frame with `bytes` of body. Clears the body if it is
 * shorter than 64 bytes.
 */
void comch_frame_init(struct comch_frame *frame, enum comch_type type, uint32_t bytes);

#endif
