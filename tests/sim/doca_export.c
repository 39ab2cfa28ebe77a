/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_export.c - in the image: a client exports a map; the server imports it and writes to it
 * until its program ends
 *
 * After doca_mmap_stop() of the client has returned, no process may write the memory. The program
 * of the server is not notified of the stop: its library withdraws the memory. The program of the
 * server gets the export descriptor from the judge, not through the simulated system.
 */
#include "doca_image.h"

#include <string.h>
#include <sys/mman.h>

#include "mmap/mmap.h"

#define BYTES 8192u
#define STOPPED 0x77
#define WRITES 4u /* writes of each step */

void export_open(struct peer *peer)
{
	struct export *e = &peer->export;
	const void *blob;
	size_t bytes;

	if (!peer->program->job->exports || peer->program->job->side == 0)
		return;
	e->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(e->memory, 1, BYTES);
	e->stop_ns = sim_now() + sim_draw(1u << (12 + sim_draw(11)));
	OK(doca_mmap_create(&e->mmap));
	OK(doca_mmap_add_dev(e->mmap, peer->program->dev));
	OK(doca_mmap_set_permissions(e->mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_memrange(e->mmap, e->memory, BYTES));
	OK(doca_mmap_start(e->mmap));
	OK(doca_mmap_export_pci(e->mmap, peer->program->dev, &blob, &bytes));
	sim_doca_export(peer->number, blob, bytes);
}

static void stop(struct peer *peer)
{
	struct export *e = &peer->export;

	OK(doca_mmap_stop(e->mmap));
	memset(e->memory, STOPPED, BYTES);
	e->is_stopped = true;
}

static void import(struct peer *peer)
{
	static uint8_t blob[SIM_DOCA_BLOB];
	size_t bytes = sim_doca_exported(peer->number, blob);

	if (bytes == 0)
		return;
	peer->export.is_tried = true;
	/* an error: the client has stopped the map, or ended */
	if (doca_mmap_create_from_export(NULL, blob, bytes, peer->program->dev,
					 &peer->export.mmap) != DOCA_SUCCESS)
		peer->export.mmap = NULL;
}

void export_step(struct peer *peer)
{
	struct export *e = &peer->export;

	if (!peer->program->job->exports)
		return;
	if (peer->program->job->side != 0) {
		if (e->mmap && !e->is_stopped && e->stop_ns <= sim_now())
			stop(peer);
		return;
	}
	if (!e->is_tried && peer->greeted)
		import(peer);
	for (uint32_t i = 0; i < WRITES && e->mmap; i++)
		((uint8_t *)e->mmap->local)[sim_draw(BYTES)] = (uint8_t)sim_draw(STOPPED);
}

void export_close(struct peer *peer)
{
	struct export *e = &peer->export;

	if (!e->mmap)
		return;
	if (peer->program->job->side != 0) {
		if (!e->is_stopped)
			stop(peer);
		pause_ns(sim_draw(200000));
		for (uint32_t i = 0; i < BYTES; i++)
			if (e->memory[i] != STOPPED)
				sim_wrong(
					"byte %u of an exported map was written after doca_mmap_stop() had returned",
					i);
		munmap(e->memory, BYTES);
	}
	OK(doca_mmap_destroy(e->mmap));
	*e = (struct export){0};
}
