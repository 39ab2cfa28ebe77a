/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * docabench MODE [MS] - measures the DOCA-compatible library through its public functions
 *
 *   rtt        ns, median of slices: round trip of 64 bytes between consumers and producers of two
 *              processes
 *   single     M/s, mean of the run: messages of 64 bytes one way
 *   alone      ns, median of slices: messages of `single` with both ends on one thread, which is
 *              the processor time of a message
 *   count:N    N messages as in `alone`, without a clock, to count instructions
 *   dma:BYTES  ns, median of slices: a copy by the DMA context, from submission to completion
 *   idle       ns, median of slices: doca_pe_progress() on an engine with an idle context
 *
 * Between the slices of rtt, the same processes measure the limit `line`: the round trip of a cache
 * line.
 *
 * Each message begins and ends with its number, which the receiver checks; copies are checked, too.
 * Plugins are searched in the directories that `gantry env` prints.
 */
#include "perf/docabench.h"

#define HOST "b1:00.0"
#define NAME "gantry docabench"
#define BYTES 64u
#define WORDS (BYTES / 8)

void ok(doca_error_t rc, const char *what)
{
	if (rc == DOCA_SUCCESS)
		return;
	fprintf(stderr, "docabench: %s: %s\n", what, doca_error_get_descr(rc));
	exit(1);
}

void wrong(uint64_t seq, const char *what)
{
	fprintf(stderr, "docabench: message %llu: %s\n", (unsigned long long)seq, what);
	exit(1);
}

struct doca_dev *open_device(const char *pci)
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t n;

	ok(doca_devinfo_create_list(&list, &n), "devices");
	for (uint32_t i = 0; i < n && !dev; i++) {
		uint8_t same = 0;

		ok(doca_devinfo_is_equal_pci_addr(list[i], pci, &same), "address of a device");
		if (same)
			ok(doca_dev_open(list[i], &dev), "open the device");
	}
	ok(doca_devinfo_destroy_list(list), "devices");
	if (!dev)
		ok(DOCA_ERROR_NOT_FOUND, pci);
	return dev;
}

static struct doca_dev_rep *open_representor(struct doca_dev *dev, const char *pci)
{
	struct doca_devinfo_rep **list;
	struct doca_dev_rep *rep = NULL;
	uint32_t n;

	ok(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &n),
	   "representors");
	for (uint32_t i = 0; i < n && !rep; i++) {
		uint8_t same = 0;

		ok(doca_devinfo_rep_is_equal_pci_addr(list[i], pci, &same),
		   "address of a representor");
		if (same)
			ok(doca_dev_rep_open(list[i], &rep), "open the representor");
	}
	ok(doca_devinfo_rep_destroy_list(list), "representors");
	if (!rep)
		ok(DOCA_ERROR_NOT_FOUND, pci);
	return rep;
}

static void progress(struct end *e)
{
	doca_pe_progress(e->pe);
	if (e->beside)
		doca_pe_progress(e->beside->pe);
}

void start(struct end *e, struct doca_ctx *ctx, const char *what)
{
	enum doca_ctx_states state = DOCA_CTX_STATE_IDLE;
	doca_error_t rc = doca_ctx_start(ctx);

	ok(rc == DOCA_ERROR_IN_PROGRESS ? DOCA_SUCCESS : rc, what);
	do {
		progress(e);
		ok(doca_ctx_get_state(ctx, &state), what);
	} while (state == DOCA_CTX_STATE_STARTING);
	if (state != DOCA_CTX_STATE_RUNNING)
		ok(DOCA_ERROR_NOT_CONNECTED, what);
}

static void stop(struct end *e, struct doca_ctx *ctx, const char *what)
{
	enum doca_ctx_states state;
	doca_error_t rc = doca_ctx_stop(ctx);

	ok(rc == DOCA_ERROR_IN_PROGRESS ? DOCA_SUCCESS : rc, what);
	do {
		progress(e);
		ok(doca_ctx_get_state(ctx, &state), what);
	} while (state != DOCA_CTX_STATE_IDLE);
}

void connect_engine(struct end *e, struct doca_ctx *ctx)
{
	union doca_data own = {.ptr = e};

	ok(doca_ctx_set_user_data(ctx, own), "user data");
	ok(doca_pe_connect_ctx(e->pe, ctx), "connect to the engine");
}

