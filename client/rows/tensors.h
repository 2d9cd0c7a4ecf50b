/* What a client can fetch, and where it lies, from the servers' catalogs. */
#ifndef GW_CLIENT_ROWS_TENSORS_H
#define GW_CLIENT_ROWS_TENSORS_H

#include "client/state/client.h"

gw_status gw_tensors_build(struct gw_client *client);
void gw_tensors_free(struct gw_client *client);

/* Where an array lies in all parts: [num_parts], a new array. GW_FORMAT names a part that does not have it. */
gw_status gw_places_find(const struct gw_client *client, const char *key, struct gw_place **out);

/* Whether a tensor is one of this client's, and its rows short enough to fetch. GW_INVALID, GW_LIMIT. */
gw_status gw_tensor_check(const struct gw_client *client, const struct gw_tensor *tensor);

/* What became of a call on a tensor's rows: a server that has them no more knows them by a number alone, so that its
 * GW_NOT_FOUND gets the name here. */
gw_status gw_tensor_name_gone(gw_status status, const char *name);

#endif
