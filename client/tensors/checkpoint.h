/* What writing and restoring a checkpoint share: original ids, and tensors by their plans. */
#ifndef GW_CLIENT_TENSORS_CHECKPOINT_H
#define GW_CLIENT_TENSORS_CHECKPOINT_H

#include "client/rows/tensor_handles.h"
#include "core/memory/vec.h"
#include "protocol/tensor_call.h"
#include "tensors/checkpoint.h"

#define GW_CHECKPOINT_PIECE 65536u /* rows at a time, at most */

/* Writes a checkpoint, in the calling thread; options: not NULL. Where that works for a ticket (background.h), its
 * being cancelled ends it: GW_CANCELLED. */
gw_status gw_checkpoint_save(struct gw_client *client, const char *folder, const struct gw_checkpoint_options *options);

/* Where rows have numbers of their own beside their ids. */
struct gw_original_ids {
	const struct gw_tensor *tensor; /* int64, or NULL: there are none, or they are text */
	bool text;                      /* of nodes, as strings: their digests stand for them */
	uint32_t ntype;                 /* of these nodes */
};

/* Of the nodes or edges that a plan's rows go with. */
gw_status gw_original_ids_find(struct gw_client *client, const struct gw_tensor_plan *plan,
			       struct gw_original_ids *out);

/* The original ids of rows first to first + n, or their digests; n <= GW_CHECKPOINT_PIECE. Without any: the ids
 * themselves. */
gw_status gw_original_ids_read(struct gw_client *client, const struct gw_original_ids *ids, uint64_t first, uint64_t n,
			       int64_t *out);

/* The name of the type that a plan's rows go with; "" for none. */
const char *gw_plan_type_name(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan);

/* Creates or opens what a plan says, as gw_tensor_create does by a spec. restored: its rows are written next, so that a
 * copy begins with zeros, whatever became of its source. */
gw_status gw_tensor_create_planned(struct gw_client *client, const struct gw_tensor_plan *plan, bool restored,
				   const struct gw_tensor **out);

/* Whether a name is among those wanted; NULL: all are. */
bool gw_checkpoint_wants(const char *const *names, uint32_t name_count, const char *name);

/* GW_NOT_FOUND for a name that none of a list has. */
gw_status gw_checkpoint_check_names(const char *const *names, uint32_t name_count,
				    const char *(*name_at)(const void *list, uint32_t i), const void *list,
				    uint32_t count);

/* What an optimizer has of each row of a part, at the moment; reply: room for it, of several calls. */
gw_status gw_checkpoint_look(struct gw_client *client, const struct gw_tensor_handle *handle, uint32_t part,
			     struct gw_vec *reply, struct gw_tensor_saved *saved);

#endif
