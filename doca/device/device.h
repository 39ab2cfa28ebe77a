/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - the devices that a program sees, and the transports behind them.
 *
 * One emulated card is always there. A process sees it through two functions, unless
 * GANTRY_DOCA_PROFILE=host or =dpu (see `gantry env`) leaves only one of them:
 *     dpu     PCI 0000:03:00.0, ibdev mlx5_0, interface p0; has the representor of the host
 *             function
 *     host    PCI 0000:b1:00.0, ibdev mlx5_1, interface ens1f0np0
 * GANTRY_DOCA_CONF=FILE names a configuration (the `devices` of every gantry configuration) that
 * changes or adds functions: an entry whose pci is that of a function changes this one, any other
 * adds one. Each may carry
 *     pci, ibdev, iface            as programs name the function
 *     profile = "host" | "dpu"     left out: dpu when it has representors
 *     representors = ( { pci = "..."; iface = "..."; } )
 *     card                         functions of one card meet; left out: the one card
 *     insecure = true              every host that reaches it may connect; required for a network
 *                                  transport
 *     transport, and its options   a transport of this machine (shm-comch) serves Comch, and RDMA
 *                                  between processes of it; one of the network (rdma-verbs, rxe)
 *                                  RDMA, instead of the other where a function has both
 * and `doca = { functions = "none"; }` takes away those that are always there. There, too, stands
 * how long clients wait: connect_timeout = "5s".
 */
#ifndef GD_DEVICE_H
#define GD_DEVICE_H

#include <doca_dev.h>

#include <gantry/transport.h>

#include <stdbool.h>
#include <stdint.h>

enum gd_side { GD_HOST = 1, GD_DPU = 2 };

/* an opened device of a transport plugin; one per configured device and process */
struct gd_transport;
struct gd_wire; /* what one will be opened with */

struct doca_devinfo_rep {
	const struct doca_devinfo *of; /* the device that has it */
	char pci[13];                  /* "0000:b1:00.0": of the function that it stands for */
	char iface[256];
	char vuid[128];
	struct doca_dev_rep *rep; /* the one that is opened, again and again */
};

struct doca_devinfo {
	char name[64]; /* the entry's, for messages */
	char card[64];
	char pci[13];
	char ibdev[64];
	char iface[256];
	enum gd_side side;
	bool comch;   /* Comch over shared memory */
	bool network; /* RDMA over verbs; else over shared memory */
	uint8_t mac[6];
	uint32_t index;
	uint32_t n_reps;
	struct doca_devinfo_rep *reps;
	/* transports of this machine and of the network; at least one */
	struct gd_wire *local, *wide;
	struct doca_dev *dev; /* the one that is opened, again and again */
};

struct doca_dev {
	struct doca_devinfo *info; /* lives as long as the process */
	uint32_t references;       /* under the lock of doca_dev.c, as users; 0: closed */
	uint32_t users;            /* contexts made with it */
};

struct doca_dev_rep {
	struct doca_devinfo_rep *info;
	struct doca_dev *dev;
	uint32_t references;
	uint32_t users;
};

/*
 * All functions of this process, in the order of listing. NO_MEMORY; NOT_FOUND after lines in the
 * log when the configuration is wrong.
 */
doca_error_t gd_devices(struct doca_devinfo *const **infos_p, uint32_t *n_p);
/* With a device open: how long a Comch client waits for a server that does not answer. */
uint64_t gd_connect_ns(void);

/* May something be made with it? NULL and one that was closed: no. Any thread. */
bool gd_dev_is_open(const struct doca_dev *dev);
bool gd_rep_is_open(const struct doca_dev_rep *rep);
/*
 * Something was made with it, or is gone again: until then it cannot be closed. Any thread. NULL is
 * fine.
 */
void gd_dev_hold(struct doca_dev *dev);
void gd_dev_release(struct doca_dev *dev);
void gd_rep_hold(struct doca_dev_rep *rep);
void gd_rep_release(struct doca_dev_rep *rep);

/*
 * The transport of a device for Comch; the plugin is loaded and the device opened at the first
 * call. NOT_SUPPORTED: has none; INITIALIZATION after a line in the log that says why. Any thread.
 */
doca_error_t gd_transport_get(struct doca_devinfo *info, struct gd_transport **transport_p);
/*
 * The same for RDMA: over the network when the function has such a transport, else within this
 * machine.
 */
doca_error_t gd_transport_get_rdma(struct doca_devinfo *info, struct gd_transport **transport_p);

/*
 * The service of that transport by which the Comch server `name` is reached from the function
 * `pci`: of the representor that the server serves, and of the client's device. Nobody else comes
 * upon it.
 */
void gd_service_name(char service[64], const char pci[13], const char *name);

/*
 * Calls into the control part of a transport (connect, send_ctrl, create and destroy queues,
 * regions, ...) are made with its lock held. Its events are delivered by the service thread, which
 * holds the lock: what they have to tell a program goes to its engine by gd_pe_post(). The lock is
 * recursive: callbacks may call in again. After gd_transport_unlock() the service thread looks at
 * the device at once. The data path (post_recv, poll_recv, send, rma_submit, ...) needs no lock.
 */
const struct gantry_transport_ops *gd_transport_lock(struct gd_transport *transport,
						     void **device_p);
void gd_transport_unlock(struct gd_transport *transport);
const struct gantry_transport_ops *gd_transport_ops(const struct gd_transport *transport);
void gd_transport_info(const struct gd_transport *transport, struct gantry_device_info *info);

/*
 * What the functions doca_*_cap_* answer. INVALID_VALUE: no device, or no place for the number;
 * NOT_SUPPORTED: it cannot.
 */
static inline doca_error_t gd_cap(const struct doca_devinfo *devinfo, bool can)
{
	if (!devinfo)
		return DOCA_ERROR_INVALID_VALUE;
	return can ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

static inline doca_error_t gd_cap_u32(const struct doca_devinfo *devinfo, bool can, uint32_t value,
				      uint32_t *value_p)
{
	const doca_error_t result = value_p ? gd_cap(devinfo, can) : DOCA_ERROR_INVALID_VALUE;

	if (result == DOCA_SUCCESS)
		*value_p = value;
	return result;
}

static inline doca_error_t gd_cap_u64(const struct doca_devinfo *devinfo, bool can, uint64_t value,
				      uint64_t *value_p)
{
	const doca_error_t result = value_p ? gd_cap(devinfo, can) : DOCA_ERROR_INVALID_VALUE;

	if (result == DOCA_SUCCESS)
		*value_p = value;
	return result;
}

/*
 * Folder for sockets of this user on this machine, made when needed: $GANTRY_RUNDIR,
 * $XDG_RUNTIME_DIR/gantry when there is such a folder, /run/gantry (root), /tmp/gantry-UID.
 */
doca_error_t gd_run_dir(char path[80]);

#endif
