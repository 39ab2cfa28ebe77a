/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost_message.c - checks the messages of a front end. No IO. */
#include "vhost_protocol.h"

#include <string.h>

/* Limits of each request type. A request without a name is not accepted. */
static const struct rule {
	const char *name;
	uint32_t min_size, max_size; /* bytes of the payload */
	uint32_t max_fds;
} rules[VHOST_REQUEST_COUNT] = {
	[VHOST_GET_FEATURES] = {"GET_FEATURES", 0, 0, 0},
	[VHOST_SET_FEATURES] = {"SET_FEATURES", 8, 8, 0},
	[VHOST_SET_OWNER] = {"SET_OWNER", 0, 0, 0},
	[VHOST_RESET_OWNER] = {"RESET_OWNER", 0, 0, 0},
	[VHOST_SET_MEM_TABLE] = {"SET_MEM_TABLE", 8, 8 + VHOST_REGIONS_MAX * 32, VHOST_REGIONS_MAX},
	[VHOST_SET_VRING_NUM] = {"SET_VRING_NUM", 8, 8, 0},
	[VHOST_SET_VRING_ADDR] = {"SET_VRING_ADDR", 40, 40, 0},
	[VHOST_SET_VRING_BASE] = {"SET_VRING_BASE", 8, 8, 0},
	[VHOST_GET_VRING_BASE] = {"GET_VRING_BASE", 8, 8, 0},
	[VHOST_SET_VRING_KICK] = {"SET_VRING_KICK", 8, 8, 1},
	[VHOST_SET_VRING_CALL] = {"SET_VRING_CALL", 8, 8, 1},
	[VHOST_SET_VRING_ERR] = {"SET_VRING_ERR", 8, 8, 1},
	[VHOST_GET_PROTOCOL_FEATURES] = {"GET_PROTOCOL_FEATURES", 0, 0, 0},
	[VHOST_SET_PROTOCOL_FEATURES] = {"SET_PROTOCOL_FEATURES", 8, 8, 0},
	[VHOST_GET_QUEUE_NUM] = {"GET_QUEUE_NUM", 0, 0, 0},
	[VHOST_SET_VRING_ENABLE] = {"SET_VRING_ENABLE", 8, 8, 0},
	[VHOST_SET_BACKEND_REQ_FD] = {"SET_BACKEND_REQ_FD", 0, 0, 1},
	[VHOST_GET_CONFIG] = {"GET_CONFIG", 12, 12 + VHOST_CONFIG_MAX, 0},
	[VHOST_SET_CONFIG] = {"SET_CONFIG", 12, 12 + VHOST_CONFIG_MAX, 0},
	/* QEMU sends the payload with 4 bytes of padding */
	[VHOST_GET_INFLIGHT_FD] = {"GET_INFLIGHT_FD", 20, 24, 0},
	[VHOST_SET_INFLIGHT_FD] = {"SET_INFLIGHT_FD", 20, 24, 1},
	[VHOST_GET_MAX_MEM_SLOTS] = {"GET_MAX_MEM_SLOTS", 0, 0, 0},
	[VHOST_ADD_MEM_REG] = {"ADD_MEM_REG", 40, 40, 1},
	/* a front end can send a descriptor, which is closed and not used */
	[VHOST_REM_MEM_REG] = {"REM_MEM_REG", 40, 40, 1},
	[VHOST_SET_STATUS] = {"SET_STATUS", 8, 8, 0},
	[VHOST_GET_STATUS] = {"GET_STATUS", 0, 0, 0},
};

static const struct rule *rule_of(uint32_t type)
{
	return type < VHOST_REQUEST_COUNT && rules[type].name ? &rules[type] : NULL;
}

const char *vhost_message_name(uint32_t type)
{
	const struct rule *rule = rule_of(type);

	return rule ? rule->name : "unknown request";
}

