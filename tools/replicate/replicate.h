/* graphwire replicate: chooses for each part the rows of other parts that its trainers will want most, and writes them
 * into the part (core/graph/replicas.h).
 *
 *   graph, all parts mapped -> for each part: seeds -> how hot each node is (vip.c, degree.c, counts.c)
 *     -> the hottest that fit the budget (choose.c) -> index and rows (write.c) -> one rename
 *
 * Every step is a function of the graph and the plan: equal values are ordered by type and id, and no sum depends on
 * the number of threads.
 */
#ifndef GW_TOOLS_REPLICATE_H
#define GW_TOOLS_REPLICATE_H

#include <jansson.h>

#include "core/graph/replicas.h"
#include "core/graph/writer.h"
#include "tools/epoch_side.h"

#define GW_REPLICATE_WORDS_MAX  64u
#define GW_REPLICATE_EPOCHS_MAX 1000u

enum gw_hot_by {
	GW_HOT_VIP,    /* the probability that a mini-batch of the part's trainers has the node */
	GW_HOT_DEGREE, /* how many lists name the node, in all parts */
	GW_HOT_EPOCHS, /* how many mini-batches of some epochs have the node: counted with the loader itself */
};

/* What to replicate. */
struct gw_replicate_plan {
	bool set;        /* a budget was given */
	double share;    /* of the rows of each node type; 0: `bytes` counts */
	uint64_t bytes;  /* of the replicas of a part */
	unsigned by;     /* enum gw_hot_by */
	uint32_t epochs; /* of GW_HOT_EPOCHS */
	struct gw_epoch_fanouts fanouts;
	uint32_t override_count; /* each override has as many hops as fanouts */
	struct gw_epoch_override overrides[GW_EPOCH_OVERRIDES_MAX];
	uint32_t batch_size;
	const char *ntype, *mask; /* of the seeds; NULL: the usual ones */
	const char *
		features[GW_REPLICATE_WORDS_MAX]; /* "NAME" or "TYPE:NAME"; none: those of more than one number a row */
	uint32_t num_features;
	uint64_t seed;    /* of GW_HOT_EPOCHS */
	unsigned threads; /* 0: all processors */
};

/* "5%" or "20Gi"; "0" for no replicas. */
gw_status gw_replicate_rows_parse(const char *text, struct gw_replicate_plan *plan);
/* "vip", "degree" or "epochs:N". */
gw_status gw_replicate_by_parse(const char *text, struct gw_replicate_plan *plan);
/* "15,10,5"; of one edge type "SRC:REL:DST=15,10,5". */
gw_status gw_replicate_fanouts_parse(const char *text, struct gw_replicate_plan *plan);
gw_status gw_replicate_fanout_parse(char *text, struct gw_replicate_plan *plan);
/* The name of what the plan goes by, as the graph's JSON records it. */
const char *gw_replicate_by_text(const struct gw_replicate_plan *plan, char text[GW_REPLICA_BY_MAX + 1]);

/* --- graph.c: the graph, and whose trainers draw what. --- */

struct gw_hot_graph {
	const struct gw_graph_meta *meta;
	const char *config;
	struct gw_part **parts; /* [num_parts], mapped */
	uint64_t *first;        /* [ntypes + 1]: nodes of all types have numbers, type by type */
	int32_t *fanouts;       /* [hops][etypes] */
	uint32_t hops, batch_size;
	uint32_t ntype;                /* of the seeds */
	const struct gw_array **masks; /* [num_parts] of the seeds' type; NULL: all nodes are seeds */
	uint64_t *seeds;               /* [num_parts]: how many each part has */
	unsigned threads;
};

/* Opens the graph's parts and finds the seeds. verify: compares digests. GW_NOT_FOUND names what the plan names and the
 * graph does not have. */
gw_status gw_hot_graph_open(const struct gw_replicate_plan *plan, const char *config, const struct gw_graph_meta *meta,
			    bool verify, struct gw_hot_graph *graph);
void gw_hot_graph_close(struct gw_hot_graph *graph); /* a zeroed one is allowed */

