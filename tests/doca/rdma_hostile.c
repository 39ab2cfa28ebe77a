/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer of an RDMA connection: it uses the transport directly, and sends messages that the
 * library never sends.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rdma/rdma.h"
#include "rdma_rig.h"
#include "unity.h"

#define DEADLINE_S 10
#define CELL_AT 4096 /* bytes of the memory of the victim that the attacker may change */

/* -- the attacker's end of the transport -- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_connected, is_closed, is_welcome;
static uint32_t refused = UINT32_MAX, consumer_id, n_atomics;
static struct gd_rdma_atomic atomic; /* the last answer */

static void note(void)
{
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	(void)arg;
	(void)conn;
	(void)peer;
	(void)conn_arg_p;
	return 1;
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	(void)arg;
	(void)conn;
	(void)peer;
	pthread_mutex_lock(&lock);
	is_connected = true;
	note();
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	const struct gd_rdma_resolve *answer = msg;

	(void)arg;
	(void)conn;
	pthread_mutex_lock(&lock);
	if (len == sizeof(struct gd_rdma_hello))
		is_welcome = true;
	else if (len == sizeof(*answer))
		refused = answer->error;
	else if (len == sizeof(atomic)) {
		memcpy(&atomic, msg, sizeof(atomic));
		n_atomics++;
	}
	note();
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	(void)arg;
	(void)conn;
	pthread_mutex_lock(&lock);
	if (up)
		consumer_id = id;
	note();
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	(void)arg;
	(void)conn;
	(void)handle;
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	(void)rc;
	on_revoke(arg, conn, handle);
}

static void on_closed(void *arg, void *conn, int reason)
{
	(void)arg;
	(void)conn;
	(void)reason;
	pthread_mutex_lock(&lock);
	is_closed = true;
	note();
}

static const struct gantry_conn_events events = {
	.accept = on_accept,
	.connected = on_connected,
	.message = on_message,
	.consumer = on_consumer,
	.revoke = on_revoke,
	.revoked = on_revoked,
	.closed = on_closed,
};

#define AWAIT(condition) \
	do { \
		struct timespec until_; \
		int rc_ = 0; \
		clock_gettime(CLOCK_REALTIME, &until_); \
		until_.tv_sec += DEADLINE_S; \
		pthread_mutex_lock(&lock); \
		while (!(condition) && rc_ == 0) \
			rc_ = pthread_cond_timedwait(&changed, &lock, &until_); \
		rc_ = !(condition); \
		pthread_mutex_unlock(&lock); \
		CHECK(rc_ == 0); \
	} while (0)

static struct gd_transport *transport;
static const struct gantry_transport_ops *ops;
static void *gantry;

static void knock(const struct gd_rdma_blob *at)
{
	struct doca_devinfo *const *infos;
	uint32_t n;
	void *device;

	OK(gd_devices(&infos, &n));
	CHECK(n == 2);
	OK(gd_transport_get_rdma(infos[1], &transport));
	ops = gd_transport_lock(transport, &device);
	is_connected = is_closed = is_welcome = false;
	CHECK(ops->connect(device, at->service, &events, NULL, &gantry) == 0);
	gd_transport_unlock(transport);
	AWAIT(is_connected);
}

static void say(const void *msg, size_t len)
{
	gd_transport_lock(transport, NULL);
	ops->send_ctrl(gantry, msg, len); /* fails after the victim has closed the connection */
	gd_transport_unlock(transport);
}

static void leave(void)
{
	gd_transport_lock(transport, NULL);
	ops->disconnect(gantry);
	gd_transport_unlock(transport);
}

/* -- before the connection is accepted -- */

static const struct gd_rdma_id small_id = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

static struct gd_rdma_hello right_hello(const struct gd_rdma_blob *to)
{
	return (struct gd_rdma_hello){.op = GD_RDMA_HELLO,
				      .magic = GD_RDMA_MAGIC,
				      .version = GD_RDMA_VERSION,
				      .max_inline = 100,
				      .from = small_id,
				      .to = to->id};
}

/*
 * Connect ten times, each time with a first message that is wrong. The victim must close each
 * connection.
 */
