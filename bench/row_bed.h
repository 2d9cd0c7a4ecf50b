/* A table of rows behind a service of this process, and a client of it: what the row benchmarks measure on. */
#ifndef GW_BENCH_ROW_BED_H
#define GW_BENCH_ROW_BED_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/arena.h"
#include "transport/transport.h"

#define ROW_DEPTH_MAX 64

struct gw_row_bed {
	struct gw_arena *arena; /* the table; the caller's */
	uint64_t bytes;
	struct gw_service *service;
	struct gw_poll_group *server_group, *group;
	struct gw_listener *listener;
	struct gw_endpoint *endpoint;
	pthread_t thread;
	bool serving;
	_Atomic bool stop;
};

/* Random bytes in an arena of 2 MiB pages where they can be had. */
gw_status gw_row_table_make(uint64_t bytes, struct gw_arena **out);

/* Serves the table at "tcp" or "memory" by one thread (memory: by none) and connects. driver: tcp's. */
gw_status gw_row_bed_begin(struct gw_row_bed *bed, struct gw_arena *table, uint64_t bytes, const char *scheme,
			   const char *driver, uint64_t spin_ns);
void gw_row_bed_end(struct gw_row_bed *bed);

#endif