void make_memory(struct end *e, size_t bytes, size_t bufs)
{
	e->memory = aligned_alloc(4096, bytes);
	if (!e->memory)
		die("memory");
	memset(e->memory, 0, bytes);
	ok(doca_mmap_create(&e->mmap), "map");
	ok(doca_mmap_add_dev(e->mmap, e->dev), "map");
	ok(doca_mmap_set_permissions(e->mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE), "map");
	ok(doca_mmap_set_memrange(e->mmap, e->memory, bytes), "map");
	ok(doca_mmap_start(e->mmap), "start the map");
	ok(doca_buf_inventory_create(bufs, &e->inventory), "inventory");
	ok(doca_buf_inventory_start(e->inventory), "inventory");
}

/* -- messages -- */

static void put(struct end *e, struct doca_task *task, uint64_t *words)
{
	e->free[e->n_free] = task;
	e->words[e->n_free++] = words;
}

static void sent(struct doca_comch_producer_task_send *task, union doca_data words,
		 union doca_data own)
{
	put(own.ptr, doca_comch_producer_task_send_as_task(task), words.ptr);
}

static void not_sent(struct doca_comch_producer_task_send *task, union doca_data words,
		     union doca_data own)
{
	struct end *e = own.ptr;

	if (!e->stopped)
		ok(doca_task_get_status(doca_comch_producer_task_send_as_task(task)), "send");
	doca_task_free(doca_comch_producer_task_send_as_task(task));
	(void)words;
}

/*
 * Send a message with this number. Progress the engine while there is no free task. While the other
 * end has no receive, submit again; if may_progress is set, also progress the engine. Callbacks of
 * the engine do not set it.
 */
static void send(struct end *e, uint64_t seq, int may_progress)
{
	struct doca_task *task;
	uint64_t *words;
	doca_error_t rc;

	while (e->n_free == 0)
		doca_pe_progress(e->pe);
	e->n_free--;
	task = e->free[e->n_free];
	words = e->words[e->n_free];
	words[0] = words[WORDS - 1] = seq;
	while ((rc = doca_task_submit(task)) == DOCA_ERROR_AGAIN)
		if (may_progress)
			doca_pe_progress(e->pe);
	ok(rc, "send");
}

/*
 * A message has arrived. Send the answer before posting the receive again: the peer waits for the
 * answer, and more receives are posted than messages are in flight.
 */
static void came(struct doca_comch_consumer_task_post_recv *recv, union doca_data words,
		 union doca_data own)
{
	struct doca_task *task = doca_comch_consumer_task_post_recv_as_task(recv);
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(recv);
	const uint64_t *got = words.ptr;
	struct end *e = own.ptr;
	uint64_t seq = got[0];
	size_t bytes;

	ok(doca_buf_get_data_len(buf, &bytes), "length");
	if (bytes != BYTES || got[WORDS - 1] != seq)
		wrong(seq, "damaged");
	if (seq != e->expected && seq < TURN)
		wrong(seq, "out of order");
	e->expected += seq != TURN;
	if (seq == STOP)
		e->stopped = 1;
	if (e->server && (e->echoes || seq == STOP))
		send(e, seq, 0);
	ok(doca_buf_reset_data_len(buf), "reset");
	ok(doca_task_submit(task), "post");
	if (seq == TURN && e->server)
		e->at = line_answer(e->line, e->at, LINE_ROUNDS);
	else if (seq == TURN)
		e->turns++;
}

static void not_posted(struct doca_comch_consumer_task_post_recv *recv, union doca_data words,
		       union doca_data own)
{
	(void)words;
	(void)own;
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(recv));
}

