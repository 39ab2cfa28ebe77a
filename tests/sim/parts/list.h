/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - all parts, in the order of `component all` */
PART(loop)
PART(bell)
PART(credit)
PART(ring)
PART(region)
PART(withdraw)
PART(resume)
