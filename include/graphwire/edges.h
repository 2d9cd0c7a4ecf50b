/* Edges: finds edges by id or by their ends, and lists the edges of nodes. graphwire.h includes this header; its rules
 * hold here too.
 *
 *   edge ids -> ends           gw_find_edges
 *   pairs    -> edge ids       gw_edge_ids, gw_has_edges
 *   nodes    -> their edges    gw_degrees, gw_out_degrees, gw_neighbours
 *   nodes    -> the edges among them    gw_subgraph
 *
 * Each call blocks. Its _start form runs in the background, as gw_gather_start does: inputs and outputs belong to the
 * library until gw_wait or gw_cancel has ended the ticket. Ids may be in any order and may repeat; n = 0 is allowed.
 * Errors are those of gw_gather. GW_RANGE names the first id that does not exist. GW_LIMIT: 2^32 or more questions (ids
 * or pairs), or 2^32 or more edges in the answer.
 */
#ifndef GRAPHWIRE_EDGES_H
#define GRAPHWIRE_EDGES_H

#include <stdbool.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client;
struct gw_ticket;

/* The edges of a node: GW_IN selects those that end at it, GW_OUT those that start at it. */
enum gw_direction { GW_IN, GW_OUT };

/* Edges in answer to questions 0 to question_count - 1. Question i's edges are [offsets[i], offsets[i + 1]). */
struct gw_edge_list {
	uint64_t question_count, edge_count;
	const uint64_t *offsets;             /* [question_count + 1]: the first is 0; never descending */
	const int64_t *src, *dst, *edge_ids; /* [edge_count]: global ids; of gw_subgraph, src and dst are rows */
};

/* Frees a list; NULL is allowed. The caller owns lists, which outlive the client. */
GW_API void gw_edge_list_free(struct gw_edge_list *list);

/* Finds the ends of edges: edge_ids[i] goes from src[i] to dst[i]. */
GW_API gw_status gw_find_edges(struct gw_client *client, uint32_t etype, const int64_t *edge_ids, uint64_t n,
			       int64_t *src, int64_t *dst);
GW_API gw_status gw_find_edges_start(struct gw_client *client, uint32_t etype, const int64_t *edge_ids, uint64_t n,
				     int64_t *src, int64_t *dst, struct gw_ticket **ticket);

/* Finds all edges from src[i] to dst[i], including parallel ones, by ascending id. Answer i is empty if no such edge
 * exists. */
GW_API gw_status gw_edge_ids(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
			     uint64_t n, struct gw_edge_list **out);
/* Starts gw_edge_ids in the background. The library writes *out when gw_wait returns GW_OK, so out must stay valid
 * until then. */
GW_API gw_status gw_edge_ids_start(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
				   uint64_t n, struct gw_edge_list **out, struct gw_ticket **ticket);

/* Whether an edge from src[i] to dst[i] exists. */
GW_API gw_status gw_has_edges(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
			      uint64_t n, bool *out);
GW_API gw_status gw_has_edges_start(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
				    uint64_t n, bool *out, struct gw_ticket **ticket);

/* In-degrees of nodes of the edge type's destination type, and out-degrees of nodes of its source type: out[i] for
 * ids[i]. GW_UNSUPPORTED: the parts store offsets in different widths; or, for out-degrees, the edge type is not stored
 * by source ("graphwire import --transpose"). */
GW_API gw_status gw_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out);
GW_API gw_status gw_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n,
				  int64_t *out, struct gw_ticket **ticket);
GW_API gw_status gw_out_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out);
GW_API gw_status gw_out_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n,
				      int64_t *out, struct gw_ticket **ticket);

/* Which of the edges that a seed may see a draw by time takes. */
enum gw_edge_pick {
	GW_PICK_UNIFORM, /* each is equally likely */
	GW_PICK_LAST,    /* those with the latest times; replacement does not matter */
};

/* How the edges of one type are drawn: names of features of the edge type, or NULL. All NULL: every edge is equally
 * likely.
 *
 * weight: a number for each edge, at least 0. An edge is drawn with a probability in proportion to its weight; an edge
 * of weight 0 is never drawn. Without replacement the draws follow each other (successive sampling). A fanout of -1
 * gives all edges of positive weight. `graphwire partition --weight NAME` makes a table that draws in constant time;
 * without it, a draw reads the weights of the whole list.
 *
 * time: an int64, int32, float64 or float32 for each edge; NAME.source is the node feature NAME of the edge's source,
 * which parts store for each edge. Times have no unit here: they are compared as numbers, exactly, with the time of the
 * seed for which a node is expanded. An edge is eligible if its time is not later than the seed's (strict: if it is
 * earlier), and not before the seed's window. At every hop it is the time of the seed that holds. NaN is never
 * eligible.
 *
 * end: a time, of whole numbers or of real ones as `time` is, from which the edge is not valid any more: it is eligible
 * if the seed's time is before its end. NaN is an end that never comes.
 *
 * pick: GW_PICK_UNIFORM draws from the eligible edges as a draw without a rule does from all edges. GW_PICK_LAST takes
 * those with the latest times, as many as the fanout; of equal times those that are later in the list, whose order
 * docs/FORMAT.md has. A fanout of -1 gives all eligible edges.
 *
 * GW_INVALID: a pick or an end without a time. GW_UNSUPPORTED: a time together with a weight.
 *
 * mask: for kinds of sampling that do not exist yet; GW_UNSUPPORTED. */
