/* The peer "libfabric": endpoints of the kind RDM over tcp;ofi_rxm or, with --shm, shm. Reads are fi_read. --packed:
 * the ids travel by fi_send, the server packs the rows and writes them into the client's memory by fi_writedata; a read
 * is then a gather of one row, written from the table. Both sides poll fi_cq_read, or sleep in fi_cq_sread. */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "work.h"

#define LOOKS      4096 /* a polling server looks for new clients once in so many turns */
#define SLEEP_MS   100
#define QUESTIONS  64 /* receives that the server keeps posted */
#define CLIENTS    256
#define PIECES     (WORK_ROWS / WORK_PIECE)
#define NAME_BYTES 256
#define CQ_ENTRIES 64
#define PACK_SLOTS 16
#define PACK_BYTES (4ull << 20)
enum { KEY_TABLE = 1, KEY_PACK, KEY_QUESTIONS, KEY_CLIENT };

/* From client to server. */
struct question {
	uint64_t to, key; /* where the rows belong */
	uint32_t client;  /* number in the server's address vector */
	uint32_t slot;    /* comes back with the rows */
	uint32_t rows, row_bytes;
	uint32_t ids[WORK_PIECE];
};

struct hello {
	uint64_t name_bytes, key, table;
	char name[NAME_BYTES];
};

struct end {
	struct fid_ep *endpoint;
	struct fid_cq *queue;
	struct fid_av *addresses;
};

struct work_link {
	struct end end;
	fi_addr_t server;
	uint64_t table, key;
	uint32_t number;
	struct fid_mr *region, *questions_region;
	uint8_t *memory;
	unsigned open[WORK_SLOTS]; /* reads, questions that are being sent, and answers */
	struct question questions[WORK_SLOTS][PIECES];
	struct fi_context2 *contexts[WORK_SLOTS]; /* of the operations; their first word is the slot */
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static uint64_t keys = KEY_CLIENT;

static void ask(int error, const char *what)
{
	if (error)
		work_fail("%s: %s", what, fi_strerror(-error));
}

static bool addresses_are_virtual(void)
{
	return info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
}

static void begin(void)
{
	if (domain)
		return;
	struct fi_info *hints = fi_allocinfo();
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(work.shm ? "shm" : "tcp;ofi_rxm");
	ask(fi_getinfo(FI_VERSION(1, 17), work.shm ? NULL : "127.0.0.1", NULL, work.shm ? 0 : FI_SOURCE, hints, &info),
	    "fi_getinfo");
	ask(fi_fabric(info->fabric_attr, &fabric, NULL), "fabric");
	ask(fi_domain(fabric, info, &domain, NULL), "domain");
	fi_freeinfo(hints);
}

static void end_open(struct end *end)
{
	struct fi_cq_attr queue = {
		.size = 32768, .format = FI_CQ_FORMAT_DATA, .wait_obj = work.poll ? FI_WAIT_NONE : FI_WAIT_UNSPEC};
	struct fi_av_attr addresses = {.type = FI_AV_TABLE};
	begin();
	ask(fi_cq_open(domain, &queue, &end->queue, NULL), "queue");
	ask(fi_av_open(domain, &addresses, &end->addresses, NULL), "addresses");
	ask(fi_endpoint(domain, info, &end->endpoint, NULL), "endpoint");
	ask(fi_ep_bind(end->endpoint, &end->queue->fid, FI_TRANSMIT | FI_RECV), "bind");
	ask(fi_ep_bind(end->endpoint, &end->addresses->fid, 0), "bind");
	ask(fi_enable(end->endpoint), "enable");
}

static size_t progress(struct end *end, struct fi_cq_data_entry *entries, bool wait)
{
	ssize_t n = wait && !work.poll ? fi_cq_sread(end->queue, entries, CQ_ENTRIES, NULL, SLEEP_MS)
				       : fi_cq_read(end->queue, entries, CQ_ENTRIES);
	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0) {
		struct fi_cq_err_entry error = {0};
		fi_cq_readerr(end->queue, &error, 0);
		work_fail("completion: %s", fi_strerror(error.err));
	}
	return (size_t)n;
}

static struct fid_mr *region_of(const void *memory, size_t bytes, uint64_t access, uint64_t key)
{
	struct fid_mr *region;
	ask(fi_mr_reg(domain, memory, bytes, access, 0, key, 0, &region, NULL), "region");
	return region;
}

/* --- Server. --- */

static struct end server;
static uint8_t *table, *pack;
static struct fid_mr *table_region, *pack_region;

