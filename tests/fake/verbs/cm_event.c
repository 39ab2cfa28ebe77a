/* SPDX-License-Identifier: BSD-3-Clause */
/* cm_event.c - event channels, events, and the messages between two ids that raise them */
#include "cm.h"

/* -- channels -- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	int err = FV_ENTER(rdma_create_event_channel);
	struct fv_channel *channel;

	if (err)
		return fv_leave_ptr(NULL, err);
	channel = fv_alloc(sizeof(*channel));
	err = fv_bell_open(&channel->bell);
	if (err) {
		free(channel);
		return fv_leave_ptr(NULL, err);
	}
	channel->channel.fd = channel->bell.fd;
	channel->last = &channel->first;
	fv_add(FV_EVENT_CHANNEL, &channel->obj, channel);
	return fv_leave_ptr(channel, 0);
}

static void free_channel(struct fv_channel *channel)
{
	fv_bell_close(&channel->bell);
	fv_remove(&channel->obj);
	free(channel);
}

void rdma_destroy_event_channel(struct rdma_event_channel *base)
{
	struct fv_channel *channel = (struct fv_channel *)base;

	FV_ENTER(rdma_destroy_event_channel);
	if (fv_check(FV_EVENT_CHANNEL, base, "rdma_destroy_event_channel") == 0) {
		if (channel->obj.users)
			fv_misuse("rdma_destroy_event_channel(): %u ids use it",
				  channel->obj.users);
		else
			free_channel(channel);
	}
	fv_leave(0);
}

/* -- events -- */

struct fv_event *fv_cm_event(struct fv_id *id, enum rdma_cm_event_type type, int status,
			     const void *data, unsigned len)
{
	struct fv_channel *channel = (struct fv_channel *)id->id.channel;
	struct fv_event *event = fv_alloc(sizeof(*event));

	event->event.id = &id->id;
	event->event.event = type;
	event->event.status = status;
	event->owner = id;
	if (len)
		memcpy(event->data, data, len);
	*channel->last = event;
	channel->last = &event->next;
	fv_bell_ring(&channel->bell);
	return event;
}

static void set_data(struct fv_event *event, unsigned len)
{
	event->event.param.conn.private_data = event->data;
	event->event.param.conn.private_data_len = (uint8_t)len;
}

/*
 * Drop the pending events of an id. If one is a connection request, reject it and free its new id.
 */
void fv_cm_forget_events(struct fv_id *id)
{
	struct fv_channel *channel = (struct fv_channel *)id->id.channel;
	struct fv_event **link = &channel->first, *event;

	while ((event = *link)) {
		if (event->owner != id && event->event.id != &id->id) {
			link = &event->next;
			continue;
		}
		*link = event->next;
		if (!event->next)
			channel->last = link;
		if (event->owner == id && event->event.id != &id->id) {
			struct fv_id *child = (struct fv_id *)event->event.id;

			child->reason = FV_REJ_CONSUMER;
			fv_cm_send(child, FV_REJ);
			fv_id_free(child);
			link = &channel->first; /* restart: the child's events were unlinked too */
		}
		free(event);
	}
	if (!channel->first)
		fv_bell_quiet(&channel->bell);
	for (struct fv_obj *obj = fv_first(FV_CM_EVENT); obj; obj = obj->next)
		if (((struct fv_event *)obj->self)->owner == id)
			((struct fv_event *)obj->self)->owner = NULL;
}

void fv_cm_move_events(struct fv_id *id, struct fv_channel *to)
{
	struct fv_channel *channel = (struct fv_channel *)id->id.channel;
	struct fv_event **link = &channel->first, *event;

	while ((event = *link)) {
		if (event->owner != id) {
			link = &event->next;
			continue;
		}
		*link = event->next;
		if (!event->next)
			channel->last = link;
		event->next = NULL;
		*to->last = event;
		to->last = &event->next;
		fv_bell_ring(&to->bell);
	}
	if (!channel->first)
		fv_bell_quiet(&channel->bell);
}

/* Do what the library does when the program gets the event. */
static void process(struct fv_event *event)
{
	struct fv_id *id = (struct fv_id *)event->event.id;

	switch (event->event.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		id->id.verbs = fv_cm_context(id->device);
		id->id.port_num = 1;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		id->obj.hidden = 0;
		id->id.verbs = fv_cm_context(id->device);
		id->id.port_num = 1;
		event->owner->n_requests -= event->owner->n_requests > 0;
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (!id->id.qp)
			break;
		if (id->state != FV_ANSWERED || fv_cm_connect_qp(id) != 0) {
			event->event.event = RDMA_CM_EVENT_CONNECT_ERROR;
			event->event.status = -EINVAL;
			break;
		}
		event->event.event = RDMA_CM_EVENT_ESTABLISHED;
		id->state = FV_ESTABLISHED;
		fv_cm_send(id, FV_RTU);
		break;
	case RDMA_CM_EVENT_REJECTED:
		fv_cm_qp_error(id);
		break;
	default:
		break;
	}
}

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **event_p)
{
	int err = FV_ENTER(rdma_get_cm_event);
	struct fv_channel *channel = (struct fv_channel *)base;
	struct fv_event *event;

	while (!err && !channel->first) {
		fv_leave(0);
		err = fv_bell_wait(base->fd);
		fv_lock();
	}
	if (err)
		return fv_leave_errno(err);
	event = channel->first;
	channel->first = event->next;
	if (!channel->first) {
		channel->last = &channel->first;
		fv_bell_quiet(&channel->bell);
	}
	event->owner->obj.unacked++;
	fv_add(FV_CM_EVENT, &event->obj, event);
	fv_counters.cm_events++;
	process(event);
	*event_p = &event->event;
	return fv_leave_errno(0);
}

