/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_tcp.c - TCP sockets of IPv4. All addresses are those of one machine, so only the port selects
 * a listener.
 *
 * A connection has a stream in each direction. Sent bytes arrive in pieces, at drawn times, and a
 * full buffer stops the sender. A socket takes a drawn part of what is sent. It gives all that has
 * arrived, as the kernel does: a receive that is not full leaves nothing behind, and only a later
 * arrival is an edge for EPOLLET. The end of a direction (FIN) and the reset of a connection (RST)
 * arrive at drawn times, too. A socket resets its connection if it is closed with bytes that were
 * not read, or if bytes arrive after it was closed.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "os.h"

#define PIECES 64u     /* most pieces in a stream */
#define SENT_PIECES 3u /* most pieces of one send */
#define LEAST_BUFFER 256u
#define BUFFERS 9u         /* sizes of buffers: LEAST_BUFFER, and powers of two times that */
#define DELAYS 18u         /* a byte arrives after at most 1, 2, 4, .. ns */
#define DELAY_PER_BYTE 32u /* ns for each byte of a buffer */
#define FIRST_PORT 32768u

struct piece {
	uint64_t end, at_ns; /* position of the next byte in the stream; time of arrival */
};

struct stream {
	uint8_t *bytes; /* ring */
	uint32_t room;
	uint64_t sent, received; /* bytes so far */
	struct piece pieces[PIECES];
	uint32_t first, n;         /* of the pieces that are not received */
	uint64_t n_received;       /* pieces */
	bool is_short;             /* the stream did not take all that was sent */
	uint64_t n_spaces;         /* times that it has taken bytes again after that */
	uint64_t fin_ns, reset_ns; /* times of arrival; SIM_NEVER: none was sent */
};

struct connection {
	struct stream to[2]; /* to the socket of each end */
	bool closed[2];
	uint32_t refs;
	uint32_t delay_ns;       /* longest time until a byte arrives */
	uint32_t partial_one_in; /* one in this many sends moves only a part of the bytes */
};

enum state { UNUSED, LISTENING, CONNECTED, REFUSED };

struct tcp_file {
	struct sim_file file;
	struct tcp_file *next; /* list of all sockets */
	enum state state;
	struct sockaddr_in local, peer;
	struct connection *conn;
	int side;       /* index of its incoming stream */
	uint64_t up_ns; /* CONNECTED, REFUSED: time at which connect() has its result */
	bool failed;    /* the error of a reset or a refusal was reported */
	bool ended;     /* shutdown() has ended the incoming stream */
	struct tcp_file *pending, *next_pending; /* LISTENING: to accept, the oldest first */
	uint32_t n_pending, backlog;
};

static struct tcp_file *all;

static struct stream *in(const struct tcp_file *s)
{
	return &s->conn->to[s->side];
}

static struct stream *out(const struct tcp_file *s)
{
	return &s->conn->to[!s->side];
}

static uint64_t draw_arrival(const struct connection *conn)
{
	return sim_now() + 1 + sim_draw(conn->delay_ns);
}

/* -- streams -- */

static struct piece *piece(struct stream *stream, uint32_t i)
{
	return &stream->pieces[(stream->first + i) % PIECES];
}

static uint32_t count_arrived(struct stream *stream)
{
	uint32_t n = 0;

	while (n < stream->n && piece(stream, n)->at_ns <= sim_now())
		n++;
	return n;
}

/* Returns the number of bytes that can be received. */
static uint64_t arrived(struct stream *stream)
{
	uint32_t n = count_arrived(stream);

	return n ? piece(stream, n - 1)->end - stream->received : 0;
}

static uint64_t last_arrival(struct stream *stream)
{
	return stream->n ? piece(stream, stream->n - 1)->at_ns : 0;
}

static uint64_t after_last(const struct connection *conn, struct stream *stream)
{
	uint64_t at = draw_arrival(conn), last = last_arrival(stream);

	return at > last ? at : last;
}

/* Returns the number of bytes that the stream takes now. */
static uint64_t space(const struct stream *stream)
{
	return stream->n + SENT_PIECES <= PIECES ? stream->room - (stream->sent - stream->received)
						 : 0;
}

