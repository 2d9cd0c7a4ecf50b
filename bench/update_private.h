/* Shared by the parts of graphwire bench update. */
#ifndef GW_BENCH_UPDATE_PRIVATE_H
#define GW_BENCH_UPDATE_PRIVATE_H

#include <graphwire/graphwire.h>

#include "bench/bare_step.h"
#include "bench/bench.h"
#include "bench/own_servers.h"
#include "core/rows/store.h"

struct gw_update {
	struct gw_bench bench;
	uint64_t rows, row_bytes, batch, step_rows;
	double seconds;
	const char *only;      /* the only part to run; NULL: all */
	const char *transport; /* the only transport of reads; NULL: each */
	const char *folder;    /* where checkpoints are written */
	struct gw_own_clients_options clients;
	/* in use while the benchmark runs */
	struct gw_row_store *store;
	struct gw_arena *bare; /* the store's payloads without trailers */
	uint8_t *landing;
	uint64_t *offsets, *numbers;
	float *gradients, *bare_rows;
	uint64_t next;
	struct gw_row_push_scratch scratch;
	struct gw_bench_series plain; /* GB/s of reads at the bare stride, without trailers */
	struct gw_own_servers own;
	struct gw_client *alone, *served;
	const struct gw_tensor *tensor;
	struct gw_bare_step *bare_step;
	int64_t *ids;
	uint32_t *bare_numbers;
	double checkpoint_bytes, checkpoint_rate;
	struct gw_bench_series fio; /* GB/s of fio's writes of as many bytes as a checkpoint */
	char no_fio[200];           /* why fio was not measured */
	struct gw_client *writer;   /* the client that writes checkpoints while steps are measured */
};

static inline uint32_t gw_update_columns(const struct gw_update *a)
{
	return (uint32_t)(a->row_bytes / sizeof(float));
}

/* The optimizer of all pushes: row-wise Adagrad. */
extern const struct gw_optimizer gw_update_optimizer;

/* bench/update_memory.c: each function checks, measures and reports one operation. */
gw_status gw_update_reads(struct gw_update *a);
gw_status gw_update_hash(struct gw_update *a);
gw_status gw_update_push(struct gw_update *a);
/* bench/update_paths.c: the same for reads over each transport. */
gw_status gw_update_paths(struct gw_update *a);
/* bench/update_mix.c */
gw_status gw_update_mix(struct gw_update *a);
/* bench/update_lookup.c */
gw_status gw_update_lookup(struct gw_update *a);

#endif
