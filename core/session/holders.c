/* SPDX-License-Identifier: BSD-3-Clause */
/* holders.c - reads the reports of gantry_hold(), and detects the hang-up of their pipes */
#include "session/holders.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPORT_FDS 4  /* more than a valid report has */
#define READ_MOST 300 /* reports that are read at a time: about as many as the socket holds */
/* The delay until kept holders are examined again doubles from LOOK_NS to LOOK_MOST_NS. */
#define LOOK_NS (10 * GN_NS_PER_MS)
#define LOOK_MOST_NS GN_NS_PER_S

struct holder {
	int32_t pid; /* process that has reported; 0: not visible here */
	int pipe;    /* read end of its pipe */
};

struct gn_holders {
	LIST_ENTRY(gn_holders) link; /* list of gn_holders_keep() */
	uint64_t session;
	struct gn_loop *loop;
	int reports;     /* socket with the reports */
	bool is_watched; /* the loop watches `reports` */
	/*
	 * A report is still in the socket, for example because this process had no free descriptor.
	 * Its process counts as left.
	 */
	bool is_behind;
	bool is_logged;
	struct gn_timer look; /* set while the holders are kept */
	uint64_t look_ns;
	struct holder *holders;
	uint32_t n, room;
};

static void unwatch(struct gn_holders *h)
{
	if (h->is_watched)
		gn_loop_remove_fd(h->loop, h->reports);
	h->is_watched = false;
}

/* -- reports -- */

struct report {
	/* the kernel adds the sender to each message, but not to the end of the socket */
	bool is_sent;
	int32_t pid;
	int fds[REPORT_FDS];
	uint32_t n_fds;
};

static void parse(struct msghdr *msg, struct report *report)
{
	struct ucred sender;

	*report = (struct report){.is_sent = false};
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS) {
			report->n_fds = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(report->fds, CMSG_DATA(c), report->n_fds * sizeof(int));
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			report->is_sent = true;
			report->pid = sender.pid;
		}
	}
}

/* Returns true if this is what gantry_hold() sends: the read end of a pipe. */
static bool is_valid(const struct report *report)
{
	const int fd = report->fds[0];

	return report->n_fds == 1 && fcntl(fd, F_GETPIPE_SZ) >= 0 &&
	       (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

static bool grow(struct gn_holders *h)
{
	const uint32_t room = h->room ? 2 * h->room : 4;
	struct holder *holders = realloc(h->holders, room * sizeof(*holders));

	if (!holders)
		return false;
	h->holders = holders;
	h->room = room;
	return true;
}

enum reading { READ, READ_LATER, READ_END };

/*
 * Read one report. It is removed from the socket only after its descriptor has been received.
 * Messages that gantry_hold() has not sent are dropped. Returns READ_LATER if there is no report or
 * it cannot be received now, and READ_END at the end of the socket.
 */
static enum reading read_report(struct gn_holders *h)
{
	char byte, control[CMSG_SPACE(REPORT_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))]
		__attribute__((aligned(__alignof__(struct cmsghdr))));
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct report report;
	ssize_t len;

	h->is_behind = h->n == h->room && !grow(h);
	if (h->is_behind)
		return READ_LATER;
	len = recvmsg(h->reports, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_PEEK);
	if (len < 0) {
		h->is_behind = errno != EAGAIN;
		return READ_LATER;
	}
	parse(&msg, &report);
	h->is_behind = len > 0 && report.n_fds == 0 && (msg.msg_flags & MSG_CTRUNC) != 0;
	if (h->is_behind)
		return READ_LATER;
	if (len > 0 && is_valid(&report))
		h->holders[h->n++] = (struct holder){report.pid, report.fds[0]};
	else
		while (report.n_fds > 0)
			close(report.fds[--report.n_fds]);
	if (len == 0 && !report.is_sent)
		return READ_END;
	return recv(h->reports, &byte, sizeof(byte), MSG_DONTWAIT) < 0 ? READ_LATER : READ;
}

static void forget_ended(struct gn_holders *h)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < h->n; i++) {
		/* without events: only the hang-up counts */
		struct pollfd p = {.fd = h->holders[i].pipe};

		if (poll(&p, 1, 0) > 0)
			close(h->holders[i].pipe);
		else
			h->holders[left++] = h->holders[i];
	}
	h->n = left;
	if (left >= GN_HOLDERS_MOST)
		shutdown(h->reports, SHUT_RD);
}

