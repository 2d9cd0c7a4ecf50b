/* The test bed of the row benchmarks: a table of rows behind a service in this process. */
#ifndef GW_BENCH_ROW_BED_H
#define GW_BENCH_ROW_BED_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/memory/arena.h"
#include "transport/transport.h"

#define ROW_THREADS_MAX 64
#define ROW_WAYS        5u

/* The paths to a row that the row benchmarks measure. */
struct gw_row_path {
	const char *name;                /* "tcp/epoll" */
	const char *option;              /* "epoll": its name for --transport */
	const char *scheme, *tcp_driver; /* arguments of gw_row_bed_begin; tcp_driver is NULL except for TCP */
};
extern const struct gw_row_path gw_row_paths[ROW_WAYS];
extern const char *const gw_row_options[]; /* the options of all paths, then NULL */

struct gw_row_server {
	struct gw_row_bed *bed;
	unsigned number;
	struct gw_poll_group *group;
	pthread_t thread;
	bool serving;
};

/* Two more regions of a bed: the table's rows as versioned rows (region 1), and the same rows without trailers (region
 * 2). */
struct gw_row_bed_changing {
	struct gw_region_rows rows;
	const struct gw_arena *bare;
	uint64_t bare_bytes;
};

struct gw_row_bed {
	struct gw_poll_group_options options; /* options of both sides */
	struct gw_service *service;
	struct gw_listener *listener;
	unsigned threads;
	struct gw_row_server servers[ROW_THREADS_MAX];
	_Atomic bool stop;
};

/* A client's connection. It belongs to the thread that opens it. */
struct gw_row_client {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
};

/* Creates an arena of random bytes, on 2 MiB pages where possible. */
gw_status gw_row_table_make(uint64_t bytes, struct gw_arena **out);

/* Returns "2 MiB pages" or "4 KiB pages", the pages of an arena. */
const char *gw_row_pages(const struct gw_arena *arena);

/* Serves the table's first `bytes` over "tcp", "verbs", "shm" or "memory", with `threads` threads on odd processors
 * (with memory and shm they have nothing to do). changing: more regions to serve, or NULL. The options are those of
 * both sides. The bed must not move while it serves. On failure everything is freed. */
gw_status gw_row_bed_begin(struct gw_row_bed *bed, const struct gw_arena *table, uint64_t bytes,
			   const struct gw_row_bed_changing *changing, const char *scheme,
			   const struct gw_poll_group_options *options, unsigned threads);
void gw_row_bed_end(struct gw_row_bed *bed); /* close its clients first */

/* Pins the first serving thread to this processor (gw_bench_pin). */
void gw_row_bed_place(struct gw_row_bed *bed, unsigned processor);

gw_status gw_row_client_open(const struct gw_row_bed *bed, struct gw_row_client *client);
void gw_row_client_close(struct gw_row_client *client);

#endif
