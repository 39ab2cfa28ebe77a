/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile.h - a peer of shm-comch that speaks raw bytes, and the judge of what became of it.
 *
 * The server is end b of the rig. A good client, end a, is connected through the same listener all
 * the time. After each attack the attacker's connection is gone, the server has as many descriptors
 * as before, and the good client's control messages and queue still work.
 */
#ifndef CONFORM_HOSTILE_H
#define CONFORM_HOSTILE_H

#include "../../plugins/transport/shm-comch/ring.h"
#include "../../plugins/transport/shm-comch/wire.h"

#include "conform/rig.h"

/* The attacker's own memory, sealed as it should be unless `seals` says otherwise. */
struct evil_memory {
	int fd;
	void *p;
	size_t bytes;
};

struct evil {
	int fd;     /* of its socket */
	void *conn; /* what the server has for it */
	struct evil_memory ring, page;
};

extern struct evil evil;

/* Send a frame as it is, with descriptors. */
void evil_raw(const void *bytes, size_t len, const int *fds, unsigned int n_fds);
/* A frame with a correct head, and this body. */
void evil_frame(enum comch_type type, const void *body, uint32_t len, const int *fds,
		unsigned int n_fds);
/* The next frame of this type from the server; its descriptors in fds. Others are thrown away. */
void evil_expect(enum comch_type type, struct comch_frame *frame, int *fds);
void evil_memory(struct evil_memory *m, size_t bytes, int seals);
void evil_memory_close(struct evil_memory *m);

void evil_connect(int opened);
/*
 * Run an attack. opened: after HELLO. log: what the server must have said; NULL: it need not end
 * the connection.
 */
void evil_run(void (*attack)(void), int opened, const char *log);

#define ATTACK(name, opened, log) \
	static void name##_attack(void); \
	static void name(void) \
	{ \
		evil_run(name##_attack, opened, log); \
	} \
	static void name##_attack(void)

void frame_attacks(void);
void memory_attacks(void);
void page_attacks(void);
void ring_attacks(void);

#endif
