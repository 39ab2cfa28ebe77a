/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * records.h - the interface of the record filter, by which a host can encrypt the control messages
 * of a network transport and authenticate the peer, and of streams, by which a host encrypts what
 * other sockets of the connection carry.
 */
#ifndef GANTRY_RECORDS_H
#define GANTRY_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_host; /* plugin.h */
struct gantry_peer; /* transport.h */

enum gantry_records_state {
	GANTRY_RECORDS_HANDSHAKE, /* messages cannot be sealed yet */
	GANTRY_RECORDS_OPEN,
	GANTRY_RECORDS_FAILED,
};

/* bits that `pending` of struct gantry_stream_ops returns */
#define GANTRY_STREAM_INPUT 1u  /* receive can return bytes without reading the socket */
#define GANTRY_STREAM_OUTPUT 2u /* bytes that the socket has not taken: send, when it is writable */

/* flags of `open` of struct gantry_stream_ops */
#define GANTRY_STREAM_LISTENS 1u /* the end of the listener; without it, the end that connects */
/*
 * The kernel may encrypt what is sent (kernel TLS). Without it in the kernel, the flag has no
 * effect. `pending` returns the flag while the kernel encrypts. A kernel before Linux 6.14 cannot
 * replace the key: there `send` returns -EKEYEXPIRED after 256 GiB.
 */
#define GANTRY_STREAM_KERNEL 4u

/*
 * A stream protects a connected socket by TLS 1.3 with a secret that only the two ends know: of
 * export_secret, or of a message in the filter. The transport polls the socket, which does not
 * block, and calls these functions instead of sendmsg and recvmsg. Both ends must open the stream
 * at the same byte of the socket.
 *
 * stream     what open stored in *stream_p
 * thread     any, one at a time for a stream
 * ownership  arguments are valid during the call; the socket stays the caller's
 */
struct gantry_stream_ops {
	uint32_t struct_size; /* sizeof(struct gantry_stream_ops) of the host */
	/* Memory of a stream, in bytes, at most; for struct gantry_device_info. */
	uint32_t stream_bytes;
	/*
	 * Start a stream. It sends nothing.
	 *
	 * host          of the device
	 * fd            connected socket that does not block; open until close
	 * flags         GANTRY_STREAM_LISTENS, GANTRY_STREAM_KERNEL
	 * secret        the same at both ends
	 * secret_bytes  its length, 16 to 48
	 * name          what the stream is for, such as the hello of the socket; it is sent in
	 *               clear, and the handshake fails unless both ends state the same
	 * name_bytes    its length, 1 to 128
	 * stream_p      out: the stream; close frees it
	 * returns       0
	 *               -EINVAL: length of the secret or of the name, unknown flag
	 *               -ENOMEM
	 * NULL          not permitted
	 */
	int (*open)(const struct gantry_host *host, int fd, unsigned flags, const void *secret,
		    size_t secret_bytes, const void *name, size_t name_bytes, void **stream_p);
	/* Free a stream; sends nothing, does not close the socket. NULL: not permitted. */
	void (*close)(void *stream);
	/*
	 * Continue the handshake. The transport limits its time.
	 *
	 * returns  0: it is complete
	 *          -EAGAIN: repeat when the socket is readable; if `pending` has
	 *          GANTRY_STREAM_OUTPUT, also when it is writable
	 *          -EACCES: the peer does not have the secret, or states another name
	 *          -EPROTO: the peer does not follow TLS
	 *          -ENOTCONN: the socket has ended
	 * NULL     not permitted
	 */
	int (*handshake)(void *stream);
	/*
	 * Send bytes, after the handshake. Bytes of which a record is made count as sent, and the
	 * caller may change them, also if the socket has not taken the record: then `pending` has
	 * GANTRY_STREAM_OUTPUT, and the next call sends the record first.
	 *
	 * iov, n   the bytes; n 0: send only what is inside
	 * returns  their number, less than all if the socket is full
	 *          -EAGAIN: the socket is full; n 0: bytes are still inside
	 *          -EKEYEXPIRED: the kernel encrypts, and cannot replace the key
	 *          -EPIPE, or another errno of the socket: the stream has ended
	 * NULL     not permitted
	 */
	ssize_t (*send)(void *stream, const struct iovec *iov, size_t n);
	/*
	 * Receive bytes, after the handshake.
	 *
	 * iov, n   where they go
	 * returns  their number; less than the space of iov: no complete record is left
	 *          0: the peer has ended the stream by finish
	 *          -EAGAIN: none have arrived
	 *          -ECONNRESET: the socket has ended without finish
	 *          -EPROTO: a record is not valid
	 *          another errno of the socket
	 * NULL     not permitted
	 */
	ssize_t (*receive)(void *stream, const struct iovec *iov, size_t n);
	/*
	 * Get what is inside, of which the socket reports nothing. A transport does not wait for
	 * the socket to become readable while GANTRY_STREAM_INPUT is set. Returns bits
	 * GANTRY_STREAM_*. NULL: not permitted.
	 */
	unsigned (*pending)(void *stream);
	/*
	 * End the sending direction. The caller shuts the socket down afterwards. While `pending`
	 * has GANTRY_STREAM_KERNEL it closes the socket instead, because the kernel can have
	 * records that the socket has not taken. Returns 0; -EAGAIN: repeat when the socket is
	 * writable; -errno. NULL: not permitted.
	 */
	int (*finish)(void *stream);
};

