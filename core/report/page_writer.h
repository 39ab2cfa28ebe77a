/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_writer.h - write the page of a run: samples the report while the process runs, and replaces
 * the file at the end
 *
 *     open     gn_page_writer_open     checks the path, before anything of the run starts
 *     start    gn_page_writer_start    the first sample; then one for each interval
 *     finish   gn_page_writer_finish   writes the page
 *     close    gn_page_writer_close
 *
 * Without a path, the functions do nothing. Control thread: the lanes only see that their counters
 * are read.
 */
#ifndef GN_REPORT_PAGE_WRITER_H
#define GN_REPORT_PAGE_WRITER_H

#include <limits.h>

#include "base/event_loop.h"
#include "report/page_samples.h"
#include "report/report.h"
#include "topology/topology.h"

struct gn_page_writer {
	const char *path;        /* NULL: no page */
	int dir;                 /* descriptor of the directory of the file */
	char name[NAME_MAX + 1]; /* of the file in its directory */
	struct gn_samples *samples;
	struct gn_topology *topology;
	struct gn_loop *loop; /* NULL: not started */
	struct gn_timer timer;
	/* Writes a report to `report`, which the caller frees. Returns its tree or NULL. */
	json_t *(*report)(void *arg, struct gn_report *report);
	void *arg;
};

/*
 * Check that the file can be written: creates and removes a file beside it.
 *
 * path     valid until gn_page_writer_close(); NULL: no page
 * why      out, GN_PAGE_WHY bytes. After an error: problem and remedy, without newline
 * returns  0
 *          -EEXIST: the file exists, and is not a page or an empty file
 *          another -errno: the file cannot be written
 */
#define GN_PAGE_WHY 640
int gn_page_writer_open(struct gn_page_writer *writer, const char *path, char *why);

/* Start to sample. Returns 0 or -ENOMEM. */
int gn_page_writer_start(struct gn_page_writer *writer, struct gn_loop *loop,
			 struct gn_topology *topology,
			 json_t *(*report)(void *arg, struct gn_report *report), void *arg);

/*
 * Write the page to a temporary name, and rename it. After an error nothing is left behind, and a
 * file of an earlier run is unchanged.
 *
 * report   the final report; NULL: out of memory
 * returns  0
 *          -ENOMEM
 *          another -errno of the file system
 */
int gn_page_writer_finish(struct gn_page_writer *writer, json_t *report);

/* Idempotent. */
void gn_page_writer_close(struct gn_page_writer *writer);

#endif
