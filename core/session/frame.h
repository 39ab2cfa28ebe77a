/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h - the control protocol: frames, their payloads, and the state machine of a session.
 *
 * Integers are little-endian, sizes are fixed. A request has an id. Its answer has the same id, the
 * same type with GN_FRAME_ANSWER, and begins with a verdict. END has no answer. A PING with an even
 * id is answered by a PING with the next id. So each end can have its own heartbeat and match an
 * answer with its PING. VOLUME comes from the server and has no answer.
 *
 *      server state   permitted request                next state
 *      NEW            HELLO                            GREETED
 *      GREETED        QUERY, BYE                       KNOWN, ENDED
 *      KNOWN          EXPORT, UNEXPORT, QUEUES, BYE    KNOWN, KNOWN, QUEUED, ENDED
 *      QUEUED         START, BYE                       RUNNING, ENDED
 *      RUNNING        EXPORT, UNEXPORT, STOP           RUNNING, RUNNING, STOPPED
 *      STOPPED        BYE                              ENDED
 *
 * PING is permitted at any time after HELLO. Any other frame ends the session. UNEXPORT, and EXPORT
 * in state RUNNING, need GN_FEATURE_UNEXPORT.
 */
#ifndef GN_SESSION_FRAME_H
#define GN_SESSION_FRAME_H

#include <gantry/backend.h>
#include <gantry/role.h>
#include <gantry/transport.h>

#include "session/access_list.h"

#include <stddef.h>
#include <stdint.h>

#define GN_FRAME_MAGIC 0x31595247u /* "GRY1" */
#define GN_FRAME_VERSION 3
/*
 * Ids of the frame PING. GN_PING: id of a heartbeat. GN_PING_ECHO: bit of the id that marks an
 * answer. GN_PING_NEXT: difference between the ids of two requests of gn_channel_ask().
 */
#define GN_PING 0
#define GN_PING_ECHO 1u
#define GN_PING_NEXT 2u
#define GN_FRAME_ANSWER 0x8000u
#define GN_FRAME_TEXT 160 /* bytes of text in a verdict */
#define GN_MAX_LANES 64

/* Optional features. A session uses those that both ends support. */
#define GN_FEATURE_CRC 0x1ull /* descriptors carry checksums of the data */
/* a note can answer a read, see io/wire.h */
#define GN_FEATURE_NOTES 0x2ull
/* regions are exported while the session runs, and UNEXPORT ends an export */
#define GN_FEATURE_UNEXPORT 0x4ull
/* descriptors can name a list: GANTRY_IO_LIST */
#define GN_FEATURE_LISTS 0x8ull
/* the server reports that the size of the volume has changed */
#define GN_FEATURE_VOLUME 0x10ull
#define GN_FEATURES \
	(GN_FEATURE_CRC | GN_FEATURE_NOTES | GN_FEATURE_UNEXPORT | GN_FEATURE_LISTS | \
	 GN_FEATURE_VOLUME)

enum gn_frame_type {
	GN_FRAME_HELLO = 1,
	GN_FRAME_QUERY,
	GN_FRAME_EXPORT,
	GN_FRAME_QUEUES,
	GN_FRAME_START,
	GN_FRAME_STOP,
	GN_FRAME_BYE,
	GN_FRAME_PING,
	GN_FRAME_END, /* reason why the server, or a client that aborts, ends the session */
	GN_FRAME_UNEXPORT,
	GN_FRAME_VOLUME, /* the server reports a new size of the volume; in RUNNING only */
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
	uint32_t length; /* bytes after this header */
	uint32_t id;
	uint64_t session;
};

struct gn_hello {
	uint16_t version_min, version_max;
	uint32_t epoch;
	uint64_t features;
	uint32_t lanes, depth, regions, reserved;
	uint8_t uuid[16];  /* UUID of the expected volume; 0: any */
	uint64_t verifier; /* verifier that the client last received for this volume; 0: any */
	/* secret of the session, from the first answer to HELLO; 0: the session is new */
	uint8_t secret[GANTRY_SECRET_BYTES];
	/* from a gateway: identity of the client for which it opens the session; "": none */
	char client[GN_IDENTITY_MAX + 1];
};

struct gn_hello_answer {
	uint16_t version;
	/* limit of the bytes of all regions on the path, see gn_limit_pack(); 0: unknown */
	uint16_t region_limit;
	uint32_t epoch;
	uint64_t features;
	/* secret of the session; a peer that presents it can resume the session */
	uint8_t secret[GANTRY_SECRET_BYTES];
};

struct gn_unexport {
	uint32_t handle; /* region whose export ends */
	uint32_t reserved;
};

struct gn_volume_change {
	uint64_t size; /* bytes, a multiple of the block size, not 0 */
};

struct gn_queues { /* payload of the request QUEUES and of its answer */
	uint32_t n;
	uint32_t depth;
	uint32_t consumer[GN_MAX_LANES]; /* consumer ids of the sender, by lane */
};

/* First part of the payload of an answer or END. */
struct gn_verdict {
	int32_t status; /* 0 or GANTRY_S_* */
	char text[GN_FRAME_TEXT];
};

/* A received frame after gn_frame_parse(). payload points into the message. */
struct gn_parsed {
	struct gn_frame head;
	unsigned type; /* type of the frame without GN_FRAME_ANSWER */
	int answer;
	/* verdict of an answer or END; its text is terminated and escaped */
	struct gn_verdict verdict;
	/* rest of the payload, with the size that the type requires */
	const void *payload;
	size_t payload_len;
};

/*
 * gn_frame_parse - check and parse a message: magic, version, length, type, and the exact size of
 * the payload of that type (0 in an answer that rejects the request).
 *
 * Returns 0 or -EPROTO. Any thread.
 */
int gn_frame_parse(const void *msg, size_t len, struct gn_parsed *parsed);

/*
 * gn_frame_build - write a frame
 *
 * buf      GANTRY_CTRL_MAX bytes
 * verdict  NULL: not an answer
 * Returns the length in bytes. Any thread.
 */
size_t gn_frame_build(void *buf, unsigned type, uint32_t id, uint64_t session,
		      const struct gn_verdict *verdict, const void *payload, size_t payload_len);

/*
 * gn_state_next - returns the state after a request of this type, or -EPROTO if the state does not
 * permit it.
 */
int gn_state_next(enum gn_state state, unsigned type);

/*
 * gn_limit_pack - returns a limit in 16 bits, rounded up by less than 0.2 %: the low 10 bits,
 * shifted left by the high 6 bits
 */
uint16_t gn_limit_pack(uint64_t bytes);
/* gn_limit_unpack - returns the limit; UINT64_MAX: it is unknown. packed: any value */
uint64_t gn_limit_unpack(uint16_t packed);

/* Return the name of a type or a state for messages; never NULL. */
const char *gn_frame_name(unsigned type);
const char *gn_state_name(enum gn_state state);

#endif
