/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak - kills, stops and restarts real processes, exchanges their volume, and checks that no
 * acknowledged write is lost
 *
 *     soak [--kills N] [--writes N] [--seconds N] [--limit SECONDS] [--seed N] [--pace MS] [--keep]
 *     [--verbose]
 *          [--topology NAME] [--near DEVICE --far DEVICE --near-ip IP --far-ip IP]
 *     soak --self-test      shows that each kind of error is found
 *
 * A target, two gateways and three clients run as processes over shm-comch. Each client can reach
 * the volume through either gateway (front.c). Some rounds have another topology, with --topology
 * all: "stripe", in which the gateways stripe the volume over two targets; "failover", in which the
 * clients name both gateways as paths; "nbd", in which nbdkit serves the file to the target, through
 * a relay that breaks replies (nbd_relay.c). Only with --topology rbd the volume is an image of a
 * Ceph cluster, of which one OSD is killed (rbd.sh).
 *
 * With --near and --far the processes run over the network between these two devices: gateways
 * have the options of the device NEAR, all others those of FAR. All rounds are plain then, unless
 * --topology names another one.
 * For TCP on loopback, both are 'transport = "tcp";', with two addresses in 127.0.0.0/8.
 * They use a new directory in TMPDIR.
 *
 * The seed determines all events. The journal of the clients (soak.h) lies in a memfd of this
 * process. The environment has GANTRY and GANTRY_PLUGINS, as for all tests. SEED in the environment
 * is the same as --seed.
 *
 * Exit status: 0: no error; 1: interrupted, or errors: the directory with all logs is kept, and its
 * name is printed; 2: usage.
 */
#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soak/driver.h"

#define N(value) ((unsigned long long)(value))

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int set_up(struct driver *d)
{
	const char *tmp = getenv("TMPDIR"), *plugins = getenv("GANTRY_PLUGINS"),
		   *asan = getenv("ASAN_OPTIONS");
	struct sigaction sa = {.sa_handler = on_signal};
	char path[1200], *slash;
	ssize_t n;

	snprintf(d->program, sizeof(d->program), "%s", or_empty(getenv("GANTRY")));
	n = readlink("/proc/self/exe", d->client, sizeof(d->client) - 32);
	if (!d->program[0] || n < 0) {
		errno = d->program[0] ? errno : ENOENT; /* GANTRY names no program */
		return -1;
	}
	d->client[n] = '\0';
	slash = strrchr(d->client, '/');
	strcpy(slash + 1, "client");
	snprintf(d->relay, sizeof(d->relay), "%.*s/nbd_relay", (int)(slash - d->client), d->client);
	if (plugins) {
		/* also load test plugins */
		snprintf(path, sizeof(path), "%s:%s/tests/.libs", plugins,
			 or_empty(getenv("top_builddir")));
		setenv("GANTRY_PLUGIN_PATH", path, 1);
	}
	/* freed memory that the allocator keeps must not look like a leak, see leaks.c */
	setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1);
	setenv("MALLOC_TRIM_THRESHOLD_", "65536", 1);
	snprintf(path, sizeof(path), "%s%squarantine_size_mb=8", or_empty(asan), asan ? ":" : "");
	setenv("ASAN_OPTIONS", path, 1);
	snprintf(d->dir, sizeof(d->dir), "%s/gantry-soak.XXXXXX",
		 tmp && strlen(tmp) < 32 ? tmp : "/tmp");
	if (!mkdtemp(d->dir))
		return -1;
	snprintf(d->conf, sizeof(d->conf), "%s/soak.conf", d->dir);
	snprintf(d->store, sizeof(d->store), "%s/store.img", d->dir);
	d->journal_fd = memfd_create("soak-journal", MFD_CLOEXEC);
	if (d->journal_fd < 0 || ftruncate(d->journal_fd, sizeof(*d->journal)))
		return -1;
	d->journal = mmap(NULL, sizeof(*d->journal), PROT_READ | PROT_WRITE, MAP_SHARED,
			  d->journal_fd, 0);
	if (d->journal == MAP_FAILED)
		return -1;
	d->rng = d->options.seed;
	d->journal->run = soak_random(&d->rng);
	d->journal->sync_permille = 20;
	d->journal->pace = d->options.pace;
	snprintf(d->journal->bug, sizeof(d->journal->bug), "%s", d->options.bug);
	d->began = soak_ms();
	d->interrupted = &interrupted;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	children_init(d);
	return 0;
}

