/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h - the control plane on the wire: frames, their payloads, and which is allowed when.
 *
 * Little-endian, fixed sizes. A request has an id; its answer has the same type with
 * GN_FRAME_ANSWER, the same id, and begins with a status. END has no answer. The answer to a PING
 * with an even id is a PING with the next id. So each end may have its own heartbeat, and can match
 * an answer with its PING.
 *
 *      server state   may be asked                     next state
 *      NEW            HELLO                            GREETED
 *      GREETED        QUERY                            KNOWN
 *      KNOWN          EXPORT (again), QUEUES, BYE      KNOWN, QUEUED, ENDED
 *      QUEUED         START, BYE                       RUNNING, ENDED
 *      RUNNING        STOP                             STOPPED
 *      STOPPED        BYE                              ENDED
 *      BYE also in GREETED. PING may come at any time after HELLO. Everything else ends the
 *      session.
 */
#ifndef GN_SESSION_FRAME_H
#define GN_SESSION_FRAME_H

#include <gantry/backend.h>
#include <gantry/role.h>
#include <gantry/transport.h>

#include <stddef.h>
#include <stdint.h>

#define GN_FRAME_MAGIC 0x31595247u /* "GRY1" */
#define GN_FRAME_VERSION 1
/*
 * ids of PING: of a heartbeat; the bit that marks an answer; the step from one request to the next
 */
#define GN_PING 0
#define GN_PING_ECHO 1u
#define GN_PING_NEXT 2u
#define GN_FRAME_ANSWER 0x8000u
#define GN_FRAME_TEXT 160 /* bytes of text in an answer or an end */
#define GN_MAX_LANES 64

/* What an end can do beyond the version; a session uses what both ends can. */
#define GN_FEATURE_CRC 0x1ull /* checksums of the data travel in descriptors */
/* a read may be answered by a note of its tag, which comes with its data */
#define GN_FEATURE_NOTES 0x2ull
#define GN_FEATURES (GN_FEATURE_CRC | GN_FEATURE_NOTES)

enum gn_frame_type {
	GN_FRAME_HELLO = 1,
	GN_FRAME_QUERY,
	GN_FRAME_EXPORT,
	GN_FRAME_QUEUES,
	GN_FRAME_START,
	GN_FRAME_STOP,
	GN_FRAME_BYE,
	GN_FRAME_PING,
	GN_FRAME_END, /* the server, or a client that gives up, says why it ends the session */
	GN_FRAME_TYPES
};

enum gn_state {
	GN_NEW,
	GN_GREETED,
	GN_KNOWN,
	GN_QUEUED,
	GN_RUNNING,
	GN_STOPPED,
	GN_ENDED,
	GN_STATES
};

struct gn_frame {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t length; /* bytes that follow */
	uint32_t id;
	uint64_t session;
};

struct gn_hello {
	uint16_t version_min, version_max;
	uint32_t epoch;
	uint64_t features;
	uint32_t lanes, depth, regions, reserved;
	uint8_t uuid[16];  /* of the volume to resume on; 0: any */
	uint64_t verifier; /* that the client last received of this volume; 0: any */
	/* as the first answer to HELLO had it; 0: the session is new */
	uint8_t secret[GANTRY_SECRET_BYTES];
};

struct gn_hello_answer {
	uint16_t version;
	uint16_t reserved;
	uint32_t epoch;
	uint64_t features;
	/* of the session; a peer that has it may resume the session */
	uint8_t secret[GANTRY_SECRET_BYTES];
};

struct gn_queues { /* and its answer */
	uint32_t n;
	uint32_t depth;
	uint32_t consumer[GN_MAX_LANES]; /* of the sender, by lane */
};

/* What an answer and an END begin with. */
struct gn_verdict {
	int32_t status; /* 0 or a number of the status table of io.h */
	char text[GN_FRAME_TEXT];
};

/* A frame that was received, checked and taken apart; payload is part of the message. */
struct gn_parsed {
	struct gn_frame head;
	unsigned type; /* without GN_FRAME_ANSWER */
	int answer;
	struct gn_verdict verdict; /* of an answer or an END; text terminated and escaped */
	/* what follows, payload_len bytes, of the size that the type has */
	const void *payload;
	size_t payload_len;
};

/*
 * Take a message apart: magic, version, length, type, and the exact size of the payload of that
 * type (none in an answer that refuses). Pure; any thread. 0 or -EPROTO.
 */
int gn_frame_parse(const void *msg, size_t len, struct gn_parsed *parsed);

/*
 * Write a frame. verdict NULL: not an answer. Returns its length; buf: GANTRY_CTRL_MAX bytes.
 */
size_t gn_frame_build(void *buf, unsigned type, uint32_t id, uint64_t session,
		      const struct gn_verdict *verdict, const void *payload, size_t payload_len);

/* The state after a request of this type in this state; -EPROTO when it is not allowed. */
int gn_state_next(enum gn_state state, unsigned type);

const char *gn_frame_name(unsigned type);
const char *gn_state_name(enum gn_state state);

#endif
