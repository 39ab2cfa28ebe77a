/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder_list.c - requests whose data is in several places (GANTRY_IO_LIST). Lane's thread,
 * except create and destroy.
 *
 *      regions mapped, backend with GANTRY_VOLUME_LISTS   read the list -> submit the pieces
 *      regions mapped, other backend      read the list -> buffer -> gather -> submit -> scatter
 *      regions not mapped                 buffer -> move the list in -> move each piece in
 *                                         -> submit -> move each piece out
 *
 * A write has no scatter and moves nothing out; a read has no gather and moves only the list in. A
 * buffer holds all data of a request, which then reaches the stages without GANTRY_IO_LIST.
 */
#include "transport/responder_priv.h"

#include "transport/bounce.h"

#include <errno.h>
#include <stdlib.h>

int gn_responder_lists_create(struct gn_responder *resp)
{
	struct gn_bounce_attr attr = {
		.ios = resp->ios, .n = resp->attr.depth, .memory = &resp->list_memory};

	if ((resp->rules.volume.flags & GANTRY_VOLUME_LISTS) == 0 || resp->rules.relays)
		return 0;
	resp->lists = calloc(resp->attr.depth, sizeof(*resp->lists));
	if (!resp->lists)
		return -ENOMEM;
	if (resp->attr.rma || resp->attr.takes_lists)
		return 0;
	resp->list_memory = (struct gantry_region){
		.addr = calloc(1, GANTRY_LIST_BYTES), .length = GANTRY_LIST_BYTES, .fd = -1};
	return resp->list_memory.addr ? gn_bounce_create(&attr, &resp->list_bounce) : -ENOMEM;
}

void gn_responder_lists_destroy(struct gn_responder *resp)
{
	gn_bounce_destroy(&resp->list_bounce);
	free(resp->list_memory.addr);
	free(resp->lists);
}

/* Let the data of a request pass through a buffer. */
static void use_buffer(struct gn_responder *resp, struct gantry_io *io)
{
	io->owner_flags |= OWNER_LIST;
	io->flags &= (uint8_t)~GANTRY_IO_LIST;
	if (!resp->bounce) {
		resp->n_bounced++;
		gantry_count(&resp->counts.list_bounces, 1);
		gn_responder_update_fast_path(resp);
	}
	gn_responder_admit(resp, io);
}

void gn_responder_take_list(struct gn_responder *resp, struct gantry_io *io)
{
	const struct gantry_region *region = resp->rules.regions[io->region];
	struct gn_list *list = &resp->lists[io->slot];
	enum gantry_status status = GANTRY_S_OK;

	list->count = list->next = list->moved = 0;
	if (!resp->bounce)
		status = gn_list_take(&resp->rules, io, (char *)region->addr + io->region_offset,
				      gn_list_bytes(&resp->rules, io), list);
	if (status != GANTRY_S_OK) {
		gn_responder_reject(resp, io, status);
	} else if (resp->bounce || resp->list_bounce) {
		use_buffer(resp, io);
	} else {
		io->data = &list->pieces;
		gn_responder_submit(resp, io);
	}
}

void gn_responder_list_attached(struct gn_responder *resp, struct gantry_io *io)
{
	if (resp->bounce) {
		gn_responder_move(resp, io);
		return;
	}
	if (io->opcode == GANTRY_OP_WRITE)
		gn_list_gather(&resp->lists[io->slot], io->data);
	gn_responder_submit(resp, io);
}

int gn_responder_list_move(struct gn_responder *resp, struct gantry_io *io)
{
	struct gantry_region *const *regions = resp->attr.rules->regions;
	const struct gn_list *list = &resp->lists[io->slot];
	const struct gantry_list_entry *entry = &list->entry[list->next];
	struct gn_bounce_part part = {.at = list->moved};

	if (list->count == 0) {
		if (!resp->rules.regions[io->region])
			return -EACCES;
		part.length = gn_list_bytes(&resp->rules, io);
		part.offset = io->region_offset;
		return gn_bounce_move_part(resp->bounce, io, regions[io->region], GANTRY_RMA_READ,
					   &part);
	}
	part.length = entry->length;
	part.offset = entry->offset;
	return gn_bounce_move_part(
		resp->bounce, io, regions[entry->region],
		io->opcode == GANTRY_OP_WRITE ? GANTRY_RMA_READ : GANTRY_RMA_WRITE, &part);
}

/* The list of a request is in its buffer. */
static void list_arrived(struct gn_responder *resp, struct gantry_io *io)
{
	enum gantry_status status = GANTRY_S_ACCESS;

	if (resp->rules.regions[io->region])
		status = gn_list_take(&resp->rules, io, io->data, gn_list_bytes(&resp->rules, io),
				      &resp->lists[io->slot]);
	if (status != GANTRY_S_OK)
		gn_responder_reject(resp, io, status);
	else if (io->opcode == GANTRY_OP_WRITE)
		gn_responder_move(resp, io);
	else
		gn_responder_move_ended(resp, io, 0);
}

void gn_responder_list_moved(struct gn_responder *resp, struct gantry_io *io, int status)
{
	struct gn_list *list = &resp->lists[io->slot];

	if (status != 0) {
		gn_responder_move_ended(resp, io, status);
	} else if (list->count == 0) {
		list_arrived(resp, io);
	} else {
		list->moved += list->entry[list->next++].length;
		if (list->next < list->count)
			gn_responder_move(resp, io);
		else
			gn_responder_move_ended(resp, io, 0);
	}
}

void gn_responder_list_detach(struct gn_responder *resp, struct gantry_io *io)
{
	io->owner_flags &= (uint8_t)~OWNER_LIST;
	if (resp->bounce)
		return;
	gn_bounce_detach(resp->list_bounce, io);
	resp->n_bounced--;
	gn_responder_update_fast_path(resp);
}
