/* The peer "Graphwire public": gw_gather of the public header, over `graphwire serve`. Its rows have 512 bytes: run it
 * with --row 512. It runs the cases reads and gathers only.
 *
 * Environment: GRAPHWIRE, the program; GRAPHWIRE_GRAPH, a graph of one part whose only node type has the feature "feat"
 * of 512 bytes a row. --table is the size of that feature. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <graphwire/graphwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

#define ROW_BYTES  512u
#define SPIN_US    100000
#define TEXT_OF(a) #a
#define TEXT(a)    TEXT_OF(a)

struct work_link {
	struct gw_client *client;
	const struct gw_tensor *rows;
	void *memory;
	struct gw_ticket *tickets[WORK_SLOTS];
	int64_t *ids; /* of one read, or of WORK_SLOTS gathers */
	size_t ids_max;
};

static void ask(gw_status status, const char *what)
{
	if (status != GW_OK)
		work_fail("%s: %s", what, gw_last_error());
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);
	if (!value)
		work_fail("%s is not set", name);
	return value;
}

static void public_serve(void)
{
	char address[64];
	snprintf(address, sizeof(address), "127.0.0.1:%d", work.port);
	execl(environment("GRAPHWIRE"), "graphwire", "serve", "--part-config", environment("GRAPHWIRE_GRAPH"), "--part",
	      "0", "--listen", address, "--threads", "1", "--insecure", "--tcp-driver",
	      work.driver ? work.driver : "auto", "--spin", work.poll ? TEXT(SPIN_US) : "0", NULL);
	work_fail("graphwire serve does not start");
}

static struct work_link *public_open(void)
{
	char address[64];
	const char *servers[] = {address};
	struct work_link *link = calloc(1, sizeof(*link));
	const struct gw_client_options options = {.servers = servers,
						  .server_count = 1,
						  .insecure = true,
						  .transport = work.shm ? "shm" : "tcp",
						  .tcp_driver = work.driver,
						  .spin_us = work.poll ? SPIN_US : 0,
						  .threads = 1};
	snprintf(address, sizeof(address), "127.0.0.1:%d", work.port);
	ask(gw_client_open(&options, &link->client), "open");
	ask(gw_node_tensor(link->client, 0, "feat", &link->rows), "feat");
	if (link->rows->row_bytes != ROW_BYTES || link->rows->shape[0] * ROW_BYTES != work.table_bytes)
		work_fail("the feature does not fit --table %llu", (unsigned long long)work.table_bytes);
	return link;
}

static void public_close(struct work_link *link)
{
	gw_buffer_free(link->client, link->memory);
	gw_client_close(link->client);
	free(link->ids);
	free(link);
}

static void *public_memory(struct work_link *link, size_t bytes)
{
	link->ids_max = bytes / ROW_BYTES < WORK_SLOTS * WORK_ROWS ? WORK_SLOTS * WORK_ROWS : bytes / ROW_BYTES;
	link->ids = calloc(link->ids_max, sizeof(*link->ids));
	link->memory = gw_buffer_alloc(link->client, bytes);
	if (!link->memory || !link->ids)
		work_fail("no memory");
	return link->memory;
}

static void public_read(struct work_link *link, uint64_t from, uint64_t bytes, void *to)
{
	const uint64_t n = bytes / ROW_BYTES;
	for (uint64_t i = 0; i < n; i++)
		link->ids[i] = (int64_t)(from / ROW_BYTES + i);
	ask(gw_gather(link->client, link->rows, link->ids, n, to), "gather");
}

static void public_gather(struct work_link *link, unsigned slot, const uint64_t *from, uint32_t row_bytes, void *to)
{
	int64_t *ids = link->ids + (size_t)slot * WORK_ROWS;
	if (row_bytes != ROW_BYTES)
		work_fail("run it with --row %u", ROW_BYTES);
	for (uint32_t i = 0; i < WORK_ROWS; i++)
		ids[i] = (int64_t)(from[i] / ROW_BYTES);
	ask(gw_gather_start(link->client, link->rows, ids, WORK_ROWS, to, &link->tickets[slot]), "gather");
}

static void public_gather_end(struct work_link *link, unsigned slot)
{
	ask(gw_wait(link->tickets[slot], -1), "wait");
}

/* The rows as the graph's file has them, after the header of the .npy file. */
static const uint8_t *file_rows(void)
{
	static const uint8_t *rows;
	char path[4096];
	struct stat file;
	if (rows)
		return rows;
	snprintf(path, sizeof(path), "%s/part0/node/_N/feat.npy", environment("GRAPHWIRE_GRAPH"));
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &file) != 0)
		work_fail("%s cannot be read", path);
	const uint8_t *bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED || (uint64_t)file.st_size < work.table_bytes)
		work_fail("%s cannot be mapped", path);
	rows = bytes + ((uint64_t)file.st_size - work.table_bytes);
	return rows;
}

static bool public_right(uint64_t from, const void *bytes, uint64_t n)
{
	return memcmp(file_rows() + from, bytes, n) == 0;
}

const struct work_peer work_peer = {.serve = public_serve,
				    .open = public_open,
				    .close = public_close,
				    .memory = public_memory,
				    .read = public_read,
				    .gather = public_gather,
				    .gather_end = public_gather_end,
				    .right = public_right};