/* Whether a row of the seeds' type in a part is a seed. */
static inline bool gw_hot_is_seed(const struct gw_hot_graph *graph, uint32_t part, uint64_t row)
{
	if (!graph->masks)
		return true;
	const struct gw_array *mask = graph->masks[part];
	for (uint64_t i = 0; i < mask->row_bytes; i++) {
		if (mask->data[row * mask->row_bytes + i])
			return true;
	}
	return false;
}

static inline uint64_t gw_hot_nodes(const struct gw_hot_graph *graph)
{
	return graph->first[graph->meta->num_ntypes];
}

/* --- How hot the nodes are for the trainers of a part: hot[gw_hot_nodes], all written. --- */

/* vip.c: the probability that a mini-batch has the node. */
gw_status gw_hot_vip(const struct gw_hot_graph *graph, uint32_t part, double *hot);
/* degree.c: the same for all parts. */
gw_status gw_hot_degree(const struct gw_hot_graph *graph, double *hot);
/* counts.c: how many mini-batches of the epochs have the node. */
struct gw_client;
struct gw_loader;
gw_status gw_hot_counts(const struct gw_hot_graph *graph, struct gw_client *client, uint32_t part, uint32_t epochs,
			uint64_t seed, double *hot);
/* A client that has the lists of the graph, and none of its features. neighbours: as gw_client_options. */
gw_status gw_hot_client_open(const struct gw_hot_graph *graph, const char *neighbours, struct gw_client **out);
/* A loader over the seeds of a part, at its first epoch. fanouts: [hops][etypes]. */
gw_status gw_hot_loader_open(const struct gw_hot_graph *graph, struct gw_client *client, uint32_t part, uint32_t hops,
			     const int32_t *fanouts, uint64_t seed, struct gw_loader **out);
/* By the plan; client: of GW_HOT_EPOCHS. Nodes that the part owns are set to 0. */
gw_status gw_hot_of_part(const struct gw_hot_graph *graph, const struct gw_replicate_plan *plan,
			 struct gw_client *client, uint32_t part, double *hot);
/* Sets the nodes that the part owns to 0. */
void gw_hot_drop_own(const struct gw_hot_graph *graph, uint32_t part, double *hot);

/* --- choose.c --- */

/* Sets a bit for each chosen node: the hottest nodes first, equal ones by type and id, and no node of hotness 0. share:
 * of the nodes of each type; 0: as many nodes as have `bytes`. blocks[t]: of the type t, zeroed, or NULL where its cost
 * is 0. */
gw_status gw_hot_choose(const struct gw_hot_graph *graph, const double *hot, const uint64_t *cost, double share,
			uint64_t bytes, struct gw_replica_block *const *blocks);

/* --- write.c --- */

struct gw_replicate_report {
	uint32_t parts;
	uint64_t *nodes, *bytes; /* [parts]: nodes that have replicas, and bytes of these; without indexes */
	uint64_t index_bytes;    /* of one part; 0: the graph has no replicas */
	double *share;           /* [parts]: the remote bytes that the replicas have, of all, as `by` expects them */
	char by[GW_REPLICA_BY_MAX + 1];
	double seconds;
};

/* Replaces the replicas of a graph on disk: all of them appear, or the graph stays as it is. verify: compares the
 * digests of what is read. Free the report with gw_replicate_report_free, also after a failure. */
gw_status gw_replicate(const struct gw_replicate_plan *plan, const char *config, bool verify,
		       struct gw_replicate_report *report);

/* --- report.c --- */

gw_status gw_replicate_report_begin(const struct gw_replicate_plan *plan, uint32_t parts,
				    struct gw_replicate_report *report);
void gw_replicate_report_free(struct gw_replicate_report *report);
void gw_replicate_report_text(const struct gw_replicate_report *report);
json_t *gw_replicate_report_json(const struct gw_replicate_report *report); /* NULL: no memory */
gw_status gw_replicate_report_print(const struct gw_replicate_report *report, bool json);

/* --- plan.c --- */

/* The bytes of a node's rows in the features that the plan means, by type: cost[ntypes]. GW_NOT_FOUND names a feature
 * that does not exist. */
gw_status gw_replicate_costs(const struct gw_replicate_plan *plan, const struct gw_graph_meta *meta, uint64_t *cost);
/* Whether the plan means an array, whose type has nodes. */
bool gw_replicate_means(const struct gw_replicate_plan *plan, const struct gw_graph_meta *meta,
			const struct gw_array_meta *array);

#endif
