/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.c - the correct parts of the cases, and main(): cases RULE bad|good, or cases trouble
 *
 * RULE can be "all".
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

uint8_t *memory;
unsigned n_done, n_connected, n_received, n_sent, n_consumers;
uint32_t consumer_id;
static struct pair *current;

void must(doca_error_t error, const char *what)
{
	if (error == DOCA_SUCCESS || error == DOCA_ERROR_IN_PROGRESS)
		return;
	fprintf(stderr, "%s: %s\n", what, doca_error_get_descr(error));
	exit(9);
}

struct doca_dev *open_device(const char *pci)
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t n, i;
	uint8_t equal;

	MUST(doca_devinfo_create_list(&list, &n));
	for (i = 0; i < n && !dev; i++)
		if (doca_devinfo_is_equal_pci_addr(list[i], pci, &equal) == DOCA_SUCCESS && equal)
			MUST(doca_dev_open(list[i], &dev));
	MUST(doca_devinfo_destroy_list(list));
	must(dev ? DOCA_SUCCESS : DOCA_ERROR_NOT_FOUND, pci);
	return dev;
}

struct doca_mmap *new_map(struct doca_dev *dev, uint32_t permissions, bool started)
{
	struct doca_mmap *map;

	MUST(doca_mmap_create(&map));
	MUST(doca_mmap_set_memrange(map, memory, N_BYTES));
	if (dev)
		MUST(doca_mmap_add_dev(map, dev));
	MUST(doca_mmap_set_permissions(map, permissions));
	if (started)
		MUST(doca_mmap_start(map));
	return map;
}

struct doca_buf_inventory *new_inventory(bool started)
{
	struct doca_buf_inventory *inventory;

	MUST(doca_buf_inventory_create(16, &inventory));
	if (started)
		MUST(doca_buf_inventory_start(inventory));
	return inventory;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void progress(struct doca_pe *pe, const unsigned *is, unsigned n)
{
	const uint64_t end = now_ms() + 5000;

	while (*is < n && now_ms() < end)
		doca_pe_progress(pe);
}

void wait_state(struct doca_pe *pe, struct doca_ctx *ctx, enum doca_ctx_states state)
{
	const uint64_t end = now_ms() + 5000;
	enum doca_ctx_states is;

	while (doca_ctx_get_state(ctx, &is) == DOCA_SUCCESS && is != state && now_ms() < end)
		doca_pe_progress(pe);
}

void stop(struct doca_pe *pe, struct doca_ctx *ctx)
{
	MUST(doca_ctx_stop(ctx));
	wait_state(pe, ctx, DOCA_CTX_STATE_IDLE);
}

/* -- DMA -- */

static void copied(struct doca_dma_task_memcpy *task, union doca_data a, union doca_data b)
{
	(void)task, (void)a, (void)b;
	n_done++;
}

void dma_open(struct dma *d)
{
	*d = (struct dma){.dev = open_device("03:00.0")};
	d->map = new_map(d->dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, true);
	d->inventory = new_inventory(true);
	MUST(doca_pe_create(&d->pe));
	MUST(doca_dma_create(d->dev, &d->dma));
	d->ctx = doca_dma_as_ctx(d->dma);
	MUST(doca_pe_connect_ctx(d->pe, d->ctx));
	MUST(doca_dma_task_memcpy_set_conf(d->dma, copied, copied, 8));
}

void dma_start(struct dma *d)
{
	dma_open(d);
	MUST(doca_ctx_start(d->ctx));
}

void dma_task(struct dma *d)
{
	dma_start(d);
	MUST(doca_buf_inventory_buf_get_by_data(d->inventory, d->map, memory, 4096, &d->src));
	MUST(doca_buf_inventory_buf_get_by_addr(d->inventory, d->map, memory + N_BYTES / 2, 4096,
						&d->dst));
	MUST(doca_dma_task_memcpy_alloc_init(d->dma, d->src, d->dst, (union doca_data){.u64 = 0},
					     &d->task));
	d->base = doca_dma_task_memcpy_as_task(d->task);
	n_done = 0;
}

void dma_submit(struct dma *d)
{
	dma_task(d);
	MUST(doca_task_submit(d->base));
}

void dma_wait(struct dma *d)
{
	progress(d->pe, &n_done, 1);
}

void dma_free(struct dma *d)
{
	doca_task_free(d->base);
	MUST(doca_buf_dec_refcount(d->src, NULL));
	MUST(doca_buf_dec_refcount(d->dst, NULL));
}

void dma_close(struct dma *d)
{
	stop(d->pe, d->ctx);
	MUST(doca_dma_destroy(d->dma));
	MUST(doca_pe_destroy(d->pe));
	MUST(doca_buf_inventory_destroy(d->inventory));
	MUST(doca_mmap_destroy(d->map));
	MUST(doca_dev_close(d->dev));
}

/* -- Comch -- */

static void sent(struct doca_comch_task_send *task, union doca_data a, union doca_data b)
{
	(void)a, (void)b;
	doca_task_free(doca_comch_task_send_as_task(task));
	n_sent++;
}

static void received(struct doca_comch_event_msg_recv *event, uint8_t *data, uint32_t len,
		     struct doca_comch_connection *connection)
{
	(void)event, (void)data, (void)len, (void)connection;
	n_received++;
}

static void connected(struct doca_comch_event_connection_status_changed *event,
		      struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event;
	if (successful && current)
		current->at_server = connection;
	n_connected++;
}

static void disconnected(struct doca_comch_event_connection_status_changed *event,
			 struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event, (void)connection, (void)successful;
	n_connected--;
}

static void new_consumer(struct doca_comch_event_consumer *event,
			 struct doca_comch_connection *connection, uint32_t id)
{
	(void)event, (void)connection;
	consumer_id = id;
	n_consumers++;
}

static void expired_consumer(struct doca_comch_event_consumer *event,
			     struct doca_comch_connection *connection, uint32_t id)
{
	(void)event, (void)connection, (void)id;
}

static struct doca_dev_rep *open_representor(struct doca_dev *dev)
{
	struct doca_devinfo_rep **list;
	struct doca_dev_rep *rep;
	uint32_t n;

