/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rbd.h - a fake of librados and librbd: one cluster with one image in memory. A thread executes
 * the operations and calls back, as librbd does.
 *
 * A test program that links it with -export-dynamic loads the plugin rbd with these functions.
 */
#ifndef FAKE_RBD_H
#define FAKE_RBD_H

#include <stdint.h>

#define FAKE_RBD_BYTES (4u << 20)

/* Functions that fail on demand. */
/* clang-format off */
#define FAKE_RBD_FNS(X) \
	X(create) X(conf) X(connect) X(addrs) X(fsid) X(ioctx) X(open) X(lock) X(watch) X(id) \
	X(size) X(features) X(blocklist) X(osdmap) X(completion) X(submit) X(diff)
/* clang-format on */

enum fake_rbd_fn {
#define FAKE_RBD_FN(name) FAKE_RBD_##name,
	FAKE_RBD_FNS(FAKE_RBD_FN)
#undef FAKE_RBD_FN
		FAKE_RBD_COUNT
};

/* Forget all settings, and clear the image. No client may be connected. */
void fake_rbd_reset(void);
/* The next n calls of the function return error, which is negative. */
void fake_rbd_fail(enum fake_rbd_fn fn, int error, int n);
/* Returns how often the function was called since the last reset. */
unsigned fake_rbd_calls(enum fake_rbd_fn fn);
/*
 * 1: from now on each write completes with ETIMEDOUT. It reaches the image after the next operation
 * of any client, unless its client is on the blocklist then. 0: writes complete normally again.
 */
void fake_rbd_give_up(int on);
/* The next n operations that change the image or flush complete with this error, without effect. */
void fake_rbd_break(int error, int n);
/* 1: operations wait. 0: they are executed. */
void fake_rbd_hold(int on);
/* The next flushes wait until this is 0. */
void fake_rbd_hold_flush(int on);
/* Returns the number of operations that wait. */
unsigned fake_rbd_held(void);
/* librbd calls back twice for the next n operations. */
void fake_rbd_repeat(int n);
/* Execute the operations that wait in the reverse order. */
void fake_rbd_reverse(int on);
/* Returns the number of writes that no flush has followed. */
unsigned fake_rbd_unflushed(void);
/* Change the size, and report it to all clients that watch the image. */
void fake_rbd_resize(uint64_t bytes);
/* Another client has the lock, and is alive: "client.4242". NULL: the lock is free. */
void fake_rbd_owner(const char *owner);
/* The image that is opened from now on has this id. */
void fake_rbd_rename(const char *id);
/* The image has this setting in its metadata: rbd_cache or rbd_blocklist_on_break_lock. */
void fake_rbd_setting(const char *name, const char *value);
/* 1: diffs wait. 0: they are executed. */
void fake_rbd_hold_diff(int on);
/* Returns the number of diffs that wait. */
unsigned fake_rbd_held_diffs(void);
/* Report the parts of a diff in the reverse order. */
void fake_rbd_reverse_diff(int on);
/* Returns the most bytes of the range of a diff since the last reset. */
uint64_t fake_rbd_longest_diff(void);
void fake_rbd_reset_diffs(void); /* fake_rbd_reset() calls it */
/*
 * Enter a diff, which a test can let fail. out: the data of the image, of FAKE_RBD_BYTES bytes, and
 * its size. Returns 0 or -errno.
 */
int fake_rbd_view(const void *image, const char **data_p, uint64_t *size_p);
/* Returns the number of clients, images, watches and completions that exist. */
unsigned fake_rbd_objects(void);

#endif