static void print_records(const struct driver *d)
{
	uint32_t n = atomic_load(&d->journal->n_records);

	for (uint32_t i = 0; i < n && i < SOAK_RECORDS; i++)
		if (atomic_load(&d->journal->records[i].ready))
			printf("%s: %s\n", soak_kinds[d->journal->records[i].kind],
			       d->journal->records[i].text);
}

static void summarize(const struct driver *d)
{
	uint64_t reads = 0, blocks = 0, flushes = 0, timeouts = 0, sessions = 0, dropped = 0,
		 mixed = 0, io_errors = 0;

	for (unsigned i = 0; i < SOAK_CLIENTS; i++) {
		const struct soak_client *c = &d->journal->clients[i];

		reads += atomic_load(&c->reads);
		blocks += atomic_load(&c->blocks_read);
		flushes += atomic_load(&c->flushes);
		timeouts += atomic_load(&c->timeouts);
		sessions += atomic_load(&c->sessions);
		dropped += atomic_load(&c->dropped);
		mixed += atomic_load(&c->mixed);
		io_errors += atomic_load(&c->io_errors);
	}
	printf("soak: seed=%llu seconds=%llu rounds=%llu\n", N(d->options.seed),
	       N((soak_ms() - d->began) / 1000), N(d->rounds));
	printf("soak: longest wait=%llu ms (at %llu ms: %s)\n", N(d->longest_wait),
	       N(d->longest_at), or_empty(d->longest_what));
	printf("soak: sessions=%llu flushes=%llu timeouts=%llu undone=%llu torn-by-kill=%llu leak-checks=%llu "
	       "anonymous-growth=%luKiB blocks-offline=%llu\n",
	       N(sessions), N(flushes), N(timeouts), N(dropped), N(mixed), N(d->leak_checks),
	       d->anon_growth, N(d->blocks_checked));
	printf("soak: stalls=%llu io-errors=%llu fences=%llu kept-images=%llu aborted-osds=%u rejected: sizes=%llu legs=%llu; lies:",
	       N(d->stalls), N(io_errors), N(d->fences), N(d->kept_images), d->osd_aborts,
	       N(d->rejected_sizes), N(d->rejected_legs));
	for (unsigned i = 0; i < SOAK_LIES; i++)
		printf(" %s=%llu", soak_lies[i], N(atomic_load(&d->journal->lies[i])));
	printf("\n");
	printf("soak: kills: client=%llu gateway=%llu target=%llu nbdkit=%llu relay=%llu osd=%llu; stops=%llu restarts=%llu failovers=%llu moves=%llu "
	       "exchanges=%llu memory-losses=%llu; "
	       "acknowledged writes=%llu, reads checked=%llu (%llu blocks), errors %u\n",
	       N(d->kills[CHILD_CLIENT]), N(d->kills[CHILD_GATEWAY]), N(d->kills[CHILD_TARGET]),
	       N(d->kills[CHILD_NBDKIT]), N(d->kills[CHILD_RELAY]), N(d->kills[CHILD_OSD]),
	       N(d->stops), N(d->terms), N(d->fail_overs), N(d->moves), N(d->exchanges),
	       N(d->losses), N(total_writes(d)), N(reads), N(blocks),
	       atomic_load(&d->journal->n_records));
}

