/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile.h - a peer of shm-comch that sends raw bytes, and the check of each attack.
 *
 * The server is end b of the rig. A good client, end a, is connected through the same listener all
 * the time. After each attack the connection of the attacker has ended, the server has as many
 * descriptors as before, and the control messages and the queue of the good client still work.
 */
#ifndef CONFORM_HOSTILE_H
#define CONFORM_HOSTILE_H

#include "../../plugins/transport/shm-comch/shm_ring.h"
#include "../../plugins/transport/shm-comch/shm_wire.h"

#include "conform/rig.h"

/* Memory of the attacker. */
struct evil_memory {
	int fd;
	void *p;
	size_t bytes;
};

struct evil {
	int fd;     /* the socket of the attacker */
	void *conn; /* connection of the server to the attacker */
	struct evil_memory ring, page;
};

extern struct evil evil;

/* Send bytes unchanged as one frame, with descriptors. */
void evil_raw(const void *bytes, size_t len, const int *fds, unsigned int n_fds);
/* Send a frame with a correct header, and this body. */
void evil_frame(enum comch_type type, const void *body, uint32_t len, const int *fds,
		unsigned int n_fds);
/* Get the next frame of this type from the server, and its descriptors. Drops other frames. */
void evil_expect(enum comch_type type, struct comch_frame *frame, int *fds);
void evil_memory(struct evil_memory *m, size_t bytes, int seals);
void evil_memory_close(struct evil_memory *m);

void evil_connect(int opened);
/*
 * Run an attack. opened: the attacker has sent a valid HELLO before. log: the server must end the
 * connection with a protocol error, and log this text; NULL: the attacker ends the connection.
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