static void make_consumer(struct end *e)
{
	ok(doca_comch_consumer_create(e->connection, e->mmap, &e->consumer), "consumer");
	ok(doca_comch_consumer_task_post_recv_set_conf(e->consumer, came, not_posted, TASKS),
	   "consumer");
	connect_engine(e, doca_comch_consumer_as_ctx(e->consumer));
	start(e, doca_comch_consumer_as_ctx(e->consumer), "start the consumer");
	for (uint32_t i = 0; i < TASKS; i++) {
		uint64_t *words = e->memory + (TASKS + i) * WORDS;
		struct doca_comch_consumer_task_post_recv *recv;
		union doca_data data = {.ptr = words};
		struct doca_buf *buf;

		ok(doca_buf_inventory_buf_get_by_addr(e->inventory, e->mmap, words, BYTES, &buf),
		   "buffer");
		ok(doca_comch_consumer_task_post_recv_alloc_init(e->consumer, buf, &recv), "task");
		doca_task_set_user_data(doca_comch_consumer_task_post_recv_as_task(recv), data);
		ok(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(recv)), "post");
	}
}

static void make_producer(struct end *e)
{
	ok(doca_comch_producer_create(e->connection, &e->producer), "producer");
	ok(doca_comch_producer_task_send_set_conf(e->producer, sent, not_sent, TASKS), "producer");
	connect_engine(e, doca_comch_producer_as_ctx(e->producer));
	start(e, doca_comch_producer_as_ctx(e->producer), "start the producer");
	while (e->peer == 0)
		progress(e);
	for (uint32_t i = 0; i < TASKS; i++) {
		uint64_t *words = e->memory + i * WORDS;
		struct doca_comch_producer_task_send *task;
		union doca_data data = {.ptr = words};
		struct doca_buf *buf;

		ok(doca_buf_inventory_buf_get_by_data(e->inventory, e->mmap, words, BYTES, &buf),
		   "buffer");
		ok(doca_comch_producer_task_send_alloc_init(e->producer, buf, NULL, 0, e->peer,
							    &task),
		   "task");
		doca_task_set_user_data(doca_comch_producer_task_send_as_task(task), data);
		put(e, doca_comch_producer_task_send_as_task(task), words);
	}
}

/* -- the connection -- */

static struct end *end_of(struct doca_comch_connection *connection)
{
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(connection);
	struct doca_comch_client *client = doca_comch_client_get_client_ctx(connection);
	union doca_data own = {.ptr = NULL};

	ok(doca_ctx_get_user_data(server ? doca_comch_server_as_ctx(server)
					 : doca_comch_client_as_ctx(client),
				  &own),
	   "user data");
	return own.ptr;
}

static void consumer_up(struct doca_comch_event_consumer *event,
			struct doca_comch_connection *connection, uint32_t id)
{
	(void)event;
	end_of(connection)->peer = id;
}

static void consumer_down(struct doca_comch_event_consumer *event,
			  struct doca_comch_connection *connection, uint32_t id)
{
	(void)event;
	(void)connection;
	(void)id;
}

static void connected(struct doca_comch_event_connection_status_changed *event,
		      struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event;
	if (successful)
		end_of(connection)->connection = connection;
}

static void disconnected(struct doca_comch_event_connection_status_changed *event,
			 struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event;
	(void)successful;
	end_of(connection)->connection = NULL;
}

static void message_sent(struct doca_comch_task_send *task, union doca_data task_data,
			 union doca_data own)
{
	(void)task_data;
	(void)own;
	doca_task_free(doca_comch_task_send_as_task(task));
}

static void message_came(struct doca_comch_event_msg_recv *event, uint8_t *message, uint32_t bytes,
			 struct doca_comch_connection *connection)
{
	(void)event;
	(void)message;
	(void)bytes;
	(void)connection;
}

static void serve(struct end *e)
{
	struct doca_ctx *ctx;

	e->dev = open_device(CARD);
	e->rep = open_representor(e->dev, HOST);
	ok(doca_comch_server_create(e->dev, e->rep, NAME, &e->server), "server");
	ctx = doca_comch_server_as_ctx(e->server);
	ok(doca_comch_server_task_send_set_conf(e->server, message_sent, message_sent, 1),
	   "server");
	ok(doca_comch_server_event_msg_recv_register(e->server, message_came), "server");
	ok(doca_comch_server_event_connection_status_changed_register(e->server, connected,
								      disconnected),
	   "server");
	ok(doca_comch_server_event_consumer_register(e->server, consumer_up, consumer_down),
	   "server");
	connect_engine(e, ctx);
	start(e, ctx, "start the server");
}

