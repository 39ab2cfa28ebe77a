/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch.h - common part of the pairs ctrl-path and fast-path: the options of the Comch samples in
 * the guide, and the devices that they name
 *
 *     -p, --pci-addr  PCI address of the device
 *     -r, --rep-pci   PCI address of the function of the host that clients use; only on the DPU
 *     -t, --text      text that is sent to the other side
 */
#ifndef COMCH_H
#define COMCH_H

#define DOCA_ALLOW_EXPERIMENTAL_API /* for doca_argp.h */

#include <doca_argp.h>

#include "hello.h"

#include <stdlib.h>
#include <string.h>

struct options {
	char device[DOCA_DEVINFO_PCI_ADDR_SIZE];
	char representor[DOCA_DEVINFO_REP_PCI_ADDR_SIZE];
	char text[MAX_TEXT];
};

/* -- options: each callback gets the value of one option, which is valid during the call -- */

static inline doca_error_t copy_text(char *to, size_t size, const char *from)
{
	if (!*from || strlen(from) >= size) {
		fprintf(stderr, "%s: not a text of 1 to %zu bytes\n", from, size - 1);
		return DOCA_ERROR_INVALID_VALUE;
	}
	strcpy(to, from);
	return DOCA_SUCCESS;
}

static inline doca_error_t set_device(void *value, void *arg)
{
	struct options *options = arg;

	return copy_text(options->device, sizeof(options->device), value);
}

static inline doca_error_t set_representor(void *value, void *arg)
{
	struct options *options = arg;

	return copy_text(options->representor, sizeof(options->representor), value);
}

static inline doca_error_t set_text(void *value, void *arg)
{
	struct options *options = arg;

	return copy_text(options->text, sizeof(options->text), value);
}

static inline doca_error_t add_option(const char *short_name, const char *long_name,
				      const char *help, doca_argp_param_cb_t callback)
{
	struct doca_argp_param *param;
	doca_error_t error = doca_argp_param_create(&param);

	if (error != DOCA_SUCCESS)
		return error;
	doca_argp_param_set_short_name(param, short_name);
	doca_argp_param_set_long_name(param, long_name);
	doca_argp_param_set_description(param, help);
	doca_argp_param_set_callback(param, callback);
	doca_argp_param_set_type(param, DOCA_ARGP_TYPE_STRING);
	return doca_argp_register_param(param); /* the parser owns it */
}

/*
 * Parse the options into *options, which has their defaults. All programs accept all options; a
 * client does not use the representor. The parser reports errors itself.
 */
static inline bool parse_options(int argc, char **argv, struct options *options)
{
	bool good;

	if (failed("options", doca_argp_init(NULL, options)))
		return false;
	good = !failed("-p",
		       add_option("p", "pci-addr", "PCI address of the device", set_device)) &&
	       !failed("-r",
		       add_option("r", "rep-pci", "PCI address of the representor, on the DPU",
				  set_representor)) &&
	       !failed("-t", add_option("t", "text", "text to send", set_text)) &&
	       doca_argp_start(argc, argv) == DOCA_SUCCESS;
	doca_argp_destroy();
	return good;
}

/* -- devices: the lists can be freed immediately, since an opened device remains valid -- */

static inline struct doca_dev *open_device_at(const char *address)
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint8_t equal;
	uint32_t n;

	if (failed("list devices", doca_devinfo_create_list(&list, &n)))
		return NULL;
	for (uint32_t i = 0; i < n && !dev; i++)
		if (doca_devinfo_is_equal_pci_addr(list[i], address, &equal) == DOCA_SUCCESS &&
		    equal)
			failed("open the device", doca_dev_open(list[i], &dev));
	doca_devinfo_destroy_list(list);
	if (!dev)
		fprintf(stderr, "no device %s\n", address);
	return dev;
}

static inline struct doca_dev_rep *open_representor_at(struct doca_dev *dev, const char *address)
{
	struct doca_devinfo_rep **list;
	struct doca_dev_rep *rep = NULL;
	uint8_t equal;
	uint32_t n;

	if (failed("list representors",
		   doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &n)))
		return NULL;
	for (uint32_t i = 0; i < n && !rep; i++)
		if (doca_devinfo_rep_is_equal_pci_addr(list[i], address, &equal) == DOCA_SUCCESS &&
		    equal)
			failed("open the representor", doca_dev_rep_open(list[i], &rep));
	doca_devinfo_rep_destroy_list(list);
	if (!rep)
		fprintf(stderr, "no representor %s\n", address);
	return rep;
}

/* -- the two sides -- */

/*
 * Open what a server needs, create the server, and call run(). Returns the exit status of the
 * program.
 */
static inline int with_server(const struct options *options, const char *name,
			      bool (*run)(struct doca_pe *pe, struct doca_dev *dev,
					  struct doca_comch_server *server))
{
	struct doca_dev *dev = open_device_at(options->device);
	struct doca_dev_rep *rep = dev ? open_representor_at(dev, options->representor) : NULL;
	struct doca_comch_server *server;
	struct doca_pe *pe = NULL;
	bool good = false;

	setvbuf(stdout, NULL, _IOLBF, 0); /* line buffered, also to a file */
	if (rep && !failed("engine", doca_pe_create(&pe)) &&
	    !failed("server", doca_comch_server_create(dev, rep, name, &server))) {
		good = run(pe, dev, server);
		doca_comch_server_destroy(server);
	}
	if (pe)
		doca_pe_destroy(pe);
	if (rep)
		doca_dev_rep_close(rep);
	if (dev)
		doca_dev_close(dev);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Like with_server(), for a client. */
static inline int with_client(const struct options *options, const char *name,
			      bool (*run)(struct doca_pe *pe, struct doca_dev *dev,
					  struct doca_comch_client *client))
{
	struct doca_dev *dev = open_device_at(options->device);
	struct doca_comch_client *client;
	struct doca_pe *pe = NULL;
	bool good = false;

	if (dev && !failed("engine", doca_pe_create(&pe)) &&
	    !failed("client", doca_comch_client_create(dev, name, &client))) {
		good = run(pe, dev, client);
		doca_comch_client_destroy(client);
	}
	if (pe)
		doca_pe_destroy(pe);
	if (dev)
		doca_dev_close(dev);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Start a client that is configured, and wait until it is connected. */
static inline bool connects(struct doca_pe *pe, struct doca_ctx *ctx)
{
	doca_error_t error = doca_ctx_start(ctx);

	if (error != DOCA_ERROR_IN_PROGRESS)
		return !failed("start", error);
	if (reaches(pe, ctx, DOCA_CTX_STATE_RUNNING))
		return true;
	fprintf(stderr, "no server: start it first\n");
	return false;
}

#endif
