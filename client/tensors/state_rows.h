/* The state that optimizers keep with rows. */
#ifndef GW_CLIENT_TENSORS_STATE_ROWS_H
#define GW_CLIENT_TENSORS_STATE_ROWS_H

#include "client/rows/tensor_handles.h"
#include "core/memory/vec.h"

/* Makes all parts create memory for the state of an optimizer, and waits for it without a limit. No other request is
 * blocked meanwhile. reply: memory that several calls may share. GW_EXISTS: the tensor has state of another kind. */
gw_status gw_tensor_state_make(struct gw_client *client, const struct gw_tensor_handle *handle,
			       enum gw_optimizer_kind kind, struct gw_vec *reply);

#endif
