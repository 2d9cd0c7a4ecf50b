/* A table of rows behind a service in this process, for the row benchmarks. */
#ifndef GW_BENCH_ROW_BED_H
#define GW_BENCH_ROW_BED_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/memory/arena.h"
#include "transport/transport.h"

#define ROW_THREADS_MAX 64
#define ROW_WAYS        5u

/* The transports that the row benchmarks measure. */
struct gw_row_path {
	const char *name;                /* "tcp/epoll" */
	const char *option;              /* "epoll": its name for --transport */
	const char *scheme, *tcp_driver; /* of the bed; tcp_driver: NULL except for TCP */
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

/* The table's rows as trainable rows, and the same rows without their trailers: regions 1 and 2 of a bed. */
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

/* A client's connection; the thread that opens it uses it. */
struct gw_row_client {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
};

/* Random bytes in an arena, in 2 MiB pages if available. */
gw_status gw_row_table_make(uint64_t bytes, struct gw_arena **out);

/* "2 MiB pages", or the arena's other page size. */
const char *gw_row_pages(const struct gw_arena *arena);

/* Serves the table's first bytes at "tcp", "verbs", "shm" or "memory", with so many threads on odd processors (for
 * memory and shm the threads have nothing to do). changing: more regions, or NULL. The options apply to both sides.
 * The bed must not move while it serves. On failure nothing is left. */
gw_status gw_row_bed_begin(struct gw_row_bed *bed, const struct gw_arena *table, uint64_t bytes,
			   const struct gw_row_bed_changing *changing, const char *scheme,
			   const struct gw_poll_group_options *options, unsigned threads);
void gw_row_bed_end(struct gw_row_bed *bed); /* call it after closing its clients */

/* Moves the first of its threads to this processor (gw_bench_pin). */
void gw_row_bed_place(struct gw_row_bed *bed, unsigned processor);

gw_status gw_row_client_open(const struct gw_row_bed *bed, struct gw_row_client *client);
void gw_row_client_close(struct gw_row_client *client);

#endif
