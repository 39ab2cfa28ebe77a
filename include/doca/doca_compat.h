/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_compat.h - attributes of functions, and helpers for structures that carry a version
 *
 * A program that uses experimental functions must define DOCA_ALLOW_EXPERIMENTAL_API. Otherwise the
 * compiler warns at each use.
 */
#ifndef DOCA_COMPAT_H
#define DOCA_COMPAT_H

#include <doca_config.h>

#define DOCA_USED __attribute__((used))
#define DOCA_EXPORTED __attribute__((visibility("default")))
#define DOCA_STABLE DOCA_EXPORTED

#ifdef DOCA_ALLOW_EXPERIMENTAL_API
#define DOCA_EXPERIMENTAL DOCA_EXPORTED
#else
#define DOCA_EXPERIMENTAL \
	DOCA_EXPORTED \
	__attribute__((deprecated("experimental: define DOCA_ALLOW_EXPERIMENTAL_API")))
#endif

#ifdef DOCA_ALLOW_DEPRECATED_API
#define DOCA_DEPRECATED DOCA_EXPORTED
#else
#define DOCA_DEPRECATED \
	DOCA_EXPORTED \
	__attribute__((deprecated("define DOCA_ALLOW_DEPRECATED_API to use it still")))
#endif

#ifdef DOCA_COMPAT_HELPERS
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <doca_version.h>

/* First member of a structure: the version of the interface that the program was compiled for. */
#define DOCA_STRUCT_START size_t doca_struct_version
#define DOCA_STRUCT_GET_VERSION(x) ((x)->doca_struct_version)
/*
 * Set the version of object x or of the object at p. The forms with MEMSET zero the object first.
 * DOCA_STRUCT_CTOR_LIST_START begins an initializer list, and DOCA_STRUCT_DEF defines an object.
 */
#define DOCA_STRUCT_CTOR(x) DOCA_STRUCT_PTR_CTOR(&(x))
#define DOCA_STRUCT_PTR_CTOR(p) ((p)->doca_struct_version = DOCA_VERSION_EXACT)
#define DOCA_STRUCT_MEMSET_CTOR(x) DOCA_STRUCT_PTR_MEMSET_CTOR(&(x))
#define DOCA_STRUCT_PTR_MEMSET_CTOR(p) (memset((p), 0, sizeof(*(p))), DOCA_STRUCT_PTR_CTOR(p))
#define DOCA_STRUCT_CTOR_LIST_START .doca_struct_version = DOCA_VERSION_EXACT
#define DOCA_STRUCT_DEF(type, name) struct type name = {DOCA_STRUCT_CTOR_LIST_START}
#endif

#endif
