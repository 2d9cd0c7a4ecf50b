/* Features: which arrays of a graph are features, and which of them are served as mutable rows (serve --mutable). A
 * mutable feature is a kept tensor that has the feature's key as its name and begins as a copy of the array. Every
 * server creates its part of the tensor before it accepts clients. Clients that open the feature get the tensor. */
#ifndef GW_TENSORS_FEATURES_H
#define GW_TENSORS_FEATURES_H

#include "tensors/table.h"

/* Parses an array's key, "node/<type>/<name>" or "edge/<folder>/<name>"; *name points into the key. False: the array
 * describes the graph's structure, or does not consist of fixed rows. */
bool gw_feature_parse(const struct gw_graph_meta *meta, const char *key, bool *of_edges, uint32_t *type,
		      const char **name);

/* The same for arrays with the times of the edges' sources, "edge/<folder>/<name>.source" (docs/FORMAT.md, Times). */
bool gw_feature_parse_source(const struct gw_graph_meta *meta, const char *key, bool *of_edges, uint32_t *type,
			     const char **name);

/* Whether a user's word names the feature of this key: "feat", of any type; "paper/feat"; "author:writes:paper/feat";
 * or the key itself. */
bool gw_feature_is_meant(const struct gw_graph_meta *meta, const char *key, const char *word);

/* The plan of the tensor for a mutable feature. GW_INVALID, GW_LIMIT, GW_UNSUPPORTED: the feature cannot be mutable. */
gw_status gw_feature_plan(const struct gw_graph_meta *meta, const struct gw_array_meta *array,
			  struct gw_tensor_plan *plan);

/* Creates the table's part of the tensor, and waits until it is filled. */
gw_status gw_feature_load(struct gw_tensor_table *table, const struct gw_array_meta *array);

#endif
