/* Lists what a client can fetch and where it is stored, as the servers' catalogs describe it. */
#ifndef GW_CLIENT_ROWS_TENSORS_H
#define GW_CLIENT_ROWS_TENSORS_H

#include "client/state/client.h"
#include "core/numbers/convert.h"

gw_status gw_tensors_build(struct gw_client *client);
void gw_tensors_free(struct gw_client *client);

/* Where an array of all parts is stored, in memory or on disk: [num_parts], a new array. GW_FORMAT names a part without
 * the array. */
gw_status gw_places_find_anywhere(const struct gw_client *client, const char *key, struct gw_place **out);
/* The same in memory alone. GW_UNSUPPORTED names a part that leaves the array on disk. */
gw_status gw_places_find(const struct gw_client *client, const char *key, struct gw_place **out);

bool gw_places_are_on_disk(const struct gw_client *client, const struct gw_place *places); /* of some parts */

/* The array of a key, if all parts have it in one form; else NULL. */
const struct gw_array_meta *gw_array_of_all(const struct gw_graph_meta *meta, const char *key);

/* Whether servers serve the array of a key as mutable rows. */
bool gw_array_is_mutable(const struct gw_client *client, const char *key);

/* Fails with GW_UNSUPPORTED: the edge type is not stored by source. */
gw_status gw_fail_not_by_source(const struct gw_client *client, uint32_t etype);

/* Checks that a tensor belongs to this client, and that its rows are short enough to fetch. GW_INVALID, GW_LIMIT. */
gw_status gw_tensor_check(const struct gw_client *client, const struct gw_tensor *tensor);

/* Makes the conversion of a tensor's rows to a type; 0: they stay as they are, and *out is zeroed. GW_UNSUPPORTED names
 * the tensor. */
gw_status gw_tensor_conversion(const struct gw_tensor *tensor, gw_dtype convert, struct gw_conversion *out);

/* Adds the tensor's name to the text of GW_NOT_FOUND from a server: a server that no longer has the tensor does not
 * know its name. Other statuses are returned unchanged. */
gw_status gw_tensor_name_gone(gw_status status, const char *name);

#endif
