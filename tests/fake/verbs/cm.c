/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cm.c - operations of the program on an id of the connection manager, and the addresses of devices
 */
#include <arpa/inet.h>
#include <endian.h>

#include "cm.h"

#define ADDRESSES 32
#define FIRST_PORT 40000
#define DEFAULT_ACK_TIMEOUT 19

static struct {
	uint32_t addr; /* network order */
	int device;
} addresses[ADDRESSES];
static unsigned n_addresses;
static uint16_t next_port;

/* -- addresses -- */

static void set_address(const char *text, int device)
{
	uint32_t addr = inet_addr(text);
	unsigned i;

	for (i = 0; i < n_addresses && addresses[i].addr != addr; i++)
		;
	if (addr == INADDR_NONE || i == ADDRESSES) {
		fv_misuse("fake_address(): %s is no address, or one too many", text);
		return;
	}
	addresses[i].addr = addr;
	addresses[i].device = device;
	n_addresses += i == n_addresses;
}

static void default_addresses(void)
{
	if (n_addresses)
		return;
	set_address("127.0.0.1", 0);
	set_address("127.0.0.2", 1);
	set_address("10.99.0.1", 0);
	set_address("10.99.0.2", 1);
	next_port = FIRST_PORT;
}

void fake_address(const char *address, int index)
{
	fv_lock();
	default_addresses();
	set_address(address, index);
	fv_leave(0);
}

static int device_at(const struct sockaddr_in *sin)
{
	default_addresses();
	for (unsigned i = 0; i < n_addresses; i++)
		if (addresses[i].addr == sin->sin_addr.s_addr)
			return (unsigned)addresses[i].device < fv_n_devices() ? addresses[i].device
									      : -1;
	return -1;
}

static int is_any(const struct sockaddr_in *sin)
{
	return sin->sin_addr.s_addr == htonl(INADDR_ANY);
}

static int port_taken(const struct fv_id *but, const struct sockaddr_in *sin)
{
	for (struct fv_obj *obj = fv_first(FV_ID); obj; obj = obj->next) {
		const struct fv_id *id = obj->self;
		const struct sockaddr_in *own = &id->id.route.addr.src_sin;

		/* an id that a connection request created shares the port of its listener */
		if (id == but || id->state < FV_BOUND || id->passive || (id->reuse && but->reuse) ||
		    own->sin_port != sin->sin_port)
			continue;
		if (is_any(own) || is_any(sin) || own->sin_addr.s_addr == sin->sin_addr.s_addr)
			return 1;
	}
	return 0;
}

static void choose_port(const struct fv_id *id, struct sockaddr_in *sin)
{
	do {
		if (next_port < FIRST_PORT)
			next_port = FIRST_PORT;
		sin->sin_port = htons(next_port++);
	} while (port_taken(id, sin));
}

struct fv_id *fv_cm_listener(const struct sockaddr_in *addr)
{
	for (struct fv_obj *obj = fv_first(FV_ID); obj; obj = obj->next) {
		struct fv_id *id = obj->self;
		const struct sockaddr_in *own = &id->id.route.addr.src_sin;

		if (id->state == FV_LISTENS && own->sin_port == addr->sin_port &&
		    (id->any || own->sin_addr.s_addr == addr->sin_addr.s_addr))
			return id;
	}
	return NULL;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id->route.addr.dst_sin.sin_port;
}

/* -- devices -- */

/* Returns the context that the library opens for itself, once for each device. */
struct ibv_context *fv_cm_context(unsigned index)
{
	struct fv_device *device = fv_device(index);

	if (!device->cm_context)
		device->cm_context = fv_context_open(device, 1);
	return device->cm_context;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	int err = FV_ENTER(rdma_get_devices);
	struct ibv_context **list = NULL;
	unsigned n = fv_n_devices();