static void other_users(int fd)
{
	struct gd_rdma_resolve resolve = {.op = GD_RDMA_RESOLVE};
	struct gd_rdma_blob blob;

	CHECK(rig_hear(fd, &blob, sizeof(blob)) == sizeof(blob));
	for (int i = 0; i < 10; i++) {
		struct gd_rdma_hello hello = right_hello(&blob);
		size_t len = sizeof(hello);

		hello.op = i == 0 ? 99 : i == 1 ? GD_RDMA_WELCOME : hello.op;
		hello.magic ^= i == 2;
		hello.version += i == 3;
		/* 1: no listener on a port; 7: undefined value */
		hello.by_address = i == 4 ? 1 : i == 5 ? 7 : 0;
		hello.to.bytes[3] ^= i == 6;
		len = i == 7 ? 1 : i == 8 ? len - 1 : len;
		knock(&blob);
		if (i == 9)
			say(&resolve, sizeof(resolve));
		else
			say(&hello, len);
		AWAIT(is_closed);
		leave();
	}
	rig_tell(fd);
}

static void offer(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.callbacks = true});
	const void *blob;
	size_t size;

	OK(doca_rdma_export(s->rdma, &blob, &size, &s->conns[0]));
	rig_say(fd, blob, size);
	rig_hark(fd);
	for (int i = 0; i < 100; i++)
		doca_pe_progress(s->pe);
	CHECK(s->n_failed == 0 && s->n_disconnected == 0 && s->n_established == 0);
	rig_close(s);
}

static void peers_without_a_valid_hello_are_disconnected_without_a_callback(void)
{
	TEST_ASSERT_TRUE(rig_run(other_users, offer, false));
}

/* -- after the connection was accepted -- */

enum {
	HELLO_AGAIN,
	WELCOME_BACK,
	ANSWER_UNASKED,
	ATOMIC_ANSWER_UNASKED,
	ATOMIC_READ,
	FEW_BYTES, /* up to here: control messages */
	/* from here on: data messages */
	NO_HEAD,
	NO_SUCH_KIND,
	NO_BEGINNING,
	TOO_LONG,
	MORE_THAN_SAID,
	BEGIN_TWICE,
	EMPTY_PART,
	WORD_WITH_DATA, /* the message of a write with immediate data has no data */
	ATTACKS
};
static int attack;

/* Request an addition of 5 to 8 bytes of a map. Returns the error of the answer. */
static uint32_t ask_to_add(const struct gd_mmap_id *map, uint64_t offset)
{
	const struct gd_rdma_atomic request = {.op = GD_RDMA_ATOMIC,
					       .kind = GD_RDMA_FETCH_ADD,
					       .map = *map,
					       .offset = offset,
					       .value = 5};
	const uint32_t n = n_atomics;

	say(&request, sizeof(request));
	AWAIT(n_atomics != n);
	CHECK(atomic.op == GD_RDMA_ATOMIC_DONE);
	return atomic.error;
}

/* Valid requests get an answer; the memory changes only if the address is valid. */
static void ask_to_add_anywhere(const struct gd_mmap_id *map)
{
	static const struct gd_mmap_id unknown;

	CHECK(ask_to_add(&unknown, 0) == DOCA_ERROR_IO_FAILED);
	CHECK(ask_to_add(map, CELL_AT + 4) == DOCA_ERROR_INVALID_VALUE);
	CHECK(ask_to_add(map, RIG_BYTES) == DOCA_ERROR_INVALID_VALUE);
	CHECK(ask_to_add(map, RIG_BYTES - 4) == DOCA_ERROR_INVALID_VALUE);
	CHECK(ask_to_add(map, UINT64_MAX - 7) == DOCA_ERROR_INVALID_VALUE);
	CHECK(ask_to_add(map, CELL_AT) == DOCA_SUCCESS && atomic.value == 0);
	CHECK(ask_to_add(map, CELL_AT) == DOCA_SUCCESS && atomic.value == 5);
}

static void attack_words(const struct gd_rdma_blob *blob, const struct gd_mmap_id *map)
{
	struct gd_rdma_hello hello = right_hello(blob);
	struct gd_rdma_resolve resolve = {.op = GD_RDMA_RESOLVE};
	struct gd_rdma_atomic wrong = {.op = attack == ATOMIC_READ ? GD_RDMA_ATOMIC
								   : GD_RDMA_ATOMIC_DONE,
				       .kind = GD_RDMA_READ,
				       .map = *map};

	ask_to_add_anywhere(map);

	/* a request about a map that is unknown, as after its stop, is valid and gets an answer */
	say(&resolve, sizeof(resolve));
	AWAIT(refused != UINT32_MAX);
	CHECK(refused == DOCA_ERROR_IO_FAILED);
	hello.op = attack == WELCOME_BACK ? GD_RDMA_WELCOME : GD_RDMA_HELLO;
	resolve.op = GD_RDMA_RESOLVED;
	if (attack == ANSWER_UNASKED)
		say(&resolve, sizeof(resolve));
	else if (attack == ATOMIC_ANSWER_UNASKED || attack == ATOMIC_READ)
		say(&wrong, sizeof(wrong));
	else
		say(&hello, attack == FEW_BYTES ? 3 : sizeof(hello));
}

