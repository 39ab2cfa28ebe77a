/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_key.c - gantry key: makes pre-shared keys, in the format of core/secure/auth_keys.h */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safe_path.h"
#include "cli/cli.h"
#include "secure/auth_keys.h"

#define LINE_BYTES (GN_IDENTITY_MAX + 1 + 2 * GN_KEY_BYTES + 2)

/* Format a line with a new key. Returns false if there are no random bytes. */
static bool make_line(const char *identity, char line[LINE_BYTES])
{
	uint8_t key[GN_KEY_BYTES];
	bool done = getrandom(key, sizeof(key), 0) == sizeof(key);
	int n = snprintf(line, LINE_BYTES, "%s:", identity);

	for (size_t i = 0; i < sizeof(key); i++)
		n += snprintf(line + n, LINE_BYTES - (size_t)n, "%02x", key[i]);
	snprintf(line + n, LINE_BYTES - (size_t)n, "\n");
	OPENSSL_cleanse(key, sizeof(key));
	return done;
}

/* Check the keys that a file already has. Returns 0, or an exit code after a message. */
static int check_keys(const char *path, const char *identity)
{
	char why[GN_PATH_WHY];
	struct gn_keys keys;
	int rc = gn_keys_read(path, &keys, why);
	bool has = rc == 0 && gn_keys_find(&keys, identity, strlen(identity));

	if (rc == 0)
		gn_keys_fini(&keys);
	if (rc && rc != -ENODATA)
		return gn_cli_fail(GN_EXIT_FAILED, "%s", why);
	if (has)
		return gn_cli_fail(GN_EXIT_USAGE,
				   "%s: the file has a key of this identity (identity=%s): remove "
				   "its line, or choose another identity",
				   path, identity);
	return 0;
}

/* Append a line, on a line of its own. Returns 0 or -errno. */
static int append(int fd, const char *line)
{
	char text[LINE_BYTES + 1] = "\n", last = '\n';
	const off_t end = lseek(fd, 0, SEEK_END);
	ssize_t n, written;

	if (end > 0 && pread(fd, &last, 1, end - 1) != 1)
		return -EIO;
	snprintf(text + (last != '\n'), LINE_BYTES, "%s", line);
	n = (ssize_t)strlen(text);
	written = write(fd, text, (size_t)n);
	OPENSSL_cleanse(text, sizeof(text));
	if (written < 0 || fsync(fd))
		return -errno;
	return written == n ? 0 : -ENOSPC;
}

static int add_to_file(const char *path, const char *identity, const char *line)
{
	char why[GN_PATH_WHY];
	int fd = gn_path_open(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY, 0600,
			      GN_PATH_TRUSTED, why);
	int code, rc;

	if (fd < 0)
		return gn_cli_fail(GN_EXIT_FAILED, why[0] ? "%s" : "%s: cannot be opened: %s",
				   why[0] ? why : path, strerror(-fd));
	/* two commands at the same time must not add the same identity */
	code = flock(fd, LOCK_EX) ? gn_cli_fail(GN_EXIT_FAILED, "%s: cannot be locked: %s", path,
						strerror(errno))
				  : check_keys(path, identity);
	rc = code ? 0 : append(fd, line);
	if (rc)
		code = gn_cli_fail(GN_EXIT_FAILED, "%s: cannot be written: %s", path,
				   strerror(-rc));
	close(fd);
	if (!code)
		printf("%s: a key of %s\n", path, identity);
	return code;
}

int gn_cli_key(const struct gn_cli *cli)
{
	const char *const *word = cli->args.word;
	char line[LINE_BYTES];
	int code = GN_EXIT_OK;

	if (strcmp(word[0], "new") != 0)
		return gn_cli_fail(GN_EXIT_USAGE, "unknown word \"%s\"; write key new IDENTITY",
				   word[0]);
	if (!gn_identity_ok(word[1]))
		return gn_cli_fail(GN_EXIT_USAGE,
				   "not an identity (value=%s): write 1 to %d letters, digits and "
				   ". _ @ -",
				   word[1], GN_IDENTITY_MAX);
	if (!make_line(word[1], line))
		return gn_cli_fail(GN_EXIT_FAILED, "no random bytes: %s", strerror(errno));
	if (cli->args.n > 2)
		code = add_to_file(word[2], word[1], line);
	else
		fputs(line, stdout);
	OPENSSL_cleanse(line, sizeof(line));
	return code;
}
