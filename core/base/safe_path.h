/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * safe_path.h - open a path safely if other users can create links and files on it
 *
 * The kernel follows each symbolic link on a path. gn_path_open() follows links itself, and applies
 * a rule to each link, each directory and the file:
 *
 *     GN_PATH_OUTPUT   a file that this process writes. In a directory that all users can write to,
 *                      such as /tmp, a link must belong to this user, to root or to the owner of
 *                      the directory. An existing file there must belong to one of them too, and
 *                      must have no other hard link.
 *     GN_PATH_TRUSTED  a file that controls this process: a plugin, a configuration, a key. The
 *     path is rejected if a user who is not trusted can write to the file or to a directory on the
 *     path to the file. Trusted are root, this user, and the users
 *                      whose numbers the environment variable GANTRY_TRUST_UID lists. A directory
 *                      of root with the sticky bit is accepted, because other users cannot replace
 *                      a file of a trusted user in it. Write permission for the private group of
 *                      this user is accepted, too: that group has the name of the user and no other
 *                      members. The rule checks regular files and directories only, so a caller
 *                      must reject anything else.
 *
 * Links in /proc, to which /dev/fd/N leads, refer to open files of this process. The kernel follows
 * these links.
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
 * path     relative paths start in the working directory, which GN_PATH_TRUSTED checks too
 * flags    as for open(2); O_CLOEXEC is added. O_TRUNC takes effect after the checks
 * mode     of a file that O_CREAT creates, less the umask
 * why      out, GN_PATH_WHY bytes. If the rule causes -EPERM: object, problem and remedy, without
 *          newline. Else empty
 * returns  a descriptor
 *          -EPERM: the rule rejects the path
 *          -ELOOP: more than 40 links
 *          another -errno of openat(2)
 * thread   any
 */
int gn_path_open(const char *path, int flags, mode_t mode, enum gn_path_rule rule, char *why);

/*
 * Create a directory with mode 0700, or check that only this user and root can create files in an
 * existing directory. The rule GN_PATH_OUTPUT applies to the path to the directory. The directory
 * itself must not be a link.
 *
 * why      out, GN_PATH_WHY bytes. After -EPERM: object, problem and remedy, without newline. Else
 *          empty
 * returns  0
 *          -EPERM: another user can change the directory, the file system cannot create one, or
 *          as for gn_path_open()
 *          -ENOTDIR: not a directory
 *          another -errno
 * thread   any
 */
int gn_path_claim_dir(const char *path, char *why);

/*
 * Check the owner and mode of an open file or directory by GN_PATH_TRUSTED.
 *
 * what     object at the start of the message: "the file"
 * why      as for gn_path_open()
 * returns  0
 *          -EPERM: an untrusted user owns it or can write to it
 */
int gn_path_check_trusted(const struct stat *st, const char *what, char *why);

#endif
