/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_vm.c - gantry vm: prints the options of QEMU with which a virtual machine has the disks that
 * the roles of a configuration serve.
 */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"
#include "report/report.h"
#include "topology/topology.h"

#define MEMORY "1GiB" /* of the virtual machine, unless the command line states it */
#define MIB (1ull << 20)
#define WORD_BYTES 8192u
#define SAFE "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

/* Add an option and its value to a list of words. Returns false without memory. */
static bool add(json_t *words, const char *option, const char *value)
{
	return json_array_append_new(words, gn_report_string(option)) == 0 &&
	       json_array_append_new(words, gn_report_string(value)) == 0;
}

/* Memory that other processes can import: a memfd, shared and sealed. */
static bool add_memory(json_t *words, uint64_t bytes)
{
	char value[128];

	snprintf(value, sizeof(value), "%lluM", (unsigned long long)(bytes / MIB));
	if (!add(words, "-m", value))
		return false;
	snprintf(value, sizeof(value),
		 "memory-backend-memfd,id=gantry-memory,size=%lluM,share=on,seal=on",
		 (unsigned long long)(bytes / MIB));
	return add(words, "-object", value) && add(words, "-numa", "node,memdev=gantry-memory");
}

/* Copy text into a value of QEMU, in which a comma is written twice. */
static void copy_value(char *dst, size_t bytes, const char *text)
{
	size_t n = 0;

	for (; *text && n + 3 < bytes; text++) {
		dst[n++] = *text;
		if (*text == ',')
			dst[n++] = ',';
	}
	dst[n] = '\0';
}

/* QEMU connects again each second after the role has ended. */
static bool add_disk(json_t *words, const struct gn_topo_role *role, const char *socket)
{
	char path[WORD_BYTES / 2], value[WORD_BYTES];

	copy_value(path, sizeof(path), socket);
	snprintf(value, sizeof(value), "socket,id=gantry-%s,path=%s,reconnect=1", role->name, path);
	if (!add(words, "-chardev", value))
		return false;
	snprintf(value, sizeof(value), "vhost-user-blk-pci,chardev=gantry-%s,num-queues=%u",
		 role->name, role->spec.n_lanes);
	return add(words, "-device", value);
}

/* Add the disk of each role. Returns their number; -1: out of memory. */
static int add_disks(json_t *words, const struct gn_topology *t)
{
	int n = 0;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		const struct gn_topo_role *role = &t->roles[i];
		const char *socket = gn_conf_string(gn_conf_child(role->node, "socket"));

		if (!role->selected || !(role->flags & GANTRY_ROLE_VHOST_DISK) || !socket)
			continue;
		if (!add_disk(words, role, socket))
			return -1;
		n++;
	}
	return n;
}

/* Print a word, quoted for a shell if it needs that. */
static void print_word(const char *word)
{
	if (word[strspn(word, SAFE)] == '\0')
		fputs(word, stdout);
	else
		gn_cli_print_quoted(word);
}

/* Print a line for each option with its value. */
static void print_words(const json_t *words)
{
	for (size_t i = 0; i + 1 < json_array_size(words); i += 2) {
		print_word(json_string_value(json_array_get(words, i)));
		putchar(' ');
		print_word(json_string_value(json_array_get(words, i + 1)));
		putchar('\n');
	}
}

static int describe(const struct gn_cli *cli, const struct gn_topology *t, uint64_t memory)
{
	json_t *words = json_array(), *tree;
	int n = words && add_memory(words, memory) ? add_disks(words, t) : -1, code = GN_EXIT_OK;

	if (n < 0)
		code = gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	else if (n == 0)
		code = gn_cli_fail(GN_EXIT_USAGE,
				   "%s: no role serves a disk to a virtual machine: add one, as in "
				   "the example virtual-machine.conf",
				   t->file);
	if (!code && cli->json) {
		tree = json_pack("{si sO}", "schema", 1, "qemu", words);
		code = gn_cli_print_json(tree) ? GN_EXIT_FAILED : GN_EXIT_OK;
		json_decref(tree);
	} else if (!code) {
		print_words(words);
	}
	json_decref(words);
	return code;
}

int gn_cli_vm(const struct gn_cli *cli)
{
	const char *size = cli->args.n > 1 ? cli->args.word[1] : MEMORY;
	struct gn_topology_args args = cli->topology;
	struct gn_topology topology = {0};
	struct gn_errs errs = {0};
	uint64_t memory;
	int code;

	if (gn_size_parse(size, &memory) || memory < MIB || memory % MIB)
		return gn_cli_fail(GN_EXIT_USAGE,
				   "size of memory is not valid (value=%s): state whole MiB, such "
				   "as 4GiB",
				   size);
	args.values_only = true;
	gn_topology_load(&topology, cli->args.word[0], &args, &errs);
	code = errs.n ? gn_cli_complain(&errs) : describe(cli, &topology, memory);
	gn_topology_close(&topology);
	return code;
}
