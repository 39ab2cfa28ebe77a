/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - copies and checks the lists of peers. */
#include "io/list.h"

#define ENTRY_BYTES ((uint32_t)sizeof(struct gantry_list_entry))

uint32_t gn_list_bytes(const struct gn_io_rules *rules, const struct gantry_io *io)
{
	uint64_t left = rules->regions[io->region]->length - io->region_offset;

	return left < GANTRY_LIST_MAX * ENTRY_BYTES ? (uint32_t)left / ENTRY_BYTES * ENTRY_BYTES
						    : GANTRY_LIST_MAX * ENTRY_BYTES;
}

/* Check an entry and store its piece. */
static enum gantry_status take_entry(const struct gn_io_rules *rules, unsigned opcode,
				     const struct gantry_list_entry *entry, struct iovec *piece)
{
	const uint32_t need = opcode == GANTRY_OP_WRITE ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE;
	const struct gantry_region *region = gn_io_region(rules, entry->region);

	if (entry->length == 0)
		return GANTRY_S_INVALID;
	if (!region || (region->rights & need) == 0)
		return GANTRY_S_ACCESS;
	if (!gantry_range_ok(entry->offset, entry->length, region->length))
		return GANTRY_S_RANGE;
	piece->iov_base = region->addr ? (char *)region->addr + entry->offset : NULL;
	piece->iov_len = entry->length;
	return GANTRY_S_OK;
}

enum gantry_status gn_list_take(const struct gn_io_rules *rules, const struct gantry_io *io,
				const void *from, uint32_t bytes, struct gn_list *list)
{
	const uint32_t n = bytes / ENTRY_BYTES;
	uint64_t left = io->length;

	list->count = list->next = list->moved = 0;
	memcpy(list->entry, from, bytes);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* from here on, only the copy is read */
	for (uint32_t i = 0; i < n; i++) {
		enum gantry_status status = take_entry(rules, io->opcode, &list->entry[i],
						       &list->pieces.piece[i]);

		if (status != GANTRY_S_OK)
			return status;
		if (list->entry[i].length > left)
			return GANTRY_S_INVALID;
		left -= list->entry[i].length;
		if (left == 0) {
			list->count = list->pieces.count = i + 1;
			return GANTRY_S_OK;
		}
	}
	/* the list continues beyond the limit, or beyond the end of its region */
	return n == GANTRY_LIST_MAX ? GANTRY_S_INVALID : GANTRY_S_RANGE;
}

void gn_list_gather(const struct gn_list *list, void *to)
{
	char *at = to;

	for (uint32_t i = 0; i < list->count; at += list->entry[i++].length)
		memcpy(at, list->pieces.piece[i].iov_base, list->entry[i].length);
}

void gn_list_scatter(const struct gn_list *list, const void *from)
{
	const char *at = from;

	for (uint32_t i = 0; i < list->count; at += list->entry[i++].length)
		memcpy(list->pieces.piece[i].iov_base, at, list->entry[i].length);
}

bool gn_list_uses(const struct gn_list *list, uint32_t region)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->entry[i].region == region)
			return true;
	return false;
}