	MUST(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &n));
	must(n ? DOCA_SUCCESS : DOCA_ERROR_NOT_FOUND, "representor");
	MUST(doca_dev_rep_open(list[0], &rep));
	MUST(doca_devinfo_rep_destroy_list(list));
	return rep;
}

void pair_create(struct pair *p, struct pair_skips skips)
{
	*p = (struct pair){.dpu = open_device("03:00.0"), .host = open_device("b1:00.0")};
	current = p;
	n_connected = n_received = n_sent = n_consumers = 0;
	p->rep = open_representor(p->dpu);
	MUST(doca_pe_create(&p->pe));
	MUST(doca_comch_server_create(p->dpu, p->rep, "rules", &p->server));
	MUST(doca_comch_client_create(p->host, "rules", &p->client));
	MUST(doca_pe_connect_ctx(p->pe, doca_comch_server_as_ctx(p->server)));
	MUST(doca_pe_connect_ctx(p->pe, doca_comch_client_as_ctx(p->client)));
	if (!skips.tasks)
		MUST(doca_comch_server_task_send_set_conf(p->server, sent, sent, 8));
	MUST(doca_comch_client_task_send_set_conf(p->client, sent, sent, 8));
	if (!skips.messages)
		MUST(doca_comch_server_event_msg_recv_register(p->server, received));
	MUST(doca_comch_client_event_msg_recv_register(p->client, received));
	if (!skips.connections)
		MUST(doca_comch_server_event_connection_status_changed_register(
			p->server, connected, disconnected));
	if (!skips.consumers) {
		MUST(doca_comch_server_event_consumer_register(p->server, new_consumer,
							       expired_consumer));
		MUST(doca_comch_client_event_consumer_register(p->client, new_consumer,
							       expired_consumer));
	}
}

static void pair_connect(struct pair *p)
{
	MUST(doca_ctx_start(doca_comch_server_as_ctx(p->server)));
	MUST(doca_ctx_start(doca_comch_client_as_ctx(p->client)));
	wait_state(p->pe, doca_comch_client_as_ctx(p->client), DOCA_CTX_STATE_RUNNING);
	progress(p->pe, &n_connected, 1);
	MUST(doca_comch_client_get_connection(p->client, &p->at_client));
}

void pair_open(struct pair *p)
{
	pair_create(p, (struct pair_skips){0});
	pair_connect(p);
}