static void add_piece(const struct connection *conn, struct stream *stream, uint64_t end)
{
	uint64_t at = after_last(conn, stream);

	*piece(stream, stream->n++) = (struct piece){.end = end, .at_ns = at};
}

/* Let the bytes arrive in pieces. */
static void dispatch(const struct connection *conn, struct stream *stream, uint32_t n)
{
	uint64_t end = stream->sent + n;

	for (uint32_t i = 1; i < SENT_PIECES && n > 1 && sim_draw(2) == 0; i++) {
		uint32_t part = 1 + sim_draw(n - 1);

		stream->sent += part;
		n -= part;
		add_piece(conn, stream, stream->sent);
	}
	stream->sent = end;
	add_piece(conn, stream, end);
}

/* Returns how many of n bytes of the stream, from byte `at` on, follow each other in memory. */
static uint32_t until_wrap(const struct stream *stream, uint64_t at, uint64_t n)
{
	const uint64_t left = stream->room - at % stream->room;

	return (uint32_t)(n < left ? n : left);
}

static void copy_in(struct stream *stream, const struct msghdr *msg, uint32_t n)
{
	uint64_t at = stream->sent;

	for (size_t i = 0; n; i++) {
		const uint8_t *from = msg->msg_iov[i].iov_base;
		uint64_t left = msg->msg_iov[i].iov_len < n ? msg->msg_iov[i].iov_len : n;

		for (uint32_t part; left; left -= part, n -= part, at += part, from += part) {
			part = until_wrap(stream, at, left);
			memcpy(stream->bytes + at % stream->room, from, part);
		}
	}
}

static void copy_out(struct stream *stream, const struct msghdr *msg, uint32_t n)
{
	for (size_t i = 0; n; i++) {
		uint8_t *to = msg->msg_iov[i].iov_base;
		uint64_t left = msg->msg_iov[i].iov_len < n ? msg->msg_iov[i].iov_len : n;

		for (uint32_t part; left; left -= part, n -= part, to += part) {
			part = until_wrap(stream, stream->received, left);
			memcpy(to, stream->bytes + stream->received % stream->room, part);
			stream->received += part;
		}
	}
	while (stream->n && piece(stream, 0)->end <= stream->received) {
		stream->first++;
		stream->n--;
		stream->n_received++;
	}
}

/* Reset the stream: bytes in flight are lost or arrive before, as drawn. */
static void reset(const struct connection *conn, struct stream *stream)
{
	if (stream->reset_ns != SIM_NEVER)
		return;
	if (sim_draw(2) == 0) {
		stream->n = count_arrived(stream);
		stream->sent = stream->received + arrived(stream);
	}
	stream->reset_ns = after_last(conn, stream);
}

static void finish(const struct connection *conn, struct stream *stream)
{
	if (stream->fin_ns == SIM_NEVER)
		stream->fin_ns = after_last(conn, stream);
}

/* -- sockets -- */

static const struct sim_file_ops tcp_ops;

static struct tcp_file *new_socket(int flags)
{
	struct tcp_file *s = sim_file_new(&tcp_ops, sizeof(*s), O_RDWR | flags);

	s->local.sin_family = AF_INET;
	s->next = all;
	all = s;
	return s;
}

struct sim_file *sim_tcp_socket(int type)
{
	return &new_socket(type & SOCK_NONBLOCK ? O_NONBLOCK : 0)->file;
}

static struct tcp_file *find_listener(uint16_t port)
{
	struct tcp_file *s = all;

	while (s && (s->state != LISTENING || s->local.sin_port != port))
		s = s->next;
	return s;
}

static bool has_port(uint16_t port)
{
	for (const struct tcp_file *s = all; s; s = s->next)
		if (s->local.sin_port == port)
			return true;
	return false;
}

/* A port is used again soon, so that a late connection can reach another process. */
static uint16_t free_port(void)
{
	uint16_t port = FIRST_PORT;

	while (has_port(htons(port)))
		port++;
	return htons(port);
}

