/* Draws by time of an epoch: the options, and what the loader gets of them. */
#ifndef GW_TOOLS_EPOCH_TIMES_H
#define GW_TOOLS_EPOCH_TIMES_H

#include <graphwire/graphwire.h>

#include "core/numbers/time_key.h"

/* A number of an option: "5" is a whole number, "5.0" and "1e3" are real ones. */
struct gw_epoch_number {
	bool given;
	struct gw_time number;
};

struct gw_epoch_times_plan {
	const char *time, *end; /* names of features; NULL: none */
	const char *file;       /* .npy with a time for each seed, [seeds], in ascending order of their ids */
	struct gw_epoch_number at, window;
	int pick; /* enum gw_edge_pick */
	bool strict;
};

/* What the loader's options point to. */
struct gw_epoch_times {
	struct gw_edge_rule *rules; /* [edge types] */
	struct gw_seeds list;
	void *until, *from; /* int64_t or double, [seeds] */
};

/* Parses a number; GW_INVALID for another text, and for NaN. */
gw_status gw_epoch_number_parse(const char *text, struct gw_epoch_number *out);

/* Checks that the options go together. GW_INVALID names one that does not. */
gw_status gw_epoch_times_check(const struct gw_epoch_times_plan *plan);

/* Sets the rules and the times of the options' seeds, which become a list. Seeds without times of the plan have those
 * of their own feature. Negatives are drawn from the nodes that exist, by the node feature of the time's name. Without
 * a time in the plan, nothing changes. GW_NOT_FOUND: a feature does not exist. GW_INVALID: times of several units, too
 * many or too few, or negatives whose nodes have no time. */
gw_status gw_epoch_times_set(const struct gw_epoch_times_plan *plan, struct gw_client *client,
			     struct gw_loader_options *options, struct gw_edge_seeds *edges,
			     struct gw_epoch_times *times);
void gw_epoch_times_free(struct gw_epoch_times *times);

#endif
