/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * safe_path.h - open a path without following what other users have put in its way
 *
 * The kernel follows each symbolic link on a path. gn_path_open() follows links itself, and applies
 * a rule to each link, each directory and the file:
 *
 *     GN_PATH_OUTPUT   a file that this process writes. In a directory that all users may write,
 *                      such as /tmp, a link must belong to this user, to root or to the owner of
 *                      the directory. A file that exists there must belong to one of them too, and
 *                      must have no second name (hard link).
 *     GN_PATH_TRUSTED  a file that decides what this process does: a plugin, a configuration, a
 *                      key. Only trusted users may write the file or a directory on the way to it:
 *                      root, this user, and the users whose numbers the environment variable
 *                      GANTRY_TRUST_UID lists. A directory of root with the sticky bit is accepted,
 *                      because other users cannot replace a file of a trusted user in it. So is
 *                      write permission for the private group of this user: it has the name of the
 *                      user and no other members. The rule checks regular files and directories
 *                      only, so a caller must reject anything else.
 *
 * Links of /proc, to which /dev/fd/N leads, name open files of this process. The kernel follows
 * those.
 */
#ifndef GN_BASE_SAFE_PATH_H
#define GN_BASE_SAFE_PATH_H

#include <sys/stat.h>
#include <sys/types.h>

#define GN_PATH_WHY 512

enum gn_path_rule {
	GN_PATH_OUTPUT,
	GN_PATH_TRUSTED,
};

/*
 * Open a path by a rule.
 *
 * path   relative paths begin in the working directory, which GN_PATH_TRUSTED checks too
 * flags  as for open(2); O_CLOEXEC is added. O_TRUNC takes effect after the checks
 * mode   of a file that O_CREAT makes, less the umask
 * why    GN_PATH_WHY bytes. With -EPERM from the rule: object, problem and remedy, without newline.
 *        Else empty
 *
 * Returns a descriptor; -EPERM: the rule rejects the path; -ELOOP: more than 40 links; or -errno of
 * openat(2).
 * Thread: any.
 */
int gn_path_open(const char *path, int flags, mode_t mode, enum gn_path_rule rule, char *why);

/*
 * Make a directory with mode 0700, or check that only this user and root can put anything into the
 * one that exists. The path to it follows GN_PATH_OUTPUT; the directory itself must not be a link.
 *
 * Returns 0; -EPERM: another user can change the directory, or as for gn_path_open; -ENOTDIR: it is
 * no directory; or -errno. why: as for gn_path_open. Thread: any.
 */
int gn_path_claim_dir(const char *path, char *why);

/*
 * Check the owner and mode of an open file or directory by GN_PATH_TRUSTED.
 *
 * what   begins the message: "the file"
 * why    as for gn_path_open
 *
 * Returns 0; -EPERM: an untrusted user owns it or may write it.
 */
int gn_path_check_trusted(const struct stat *st, const char *what, char *why);

#endif
