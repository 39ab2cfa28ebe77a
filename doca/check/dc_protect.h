/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_protect.h - read-only sources: page protection catches a write while the task is submitted */
#ifndef DC_PROTECT_H
#define DC_PROTECT_H

struct dc_object;

/* Make the whole pages of the sources of a submitted task read-only, if the user asked for it. */
void dc_protect(const struct dc_object *task);
/* Make them writable again. */
void dc_unprotect(const struct dc_object *task);

#endif
