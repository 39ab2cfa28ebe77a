/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_agents.c - processes that served a lost session and can still write to its memory. Control
 * thread.
 *
 * A server answers HELLO after the lost session has been drained on the path from that server to
 * the volume. A process on the former path is not on it if the session resumes on another path. If
 * such a process copies data by the CPU, and was stopped, it can write what it has received long
 * ago when it continues. So the session waits until
 *
 *     - the process has ended, or
 *     - the new server is the same process: it has drained the lost session itself. A process that
 *       is not visible here is known by its path: a listener on the same path takes the place of a
 *       process that has ended.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "engine/engine_priv.h"

static int serves_again(const struct gantry_engine *session, const struct gn_engine_agent *agent,
			int32_t server)
{
	return agent->pid > 0 ? agent->pid == server : agent->path == session->path;
}

static int has_ended(const struct gn_engine_agent *agent)
{
	struct pollfd p = {.fd = agent->fd, .events = POLLIN};

	return agent->fd >= 0 && poll(&p, 1, 0) > 0;
}

void gn_engine_agents_add(struct gantry_engine *session, const struct gantry_client *client)
{
	struct gn_engine_agent agent = {.pid = -1, .fd = -1, .path = session->path};
	int rc = session->rh->client_agent(client, &agent.pid);

	if (rc == -ENOENT)
		return;
	if (rc >= 0)
		agent.fd = rc;
	/* the last entry stands for all further processes: of them nothing is known */
	if (session->n_agents + 1 >= GN_ENGINE_AGENTS) {
		if (agent.fd >= 0)
			close(agent.fd);
		agent = (struct gn_engine_agent){.pid = -1, .fd = -1, .path = UINT32_MAX};
	}
	if (session->n_agents < GN_ENGINE_AGENTS)
		session->agents[session->n_agents++] = agent;
}

static void forget(struct gantry_engine *session, uint32_t i)
{
	if (session->agents[i].fd >= 0)
		close(session->agents[i].fd);
	session->agents[i] = session->agents[--session->n_agents];
}

int gn_engine_agents_left(struct gantry_engine *session, const struct gantry_client *client)
{
	int32_t server = 0, pid;

	session->rh->client_agent(client, &server);
	for (uint32_t i = session->n_agents; i-- > 0;)
		if (serves_again(session, &session->agents[i], server) ||
		    has_ended(&session->agents[i]))
			forget(session, i);
	if (session->n_agents == 0)
		return 0;
	pid = session->agents[0].pid;
	if (session->agents_logged)
		return 1;
	session->agents_logged = 1;
	if (pid > 0)
		gantry_log_warn(
			session->rh->host,
			"session waits id=%016llx: process %d, which served it, can still write "
			"to its memory (pid=%d): end that process, or let it continue",
			(unsigned long long)session->id, pid, pid);
	else
		gantry_log_warn(
			session->rh->host,
			"session waits id=%016llx: the process that served it can still write "
			"to its memory, and is not visible here: let it continue, or start it "
			"again",
			(unsigned long long)session->id);
	return 1;
}

void gn_engine_agents_fini(struct gantry_engine *session)
{
	while (session->n_agents > 0)
		forget(session, session->n_agents - 1);
}
