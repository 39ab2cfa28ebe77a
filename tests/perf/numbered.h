/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * numbered.h - messages whose words all depend on the number of the message; if the attribute
 * `inlined` is set, messages have data before the number. The receiver checks each message and ends
 * the program if a message is damaged.
 */
#ifndef PERF_NUMBERED_H
#define PERF_NUMBERED_H

#include "perf/limits/common.h"
#include "perf/peer.h"

#define MAX_INLINE 1024

__attribute__((noreturn)) void wrong(uint64_t seq, const char *what);
/* Pause after an empty poll. */
void wait_a_little(struct peer *p);
/* Repeat a send that returned rc until the queue accepts the message. data: NULL: sends `word`. */
void send_later(struct peer *p, uint64_t seq, const struct gantry_send *data, uint32_t flags,
		int rc);
/* Send the number, preceded by data. Called if the attribute `inlined` is set. */
void send_inlined(struct peer *p, uint64_t seq, uint32_t flags);
/*
 * Replace two words of the message by the offset and the length of data in the exported region.
 * Called if the attribute `posted` is set.
 */
void refer(struct peer *p, uint64_t seq);

static inline void send_word(struct peer *p, uint64_t seq, uint32_t flags)
{
	int rc = p->ops->send(p->producer, p->word, sizeof(p->word), flags);

	if (rc)
		send_later(p, seq, NULL, flags, rc);
}

/* Inline, because a function call would be a considerable part of the cost of a message. */
static inline void send_message(struct peer *p, uint64_t seq, uint32_t flags)
{
	if (p->attr->inlined) {
		send_inlined(p, seq, flags);
		return;
	}
	fill_words(p->word, seq);
	if (p->attr->posted)
		refer(p, seq);
	send_word(p, seq, flags);
}

/* Take up to max messages, and post their receives again. Returns the number of messages. */
int poll_some(struct peer *p, struct gantry_msg *msgs, uint32_t max);
/* Wait for the next message, which the caller answers. */
void await(struct peer *p, struct gantry_msg *msg);
/* Check a message, and return its number. */
uint64_t number(const struct peer *p, const struct gantry_msg *msg);
/*
 * For the attribute `posted`: write_data() computes each word of the region from the number;
 * check_sum() adds up the region of the peer and checks the sum.
 */
void write_data(struct peer *p, uint64_t seq);
void check_sum(const struct peer *p, uint64_t seq);
/* Wait for the next message, which must have this number. */
void expect(struct peer *p, uint64_t seq);

#endif