void pair_close(struct pair *p)
{
	stop(p->pe, doca_comch_client_as_ctx(p->client));
	MUST(doca_comch_client_destroy(p->client));
	stop(p->pe, doca_comch_server_as_ctx(p->server));
	MUST(doca_comch_server_destroy(p->server));
	MUST(doca_pe_destroy(p->pe));
	MUST(doca_dev_rep_close(p->rep));
	MUST(doca_dev_close(p->host));
	MUST(doca_dev_close(p->dpu));
}

static void posted(struct doca_comch_consumer_task_post_recv *task, union doca_data a,
		   union doca_data b)
{
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(task);

	(void)a, (void)b;
	if (buf)
		(void)doca_buf_dec_refcount(buf, NULL);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	n_received++;
}

static void produced(struct doca_comch_producer_task_send *task, union doca_data a,
		     union doca_data b)
{
	struct doca_buf *buf = (struct doca_buf *)doca_comch_producer_task_send_get_buf(task);

	(void)a, (void)b;
	if (buf)
		(void)doca_buf_dec_refcount(buf, NULL);
	doca_task_free(doca_comch_producer_task_send_as_task(task));
	n_sent++;
}

struct doca_buf *pair_buf(struct pair *p, size_t offset, size_t length, size_t data)
{
	struct doca_buf *buf;

	MUST(doca_buf_inventory_buf_get_by_args(p->inventory, p->map, memory + offset, length,
						memory + offset, data, &buf));
	return buf;
}

void pair_open_path(struct pair *p)
{
	pair_open(p);
	MUST(doca_mmap_create(&p->map));
	MUST(doca_mmap_set_memrange(p->map, memory, N_BYTES));
	MUST(doca_mmap_add_dev(p->map, p->dpu));
	MUST(doca_mmap_add_dev(p->map, p->host));
	MUST(doca_mmap_set_permissions(p->map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
						       DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	MUST(doca_mmap_start(p->map));
	p->inventory = new_inventory(true);
	MUST(doca_comch_consumer_create(p->at_server, p->map, &p->consumer));
	MUST(doca_pe_connect_ctx(p->pe, doca_comch_consumer_as_ctx(p->consumer)));
	MUST(doca_comch_consumer_task_post_recv_set_conf(p->consumer, posted, posted, 8));
	MUST(doca_ctx_start(doca_comch_consumer_as_ctx(p->consumer)));
	MUST(doca_comch_producer_create(p->at_client, &p->producer));
	MUST(doca_pe_connect_ctx(p->pe, doca_comch_producer_as_ctx(p->producer)));
	MUST(doca_comch_producer_task_send_set_conf(p->producer, produced, produced, 8));
	MUST(doca_ctx_start(doca_comch_producer_as_ctx(p->producer)));
	wait_state(p->pe, doca_comch_consumer_as_ctx(p->consumer), DOCA_CTX_STATE_RUNNING);
	progress(p->pe, &n_consumers, 1);
}

void pair_close_path(struct pair *p)
{
	stop(p->pe, doca_comch_producer_as_ctx(p->producer));
	MUST(doca_comch_producer_destroy(p->producer));
	stop(p->pe, doca_comch_consumer_as_ctx(p->consumer));
	MUST(doca_comch_consumer_destroy(p->consumer));
	MUST(doca_buf_inventory_destroy(p->inventory));
	MUST(doca_mmap_destroy(p->map));
	pair_close(p);
}

/* -- main -- */

static const struct test_case *const lists[] = {memory_cases, task_cases, comch_cases, leak_cases};

/* Run the cases of the rule, or of all rules. Returns how many there are. */
static unsigned run(const char *rule, bool bad)
{
	const struct test_case *c;
	unsigned n = 0;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (c = lists[i]; c->rule; c++) {
			if (strcmp(rule, "all") != 0 && strcmp(rule, c->rule) != 0)
				continue;
			c->run(bad);
			n++;
		}
	return n;
}

int main(int argc, char **argv)
{
	const bool is_trouble = argc == 2 && !strcmp(argv[1], "trouble");

	if (argc != 3 && !is_trouble)
		return 2;
	memory = mmap(NULL, N_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 2;
	if (is_trouble) {
		meet_trouble();
		return 0;
	}
	return run(argv[1], !strcmp(argv[2], "bad")) ? 0 : 2;
}
