/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"

const char fake_plugin_dir[] = TEST_PLUGINDIR;
