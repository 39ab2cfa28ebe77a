/* SPDX-License-Identifier: BSD-3-Clause */
/* argp_rig.h - a program with options, and its command line. */
#ifndef TEST_ARGP_RIG_H
#define TEST_ARGP_RIG_H

#include <doca_argp.h>

#include "captured.h"

/* Call doca_argp_start with these words, for a program with the name "prog". */
#define START(...) start_words((const char *[]){"prog", ##__VA_ARGS__, NULL})

static inline int start_words(const char **words)
{
	int n = 0;

	while (words[n])
		n++;
	return (int)doca_argp_start(n, (char **)words);
}

/* Create an option that is not registered yet; each name can be NULL. */
static inline struct doca_argp_param *make(const char *short_name, const char *long_name,
					   enum doca_argp_type type, doca_argp_param_cb_t callback)
{
	struct doca_argp_param *param;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_param_create(&param));
	doca_argp_param_set_short_name(param, short_name);
	doca_argp_param_set_long_name(param, long_name);
	doca_argp_param_set_description(param, "what it is for");
	doca_argp_param_set_callback(param, callback);
	doca_argp_param_set_type(param, type);
	return param;
}

static inline void add(struct doca_argp_param *param)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_param(param));
}

#endif
