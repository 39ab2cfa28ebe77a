/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h - two ends of a transport for the conformance suite: `a` connects, `b` listens.
 *
 * The cases use nothing but struct gantry_transport_ops, so they hold for every transport. A driver says which plugin,
 * its settings, and which cases do not apply.
 *
 * After each case everything is closed, and the process must have as many open descriptors as before.
 */
#ifndef CONFORM_RIG_H
#define CONFORM_RIG_H

#include <errno.h>
#include <string.h>

#include <gantry/transport.h>

#include "fake/host.h"
#include "unity.h"

struct rig_driver {
	const char *plugin;
	const char *setting[4]; /* "name=value", up to a NULL; three where a test adds one */
	int one_device;         /* both ends must be of one device */
	const char *const *exclude; /* names of cases, up to a NULL; each with its reason beside it */
};

/* In the driver. */
extern const struct rig_driver rig_driver;

#define RIG_MSGS 64

struct rig_end {
	struct fake_host host;
	void *conf, *dev, *listener, *conn;
	struct gantry_peer peer;
	int refuse; /* what accept answers */
	int n_accept, n_connected, n_closed, n_msgs, n_up, n_down, n_revoke, n_revoked;
	int reason, revoked_rc;
	uint32_t up[RIG_MSGS], down, revoke, revoked;
	uint8_t msg[GANTRY_CTRL_MAX]; /* the last one */
	size_t msg_len;
	uint32_t msg_seq; /* messages that begin with their number, in order */
	int out_of_order;
	int disconnect_on_close; /* in the callback itself */
};

struct rig {
	const struct gantry_transport_ops *ops;
	struct rig_end a, b;
	struct gantry_device_info info;
	int n_fds;
};

extern struct rig rig;

/* A queue: consumer at one end, producer at the other. */
struct rig_queue {
	uint32_t id;
	void *rx, *tx;
};

/* Memory that can be exported. */
struct rig_memory {
	struct gantry_region region;
	uint8_t *bytes;
};

int rig_fds(void);
/* Open one device, with the settings of the driver and one more, or NULL. */
void rig_open_end(struct rig_end *end, const char *setting);
/* Open the devices; connect them under the name "vol". */
void rig_open(void);
void rig_connect(void);
void rig_close(void);
void rig_disconnect(struct rig_end *end);
void rig_listen(const char *service);
void rig_start_connect(const char *service);
/* Progress of both ends until *what >= n; fails after ten seconds. */
void rig_until_at(const int *what, int n, const char *file, int line);
#define rig_until(what, n) rig_until_at(&(what), n, __FILE__, __LINE__)
/* Progress until there is nothing to do. */
void rig_settle(void);

void rig_queue_open(struct rig_queue *q, struct rig_end *rx, struct rig_end *tx, uint32_t depth, uint32_t max_data);
void rig_queue_close(struct rig_queue *q);
/* Send, again while it says -EAGAIN. */
int rig_send(struct rig_queue *q, const struct gantry_send *send);
int rig_send_imm(struct rig_queue *q, uint64_t value);
/* Take exactly one message. */
void rig_take(struct rig_queue *q, struct gantry_msg *msg);
/* Post receives, a buffer each or none. */
int rig_post(struct rig_queue *q, void *buf, uint32_t length, uint64_t cookie);

void rig_memory_open(struct rig_memory *m, uint64_t bytes, uint32_t rights);
void rig_memory_close(struct rig_memory *m);
/* Bytes that differ at every place and with every seed. */
void rig_fill(uint8_t *p, size_t n, uint32_t seed);
int rig_filled(const uint8_t *p, size_t n, uint32_t seed);

/* Run a case unless the driver excludes it. */
int rig_applies(const char *name);
#define RIG_CASE(f)                                                                                                     \
	do {                                                                                                            \
		if (rig_applies(#f))                                                                                    \
			RUN_TEST(f);                                                                                    \
	} while (0)

/* The cases, by file. */
void conn_cases(void);
void queue_cases(void);
void data_cases(void);
void region_cases(void);
void lane_cases(void);

#endif
