/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c - a configuration file of any content: no crash, and a message for each rejection. The
 * part of the input after a zero byte is an argument of --set.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct conf {
	const char *text;
	uint64_t size, time;
	int64_t number;
	uint32_t choice;
	uint8_t flag;
	const char *inner;
};

static const char *const words[] = {"red", "green", NULL};

static const struct gantry_option group[] = {
	{"inner", GANTRY_OPT_STRING, offsetof(struct conf, inner), NULL, 0, 0, NULL, NULL, NULL},
	GANTRY_OPTION_END,
};

static const struct gantry_option table[] = {
	{"text", GANTRY_OPT_STRING, offsetof(struct conf, text), "x", 0, 0, NULL, NULL, NULL},
	{"size", GANTRY_OPT_SIZE, offsetof(struct conf, size), "4KiB", 512, 1 << 20, NULL, NULL,
	 NULL},
	{"time", GANTRY_OPT_TIME, offsetof(struct conf, time), "1s", 0, 0, NULL, NULL, NULL},
	{"number", GANTRY_OPT_INT, offsetof(struct conf, number), "1", -5, 5, NULL, NULL, NULL},
	{"choice", GANTRY_OPT_CHOICE, offsetof(struct conf, choice), "red", 0, 0, words, NULL,
	 NULL},
	{"flag", GANTRY_OPT_BOOL, offsetof(struct conf, flag), "true", 0, 0, NULL, NULL, NULL},
	{"group", GANTRY_OPT_GROUP, 0, "", 0, 0, NULL, group, NULL},
	GANTRY_OPTION_END,
};

/* libconfig 1.5 leaks the text of a string if a syntax error follows it directly. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	/* names the library: without a symbolizer, LSan does not know the function */
	return "leak:libconfig.so\n";
}

/* Call all functions that read a tree. */
static void walk(struct gn_conf_node *node, struct gn_errs *errs)
{
	struct conf conf;

	require(gn_conf_where(node) && gn_conf_path(node));
	if (gn_conf_string(node))
		require(gn_conf_length(node) == 0);
	if (gn_conf_is_group(node)) {
		size_t before = errs->n;
		int ret = gn_conf_options(node, table, &conf, NULL, errs);

		require((ret == 0) == (errs->n == before));
		require(ret || (conf.number >= -5 && conf.number <= 5 && conf.size >= 512 &&
				conf.size <= 1 << 20));
		require(ret || (conf.choice < 2 && conf.flag < 2 && strlen(conf.text) < SIZE_MAX));
	}
	for (unsigned int i = 0; i < gn_conf_length(node); i++)
		walk(gn_conf_index(node, i), errs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	const uint8_t *zero = size ? memchr(data, '\0', size) : NULL;
	size_t length = zero ? (size_t)(zero - data) : size;
	char *set = zero ? strndup((const char *)zero + 1, size - length - 1) : NULL;
	int fd = memfd_create("config", MFD_CLOEXEC);
	struct gn_errs errs = {0};
	struct gn_config *config;
	char path[40];

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	require(fd >= 0 && nowhere && !fchmod(fd, 0600) &&
		write(fd, data, length) == (ssize_t)length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	config = gn_config_open(path, (const char *const *)&set, set ? 1 : 0, &errs);
	require((!config) == (errs.n != 0));
	if (config) {
		walk(gn_config_root(config), &errs);
		gn_config_dump(config, nowhere);
	}
	gn_config_close(&config);
	gn_errs_fini(&errs);
	free(set);
	close(fd);
	return 0;
}
