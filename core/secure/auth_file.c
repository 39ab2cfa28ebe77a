/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/auth_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1 << 20)

static int check_file(int fd, const char *path, bool is_secret, char *why)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, GN_PATH_WHY, "%.300s: not a regular file: configure another path",
			 path);
		return -EINVAL;
	}
	if (is_secret && (st.st_mode & 077)) {
		snprintf(why, GN_PATH_WHY,
			 "%.300s: other users can access the key (mode=%04o): chmod 600", path,
			 (unsigned)st.st_mode & 07777);
		return -EPERM;
	}
	if (st.st_size > FILE_MAX) {
		snprintf(why, GN_PATH_WHY,
			 "%.300s: too large (bytes=%lld, limit=%d): split or replace it", path,
			 (long long)st.st_size, FILE_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Returns the number of bytes, or -errno. */
static long read_all(int fd, char *text)
{
	size_t n = 0;

	while (n < FILE_MAX) {
		ssize_t part = read(fd, text + n, FILE_MAX - n);

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return -errno;
		if (part == 0)
			break;
		n += (size_t)part;
	}
	text[n] = '\0';
	return (long)n;
}

long auth_file_read(const char *path, bool is_secret, char **text_p, char *why)
{
	int fd = gn_path_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, GN_PATH_TRUSTED, why);
	long rc = fd;

	*text_p = NULL;
	if (fd >= 0)
		rc = check_file(fd, path, is_secret, why);
	if (rc == 0) {
		*text_p = malloc(FILE_MAX + 1);
		rc = *text_p ? read_all(fd, *text_p) : -ENOMEM;
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0) {
		auth_file_free(*text_p, FILE_MAX);
		*text_p = NULL;
	}
	if (rc < 0 && !why[0])
		snprintf(why, GN_PATH_WHY,
			 "%.300s: cannot be read (%s): check the path and its "
			 "owner",
			 path, strerror((int)-rc));
	return rc;
}

void auth_file_free(char *text, long bytes)
{
	if (!text)
		return;
	OPENSSL_cleanse(text, (size_t)bytes);
	free(text);
}
