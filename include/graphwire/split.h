/* Splits: which nodes or edges each trainer takes. graphwire.h includes it; its rules hold here too. */
#ifndef GRAPHWIRE_SPLIT_H
#define GRAPHWIRE_SPLIT_H

#include <stdbool.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client;
struct gw_tensor;

/* What is divided: the ids where a mask is set, or a list of ids, or all of a type. Zero-initialize, then set what
 * differs from the default; one of mask, mask_tensor and ids at most. */
struct gw_split_options {
	bool of_edges; /* edges of an edge type, else nodes of a node type */
	uint32_t type;
	const bool *mask; /* [mask_count]: of each id of the type */
	uint64_t mask_count;
	const struct gw_tensor *mask_tensor; /* the same, a feature or tensor of the type: bool, int8 or uint8, one
						element a row; it is read from its owners */
	const int64_t *ids;                  /* in any order; what is there twice is given twice */
	uint64_t id_count;
	uint32_t world, rank;       /* 0, 0: one trainer */
	const uint32_t *rank_parts; /* [world]: the part that each rank is at; NULL: rank * parts / world */
};

/* Ids of one rank. */
struct gw_rank_ids {
	uint64_t count;
	uint64_t own_count; /* the first of them, which the rank's own part has */
	const int64_t *ids; /* [count] */
};

/* Divides ids evenly: no two ranks differ by more than one. Each rank takes what its own part has, shared with the
 * other ranks there; who has too few gets what others have too many of. Every rank gets its answer by the same
 * calculation, without a word to the others. *out is the caller's, to be ended with gw_rank_ids_free, and outlives the
 * client. GW_RANGE names an id, a rank or a part that there is not; GW_INVALID says what is wrong with the options;
 * errors of gw_gather for a mask_tensor. */
GW_API gw_status gw_split_ids(struct gw_client *client, const struct gw_split_options *options,
			      struct gw_rank_ids **out);
GW_API void gw_rank_ids_free(struct gw_rank_ids *split); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
