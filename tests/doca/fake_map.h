/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_map.h - a started map over memory of the test, whose fields the test sets directly. */
#ifndef TESTS_DOCA_FAKE_MAP_H
#define TESTS_DOCA_FAKE_MAP_H

#include "buf/buf.h"

#define FAKE_MAP(memory, size) \
	{ \
		.addr = (memory), .length = (size), .local = (memory), \
		.access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, .started = true \
	}

/* Emulates an export of another process, whose addresses are not valid in this one. */
#define FAKE_IMPORT(address, memory, size, rights) \
	{ \
		.addr = (void *)(address), .length = (size), .local = (memory), \
		.access = (rights), .started = true, .imported = true \
	}

#endif
