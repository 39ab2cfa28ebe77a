/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_tls.c - sending by kernel TLS (Linux, CONFIG_TLS).
 *
 * The kernel makes records of what sendmsg gets. It encrypts them itself, or a network device does.
 * Records that are not data, an alert and KeyUpdate, state their type in a control message.
 *
 * A socket that has kernel TLS keeps it until it is closed. Kernels before 6.14 set its key once.
 * To find out whether this kernel replaces keys, gn_kernel_tls_start sets the first key twice,
 * before anything is sent.
 */
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "secure/kernel_tls.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif

#define NONCE_BYTES (TLS_CIPHER_AES_GCM_128_SALT_SIZE + TLS_CIPHER_AES_GCM_128_IV_SIZE)

/* HKDF-Expand-Label of RFC 8446, 7.1, without a context. */
static int expand(const uint8_t *secret, const char *label, uint8_t *out, size_t bytes)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY, ok;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret,
						  GN_KERNEL_TLS_SECRET),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)label,
						  strlen(label)),
		OSSL_PARAM_END,
	};

	ok = ctx && EVP_KDF_derive(ctx, out, bytes, params) == 1;
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	if (ok)
		return 0;
	ERR_clear_error();
	return -ENOMEM;
}

/* Give the kernel the key of the current secret. Returns 0 or -errno. */
static int set_key(const struct gn_kernel_tls *tls)
{
	struct tls12_crypto_info_aes_gcm_128 info = {
		.info = {.version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128},
	};
	uint8_t nonce[NONCE_BYTES];
	int rc = expand(tls->secret, "key", info.key, sizeof(info.key));

	if (!rc)
		rc = expand(tls->secret, "iv", nonce, sizeof(nonce));
	if (!rc) {
		memcpy(info.salt, nonce, sizeof(info.salt));
		memcpy(info.iv, nonce + sizeof(info.salt), sizeof(info.iv));
		rc = setsockopt(tls->fd, SOL_TLS, TLS_TX, &info, sizeof(info)) ? -errno : 0;
	}
	OPENSSL_cleanse(&info, sizeof(info));
	OPENSSL_cleanse(nonce, sizeof(nonce));
	return rc;
}

int gn_kernel_tls_start(struct gn_kernel_tls *tls, int fd)
{
	int rc;

	tls->fd = fd;
	if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")))
		return -ENOTSUP;
	/* with this option but without a key, the kernel does not change what the socket sends */
	rc = set_key(tls);
	if (rc)
		return rc == -ENOMEM ? rc : -ENOTSUP;
	tls->replaces_keys = set_key(tls) == 0;
	return 0;
}

ssize_t gn_kernel_tls_send(const struct gn_kernel_tls *tls, const struct iovec *iov, size_t n)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = n};
	ssize_t sent = sendmsg(tls->fd, &msg, MSG_NOSIGNAL);

	return sent < 0 ? -errno : sent;
}

/* Send a record that is not data. Returns 0 or -errno. */
static int send_record(const struct gn_kernel_tls *tls, uint8_t type, const void *bytes, size_t len)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(type))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
	const struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_TLS;
	header->cmsg_type = TLS_SET_RECORD_TYPE;
	header->cmsg_len = CMSG_LEN(sizeof(type));
	memcpy(CMSG_DATA(header), &type, sizeof(type));
	return sendmsg(tls->fd, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int gn_kernel_tls_replace_key(struct gn_kernel_tls *tls)
{
	/* a message of 1 byte: update_not_requested */
	static const uint8_t update[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1, 0};
	uint8_t next[GN_KERNEL_TLS_SECRET];
	int rc;

	if (!tls->replaces_keys)
		return -EKEYEXPIRED;
	rc = expand(tls->secret, "traffic upd", next, sizeof(next));
	if (!rc)
		rc = send_record(tls, SSL3_RT_HANDSHAKE, update, sizeof(update));
	if (!rc) {
		memcpy(tls->secret, next, sizeof(next));
		rc = set_key(tls);
		rc = rc == -EAGAIN ? -EKEYEXPIRED : rc;
	}
	OPENSSL_cleanse(next, sizeof(next));
	return rc;
}

int gn_kernel_tls_close_notify(const struct gn_kernel_tls *tls)
{
	static const uint8_t alert[] = {1 /* warning */, 0 /* close_notify */};

	return send_record(tls, SSL3_RT_ALERT, alert, sizeof(alert));
}

void gn_kernel_tls_end(struct gn_kernel_tls *tls)
{
	OPENSSL_cleanse(tls->secret, sizeof(tls->secret));
}
