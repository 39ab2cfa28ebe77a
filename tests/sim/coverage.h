/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coverage.h - the coverage of the runs of a range of seeds: the transitions of the product's state
 * machines that the runs have taken
 */
#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

#include <stdint.h>
#include <stdio.h>

enum sim_machine {
	SIM_CLIENT, /* core/session/session_client.c: enum gn_state */
	SIM_PHASE,  /* core/session/session_client.c, client_steps.c: enum gn_client_phase */
	SIM_SERVER, /* core/session/session_server.c: enum gn_state, SIM_SERVER_ENDING */
	SIM_VOLUME, /* core/engine/engine_session.c, engine_resume.c: enum gn_engine_state */
	SIM_CONN,   /* plugins/transport/shm-comch/shm_conn.c: enum comch_state */
	SIM_TCP,    /* plugins/transport/tcp/tcp_conn.c: enum tcp_conn_state */
	SIM_LINK,   /* plugins/transport/tcp/tcp_link.c: enum tcp_link_state */
	SIM_DISK,   /* plugins/role/vhost-user-blk/vhost_socket.c: enum vhost_phase */
	SIM_MEMORY, /* plugins/role/vhost-user-blk/vhost_queue.c: enum vhost_memory_step */
	SIM_MACHINES
};
#define SIM_STATES 9
#define SIM_SERVER_ENDING 7 /* the session ends, whatever its state was */

struct sim_coverage {
	uint64_t transitions[SIM_MACHINES][SIM_STATES][SIM_STATES];
};

/* Copies of the product's files call this when the state of an object has changed. */
void sim_state_changed(enum sim_machine machine, int from, int to);
/* Add the coverage of this process to `all`, which several processes share, and clear it. */
void sim_coverage_move(struct sim_coverage *all);
/* Print the transitions that were reached, and those that were not. */
void sim_coverage_print(const struct sim_coverage *all, FILE *out);

#endif