static int run(struct driver *d)
{
	if (set_up(d)) {
		if (d->journal && d->journal != MAP_FAILED)
			print_records(d);
		fprintf(stderr, "soak: cannot start (GANTRY=%s): %s\n", d->program,
			strerror(errno));
		return 2;
	}
	printf("soak: seed=%llu dir=%s\n", N(d->options.seed), d->dir);
	fflush(stdout);
	run_rounds(d);
	kill_all(d);
	print_records(d);
	summarize(d);
	if (atomic_load(&d->journal->n_records)) {
		printf("soak: failed: logs and store are in %s; SEED=%llu repeats the plan\n",
		       d->dir, N(d->options.seed));
		if (d->options.keep || !d->options.bug[0])
			return 1;
	}
	if (!d->options.keep)
		nftw(d->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (interrupted)
		printf("soak: interrupted\n");
	return interrupted ? 1 : atomic_load(&d->journal->n_records) != 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: soak [--kills N] [--writes N] [--seconds N] [--limit SECONDS] [--seed N] "
		"[--pace MS] [--keep] [--verbose]\n"
		"            [--topology plain|stripe|failover|nbd|rbd]\n"
		"            [--near DEVICE --far DEVICE --near-ip IP --far-ip IP]\n"
		"       soak --self-test\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"kills", 1, NULL, 'k'},    {"writes", 1, NULL, 'w'},  {"seconds", 1, NULL, 's'},
		{"limit", 1, NULL, 'l'},    {"seed", 1, NULL, 'S'},    {"pace", 1, NULL, 'p'},
		{"keep", 0, NULL, 'K'},     {"verbose", 0, NULL, 'v'}, {"self-test", 0, NULL, 't'},
		{"bug", 1, NULL, 'b'},      {"hang-ms", 1, NULL, 'h'}, {"near", 1, NULL, 'n'},
		{"far", 1, NULL, 'f'},      {"near-ip", 1, NULL, 'N'}, {"far-ip", 1, NULL, 'F'},
		{"topology", 1, NULL, 'T'}, {NULL, 0, NULL, 0},
	};
	static struct driver d = {
		.options = {.kills = 200, .writes = 200000, .bug = "", .hang_ms = 90000}};
	const char *seed = getenv("SEED"), *lacks;
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	d.options.seed = seed ? strtoull(seed, NULL, 10) : soak_ms() ^ ((uint64_t)getpid() << 32);
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'k':
			d.options.kills = strtoull(optarg, NULL, 10);
			break;
		case 'w':
			d.options.writes = strtoull(optarg, NULL, 10);
			break;
		case 's':
			d.options.seconds = strtoull(optarg, NULL, 10);
			break;
		case 'l':
			d.options.limit = strtoull(optarg, NULL, 10);
			break;
		case 'S':
			d.options.seed = strtoull(optarg, NULL, 10);
			break;
		case 'b':
			d.options.bug = optarg;
			break;
		case 'h':
			d.options.hang_ms = strtoull(optarg, NULL, 10);
			break;
		case 'p':
			d.options.pace = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'K':
			d.options.keep = 1;
			break;
		case 'n':
			d.options.near = optarg;
			break;
		case 'f':
			d.options.far = optarg;
			break;
		case 'N':
			d.options.near_ip = optarg;
			break;
		case 'F':
			d.options.far_ip = optarg;
			break;
		case 'T':
			d.options.topology = topology_find(optarg);
			if (!d.options.topology)
				return usage();
			lacks = service_lacks(d.options.topology->service);
			if (lacks) {
				printf("soak: %s\n", lacks);
				return SOAK_SKIPPED;
			}
			break;
		case 'v':
			d.options.verbose = 1;
			break;
		case 't':
			return self_test(argv[0]);
		default:
			return usage();
		}
	}
	if (!d.options.near != !d.options.far || !d.options.near != !d.options.near_ip ||
	    !d.options.near != !d.options.far_ip)
		return usage();
	return optind == argc ? run(&d) : usage();
}
