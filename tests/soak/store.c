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
#define FOREIGN_SEQ 2u /* sequence number of the only write to each block of the other volume */

static int broken(struct driver *d, const char *what)
{
	soak_report(d->journal, SOAK_STATUS, "%s: %s: %s", d->store, what, strerror(errno));
	return -1;
}

static int make(struct driver *d, const char *path, const struct soak_journal *content)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600), rc = 0;
	uint64_t buf[SOAK_WORDS];

	if (fd < 0 || ftruncate(fd, BYTES))
		rc = broken(d, "create");
	/*
	 * the target keeps the UUID in an attribute; a UUID derived from the path would stay the
	 * same when the file is exchanged
	 */
	if (!rc &&
	    (fsetxattr(fd, "user.gantry.soak", "1", 1, 0) || fremovexattr(fd, "user.gantry.soak")))
		rc = broken(d, "the file system of TMPDIR stores no user attributes");
	for (uint32_t b = 0; content && !rc && b < SOAK_BLOCKS; b++) {
		soak_fill(content, buf, b, FOREIGN_SEQ);
		if (pwrite(fd, buf, sizeof(buf), (off_t)b * SOAK_BLOCK) != (ssize_t)sizeof(buf))
			rc = broken(d, "write");
	}
	/* without support for holes, a discard can have no effect */
	if (!rc)
		d->journal->can_discard = !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						     BYTES - SOAK_BLOCK, SOAK_BLOCK);
	if (!rc && content &&
	    pwrite(fd, buf, sizeof(buf), BYTES - SOAK_BLOCK) != (ssize_t)sizeof(buf))
		rc = broken(d, "write");
	if (fd >= 0)
		close(fd);
	return rc;
}

int store_create(struct driver *d)
{
	return make(d, d->store, NULL);
}

int store_check(struct driver *d)
{
	int fd = open(d->store, O_RDONLY | O_CLOEXEC), before = d->failed;
	uint64_t buf[SOAK_WORDS];
	struct soak_window w;
	struct stat st;
	uint32_t found;

	if (fd < 0 || fstat(fd, &st))
		return broken(d, "open");
	if (st.st_size != BYTES)
		soak_report(d->journal, SOAK_STATUS, "%s has %lld bytes", d->store,
			    (long long)st.st_size);
	for (uint32_t b = 0; b < SOAK_BLOCKS && !d->failed; b++) {
		if (pread(fd, buf, sizeof(buf), (off_t)b * SOAK_BLOCK) != (ssize_t)sizeof(buf)) {
			broken(d, "read");
			break;
		}
		soak_window_begin(&w, &d->journal->blocks[0][b]);
		soak_window_end(&w, &d->journal->blocks[0][b]);
		soak_check(d->journal, buf, b, &w, &found, "offline");
		d->blocks_checked++;
		tick(d);
	}
	close(fd);
	return d->failed && !before ? -1 : 0;
}

void store_damage(struct driver *d, int torn)
{
	uint64_t buf[SOAK_WORDS];
	int fd = open(d->store, O_WRONLY | O_CLOEXEC);
	uint32_t acked;

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

static void paths(const struct driver *d, char away[128], char foreign[128])
{
	snprintf(away, 128, "%s.away", d->store);
	snprintf(foreign, 128, "%s.foreign", d->store);
}

/* Returns a journal of which only `run` is set: soak_fill() makes other words with its number. */
static const struct soak_journal *other_run(const struct driver *d)
{
	static struct soak_journal other;

	other.run = ~d->journal->run;
	return &other;
}

int store_exchange(struct driver *d)
{
	char away[128], foreign[128];

	paths(d, away, foreign);
	if (access(foreign, F_OK) && make(d, foreign, other_run(d)))
		return -1;
	if (rename(d->store, away) || rename(foreign, d->store))
		return broken(d, "rename");
	return 0;
}

int store_return(struct driver *d)
{
	uint64_t buf[SOAK_WORDS], is[SOAK_WORDS];
	char away[128], foreign[128];
	int fd = open(d->store, O_RDONLY | O_CLOEXEC);

	for (uint32_t b = 0; b < SOAK_BLOCKS; b++) {
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
	paths(d, away, foreign);
	if (rename(d->store, foreign) || rename(away, d->store))
		return broken(d, "rename");
	return tick(d);
}
