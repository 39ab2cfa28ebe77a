/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * container_of.h - get the struct that contains a member.
 */
#ifndef GN_BASE_CONTAINER_OF_H
#define GN_BASE_CONTAINER_OF_H

#include <stddef.h>

/* Get the struct of this type whose `member` is at ptr. */
#define gn_container_of(ptr, type, member) \
	((type *)((char *)(1 ? (ptr) : &((type *)0)->member) - offsetof(type, member)))

#endif
