/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what a plugin reports about an instance, for its function `check`: faults of its
 * options, and the properties that the host needs without a call of `open`.
 */
#ifndef GANTRY_CHECK_H
#define GANTRY_CHECK_H

#include <stdint.h>

#include <gantry/volume.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_device_info;
struct gantry_host;
struct gantry_plan;

/*
 * `gantry check` is running: compare the options with this machine as well. `check` must not
 * change, lock or wait for anything, and must not open a device.
 */
#define GANTRY_CHECK_MACHINE 0x1u

/*
 * One call of `check`. Each kind of plugin has its own group of members; the plugin leaves a member
 * unchanged if it has nothing to report. The host allocates the struct, so it can grow at its end.
 */
struct gantry_check {
	void *core;
	/*
	 * Add a fault that no single row of the option table can detect, such as a value that is
	 * not a power of two, or options that exclude each other. With GANTRY_CHECK_MACHINE: a
	 * reason for which `open` would fail. The host adds the file, line and key to the message.
	 *
	 * check   this struct
	 * option  its name, or "group.option" in a group
	 * fmt     text and arguments as for printf(3): the problem, then the remedy
	 * thread  control thread
	 */
	void (*fault)(const struct gantry_check *check, const char *option, const char *fmt, ...)
#ifdef __GNUC__
		__attribute__((format(printf, 3, 4)))
#endif
		;
	uint32_t flags; /* GANTRY_CHECK_* */
	/*
	 * out, with GANTRY_CHECK_MACHINE, except for a role: the result that `open` would have. The
	 * host opens the instance only if the value is 0.
	 *     -EAGAIN: it would succeed, and create or change something on this machine
	 *     -ENODEV, -ENOENT: this machine does not have the device
	 *     another -errno: it would fail; the plugin has logged the cause
	 */
	int status;
	const struct gantry_host *host; /* with GANTRY_CHECK_MACHINE: as for `open`; else NULL */

	/* -- transport -- */
	/*
	 * NULL; or, after a call without faults, a text of a service, 1 to 63 bytes. The plugin
	 * adds one fault if the text is not valid, as a text that can follow the service ("is no
	 * address; write ...").
	 */
	const char *service;
	/*
	 * out: connections that all listeners of the device can have at a time; 0: no limit. The
	 * host rejects a configuration in which the roles of one process could accept more sessions
	 * on the device.
	 */
	uint32_t max_connections;
	uint32_t n_connects; /* of a role */
	/* out, with status -EAGAIN: the properties of the device; max_depth 0: unknown */
	struct gantry_device_info *info;

	/* -- backend -- */
	/*
	 * out: the volume, as far as it follows from the options only; unknown fields are 0. For a
	 * role: in and out, the volume that its clients will see. In: that of its backend, or all 0
	 */
	struct gantry_volume_info volume;

	/* -- role: set in the call with GANTRY_CHECK_MACHINE, which follows `open` -- */
	void *role; /* what `open` stored; NULL: the role is not open */
	/*
	 * volumes[i]: the volume of the i-th of n_connects entries of `connect`, as far as it
	 * follows from the configuration; unknown fields are 0. The plugin adds a fault if the role
	 * cannot use them
	 */
	const struct gantry_volume_info *volumes;
	/*
	 * plans[i], in and out: what the role needs through that connect. In: the limits of
	 * `listen` if the role listens, else one session of all lanes
	 */
	struct gantry_plan *plans;
};

/* `fault` of the check. */
#define gantry_option_fault(check, ...) (check)->fault(check, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
