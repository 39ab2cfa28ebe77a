/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd_dial.c - connects one handle of libnbd, and gets the properties of its export. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>

#include "nbd.h"

#define SLICE_MS 100                  /* longest wait between two looks at store->ending */
#define DEFAULT_MAX_BYTES (32u << 20) /* of a request, if the server reports no limit */

static int configure(const struct nb_conf *conf, struct nbd_handle *h)
{
	if (*conf->tls_certificates && nbd_set_tls_certificates(h, conf->tls_certificates))
		return -1;
	if (*conf->tls_psk_file && nbd_set_tls_psk_file(h, conf->tls_psk_file))
		return -1;
	if (*conf->tls_username && nbd_set_tls_username(h, conf->tls_username))
		return -1;
#ifdef LIBNBD_HAVE_NBD_SET_PREAD_INITIALIZE
	/* the lane itself checks that a reply fills the buffer */
	if (nbd_set_pread_initialize(h, false))
		return -1;
#endif
	return nbd_add_meta_context(h, LIBNBD_CONTEXT_BASE_ALLOCATION);
}

/* Returns 0: the handle has changed its state, or the slice has passed; -1: failed. */
static int wait_slice(struct nbd_handle *h)
{
	unsigned direction = nbd_aio_get_direction(h);
	struct pollfd p = {.fd = nbd_aio_get_fd(h)};

	p.events = (short)((direction & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
			   (direction & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0));
	if (poll(&p, 1, SLICE_MS) <= 0)
		return 0;
	if (direction & LIBNBD_AIO_DIRECTION_READ && p.revents & (POLLIN | POLLHUP | POLLERR))
		return nbd_aio_notify_read(h);
	return nbd_aio_notify_write(h);
}

static int connect_handle(struct nb_store *store, struct nbd_handle *h, char *why, size_t bytes)
{
	const struct gantry_host *host = store->host;
	uint64_t limit = host->now_ns(host) + store->conf->connect_timeout_ns;
	int rc = nbd_aio_connect_uri(h, store->conf->uri);

	if (rc && nbd_get_errno() == EINVAL) {
		/* the text of libnbd has the URI, which can have credentials */
		snprintf(why, bytes, "libnbd cannot parse the URI");
		return rc;
	}
	while (rc == 0 && !nbd_aio_is_ready(h)) {
		if (nbd_aio_is_dead(h) || nbd_aio_is_closed(h)) {
			snprintf(why, bytes, "the server closed the connection");
			return -1;
		}
		if (__atomic_load_n(&store->ending, __ATOMIC_RELAXED) ||
		    host->now_ns(host) > limit) {
			snprintf(why, bytes, "no answer (connect_timeout=%llu ms)",
				 (unsigned long long)(store->conf->connect_timeout_ns / 1000000));
			return -1;
		}
		rc = wait_slice(h);
	}
	if (rc)
		snprintf(why, bytes, "%s", nbd_get_error());
	return rc;
}

static uint64_t block_limit(struct nbd_handle *h, int which)
{
	int64_t value = nbd_get_block_size(h, which);

	return value > 0 ? (uint64_t)value : 0;
}

static int is_yes(int answer)
{
	return answer > 0;
}

/* Returns 0; -1: the export has no size. */
static int describe(struct nbd_handle *h, struct nb_export *export)
{
	int64_t size = nbd_get_size(h);

	if (size < 0)
		return -1;
	*export = (struct nb_export){
		.size = (uint64_t)size,
		.block = block_limit(h, LIBNBD_SIZE_MINIMUM),
		.max_io = block_limit(h, LIBNBD_SIZE_MAXIMUM),
		.read_only = (uint8_t)is_yes(nbd_is_read_only(h)),
		.flush = (uint8_t)is_yes(nbd_can_flush(h)),
		.fua = (uint8_t)is_yes(nbd_can_fua(h)),
		.trim = (uint8_t)is_yes(nbd_can_trim(h)),
		.zero = (uint8_t)is_yes(nbd_can_zero(h)),
		.multi_conn = (uint8_t)is_yes(nbd_can_multi_conn(h)),
		.extents = (uint8_t)is_yes(nbd_can_meta_context(h, LIBNBD_CONTEXT_BASE_ALLOCATION)),
	};
	if (export->block < 512)
		export->block = 512;
	if (export->max_io == 0)
		export->max_io = DEFAULT_MAX_BYTES;
	return 0;
}

struct nbd_handle *nb_dial(struct nb_store *store, struct nb_export *export, char *why,
			   size_t bytes)
{
	struct nbd_handle *h = nbd_create();

	snprintf(why, bytes, "out of memory");
	if (!h)
		return NULL;
	if (configure(store->conf, h)) {
		snprintf(why, bytes, "%s", nbd_get_error());
	} else if (connect_handle(store, h, why, bytes) == 0) {
		if (describe(h, export) == 0)
			return h;
		snprintf(why, bytes, "%s", nbd_get_error());
	}
	nbd_close(h);
	return NULL;
}

const char *nb_export_differs(const struct nb_export *first, const struct nb_export *now)
{
	if (first->size != now->size)
		return "size";
	if (first->block != now->block || first->max_io != now->max_io)
		return "limits of a request";
	if (first->read_only != now->read_only)
		return "read-only flag";
	if (first->flush != now->flush || first->fua != now->fua || first->trim != now->trim ||
	    first->zero != now->zero || first->multi_conn != now->multi_conn ||
	    first->extents != now->extents)
		return "set of commands";
	return NULL;
}