int rdma_ack_cm_event(struct rdma_cm_event *base)
{
	int err = FV_ENTER(rdma_ack_cm_event);
	struct fv_event *event = (struct fv_event *)base;

	if (!err)
		err = fv_check(FV_CM_EVENT, base, "rdma_ack_cm_event");
	if (!err) {
		if (event->owner)
			event->owner->obj.unacked--;
		fv_counters.cm_acks++;
		fv_remove(&event->obj);
		free(event);
	}
	return fv_leave_errno(err);
}

/* -- messages -- */

/* Create the id of a connection request, which the program gets with the event. */
struct fv_id *fv_cm_child(struct fv_id *listener)
{
	struct fv_id *child = fv_id_make((struct fv_channel *)listener->id.channel,
					 listener->id.context, listener->id.ps);

	child->obj.hidden = 1;
	child->state = FV_REQUESTED;
	child->passive = 1;
	child->device = listener->device;
	child->id.route.addr.src_sin = listener->id.route.addr.src_sin;
	return child;
}

static struct fv_event *request_event(struct fv_id *listener, struct fv_id *child, const void *data)
{
	struct fv_event *event = fv_cm_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, data,
					     FV_REQ_DATA);

	event->event.id = &child->id;
	event->event.listen_id = &listener->id;
	event->event.param.conn = child->param;
	set_data(event, FV_REQ_DATA);
	listener->n_requests++;
	return event;
}

static void reject(struct fv_id *client, int reason, const void *data)
{
	client->state = FV_OVER;
	set_data(fv_cm_event(client, RDMA_CM_EVENT_REJECTED, reason, data, FV_REJ_DATA),
		 FV_REJ_DATA);
}

/*
 * The initiator depth of one side is the number of responder resources of the other side: swap the
 * two.
 */
static void swap_depths(struct rdma_conn_param *param)
{
	uint8_t depth = param->initiator_depth;

	param->initiator_depth = param->responder_resources;
	param->responder_resources = depth;
}

static void on_req(struct fv_id *client)
{
	static const uint8_t nothing[FV_REJ_DATA];
	struct fv_id *listener = fv_cm_listener(&client->id.route.addr.dst_sin), *child;

	if (!listener || listener->n_requests >= listener->backlog) {
		reject(client, listener ? FV_REJ_CONSUMER : FV_REJ_NO_SERVICE, nothing);
		return;
	}
	child = fv_cm_child(listener);
	child->id.route.addr.src_sin = client->id.route.addr.dst_sin;
	child->id.route.addr.dst_sin = client->id.route.addr.src_sin;
	if (listener->any)
		child->device = client->remote_device;
	child->peer = client;
	client->peer = child;
	child->ack_timeout = client->ack_timeout;
	child->retry = client->param.retry_count;
	child->rnr_retry = client->param.rnr_retry_count;
	child->remote_qpn = client->param.qp_num;
	child->param = client->param;
	swap_depths(&child->param);
	child->resp_res = child->param.responder_resources;
	child->init_depth = child->param.initiator_depth;
	request_event(listener, child, client->data);
}

static void on_rep(struct fv_id *server, struct fv_id *client)
{
	struct rdma_conn_param param = server->param;
	struct fv_event *event;

	if (!client || client->state != FV_CONNECTS)
		return;
	swap_depths(&param);
	client->state = FV_ANSWERED;
	client->rnr_retry = param.rnr_retry_count;
	client->retry = client->param.retry_count;
	client->resp_res = param.responder_resources;
	client->init_depth = param.initiator_depth;
	client->remote_qpn = param.qp_num;
	event = fv_cm_event(client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, server->data, FV_REP_DATA);
	event->event.param.conn = param;
	set_data(event, FV_REP_DATA);
}

static void on_rtu(struct fv_id *client, struct fv_id *server)
{
	(void)client;
	if (!server || server->state != FV_ACCEPTED)
		return;
	server->state = FV_ESTABLISHED;
	fv_cm_event(server, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
}

/* A client that has not got its reply yet detects the rejection when it processes the reply. */
static void on_rej(struct fv_id *from, struct fv_id *to)
{
	if (!to || to->state == FV_OVER)
		return;
	if (to->state == FV_ANSWERED)
		to->state = FV_OVER;
	else
		reject(to, from->reason, from->data);
}

static void end(struct fv_id *id, int status)
{
	id->state = FV_OVER;
	fv_cm_event(id, RDMA_CM_EVENT_DISCONNECTED, status, NULL, 0);
	fv_cm_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL, 0);
}

