/* Functions that writing and restoring a checkpoint share: original ids, and tensors by their plans. */
#ifndef GW_CLIENT_TENSORS_CHECKPOINT_H
#define GW_CLIENT_TENSORS_CHECKPOINT_H

#include "client/rows/tensor_handles.h"
#include "core/memory/vec.h"
#include "protocol/tensor_call.h"
#include "tensors/checkpoint.h"

#define GW_CHECKPOINT_PIECE 65536u /* rows at a time, at most */

/* Writes a checkpoint in the calling thread. options: not NULL. If the thread works for a ticket (background.h),
 * cancelling the ticket ends the call with GW_CANCELLED. */
gw_status gw_checkpoint_save(struct gw_client *client, const char *folder, const struct gw_checkpoint_options *options);

/* How rows are identified independently of the partition. */
struct gw_original_ids {
	const struct gw_tensor *tensor; /* int64 tensor; NULL: there are no original ids, or they are text */
	bool text;                      /* original ids of nodes are strings; their digests are used */
	uint32_t ntype;                 /* type of these nodes */
};

/* Finds the original ids of the nodes or edges of a plan's rows. */
gw_status gw_original_ids_find(struct gw_client *client, const struct gw_tensor_plan *plan,
			       struct gw_original_ids *out);

/* Reads the original ids of rows first to first + n - 1, or their digests; n <= GW_CHECKPOINT_PIECE. Without original
 * ids it returns the ids themselves. */
gw_status gw_original_ids_read(struct gw_client *client, const struct gw_original_ids *ids, uint64_t first, uint64_t n,
			       int64_t *out);

/* The name of the type of a plan's rows; "" if they have no type. */
const char *gw_plan_type_name(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan);

/* Creates or opens the tensor of a plan, as gw_tensor_create does for a spec. restored: the caller writes all rows
 * next. A tensor that is a copy then begins with zeros, whether its source exists or not. */
gw_status gw_tensor_create_planned(struct gw_client *client, const struct gw_tensor_plan *plan, bool restored,
				   const struct gw_tensor **out);

/* Whether a name is among the wanted names; NULL: all are wanted. */
bool gw_checkpoint_wants(const char *const *names, uint32_t name_count, const char *name);

/* Fails with GW_NOT_FOUND for a name that does not appear in the list. */
gw_status gw_checkpoint_check_names(const char *const *names, uint32_t name_count,
				    const char *(*name_at)(const void *list, uint32_t i), const void *list,
				    uint32_t count);

/* Requests which optimizer's state each row of a part has at the moment. reply: memory that several calls may share. */
gw_status gw_checkpoint_look(struct gw_client *client, const struct gw_tensor_handle *handle, uint32_t part,
			     struct gw_vec *reply, struct gw_tensor_saved *saved);

#endif
