/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thief - a role that tries to take over a session of its peer with the id alone. Only tests load
 * it.
 *
 * It opens a session through the first connect, unless the option `id` names a session of another
 * process. Then it opens sessions with that id and a higher epoch through the last connect: without
 * a secret, with each of two wrong secrets, and, if the session is its own, with the right secret.
 * It logs each result. For status 0 the peer must reject each attempt without the right secret. If
 * the thief also tries the right secret, the peer must accept it, and must end the first session
 * only for that attempt.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/role.h>

enum attempt { WITHOUT, WRONG_FIRST, WRONG_LAST, RIGHT, ATTEMPTS };

static const char *const names[ATTEMPTS] = {"no secret", "a secret with another first byte",
					    "a secret with another last byte", "the right secret"};

struct thief_conf {
	const char *id; /* id of the victim, in hexadecimal; "": the thief opens the victim */
};

struct thief {
	const struct gantry_role_host *rh;
	const struct thief_conf *conf;
	struct gantry_client *victim, *client; /* client: of the current attempt */
	uint64_t id;
	uint8_t secret[GANTRY_SECRET_BYTES]; /* of the victim */
	unsigned attempt;
	int victim_ended, client_ready, finished;
	int done; /* the right secret was accepted */
};

static const struct gantry_option options[] = {
	{"id", GANTRY_OPT_STRING, offsetof(struct thief_conf, id), "", 0, 0, NULL, NULL,
	 "Id of the session to take over."},
	GANTRY_OPTION_END,
};

static void finish(struct thief *t, const char *fault)
{
	if (fault)
		gantry_log_error(t->rh->host, "thief: %s: %s", names[t->attempt], fault);
	if (!t->finished)
		t->rh->finished(t->rh, fault ? 1 : 0);
	t->finished = 1;
}

static void ignore_region(void *arg, struct gantry_client *client,
			  const struct gantry_region *region)
{
	(void)arg;
	(void)client;
	(void)region;
}

static void ignore_start(void *arg, struct gantry_client *client)
{
	(void)arg;
	(void)client;
}

static void try_next(void *arg);

static void on_ready(void *arg, struct gantry_client *client,
		     const struct gantry_volume_info *volume)
{
	struct thief *t = arg;

	(void)volume;
	t->client_ready = 1;
	t->rh->client_close(client);
}

static void on_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct thief *t = arg;

	gantry_log_info(t->rh->host, "thief: %s: %s", names[t->attempt],
			t->client_ready ? "accepted" : text);
	t->rh->client_free(client);
	t->client = NULL;
	if (t->client_ready != (t->attempt == RIGHT))
		finish(t, t->client_ready ? "accepted" : "rejected");
	else if (!t->client_ready && reason != -EACCES)
		finish(t, "not rejected with EACCES");
	else if (t->victim_ended && t->attempt != RIGHT)
		finish(t, "the session ended");
	else if (!t->finished) /* the next attempt starts in the next turn */
		t->rh->post(t->rh, try_next, t);
}

static const struct gantry_client_events client_events = {
	.ready = on_ready,
	.exported = ignore_region,
	.started = ignore_start,
	.closed = on_closed,
};

static void choose_secret(struct thief *t, uint8_t secret[GANTRY_SECRET_BYTES])
{
	memset(secret, 0, GANTRY_SECRET_BYTES);
	if (t->attempt == WITHOUT)
		return;
	memcpy(secret, t->secret, GANTRY_SECRET_BYTES);
	if (t->attempt == WRONG_FIRST)
		secret[0] ^= 1;
	if (t->attempt == WRONG_LAST)
		secret[GANTRY_SECRET_BYTES - 1] ^= 1;
}

static void try_now(struct thief *t)
{
	struct gantry_session_attr attr = {
		.id = t->id, .epoch = 1000 + t->attempt, .lanes = 1, .depth = 1, .regions = 1};
	uint8_t secret[GANTRY_SECRET_BYTES];

	t->client_ready = 0;
	if (t->rh->client_open(t->rh, t->rh->n_connects - 1, &attr, &client_events, t,
			       &t->client)) {
		finish(t, "cannot open a session");
		return;
	}
	choose_secret(t, secret);
	t->rh->client_use_secret(t->client, secret);
}

static void try_next(void *arg)
{
	struct thief *t = arg;

	if (t->attempt == RIGHT) {
		t->done = 1;
		if (t->victim_ended)
			finish(t, NULL);
		return; /* the callback of the victim finishes */
	}
	t->attempt++;
	if (t->attempt == RIGHT && !t->victim)
		finish(t, NULL);
	else
		try_now(t);
}

static void log_secret(const struct thief *t)
{
	char text[2 * GANTRY_SECRET_BYTES + 1];

	for (unsigned i = 0; i < GANTRY_SECRET_BYTES; i++)
		snprintf(&text[2 * i], 3, "%02x", t->secret[i]);
	gantry_log_info(t->rh->host, "thief: the session has the secret %s", text);
}

static void victim_ready(void *arg, struct gantry_client *client,
			 const struct gantry_volume_info *volume)
{
	struct thief *t = arg;

	(void)volume;
	t->id = t->rh->client_id(client);
	t->rh->client_secret(client, t->secret);
	log_secret(t);
	try_now(t);
}

static void victim_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct thief *t = arg;

	(void)client;
	gantry_log_info(t->rh->host, "thief: the session ended: %s", text);
	t->victim_ended = 1;
	if (t->done)
		finish(t, NULL);
	else if (!t->id && reason)
		finish(t, "the first session was not opened");
}

static const struct gantry_client_events victim_events = {
	.ready = victim_ready,
	.exported = ignore_region,
	.started = ignore_start,
	.closed = victim_closed,
};

static int thief_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct thief *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->rh = rh;
	t->conf = conf;
	*role_p = t;
	return 0;
}

static int thief_start(void *role)
{
	const struct gantry_session_attr attr = {.epoch = 1, .lanes = 1, .depth = 1, .regions = 1};
	struct thief *t = role;

	if (t->conf->id[0] == '\0')
		return t->rh->client_open(t->rh, 0, &attr, &victim_events, t, &t->victim);
	t->id = strtoull(t->conf->id, NULL, 16);
	memset(t->secret, 0x5e, sizeof(t->secret));
	try_now(t);
	return 0;
}

static void thief_stop(void *role)
{
	finish(role, "stopped");
}

static void thief_close(void *role)
{
	free(role);
}

static void thief_report(void *role, struct gantry_writer *w)
{
	(void)role;
	(void)w;
}

static const struct gantry_role_ops ops = {
	.open = thief_open,
	.start = thief_start,
	.stop = thief_stop,
	.close = thief_close,
	.report = thief_report,
	.flags = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_WORKS,
};

GANTRY_PLUGIN(thief) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "thief",
	.version = "1",
	.summary = "tries to take over a session of its peer",
	.options = options,
	.conf_size = sizeof(struct thief_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
