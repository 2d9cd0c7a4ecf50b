/* What each means saves, for graphwire doctor: the bytes that travel for a mini-batch, over the memory that saves them.
 *
 *   for each part: the mini-batches of its trainers -> nodes of other parts, bytes of samples, blocks of files
 * (batches.c) replicas    -> the rows that are chosen, and the nodes without them (tools/replicate) look-ahead, kept
 * rows -> what a loader counts and chooses (ahead.c, client/batch/kept_rows.h)
 *   -> a row of the table for each means (table.c) -> [the combinations that fit a memory (fit.c)] -> printed (print.c)
 *
 * Every figure is a count of batches, made by the code of loaders and servers. They are those of trainers whose loaders
 * have the same seeds, order and batch size; they predict others of the same kind. One trainer for each part.
 */
#ifndef GW_TOOLS_MEANS_H
#define GW_TOOLS_MEANS_H

#include "client/batch/kept_rows.h"
#include "tools/replicate/replicate.h"

struct gw_means_plan {
	struct gw_replicate_plan trainers; /* fanouts, seeds, features; its budget does not count */
	const char *config;
	uint64_t steps;  /* mini-batches of each part that are counted; 0: an epoch */
	uint64_t memory; /* of a host, for its part and the means; 0: no combination is sought */
};

/* --- graph.c: what the trainers fetch. --- */

/* How rows may be stored: as they are, or narrow. */
#define GW_MEANS_STORES 3u
struct gw_means_store {
	const char *name; /* NULL: as they are */
	gw_dtype dtype;
};
extern const struct gw_means_store gw_means_stores[GW_MEANS_STORES];

/* A feature, at all nodes of a mini-batch. */
struct gw_means_fetch {
	const struct gw_array_meta *array; /* of part 0 */
	uint32_t ntype;
	uint64_t row_bytes[GW_MEANS_STORES];
};

struct gw_means_graph {
	struct gw_hot_graph hot;
	struct gw_means_fetch *fetches; /* [fetch_count] */
	uint32_t fetch_count;
	uint64_t *cost; /* [ntypes]: bytes of a node's rows as they are stored; 0: the type has none */
};

/* meta stays. Close it also after a failure; a zeroed one is allowed. */
gw_status gw_means_graph_open(const struct gw_means_plan *plan, const struct gw_graph_meta *meta,
			      struct gw_means_graph *out);
void gw_means_graph_close(struct gw_means_graph *graph);

/* Bytes of the rows of these features: of a part; of all parts. cache_bytes is a share of the latter. */
double gw_means_row_bytes(const struct gw_means_graph *graph, uint32_t part, uint32_t store);
uint64_t gw_means_all_bytes(const struct gw_means_graph *graph, uint32_t store);
/* Bytes of the lists of all parts but one. */
double gw_means_other_lists(const struct gw_graph_meta *meta, uint32_t part);
/* Bytes of the arrays of a part that --on-disk leaves on disk: is_left is gw_array_is_of_edges, or _of_offsets. */
double gw_means_left_on_disk(const struct gw_graph_meta *meta, uint32_t part,
			     bool (*is_left)(const struct gw_graph_meta *meta, const struct gw_array_meta *array));

/* --- batches.c --- */

struct gw_means_client; /* samples as over a network */
/* graph stays. GW_NO_MEMORY and others. */
gw_status gw_means_client_open(const struct gw_means_graph *graph, struct gw_means_client **out);
void gw_means_client_close(struct gw_means_client *client); /* NULL is allowed */

/* The mini-batches of one part's trainers. Reused from part to part; begins zeroed. */
struct gw_means_batches {
	uint32_t part;
	uint64_t count;
	struct gw_vec *ids;  /* [ntypes]: int64_t: nodes of other parts whose rows are fetched, batch after batch */
	struct gw_vec *ends; /* [ntypes]: uint64_t [count]: where those of each batch end */
	uint64_t sampled;    /* bytes of requests to other parts for samples, and of their replies */
	/* Blocks of the files of rows, of neighbours, and of offsets, of all parts, that a batch touches: summed over
	 * the batches. */
	uint64_t disk_blocks, list_blocks, offset_blocks;
};

gw_status gw_means_batches_run(struct gw_means_client *client, uint32_t part, uint64_t steps, uint64_t seed,
			       struct gw_means_batches *out);
void gw_means_batches_free(const struct gw_means_graph *graph, struct gw_means_batches *batches);

