/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

/*
 * The oldest supported kernel: the first with MADV_POPULATE_READ. gantry(1) lists what older
 * kernels lack.
 */
#define MIN_MAJOR 5u
#define MIN_MINOR 14u

int gn_kernel_check(char *why)
{
	struct utsname name;
	unsigned major, minor;

	why[0] = '\0';
	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2 ||
	    major > MIN_MAJOR || (major == MIN_MAJOR && minor >= MIN_MINOR))
		return 0;
	snprintf(
		why, GN_KERNEL_WHY,
		"Linux %.64s is too old (minimum=%u.%u): run a newer kernel; see REQUIREMENTS in gantry(1)",
		name.release, MIN_MAJOR, MIN_MINOR);
	return -ENOSYS;
}