/* Small buffers have short delays: a run without faults has a limit of time for each operation. */
static struct connection *new_connection(void)
{
	struct connection *conn = sim_host_alloc(sizeof(*conn));

	conn->delay_ns = 1u << sim_draw(DELAYS);
	conn->partial_one_in = 1u << sim_draw(6);
	for (int i = 0; i < 2; i++) {
		struct stream *stream = &conn->to[i];

		stream->room = LEAST_BUFFER << sim_draw(BUFFERS);
		stream->bytes = sim_host_alloc(stream->room);
		stream->fin_ns = stream->reset_ns = SIM_NEVER;
		if (conn->delay_ns > stream->room * DELAY_PER_BYTE)
			conn->delay_ns = stream->room * DELAY_PER_BYTE;
	}
	return conn;
}

static void join(struct tcp_file *s, struct connection *conn, int side)
{
	s->state = CONNECTED;
	s->conn = conn;
	s->side = side;
	conn->refs++;
}

static void leave(struct tcp_file *s)
{
	struct connection *conn = s->conn;

	if (!conn)
		return;
	finish(conn, out(s));
	if (arrived(in(s)))
		reset(conn, out(s));
	else if (in(s)->n) /* bytes arrive later */
		out(s)->reset_ns = last_arrival(in(s)) + sim_draw(conn->delay_ns);
	conn->closed[s->side] = true;
	sim_changed();
	s->conn = NULL;
	if (--conn->refs)
		return;
	for (int i = 0; i < 2; i++)
		sim_host_free(conn->to[i].bytes);
	sim_host_free(conn);
}

static void tcp_close(struct sim_file *file)
{
	struct tcp_file *s = (struct tcp_file *)file, **at = &all;

	while (s->pending) {
		struct tcp_file *waits = s->pending;

		s->pending = waits->next_pending;
		reset(waits->conn, out(waits));
		sim_file_put(&waits->file);
	}
	leave(s);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
}

/* -- readiness -- */

static bool passed(uint64_t at)
{
	if (at <= sim_now())
		return true;
	if (at != SIM_NEVER)
		sim_wake_at(at);
	return false;
}

static bool is_reset(const struct tcp_file *s)
{
	return passed(in(s)->reset_ns);
}

static bool has_ended(const struct tcp_file *s)
{
	return s->ended || passed(in(s)->fin_ns);
}

static bool can_receive(const struct tcp_file *s)
{
	struct stream *stream = in(s);
	uint32_t n = count_arrived(stream);

	if (n < stream->n)
		passed(piece(stream, n)->at_ns);
	return n != 0;
}

static uint32_t connected_poll(const struct tcp_file *s)
{
	uint32_t events = 0;

	if (can_receive(s))
		events |= POLLIN;
	if (has_ended(s))
		events |= POLLIN | POLLRDHUP | (out(s)->fin_ns != SIM_NEVER ? POLLHUP : 0);
	if (is_reset(s))
		events |= POLLIN | POLLOUT | POLLRDHUP | POLLHUP | (s->failed ? 0 : POLLERR);
	if (space(out(s)) || out(s)->fin_ns != SIM_NEVER)
		events |= POLLOUT;
	return events;
}

static uint32_t tcp_poll(struct sim_file *file)
{
	const struct tcp_file *s = (const struct tcp_file *)file;

	switch (s->state) {
	case UNUSED:
		return POLLOUT | POLLHUP;
	case LISTENING:
		return s->pending && passed(s->pending->up_ns) ? POLLIN : 0;
	case CONNECTED:
		return passed(s->up_ns) ? connected_poll(s) : 0;
	default:
		return passed(s->up_ns)
			       ? POLLIN | POLLOUT | POLLRDHUP | POLLHUP | (s->failed ? 0 : POLLERR)
			       : 0;
	}
}