static void dial(struct end *e)
{
	struct doca_ctx *ctx;

	e->dev = open_device(HOST);
	ok(doca_comch_client_create(e->dev, NAME, &e->client), "client");
	ctx = doca_comch_client_as_ctx(e->client);
	ok(doca_comch_client_task_send_set_conf(e->client, message_sent, message_sent, 1),
	   "client");
	ok(doca_comch_client_event_msg_recv_register(e->client, message_came), "client");
	ok(doca_comch_client_event_consumer_register(e->client, consumer_up, consumer_down),
	   "client");
	connect_engine(e, ctx);
	start(e, ctx, "connect to the server");
	ok(doca_comch_client_get_connection(e->client, &e->connection), "connection");
}

/* The server creates its producer before its consumer, so that it can answer the first message. */
static void make_queues(struct end *e)
{
	e->expected = 1;
	make_memory(e, 2 * TASKS * BYTES, 2 * TASKS);
	if (e->client)
		make_consumer(e);
	make_producer(e);
	if (e->server)
		make_consumer(e);
}

static void free_queues(struct end *e)
{
	while (e->n_free > 0)
		doca_task_free(e->free[--e->n_free]);
	stop(e, doca_comch_producer_as_ctx(e->producer), "stop the producer");
	stop(e, doca_comch_consumer_as_ctx(e->consumer), "stop the consumer");
	ok(doca_comch_producer_destroy(e->producer), "producer");
	ok(doca_comch_consumer_destroy(e->consumer), "consumer");
}

struct beside {
	int echoes;
	int *listening; /* shared */
	uint64_t *line; /* shared */
};

static void serve_process(void *arg)
{
	const struct beside *beside = arg;
	static struct end e;

	e.echoes = beside->echoes;
	e.line = beside->line;
	ok(doca_pe_create(&e.pe), "engine");
	serve(&e);
	store(beside->listening, 1);
	while (!e.connection)
		doca_pe_progress(e.pe);
	make_queues(&e);
	while (!e.stopped || e.n_free != TASKS)
		doca_pe_progress(e.pe);
	free_queues(&e);
	while (e.connection)
		doca_pe_progress(e.pe);
	stop(&e, doca_comch_server_as_ctx(e.server), "stop the server");
	ok(doca_comch_server_destroy(e.server), "server");
}

static uint64_t rounds(struct end *e, uint64_t seq, unsigned n)
{
	for (; n; n--) {
		send(e, ++seq, 1);
		while (e->expected == seq)
			doca_pe_progress(e->pe);
	}
	return seq;
}

static void slice_of_line(struct end *e, struct stats *stats)
{
	unsigned turns = e->turns;
	uint64_t before;

	send(e, TURN, 1);
	while (e->turns == turns)
		doca_pe_progress(e->pe);
	before = now_ns();
	e->at = line_throw(e->line, e->at, LINE_ROUNDS);
	note(stats, (double)(now_ns() - before) / LINE_ROUNDS);
}

static void measure_rtt(struct end *e, uint64_t length_ns)
{
	uint64_t begin = now_ns(), seq = rounds(e, 0, WARM), before = now_ns(),
		 end = before + length_ns;
	unsigned slice = slice_of(before - begin, WARM);
	static struct stats stats, line;

	do {
		before = now_ns();
		seq = rounds(e, seq, slice);
		note(&stats, (double)(now_ns() - before) / slice);
		slice_of_line(e, &line);
	} while (now_ns() < end);
	print_beside("rtt", &stats, "line", &line, "ns");
}

static void measure_single(struct end *e, uint64_t length_ns)
{
	uint64_t seq = 0, first, begin, t;

	while (seq < 4 * TASKS)
		send(e, ++seq, 1);
	first = seq;
	begin = now_ns();
	do {
		for (uint32_t i = 0; i < TASKS; i++)
			send(e, ++seq, 1);
		t = now_ns();
	} while (t - begin < length_ns);
	print_value("single", (double)(seq - first) * 1e3 / (double)(t - begin), "M/s");
}

