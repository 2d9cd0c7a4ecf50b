/* The features of a graph that an option takes, for the error of a name that it does not take. */
#ifndef GW_TOOLS_PARTITION_CANDIDATES_H
#define GW_TOOLS_PARTITION_CANDIDATES_H

#include <stdbool.h>

#include "core/graph/part.h"

#define GW_CANDIDATES_MAX 256

/* Writes the features that are possible as "TYPE:NAME, ...", whole names only, or "none". */
void gw_candidates_list(const struct gw_part *part,
			bool (*possible)(const struct gw_array_key *key, const struct gw_array_meta *array),
			char text[GW_CANDIDATES_MAX]);

#endif
