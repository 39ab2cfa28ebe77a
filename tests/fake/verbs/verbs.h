/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - a fake of libibverbs and librdmacm without a device: a wire in memory connects the
 * queue pairs of one process. A test links it in place of the two libraries:
 *     unit_MODULE_NAME_LDADD = libfakeverbs.la $(LDADD)
 * With -export-dynamic in the LDFLAGS of the test, plugins that it loads use the fake, too.
 *
 *     fake_verbs_reset();                     in setUp: no objects, default settings
 *     ... the code under test, through <infiniband/verbs.h> and <rdma/rdma_cma.h> ...
 *     TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());         in tearDown: returns a text
 *                                                                     with leaks and misuses
 *
 * The fake is as strict as the strictest real device. A queue has exactly the requested size. A
 * slot of a send queue becomes free only when the test polls its completion or a later one. A
 * completion with an error has garbage in the fields that the standard leaves undefined. The call
 * that makes work possible (post_send, post_recv, modify_qp) also executes it: the fake has no
 * thread and no clock, and timeouts occur only in fake_wire_timeout() and fake_cm_timeout(). All
 * functions are thread-safe.
 *
 * Where the real library would block without end (destruction of an object with unacknowledged
 * events), the fake records an error for fake_verbs_check_clean() and returns.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define FAKE_DEVICES 8
#define FAKE_GIDS 4
#define FAKE_ALWAYS (-1)

/* -- the fake as a whole -- */

/*
 * Destroy everything. Then there are two devices, "fake0" at 127.0.0.1 and 10.99.0.1, "fake1" at
 * 127.0.0.2 and 10.99.0.2.
 */
void fake_verbs_reset(void);
/*
 * Restart the numbers of queue pairs and keys of memory regions, as after a reset. None of either
 * may exist.
 */
void fake_verbs_renumber(void);
/*
 * Returns the errors: misuse since the reset, objects that exist, events that were not
 * acknowledged. "": none. The text is valid until the next call.
 */
const char *fake_verbs_check_clean(void);
/* The misuse so far was intended. Returns its count. */
unsigned fake_verbs_forgive(void);

/*
 * Make the nth call from now on (1: the next; FAKE_ALWAYS: every one) of a function fail with err,
 * in the way that the function has: value, errno and -1, errno and NULL; polling gives -err. err 0:
 * no failure any more. Inlines have their own names too: "ibv_post_send", "ibv_poll_cq". A name
 * that is not known is misuse.
 */
void fake_verbs_fail(const char *function, int nth, int err);
/* The same for the nth and all that follow. */
void fake_verbs_fail_from(const char *function, int nth, int err);
/* How often a function was called since the reset, with or without success. */
unsigned fake_verbs_calls(const char *function);

struct fake_counters {
	uint64_t doorbells; /* calls of post_send that posted something */
	uint64_t send_wrs, signalled, inlined;
	uint64_t recv_bells, recv_wrs;
	uint64_t sends, writes, reads; /* executed on the wire, with immediate data or without */
	uint64_t bytes;                /* moved by them */
	uint64_t polls, empty_polls, completions;
	uint64_t arms, cq_events, cq_acks;
	uint64_t cm_events, cm_acks; /* got and acknowledged */
	uint64_t async_events, async_acks;
	uint64_t rnr_naks; /* sends that found no receive, each counted once */
	/* work requests that found the wire cut, or no peer, each counted once */
	uint64_t lost;
	uint64_t overruns; /* completions lost because a queue was full */
};

void fake_verbs_counters(struct fake_counters *counters);

/* -- devices -- */

/*
 * Attributes of a device, which it reports and enforces. A test changes them before the device is
 * used.
 */
struct fake_device {
	char name[IBV_SYSFS_NAME_MAX];
	struct ibv_device_attr attr;
	struct ibv_odp_caps odp_caps;
	struct ibv_port_attr port; /* number 1 */
	struct ibv_gid_entry gids[FAKE_GIDS];
	unsigned n_gids;
	uint32_t max_inline;
	/*
	 * completions of a queue pair vanish when it is destroyed, as with some hardware; else they
	 * stay, as with rxe
	 */
	int cleans_cq;
};

struct fake_device *fake_device(unsigned index);
/* How many devices there are. */
void fake_devices(unsigned n);
/* An IPv4 address ("10.99.0.7") belongs to a device; index -1: to none. */
void fake_address(const char *address, int index);
/* What a memory region may be used for: IBV_ACCESS_*. */
unsigned fake_mr_access(const struct ibv_mr *mr);
/*
 * An event for all contexts of a device: element is the port's number cast, or of the queue pair or
 * CQ that has it.
 */
void fake_async_push(unsigned index, enum ibv_event_type type, void *element);

/* -- the wire -- */

/* Cut the wire: no message or answer arrives; 0: the waiting messages arrive. */
void fake_wire_cut(int on);
/*
 * Let n periods of the retry timers pass. Sends that have used up their retries fail. Returns their
 * number.
 */
unsigned fake_wire_timeout(unsigned n);
/*
 * A send that finds no receive fails at once unless its queue pair retries without limit (7); 0: it
 * waits for a receive or for fake_wire_timeout(). A queue pair that never retries (0) fails at once
 * in any case.
 */
void fake_wire_rnr_at_once(int on);
/* Hold posted work requests; 0: execute them in the order of posting. */
void fake_wire_hold(int on);
/*
 * Execute the oldest held work request, of qp or of all (NULL). Returns 1: done, 0: none can run.
 */
int fake_wire_step(struct ibv_qp *qp);
/*
 * The same for the queue pair of this number, modulo those that have one: between queue pairs any
 * order can be.
 */
int fake_wire_step_any(unsigned number);
/* Number of outstanding work requests, of qp or of all (NULL). */
unsigned fake_wire_waiting(struct ibv_qp *qp);

/* -- connection manager -- */

/*
 * Inject an event for an id, as if the kernel had raised it; no state changes. CONNECT_REQUEST: id
 * listens, and the event has a new id without a peer. Private data is padded with zeros to the size
 * of its message, as with a real one: 56 bytes with CONNECT_REQUEST, 196 with ESTABLISHED, 148 with
 * REJECTED.
 */
void fake_cm_push(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, const void *data,
		  unsigned len);
/* Remove a device: DEVICE_REMOVAL for every id on it, IBV_EVENT_DEVICE_FATAL for every context. */
void fake_device_remove(unsigned index);
/*
 * The connection manager gives up on what the cut wire has lost: UNREACHABLE, or DISCONNECTED with
 * -ETIMEDOUT.
 */
void fake_cm_timeout(void);

#endif
