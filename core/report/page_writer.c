/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/safe_path.h"
#include "report/page.h"
#include "report/page_facts.h"

#define PAGE_START "<!DOCTYPE html>"
#define TEMPORARY_BYTES 64

/* -- the file -- */

/* Create a file with a new name in the directory. Returns a descriptor or -errno. */
static int create_temporary(const struct gn_page_writer *writer, char name[TEMPORARY_BYTES])
{
	int fd;

	snprintf(name, TEMPORARY_BYTES, ".gantry-report-%ld-%llx", (long)getpid(),
		 (unsigned long long)gn_now_ns());
	fd = openat(writer->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* True if the file is empty or starts as a page does. */
static bool is_page(const struct gn_page_writer *writer, const struct stat *st)
{
	char start[sizeof(PAGE_START) - 1];
	int fd = openat(writer->dir, writer->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, start, sizeof(start));

	if (fd >= 0)
		close(fd);
	return st->st_size == 0 ||
	       (n == (ssize_t)sizeof(start) && !strncasecmp(start, PAGE_START, sizeof(start)));
}

/*
 * Check a file that exists: the page would replace it, so this user must be able to write it. In a
 * directory with the sticky bit, only the owners of file and directory can replace it.
 */
static int check_file(const struct gn_page_writer *writer, const struct stat *dir, char *why)
{
	struct stat st;

	if (fstatat(writer->dir, writer->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, GN_PAGE_WHY, "is %s: name a file",
			 S_ISLNK(st.st_mode) ? "a symbolic link" : "not a regular file");
		return -EEXIST;
	}
	if ((dir->st_mode & S_ISVTX) && geteuid() != 0 && geteuid() != st.st_uid &&
	    geteuid() != dir->st_uid)
		return -EPERM;
	if (faccessat(writer->dir, writer->name, W_OK, AT_EACCESS))
		return -errno;
	if (is_page(writer, &st))
		return 0;
	snprintf(why, GN_PAGE_WHY,
		 "the file exists and is not a page of HTML: remove it, or name another file");
	return -EEXIST;
}

/* Open the directory of the path. Returns 0 or -errno. */
static int open_dir(struct gn_page_writer *writer, char *why)
{
	const char *slash = strrchr(writer->path, '/'), *name = slash ? slash + 1 : writer->path;
	char dir[PATH_MAX] = ".";

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return *writer->path ? -EISDIR : -ENOENT;
	if (strlen(name) > NAME_MAX || (slash && slash - writer->path >= PATH_MAX - 1))
		return -ENAMETOOLONG;
	strcpy(writer->name, name);
	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - writer->path) + 1, writer->path);
	writer->dir = gn_path_open(dir, O_RDONLY | O_DIRECTORY, 0, GN_PATH_OUTPUT, why);
	return writer->dir < 0 ? writer->dir : 0;
}

static int check(struct gn_page_writer *writer, char *why)
{
	char name[TEMPORARY_BYTES];
	struct stat st;
	int rc, fd;

	rc = open_dir(writer, why);
	if (rc)
		return rc;
	if (fstat(writer->dir, &st))
		return -errno;
	rc = check_file(writer, &st, why);
	if (rc)
		return rc;
	fd = create_temporary(writer, name);
	if (fd < 0)
		return fd;
	close(fd);
	unlinkat(writer->dir, name, 0);
	return 0;
}

int gn_page_writer_open(struct gn_page_writer *writer, const char *path, char *why)
{
	int rc;

	*writer = (struct gn_page_writer){.path = path, .dir = -1};
	*why = '\0';
	if (!path)
		return 0;
	rc = check(writer, why);
	if (rc && !*why)
		snprintf(
			why, GN_PAGE_WHY,
			"cannot write the report: %s: name a file in a directory that you can write to",
			strerror(-rc));
	return rc;
}

/* Write the page to the temporary file. Closes fd. Returns 0 or -errno. */
static int fill(int fd, const json_t *page)
{
	FILE *out = fdopen(fd, "w");
	int rc;

	if (!out) {
		rc = -errno;
		close(fd);
		return rc;
	}
	errno = 0;
	rc = gn_page_print(out, page);
	if (!rc && (fflush(out) || ferror(out)))
		rc = errno ? -errno : -EIO;
	if (!rc && fsync(fd) && errno != EINVAL)
		rc = -errno;
	if (fclose(out) && !rc)
		rc = errno ? -errno : -EIO;
	return rc;
}

static int write_page(const struct gn_page_writer *writer, const json_t *page)
{
	char name[TEMPORARY_BYTES];
	int fd = create_temporary(writer, name), rc;

	if (fd < 0)
		return fd;
	rc = fill(fd, page);
	if (!rc && renameat(writer->dir, name, writer->dir, writer->name))
		rc = -errno;
	if (rc)
		unlinkat(writer->dir, name, 0);
	return rc;
}

/* -- samples -- */

static void sample(void *arg)
{
	struct gn_page_writer *writer = arg;
	struct gn_report report;
	json_t *tree = writer->report(writer->arg, &report);

	/* without memory, the next sample covers the time of this one, too */
	if (tree)
		gn_samples_add(writer->samples, tree);
	gn_report_fini(&report);
	gn_loop_set_timer(writer->loop, &writer->timer,
			  gn_now_ns() + gn_samples_interval_ns(writer->samples));
}

int gn_page_writer_start(struct gn_page_writer *writer, struct gn_loop *loop,
			 struct gn_topology *topology,
			 json_t *(*report)(void *arg, struct gn_report *report), void *arg)
{
	if (!writer->path)
		return 0;
	writer->samples = gn_samples_create();
	if (!writer->samples)
		return -ENOMEM;
	writer->loop = loop;
	writer->topology = topology;
	writer->report = report;
	writer->arg = arg;
	writer->timer.fn = sample;
	writer->timer.arg = writer;
	gn_loop_set_timer(loop, &writer->timer,
			  gn_now_ns() + gn_samples_interval_ns(writer->samples));
	return 0;
}

int gn_page_writer_finish(struct gn_page_writer *writer, json_t *report)
{
	json_t *page;
	int rc;

	if (!writer->path)
		return 0;
	if (!report || gn_samples_add(writer->samples, report))
		return -ENOMEM;
	page = json_pack("{si sO so so so so}", "schema", 1, "report", report, "samples",
			 gn_samples_tree(writer->samples), "topology",
			 gn_page_topology(writer->topology), "config",
			 gn_page_config(writer->topology), "machine", gn_page_machine());
	if (!page)
		return -ENOMEM;
	rc = write_page(writer, page);
	json_decref(page);
	return rc;
}

void gn_page_writer_close(struct gn_page_writer *writer)
{
	if (writer->loop)
		gn_loop_clear_timer(writer->loop, &writer->timer);
	writer->loop = NULL;
	gn_samples_destroy(&writer->samples);
	if (writer->path && writer->dir >= 0)
		close(writer->dir);
	writer->path = NULL;
}
