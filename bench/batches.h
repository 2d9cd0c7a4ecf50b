/* Mini-batches of one kind from two clients: compared with each other, then streamed from the measured client. */
#ifndef GW_BENCH_BATCHES_H
#define GW_BENCH_BATCHES_H

#include <graphwire/graphwire.h>

#include "core/numbers/histogram.h"

struct gw_bench_fanouts {
	uint32_t hops;
	int32_t of_hop[GW_HOPS_MAX]; /* the same for every edge type */
};

struct gw_batches_spec {
	struct gw_bench_fanouts fanouts;
	const char *labels;   /* the seeds are of the first node type that has these */
	const char *features; /* read for all inputs, while labels are read for the seeds; NULL: nothing is read */
	uint32_t batch_size, depth;
	int64_t part; /* the part that owns the seeds; -1: all parts */
};

struct gw_batches {
	struct gw_loader_options options;
	struct gw_fetch fetches[2];
	int32_t *fanouts; /* [hops][edge types] */
	int64_t *ids;
	struct gw_loader *loader;  /* the measured client's */
	uint64_t type_count;       /* number of nodes of the seeds' type */
	uint64_t row_bytes;        /* bytes of a feature row */
	uint64_t rows_of_one;      /* feature rows of the last compared batch */
	struct gw_histogram waits; /* ns from batch to batch */
	uint64_t batches, edges, rows, nodes;
	double seconds;
};

/* Finds types and tensors, and lists the seeds. Call gw_batches_end in any case. */
gw_status gw_batches_begin(struct gw_batches *b, struct gw_client *alone, const struct gw_batches_spec *spec);
void gw_batches_end(struct gw_batches *b);

gw_status gw_batches_loader(const struct gw_batches *b, struct gw_client *client, struct gw_loader **out);

/* Opens the measured client's loader, and compares its first batches with the standalone client's. */
gw_status gw_batches_check(struct gw_batches *b, struct gw_client *alone, struct gw_client *measured);

/* Streams n batches, across epochs, and counts them. *per_second is the rate of batches. */
gw_status gw_batches_run(struct gw_batches *b, uint32_t n, double *per_second);

/* Takes the next batch of any loader. At the end of an epoch, continues with the next epoch. */
gw_status gw_batches_next(struct gw_loader *loader, struct gw_minibatch **batch);

#endif
