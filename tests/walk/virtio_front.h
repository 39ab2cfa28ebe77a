/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio_front.h - a front end of vhost-user-blk with one queue: its messages, memory and ring
 *
 * The guest memory is one memfd with two regions that are adjacent for the guest, and a gap in the
 * memfd. A function that finds something wrong ends the process with exit status 1.
 */
#ifndef VIRTIO_FRONT_H
#define VIRTIO_FRONT_H

#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <gantry/random.h>

#define NUM 64u         /* entries of the ring */
#define HALF (1u << 20) /* bytes of a region */
#define GAP 65536u      /* between the regions, in the memfd */
#define GPA 0x40000000ull
#define MODEL (1u << 20) /* bytes of the volume that are used */
#define SECTOR 512u
#define TIMEOUT_MS 60000
#define NEED_REPLY 8u
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

#define DATA 0x10000u     /* guest memory: first address of data */
#define TABLE 0x8000u     /* of the indirect table */
#define HEADER 0xf000u    /* of the request header; the status byte follows */
#define AVAIL (NUM * 16u) /* ring */
#define USED 0x1000u

enum front_message {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_VRING_ERR = 14,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
	SET_BACKEND_REQ_FD = 21,
	GET_CONFIG = 24,
	GET_INFLIGHT_FD = 31,
	SET_INFLIGHT_FD = 32,
	SET_STATUS = 39,
	GET_STATUS = 40
};

struct region {
	uint64_t gpa, bytes, uva, offset;
};

extern struct gantry_random random_state;
extern const char *path; /* of the socket */
extern int conn, kick, call, err, memory_fd;
extern int inflight_fd;  /* -1: no memory for requests in flight */
extern char *low, *high; /* the regions here */
extern uint32_t blk_size;
extern uint64_t capacity;                /* sectors */
extern uint32_t discard_max, zeroes_max; /* sectors in a request; 0: not offered */
extern unsigned long n_requests, n_reconnects;
extern int uses_events; /* negotiate VIRTIO_RING_F_EVENT_IDX */
extern int uses_packed; /* negotiate VIRTIO_F_RING_PACKED */
extern int is_uml;      /* memory without seals, and a socket for interrupts */

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *fmt, ...);
/* Returns a random number below n. */
uint32_t below(uint32_t n);
void fill_random(uint8_t *to, size_t bytes);
/* Address here of a guest address, which counts from GPA. */
char *at(uint64_t offset);

/* -- messages -- */
void send_raw(const void *bytes, size_t n, const int *fds, unsigned n_fds);
void send_message(uint32_t type, uint32_t flags, const void *payload, uint32_t bytes,
		  const int *fds, unsigned n_fds);
/* Send a message without descriptors. Returns its reply, a number. */
uint64_t ask(uint32_t type, const void *payload, uint32_t bytes);
/* Send a message. Returns the result that REPLY_ACK reports. */
uint64_t tell(uint32_t type, const void *payload, uint32_t bytes, const int *fds, unsigned n_fds);
/* Send a message, which must succeed. */
void must(uint32_t type, const void *payload, uint32_t bytes, const int *fds, unsigned n_fds);
/* Returns the bytes of a reply; 0: the connection has ended. */
uint32_t reply(void *payload, uint32_t most);

/* -- set up -- */
void connect_device(void);
void negotiate(void);
void make_memory(int seals);
/* more: bytes of the file beyond the regions */
void make_large_memory(int seals, uint64_t more);
/* Set blk_size and capacity. */
void read_config(void);
/* Let the device send requests. Returns the descriptor on which they arrive. */
int open_channel(void);
/* Send SET_MEM_TABLE. */
void send_memory(uint32_t flags);
/* Returns the result of SET_MEM_TABLE. */
uint64_t set_memory(void);
/* Send all that a queue needs except the descriptors of kick, call and error, and ENABLE. */
void place_queue(uint32_t base);
void start_queue(uint32_t base);
/* Send a descriptor of the queue. */
void set_fd(uint32_t type, int fd);
void enable_queue(void);
/* Returns the base that the device reports. */
uint32_t stop_queue(void);
void set_up(void);
/* After set_up(): the device keeps its requests in flight in memory of the front end. */
void set_up_inflight(void);
/* Map the memory for requests in flight. */
void *map_inflight(size_t *bytes_p);
/*
 * Let the device create memory for requests in flight of a ring with num entries. Returns its
 * descriptor; -1: the connection has ended.
 */