static void on_dreq(struct fv_id *from, struct fv_id *to)
{
	if (!to || to->state == FV_OVER || to->state == FV_CLOSES)
		end(from, 0);
	if (to && to->state == FV_CLOSES) {
		end(to, 0);
	} else if (to && (to->state == FV_ESTABLISHED || to->state == FV_ACCEPTED)) {
		to->state = FV_LEFT;
		fv_cm_event(to, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	}
}

static void on_drep(struct fv_id *from, struct fv_id *to)
{
	from->state = FV_OVER;
	fv_cm_event(from, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL, 0);
	if (to && to->state == FV_CLOSES)
		end(to, 0);
}

static void deliver(struct fv_id *from, enum fv_msg msg)
{
	switch (msg) {
	case FV_REQ:
		on_req(from);
		break;
	case FV_REP:
		on_rep(from, from->peer);
		break;
	case FV_RTU:
		on_rtu(from, from->peer);
		break;
	case FV_REJ:
		on_rej(from, from->peer);
		break;
	case FV_DREQ:
		on_dreq(from, from->peer);
		break;
	case FV_DREP:
		on_drep(from, from->peer);
		break;
	case FV_NOTHING:
		break;
	}
}

void fv_cm_send(struct fv_id *from, enum fv_msg msg)
{
	if (fv_wire_is_cut())
		from->lost = msg;
	else
		deliver(from, msg);
}

/* Deliver the dropped messages, as retransmission would. */
void fv_cm_healed(void)
{
	struct fv_obj *obj, *next;
	enum fv_msg msg;

	for (obj = fv_first(FV_ID); obj; obj = next) {
		struct fv_id *id = obj->self;

		next = obj->next;
		msg = id->lost;
		id->lost = FV_NOTHING;
		deliver(id, msg);
	}
}

void fake_cm_timeout(void)
{
	fv_lock();
	for (struct fv_obj *obj = fv_first(FV_ID); obj; obj = obj->next) {
		struct fv_id *id = obj->self;

		if (id->lost == FV_REQ || id->lost == FV_REP) {
			id->state = FV_OVER;
			fv_cm_event(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
		} else if (id->lost == FV_DREQ) {
			end(id, -ETIMEDOUT);
		}
		id->lost = FV_NOTHING;
	}
	fv_leave(0);
}

void fake_device_remove(unsigned index)
{
	fv_lock();
	for (struct fv_obj *obj = fv_first(FV_ID); obj; obj = obj->next) {
		struct fv_id *id = obj->self;

		if (!obj->hidden && id->id.verbs && id->device == index)
			fv_cm_event(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, 0);
	}
	fv_leave(0);
	fake_async_push(index, IBV_EVENT_DEVICE_FATAL, NULL);
}

static unsigned data_size(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return FV_REQ_DATA;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		return FV_REP_DATA;
	case RDMA_CM_EVENT_REJECTED:
		return FV_REJ_DATA;
	default:
		return 0;
	}
}

void fake_cm_push(struct rdma_cm_id *base, enum rdma_cm_event_type type, int status,
		  const void *data, unsigned len)
{
	struct fv_id *id = (struct fv_id *)base, *child;
	uint8_t padded[256] = {0};
	unsigned size = data_size(type);

	fv_lock();
	if (fv_check(FV_ID, base, "fake_cm_push") == 0) {
		if (len)
			memcpy(padded, data, len < size ? len : size);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			child = fv_cm_child(id);
			child->param = (struct rdma_conn_param){.responder_resources = 1,
								.initiator_depth = 1,
								.rnr_retry_count = 6,
								.retry_count = 6};
			child->retry = child->rnr_retry = 6;
			request_event(id, child, padded)->event.status = status;
		} else {
			struct fv_event *event = fv_cm_event(id, type, status, padded, size);

			if (size)
				set_data(event, size);
		}
	}
	fv_leave(0);
}

void fv_cm_reset(void)
{
	struct fv_obj *obj;

	while ((obj = fv_first(FV_CM_EVENT))) {
		fv_remove(obj);
		free(obj->self);
	}
	for (obj = fv_first(FV_ID); obj; obj = obj->next)
		((struct fv_id *)obj->self)->peer = NULL;
	while ((obj = fv_first(FV_ID))) {
		fv_cm_forget_events(obj->self);
		/*
		 * fv_cm_forget_events() can also free other ids of the list: the new ids of pending
		 * connection requests. So the loop always continues with the first id that is left.
		 */
		fv_id_free(obj->self);
	}
	while ((obj = fv_first(FV_EVENT_CHANNEL)))
		free_channel(FV_OF(obj, struct fv_channel, obj));
	fv_addresses_reset();
}