/* Only arrivals and new space are edges. */
static uint64_t tcp_changes(const struct sim_file *file)
{
	const struct tcp_file *s = (const struct tcp_file *)file;
	uint64_t n = file->changes;

	if (s->state == LISTENING)
		for (const struct tcp_file *waits = s->pending; waits; waits = waits->next_pending)
			n += waits->up_ns <= sim_now();
	if (s->state == CONNECTED || s->state == REFUSED)
		n += s->up_ns <= sim_now();
	if (s->conn)
		n += in(s)->n_received + count_arrived(in(s)) + (in(s)->fin_ns <= sim_now()) +
		     (in(s)->reset_ns <= sim_now()) + out(s)->n_spaces;
	return n;
}

/* -- the operations -- */

static int tcp_bind(struct sim_file *file, const struct sockaddr *address)
{
	struct tcp_file *s = (struct tcp_file *)file;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)address;

	if (sin->sin_port && find_listener(sin->sin_port))
		return -EADDRINUSE;
	s->local = *sin;
	if (!s->local.sin_port)
		s->local.sin_port = free_port();
	return 0;
}

static int tcp_listen(struct sim_file *file, uint32_t backlog)
{
	struct tcp_file *s = (struct tcp_file *)file;

	s->state = LISTENING;
	s->backlog = backlog;
	return 0;
}

static void add_pending(struct tcp_file *listener, struct tcp_file *served)
{
	struct tcp_file **at = &listener->pending;

	while (*at)
		at = &(*at)->next_pending;
	*at = served;
	listener->n_pending++;
}

/* The result follows later, as in the kernel. */
static int tcp_connect(struct sim_file *file, const struct sockaddr *address)
{
	struct tcp_file *s = (struct tcp_file *)file, *listener, *served;
	struct connection *conn;

	s->peer = *(const struct sockaddr_in *)address;
	s->local.sin_addr = s->peer.sin_addr;
	s->local.sin_port = free_port();
	listener = find_listener(s->peer.sin_port);
	if (!listener || listener->n_pending > listener->backlog) {
		s->state = REFUSED;
		s->up_ns = sim_now() + 1 + sim_draw(1u << sim_draw(DELAYS));
		return -EINPROGRESS;
	}
	conn = new_connection();
	served = new_socket(0);
	served->local = s->peer;
	served->peer = s->local;
	join(s, conn, 0);
	join(served, conn, 1);
	served->up_ns = draw_arrival(conn);
	s->up_ns = draw_arrival(conn);
	add_pending(listener, served);
	sim_file_changed(&listener->file);
	sim_file_changed(&s->file);
	return -EINPROGRESS;
}

static struct sim_file *tcp_accept(struct sim_file *file, struct sockaddr_in *peer)
{
	struct tcp_file *s = (struct tcp_file *)file, *served = s->pending;

	if (!served || served->up_ns > sim_now())
		return NULL;
	s->pending = served->next_pending;
	s->n_pending--;
	served->next_pending = NULL;
	*peer = served->peer;
	s->file.changes++; /* for tcp_changes() */
	sim_file_changed(&s->file);
	return &served->file;
}

/* Returns the error of the socket, once. 0: none. */
static int take_error(struct tcp_file *s)
{
	bool refused = s->state == REFUSED && s->up_ns <= sim_now();

	if (s->failed || (!refused && !(s->conn && in(s)->reset_ns <= sim_now())))
		return 0;
	s->failed = true;
	sim_file_changed(&s->file);
	return refused ? -ECONNREFUSED : -ECONNRESET;
}

static size_t count_bytes(const struct msghdr *msg)
{
	size_t n = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		n += msg->msg_iov[i].iov_len;
	return n;
}

/* The first bytes of a connection are taken whole: its buffer is empty. */
static ssize_t send_to(struct tcp_file *s, const struct msghdr *msg)
{
	struct stream *stream = out(s);
	uint64_t n = count_bytes(msg), left = space(stream);

	stream->is_short = n > left;
	if (!left)
		return -EAGAIN;
	n = n < left ? n : left;
	if (stream->sent && sim_draw(s->conn->partial_one_in) == 0) {
		n = 1 + sim_draw((uint32_t)n);
		stream->is_short = true;
	}
	copy_in(stream, msg, (uint32_t)n);
	dispatch(s->conn, stream, (uint32_t)n);
	if (s->conn->closed[!s->side] && in(s)->reset_ns == SIM_NEVER)
		in(s)->reset_ns = last_arrival(stream) + sim_draw(s->conn->delay_ns);
	sim_changed();
	return (ssize_t)n;
}

