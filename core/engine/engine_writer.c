/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_writer.c - a former server of a lost session that can still write to its memory. Control
 * thread.
 *
 * A server answers HELLO after the lost session has been drained on the path from that server to
 * the volume. If the session resumes on another path, that drain does not cover the processes of
 * the former path. A stopped process that copies data by the CPU can still write received data when
 * it continues. So the session waits until
 *
 *     - the process has ended, or
 *     - the new server is the same process: it has drained the lost session itself. A process
 *       without a descriptor is known by its path: only one process at a time listens there.
 *
 * There is at most one such process: a session that waits for it is not started.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "engine/engine_priv.h"

static int serves_again(const struct gantry_engine *session, int32_t server)
{
	const struct gn_engine_writer *writer = &session->writer;

	return (writer->pid > 0 && writer->pid == server) ||
	       (writer->fd < 0 && writer->path == session->path);
}

static int has_ended(const struct gn_engine_writer *writer)
{
	struct pollfd p = {.fd = writer->fd, .events = POLLIN};

	return writer->fd >= 0 && poll(&p, 1, 0) > 0;
}

void gn_engine_writer_note(struct gantry_engine *session, const struct gantry_client *client)
{
	int32_t pid;
	int fd = session->rh->client_writer(client, &pid);

	if (fd == -ENOENT)
		return;
	gn_engine_writer_forget(session);
	session->writer = (struct gn_engine_writer){
		.pid = pid, .fd = fd < 0 ? -1 : fd, .path = session->path};
}

int gn_engine_writer_left(struct gantry_engine *session, const struct gantry_client *client)
{
	struct gn_engine_writer *writer = &session->writer;
	int32_t server;

	if (writer->pid == 0)
		return 0;
	session->rh->client_writer(client, &server);
	if (serves_again(session, server) || has_ended(writer)) {
		gn_engine_writer_forget(session);
		return 0;
	}
	if (!writer->is_logged)
		gantry_log_warn(
			session->rh->host,
			"session waits id=%016llx: its former server can still write to its memory "
			"(pid=%d): %s",
			(unsigned long long)session->id, writer->pid,
			writer->fd >= 0 ? "end that process, or let it continue"
					: "let it continue, or start it again");
	writer->is_logged = 1;
	return 1;
}

void gn_engine_writer_forget(struct gantry_engine *session)
{
	if (session->writer.pid != 0 && session->writer.fd >= 0)
		close(session->writer.fd);
	session->writer.pid = 0;
}