	if (!err) {
		list = fv_alloc((n + 1) * sizeof(*list));
		for (unsigned i = 0; i < n; i++)
			list[i] = fv_cm_context(i);
	}
	if (num_devices)
		*num_devices = err ? 0 : (int)n;
	return fv_leave_ptr(list, err);
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

/* -- ids -- */

struct fv_id *fv_id_make(struct fv_channel *channel, void *context, enum rdma_port_space ps)
{
	struct fv_id *id = fv_alloc(sizeof(*id));

	id->id.channel = &channel->channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = IBV_QPT_RC;
	id->ack_timeout = DEFAULT_ACK_TIMEOUT;
	channel->obj.users++;
	fv_add(FV_ID, &id->obj, id);
	return id;
}

/* Free an id. The caller has already sent any last message of the id to its peer. */
void fv_id_free(struct fv_id *id)
{
	if (id->peer)
		id->peer->peer = NULL;
	fv_cm_forget_events(id);
	((struct fv_channel *)id->id.channel)->obj.users--;
	fv_remove(&id->obj);
	free(id);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id_p, void *context,
		   enum rdma_port_space ps)
{
	int err = FV_ENTER(rdma_create_id);

	if (!err)
		err = fv_check(FV_EVENT_CHANNEL, channel, "rdma_create_id");
	if (!err && ps != RDMA_PS_TCP)
		err = EOPNOTSUPP;
	if (!err)
		*id_p = &fv_id_make((struct fv_channel *)channel, context, ps)->id;
	return fv_leave_errno(err);
}

static void leave_peer(struct fv_id *id)
{
	static const struct {
		enum fv_state state;
		enum fv_msg msg;
		int reason;
	} rows[] = {
		{FV_CONNECTS, FV_REJ, FV_REJ_TIMEOUT},
		{FV_ANSWERED, FV_REJ, FV_REJ_CONSUMER},
		{FV_REQUESTED, FV_REJ, FV_REJ_CONSUMER},
		{FV_ACCEPTED, FV_REJ, FV_REJ_CONSUMER},
		{FV_ESTABLISHED, FV_DREQ, 0},
		{FV_LEFT, FV_DREP, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].state == id->state) {
			id->reason = rows[i].reason;
			memset(id->data, 0, sizeof(id->data));
			fv_cm_send(id, rows[i].msg);
			return;
		}
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
	int err = FV_ENTER(rdma_destroy_id);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_destroy_id");
	if (!err) {
		if (fv_cm_qp(id))
			fv_misuse("rdma_destroy_id(): its queue pair exists");
		fv_check_acked(&id->obj, "rdma_destroy_id");
		leave_peer(id);
		fv_id_free(id);
	}
	return fv_leave_errno(err);
}

int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	int err = FV_ENTER(rdma_migrate_id);
	struct fv_id *id = (struct fv_id *)base;

	if (!err && (fv_check(FV_ID, base, "rdma_migrate_id") ||
		     fv_check(FV_EVENT_CHANNEL, channel, "rdma_migrate_id")))
		err = EINVAL;
	if (!err && channel != base->channel) {
		fv_check_acked(&id->obj, "rdma_migrate_id");
		fv_cm_move_events(id, (struct fv_channel *)channel);
		((struct fv_channel *)base->channel)->obj.users--;
		((struct fv_channel *)channel)->obj.users++;
		base->channel = channel;
	}
	return fv_leave_errno(err);
}

int rdma_set_option(struct rdma_cm_id *base, int level, int optname, void *optval, size_t optlen)
{
	int err = FV_ENTER(rdma_set_option);
	struct fv_id *id = (struct fv_id *)base;

	if (err || (err = fv_check(FV_ID, base, "rdma_set_option")))
		return fv_leave_errno(err);
	if (level != RDMA_OPTION_ID)
		err = ENOSYS;
	else if (optname == RDMA_OPTION_ID_ACK_TIMEOUT && optlen == sizeof(uint8_t) &&
		 *(uint8_t *)optval < 32)
		id->ack_timeout = *(uint8_t *)optval;
	else if (optname == RDMA_OPTION_ID_REUSEADDR && optlen == sizeof(int) &&
		 id->state == FV_IDLE)
		id->reuse = *(int *)optval;
	else if (!(optname == RDMA_OPTION_ID_TOS && optlen == sizeof(uint8_t)) &&
		 !(optname == RDMA_OPTION_ID_AFONLY && optlen == sizeof(int)))
		err = EINVAL;
	return fv_leave_errno(err);
}