/* The nodes of all batches; *count: 0 of a type without fetches. */
static inline const int64_t *gw_means_ids(const struct gw_means_batches *batches, uint32_t ntype, uint64_t *count)
{
	const uint64_t *ends = batches->ends[ntype].data;
	*count = batches->count && ends ? ends[batches->count - 1] : 0;
	return batches->ids[ntype].data;
}

/* --- ahead.c: what the loader of these batches fetches. --- */

struct gw_means_ahead; /* reused from count to count */

gw_status gw_means_ahead_create(const struct gw_means_graph *graph, struct gw_means_ahead **out);
void gw_means_ahead_free(struct gw_means_ahead *ahead); /* NULL is allowed */

/* Counts what each batch fetches with this look-ahead. near: [ntypes], the rows that replicas have; NULL: none. */
gw_status gw_means_ahead_count(struct gw_means_ahead *ahead, const struct gw_means_batches *batches,
			       struct gw_replica_block *const *near, uint32_t lookahead);

/* What the counted batches fetch, and what the trainer's memory for it is: bytes. */
struct gw_means_fetched {
	double bytes;  /* of all batches, with those of kept rows */
	double window; /* the most that the look-ahead's batches have fetched together */
	double cache;  /* kept rows, the set of them, and the counts */
};
gw_status gw_means_ahead_fetched(struct gw_means_ahead *ahead, uint32_t store, uint64_t cache_bytes,
				 struct gw_means_fetched *out);

/* --- table.c --- */

#define GW_MEANS_SHARES 5u /* of rows that are replicated, or kept */
#define GW_MEANS_AHEADS 5u
extern const double gw_means_shares[GW_MEANS_SHARES];
extern const uint32_t gw_means_aheads[GW_MEANS_AHEADS]; /* batches that a fetched row serves; the first is 1 */

#define GW_MEANS_ROWS_MAX 32u

struct gw_means_row {
	const char *means; /* "none", "replicas", "narrow", "lookahead", "cache", "lists", "disk", "disk_lists",
			      "disk_offsets" */
	const char *by;    /* of replicas; the type of narrow rows; else NULL */
	double value;      /* a share of replicas, batches of look-ahead, bytes of kept rows; else 0 */
	double memory;     /* bytes, of the host where it is most, besides its part; less than 0: of the part */
	double rows;       /* bytes of rows of other parts, for a mini-batch */
	double samples; /* bytes of requests for lists of other parts and of replies, for a mini-batch; NAN: not counted
			 */
	double disk_blocks; /* for a mini-batch */
};

/* The combination of means that lets the fewest bytes travel within the memory, for one way to store rows. */
struct gw_means_fit {
	const char *store; /* NULL: as they are */
	bool fits;         /* false: `memory` is what the part alone takes, and no more is set */
	bool on_disk;      /* it fits with the rows on disk alone, and `memory` is without their cache */
	double share;      /* of replicas by vip */
	uint32_t lookahead;
	uint64_t cache_bytes;
	bool lists;
	double memory; /* of the host where it is most, its part included */
	double rows, samples, disk_blocks;
};

struct gw_means_table {
	uint32_t parts, batch_size;
	uint64_t batches;
	struct gw_means_row rows[GW_MEANS_ROWS_MAX];
	uint32_t count;
	uint64_t memory; /* of the plan */
	struct gw_means_fit fits[GW_MEANS_STORES];
	uint32_t fit_count; /* 0: no combination is sought */
};

/* Counts. GW_INVALID: a graph in one part; GW_NOT_FOUND names what the plan names and the graph does not have. */
gw_status gw_means_count(const struct gw_means_plan *plan, struct gw_means_table *out);

/* --- fit.c --- */

struct gw_means_fitting; /* all combinations, part after part */

gw_status gw_means_fitting_create(const struct gw_means_graph *graph, struct gw_means_fitting **out);
void gw_means_fitting_free(struct gw_means_fitting *fitting); /* NULL is allowed */
/* Adds the combinations of the counted batches with one set of replicas, whose number is that of its share plus one; 0:
 * none. replicas: bytes of their memory, by store. */
gw_status gw_means_fitting_add(struct gw_means_fitting *fitting, struct gw_means_ahead *ahead,
			       const struct gw_means_batches *batches, uint32_t number,
			       struct gw_replica_block *const *near, const double *replicas);
/* The best of each store, all parts added. out: [GW_MEANS_STORES]. */
void gw_means_fitting_best(const struct gw_means_fitting *fitting, const struct gw_means_table *table,
			   struct gw_means_fit *out);

/* --- print.c --- */

gw_status gw_means_print(const struct gw_means_table *table, bool json);

#endif