struct gw_edge_rule {
	const char *weight, *mask, *time, *end;
	enum gw_edge_pick pick;
};

/* One hop. */
struct gw_neighbours_spec {
	uint32_t etype;
	enum gw_direction direction; /* GW_OUT needs an edge type that is stored by source; otherwise GW_UNSUPPORTED */
	int32_t fanout;              /* a count up to 2^20, or GW_ALL_NEIGHBOURS */
	bool replace;                /* sample with replacement */
	struct gw_edge_rule rule;    /* only with GW_IN: in-edges have columns in the order of the lists */
	/* With a rule that has a time: the times of the ids, [n], as in gw_seeds. Every id is then a group of its own.
	 * The caller keeps them until the ticket ends. */
	const void *times, *times_from;
	bool real_times, strict_times; /* as in gw_sample_spec */
};

/* Lists the edges of one hop: question i has the edges that end (GW_IN) or start (GW_OUT) at ids[i], in their stored
 * order. With a fanout, it has a sample of these edges. A sample of in-edges equals hop 0 of gw_sample for the same
 * node, seed and stream. */
GW_API gw_status gw_neighbours(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed,
			       uint64_t stream, const int64_t *ids, uint64_t n, struct gw_edge_list **out);
/* Starts gw_neighbours in the background. out must stay valid as for gw_edge_ids_start. The call copies the spec, but
 * not its times. */
GW_API gw_status gw_neighbours_start(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed,
				     uint64_t stream, const int64_t *ids, uint64_t n, struct gw_edge_list **out,
				     struct gw_ticket **ticket);

/* Nodes of one type, in groups or not. */
struct gw_subgraph_nodes {
	uint64_t count;
	const int64_t *ids;
	const uint32_t *groups; /* [count]: any numbers; NULL: all nodes are in one group */
};

struct gw_held_out;

/* Which edges gw_subgraph finds. Zero-initialize, then set the fields that you use. */
struct gw_subgraph_spec {
	uint32_t etype;
	struct gw_subgraph_nodes src, dst; /* both with groups, or none. They may be the same list */
	struct gw_held_out *held_out;      /* edges that are left out; NULL: none */
};

/* Finds all edges of a type from nodes of one list to nodes of another: the induced subgraph. With groups, it finds
 * only edges between nodes of the same group.
 *
 * Question i is the node dst.ids[i], and its edges are in their stored order; src and dst of the list are rows of
 * spec->src and spec->dst, not ids. Parallel edges and loops are all found, edges of weight 0 too. If an id repeats in
 * a group, each of its rows in dst has its edges, and the first of its rows in src is the source.
 *
 * The client asks the owners of the destinations. An owner gets 4 bytes for each of its destinations, and 4 for each
 * source of their groups, or 8 if the type has 2^32 nodes. Its answer has 16 bytes for each edge at most, usually 4 to
 * 8, and 8 bytes more for each 2^18 destinations or sources. Lists in memory are walked at once. GW_INVALID: one of the
 * lists alone has groups, or held_out is of another graph. GW_LIMIT: 2^32 or more nodes in a list, or edges in the
 * answer. */
GW_API gw_status gw_subgraph(struct gw_client *client, const struct gw_subgraph_spec *spec, struct gw_edge_list **out);
/* Starts gw_subgraph in the background. out must stay valid as for gw_edge_ids_start. The call copies the spec, but not
 * its lists. */
GW_API gw_status gw_subgraph_start(struct gw_client *client, const struct gw_subgraph_spec *spec,
				   struct gw_edge_list **out, struct gw_ticket **ticket);

/* --- Seeds. --- */

/* Nodes of one type, or edges of one type. Zero-initialize, then set the fields that you use. */
struct gw_seeds {
	uint32_t type; /* a node type, or an edge type */
	uint64_t count;
	const int64_t *ids;
	/* For sampling by time, [count]: a seed sees the edges up to its time, and if times_from is set, only those
	 * from that time on. Both ends belong to the window. The elements are int64_t; double, if the spec has
	 * real_times. The times of an edge are those of both its ends and of its negatives. NULL: none. */
	const void *times, *times_from;
};

/* The end of an edge that is drawn again to make a negative. */
enum gw_negatives { GW_NEGATIVES_NONE, GW_NEGATIVES_DST, GW_NEGATIVES_SRC };

/* Edges to exclude from sampling, so that the batch does not leak its targets; bit flags. Exclusion follows the draw,
 * so a node may get fewer edges than its fanout. */
