/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpa-thread.c - runs a function once on the DPA of the first device that has one
 *
 *     eval "$(gantry env dpu)"
 *     cc -o dpa-thread dpa-thread.c $(pkg-config --cflags --libs doca-dpa)
 *     ./dpa-thread 7
 */
#define DOCA_ALLOW_EXPERIMENTAL_API

#include <doca_dev.h>
#include <doca_dpa.h>
#include <doca_dpa_dev.h>
#include <doca_error.h>

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seen;

/* Code of the DPA: a thread of this process runs it. */
static __dpa_global__ void on_dpa(uint64_t arg)
{
	__atomic_store_n(&seen, arg, __ATOMIC_RELEASE);
	doca_dpa_dev_thread_finish();
}

static void must(doca_error_t result, const char *what)
{
	if (result == DOCA_SUCCESS)
		return;
	fprintf(stderr, "dpa-thread: %s: %s\n", what, doca_error_get_descr(result));
	exit(EXIT_FAILURE);
}

static struct doca_dev *open_dpa_device(void)
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t n;

	must(doca_devinfo_create_list(&list, &n), "no list of devices");
	for (uint32_t i = 0; i < n && !dev; i++)
		if (doca_dpa_cap_is_supported(list[i]) == DOCA_SUCCESS)
			must(doca_dev_open(list[i], &dev), "cannot open the device");
	doca_devinfo_destroy_list(list);
	if (!dev)
		must(DOCA_ERROR_NOT_FOUND, "no device with a DPA");
	return dev;
}

int main(int argc, char **argv)
{
	const uint64_t arg = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	struct doca_dev *dev = open_dpa_device();
	struct doca_dpa_thread *thread;
	struct doca_dpa *dpa;

	must(doca_dpa_create(dev, &dpa), "cannot create the DPA");
	must(doca_dpa_start(dpa), "cannot start the DPA");
	must(doca_dpa_thread_create(dpa, &thread), "cannot create a thread");
	must(doca_dpa_thread_set_func_arg(thread, on_dpa, arg), "cannot set the function");
	must(doca_dpa_thread_start(thread), "cannot start the thread");
	must(doca_dpa_thread_run(thread), "cannot activate the thread");
	while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) != arg)
		sched_yield();
	printf("the DPA ran with %llu\n", (unsigned long long)seen);
	must(doca_dpa_thread_destroy(thread), "cannot destroy the thread");
	must(doca_dpa_stop(dpa), "cannot stop the DPA");
	must(doca_dpa_destroy(dpa), "cannot destroy the DPA");
	must(doca_dev_close(dev), "cannot close the device");
	return EXIT_SUCCESS;
}
