/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_map.h - a started map over memory of the test, whose fields the test sets directly. Its only
 * device is fake_dev, which the test sets.
 */
#ifndef TESTS_DOCA_FAKE_MAP_H
#define TESTS_DOCA_FAKE_MAP_H

#include "buf/buf.h"

static struct doca_dev *fake_dev;

#define FAKE_MAP(memory, size) \
	{ \
		.addr = (memory), .length = (size), .local = (memory), \
		.access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, .started = true, .devs = &fake_dev, \
		.n_devs = 1 \
	}

/* Emulates an export of another process, whose addresses are not valid in this one. */
#define FAKE_IMPORT(address, memory, size, rights) \
	{ \
		.addr = (void *)(address), .length = (size), .local = (memory), \
		.access = (rights), .started = true, .imported = true, .devs = &fake_dev, \
		.n_devs = 1 \
	}

#endif
