/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * records.h - the interface of the record filter, by which a host can encrypt the control messages
 * of a network transport and authenticate the peer. This release has no filter.
 */
#ifndef GANTRY_RECORDS_H
#define GANTRY_RECORDS_H

#include <stddef.h>
#include <stdint.h>

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

/* limit of the bytes of a message that is not sealed: GANTRY_CTRL_MAX, a header of the transport */
#define GANTRY_RECORDS_MAX 4112

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
	 * listens    1: end of the listener; 0: end that connects
	 * peer       what is known of the peer
	 * records_p  out: the filter of the connection; close frees it
	 * returns    0; -errno
	 * NULL       not permitted
	 */
	int (*open)(const struct gantry_host *host, int listens, const struct gantry_peer *peer,
		    void **records_p);
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
	 * label   text; both ends get the same secret for the same label
	 * secret  out: the secret
	 * bytes   its length
	 */
	int (*export_secret)(void *records, const char *label, void *secret, size_t bytes);
};

#ifdef __cplusplus
}
#endif

#endif