/* Returns true if a process maps the memory. */
static bool update(struct gn_holders *h)
{
	enum reading reading = READ;

	for (unsigned i = 0; i < READ_MOST && reading == READ; i++)
		reading = read_report(h);
	h->is_behind |= reading == READ;
	if (h->is_behind || reading == READ_END)
		unwatch(h); /* it would be readable in each turn */
	forget_ended(h);
	return h->n != 0 || h->is_behind;
}

/* The socket is read while the session runs, too: a full socket makes later reports fail. */
static void on_report(void *arg)
{
	update(arg);
}

/* -- holders -- */

int gn_holders_create(struct gn_loop *loop, uint64_t session, struct gn_holders **holders_p,
		      int *socket_p)
{
	struct gn_holders *h = calloc(1, sizeof(*h));
	int ends[2], rc, yes = 1;

	if (!h)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
		rc = -errno;
		free(h);
		return rc;
	}
	/* for the log only */
	setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	rc = gn_loop_add_fd(loop, ends[0], on_report, h);
	if (rc != 0) {
		close(ends[0]);
		close(ends[1]);
		free(h);
		return rc;
	}
	h->is_watched = true;
	h->loop = loop;
	h->session = session;
	h->reports = ends[0];
	*socket_p = ends[1];
	*holders_p = h;
	return 0;
}

bool gn_holders_any(struct gn_holders *h)
{
	return h && update(h);
}

void gn_holders_free(struct gn_holders *h)
{
	if (!h)
		return;
	unwatch(h);
	gn_loop_clear_timer(h->loop, &h->look);
	close(h->reports);
	for (uint32_t i = 0; i < h->n; i++)
		close(h->holders[i].pipe);
	free(h->holders);
	free(h);
}

static void drop(struct gn_holders *h)
{
	LIST_REMOVE(h, link);
	gn_holders_free(h);
}

static void look(void *arg)
{
	struct gn_holders *h = arg;

	if (!update(h)) {
		drop(h);
		return;
	}
	gn_loop_set_timer(h->loop, &h->look, gn_now_ns() + h->look_ns);
	h->look_ns = h->look_ns < LOOK_MOST_NS / 2 ? 2 * h->look_ns : LOOK_MOST_NS;
}

bool gn_holders_keep(struct gn_holders_list *list, struct gn_holders *h)
{
	if (!h)
		return false;
	unwatch(h);
	/* before the last read: a process whose report comes later does not map the memory */
	shutdown(h->reports, SHUT_RD);
	if (!update(h)) {
		gn_holders_free(h);
		return false;
	}
	LIST_INSERT_HEAD(list, h, link);
	h->look = (struct gn_timer){.fn = look, .arg = h};
	h->look_ns = LOOK_NS;
	gn_loop_set_timer(h->loop, &h->look, gn_now_ns() + h->look_ns);
	return true;
}

struct gn_holders *gn_holders_find(struct gn_holders_list *list, uint64_t session, int32_t *pid_p)
{
	struct gn_holders *h, *next;

	for (h = LIST_FIRST(list); h; h = next) {
		next = LIST_NEXT(h, link);
		if (h->session != session)
			continue;
		if (update(h)) {
			*pid_p = h->n != 0 ? h->holders[0].pid : 0;
			return h;
		}
		drop(h);
	}
	return NULL;
}

bool gn_holders_first_log(struct gn_holders *h)
{
	bool is_first = !h->is_logged;

	h->is_logged = true;
	return is_first;
}

void gn_holders_free_all(struct gn_holders_list *list)
{
	while (!LIST_EMPTY(list))
		drop(LIST_FIRST(list));
}
