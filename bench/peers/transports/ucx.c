/* The peer "UCX" (UCP), over tcp or, with --shm, sysv. Reads are gets. --packed: the ids travel in active messages, the
 * server packs the rows and sends them back in active messages; a read is then a gather of one row. Both sides poll
 * ucp_worker_progress, or sleep in ucp_worker_wait. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "work.h"

#define LOOKS 4096 /* a polling server looks for new clients once in so many turns */
enum { AM_ASK = 1, AM_ROWS = 2 };

/* The head of both messages. The answer repeats the question's. */
struct head {
	uint64_t to; /* the address in the client where the rows belong */
	uint64_t done;
	uint32_t rows, row_bytes;
};

struct hello {
	uint64_t address_bytes, key_bytes, table;
};

struct work_link {
	ucp_worker_h worker;
	ucp_ep_h endpoint;
	ucp_rkey_h key;
	uint64_t table;
	uint64_t open[WORK_SLOTS]; /* gets or messages */
	uint32_t ids[WORK_SLOTS][WORK_ROWS];
	struct head heads[WORK_SLOTS][WORK_ROWS / WORK_PIECE];
	void *memory;
};

static ucp_context_h context;

static void ask(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		work_fail("%s: %s", what, ucs_status_string(status));
}

static void ask_pointer(const void *request, const char *what)
{
	if (UCS_PTR_IS_ERR(request))
		work_fail("%s: %s", what, ucs_status_string(UCS_PTR_STATUS(request)));
}

static ucp_worker_h make_worker(void)
{
	const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
						   .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_worker_h worker;
	if (!context) {
		const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
					     .features = UCP_FEATURE_RMA | UCP_FEATURE_AM |
							 (work.poll ? 0 : UCP_FEATURE_WAKEUP)};
		ucp_config_t *config;
		/* With 8 KiB, the default, packed rows are slower. */
		setenv("UCX_TCP_TX_SEG_SIZE", "64k", 0);
		setenv("UCX_TCP_RX_SEG_SIZE", "64k", 0);
		ask(ucp_config_read(NULL, NULL, &config), "configuration");
		ask(ucp_config_modify(config, "TLS", work.shm ? "sysv,self" : "tcp,self"), "transport");
		ask(ucp_init(&params, config, &context), "ucp_init");
		ucp_config_release(config);
	}
	ask(ucp_worker_create(context, &worker_params, &worker), "worker");
	return worker;
}

static void progress(ucp_worker_h worker)
{
	if (!ucp_worker_progress(worker) && !work.poll)
		ucp_worker_wait(worker);
}

/* --- Server. --- */

struct job {
	struct head head;
	ucp_ep_h client;
	uint32_t *ids;
	uint8_t *rows; /* NULL: sent from the table */
};

static ucp_worker_h server;
static uint8_t *table;
static uint8_t *spare[16]; /* buffers of spare_bytes */
static unsigned spare_count;
static size_t spare_bytes;

static void job_sent(void *request, ucs_status_t status, void *data)
{
	struct job *job = data;
	(void)status;
	if (job->rows && spare_count < sizeof(spare) / sizeof(spare[0]))
		spare[spare_count++] = job->rows;
	else
		free(job->rows);
	free(job->ids);
	free(job);
	if (request)
		ucp_request_free(request);
}

static void pack(struct job *job)
{
	const uint32_t bytes = job->head.row_bytes, rows = job->head.rows;
	if ((size_t)rows * bytes > spare_bytes) {
		while (spare_count)
			free(spare[--spare_count]);
		spare_bytes = (size_t)rows * bytes;
	}
	job->rows = spare_count ? spare[--spare_count] : work_memory(spare_bytes);
	for (uint32_t i = 0; i < rows; i++) {
		const uint8_t *ahead = table + (uint64_t)job->ids[i + 8 < rows ? i + 8 : i] * bytes;
		__builtin_prefetch(ahead);
		__builtin_prefetch(ahead + 64);
		memcpy(job->rows + (size_t)i * bytes, table + (uint64_t)job->ids[i] * bytes, bytes);
	}
}

static void job_answer(struct job *job)
{
	const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
					    .cb.send = job_sent,
					    .user_data = job};
	const uint8_t *from = table + (uint64_t)job->ids[0] * job->head.row_bytes;
	if (job->head.rows > 1) {
		pack(job);
		from = job->rows;
	}
	void *request = ucp_am_send_nbx(job->client, AM_ROWS, &job->head, sizeof(job->head), from,
					(size_t)job->head.rows * job->head.row_bytes, &params);
	ask_pointer(request, "rows");
	if (!request)
		job_sent(NULL, UCS_OK, job);
}