static void answer(const struct question *q)
{
	static unsigned slot;
	const size_t bytes = (size_t)q->rows * q->row_bytes;
	const uint8_t *from = table + (uint64_t)q->ids[0] * q->row_bytes;
	struct fid_mr *region = table_region;
	if (q->rows > 1) {
		uint8_t *to = pack + slot++ % PACK_SLOTS * PACK_BYTES;
		for (uint32_t i = 0; i < q->rows; i++) {
			const uint8_t *ahead = table + (uint64_t)q->ids[i + 8 < q->rows ? i + 8 : i] * q->row_bytes;
			__builtin_prefetch(ahead);
			__builtin_prefetch(ahead + 64);
			memcpy(to + (size_t)i * q->row_bytes, table + (uint64_t)q->ids[i] * q->row_bytes, q->row_bytes);
		}
		from = to;
		region = pack_region;
	}
	ssize_t error;
	while ((error = fi_writedata(server.endpoint, from, bytes, fi_mr_desc(region), q->slot, q->client, q->to,
				     q->key, NULL)) == -FI_EAGAIN)
		fi_cq_read(server.queue, NULL, 0);
	ask((int)error, "fi_writedata");
}

static void greet(int fd, struct hello *own)
{
	struct hello client;
	fi_addr_t number;
	work_send(fd, own, sizeof(*own));
	work_receive(fd, &client, sizeof(client));
	if (fi_av_insert(server.addresses, client.name, 1, &number, 0, NULL) != 1)
		work_fail("the client's address");
	work_send(fd, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
	close(fd);
}

static bool knocks(int listener)
{
	struct timeval none = {0};
	fd_set set;
	FD_ZERO(&set);
	FD_SET(listener, &set);
	return select(listener + 1, &set, NULL, NULL, &none) > 0;
}

static void fabric_serve(void)
{
	static struct question questions[QUESTIONS];
	static struct fi_context2 contexts[QUESTIONS];
	struct fi_cq_data_entry entries[CQ_ENTRIES];
	end_open(&server);
	table = work_memory(work.table_bytes);
	work_fill(table);
	pack = work_memory(PACK_SLOTS * PACK_BYTES);
	memset(pack, 0, PACK_SLOTS * PACK_BYTES);
	table_region = region_of(table, work.table_bytes, FI_REMOTE_READ | FI_READ | FI_WRITE, KEY_TABLE);
	pack_region = region_of(pack, PACK_SLOTS * PACK_BYTES, FI_WRITE, KEY_PACK);
	struct fid_mr *region = region_of(questions, sizeof(questions), FI_RECV, KEY_QUESTIONS);
	for (int i = 0; i < QUESTIONS; i++)
		ask((int)fi_recv(server.endpoint, &questions[i], sizeof(questions[i]), fi_mr_desc(region),
				 FI_ADDR_UNSPEC, &contexts[i]),
		    "receive");
	struct hello own = {.name_bytes = sizeof(own.name),
			    .key = fi_mr_key(table_region),
			    .table = addresses_are_virtual() ? (uintptr_t)table : 0};
	ask(fi_getname(&server.endpoint->fid, own.name, &own.name_bytes), "name");
	int listener = work_listen();
	puts("ready");
	fflush(stdout);
	for (uint64_t turn = 0;; turn++) {
		size_t n = progress(&server, entries, true);
		for (size_t i = 0; i < n; i++) {
			if (!(entries[i].flags & FI_RECV) || !entries[i].op_context)
				continue;
			struct fi_context2 *received = entries[i].op_context;
			struct question *question = &questions[received - contexts];
			answer(question);
			ask((int)fi_recv(server.endpoint, question, sizeof(*question), fi_mr_desc(region),
					 FI_ADDR_UNSPEC, received),
			    "receive");
		}
		if ((!work.poll || turn % LOOKS == 0) && knocks(listener))
			greet(accept(listener, NULL, NULL), &own);
	}
}

/* --- Client. --- */

static struct work_link *fabric_open(void)
{
	struct work_link *link = calloc(1, sizeof(*link));
	struct hello server_hello, own = {.name_bytes = sizeof(own.name)};
	end_open(&link->end);
	ask(fi_getname(&link->end.endpoint->fid, own.name, &own.name_bytes), "name");
	int fd = work_connect();
	work_receive(fd, &server_hello, sizeof(server_hello));
	work_send(fd, &own, sizeof(own));
	work_receive(fd, &link->number, sizeof(link->number));
	close(fd);
	if (fi_av_insert(link->end.addresses, server_hello.name, 1, &link->server, 0, NULL) != 1)
		work_fail("the server's address");
	link->table = server_hello.table;
	link->key = server_hello.key;
	link->questions_region = region_of(link->questions, sizeof(link->questions), FI_SEND, keys++);
	return link;
}

static void fabric_close(struct work_link *link)
{
	if (link->region)
		fi_close(&link->region->fid);
	fi_close(&link->questions_region->fid);
	fi_close(&link->end.endpoint->fid);
	fi_close(&link->end.addresses->fid);
	fi_close(&link->end.queue->fid);
	for (unsigned slot = 0; slot < WORK_SLOTS; slot++)
		free(link->contexts[slot]);
	free(link->memory);
	free(link);
}

static void *fabric_memory(struct work_link *link, size_t bytes)
{
	link->memory = work_memory(bytes);
	link->region = region_of(link->memory, bytes, FI_READ | FI_REMOTE_WRITE, keys++);
	return link->memory;
}

static void handle(struct work_link *link, bool wait)
{
	struct fi_cq_data_entry entries[CQ_ENTRIES];
	size_t n = progress(&link->end, entries, wait);
	for (size_t i = 0; i < n; i++) {
		if (entries[i].flags & FI_REMOTE_CQ_DATA) {
			link->open[entries[i].data]--;
			continue;
		}
		const struct fi_context2 *context = entries[i].op_context;
		for (unsigned slot = 0; slot < WORK_SLOTS; slot++)
			if (link->contexts[slot] && context >= link->contexts[slot] &&
			    context < link->contexts[slot] + WORK_ROWS)
				link->open[slot]--;
	}
}

static void fabric_wait(struct work_link *link, unsigned slot)
{
	while (link->open[slot])
		handle(link, true);
}

static struct fi_context2 *context_of(struct work_link *link, unsigned slot, uint32_t number)
{
	if (!link->contexts[slot])
		link->contexts[slot] = calloc(WORK_ROWS, sizeof(struct fi_context2));
	return &link->contexts[slot][number];
}

static void get(struct work_link *link, unsigned slot, uint32_t number, uint64_t from, size_t bytes, void *to)
{
	ssize_t error;
	while ((error = fi_read(link->end.endpoint, to, bytes, fi_mr_desc(link->region), link->server,
				link->table + from, link->key, context_of(link, slot, number))) == -FI_EAGAIN)
		handle(link, false);
	ask((int)error, "fi_read");
	link->open[slot]++;
}

static void ask_rows(struct work_link *link, unsigned slot, unsigned piece, uint32_t rows, uint32_t row_bytes, void *to)
{
	struct question *question = &link->questions[slot][piece];
	uint64_t base = addresses_are_virtual() ? 0 : (uintptr_t)link->memory;
	ssize_t error;
	question->to = (uintptr_t)to - base;
	question->key = fi_mr_key(link->region);
	question->client = link->number;
	question->slot = slot;
	question->rows = rows;
	question->row_bytes = row_bytes;
	while ((error = fi_send(link->end.endpoint, question, offsetof(struct question, ids) + rows * sizeof(uint32_t),
				fi_mr_desc(link->questions_region), link->server, context_of(link, slot, piece))) ==
	       -FI_EAGAIN)
		handle(link, false);
	ask((int)error, "fi_send");
	link->open[slot] += 2;
}

static void fabric_read(struct work_link *link, uint64_t from, uint64_t bytes, void *to)
{
	if (work.packed) {
		link->questions[0][0].ids[0] = (uint32_t)(from / bytes);
		ask_rows(link, 0, 0, 1, (uint32_t)bytes, to);
	} else {
		get(link, 0, 0, from, bytes, to);
	}
	fabric_wait(link, 0);
}

static void fabric_gather(struct work_link *link, unsigned slot, const uint64_t *from, uint32_t row_bytes, void *to)
{
	if (!work.packed) {
		for (uint32_t i = 0; i < WORK_ROWS; i++)
			get(link, slot, i, from[i], row_bytes, (uint8_t *)to + (size_t)i * row_bytes);
		return;
	}
	for (unsigned piece = 0; piece < PIECES; piece++) {
		size_t first = (size_t)piece * WORK_PIECE;
		for (uint32_t i = 0; i < WORK_PIECE; i++)
			link->questions[slot][piece].ids[i] = (uint32_t)(from[first + i] / row_bytes);
		ask_rows(link, slot, piece, WORK_PIECE, row_bytes, (uint8_t *)to + first * row_bytes);
	}
}

const struct work_peer work_peer = {.serve = fabric_serve,
				    .open = fabric_open,
				    .close = fabric_close,
				    .memory = fabric_memory,
				    .read = fabric_read,
				    .gather = fabric_gather,
				    .gather_end = fabric_wait};
