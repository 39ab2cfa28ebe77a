/* SPDX-License-Identifier: BSD-3-Clause */
/* connect.c - pipes come up and go down: every event of a connection in every state of a pipe. */
#include "verbs.h"
