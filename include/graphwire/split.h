/* Splits: divides nodes or edges among trainers. graphwire.h includes this header; its rules hold here too. */
#ifndef GRAPHWIRE_SPLIT_H
#define GRAPHWIRE_SPLIT_H

#include <stdbool.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client;
struct gw_tensor;

/* The ids to divide: those where a mask is set, or a list of ids, or all ids of a type. Zero-initialize, then set the
 * fields that differ from the default. Set at most one of mask, mask_tensor and ids. */
struct gw_split_options {
	bool of_edges; /* edges of an edge type, else nodes of a node type */
	uint32_t type;
	const bool *mask; /* [mask_count]: one for each id of the type */
	uint64_t mask_count;
	const struct gw_tensor *mask_tensor; /* the mask as a feature or tensor of the type: bool, int8 or uint8, one
						element a row, 0 or 1; the client reads it from the parts */
	const int64_t *ids;                  /* in any order; each repetition of an id counts as one more id */
	uint64_t id_count;
	uint32_t world, rank;       /* 0, 0: one trainer */
	const uint32_t *rank_parts; /* [world]: each rank's own part; NULL: rank * parts / world */
};

/* Ids of one rank. */
struct gw_rank_ids {
	uint64_t count;
	uint64_t own_count; /* the first own_count of ids are in the rank's own part */
	const int64_t *ids; /* [count] */
};

/* Divides ids evenly: the counts of two ranks differ by at most one. The ranks of a part share the ids of that part. A
 * rank with too few ids receives surplus ids of other parts. Every rank computes the same division, without
 * communication. The caller owns *out and frees it with gw_rank_ids_free; *out outlives the client. GW_RANGE names an
 * id, a rank or a part that does not exist; GW_INVALID names the fault in the options; a mask_tensor adds the errors of
 * gw_gather. */
GW_API gw_status gw_split_ids(struct gw_client *client, const struct gw_split_options *options,
			      struct gw_rank_ids **out);
GW_API void gw_rank_ids_free(struct gw_rank_ids *split); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
