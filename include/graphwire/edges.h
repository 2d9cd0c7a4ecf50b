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

#ifdef __cplusplus
}
#endif
#endif
