/* The seeds of a loader: lists of node or edge ids, with their times, which batches take seeds from.
 *
 *   lists of the caller -> check -> copies -> [a batch: places in the concatenation of the lists] -> ids and times
 */
#ifndef GW_CLIENT_BATCH_SEED_LISTS_H
#define GW_CLIENT_BATCH_SEED_LISTS_H

#include "client/batch/batch.h"

struct gw_seed_lists {
	struct gw_vec lists; /* struct gw_seeds [count]: they point to the copies; ids NULL: every node or edge */
	uint32_t count;
	uint64_t total;           /* seeds of all lists */
	bool has_times[2];        /* until, from */
	struct gw_vec ids, times; /* the copies, list after list; 8 bytes each */
};

/* Checks that every id exists, and that a list of all nodes or edges has a time for each of them, or none. GW_RANGE,
 * GW_INVALID. */
gw_status gw_seed_lists_check(const struct gw_client *client, const struct gw_sample_spec *spec,
			      const struct gw_seeds *lists, uint32_t count);

/* Copies lists that were checked. */
gw_status gw_seed_lists_take(struct gw_seed_lists *seeds, const struct gw_client *client,
			     const struct gw_sample_spec *spec, const struct gw_seeds *lists, uint32_t count);
void gw_seed_lists_free(struct gw_seed_lists *seeds);

/* Fills the seeds of a batch. places: [n]: where they are in the concatenation of all lists. The seeds come list after
 * list; those of one list keep their order. GW_NO_MEMORY. */
gw_status gw_seed_lists_fill(const struct gw_seed_lists *seeds, struct gw_batch *batch, const uint64_t *places,
			     uint64_t n);

#endif
