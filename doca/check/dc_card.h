/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_card.h - limits of a card, in place of those of the library below */
#ifndef DC_CARD_H
#define DC_CARD_H

#include <stdint.h>

struct dc_call;

/* Reduce the value of a capability, named by its function, to the limit of the card. */
uint64_t dc_card_limit(uint16_t capability, uint64_t value);
/* A call goes beyond a limit: it fails if the user has named a card, as it does on the card. */
void dc_card_refuse(struct dc_call *call);
/* Report that a call goes beyond a limit. */
#define DC_EXCEEDS(call, rule, ...) (DC_BREAKS(call, rule, __VA_ARGS__), dc_card_refuse(call))
/* Reduce the value that a capability function has stored. */
void dc_card_after(struct dc_call *call);

#endif
