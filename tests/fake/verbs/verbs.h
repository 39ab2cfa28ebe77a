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

/* -- all devices -- */

/*
 * Destroy all objects, and create two devices: "fake0" at 127.0.0.1 and 10.99.0.1, "fake1" at
 * 127.0.0.2 and 10.99.0.2.
 */
void fake_verbs_reset(void);
/*
 * Restart the numbers of queue pairs and the keys of memory regions, as a reset does. No queue pair
 * and no memory region must exist.
 */
void fake_verbs_renumber(void);
/*
 * Returns a list of errors: misuse since the reset, objects that still exist, events that were not
 * acknowledged. "" if there are none. The text is valid until the next call.
 */
const char *fake_verbs_check_clean(void);
/* Forget the misuses recorded so far, which the test intended. Returns their number. */
unsigned fake_verbs_forgive(void);

/*
 * Make the nth call from now on (1: the next; FAKE_ALWAYS: every one) of a function fail with err,
 * as that function reports errors: by its value, by errno and -1, or by errno and NULL; ibv_poll_cq
 * returns -err. err 0: stop the failures. Inline functions can be named too: "ibv_post_send",
 * "ibv_poll_cq". An unknown name is misuse.
 */
void fake_verbs_fail(const char *function, int nth, int err);
/* Make the nth call from now on and all later calls of a function fail with err. */
void fake_verbs_fail_from(const char *function, int nth, int err);
/* Returns how often a function was called since the reset, failed calls included. */
unsigned fake_verbs_calls(const char *function);

struct fake_counters {
	uint64_t doorbells; /* calls of post_send that posted something */
	uint64_t send_wrs, signalled, inlined;
	uint64_t recv_bells, recv_wrs;
	uint64_t sends, writes, reads; /* executed, with or without immediate data */
	uint64_t bytes;                /* moved by sends, writes and reads */
	uint64_t polls, empty_polls, completions;
	uint64_t arms, cq_events, cq_acks;
	uint64_t cm_events, cm_acks; /* events received, and acknowledged */
	uint64_t async_events, async_acks;
	uint64_t rnr_naks; /* sends that found no receive, each counted once */
	/* work requests that found the wire cut, or no peer, each counted once */
	uint64_t lost;
	uint64_t overruns; /* completions lost because a queue was full */
};

void fake_verbs_counters(struct fake_counters *counters);

/* -- devices -- */

/*
 * Attributes that a device reports and enforces. A test must not change them after the first use of
 * the device.
 */
struct fake_device {
	char name[IBV_SYSFS_NAME_MAX];
	struct ibv_device_attr attr;
	struct ibv_odp_caps odp_caps;
	struct ibv_port_attr port; /* the only port: number 1 */
	struct ibv_gid_entry gids[FAKE_GIDS];
	unsigned n_gids;
	uint32_t max_inline;
	/*
	 * completions of a queue pair vanish when it is destroyed, as with some hardware; if 0 they
	 * stay, as with rxe
	 */
	int cleans_cq;
};

struct fake_device *fake_device(unsigned index);
/* Set the number of devices. */
void fake_devices(unsigned n);
/* Assign an IPv4 address ("10.99.0.7") to a device; index -1: to no device. */
void fake_address(const char *address, int index);
/* Returns the access flags of a memory region: IBV_ACCESS_*. */
unsigned fake_mr_access(const struct ibv_mr *mr);
/*
 * Queue an asynchronous event. element: the queue pair or CQ of the event, whose context gets it;
 * or the port number cast to a pointer, and all contexts of the device get the event.
 */
void fake_async_push(unsigned index, enum ibv_event_type type, void *element);

/* -- the wire -- */

/* Cut the wire: messages wait, and are not answered. on 0: repair it, and deliver them. */
void fake_wire_cut(int on);
/*
 * Let n periods of the retry timers pass. Sends without retries left fail. Returns how many sends
 * failed.
 */
unsigned fake_wire_timeout(unsigned n);
/*
 * on 1: a send that finds no receive fails immediately, unless its queue pair retries without limit
 * (rnr_retry 7). on 0: the send waits for a receive or for fake_wire_timeout(). With rnr_retry 0 it
 * always fails immediately.
 */
void fake_wire_rnr_at_once(int on);
/* on 1: hold posted work requests. on 0: execute them, in the order of posting. */
void fake_wire_hold(int on);
/*
 * Execute the oldest held work request of qp, or of all queue pairs if qp is NULL. Returns 0 if no
 * request can run, else 1.
 */
int fake_wire_step(struct ibv_qp *qp);
/*
 * Execute a held work request of one of the n queue pairs that have any: the one with index
 * `number` modulo n. So a test can choose any order between queue pairs.
 */
int fake_wire_step_any(unsigned number);
/* Returns the number of outstanding work requests of qp, or of all queue pairs if qp is NULL. */
unsigned fake_wire_waiting(struct ibv_qp *qp);

/* -- connection manager -- */

/*
 * Inject an event for an id, as if the kernel had raised it; no state changes. For CONNECT_REQUEST,
 * id must listen, and the event has a new id without a peer. As with a real device, private data is
 * padded with zeros to the size of its message: 56 bytes with CONNECT_REQUEST, 196 with
 * ESTABLISHED, 148 with REJECTED.
 */
void fake_cm_push(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, const void *data,
		  unsigned len);
/*
 * Call `see` for the private data of each request and reply from now on. It can change the bytes,
 * and must call no function of the libraries. NULL: no longer. fake_verbs_reset() sets NULL.
 */
void fake_cm_spy(void (*see)(uint8_t *data, unsigned len));
/* Remove a device: every id on it gets DEVICE_REMOVAL, every context IBV_EVENT_DEVICE_FATAL. */
void fake_device_remove(unsigned index);
/*
 * The connection manager no longer repeats the messages that the cut wire lost, and raises
 * UNREACHABLE (connecting) or DISCONNECTED with -ETIMEDOUT (disconnecting).
 */
void fake_cm_timeout(void);

#endif