static ssize_t tcp_send(struct sim_file *file, const struct msghdr *msg)
{
	struct tcp_file *s = (struct tcp_file *)file;
	int error = take_error(s);

	if (error)
		return error;
	if (!s->conn || s->failed)
		return -EPIPE;
	if (s->up_ns > sim_now())
		return -EAGAIN;
	return out(s)->fin_ns != SIM_NEVER ? -EPIPE : send_to(s, msg);
}

static ssize_t receive_from(struct tcp_file *s, struct msghdr *msg)
{
	struct stream *stream = in(s);
	uint64_t n = count_bytes(msg), here = arrived(stream);

	if (n == 0)
		sim_fail("a receive without space, which looks like the end of the stream");
	n = n < here ? n : here;
	copy_out(stream, msg, (uint32_t)n);
	stream->n_spaces += stream->is_short;
	stream->is_short = false;
	sim_changed();
	return (ssize_t)n;
}

static ssize_t tcp_receive(struct sim_file *file, struct msghdr *msg, int flags)
{
	struct tcp_file *s = (struct tcp_file *)file;
	int error;

	if (flags & ~MSG_DONTWAIT || !(file->flags & O_NONBLOCK))
		sim_fail("recvmsg of TCP with flags %#x, or one that blocks", (unsigned)flags);
	if (s->conn && s->up_ns <= sim_now() && arrived(in(s)))
		return receive_from(s, msg);
	error = take_error(s);
	if (error)
		return error;
	if (!s->conn)
		return s->state == REFUSED && s->up_ns <= sim_now() ? 0 : -ENOTCONN;
	return s->failed || has_ended(s) ? 0 : -EAGAIN;
}

static int tcp_shutdown(struct sim_file *file, int how)
{
	struct tcp_file *s = (struct tcp_file *)file;

	if (!s->conn)
		return -ENOTCONN;
	if (how != SHUT_RD)
		finish(s->conn, out(s));
	s->ended |= how != SHUT_WR;
	sim_changed();
	return 0;
}

static int tcp_name(const struct sim_file *file, struct sockaddr_in *address)
{
	*address = ((const struct tcp_file *)file)->local;
	return 0;
}

static int tcp_get(struct sim_file *file, int level, int option, void *value)
{
	int error;

	if (level == IPPROTO_TCP && option == TCP_INFO) /* only for a log message */
		return -ENOPROTOOPT;
	if (level != SOL_SOCKET || option != SO_ERROR)
		sim_fail("getsockopt(%d, %d) of TCP", level, option);
	error = -take_error((struct tcp_file *)file);
	memcpy(value, &error, sizeof(error));
	return sizeof(error);
}

/* The options change only when the kernel sends, and when it takes a peer for dead. */
static int tcp_set(struct sim_file *file, int level, int option, const void *value, socklen_t n)
{
	(void)file;
	(void)option;
	(void)value;
	(void)n;
	if (level != SOL_SOCKET && level != IPPROTO_TCP)
		sim_fail("setsockopt(%d, %d) of TCP", level, option);
	return 0;
}

static int tcp_stat(struct sim_file *file, struct stat *st)
{
	(void)file;
	st->st_mode = S_IFSOCK | 0777;
	return 0;
}

static const struct sim_socket_ops socket_ops = {
	.bind = tcp_bind,
	.listen = tcp_listen,
	.connect = tcp_connect,
	.accept = tcp_accept,
	.send = tcp_send,
	.receive = tcp_receive,
	.shutdown = tcp_shutdown,
	.name = tcp_name,
	.get = tcp_get,
	.set = tcp_set,
};

static const struct sim_file_ops tcp_ops = {
	.kind = "TCP socket",
	.poll = tcp_poll,
	.stat = tcp_stat,
	.close = tcp_close,
	.socket = &socket_ops,
	.count_changes = tcp_changes,
};
