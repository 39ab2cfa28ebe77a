/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "fault.h"

void fault_hold_add(struct fault_hold *hold, struct fault_record *record, uint64_t due_ns)
{
	struct fault_record *before = hold->last;

	record->due_ns = due_ns;
	while (before && before->due_ns > due_ns)
		before = before->prev;
	record->prev = before;
	record->next = before ? before->next : hold->first;
	if (record->next)
		record->next->prev = record;
	else
		hold->last = record;
	if (before)
		before->next = record;
	else
		hold->first = record;
	hold->n++;
}

void fault_hold_remove(struct fault_hold *hold, struct fault_record *record)
{
	if (record->prev)
		record->prev->next = record->next;
	else
		hold->first = record->next;
	if (record->next)
		record->next->prev = record->prev;
	else
		hold->last = record->prev;
	record->next = record->prev = NULL;
	hold->n--;
}
