/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words.c - what one side of a connection says to the other. When the transport has no room, what
 * must be said waits here, in order, and messages of the program wait behind it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comch/comch.h"

struct gd_word {
	struct gd_word *next;
	uint32_t len;
	struct gd_comch_head head; /* and more behind it */
};

static int send_bytes(struct doca_comch_connection *conn, const void *bytes, uint32_t len)
{
	return conn->link ? gd_transport_ops(conn->transport)->send_ctrl(conn->link, bytes, len)
			  : -ENOTCONN;
}

static struct gd_comch_head head_of(enum gd_comch_word word, uint32_t a, uint32_t b, uint32_t c)
{
	return (struct gd_comch_head){
		.word = (uint16_t)word,
		.version = word == GD_HELLO ? GD_COMCH_VERSION : 0,
		.a = a,
		.b = b,
		.c = c,
	};
}

int gd_conn_say(struct doca_comch_connection *conn, enum gd_comch_word word, uint32_t a, uint32_t b,
		uint32_t c)
{
	const struct gd_comch_head head = head_of(word, a, b, c);

	return conn->words ? -EAGAIN : send_bytes(conn, &head, sizeof(head));
}

static int keep(struct doca_comch_connection *conn, const void *bytes, uint32_t len)
{
	struct gd_word *word = malloc(sizeof(*word) + len), **last = &conn->words;

	if (!word)
		return -ENOMEM;
	word->next = NULL;
	word->len = len;
	memcpy(&word->head, bytes, len);
	while (*last)
		last = &(*last)->next;
	*last = word;
	gd_end_wake(conn->end, GD_COMCH_RETRY_NS);
	return 0;
}

int gd_conn_tell_bytes(struct doca_comch_connection *conn, const void *bytes, uint32_t len)
{
	int rc = conn->words ? -EAGAIN : send_bytes(conn, bytes, len);

	return rc == -EAGAIN ? keep(conn, bytes, len) : rc;
}

int gd_conn_tell(struct doca_comch_connection *conn, enum gd_comch_word word, uint32_t a,
		 uint32_t b, uint32_t c)
{
	const struct gd_comch_head head = head_of(word, a, b, c);

	return gd_conn_tell_bytes(conn, &head, sizeof(head));
}

bool gd_conn_tell_rest(struct doca_comch_connection *conn)
{
	struct gd_word *word;

	while ((word = conn->words)) {
		if (send_bytes(conn, &word->head, word->len) == -EAGAIN) {
			gd_end_wake(conn->end, GD_COMCH_RETRY_NS);
			return false;
		}
		conn->words = word->next;
		free(word);
	}
	return true;
}

void gd_conn_forget_consumer(struct doca_comch_connection *conn, uint32_t id)
{
	for (struct gd_word **p = &conn->words, *word; (word = *p);) {
		if (word->head.word != GD_CONSUMER || word->head.b != id) {
			p = &word->next;
			continue;
		}
		*p = word->next;
		free(word);
	}
}

void gd_conn_forget_words(struct doca_comch_connection *conn)
{
	struct gd_word *word;

	while ((word = conn->words)) {
		conn->words = word->next;
		free(word);
	}
}