const char *vhost_message_header(const void *bytes, struct vhost_message *m)
{
	const struct rule *rule;

	memset(m, 0, sizeof(*m));
	memcpy(&m->type, bytes, 4);
	memcpy(&m->flags, (const uint8_t *)bytes + 4, 4);
	memcpy(&m->size, (const uint8_t *)bytes + 8, 4);
	rule = rule_of(m->type);
	if (!rule)
		return "request is not supported";
	if ((m->flags & VHOST_FLAG_VERSION_MASK) != VHOST_FLAG_VERSION)
		return "version of the protocol is not 1";
	if (m->flags & VHOST_FLAG_REPLY)
		return "reply flag is set in a request";
	if (m->size < rule->min_size || m->size > rule->max_size)
		return "size of the payload is wrong";
	return NULL;
}

/* [at, at + bytes) does not wrap around. */
static bool fits(uint64_t at, uint64_t bytes)
{
	return bytes != 0 && at <= UINT64_MAX - bytes;
}

bool vhost_ranges_overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

static bool is_sound(const struct vhost_msg_region *region)
{
	return fits(region->gpa, region->bytes) && fits(region->uva, region->bytes) &&
	       fits(region->offset, region->bytes);
}

/* Each address of the guest and of the front end is in one region at most. */
static const char *check_memory(const struct vhost_message *m)
{
	const uint32_t n = m->payload.memory.count;
	const struct vhost_msg_region *region = m->payload.memory.region;

	/* a front end may send the unused rest of the table, too */
	if (n > VHOST_REGIONS_MAX || m->size < 8 + n * sizeof(*region))
		return "number of regions does not match the size";
	if (m->n_fds != n)
		return "number of descriptors is not that of the regions";
	for (uint32_t i = 0; i < n; i++) {
		const struct vhost_msg_region *a = &region[i];

		if (!is_sound(a))
			return "a region is empty or wraps around";
		for (uint32_t k = 0; k < i; k++)
			if (vhost_ranges_overlap(a->gpa, a->bytes, region[k].gpa,
						 region[k].bytes) ||
			    vhost_ranges_overlap(a->uva, a->bytes, region[k].uva, region[k].bytes))
				return "regions overlap";
	}
	return NULL;
}

static const char *check_slot(const struct vhost_message *m)
{
	if (!is_sound(&m->payload.slot.region))
		return "a region is empty or wraps around";
	return m->type == VHOST_REM_MEM_REG || m->n_fds == 1 ? NULL
							     : "number of descriptors is not 1";
}

static const char *check_config(const struct vhost_message *m)
{
	const uint32_t offset = m->payload.config.offset, bytes = m->payload.config.size;

	if (bytes != m->size - 12 || offset > VHOST_CONFIG_MAX || bytes > VHOST_CONFIG_MAX - offset)
		return "range of the configuration space is wrong";
	return NULL;
}

static const char *check_fd(const struct vhost_message *m)
{
	const uint32_t expected = m->payload.u64 & VHOST_NO_FD ? 0 : 1;

	return m->n_fds == expected ? NULL : "number of descriptors does not match the flag";
}

const char *vhost_message_parse(const struct vhost_message *m)
{
	const struct rule *rule = rule_of(m->type);

	if (!rule || m->size < rule->min_size || m->size > rule->max_size)
		return "request is not supported";
	if (m->n_fds > rule->max_fds)
		return "too many descriptors";
	switch (m->type) {
	case VHOST_SET_MEM_TABLE:
		return check_memory(m);
	case VHOST_ADD_MEM_REG:
	case VHOST_REM_MEM_REG:
		return check_slot(m);
	case VHOST_GET_CONFIG:
	case VHOST_SET_CONFIG:
		return check_config(m);
	case VHOST_SET_INFLIGHT_FD:
	case VHOST_SET_BACKEND_REQ_FD:
		return m->n_fds == 1 ? NULL : "number of descriptors is not 1";
	case VHOST_SET_VRING_KICK:
	case VHOST_SET_VRING_CALL:
	case VHOST_SET_VRING_ERR:
		return check_fd(m);
	default:
		return NULL;
	}
}
