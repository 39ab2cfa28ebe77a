/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcpfloor [MS [rtt|DEPTH[:BYTES]...]] - messages and random reads over bare sockets on the
 * loopback interface: a lower bound for a storage path over TCP
 *
 * rtt: a message of 64 bytes there and back. Otherwise a client sends requests of 64 bytes, as many
 * at a time as DEPTH leaves open; the server answers with 64 bytes and a block of its memory in one
 * sendmsg() for all requests of one receive; the client receives blocks into its buffers. Both ends
 * poll their sockets. There are no sessions, checks or statistics. NAME.cpu is the CPU time of both
 * ends for each IO. tlsfloor is the same with FLOOR_TLS: see tls.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common.h"

#define DEPTHS 256u
#define PAGE 4096u
#define MAX_BLOCK (1ul << 20)
#define VOLUME (256ull << 20)
#define STAGE 32768u
#define PIECES 64u

struct message {
	uint64_t offset, length, tag, spare[5];
};

struct path {
	int listener;
	unsigned depth;
	size_t block; /* 0: rtt */
};

static int make_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	return fd;
}

static void prepare(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
}

#ifdef FLOOR_TLS
#include "tls.h"
#define NAME "tlsfloor"
#else
#define NAME "tcpfloor"

static void secure(int fd, int listens)
{
	(void)fd;
	(void)listens;
}

/* Receive some bytes, by polling. Returns their number; 0: the end. */
static size_t receive(int fd, struct iovec *iov, int n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};

	for (;;) {
		ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT);

		if (got >= 0)
			return (size_t)got;
		if (errno != EAGAIN && errno != EINTR)
			die("recvmsg");
		relax();
	}
}

/* Remove the first bytes of the pieces. Returns the number of whole pieces that are gone. */
static int advance(struct iovec *iov, int n, size_t bytes)
{
	int i = 0;

	for (; i < n && bytes >= iov[i].iov_len; i++)
		bytes -= iov[i].iov_len;
	if (i < n) {
		iov[i].iov_base = (char *)iov[i].iov_base + bytes;
		iov[i].iov_len -= bytes;
	}
	return i;
}

static void transmit(int fd, struct iovec *iov, int n)
{
	while (n > 0) {
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
		ssize_t sent = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		int gone = sent > 0 ? advance(iov, n, (size_t)sent) : 0;

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			die("sendmsg");
		iov += gone;
		n -= gone;
	}
}
#endif

static size_t receive_into(int fd, void *to, size_t bytes)
{
	struct iovec iov = {to, bytes};

	return receive(fd, &iov, 1);
}

/* -- the server -- */

static void echo(int fd)
{
	struct message m;
	size_t n = 0, got;

	while ((got = receive_into(fd, (char *)&m + n, sizeof(m) - n)) > 0) {
		struct iovec iov = {&m, sizeof(m)};

		n += got;
		if (n < sizeof(m))
			continue;
		transmit(fd, &iov, 1);
		n = 0;
	}
}