static void ids_came(void *request, ucs_status_t status, size_t bytes, void *data)
{
	(void)bytes;
	ask(status, "ids");
	ucp_request_free(request);
	job_answer(data);
}

static ucs_status_t asked(void *argument, const void *head, size_t head_bytes, void *data, size_t bytes,
			  const ucp_am_recv_param_t *received)
{
	struct job *job = calloc(1, sizeof(*job));
	(void)argument;
	memcpy(&job->head, head, head_bytes);
	job->client = received->reply_ep;
	job->ids = malloc(bytes);
	if (received->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		const ucp_request_param_t params = {.op_attr_mask =
							    UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
						    .cb.recv_am = ids_came,
						    .user_data = job};
		if (ucp_am_recv_data_nbx(server, data, job->ids, bytes, &params))
			return UCS_OK;
	} else {
		memcpy(job->ids, data, bytes);
	}
	job_answer(job);
	return UCS_OK;
}

static void handle(ucp_worker_h worker, unsigned id, ucp_am_recv_callback_t call, void *argument)
{
	const ucp_am_handler_param_t params = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = id,
		.cb = call,
		.arg = argument,
		.flags = UCP_AM_FLAG_WHOLE_MSG};
	ask(ucp_worker_set_am_recv_handler(worker, &params), "handler");
}

/* Whether a client connects. A sleeping server waits for that and for the worker. */
static bool knocks(int listener)
{
	struct timeval none = {0};
	int worker_fd = -1;
	fd_set set;
	FD_ZERO(&set);
	FD_SET(listener, &set);
	if (!work.poll) {
		ask(ucp_worker_get_efd(server, &worker_fd), "descriptor");
		if (ucp_worker_arm(server) == UCS_ERR_BUSY)
			return false;
		FD_SET(worker_fd, &set);
	}
	int last = worker_fd > listener ? worker_fd : listener;
	return select(last + 1, &set, NULL, NULL, work.poll ? &none : NULL) > 0 && FD_ISSET(listener, &set);
}

static void ucx_serve(void)
{
	ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
						  UCP_MEM_MAP_PARAM_FIELD_FLAGS,
				    .length = work.table_bytes};
	ucp_mem_attr_t mapped = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucp_address_t *address;
	ucp_mem_h memory;
	size_t address_bytes, key_bytes;
	void *key;
	server = make_worker();
	if (work.shm)
		map.flags = UCP_MEM_MAP_ALLOCATE; /* else clients cannot map it */
	else
		map.address = work_memory(work.table_bytes);
	ask(ucp_mem_map(context, &map, &memory), "map");
	ask(ucp_mem_query(memory, &mapped), "query");
	table = mapped.address;
	work_fill(table);
	ask(ucp_rkey_pack(context, memory, &key, &key_bytes), "key");
	ask(ucp_worker_get_address(server, &address, &address_bytes), "address");
	handle(server, AM_ASK, asked, NULL);
	const struct hello hello = {address_bytes, key_bytes, (uintptr_t)table};
	int listener = work_listen();
	puts("ready");
	fflush(stdout);
	for (uint64_t turn = 0;; turn++) {
		while (ucp_worker_progress(server))
			;
		if ((work.poll && turn % LOOKS) || !knocks(listener))
			continue;
		int fd = accept(listener, NULL, NULL);
		work_send(fd, &hello, sizeof(hello));
		work_send(fd, address, address_bytes);
		work_send(fd, key, key_bytes);
		close(fd);
	}
}

/* --- Client. --- */

/* A get, or the rows of a message, have come. */
static void got(void *request, ucs_status_t status, void *open)
{
	ask(status, "get");
	--*(uint64_t *)open;
	ucp_request_free(request);
}

static void rows_came(void *request, ucs_status_t status, size_t bytes, void *open)
{
	(void)bytes;
	got(request, status, open);
}

static ucs_status_t answered(void *argument, const void *bytes, size_t head_bytes, void *data, size_t n,
			     const ucp_am_recv_param_t *received)
{
	struct work_link *link = argument;
	struct head head;
	memcpy(&head, bytes, head_bytes);
	uint64_t *open = (uint64_t *)(uintptr_t)head.done;
	void *to = (void *)(uintptr_t)head.to;
	if (received->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		const ucp_request_param_t params = {.op_attr_mask =
							    UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
						    .cb.recv_am = rows_came,
						    .user_data = open};
		if (ucp_am_recv_data_nbx(link->worker, data, to, n, &params))
			return UCS_OK;
	} else {
		memcpy(to, data, n);
	}
	--*open;
	return UCS_OK;
}

