/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_tls.h - the sending direction of TLS 1.3 on a TCP socket, by the kernel. The cipher is
 * TLS_AES_128_GCM_SHA256. Thread: any, one at a time for a socket.
 */
#ifndef GN_SECURE_KERNEL_TLS_H
#define GN_SECURE_KERNEL_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define GN_KERNEL_TLS_SECRET 32u

struct gn_kernel_tls {
	int fd;
	bool replaces_keys; /* the kernel can (Linux 6.14) */
	uint8_t secret[GN_KERNEL_TLS_SECRET];
};

/*
 * gn_kernel_tls_start - let the kernel encrypt what the socket sends from now on
 *
 *     tls  its secret is the application traffic secret of the sending direction (RFC 8446, 7.1),
 *          until gn_kernel_tls_end erases it
 *     fd   connected TCP socket, on which no record of that secret has been sent
 *
 * Returns 0, or
 *     -ENOTSUP  the kernel or the socket has no TLS: what the socket sends is not changed
 *     -ENOMEM   likewise
 */
int gn_kernel_tls_start(struct gn_kernel_tls *tls, int fd);

/* Send data, as sendmsg. Returns the bytes that the kernel has taken, or -errno. */
ssize_t gn_kernel_tls_send(const struct gn_kernel_tls *tls, const struct iovec *iov, size_t n);

/*
 * gn_kernel_tls_replace_key - send KeyUpdate, and continue with the next key
 *
 * Returns 0, or
 *     -EAGAIN       the socket is full: repeat when it is writable
 *     -EKEYEXPIRED  the kernel cannot replace keys: the sending direction has ended
 *     other errno   of the socket: the sending direction has ended
 */
int gn_kernel_tls_replace_key(struct gn_kernel_tls *tls);

/* Send the alert close_notify. Returns 0; -EAGAIN: repeat when the socket is writable; -errno. */
int gn_kernel_tls_close_notify(const struct gn_kernel_tls *tls);

/* Erase the secret. The socket stays as it is. */
void gn_kernel_tls_end(struct gn_kernel_tls *tls);

#endif