static void attack_messages(void)
{
	struct gantry_queue_attr attr = {.depth = 8, .max_data = 100};
	struct gd_rdma_head head = {.kind = DOCA_RDMA_OPCODE_RECV_SEND, .first = 1, .length = 50};
	struct gantry_send send;
	uint8_t imm[GANTRY_IMM_MAX] = {0};
	void *consumer, *producer;
	uint32_t id;

	AWAIT(consumer_id);
	gd_transport_lock(transport, NULL);
	CHECK(ops->consumer_create(gantry, &attr, &id, &consumer) == 0);
	CHECK(ops->producer_create(gantry, consumer_id, &attr, &producer) == 0);
	gd_transport_unlock(transport);
	head.kind = attack == NO_SUCH_KIND     ? 3
		    : attack == WORD_WITH_DATA ? DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM
					       : head.kind;
	head.first = attack != NO_BEGINNING;
	head.length = attack == TOO_LONG ? UINT32_MAX : attack == MORE_THAN_SAID ? 10 : head.length;
	for (int i = 0; i < 2; i++) {
		memcpy(imm, &head, sizeof(head));
		send = (struct gantry_send){.imm = imm,
					    .imm_len = attack == NO_HEAD ? 3 : sizeof(head) + 20};
		for (uint64_t until = rig_now_ms() + 1000 * DEADLINE_S;
		     ops->data->send(producer, &send, 0) == -11;)
			CHECK(rig_now_ms() < until);
		if (attack != BEGIN_TWICE && attack != EMPTY_PART)
			break;
		head.first = attack == BEGIN_TWICE;
		if (attack == EMPTY_PART) {
			memcpy(imm, &head, sizeof(head));
			send.imm_len = sizeof(head);
			while (ops->data->send(producer, &send, 0) == -11)
				;
			break;
		}
	}
	AWAIT(is_closed);
	gd_transport_lock(transport, NULL);
	ops->producer_destroy(producer);
	ops->consumer_destroy(consumer);
	gd_transport_unlock(transport);
}

static void betray(int fd)
{
	struct gd_rdma_blob blob, ours = {.magic = GD_RDMA_MAGIC,
					  .version = GD_RDMA_VERSION,
					  .id = small_id,
					  .service = "nowhere"};
	struct gd_rdma_hello hello;
	struct gd_mmap_id map;

	CHECK(rig_hear(fd, &blob, sizeof(blob)) == sizeof(blob));
	rig_say(fd, &ours, sizeof(ours));
	CHECK(rig_hear(fd, &map, sizeof(map)) == sizeof(map));
	rig_hark(fd);
	knock(&blob);
	hello = right_hello(&blob);
	say(&hello, sizeof(hello));
	AWAIT(is_welcome);
	if (attack < NO_HEAD)
		attack_words(&blob, &map);
	else
		attack_messages();
	AWAIT(is_closed);
	leave();
}

static void trust(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){
		.callbacks = true,
		.access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC});
	struct doca_buf *buf = rig_room(s, 0, 100);
	const void *export;
	size_t size;

	OK(doca_mmap_export_rdma(s->map, s->dev, &export, &size));
	rig_connect(s, fd, 0);
	rig_say(fd, &s->map->id, sizeof(s->map->id));
	rig_tell(fd);
	rig_receive(s, buf, 1);
	UNTIL(s, s->n_failed + s->n_disconnected);
	CHECK(s->memory[100] == 0 && s->memory[CELL_AT] == (attack < NO_HEAD ? 10 : 0));
	rig_put(buf);
	rig_close(s);
}

static void a_peer_that_breaks_the_rules_loses_its_connection(void)
{
	for (attack = 0; attack < ATTACKS; attack++)
		TEST_ASSERT_TRUE_MESSAGE(rig_run(betray, trust, false), "an attack");
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(peers_without_a_valid_hello_are_disconnected_without_a_callback);
	RUN_TEST(a_peer_that_breaks_the_rules_loses_its_connection);
	return UNITY_END();
}
