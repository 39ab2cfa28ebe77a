/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_source.c - a heap of the next records of a trace */
#include "trace/trace_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An element of the heap. */
struct gn_trace_waiting {
	uint64_t ns;
	/*
	 * decides between equal times: submissions come first, then the order of the file. It wraps
	 * after 2^31 records, which is more than the window holds.
	 */
	uint32_t order;
	uint32_t record; /* index of gn_trace_source.records */
};

int gn_trace_source_open(struct gn_trace_source *source, FILE *file)
{
	memset(source, 0, sizeof(*source));
	source->rc = 1;
	return gantry_trace_begin(&source->reader, file);
}

void gn_trace_source_close(struct gn_trace_source *source)
{
	free(source->heap);
	free(source->records);
	free(source->unused);
	memset(source, 0, sizeof(*source));
}

static bool precedes(const struct gn_trace_waiting *a, const struct gn_trace_waiting *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

static void sift_up(struct gn_trace_waiting *heap, size_t at)
{
	const struct gn_trace_waiting moved = heap[at];

	while (at && precedes(&moved, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = moved;
}

static void sift_down(struct gn_trace_waiting *heap, size_t n, size_t at)
{
	const struct gn_trace_waiting moved = heap[at];
	size_t child;

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n && precedes(&heap[child + 1], &heap[child]))
			child++;
		if (!precedes(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static int grow(struct gn_trace_source *source)
{
	const size_t capacity = source->capacity ? source->capacity * 2 : 1024;
	struct gn_trace_waiting *heap = reallocarray(source->heap, capacity, sizeof(*heap));
	struct gantry_trace_record *records;
	uint32_t *unused;

	if (!heap)
		return -ENOMEM;
	source->heap = heap;
	records = reallocarray(source->records, capacity, sizeof(*records));
	if (!records)
		return -ENOMEM;
	source->records = records;
	unused = reallocarray(source->unused, capacity, sizeof(*unused));
	if (!unused)
		return -ENOMEM;
	source->unused = unused;
	/* all records are in use now */
	for (size_t i = source->capacity; i < capacity; i++)
		unused[i - source->capacity] = (uint32_t)i;
	source->capacity = capacity;
	return 0;
}

/* Read one record into the heap. Returns as gantry_trace_next(), or -ENOMEM. */
static int read_one(struct gn_trace_source *source)
{
	const int rc = source->n == source->capacity ? grow(source) : 0;
	struct gantry_trace_record *record;
	uint32_t index;
	int got;

	if (rc)
		return rc;
	index = source->unused[source->capacity - source->n - 1];
	record = &source->records[index];
	got = gantry_trace_next(&source->reader, record);
	if (got <= 0)
		return got;
	source->heap[source->n] = (struct gn_trace_waiting){
		.ns = record->time_ns,
		.order = (uint32_t)(record->direction != GANTRY_TRACE_SUBMIT) << 31 |
			 ((uint32_t)source->reader.n_records & 0x7fffffffu),
		.record = index,
	};
	sift_up(source->heap, source->n++);
	return 1;
}

int gn_trace_source_peek(struct gn_trace_source *source,
			 const struct gantry_trace_record **record_p)
{
	while (source->rc > 0 && source->n < GN_TRACE_WINDOW)
		source->rc = read_one(source);
	if (source->rc < 0)
		return source->rc;
	if (!source->n)
		return 0;
	*record_p = &source->records[source->heap[0].record];
	return 1;
}

void gn_trace_source_take(struct gn_trace_source *source)
{
	const struct gn_trace_waiting first = source->heap[0];

	if (first.ns < source->last_ns)
		source->n_late++;
	else
		source->last_ns = first.ns;
	source->heap[0] = source->heap[--source->n];
	if (source->n)
		sift_down(source->heap, source->n, 0);
	source->unused[source->capacity - source->n - 1] = first.record;
}
