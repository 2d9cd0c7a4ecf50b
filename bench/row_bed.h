/* A table of rows behind a service of this process: what the row benchmarks measure on. */
#ifndef GW_BENCH_ROW_BED_H
#define GW_BENCH_ROW_BED_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/memory/arena.h"
#include "transport/transport.h"

#define ROW_THREADS_MAX 64
#define ROW_WAYS        5u

/* The ways to a row that the row benchmarks know. */
struct gw_row_path {
	const char *name;                /* "tcp/epoll" */
	const char *option;              /* "epoll": what --transport calls it */
	const char *scheme, *tcp_driver; /* of the bed; tcp_driver: NULL but for TCP */
};
extern const struct gw_row_path gw_row_paths[ROW_WAYS];
extern const char *const gw_row_options[]; /* their names for --transport, and NULL */

struct gw_row_server {
	struct gw_row_bed *bed;
	unsigned number;
	struct gw_poll_group *group;
	pthread_t thread;
	bool serving;
};

/* The table's rows as rows that change, and the same rows without their trailers: regions 1 and 2 of a bed. */
struct gw_row_bed_changing {
	struct gw_region_rows rows;
	const struct gw_arena *bare;
	uint64_t bare_bytes;
};

struct gw_row_bed {
	struct gw_poll_group_options options; /* of both sides */
	struct gw_service *service;
	struct gw_listener *listener;
	unsigned threads;
	struct gw_row_server servers[ROW_THREADS_MAX];
	_Atomic bool stop;
};

/* A client's connection, of the thread that opens it. */
struct gw_row_client {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
};

/* Random bytes in an arena of 2 MiB pages where they can be had. */
gw_status gw_row_table_make(uint64_t bytes, struct gw_arena **out);

/* "2 MiB pages", or what else an arena lies on. */
const char *gw_row_pages(const struct gw_arena *arena);

/* Serves the table's first bytes at "tcp", "verbs", "shm" or "memory" by so many threads (memory, shm: they have
 * nothing to do), on odd processors; changing: and what that says besides (NULL: nothing). The options are both sides'.
 * The bed must not move while it serves. On failure nothing is left. */
gw_status gw_row_bed_begin(struct gw_row_bed *bed, const struct gw_arena *table, uint64_t bytes,
			   const struct gw_row_bed_changing *changing, const char *scheme,
			   const struct gw_poll_group_options *options, unsigned threads);
void gw_row_bed_end(struct gw_row_bed *bed); /* after its clients */

/* The first of its threads goes to this processor (gw_bench_pin). */
void gw_row_bed_place(struct gw_row_bed *bed, unsigned processor);

gw_status gw_row_client_open(const struct gw_row_bed *bed, struct gw_row_client *client);
void gw_row_client_close(struct gw_row_client *client);

#endif
