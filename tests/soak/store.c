/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store.c - the file of the volume: compares it with the journal, exchanges it for another volume,
 * damages it as a seeded bug
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "soak/driver.h"

#define BYTES ((off_t)SOAK_BLOCKS * SOAK_BLOCK)
#define CHUNK (STRIPE_CHUNK / SOAK_BLOCK)
#define FOREIGN_SEQ 2u /* sequence number of the only write to each block of the other volume */

static int broken(struct driver *d, const char *what)
{
	soak_report(d->journal, SOAK_STATUS, "%s: %s: %s", d->store, what, strerror(errno));
	return -1;
}

void store_path(const struct driver *d, unsigned i, char path[128])
{
	if (d->topology->scratch)
		snprintf(path, 128, "%s.%u", d->store, i);
	else
		snprintf(path, 128, "%s", d->store);
}

/* Returns the offset of a block in its file, and sets *file to the number of that file. */
static off_t locate(const struct driver *d, uint32_t block, unsigned *file)
{
	const uint32_t n = d->topology->targets, chunk = block / CHUNK;

	*file = chunk % n;
	return ((off_t)(chunk / n) * CHUNK + block % CHUNK) * SOAK_BLOCK;
}

static int make(struct driver *d, const char *path, const struct soak_journal *content, off_t bytes)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600), rc = 0;
	uint64_t buf[SOAK_WORDS];

	if (fd < 0 || ftruncate(fd, bytes))
		rc = broken(d, "create");
	/*
	 * the target keeps the UUID in an attribute; a UUID derived from the path would stay the
	 * same when the file is exchanged
	 */
	if (!rc &&
	    (fsetxattr(fd, "user.gantry.soak", "1", 1, 0) || fremovexattr(fd, "user.gantry.soak")))
		rc = broken(d, "the file system of TMPDIR stores no user attributes");
	for (uint32_t b = 0; content && !rc && b < bytes / SOAK_BLOCK; b++) {
		soak_fill(content, buf, b, FOREIGN_SEQ);
		if (pwrite(fd, buf, sizeof(buf), (off_t)b * SOAK_BLOCK) != (ssize_t)sizeof(buf))
			rc = broken(d, "write");
	}
	/* without support for holes, a discard can have no effect */
	if (!rc && !content)
		d->journal->can_discard = !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						     bytes - SOAK_BLOCK, SOAK_BLOCK);
	if (fd >= 0)
		close(fd);
	return rc;
}

int store_create(struct driver *d)
{
	char path[128];
	int rc;

	rc = service_create(d, BYTES);
	if (rc)
		return rc < 0 ? -1 : 0;
	for (unsigned i = 0; i < d->topology->targets && !rc; i++) {
		store_path(d, i, path);
		rc = make(d, path, NULL, BYTES / d->topology->targets);
	}
	return rc;
}

void store_remove(struct driver *d)
{
	char path[128];

	service_remove(d);
	for (unsigned i = 0; i < d->topology->targets; i++) {
		store_path(d, i, path);
		unlink(path);
	}
}

static int open_stores(struct driver *d, int fds[])
{
	const off_t bytes = BYTES / d->topology->targets;
	struct stat st;
	char path[128];

	for (unsigned i = 0; i < d->topology->targets; i++) {
		store_path(d, i, path);
		if (service_fetch(d, path))
			return -1;
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0 || fstat(fds[i], &st))
			return broken(d, "open");
		if (st.st_size != bytes)
			soak_report(d->journal, SOAK_STATUS, "%s has %lld bytes", path,
				    (long long)st.st_size);
	}
	return 0;
}

