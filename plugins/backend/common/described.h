/* SPDX-License-Identifier: BSD-3-Clause */
/* described.h - checks and descriptions of volumes that several backends share */
#ifndef BACKEND_DESCRIBED_H
#define BACKEND_DESCRIBED_H

#include <gantry/backend.h>

/*
 * For a plugin's check(): add a fault unless `block` is a power of two, `size` a multiple of it,
 * and `uuid` valid (identity_check()).
 */
void volume_check(const char *uuid, uint64_t size, uint64_t block,
		  const struct gantry_check *check);

/* Describe a volume that is kept in memory, or nowhere, and has the options of volume_check(). */
void volume_expect(const char *uuid, uint64_t size, uint64_t block,
		   struct gantry_volume_info *volume);

#endif
