/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.h - the modules of the driver, which starts processes, disturbs them, and compares the
 * volume with the journal
 */
#ifndef SOAK_DRIVER_H
#define SOAK_DRIVER_H

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

#include "soak/soak.h"

enum child_kind {
	CHILD_TARGET,
	CHILD_GATEWAY,
	CHILD_CLIENT,
	CHILD_NBDKIT,
	CHILD_RELAY, /* between nbdkit and the target: nbd_relay.c */
	CHILD_OSD,
	CHILD_KINDS
};
extern const char *const child_kinds[CHILD_KINDS];

#define TARGET 0u  /* index of the first of two targets */
#define GATEWAY 2u /* index of the first of two gateways */
#define CLIENT 4u  /* index of the first of three clients */
#define NBDKIT (CLIENT + SOAK_CLIENTS)
#define RELAY (NBDKIT + 1)
#define OSD (RELAY + 1)
#define CHILDREN (OSD + 1)

/* How the processes of a round are connected. */
struct topology {
	const char *name;
	unsigned targets; /* more than one: the gateways stripe the volume */
	int paths;        /* each client names both gateways, and finds the one that runs */
	/* process behind the backend of the target, see service.c; CHILD_TARGET: none */
	enum child_kind service;
	/* longest time until a target serves that was started again, s; 0: the default of gantry */
	unsigned start_s;
	/* bits 1 << enum child_kind: their resources change by themselves, so no leak is visible */
	unsigned unmeasured;
	int scratch; /* the round has files of its own: its volume has another UUID */
};
#define STRIPE_CHUNK (4 * SOAK_BLOCK)

struct child {
	char name[16]; /* name of its role and of its log */
	enum child_kind kind;
	unsigned index; /* number within its kind */
	int used;       /* the topology of the round has this process */
	pid_t pid;      /* 0: does not run */
	int ending;     /* signal by which the driver ends the process; 0: the process must run */
	int stopped;
	uint64_t starts, started; /* number of starts; time of the last start, ms */
	unsigned listened;        /* how often it had listened before the last start */
	uint64_t continue_at, restart_at, term_at; /* ms; 0: not planned */
};

/* The resources of a process. */
struct usage {
	unsigned fds, maps, threads; /* maps: mappings of shared memory and files */
	unsigned long anon;          /* anonymous memory, KiB */
};

struct options {
	uint64_t kills, writes;  /* the run ends when both are reached */
	uint64_t seconds, limit; /* seconds: length of the run instead; limit: most seconds */
	uint64_t seed;
	const char *bug;                 /* name of a seeded bug, for the self test */
	const struct topology *topology; /* of all rounds; NULL: that of the schedule */
	/* over a network: options of the device of the gateways, and of all other processes */
	const char *near, *far;
	const char *near_ip, *far_ip; /* IP addresses of near and far */
	uint64_t hang_ms;
	uint32_t pace; /* ms, see soak.h */
	int keep;      /* keep the directory */
	int verbose;
};

struct driver {
	struct options options;
	struct soak_journal *journal;
	int journal_fd;
	char dir[64], conf[96], store[96];
	char program[512], client[512], relay[512];
	uint64_t rng, began;
	const struct topology *topology; /* of this round */
	struct child children[CHILDREN];
	unsigned gateway_of[SOAK_CLIENTS]; /* the gateway for the next session of each client */
	uint64_t kills[CHILD_KINDS], stops, terms, exchanges, losses, moves, fail_overs;
	/*
	 * stalls of the service; clients of the cluster that a target has fenced; attempts to
	 * delete the image that failed; volumes of another size, and legs, that were rejected
	 */
	uint64_t stalls, fences, kept_images, rejected_sizes, rejected_legs;
	unsigned osd_aborts; /* OSDs that ended by SIGABRT, and started again */
	uint64_t rounds, leak_checks, blocks_checked;
	const volatile sig_atomic_t *interrupted;
	uint64_t longest_wait, longest_at; /* longest wait_for(), and its begin, ms */
	const char *longest_what;
	unsigned long anon_growth; /* KiB: maximum of one process in one round */
	int failed;
};

/* The parameters of a round. */
struct round {
	int memory;                     /* the target has its volume in memory */
	int direct, sync;               /* the file has the option direct; the engine sync */
	int crc;                        /* checksums from client to target */
	int mapped;                     /* target and gateways can map regions */
	unsigned lanes;                 /* lanes of target and gateways */
	unsigned io_timeout, heartbeat; /* ms */
	int lies;                       /* the relay breaks replies of the NBD server */
	int stalls;                     /* the service stops for longer than IO may take */
	unsigned quiesce_ms;            /* quiesce_time of the backend nbd */
	unsigned op_timeout_s;          /* osd_op_timeout of the backend rbd; 0: its default */
	int uuid;                       /* the gateways name the UUID of the volume */
	unsigned victims;               /* kinds that events hit: bits 1 << enum child_kind */
};

static inline uint64_t draw(struct driver *d, uint64_t n)
{
	return soak_random(&d->rng) % n;
}

/* -- children.c -- */
void children_init(struct driver *d);
void child_start(struct driver *d, struct child *c);
/* Kill the process; start it again after restart_ms; -1: do not start it again. */
void child_kill(struct driver *d, struct child *c, int restart_ms);
/* Stop the process for `ms` milliseconds. */
void child_stop(struct driver *d, struct child *c, unsigned ms);
/* Send SIGTERM, after which the process must end with status 0. */
void child_term(struct driver *d, struct child *c, int restart_ms);
/* Reap, continue and restart processes as due; detect hangs. Non-zero: an error was found. */
int tick(struct driver *d);
/*
 * Call tick() every few ms until `true_yet` returns non-zero. Reports a hang if that takes too
 * long. Non-zero: an error was reported.
 */
