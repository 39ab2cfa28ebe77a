/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconnect FILE ROLE N - open the volume of a role of a configuration in N threads at once, as the
 * clients of a target do that has started again, and print how many seconds pass until all
 * sessions run:
 *	reconnect SECONDS s
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gantry/client.h>

#define MOST 1024

static const char *file, *role;
static pthread_barrier_t start;

struct session {
	pthread_t thread;
	struct gantry_volume *volume;
	int rc;
};

static struct session sessions[MOST];

/* Sessions use little memory, because one process prepares the memory of all 256. */
static void *open_one(void *arg)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct session *s = arg;

	attr.depth = 1;
	attr.copy_bytes = 4096;
	pthread_barrier_wait(&start);
	s->rc = gantry_volume_open_role(file, role, &attr, &s->volume);
	if (s->rc)
		fprintf(stderr, "reconnect: session %td: %s\n", s - sessions, gantry_error());
	return NULL;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	unsigned long n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	double start_s;
	int rc = 0;

	if (n < 1 || n > MOST) {
		fprintf(stderr, "usage: reconnect FILE ROLE N (1 to %d)\n", MOST);
		return 2;
	}
	file = argv[1];
	role = argv[2];
	pthread_barrier_init(&start, NULL, (unsigned)n + 1);
	for (unsigned long i = 0; i < n; i++)
		if (pthread_create(&sessions[i].thread, NULL, open_one, &sessions[i])) {
			fprintf(stderr, "reconnect: cannot create a thread: raise ulimit -u\n");
			return 1;
		}
	pthread_barrier_wait(&start);
	start_s = now_s();
	for (unsigned long i = 0; i < n; i++) {
		pthread_join(sessions[i].thread, NULL);
		rc |= sessions[i].rc;
	}
	if (!rc)
		printf("reconnect %.3f s\n", now_s() - start_s);
	for (unsigned long i = 0; i < n; i++)
		if (sessions[i].volume && gantry_volume_close(&sessions[i].volume))
			rc = 1;
	return rc != 0;
}