/* limit of the bytes of a message that is not sealed: GANTRY_CTRL_MAX, a header of the transport */
#define GANTRY_RECORDS_MAX 4112
#define GANTRY_RECORDS_MAC 32 /* bytes of a message authentication code */

/*
 * A filter below all control messages of a network transport: `records` of struct gantry_host. It
 * encrypts the messages, and authenticates the peer. The transport passes all its control messages
 * through the filter, also its own, which contain keys and addresses, and cuts the bytes of the
 * filter to its frames. The connecting end reports `connected` when the filter is open. The
 * listening end calls `accept` before the handshake. Each end closes the connection if the
 * handshake takes longer than its limit for a connect. Both ends must have a filter, or none.
 *
 * records    what open stored in *records_p
 * thread     control thread
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_records_ops {
	uint32_t struct_size; /* sizeof(struct gantry_records_ops) of the host */
	/*
	 * Start the filter of a connection.
	 *
	 * host       of the device
	 * conn       connection of the transport, as in its events: the host knows by it which
	 *            filter belongs to a connection
	 * listens    1: end of the listener; 0: end that connects
	 * peer       what is known of the peer
	 * records_p  out: the filter of the connection; close frees it
	 * returns    0; -EBUSY: too many handshakes, which the host has logged; another -errno
	 * NULL       not permitted
	 */
	int (*open)(const struct gantry_host *host, const void *conn, int listens,
		    const struct gantry_peer *peer, void **records_p);
	/* Free the filter of a connection. NULL: not permitted. */
	void (*close)(void *records);
	/*
	 * Seal a message. `output` returns its bytes. Returns 0; -errno: the filter is not open, or
	 * has no memory. NULL: not permitted.
	 *
	 * msg  the message
	 * len  bytes, 1 to GANTRY_RECORDS_MAX
	 */
	int (*seal)(void *records, const void *msg, size_t len);
	/*
	 * Get bytes for the peer, of the handshake or of sealed messages. Call it after open, seal
	 * and receive, until it returns 0. Returns their number. NULL: not permitted.
	 *
	 * bytes  out: the bytes
	 * max    limit of their number
	 */
	size_t (*output)(void *records, void *bytes, size_t max);
	/*
	 * Take bytes of the peer, in order; a call can have a part of a message, or several.
	 * Returns 0; -errno: the filter has failed. NULL: not permitted.
	 *
	 * bytes  the bytes
	 * len    their number
	 */
	int (*receive)(void *records, const void *bytes, size_t len);
	/*
	 * Get the next message of the peer. Returns its bytes; 0: none is complete. NULL: not
	 * permitted.
	 *
	 * msg  out: the message
	 * max  size of the buffer, GANTRY_RECORDS_MAX
	 */
	size_t (*message)(void *records, void *msg, size_t max);
	/*
	 * Get the state.
	 *
	 * text_p   out, if failed: the reason, valid until close
	 * returns  enum gantry_records_state
	 * NULL     not permitted
	 */
	int (*state)(void *records, const char **text_p);
	/*
	 * Derive a secret that only the two ends of the open filter know, to bind lanes to the
	 * connection. Returns 0; -errno: the filter is not open. NULL: not permitted.
	 *
	 * label          text
	 * context        bytes that the secret is bound to; both ends get the same secret for the
	 *                same label and context. NULL: none
	 * context_bytes  its length
	 * secret         out: the secret
	 * bytes          its length
	 */
	int (*export_secret)(void *records, const char *label, const void *context,
			     size_t context_bytes, void *secret, size_t bytes);
	/*
	 * Compute an HMAC-SHA256, for requests of a third party, which has a key but no filter in
	 * common with this end. Returns 0 or -errno. Thread: any. NULL: not permitted.
	 *
	 * key        the key
	 * key_bytes  its length
	 * data       what is authenticated
	 * bytes      its length
	 * out        out: GANTRY_RECORDS_MAC bytes
	 */
	int (*mac)(const void *key, size_t key_bytes, const void *data, size_t bytes, uint8_t *out);
	/*
	 * Streams, for the other sockets of a transport, whose data the filter does not carry.
	 * NULL: not permitted.
	 */
	const struct gantry_stream_ops *streams;
	/*
	 * Ask whether the end of the listener may begin the handshake of a stream. It counts
	 * against the limit of `open`. Returns 0; -EBUSY: too many handshakes, which the host has
	 * logged. NULL: not permitted.
	 *
	 * host  of the device
	 */
	int (*admit)(const struct gantry_host *host);
};

#ifdef __cplusplus
}
#endif

#endif
