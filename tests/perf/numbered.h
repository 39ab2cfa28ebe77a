/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * numbered.h - messages that carry their number in each of their words, or with `inlined` data in
 * front of it, and are checked at the other end. What is damaged ends the program.
 */
#ifndef PERF_NUMBERED_H
#define PERF_NUMBERED_H

#include "perf/limits/common.h"
#include "perf/peer.h"

#define MAX_INLINE 1024

__attribute__((noreturn)) void wrong(uint64_t seq, const char *what);
/* One poll found nothing. */
void wait_a_little(struct peer *p);
/* `send` returned rc: wait until the queue can take the message. */
void send_later(struct peer *p, uint64_t seq, const struct gantry_send *send, uint32_t flags,
		int rc);
/* With `inlined`: the number, and data in front of it. */
void send_inlined(struct peer *p, uint64_t seq, uint32_t flags);
/* With `posted`: offset and length in the exported region take the place of two of the words. */
void refer(struct peer *p, uint64_t seq);

static inline void send_now(struct peer *p, uint64_t seq, const struct gantry_send *send,
			    uint32_t flags)
{
	int rc = p->ops->send(p->producer, send, flags);

	if (rc)
		send_later(p, seq, send, flags, rc);
}

/* Here, because a message takes no longer than a few calls of functions do. */
static inline void send_message(struct peer *p, uint64_t seq, uint32_t flags)
{
	if (p->attr->inlined) {
		send_inlined(p, seq, flags);
		return;
	}
	fill_words(p->word, seq);
	if (p->attr->posted)
		refer(p, seq);
	send_now(p, seq, &p->send, flags);
}

/* Up to max messages; their receives are posted again. */
int poll_some(struct peer *p, struct gantry_msg *msgs, uint32_t max);
/* The next message, which will be answered. */
void await(struct peer *p, struct gantry_msg *msg);
/* The number of a message that is whole. */
uint64_t number(const struct peer *p, const struct gantry_msg *msg);
/*
 * With `posted`: fill the region, each word of it from the number; sum up the region of the peer,
 * which must be that.
 */
void write_data(struct peer *p, uint64_t seq);
void check_sum(const struct peer *p, uint64_t seq);
/* The next message must have this number. */
void expect(struct peer *p, uint64_t seq);

#endif
