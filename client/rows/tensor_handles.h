/* Handles of mutable tensors, which the client's callers use. gw_tensor_create and gw_tensor_open create them. They
 * exist until the client closes, so a call with a deleted tensor returns an error instead of reading freed memory. */
#ifndef GW_CLIENT_ROWS_TENSOR_HANDLES_H
#define GW_CLIENT_ROWS_TENSOR_HANDLES_H

#include "client/state/client.h"
#include "tensors/plan.h"

/* What the client knows of the optimizer's state of a part's rows. */
enum gw_tensor_state_known { GW_STATE_UNKNOWN, GW_STATE_ASKED_FOR, GW_STATE_THERE };

struct gw_tensor_handle {
	struct gw_client_tensor base; /* must be first: callers hold a pointer to it */
	struct gw_tensor_plan plan;
	struct gw_tensor_layout layout;
	uint64_t *epochs;                   /* [num_parts] */
	enum gw_tensor_state_known *states; /* [num_parts]; only the first engine, which writes, uses it */
	struct gw_place *places;
	void *read_memory; /* memory of base.rows.read */
	/* [num_parts]: number of rows read, by all engines, that the client has reported to the owners. The lock must
	 * be held */
	uint64_t *reported;
	atomic_bool ready, deleted; /* deleted: by this client */
};

struct gw_tensor_handles;

gw_status gw_tensor_handles_create(uint32_t parts, struct gw_tensor_handles **out);
void gw_tensor_handles_destroy(struct gw_tensor_handles *handles); /* NULL is allowed */

/* Returns the handle of the tensor with these epochs and places: an existing one, or a new one. GW_LIMIT: too many
 * handles exist. */
gw_status gw_tensor_handle_make(struct gw_client *client, const struct gw_tensor_plan *plan, const uint64_t *epochs,
				const struct gw_place *places, struct gw_tensor_handle **out);

/* Marks the handles of the tensors that this client deletes: those of this name; name NULL: all of the job. Callers
 * thus get the error at once, and not only when each connection has reported the deletion. Opening a tensor again makes
 * its handle valid again. */
void gw_tensor_handles_delete(struct gw_client *client, const char *job, const char *name);

/* Collects the numbers of rows of a part that this client has read without a request and not yet reported, for up to
 * `max` shards. These rows then count as reported. The search begins after the last shard of the previous call, so that
 * every shard is reported at some time. Returns the number of shards. */
uint32_t gw_tensor_handles_collect_reads(struct gw_client *client, uint32_t part, struct gw_tensor_read *reads,
					 uint32_t max);
/* The report failed, or its success is unknown: the reads will be reported again. */
void gw_tensor_handles_return_reads(struct gw_client *client, uint32_t part, const struct gw_tensor_read *reads,
				    uint32_t count);

/* Whether the pointer, which may be invalid, is a handle of this client. Takes no lock. */
bool gw_tensor_handle_is(const struct gw_client *client, const struct gw_tensor *tensor);

#endif
