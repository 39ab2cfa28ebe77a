/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.c - prints the devices that a program sees, and the functions that each of them
 * represents
 *
 *     eval "$(gantry env dpu)"
 *     cc -o devices devices.c $(pkg-config --cflags --libs doca-common)
 */
#include <doca_dev.h>
#include <doca_error.h>

#include <stdio.h>
#include <stdlib.h>

static void print_representors(struct doca_devinfo *info)
{
	char pci[DOCA_DEVINFO_REP_PCI_ADDR_SIZE];
	struct doca_devinfo_rep **reps;
	struct doca_dev *dev;
	uint32_t n;

	if (doca_dev_open(info, &dev) != DOCA_SUCCESS)
		return;
	if (doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_ALL, &reps, &n) ==
	    DOCA_SUCCESS) {
		for (uint32_t i = 0; i < n; i++)
			if (doca_devinfo_rep_get_pci_addr_str(reps[i], pci) == DOCA_SUCCESS)
				printf("  for %s\n", pci);
		doca_devinfo_rep_destroy_list(reps);
	}
	doca_dev_close(dev);
}

static void print_device(struct doca_devinfo *info)
{
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE], ibdev[DOCA_DEVINFO_IBDEV_NAME_SIZE],
		iface[DOCA_DEVINFO_IFACE_NAME_SIZE];

	if (doca_devinfo_get_pci_addr_str(info, pci) != DOCA_SUCCESS)
		return;
	if (doca_devinfo_get_ibdev_name(info, ibdev, sizeof(ibdev)) != DOCA_SUCCESS)
		ibdev[0] = '\0';
	if (doca_devinfo_get_iface_name(info, iface, sizeof(iface)) != DOCA_SUCCESS)
		iface[0] = '\0';
	printf("%s %s %s\n", pci, ibdev, iface);
	print_representors(info);
}

int main(void)
{
	struct doca_devinfo **list;
	uint32_t n;
	doca_error_t error = doca_devinfo_create_list(&list, &n);

	if (error != DOCA_SUCCESS) {
		fprintf(stderr, "no devices: %s\n", doca_error_get_descr(error));
		return EXIT_FAILURE;
	}
	for (uint32_t i = 0; i < n; i++)
		print_device(list[i]);
	doca_devinfo_destroy_list(list);
	return EXIT_SUCCESS;
}
