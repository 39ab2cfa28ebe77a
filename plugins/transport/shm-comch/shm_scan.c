/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_scan.c - lists the services in the default runtime directory. It has no side effects and
 * sends nothing to a peer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "shm_comch.h"

/* Determine the state of a service: a process that serves it holds its lock. */
static const char *state_of(int dir, const char *lock_name)
{
	int fd = openat(dir, lock_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC), taken;

	if (fd < 0)
		return errno == ENOENT ? "left behind" : "of another user";
	taken = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return taken ? "served" : "left behind";
}

/* Decode %XX of a file name. dst: at least as long as src. */
static void plain_name(char *dst, const char *src, size_t n)
{
	char hex[3] = "";

	for (size_t i = 0; i < n; i++) {
		if (src[i] == '%' && n - i > 2) {
			memcpy(hex, src + i + 1, 2);
			*dst++ = (char)strtoul(hex, NULL, 16);
			i += 2;
		} else {
			*dst++ = src[i];
		}
	}
	*dst = '\0';
}

static int describe(int dir, const char *card, const char *file, struct gantry_writer *w)
{
	size_t n = strlen(file);
	char name[COMCH_NAME_BYTES], lock_name[COMCH_NAME_BYTES], pci[128];

	if (n < 6 || n >= sizeof(name) || strlen(card) >= sizeof(pci) ||
	    strcmp(file + n - 5, ".sock") != 0)
		return 0;
	snprintf(lock_name, sizeof(lock_name), "%.*s.lock", (int)(n - 5), file);
	plain_name(name, file, n - 5);
	plain_name(pci, card, strlen(card));
	w->object(w, NULL);
	w->string(w, "name", name);
	w->string(w, "state", state_of(dir, lock_name));
	w->string(w, "pci", pci);
	w->end(w);
	return 1;
}

/* Open a directory for reading. Returns NULL with errno. */
static DIR *open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static int scan_card(int at, const char *card, struct gantry_writer *w)
{
	DIR *dir = open_dir(at, card);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return 0; /* not a directory, or no read permission */
	while ((entry = readdir(dir)))
		n += describe(dirfd(dir), card, entry->d_name, w);
	closedir(dir);
	return n;
}

int comch_scan(const struct gantry_host *host, struct gantry_writer *w)
{
	char path[COMCH_DIR_BYTES];
	struct dirent *entry;
	int n = 0, err;
	DIR *dir;

	gantry_rundir(path, sizeof(path));
	dir = open_dir(AT_FDCWD, path);
	if (!dir) {
		err = errno;
		if (err == ENOENT)
			return 0;
		gantry_log_error(
			host, "cannot read directory %s: %s; it must be a directory of this user",
			path, strerror(err));
		return -err;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			n += scan_card(dirfd(dir), entry->d_name, w);
	closedir(dir);
	return n;
}