enum gw_exclude_what {
	GW_EXCLUDE_EDGES = 1,   /* the batch's own edges */
	GW_EXCLUDE_ENDS = 2,    /* all edges of the seeds' type with the ends of a seed, including parallel edges */
	GW_EXCLUDE_REVERSE = 4, /* edges of the reverse type that the graph names, with the ends swapped; GW_UNSUPPORTED
				   if it names none */
	GW_EXCLUDE_REVERSE_TYPE = 8, /* the same for edges of reverse_etype */
	/* The edges of reverse_etype that reverse_ids names for the seeds. Each must go from its seed's destination to
	 * its seed's source. Otherwise the batch fails with GW_INVALID (or GW_RANGE, if the reverse edge does not
	 * exist), and the error names both edges and their ends. */
	GW_EXCLUDE_REVERSE_IDS = 16,
};

/* Edges of one type to hold out, by ids, or by ends: then all edges with these ends, including parallel ones. A pair
 * need not be an edge. Zero-initialize, then set ids, or src and dst. */
struct gw_held_out_list {
	uint32_t etype;
	uint64_t count;
	const int64_t *ids;
	const int64_t *src, *dst;
};

/* Edges that sampling keeps out, whatever its seeds: validation and test edges. gw_sample_spec names the object, which
 * loaders and threads may share. Exclusion follows the draw, so a node may get fewer edges than its fanout. To draw as
 * if these edges did not exist, make a graph without them. */
struct gw_held_out;

/* Makes the object. It copies the lists, and takes 48 to 100 bytes for each edge. It belongs to the graph, and may
 * outlive the client. GW_RANGE names an id that does not exist; GW_INVALID: a list has ids and ends, or neither. */
GW_API gw_status gw_held_out_open(struct gw_client *client, const struct gw_held_out_list *lists, uint32_t count,
				  struct gw_held_out **out);
/* Ends the caller's use of the object; NULL is allowed. Loaders and tickets keep it as long as they need it. */
GW_API void gw_held_out_close(struct gw_held_out *held_out);

/* Seeds that are edges of one type. Zero-initialize, then set the fields that differ from the default. */
struct gw_edge_seeds {
	uint32_t etype;
	/* Negatives: negatives_each copies of each edge, with one end drawn again, uniformly from all nodes of the
	 * end's type or from negative_ids. A negative depends only on the batch's seed and stream, the edge's slot
	 * among the batch's edges of this type, and the negative's number. A batch may have at most 2^24 negatives. */
	enum gw_negatives negatives;
	uint32_t negatives_each;
	const int64_t *negative_ids; /* NULL: every node of the type */
	uint64_t negative_id_count;
	bool no_true_edges; /* if a negative is an edge of the type, draw it again: up to 16 draws in all */
	uint32_t exclude;   /* enum gw_exclude_what */
	uint32_t reverse_etype;
	const int64_t *reverse_ids; /* [edges of etype]; the caller keeps it until the ticket or the loader ends */
	uint64_t reverse_id_count;
	/* Seeds by their ends: the batch's ids are then places in src and dst, 0 to pair_count - 1, and the seed at
	 * place i goes from src[i] to dst[i]. A pair need not be an edge, so it has no features, and only exclusions by
	 * ends are possible: GW_EXCLUDE_ENDS, GW_EXCLUDE_REVERSE and GW_EXCLUDE_REVERSE_TYPE. NULL: the ids are edge
	 * ids. The caller keeps both lists until the ticket or the loader ends. */
	const int64_t *src, *dst;
	uint64_t pair_count;
	/* Negatives among the nodes that exist at the edge's time T, which is in gw_seeds.times: each node of the end's
	 * type with time <= T < end is equally likely. strict_times and times_from do not change that. Seeds may have
	 * times for their negatives alone, without a rule that has a time. exist_time and exist_end name node features
	 * of the end's type: int64, int32, float64 or float32. exist_end NULL, or an end that is NaN: no end.
	 * exist_time NULL: all nodes exist at every time. The names need not outlive the call.
	 * GW_INVALID: the seeds have no times or no negatives, or exist_end without exist_time. GW_NOT_FOUND: the type
	 * has no such feature (edges have times, but these do not say when their nodes exist); of a batch: no node
	 * exists at the time of a seed. GW_UNSUPPORTED: the graph has no index of exist_time (`graphwire partition
	 * --time NAME` makes it); negative_ids are given too. GW_PROTOCOL: a server's index is not in order. */
	const char *exist_time, *exist_end;
};

/* A mini-batch's seeds that are edges of one type. Edge i goes from nodes[source type][src_rows[i]] to
 * nodes[destination type][dst_rows[i]]. */
struct gw_edge_batch {
	uint32_t etype;
	enum gw_negatives negatives;
	uint32_t negatives_each;
	uint64_t count;                      /* edges of this type among the batch's seeds */
	const uint32_t *src_rows, *dst_rows; /* [count] */
	const uint32_t *negative_rows; /* [count * negatives_each]: those of edge i begin at i * negatives_each. Rows of
					  nodes of the destination type; with GW_NEGATIVES_SRC, of the source type */
	uint64_t true_edges;           /* with no_true_edges: negatives that are edges nevertheless */
	const int64_t *ids;            /* [count]: edge ids, or places of pairs; a slice of the batch's seeds */
};

#ifdef __cplusplus
}
#endif
#endif
