/* SPDX-License-Identifier: BSD-3-Clause */
/* leaks.c - measures the resources of processes, and finds files and children that they left */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "soak/driver.h"

/*
 * Growth of anonymous memory that does not count as a leak, KiB. File-backed pages are not
 * counted, because clients fault in regions over time. The allocator keeps some freed
 * memory: 0.5 MiB were measured. The address sanitizer keeps more, for quarantine_size_mb=8 and its
 * own tables: 16.4 MiB were measured in a target with the backend nbd, whose handles are large.
 */
#if defined(__SANITIZE_ADDRESS__)
#define ANON_TOLERANCE (32u << 10)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ANON_TOLERANCE (32u << 10)
#endif
#endif
#ifndef ANON_TOLERANCE
#define ANON_TOLERANCE (4u << 10)
#endif
/* Longest time until the resources of killed peers are released. */
#define RELEASE_MS 20000
#define SEEDED_RELEASE_MS 3000 /* in the self test, where a leak is expected */

static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Returns the number of threads, without kernel threads, which io_uring keeps for some seconds. */
static unsigned threads_of(pid_t pid)
{
	char path[320], comm[32];
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, entry->d_name);
		f = fopen(path, "re");
		n += f && fgets(comm, sizeof(comm), f) && strncmp(comm, "iou-", 4) != 0;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return n;
}

int usage_of(const struct child *c, struct usage *usage)
{
	char path[64], line[512], rights[8];
	FILE *f;

	memset(usage, 0, sizeof(*usage));
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)c->pid);
	usage->fds = entries(path);
	usage->threads = threads_of(c->pid);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)c->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %7s", rights) == 1 && rights[3] == 's')
			usage->maps++;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)c->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "RssAnon:", 8))
			usage->anon = strtoul(line + 8, NULL, 10);
	if (f)
		fclose(f);
	return usage->fds && usage->anon ? 0 : -1;
}

int check_usage(struct driver *d, const struct child *c, const struct usage *base)
{
	uint64_t end = soak_ms() + (d->options.bug[0] ? SEEDED_RELEASE_MS : RELEASE_MS);
	struct usage now;

	for (;;) {
		if (usage_of(c, &now)) {
			soak_report(d->journal, SOAK_LEAK, "%s: cannot read /proc/%d", c->name,
				    (int)c->pid);
			return -1;
		}
		if (now.fds <= base->fds && now.maps <= base->maps &&
		    now.threads <= base->threads && now.anon <= base->anon + ANON_TOLERANCE) {
			d->leak_checks++;
			if (d->options.verbose)
				printf("%s: anonymous memory %lu KiB (was %lu)\n", c->name,
				       now.anon, base->anon);
			if (now.anon > base->anon + d->anon_growth)
				d->anon_growth = now.anon - base->anon;
			return 0;
		}
		if (soak_ms() >= end)
			break;
		if (wait_ms(d, 20))
			return -1;
	}
	soak_report(
		d->journal, SOAK_LEAK,
		"%s: descriptors %u (were %u), mappings %u (%u), threads %u (%u), anonymous memory %lu KiB (%lu)",
		c->name, now.fds, base->fds, now.maps, base->maps, now.threads, base->threads,
		now.anon, base->anon);
	return -1;
}

static struct driver *walker;

static int left_behind(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_F)
		soak_report(walker->journal, SOAK_LEAK, "file was not removed: %s", path);
	return 0;
}

/* The driver inherits children of killed processes. They can end a moment after their parent. */
static void check_orphans(struct driver *d)
{
	uint64_t end = soak_ms() + (d->options.bug[0] ? SEEDED_RELEASE_MS : RELEASE_MS);
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG);
	while ((pid >= 0 || errno != ECHILD) && !wait_ms(d, pid > 0 ? 0 : 20) && soak_ms() < end);
	if (pid >= 0)
		soak_report(d->journal, SOAK_LEAK, "a child of a killed process has not ended");
}

int check_files(struct driver *d)
{
	char path[96];

	walker = d;
	snprintf(path, sizeof(path), "%s/run", d->dir);
	nftw(path, left_behind, 8, FTW_PHYS);
	check_orphans(d);
	return tick(d);
}
