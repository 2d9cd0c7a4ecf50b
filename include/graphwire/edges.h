/* Edges: looked up by id or by their ends, and listed around nodes. graphwire.h includes it; its rules hold here too.
 *
 *   edge ids -> ends           gw_find_edges
 *   pairs    -> edge ids       gw_edge_ids, gw_has_edges
 *   nodes    -> their edges    gw_degrees, gw_out_degrees, gw_neighbours
 *
 * Each blocks; its _start form runs in the background, as gw_gather_start does: inputs and outputs are the library's
 * until gw_wait or gw_cancel has ended the ticket. n = 0 is allowed, ids come in any order, duplicates too. Errors as
 * gw_gather: GW_RANGE names the first id that is none; GW_LIMIT: 2^32 questions or more, or as many edges.
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

/* Which edges of a node: those that end there, or those that start there. */
enum gw_direction { GW_IN, GW_OUT };

/* Edges, as answers to questions 0 to question_count - 1: those of question i are [offsets[i], offsets[i + 1]). */
struct gw_edge_list {
	uint64_t question_count, edge_count;
	const uint64_t *offsets;             /* [question_count + 1]: from 0, never descending */
	const int64_t *src, *dst, *edge_ids; /* [edge_count]: global ids */
};

/* Ends a list; NULL is allowed. Lists are the caller's and outlive the client. */
GW_API void gw_edge_list_free(struct gw_edge_list *list);

/* The ends of edges: edge_ids[i] goes from src[i] to dst[i]. */
GW_API gw_status gw_find_edges(struct gw_client *client, uint32_t etype, const int64_t *edge_ids, uint64_t n,
			       int64_t *src, int64_t *dst);
GW_API gw_status gw_find_edges_start(struct gw_client *client, uint32_t etype, const int64_t *edge_ids, uint64_t n,
				     int64_t *src, int64_t *dst, struct gw_ticket **ticket);

/* All edges from src[i] to dst[i], parallel ones too, by ascending id; none where there is none. */
GW_API gw_status gw_edge_ids(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
			     uint64_t n, struct gw_edge_list **out);
/* *out is set when gw_wait returns GW_OK, and must be there until then. */
GW_API gw_status gw_edge_ids_start(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
				   uint64_t n, struct gw_edge_list **out, struct gw_ticket **ticket);

/* Whether there is an edge from src[i] to dst[i]. */
GW_API gw_status gw_has_edges(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
			      uint64_t n, bool *out);
GW_API gw_status gw_has_edges_start(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
				    uint64_t n, bool *out, struct gw_ticket **ticket);

/* In-degrees of nodes of the destination type of an edge type, out-degrees of nodes of its source type: out[i] for
 * ids[i]. GW_UNSUPPORTED: parts store offsets in different widths; out-degrees: the edge type is not stored by source
 * ("graphwire import --transpose"). */
GW_API gw_status gw_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out);
GW_API gw_status gw_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n,
				  int64_t *out, struct gw_ticket **ticket);
GW_API gw_status gw_out_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out);
GW_API gw_status gw_out_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n,
				      int64_t *out, struct gw_ticket **ticket);

/* One hop. */
struct gw_neighbours_spec {
	uint32_t etype;
	enum gw_direction direction; /* GW_OUT: of edge types that are stored by source; else GW_UNSUPPORTED */
	int32_t fanout;              /* a count up to 2^20, or GW_ALL_NEIGHBOURS */
	bool replace;                /* sample with replacement */
};

/* One hop as a list of edges: those that end at ids[i], or start there, in the order that they are stored in. With a
 * fanout: a sample of them, for in-edges the one that hop 0 of gw_sample takes from this node with the same seed and
 * stream. */
GW_API gw_status gw_neighbours(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed,
			       uint64_t stream, const int64_t *ids, uint64_t n, struct gw_edge_list **out);
/* *out as for gw_edge_ids_start; the spec is copied. */
GW_API gw_status gw_neighbours_start(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed,
				     uint64_t stream, const int64_t *ids, uint64_t n, struct gw_edge_list **out,
				     struct gw_ticket **ticket);

/* --- Seeds. --- */

/* Nodes of one type, or edges of one type. */
struct gw_seeds {
	uint32_t type; /* a node type, or an edge type */
	uint64_t count;
	const int64_t *ids;
};

/* Which end of an edge is drawn again to make a negative of it. */
enum gw_negatives { GW_NEGATIVES_NONE, GW_NEGATIVES_DST, GW_NEGATIVES_SRC };

/* What is not sampled around a batch of edges, so that it does not tell what is to be predicted: added up. Dropped
 * after the draw: a fanout may shrink. */
enum gw_exclude_what {
	GW_EXCLUDE_EDGES = 1,   /* the batch's own edges */
	GW_EXCLUDE_ENDS = 2,    /* all edges of their type between the same ends, parallel ones too */
	GW_EXCLUDE_REVERSE = 4, /* edges of the type that the graph names as their reverse, between their ends turned
				   round; GW_UNSUPPORTED where it names none */
	GW_EXCLUDE_REVERSE_TYPE = 8, /* the same, of reverse_etype */
	GW_EXCLUDE_REVERSE_IDS = 16, /* of reverse_etype, the edges that reverse_ids names for them. Each must lead
				       from its edge's destination to its source: a batch with one that does not
				       fails with GW_INVALID (and GW_RANGE: one names no edge), and names both
				       edges and their ends */
};

/* Seeds that are edges of one type. Zero-initialize, then set what differs from the default. */
struct gw_edge_seeds {
	uint32_t etype;
	/* Negatives: so many for each edge, each with one end drawn again, uniform over its type or over negative_ids.
	 * Negative j of the edge in slot i of the batch's edges of this type depends on the batch's seed and stream, i
	 * and j alone. At most 2^24 in a batch. */
	enum gw_negatives negatives;
	uint32_t negatives_each;
	const int64_t *negative_ids; /* NULL: every node of the type */
	uint64_t negative_id_count;
	bool no_true_edges; /* what is an edge of the type is drawn again, up to 16 times */
	uint32_t exclude;   /* enum gw_exclude_what */
	uint32_t reverse_etype;
	const int64_t *reverse_ids; /* [edges of etype]; the caller's, as long as the ticket or the loader */
	uint64_t reverse_id_count;
};

/* What a mini-batch holds of the edges of one type that are its seeds: edge i goes from nodes[source type][src_rows[i]]
 * to nodes[destination type][dst_rows[i]]. */
struct gw_edge_batch {
	uint32_t etype;
	enum gw_negatives negatives;
	uint32_t negatives_each;
	uint64_t count;                      /* edges of this type: seeds of the batch */
	const uint32_t *src_rows, *dst_rows; /* [count] */
	const uint32_t *negative_rows;       /* [count * negatives_each]: those of edge i from i * negatives_each on:
						rows of the destination type, or of the source type */
	uint64_t true_edges;                 /* negatives that are edges all the same, with no_true_edges */
	const int64_t *ids;                  /* [count]: the edges themselves, a part of the batch's seeds */
};

#ifdef __cplusplus
}
#endif
#endif
