/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gd_device.h - the devices (PCI functions) that a program sees, and the transports behind them
 *
 * One emulated card always exists. A process sees it through two functions.
 * GANTRY_DOCA_PROFILE=host or =dpu limits it to one of them (see `gantry env`):
 *     dpu     PCI 0000:03:00.0, ibdev mlx5_0, interface p0; has the representor of the host
 *             function
 *     host    PCI 0000:b1:00.0, ibdev mlx5_1, interface ens1f0np0
 * GANTRY_DOCA_CONF=FILE names a configuration file. An entry of its `devices` with the pci of an
 * existing function changes that function, any other adds one. Keys of an entry:
 *     pci, ibdev, iface            names of the function for programs
 *     profile = "host" | "dpu"     side of the function; default: dpu if it has representors
 *     representors = ( { pci = "..."; iface = "..."; } )
 *     card                         functions of one card can connect; default: the emulated card
 *     auth, and auth_...           how peers on a network prove who they are (secure/auth.h);
 *                                  required for a network transport
 *     services = { NAME = "TEXT"; } the transport uses this text for the Comch server NAME
 *     transport, and its options   a transport of this machine (shm-comch) serves Comch, and RDMA
 *                                  between processes of this machine. A network transport
 *                                  (rdma-verbs, rxe, tcp) serves RDMA. A function with both uses
 *                                  the network transport for RDMA
 * `doca = { functions = "none"; }` removes the two default functions. In the same group,
 * connect_timeout = "5s" sets how long a Comch client waits for a server.
 */
#ifndef GD_DEVICE_H
#define GD_DEVICE_H

#include <doca_dev.h>

#include <gantry/transport.h>

#include <stdbool.h>
#include <stdint.h>

enum gd_side { GD_HOST = 1, GD_DPU = 2 };

/* an opened device of a transport plugin; one for each configured device and process */
struct gd_transport;
struct gd_wire; /* the configuration that a transport is opened with */

struct doca_devinfo_rep {
	const struct doca_devinfo *of; /* the device that has the representor */
	char pci[13];                  /* address of the represented function, "0000:b1:00.0" */
	char iface[256];
	char vuid[128];
	struct doca_dev_rep *rep; /* the object that each open returns */
};

struct doca_devinfo {
	char name[64]; /* name of the entry, for messages */
	char card[64];
	char pci[13];
	char ibdev[64];
	char iface[256];
	enum gd_side side;
	bool comch;   /* Comch over shared memory */
	bool network; /* RDMA over a network; otherwise over shared memory */
	uint8_t mac[6];
	uint32_t index;
	uint32_t n_reps;
	struct doca_devinfo_rep *reps;
	/* transport of this machine, and network transport; at least one is set */
	struct gd_wire *local, *wide;
	struct doca_dev *dev; /* the object that each open returns */
};

struct doca_dev {
	struct doca_devinfo *info; /* exists until the process ends */
	uint32_t references;       /* opens; 0: closed. Under the lock of doca_dev.c, like users */
	uint32_t users;            /* objects created with the device */
};

struct doca_dev_rep {
	struct doca_devinfo_rep *info;
	struct doca_dev *dev;
	uint32_t references;
	uint32_t users;
};

/*
 * Get all functions of this process in listing order. NO_MEMORY; NOT_FOUND: the configuration is
 * invalid, see the log.
 */
doca_error_t gd_devices(struct doca_devinfo *const **infos_p, uint32_t *n_p);
/* How long a Comch client waits for a server that does not answer. Call with a device open. */
uint64_t gd_connect_ns(void);

/* Returns whether the device is open. false for NULL. Any thread. */
bool gd_dev_is_open(const struct doca_dev *dev);
bool gd_rep_is_open(const struct doca_dev_rep *rep);
/*
 * Count the objects created with a device or representor: it cannot be closed while one exists. Any
 * thread. NULL has no effect.
 */
void gd_dev_hold(struct doca_dev *dev);
void gd_dev_release(struct doca_dev *dev);
void gd_rep_hold(struct doca_dev_rep *rep);
void gd_rep_release(struct doca_dev_rep *rep);

/*
 * Get the transport of a device for Comch. The first call loads the plugin and opens the device.
 * NOT_SUPPORTED: the device has none; INITIALIZATION: see the log. Any thread.
 */
doca_error_t gd_transport_get(struct doca_devinfo *info, struct gd_transport **transport_p);
/*
 * Like gd_transport_get(), for RDMA: the network transport if the function has one, else that of
 * this machine.
 */
doca_error_t gd_transport_get_rdma(struct doca_devinfo *info, struct gd_transport **transport_p);

/*
 * Returns the transport service of the Comch server `name`. pci: the represented function (server),
 * or the function of the client's device. The name is unique for the pair.
 */
void gd_service_name(char service[64], const char pci[13], const char *name);
/* As gd_service_name(), or the text to which `services` of the device maps the name. */
void gd_comch_service(char service[64], const struct doca_devinfo *info, const char pci[13],
		      const char *name);

/*
 * The caller holds the lock of a transport during calls into its control part (connect, send_ctrl,
 * create and destroy queues, regions, ...). The service thread delivers the events of the transport
 * and holds the lock; events for a program go to its engine by gd_pe_post(). The lock is recursive,
 * because event handlers may call the transport. gd_transport_unlock() lets the service thread
 * progress the device immediately. The data path (post_recv, poll_recv, send, rma_submit, ...)
 * needs no lock.
 */
const struct gantry_transport_ops *gd_transport_lock(struct gd_transport *transport,
						     void **device_p);
void gd_transport_unlock(struct gd_transport *transport);
const struct gantry_transport_ops *gd_transport_ops(const struct gd_transport *transport);
/* NOT_SUPPORTED: the transport has no data queues, which this function has logged. */
doca_error_t gd_transport_need_data(const struct gd_transport *transport);
void gd_transport_info(const struct gd_transport *transport, struct gantry_device_info *info);

/*
 * Results of the functions doca_*_cap_*. INVALID_VALUE: no device, or no destination;
 * NOT_SUPPORTED: `can` is false.
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
 * Get the run directory, for sockets of this user, and create it if needed: $GANTRY_RUNDIR,
 * $XDG_RUNTIME_DIR/gantry if $XDG_RUNTIME_DIR is a directory, /run/gantry (root), or
 * /tmp/gantry-UID. OPERATING_SYSTEM: see the log.
 */
doca_error_t gd_run_dir(char path[80]);

#endif