static void messages(const char *mode, uint64_t length_ns)
{
	struct beside beside = {
		.echoes = !strcmp(mode, "rtt"), .listening = share(4096), .line = share(4096)};
	pid_t pid = run_beside(serve_process, &beside);
	static struct end e;

	while (!load(beside.listening))
		if (waitpid(pid, NULL, WNOHANG) != 0)
			exit(1);
	e.line = beside.line;
	ok(doca_pe_create(&e.pe), "engine");
	dial(&e);
	make_queues(&e);
	if (beside.echoes)
		measure_rtt(&e, length_ns);
	else
		measure_single(&e, length_ns);
	send(&e, STOP, 1);
	while (!e.stopped || e.n_free != TASKS)
		doca_pe_progress(e.pe);
	free_queues(&e);
	stop(&e, doca_comch_client_as_ctx(e.client), "stop the client");
	ok(doca_comch_client_destroy(e.client), "client");
	join(pid);
}

/* -- both ends on one thread: no cache line moves, and no end waits -- */

static void progress_both(struct end *a, struct end *b)
{
	doca_pe_progress(a->pe);
	doca_pe_progress(b->pe);
}

static uint64_t one_way(struct end *from, struct end *to, uint64_t seq, unsigned n)
{
	for (; n; n--) {
		send(from, ++seq, 1);
		while (to->expected == seq || from->n_free != TASKS)
			progress_both(from, to);
	}
	return seq;
}

/* Create the queues of both ends alternately, because each end waits for the other. */
static void meet(struct end *server, struct end *client)
{
	ok(doca_pe_create(&server->pe), "engine");
	ok(doca_pe_create(&client->pe), "engine");
	serve(server);
	server->beside = client;
	client->beside = server;
	dial(client);
	while (!server->connection)
		progress_both(server, client);
	for (int i = 0; i < 2; i++) {
		struct end *e = i ? client : server;

		e->expected = 1;
		make_memory(e, 2 * TASKS * BYTES, 2 * TASKS);
		make_consumer(e);
	}
	make_producer(server);
	make_producer(client);
}

static void part(struct end *server, struct end *client)
{
	server->stopped = client->stopped = 1;
	while (client->n_free != TASKS)
		progress_both(server, client);
	free_queues(client);
	free_queues(server);
	stop(client, doca_comch_client_as_ctx(client->client), "stop the client");
	ok(doca_comch_client_destroy(client->client), "client");
	while (server->connection)
		progress_both(server, client);
	stop(server, doca_comch_server_as_ctx(server->server), "stop the server");
	ok(doca_comch_server_destroy(server->server), "server");
}

static void measure_alone(struct end *from, struct end *to, uint64_t length_ns)
{
	uint64_t begin = now_ns(), seq = one_way(from, to, 0, WARM), before = now_ns(),
		 end = before + length_ns, t;
	unsigned slice = slice_of(before - begin, WARM);
	static struct stats stats;

	do {
		seq = one_way(from, to, seq, slice);
		t = now_ns();
		note(&stats, (double)(t - before) / slice);
		before = t;
	} while (t < end);
	print_median("alone", &stats, "ns");
}

/* count: number of messages; 0: as many as possible in the time. */
static void alone(unsigned count, uint64_t length_ns)
{
	static struct end server, client;

	meet(&server, &client);
	if (count)
		one_way(&client, &server, 0, count);
	else
		measure_alone(&client, &server, length_ns);
	part(&server, &client);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	uint64_t length_ns = duration_ns(argc - 1, argv + 1, 300);

	if (!strcmp(mode, "rtt") || !strcmp(mode, "single")) {
		messages(mode, length_ns);
	} else if (!strcmp(mode, "alone") || (!strncmp(mode, "count:", 6) && atoi(mode + 6) > 0)) {
		pin(nth_cpu(0));
		alone(*mode == 'c' ? (unsigned)atoi(mode + 6) : 0, length_ns);
	} else if (!strncmp(mode, "dma:", 4) && strtoull(mode + 4, NULL, 10) >= 4096) {
		pin(nth_cpu(0));
		measure_dma(strtoull(mode + 4, NULL, 10), length_ns, mode);
	} else if (!strcmp(mode, "idle")) {
		pin(nth_cpu(0));
		measure_idle(length_ns);
	} else {
		fprintf(stderr, "usage: docabench rtt|single|alone|count:N|dma:BYTES|idle [MS]\n");
		return 2;
	}
	return 0;
}
