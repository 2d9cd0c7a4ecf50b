/* Features: which arrays of a graph they are, and those that are served as rows that change (serve --mutable). Such a
 * feature is a kept tensor, named by its key, that begins as a copy of the array; every server makes its part of it
 * before it takes clients, and clients that ask for the feature are given the tensor. */
#ifndef GW_TENSORS_FEATURES_H
#define GW_TENSORS_FEATURES_H

#include "tensors/table.h"

/* What an array's key names, if it is a feature: "node/<type>/<name>" or "edge/<folder>/<name>", *name within it.
 * false: it carries the graph's structure, or is no array of fixed rows. */
bool gw_feature_parse(const struct gw_graph_meta *meta, const char *key, bool *of_edges, uint32_t *type,
		      const char **name);

/* Whether a user's word means the feature of this key: "feat", of any type; "paper/feat"; or the key itself. */
bool gw_feature_is_meant(const char *key, const char *word);

/* The tensor that a feature is, where it changes. GW_INVALID, GW_LIMIT, GW_UNSUPPORTED: it cannot be one. */
gw_status gw_feature_plan(const struct gw_graph_meta *meta, const struct gw_array_meta *array,
			  struct gw_tensor_plan *plan);

/* Makes the table's part of it, and waits until it is filled. */
gw_status gw_feature_load(struct gw_tensor_table *table, const struct gw_array_meta *array);

#endif
