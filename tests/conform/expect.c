/* SPDX-License-Identifier: BSD-3-Clause */
/* expect.c - the rig: what a device has, assertions in words, and hints for waits that time out. */
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "conform/rig.h"
#include "loader/loader.h"

static char text[1400]; /* of the failure or skip; it must outlive the case */

void rig_fail_at(const char *file, int line, const char *fmt, ...)
{
	int n = snprintf(text, sizeof(text), "%s:%d: ", file, line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	TEST_FAIL_MESSAGE(text);
	__builtin_unreachable();
}

void rig_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	TEST_IGNORE_MESSAGE(text);
	__builtin_unreachable();
}

/* -- what a device has -- */

/* Returns whether the plugin itself has a function in this slot: the loader fills the others. */
static int has_slot(size_t offset)
{
	const struct gantry_plugin *plugin = fake_plugin(rig_driver.plugin);
	void *fn = NULL;

	if (plugin->ops_size >= offset + sizeof(fn))
		memcpy(&fn, (const char *)plugin->ops + offset, sizeof(fn));
	return fn != NULL;
}

static const struct {
	uint32_t cap; /* 0: another property decides */
	const char *lacks;
} needs[] = {
	[RIG_MAPPED] = {GANTRY_CAP_MAPPED, "mapped regions (info.caps lacks GANTRY_CAP_MAPPED)"},
	[RIG_RMA] = {GANTRY_CAP_RMA, "remote read and write (info.caps lacks GANTRY_CAP_RMA)"},
	[RIG_WRITE_IMM] = {GANTRY_CAP_WRITE_IMM,
			   "remote write with immediate data (info.caps lacks "
			   "GANTRY_CAP_WRITE_IMM)"},
	[RIG_PINS] = {GANTRY_CAP_PINS, "memory to register (info.caps lacks GANTRY_CAP_PINS)"},
	[RIG_INLINE_DATA] = {0, "data inside queue entries (info.max_inline is 0)"},
	[RIG_DATA] = {0, "data queues (member `data` is NULL)"},
	[RIG_SLEEP] = {0,
		       "consumers that wake a lane (slots consumer_arm and consumer_fd are NULL)"},
	[RIG_NETWORK] = {0, "peers on other machines (flags of the transport)"},
};

int rig_has(enum rig_need need)
{
	switch (need) {
	case RIG_INLINE_DATA:
		return rig.ops->data && rig.info.max_inline > 0;
	case RIG_DATA:
		return rig.ops->data != NULL;
	case RIG_SLEEP:
		return has_slot(offsetof(struct gantry_transport_ops, consumer_fd));
	case RIG_NETWORK:
		return gn_transport_is_network(rig.ops);
	default:
		return (rig.info.caps & needs[need].cap) != 0;
	}
}

void rig_need(enum rig_need need)
{
	if (!rig_has(need))
		rig_skip("skipped: the device has no %s", needs[need].lacks);
}

/* -- assertions -- */

/* Returns "-ENOENT", or the number. */
static const char *rc_name(int64_t rc, char *buf, size_t size)
{
	const char *name = rc < 0 && rc > -4096 ? strerrorname_np((int)-rc) : NULL;

	if (name)
		snprintf(buf, size, "-%s", name);
	else
		snprintf(buf, size, "%lld", (long long)rc);
	return buf;
}

/* The words of RIG_OK are the text of the call. Name the slot that the call of the rig uses. */
static const char *in_words(const char *what, char *buf, size_t size)
{
	static const char *const calls[][2] = {
		{"rig.ops->", ""},
		{"rig_ctrl(", "send_ctrl("},
		{"rig_send(", "send("},
		{"rig_send_imm(", "send("},
		{"rig_send_data(", "data->send("},
		{"rig_post_data(", "data->post_recv("},
		{"rig_rma_submit(", "rma_submit("},
		{"rig_rma(", "rma_submit("},
		{"rig_rma_move(", "rma_submit and rma_poll("},
		{"rig_rma_status(", "status of rma_poll("},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strncmp(what, calls[i][0], strlen(calls[i][0])) == 0) {
			snprintf(buf, size, "%s%s", calls[i][1], what + strlen(calls[i][0]));
			return buf;
		}
	return what;
}

void rig_rc_at(int64_t want, int64_t got, const char *what, const char *file, int line)
{
	char words[400], a[32], b[32];

	if (want != got)
		rig_fail_at(file, line, "%s: expected %s, got %s",
			    in_words(what, words, sizeof(words)), rc_name(want, a, sizeof(a)),
			    rc_name(got, b, sizeof(b)));
}