int store_check(struct driver *d)
{
	struct soak_block *blocks = d->journal->blocks[atomic_load(&d->journal->store)];
	int fds[GATEWAY - TARGET] = {-1, -1}, before = d->failed;
	uint64_t buf[SOAK_WORDS];
	struct soak_window w;
	unsigned file;
	uint32_t found;
	off_t at;

	if (open_stores(d, fds))
		return -1;
	for (uint32_t b = 0; b < SOAK_BLOCKS && !d->failed; b++) {
		at = locate(d, b, &file);
		if (pread(fds[file], buf, sizeof(buf), at) != (ssize_t)sizeof(buf)) {
			broken(d, "read");
			break;
		}
		soak_window_begin(&w, &blocks[b]);
		soak_window_end(&w, &blocks[b]);
		soak_check(d->journal, buf, b, &w, &found, "offline");
		d->blocks_checked++;
		tick(d);
	}
	for (unsigned i = 0; i < d->topology->targets; i++)
		close(fds[i]);
	return d->failed && !before ? -1 : 0;
}

void store_damage(struct driver *d, int torn)
{
	uint64_t buf[SOAK_WORDS];
	uint32_t acked;
	int fd;

	if (service_damage(d))
		return;
	fd = open(d->store, O_WRONLY | O_CLOEXEC);
	for (uint32_t b = 0; fd >= 0 && b < SOAK_BLOCKS; b++) {
		acked = atomic_load(&d->journal->blocks[0][b].acked);
		if (soak_is_zero(acked) || acked < 8)
			continue;
		soak_fill(d->journal, buf, b, acked - 4);
		if (pwrite(fd, buf, torn ? SOAK_BLOCK / 2 : SOAK_BLOCK, (off_t)b * SOAK_BLOCK) > 0)
			break;
	}
	if (fd >= 0)
		close(fd);
}

static void paths(const struct driver *d, unsigned leg, char is[128], char away[136],
		  char foreign[136])
{
	store_path(d, leg, is);
	snprintf(away, 136, "%s.away", is);
	snprintf(foreign, 136, "%s.foreign", is);
}

/* Returns a journal of which only `run` is set: soak_fill() makes other words with its number. */
static const struct soak_journal *other_run(const struct driver *d)
{
	static struct soak_journal other;

	other.run = ~d->journal->run;
	return &other;
}

static int swap(struct driver *d)
{
	char first[128], second[128], away[136], foreign[136];

	paths(d, 1, second, away, foreign);
	paths(d, 0, first, away, foreign);
	if (rename(first, away) || rename(second, first) || rename(away, second))
		return broken(d, "rename");
	return 0;
}

int store_exchange(struct driver *d, const struct exchange *x)
{
	char is[128], away[136], foreign[136];
	int rc;

	if (x->swap)
		return swap(d);
	paths(d, x->leg, is, away, foreign);
	unlink(foreign);
	if (make(d, foreign, other_run(d), x->bytes))
		return -1;
	rc = service_exchange(d, foreign);
	if (rc)
		return rc < 0 ? -1 : 0;
	if (rename(is, away) || rename(foreign, is))
		return broken(d, "rename");
	return 0;
}

/* Report a change of the other volume. */
static void check_foreign(struct driver *d, const char *path, off_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t buf[SOAK_WORDS], is[SOAK_WORDS];

	for (uint32_t b = 0; b < bytes / SOAK_BLOCK; b++) {
		soak_fill(other_run(d), buf, b, FOREIGN_SEQ);
		if (pread(fd, is, sizeof(is), (off_t)b * SOAK_BLOCK) == (ssize_t)sizeof(is) &&
		    !memcmp(buf, is, sizeof(is)))
			continue;
		soak_report(d->journal, SOAK_FOREIGN,
			    "exchange: block %u of the other volume was changed", b);
		break;
	}
	if (fd >= 0)
		close(fd);
}

int store_return(struct driver *d, const struct exchange *x)
{
	char is[128], away[136], foreign[136];
	int rc;

	if (x->swap)
		return swap(d);
	paths(d, x->leg, is, away, foreign);
	rc = service_return(d, foreign);
	if (rc < 0)
		return -1;
	check_foreign(d, rc ? foreign : is, x->bytes);
	if (!rc && rename(away, is))
		return broken(d, "rename");
	unlink(foreign);
	return tick(d);
}
