/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_file.c - read a configuration file into memory, after a check that no untrusted user can
 * write it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safe_path.h"
#include "config/config_priv.h"

#define FILE_BYTES_MAX (1u << 20)

/*
 * True if another user can write the file, and so make this process load plugins of that user. Root
 * has the stricter rule of open_file().
 */
static bool written_by_others(const struct stat *st)
{
	bool trusted_owner = st->st_uid == 0 || st->st_uid == geteuid();

	return geteuid() != 0 &&
	       ((st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && !trusted_owner));
}

static int check(int fd, const char *path, const char *where, size_t *size_p, struct gn_errs *errs)
{
	struct stat st;

	if (fstat(fd, &st)) {
		gn_errs_because(errs, -errno);
		gn_errs_add(errs, "%scannot examine %s: %s", where, path, strerror(errno));
		return -EINVAL;
	}
	if (!S_ISREG(st.st_mode)) {
		gn_errs_add(errs, "%s%s is %s; name a file", where, path,
			    S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
		return -EINVAL;
	}
	if (written_by_others(&st)) {
		gn_errs_add(errs, "%s%s is writable by others; chmod go-w %s", where, path, path);
		return -EINVAL;
	}
	if (st.st_size > FILE_BYTES_MAX) {
		gn_errs_add(errs, "%s%s is larger than 1MiB; it is not a configuration", where,
			    path);
		return -EINVAL;
	}
	*size_p = (size_t)st.st_size;
	return 0;
}

/*
 * Read up to `size` bytes. Returns the number of bytes; -ESTALE: the file has more; or another
 * -errno.
 */
static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t n = 0;

	while (n <= size) {
		ssize_t got = read(fd, text + n, size + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return (ssize_t)n;
		n += (size_t)got;
	}
	return -ESTALE;
}

/*
 * Read the file as a string with a newline at its end: libconfig 1.5 rejects a comment without a
 * newline.
 */
static char *load(int fd, size_t size, const char *path, const char *where, struct gn_errs *errs)
{
	char *text = malloc(size + 2);
	ssize_t n;

	if (!text) {
		gn_errs_because(errs, -ENOMEM);
		gn_errs_add(errs, "%sout of memory", where);
		return NULL;
	}
	n = read_all(fd, text, size);
	if (n < 0) {
		gn_errs_because(errs, (int)n);
		gn_errs_add(errs, "%scannot read %s: %s", where, path, strerror((int)-n));
		goto out_undo_text;
	}
	if (memchr(text, '\0', (size_t)n)) {
		gn_errs_add(errs, "%s%s contains a zero byte; it is not a text file", where, path);
		goto out_undo_text;
	}
	if (n && text[n - 1] != '\n')
		text[n++] = '\n';
	text[n] = '\0';
	return text;

out_undo_text:
	free(text);
	return NULL;
}

/*
 * Open the file. Root opens only files that no untrusted user can write. Returns a descriptor;
 * -errno: errs has a message.
 */
static int open_file(const char *path, const char *where, struct gn_errs *errs)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	char why[GN_PATH_WHY] = "";
	int fd;

	if (geteuid() == 0) {
		fd = gn_path_open(path, flags, 0, GN_PATH_TRUSTED, why);
	} else {
		fd = open(path, flags);
		fd = fd < 0 ? -errno : fd;
	}
	if (why[0]) {
		gn_errs_add(errs, "%s%s: %s", where, path, why);
	} else if (fd < 0) {
		gn_errs_because(errs, fd);
		gn_errs_add(errs, "%scannot open %s: %s", where, path, strerror(-fd));
	}
	return fd;
}

char *gn_config_read_file(const char *path, const char *where, struct gn_errs *errs)
{
	int fd = open_file(path, where, errs);
	char *text = NULL;
	size_t size;

	if (fd < 0)
		return NULL;
	if (!check(fd, path, where, &size, errs))
		text = load(fd, size, path, where, errs);
	close(fd);
	return text;
}