static struct work_link *ucx_open(void)
{
	uint8_t address[4096], key[4096];
	struct work_link *link = calloc(1, sizeof(*link));
	struct hello hello;
	link->worker = make_worker();
	handle(link->worker, AM_ROWS, answered, link);
	int fd = work_connect();
	work_receive(fd, &hello, sizeof(hello));
	if (hello.address_bytes > sizeof(address) || hello.key_bytes > sizeof(key))
		work_fail("a long address");
	work_receive(fd, address, hello.address_bytes);
	work_receive(fd, key, hello.key_bytes);
	close(fd);
	link->table = hello.table;
	const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
					.address = (const ucp_address_t *)address};
	ask(ucp_ep_create(link->worker, &params, &link->endpoint), "endpoint");
	ask(ucp_ep_rkey_unpack(link->endpoint, key, &link->key), "key");
	return link;
}

static void ucx_wait(struct work_link *link, unsigned slot)
{
	while (link->open[slot])
		progress(link->worker);
}

static void ucx_close(struct work_link *link)
{
	const ucp_request_param_t params = {0};
	ucp_rkey_destroy(link->key);
	void *request = ucp_ep_close_nbx(link->endpoint, &params);
	ask_pointer(request, "close");
	while (request && ucp_request_check_status(request) == UCS_INPROGRESS)
		ucp_worker_progress(link->worker);
	if (request)
		ucp_request_free(request);
	ucp_worker_destroy(link->worker);
	free(link->memory);
	free(link);
}

static void *ucx_memory(struct work_link *link, size_t bytes)
{
	return link->memory = work_memory(bytes);
}

static void get(struct work_link *link, unsigned slot, uint64_t from, size_t bytes, void *to)
{
	const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
					    .cb.send = got,
					    .user_data = &link->open[slot]};
	void *request = ucp_get_nbx(link->endpoint, to, bytes, link->table + from, link->key, &params);
	ask_pointer(request, "get");
	link->open[slot] += request != NULL;
}

static void ask_rows(struct work_link *link, unsigned slot, struct head *head, const uint32_t *ids)
{
	const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
							    UCP_OP_ATTR_FIELD_USER_DATA,
					    .flags = UCP_AM_SEND_FLAG_REPLY,
					    .cb.send = got,
					    .user_data = &link->open[slot]};
	head->done = (uintptr_t)&link->open[slot];
	link->open[slot]++; /* the answer */
	void *request =
		ucp_am_send_nbx(link->endpoint, AM_ASK, head, sizeof(*head), ids, head->rows * sizeof(*ids), &params);
	ask_pointer(request, "ids");
	link->open[slot] += request != NULL;
}

static void ucx_read(struct work_link *link, uint64_t from, uint64_t bytes, void *to)
{
	if (work.packed) {
		link->ids[0][0] = (uint32_t)(from / bytes);
		link->heads[0][0] = (struct head){.to = (uintptr_t)to, .rows = 1, .row_bytes = (uint32_t)bytes};
		ask_rows(link, 0, &link->heads[0][0], link->ids[0]);
	} else {
		get(link, 0, from, bytes, to);
	}
	ucx_wait(link, 0);
}

static void ucx_gather(struct work_link *link, unsigned slot, const uint64_t *from, uint32_t row_bytes, void *to)
{
	if (!work.packed) {
		for (uint32_t i = 0; i < WORK_ROWS; i++)
			get(link, slot, from[i], row_bytes, (uint8_t *)to + (size_t)i * row_bytes);
		return;
	}
	for (uint32_t i = 0; i < WORK_ROWS; i++)
		link->ids[slot][i] = (uint32_t)(from[i] / row_bytes);
	for (uint32_t piece = 0; piece < WORK_ROWS / WORK_PIECE; piece++) {
		size_t first = (size_t)piece * WORK_PIECE;
		struct head *head = &link->heads[slot][piece];
		*head = (struct head){
			.to = (uintptr_t)to + first * row_bytes, .rows = WORK_PIECE, .row_bytes = row_bytes};
		ask_rows(link, slot, head, link->ids[slot] + first);
	}
}

const struct work_peer work_peer = {.serve = ucx_serve,
				    .open = ucx_open,
				    .close = ucx_close,
				    .memory = ucx_memory,
				    .read = ucx_read,
				    .gather = ucx_gather,
				    .gather_end = ucx_wait};
