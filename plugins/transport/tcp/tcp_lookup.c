/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_lookup.c - the addresses of a name. getaddrinfo(3) can block for as long as a name server
 * does not answer, and cannot be cancelled. So a thread calls it. The thread outlives a lookup that
 * its user has dropped.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tcp.h"

enum state { RUNNING, ABANDONED, ENDED };

struct tcp_lookup {
	pthread_t thread;
	int done;        /* atomic: `n` and `list` are valid */
	int state;       /* atomic: enum state */
	int wake, ready; /* ready: eventfd for tcp_lookup_wait() */
	bool listens;
	int n, error; /* error: of getaddrinfo() */
	struct sockaddr_storage list[TCP_ADDRESSES];
	char service[64];
};

int tcp_parse(const char *service, struct sockaddr_storage *addr)
{
	char copy[TC_ADDRESS_TEXT], *host;

	if (tc_address_parse(service, addr) == 0)
		return 1;
	if (strlen(service) >= sizeof(copy) || *service == '[')
		return -EINVAL;
	strcpy(copy, service);
	if (tc_address_split(copy, &host) < 0 || strchr(host, ':'))
		return -EINVAL;
	return 0;
}

static void free_lookup(struct tcp_lookup *lookup)
{
	if (lookup->wake >= 0)
		close(lookup->wake);
	if (lookup->ready >= 0)
		close(lookup->ready);
	free(lookup);
}

void tcp_lookup_drop(struct tcp_lookup *lookup)
{
	pthread_t thread;

	if (!lookup)
		return;
	thread = lookup->thread;
	if (!__atomic_load_n(&lookup->done, __ATOMIC_ACQUIRE) &&
	    __atomic_exchange_n(&lookup->state, ABANDONED, __ATOMIC_ACQ_REL) == RUNNING) {
		pthread_detach(thread); /* the thread frees the lookup */
		return;
	}
	pthread_join(thread, NULL);
	free_lookup(lookup);
}

static void ring(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* a full eventfd is readable */
}

static void look_up(struct tcp_lookup *lookup)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = lookup->listens ? AI_PASSIVE : AI_ADDRCONFIG};
	struct addrinfo *all = NULL;
	char copy[TC_ADDRESS_TEXT], port[8], *host;

	strcpy(copy, lookup->service);
	snprintf(port, sizeof(port), "%d", tc_address_split(copy, &host));
	lookup->error = getaddrinfo(host, port, &hints, &all);
	for (const struct addrinfo *info = all; info && lookup->n < (int)TCP_ADDRESSES;
	     info = info->ai_next)
		if (tc_address_bytes(info->ai_addr))
			memcpy(&lookup->list[lookup->n++], info->ai_addr, info->ai_addrlen);
	if (all)
		freeaddrinfo(all);
}

static void *run(void *arg)
{
	struct tcp_lookup *lookup = arg;

	look_up(lookup);
	__atomic_store_n(&lookup->done, 1, __ATOMIC_RELEASE);
	ring(lookup->wake);
	ring(lookup->ready);
	if (__atomic_exchange_n(&lookup->state, ENDED, __ATOMIC_ACQ_REL) == ABANDONED)
		free_lookup(lookup);
	return NULL;
}

int tcp_lookup_start(const struct tcp_device *dev, const char *service, bool listens,
		     struct tcp_lookup **lookup_p)
{
	struct tcp_lookup *lookup = calloc(1, sizeof(*lookup));
	int rc;

	if (!lookup)
		return -ENOMEM;
	lookup->listens = listens;
	snprintf(lookup->service, sizeof(lookup->service), "%s", service);
	lookup->wake = fcntl(dev->wake, F_DUPFD_CLOEXEC, 0);
	lookup->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = lookup->wake < 0 || lookup->ready < 0
		     ? -errno
		     : -pthread_create(&lookup->thread, NULL, run, lookup);
	if (rc) {
		free_lookup(lookup);
		return rc;
	}
	*lookup_p = lookup;
	return 0;
}

int tcp_lookup_take(const struct tcp_lookup *lookup, struct sockaddr_storage *list)
{
	if (!__atomic_load_n(&lookup->done, __ATOMIC_ACQUIRE))
		return 0;
	memcpy(list, lookup->list, (size_t)lookup->n * sizeof(*list));
	return lookup->n ? lookup->n : -ENOENT;
}

const char *tcp_lookup_error(const struct tcp_lookup *lookup)
{
	return lookup->error ? gai_strerror(lookup->error) : "it has no address of IPv4 or IPv6";
}

int tcp_lookup_wait(struct tcp_lookup *lookup, uint64_t limit_ns, struct sockaddr_storage *list)
{
	struct pollfd p = {.fd = lookup->ready, .events = POLLIN};
	int n = poll(&p, 1, (int)(limit_ns / 1000000));

	return n > 0 ? tcp_lookup_take(lookup, list) : 0;
}
