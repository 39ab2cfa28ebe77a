/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_report.h - records of a run, which the processes append to a common file */
#ifndef DC_REPORT_H
#define DC_REPORT_H

/* Append a record, a line without its end. Fields are separated by tabs. */
void dc_record(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