static char *make_volume(void)
{
	char *volume = mmap(NULL, VOLUME, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	if (volume == MAP_FAILED)
		die("mmap");
	for (uint64_t at = 0; at < VOLUME; at += PAGE)
		*(volatile uint64_t *)(void *)(volume + at) = at;
	return volume;
}

static void serve(int fd)
{
	static struct message in[STAGE / sizeof(struct message)];
	struct iovec iov[PIECES];
	char *volume = make_volume();
	size_t n = 0, got;

	while ((got = receive_into(fd, (char *)in + n, sizeof(in) - n)) > 0) {
		size_t whole;
		int pieces = 0;

		n += got;
		whole = n / sizeof(in[0]);
		for (size_t i = 0; i < whole; i++) {
			iov[pieces++] = (struct iovec){&in[i], sizeof(in[i])};
			iov[pieces++] = (struct iovec){volume + in[i].offset, in[i].length};
			if (pieces == PIECES || i + 1 == whole) {
				transmit(fd, iov, pieces);
				pieces = 0;
			}
		}
		memmove(in, in + whole, n - whole * sizeof(in[0]));
		n -= whole * sizeof(in[0]);
	}
}

static void server(void *arg)
{
	const struct path *path = arg;
	int fd = accept(path->listener, NULL, NULL);

	if (fd < 0)
		die("accept");
	prepare(fd);
	secure(fd, 1);
	if (path->block)
		serve(fd);
	else
		echo(fd);
}

/* -- the client -- */

struct client {
	const struct path *path;
	int fd;
	uint64_t random, received;
	char *buffers;
	uint64_t offset[DEPTHS]; /* requested offsets, by tag */
	unsigned free[DEPTHS], n_free;
	char stage[STAGE];
	size_t from, to;
	/* the block that is being received */
	char *into;
	size_t rest;
};

static void request(struct client *c)
{
	struct message out[DEPTHS];
	struct iovec iov = {out, 0};

	for (; c->n_free; iov.iov_len += sizeof(out[0])) {
		struct message *m = &out[iov.iov_len / sizeof(out[0])];
		unsigned tag = c->free[--c->n_free];

		c->offset[tag] = next_random(&c->random) % (VOLUME / c->path->block) *
				 c->path->block;
		*m = (struct message){
			.offset = c->offset[tag], .length = c->path->block, .tag = tag};
	}
	if (iov.iov_len)
		transmit(c->fd, &iov, 1);
}

static void finish(struct client *c)
{
	uint64_t tag = (uint64_t)(c->into - c->buffers - (ptrdiff_t)c->path->block) /
		       c->path->block;

	c->free[c->n_free++] = (unsigned)tag;
	c->received++;
}

/* Take what the stage has. */
static void parse(struct client *c)
{
	for (;;) {
		size_t bytes = c->to - c->from, take = bytes < c->rest ? bytes : c->rest;
		struct message m;

		if (c->rest) {
			memcpy(c->into, c->stage + c->from, take);
			c->into += take;
			c->from += take;
			c->rest -= take;
			if (c->rest)
				break;
			finish(c);
			continue;
		}
		if (bytes < sizeof(m))
			break;
		memcpy(&m, c->stage + c->from, sizeof(m));
		c->from += sizeof(m);
		c->into = c->buffers + m.tag * c->path->block;
		c->rest = m.length;
	}
	memmove(c->stage, c->stage + c->from, c->to - c->from);
	c->to -= c->from;
	c->from = 0;
}

static void replies(struct client *c)
{
	struct iovec iov[2] = {{c->into, c->rest}, {c->stage + c->to, STAGE - c->to}};
	size_t n = c->rest ? receive(c->fd, iov, 2) : receive(c->fd, iov + 1, 1),
	       direct = n < c->rest ? n : c->rest;

	if (c->rest) {
		c->into += direct;
		c->rest -= direct;
		if (!c->rest)
			finish(c);
	}
	c->to += n - direct;
	parse(c);
}

static void ios(struct client *c, uint64_t until)
{
	while (c->received < until) {
		request(c);
		replies(c);
	}
}

static void check(struct client *c)
{
	while (c->n_free < c->path->depth)
		replies(c);
	for (unsigned i = 0; i < c->path->depth; i++) {
		uint64_t first;

		memcpy(&first, c->buffers + i * c->path->block, sizeof(first));
		if (first != c->offset[i]) {
			fprintf(stderr, "buffer %u does not hold its block\n", i);
			exit(1);
		}
	}
}

/* Returns the CPU time of this process and of the children that have ended. */
static double cpu_us(void)
{
	static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	double us = 0;

	for (int i = 0; i < 2; i++) {
		struct rusage r;

		if (getrusage(whose[i], &r))
			die("getrusage");
		us += (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
		      (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
	}
	return us;
}

static uint64_t measure_reads(const char *spec, const struct path *path, int fd, uint64_t length)
{
	static struct client c;
	static struct stats stats;
	unsigned burst = path->block > 65536 ? 64 : 1024;
	uint64_t start, before, t, first;
	char name[64];

	c = (struct client){.path = path, .fd = fd, .random = 88172645463325252u};
	c.buffers = calloc(path->depth, path->block);
	if (!c.buffers)
		die("calloc");
	for (; c.n_free < path->depth; c.n_free++)
		c.free[c.n_free] = c.n_free;
	stats.n = 0;
	ios(&c, burst);
	first = c.received;
	start = before = now_ns();
	do {
		ios(&c, c.received + burst);
		t = now_ns();
		note(&stats, burst * 1e6 / (double)(t - before));
		before = t;
	} while (t - start < length);
	first = c.received - first;
	check(&c);
	free(c.buffers);
	snprintf(name, sizeof(name), NAME "_%s", spec);
	print_extremes(name, &stats, "kIO/s");
	print_value(name, (double)first * 1e6 / (double)(t - start), "kIO/s");
	return c.received;
}

static void ping(int fd, unsigned n)
{
	struct message m = {.tag = 1};

	while (n--) {
		struct iovec iov = {&m, sizeof(m)};

		transmit(fd, &iov, 1);
		for (size_t got = 0; got < sizeof(m);)
			got += receive_into(fd, (char *)&m + got, sizeof(m) - got);
	}
}

static void measure_rtt(int fd, uint64_t length)
{
	static struct stats stats;
	uint64_t start, before, t;

	stats.n = 0;
	ping(fd, 1000);
	start = before = now_ns();
	do {
		ping(fd, 100);
		t = now_ns();
		note(&stats, (double)(t - before) / 100);
		before = t;
	} while (t - start < length);
	print_median(NAME "_rtt", &stats, "ns");
}

static void measure(const char *spec, struct path path, uint64_t length)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	double before = cpu_us();
	uint64_t n = 0;
	char name[64];
	pid_t pid;
	int fd;

	path.listener = make_socket();
	if (bind(path.listener, (struct sockaddr *)&at, sizeof(at)) || listen(path.listener, 1) ||
	    getsockname(path.listener, (struct sockaddr *)&at, &bytes))
		die("listen");
	pid = run_beside(server, &path);
	fd = make_socket(); /* after the fork, so that its end reaches the server */
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
		die("connect");
	prepare(fd);
	secure(fd, 0);
	if (path.block)
		n = measure_reads(spec, &path, fd, length);
	else
		measure_rtt(fd, length);
	close(fd);
	close(path.listener);
	join(pid);
	snprintf(name, sizeof(name), NAME "_%s.cpu", spec);
	if (n)
		print_value(name, (cpu_us() - before) / (double)n, "us");
}

/* rtt or DEPTH[:BYTES] */
static int parse_spec(const char *spec, struct path *path)
{
	char *end;
	unsigned long depth, bytes = PAGE;

	*path = (struct path){.depth = 1};
	if (!strcmp(spec, "rtt"))
		return 0;
	depth = strtoul(spec, &end, 10);
	if (*end && sscanf(end, ":%lu", &bytes) != 1)
		return -1;
	if (depth < 1 || depth > DEPTHS || bytes < PAGE || bytes > MAX_BLOCK || bytes % PAGE)
		return -1;
	path->depth = (unsigned)depth;
	path->block = bytes;
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"rtt", "1", "32", "8:131072"};
	uint64_t length = duration_ns(argc, argv, 300);
	int n = argc < 3 ? 4 : argc - 2;
	struct path path;

	for (int i = 0; i < n; i++) {
		const char *spec = argc < 3 ? usual[i] : argv[i + 2];

		if (parse_spec(spec, &path)) {
			fprintf(stderr,
				NAME ": %s: not rtt or DEPTH[:BYTES] with a depth up to %u, whole "
				     "pages up to 1 MiB\n",
				spec, DEPTHS);
			return 2;
		}
		measure(spec, path, length);
	}
	return 0;
}