int ask_inflight(uint16_t num);
/* Send inflight_fd, a descriptor of ask_inflight(). */
void set_inflight(void);
/* The device has ended: connect to the next one, as QEMU does. */
void reconnect(void);

/* -- virtio_ring.c: a split or a packed ring -- */
/* Clear the memory of the ring. */
void reset_ring(void);
/* Returns the base that the device reports when it has returned all, and the front end knows. */
uint32_t ring_base(void);
/* Returns the base that QEMU sends after the device has ended. */
uint32_t stale_base(void);
/*
 * The descriptors of requests, in the format of a split ring. A packed ring gets copies of them,
 * and the first descriptor of a request is its buffer id.
 */
struct vring_desc *descs(void);
/* Write entry i of the indirect table at a guest address. */
void set_entry(uint64_t table, uint32_t i, struct vring_desc d);
/* Parts of a split ring. */
struct vring_avail *avail(void);
struct vring_used *used(void);
/* Descriptor i of a packed ring. */
struct vring_packed_desc *packed(uint16_t i);
/* Flags of a descriptor that is available in the first lap of a packed ring. */
#define PACKED_NEW (1u << VRING_PACKED_DESC_F_AVAIL)
/* Add the request with this first descriptor to the ring; expose() makes it visible. */
void add(uint16_t head);
/* Make requests available. Returns 1 if the device asks for a kick. */
int expose(void);
/* Make a request available. Kick the device if it asks for that. */
void publish(uint16_t head);
/* The same, and an entry that breaks the rules follows the request. */
void publish_half(uint16_t head);
/* Ask for no interrupts. Without event index. */
void want_no_calls(void);
/*
 * Ask for an interrupt when the device has returned `more` requests besides the next one; without
 * event index it always sends one. Returns 1 if it has returned that many already.
 */
int want_call(uint16_t more);
/* Returns 1 if the device asks for a kick at the next entry, with event index. */
int is_asleep(void);
/* Returns 1 if the device has returned a request that the front end has not seen. */
int has_used(void);
/* Returns the next request that the device has returned. */
struct vring_used_elem take_used(void);
/* Returns 1 if the device has returned all requests. */
int all_returned(void);
/* Mark the first n heads, one descriptor each, as in flight, as an ended device leaves them. */
void mark_inflight(uint16_t n);

/* -- virtio_user.c: one request at a time, and a model of the volume -- */
struct piece {
	uint64_t offset; /* in the guest memory */
	uint32_t bytes;
};

/* Wait for the next answer. Returns the entry of the used ring. */
struct vring_used_elem wait_one(void);
/* Wait for the answer to the request in flight. Returns the bytes written. */
uint32_t wait_used(void);
/* Do a request. Returns its status. */
uint8_t request(uint32_t type, uint64_t sector, const struct piece *piece, uint32_t n);
void fill_model(void);
/* Do n random reads and writes, and a flush. */
void use(unsigned n);
void verify_all(void);
void verify(void);
/* Discard a range, or write zeroes to it. Returns the status. */
uint8_t segment(uint32_t type, uint64_t sector, uint32_t sectors, uint32_t flags);

/* -- commands of other files -- */
/* Run many requests at a time until the file `until` exists. */
void many(const char *until);
/* Submit as many requests as fit; when the device disconnects, it must have returned all. */
void drain(const char *begun);
/* Stop the process of the target again and again while requests are in flight. */
void stall(pid_t target);
void descriptors(void);
void large(void);
void short_memory(void);
/* The file `begun` says when the size of the volume can change. */
void resize(const char *begun);
void huge(void);
void late_call(void);
void blocking(void);
void lost_ring(void);
void gone(void);
void half_broken(void);
void events(void);
void left_over(void);
void inflight_again(void);
void lost_request(void);
void lost_writes(const char *begun);
void new_size(const char *begun);
void hostile(void);
void hostile_packed(void);
void segments(void);
void status(void);
void messages(void);
void memory(void);
/* Add and remove regions of memory. */
void slots(void);
void slots_busy(void);
void slots_waiting(void);
void slots_hostile(void);
void slots_large(void);

#endif
