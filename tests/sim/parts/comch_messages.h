/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_messages.h - messages of all forms that a ring of shm-comch can hold; each word identifies
 * its message
 */
#ifndef COMCH_MESSAGES_H
#define COMCH_MESSAGES_H

#include "../../../plugins/transport/shm-comch/shm_comch.h"
#include "part.h"

#define MESSAGE_DATA 160u /* most bytes of a message */

/* Draw the form of message 0; call once for each schedule. */
void message_begin(void);
/* Send message i of a stream, whose words are `word`. Returns the result of comch_send. */
int message_send(struct comch_producer *p, uint32_t i, uint32_t word, uint32_t flags);
/* Check message i of a stream, whose data is in buf. */
void message_check(const struct gantry_msg *m, const uint8_t *buf, uint32_t i, uint32_t word);
bool message_is(const void *bytes, uint32_t n, uint32_t word);

#endif