void rig_num_at(uint64_t want, uint64_t got, const char *what, const char *file, int line)
{
	if (want != got)
		rig_fail_at(file, line, "%s: expected %llu, got %llu", what,
			    (unsigned long long)want, (unsigned long long)got);
}

void rig_same_at(const void *want, const void *got, size_t n, const char *what, const char *file,
		 int line)
{
	const uint8_t *p = want, *q = got;

	for (size_t i = 0; i < n; i++)
		if (p[i] != q[i])
			rig_fail_at(file, line,
				    "%s: expected 0x%02x in byte %zu of %zu, got 0x%02x", what,
				    p[i], i, n, q[i]);
}

/* -- waits that time out -- */

/* The counters of struct rig_end: the event that each counts, and the cause of the event. */
static const struct {
	size_t offset;
	const char *event, *cause;
} events[] = {
	{offsetof(struct rig_end, n_accept), "accept", "connect() of the peer"},
	{offsetof(struct rig_end, n_connected), "connected",
	 "connect(), after `accept` of the listener returned 0"},
	{offsetof(struct rig_end, n_closed), "closed",
	 "disconnect() or the death of the peer, or a connect() that fails"},
	{offsetof(struct rig_end, n_msgs), "message", "send_ctrl() of the peer"},
	{offsetof(struct rig_end, n_up), "consumer with up=1", "consumer_create() of the peer"},
	{offsetof(struct rig_end, n_down), "consumer with up=0", "consumer_destroy() of the peer"},
	{offsetof(struct rig_end, n_revoke), "revoke",
	 "revoke_region() of the peer, while this end has an import"},
	{offsetof(struct rig_end, n_revoked), "revoked",
	 "revoke_region(), after the last release_region() of the peer, or the end of the "
	 "connection"},
};

/* Describe the event that a counter of a rig_end counts. */
static void describe_event(const int *counter, char *buf, size_t size)
{
	const char *at = (const char *)counter;
	char end = at >= (const char *)&rig.a && at < (const char *)(&rig.a + 1) ? 'a' : 'b';
	size_t offset = (size_t)(at - (const char *)(end == 'a' ? &rig.a : &rig.b));

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i].offset == offset)
			snprintf(buf, size, "the event `%s` at end %c, which follows %s",
				 events[i].event, end, events[i].cause);
}

/*
 * Append the state of the device of one end. Then call progress(), although the device did not ask
 * for it: whether that helps shows what is wrong. Returns whether it did.
 */
static int describe_end(struct rig_end *end, char name, char *buf, size_t size)
{
	int fd = rig.ops->fd(end->dev), readable;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	const char *wrong = "";

	readable = poll(&p, 1, 0) > 0;
	if (fd < 0 && end->wake_ns == 0)
		wrong = "; with fd() -1 and wake_ns() 0 the host never calls progress(): return a "
			"descriptor, or the time of the next progress()";
	else if (rig.ops->progress(end->dev) > 0 && !readable)
		wrong = "; progress() has an event, but fd() was not readable and wake_ns() was "
			"not due: the host does not know that it must call progress()";
	else if (readable)
		wrong = "; fd() stays readable, but progress() delivers nothing";
	snprintf(buf, size,
		 "; device of end %c: fd() is %d (%sreadable), wake_ns() is %llu, "
		 "progress() was called %u times%s",
		 name, fd, readable ? "" : "not ", (unsigned long long)end->wake_ns,
		 end->n_progress, wrong);
	return *wrong != 0;
}

void rig_fail_wait(const char *file, int line, const char *what, const int *counter, int n)
{
	char event[240] = "", a[400] = "", b[400] = "", count[60] = "";
	int found;

	if (counter) {
		describe_event(counter, event, sizeof(event));
		snprintf(count, sizeof(count), " (%d of %d came)", *counter, n);
	}
	found = describe_end(&rig.a, 'a', a, sizeof(a));
	if (rig.b.dev != rig.a.dev)
		found |= describe_end(&rig.b, 'b', b, sizeof(b));
	rig_fail_at(file, line, "timed out after %llu ms: waiting for %s%s%s%s%s",
		    (unsigned long long)(rig_patience_ns() / 1000000), counter ? event : what,
		    count, a, b,
		    found ? ""
			  : "; no device has work: the transport lost it, or has not started it");
}
