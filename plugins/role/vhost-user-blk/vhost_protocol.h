/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_protocol.h - messages of the vhost-user protocol, and the state of a device as the messages
 * of its front end set it. No IO.
 *
 *      bytes of the socket --vhost_message_parse()--> message --vhost_device_handle()--> actions
 *
 * Fields of messages are in the byte order of the machine, as the protocol specifies.
 */
#ifndef VHOST_PROTOCOL_H
#define VHOST_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VHOST_HEADER_BYTES 12u
#define VHOST_PAYLOAD_MAX 512u /* no accepted message is longer */
#define VHOST_FDS_MAX 8u
#define VHOST_REGIONS_MAX 8u /* limit of SET_MEM_TABLE */
#define VHOST_SLOTS_MAX 32u  /* regions in use at a time */
#define VHOST_QUEUES_MAX 16u
#define VHOST_RING_MAX 1024u  /* limit of the entries of a ring */
#define VHOST_CONFIG_MAX 256u /* limit of the payload of GET_CONFIG */

#define VHOST_FLAG_VERSION 0x1u
#define VHOST_FLAG_VERSION_MASK 0x3u
#define VHOST_FLAG_REPLY 0x4u
#define VHOST_FLAG_NEED_REPLY 0x8u

#define VHOST_NO_FD 0x100u /* of a vring message: it has no descriptor */

/* feature bits of the protocol; those of virtio come from <linux/virtio_*.h> */
#define VHOST_F_PROTOCOL_FEATURES 30
enum vhost_protocol_feature {
	VHOST_P_MQ = 0,
	VHOST_P_REPLY_ACK = 3,
	VHOST_P_BACKEND_REQ = 5,
	VHOST_P_CONFIG = 9,
	VHOST_P_INFLIGHT = 12,
	VHOST_P_MEM_SLOTS = 15,
	VHOST_P_STATUS = 16
};

/* requests of the front end that the device accepts */
enum vhost_request_type {
	VHOST_GET_FEATURES = 1,
	VHOST_SET_FEATURES = 2,
	VHOST_SET_OWNER = 3,
	VHOST_RESET_OWNER = 4,
	VHOST_SET_MEM_TABLE = 5,
	VHOST_SET_VRING_NUM = 8,
	VHOST_SET_VRING_ADDR = 9,
	VHOST_SET_VRING_BASE = 10,
	VHOST_GET_VRING_BASE = 11,
	VHOST_SET_VRING_KICK = 12,
	VHOST_SET_VRING_CALL = 13,
	VHOST_SET_VRING_ERR = 14,
	VHOST_GET_PROTOCOL_FEATURES = 15,
	VHOST_SET_PROTOCOL_FEATURES = 16,
	VHOST_GET_QUEUE_NUM = 17,
	VHOST_SET_VRING_ENABLE = 18,
	VHOST_SET_BACKEND_REQ_FD = 21,
	VHOST_GET_CONFIG = 24,
	VHOST_SET_CONFIG = 25,
	VHOST_GET_INFLIGHT_FD = 31,
	VHOST_SET_INFLIGHT_FD = 32,
	VHOST_GET_MAX_MEM_SLOTS = 36,
	VHOST_ADD_MEM_REG = 37,
	VHOST_REM_MEM_REG = 38,
	VHOST_SET_STATUS = 39,
	VHOST_GET_STATUS = 40,
	VHOST_REQUEST_COUNT
};

/* request of the device, on the descriptor of VHOST_SET_BACKEND_REQ_FD */
#define VHOST_BACKEND_CONFIG_CHANGE 2u

struct vhost_msg_region {
	uint64_t gpa, bytes, uva; /* guest-physical address, size, address in the front end */
	uint64_t offset;          /* where the region begins in its descriptor */
};

struct vhost_message {
	uint32_t type; /* enum vhost_request_type */
	uint32_t flags, size;
	union {
		uint64_t u64;
		struct {
			uint32_t index, num;
		} state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t count, padding;
			struct vhost_msg_region region[VHOST_REGIONS_MAX];
		} memory;
		struct {
			uint64_t padding;
			struct vhost_msg_region region;
		} slot;
		struct {
			uint32_t offset, size, flags;
			uint8_t data[VHOST_CONFIG_MAX];
		} config;
		struct {
			uint64_t bytes, offset; /* of the memory, in its descriptor */
			uint16_t queues, num;
		} inflight;
		uint8_t bytes[VHOST_PAYLOAD_MAX];
	} payload;
	uint32_t n_fds;
	int fds[VHOST_FDS_MAX]; /* -1: taken by the device */
};

/*
 * vhost_message_header - check a header before the payload is read
 *
 * bytes    VHOST_HEADER_BYTES bytes
 * m        out: type, flags and size; the rest is 0
 * returns  NULL; or the fault as text: close the connection
 * thread   any
 */
const char *vhost_message_header(const void *bytes, struct vhost_message *m);
/*
 * vhost_message_parse - check a message that is complete: payload, size and number of descriptors
 *
 * m        with header, payload.bytes, fds and n_fds
 * returns  NULL; or the fault as text: close the connection
 * thread   any
 */
