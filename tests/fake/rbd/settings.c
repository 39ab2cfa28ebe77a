/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - settings of the fake of librbd that metadata of the image overrides, see rbd.h. */
#include "rbd.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rbd/librbd.h>

#define N_SETTINGS (sizeof settings / sizeof *settings)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const char *name, *value;
} settings[] = {{"rbd_cache", "false"}, {"rbd_blocklist_on_break_lock", "true"}};

void fake_rbd_setting(const char *name, const char *value)
{
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < N_SETTINGS; i++)
		if (!strcmp(settings[i].name, name))
			settings[i].value = value;
	pthread_mutex_unlock(&mutex);
}

int rbd_config_image_list(rbd_image_t image, rbd_config_option_t *options, int *max_options)
{
	(void)image;
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < N_SETTINGS; i++)
		options[i] = (rbd_config_option_t){.name = strdup(settings[i].name),
						   .value = strdup(settings[i].value)};
	pthread_mutex_unlock(&mutex);
	*max_options = N_SETTINGS;
	return 0;
}

void rbd_config_image_list_cleanup(rbd_config_option_t *options, int max_options)
{
	for (int i = 0; i < max_options; i++) {
		free(options[i].name);
		free(options[i].value);
	}
}