int wait_for(struct driver *d, int (*true_yet)(struct driver *d), const char *what);
int wait_ms(struct driver *d, uint64_t ms);
int all_run(struct driver *d);
/* Whether all targets and gateways listen: one that ends earlier does not remove stale names. */
int all_listen(struct driver *d);
int no_child(struct driver *d);
/* End all processes by SIGTERM: clients, servers, service. Non-zero: an error was reported. */
int end_all(struct driver *d);
/* Returns how often the logs of the processes of a kind contain a text. */
unsigned log_count(struct driver *d, enum child_kind kind, const char *text);
/* Kill all processes without checks, at the end of the driver. */
void kill_all(struct driver *d);

/* -- front.c; non-zero: an error was reported -- */
int front_begin(struct driver *d);
/* Move the next session of each client of this gateway to the other gateway. */
int front_move(struct driver *d, unsigned gateway);
void front_end(struct driver *d);

/* -- leaks.c -- */
int usage_of(const struct child *c, struct usage *usage);
/*
 * Wait until the process holds no more resources than `base`. Its memory may have grown by up to
 * RSS_TOLERANCE. If it still holds more after a time limit, report a leak.
 */
int check_usage(struct driver *d, const struct child *c, const struct usage *base);
/* Report files that ended processes have left. */
int check_files(struct driver *d);

/* -- service.c; the int functions: non-zero: an error was reported, unless they say otherwise -- */
/* Returns NULL, or why this machine cannot run a service of this kind. */
const char *service_lacks(enum child_kind kind);
/* Called before each start of a child of this kind; and in the child, to execute its program. */
void service_before(struct driver *d, enum child_kind kind);
void service_exec(const struct driver *d, enum child_kind kind);
/* Returns whether a child of this kind serves. Only services take time until they do. */
int service_is_ready(struct driver *d, enum child_kind kind);
/* Write the options of the backend. Returns 0 if the topology has no service: nothing is written.*/
int service_backend(const struct driver *d, const struct round *r, FILE *f);
/* Start the processes of the service that do not run, and wait until they are ready. */
int service_start(struct driver *d);
/* Returns a process of the service, which the seed determines; NULL: the topology has none. */
struct child *service_draw(struct driver *d);
/* Kill a process of the service with IO in flight, and start it again. */
int service_lose(struct driver *d);
/* Make the volume of the service. Returns 1; 0: the volume is a file; -1: an error was reported. */
int service_create(struct driver *d, off_t bytes);
/* Copy that volume to a file. */
int service_fetch(struct driver *d, const char *path);
/* Change a block of that volume: a seeded bug. Returns 0 if the volume is a file. */
int service_damage(struct driver *d);
int service_remove(struct driver *d);
/*
 * Give its name to another volume, which has the content of the file `path`, and the reverse, after
 * a copy of the other volume to `path`. Return 0 if the volume is a file.
 */
int service_exchange(struct driver *d, const char *path);
int service_return(struct driver *d, const char *path);
/* Try to delete the volume while the target serves it: the attempt must fail. */
int service_delete(struct driver *d);

/* -- store.c -- */
/* Make the files of the topology. */
int store_create(struct driver *d);
/* The path of the file of target i of the topology. */
void store_path(const struct driver *d, unsigned i, char path[128]);
/* Compare the files with the journal. Precondition: no process runs. */
int store_check(struct driver *d);
void store_remove(struct driver *d);
/* Change the store, but not the journal: a seeded bug. */
void store_damage(struct driver *d, int torn);
/* What takes the place of the volume. */
struct exchange {
	int swap;     /* the two files of the topology change places */
	unsigned leg; /* otherwise: this file is replaced by another volume of so many bytes */
	off_t bytes;
};
/*
 * store_exchange() exchanges the volume. store_return() checks that no process has written the
 * other one, and exchanges them back.
 */
int store_exchange(struct driver *d, const struct exchange *x);
int store_return(struct driver *d, const struct exchange *x);

/* -- conf.c -- */
/* Returns 0, or -1 with errno. */
int conf_write(struct driver *d, const struct round *r);

/* -- exchange.c; non-zero: an error was reported -- */
/*
 * Exchange the volume for another one, for a while: no client must write to the other one, and all
 * must continue afterwards.
 */
int exchange(struct driver *d, struct round *r);

/* -- stall.c; non-zero: an error was reported -- */
/* Set the time limits of a round whose service stalls or breaks replies. */
void stall_choose(struct driver *d, struct round *r, int kills_target);
/* Wait until the relay has broken a reply in each way. */
int lie(struct driver *d);
/* Stop a process of the service for longer than an IO may take. */
int stall(struct driver *d);

/* -- rounds.c -- */
/* Wait until new writes of each client are acknowledged. */
int progress(struct driver *d);
int all_running(struct driver *d);
int all_foreign(struct driver *d);
/* Returns the topology of this name, or NULL. */
const struct topology *topology_find(const char *name);
#define SOAK_SKIPPED 77 /* exit status: the topology of the options does not run here */
int run_rounds(struct driver *d);
int finished(const struct driver *d);
uint64_t total_kills(const struct driver *d);
uint64_t total_writes(const struct driver *d);

/* -- self_test.c -- */
int self_test(const char *program);

#endif