/* -- addresses of ids -- */

static int bind_to(struct fv_id *id, const struct sockaddr *addr)
{
	struct sockaddr_in sin;
	int device;

	if (id->state != FV_IDLE)
		return EINVAL;
	if (addr->sa_family != AF_INET)
		return EAFNOSUPPORT;
	memcpy(&sin, addr, sizeof(sin));
	device = device_at(&sin);
	if (!is_any(&sin) && device < 0)
		return ENODEV;
	if (sin.sin_port == 0)
		choose_port(id, &sin);
	else if (port_taken(id, &sin))
		return EADDRINUSE;
	id->any = is_any(&sin);
	if (!id->any) {
		id->device = (unsigned)device;
		id->id.verbs = fv_cm_context(id->device);
		id->id.port_num = 1;
	}
	id->id.route.addr.src_sin = sin;
	id->state = FV_BOUND;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *addr)
{
	int err = FV_ENTER(rdma_bind_addr);

	if (!err)
		err = fv_check(FV_ID, base, "rdma_bind_addr");
	return fv_leave_errno(err ? err : bind_to((struct fv_id *)base, addr));
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
	int err = FV_ENTER(rdma_listen);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_listen");
	if (!err && id->state != FV_BOUND)
		err = EINVAL;
	if (!err) {
		id->backlog = backlog > 0 && backlog < 1024 ? (unsigned)backlog : 1024;
		id->state = FV_LISTENS;
	}
	return fv_leave_errno(err);
}

static int resolve(struct fv_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	int device, err;

	if (id->state != FV_IDLE && id->state != FV_BOUND)
		return EINVAL;
	if (dst->sa_family != AF_INET)
		return EAFNOSUPPORT;
	if (id->state == FV_IDLE) {
		err = bind_to(id, src ? src : (struct sockaddr *)&any);
		if (err)
			return err;
	}
	memcpy(&id->id.route.addr.dst_sin, dst, sizeof(any));
	device = device_at(&id->id.route.addr.dst_sin);
	if (device < 0) {
		fv_cm_event(id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, NULL, 0);
		return 0;
	}
	id->remote_device = (unsigned)device;
	if (id->any) { /* as in the kernel, source and destination of a local route are equal */
		id->any = 0;
		id->device = (unsigned)device;
		id->id.route.addr.src_sin.sin_addr = id->id.route.addr.dst_sin.sin_addr;
	}
	id->state = FV_ADDR;
	fv_cm_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	int err = FV_ENTER(rdma_resolve_addr);

	if (!err)
		err = fv_check(FV_ID, base, "rdma_resolve_addr");
	if (!err && timeout_ms <= 0)
		fv_misuse("rdma_resolve_addr(): timeout %d", timeout_ms);
	return fv_leave_errno(err ? err : resolve((struct fv_id *)base, src, dst));
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	int err = FV_ENTER(rdma_resolve_route);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_resolve_route");
	if (!err && timeout_ms <= 0)
		fv_misuse("rdma_resolve_route(): timeout %d", timeout_ms);
	if (!err && id->state != FV_ADDR)
		err = EINVAL;
	if (!err) {
		id->state = FV_ROUTE;
		fv_cm_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	}
	return fv_leave_errno(err);
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		"RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
		"RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
		"RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
		"RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
		"RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
		"RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
		"RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
		"RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT"};

	return (unsigned)event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}

void fv_addresses_reset(void)
{
	n_addresses = 0;
	default_addresses();
}