const char *vhost_message_parse(const struct vhost_message *m);
/* vhost_ranges_overlap - neither range wraps around. Any thread. */
bool vhost_ranges_overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes);
/* vhost_message_name - returns the name of a request as in the specification. Any thread. */
const char *vhost_message_name(uint32_t type);

/* A vring as the front end has set it. */
struct vhost_vring {
	uint32_t num;  /* entries; 0: not set */
	uint32_t base; /* in the encoding of the kind of the ring */
	bool enabled, started;
	uint64_t desc, used, avail; /* addresses in the front end */
	int kick, call, err;        /* descriptors; -1: none */
};

struct vhost_device;

/*
 * Actions of the role, called by the message handlers. Control thread.
 *
 * returns  0
 *          -EINPROGRESS: vhost_device_continue() follows
 *          -EPROTO: the connection ends
 *          another -errno: the message fails
 */
struct vhost_device_ops {
	/* Replace the guest memory by the regions of SET_MEM_TABLE. Takes the descriptors of m. */
	int (*memory)(struct vhost_device *device, struct vhost_message *m);
	/* Add a region to the guest memory. Takes the descriptor of m. */
	int (*region_add)(struct vhost_device *device, struct vhost_message *m);
	/* Remove the region with these addresses and this size; the offset does not matter. */
	int (*region_remove)(struct vhost_device *device, const struct vhost_msg_region *region);
	/*
	 * Check a descriptor for kick, call or error before a vring gets it. Never -EINPROGRESS. If
	 * it fails, the vring keeps its former descriptor.
	 */
	int (*check_eventfd)(struct vhost_device *device, int fd);
	/*
	 * The vring has changed: start or change the queue accordingly. Never -EINPROGRESS. If it
	 * fails, the queue does not run, and the vring becomes stopped.
	 */
	int (*vring)(struct vhost_device *device, uint32_t index);
	/*
	 * Complete the requests of a stopped vring. Afterwards vring.base is the index of the next
	 * available entry.
	 */
	int (*drain)(struct vhost_device *device, uint32_t index);
	/* The same, of all vrings, which are stopped. */
	int (*drain_all)(struct vhost_device *device);
	/*
	 * Create memory for the requests in flight of all queues. *bytes_p: its size. Returns a
	 * descriptor, or -errno.
	 */
	int (*inflight_get)(struct vhost_device *device, uint32_t queues, uint32_t num,
			    uint64_t *bytes_p);
	/* Use the memory of SET_INFLIGHT_FD. Takes the descriptor of m. Never -EINPROGRESS. */
	int (*inflight_set)(struct vhost_device *device, struct vhost_message *m);
	/* Copy bytes of the configuration space, which has VHOST_CONFIG_MAX bytes. */
	void (*config)(struct vhost_device *device, uint32_t offset, void *to, uint32_t bytes);
};

struct vhost_device {
	const struct vhost_device_ops *ops;
	uint64_t offered, features;          /* of virtio; features: what the driver has accepted */
	uint64_t protocol_offered, protocol; /* of vhost-user */
	uint32_t n_queues;
	uint8_t status;               /* VIRTIO_CONFIG_S_*, of SET_STATUS; and NEEDS_RESET */
	uint32_t n_slots;             /* limit of the regions at a time */
	int backend_fd;               /* for requests of the device; -1: none */
	const char *fault;            /* why the last message failed */
	struct vhost_message pending; /* the message that waits for vhost_device_continue() */
	struct vhost_vring vring[VHOST_QUEUES_MAX];
};

/* The answer to a message. */
struct vhost_reply {
	uint32_t bytes; /* 0: none; else the length of `data`, header included */
	int fd;         /* sent with it, and closed by the caller; -1: none */
	/* why the message failed, if the answer reports that; else NULL */
	const char *failure;
	uint8_t data[VHOST_HEADER_BYTES + VHOST_PAYLOAD_MAX];
};

/*
 * vhost_device_init - reset a device when a front end connects. Keeps ops, n_queues, n_slots,
 * offered and protocol_offered.
 */
void vhost_device_init(struct vhost_device *device);
/* vhost_device_fini - close all descriptors of the device. */
void vhost_device_fini(struct vhost_device *device);
/*
 * vhost_device_handle - handle a message that vhost_message_parse() has accepted
 *
 * m        descriptors that the device keeps become -1; the caller closes the rest
 * reply    out: the answer
 * returns  0
 *          -EINPROGRESS: vhost_device_continue() gives the answer; no other message before it
 *          another -errno: protocol error, with device->fault: close the connection
 * thread   control thread
 */
int vhost_device_handle(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply);
/*
 * vhost_device_config_change - make the request that reports a change of the configuration space
 *
 * header  out: VHOST_HEADER_BYTES bytes for backend_fd
 * thread  any
 */
void vhost_device_config_change(void *header);
/*
 * vhost_device_needs_reset - the guest has broken a ring: set DEVICE_NEEDS_RESET in the status, if
 * the front end uses the status
 *
 * returns  true: report a change of the configuration space, because the driver runs
 * thread   control thread
 */
bool vhost_device_needs_reset(struct vhost_device *device);
/* vhost_device_continue - finish the pending message with rc, 0 or -errno. Returns as handle. */
int vhost_device_continue(struct vhost_device *device, int rc, struct vhost_reply *reply);

#endif
