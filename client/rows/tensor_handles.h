/* Tensors that change, as a client's callers hold them: made by gw_tensor_create and gw_tensor_open, and kept until the
 * client closes, so that one that was deleted is an error and not a wild pointer. */
#ifndef GW_CLIENT_ROWS_TENSOR_HANDLES_H
#define GW_CLIENT_ROWS_TENSOR_HANDLES_H

#include "client/state/client.h"
#include "tensors/plan.h"

/* What is known of an optimizer's state beside a part's rows. */
enum gw_tensor_state_known { GW_STATE_UNKNOWN, GW_STATE_ASKED_FOR, GW_STATE_THERE };

struct gw_tensor_handle {
	struct gw_client_tensor base; /* first: what callers hold */
	struct gw_tensor_plan plan;
	struct gw_tensor_layout layout;
	uint64_t *epochs;                   /* [num_parts] */
	enum gw_tensor_state_known *states; /* [num_parts]: the first engine's, which writes */
	struct gw_place *places;
	void *read_memory;          /* of base.rows.read */
	uint64_t *told;             /* [num_parts]: rows read, all engines', that owners were told. With the lock */
	atomic_bool ready, deleted; /* deleted: by this client */
};

struct gw_tensor_handles;

gw_status gw_tensor_handles_create(uint32_t parts, struct gw_tensor_handles **out);
void gw_tensor_handles_destroy(struct gw_tensor_handles *handles); /* NULL is allowed */

/* The handle of a tensor with these births, and where its rows can be read: the one that is there, or a new one.
 * GW_LIMIT: too many were made. */
gw_status gw_tensor_handle_make(struct gw_client *client, const struct gw_tensor_plan *plan, const uint64_t *epochs,
				const struct gw_place *places, struct gw_tensor_handle **out);

/* This client deletes the tensors of this name, or with name NULL all of the job: whoever uses them is told at once,
 * not when each of its connections has heard of it. Opened again, they are there again. */
void gw_tensor_handles_delete(struct gw_client *client, const char *job, const char *name);

/* What this client has read of a part's rows by itself, and not told: up to `max` shards, which count as told. It
 * begins behind the last one that it took, so that each has its turn. Returns how many. */
uint32_t gw_tensor_handles_collect_reads(struct gw_client *client, uint32_t part, struct gw_tensor_read *reads,
					 uint32_t max);
/* They could not be told, or nobody knows whether they were: they are told again. */
void gw_tensor_handles_return_reads(struct gw_client *client, uint32_t part, const struct gw_tensor_read *reads,
				    uint32_t count);

/* Whether the pointer, which may come from anywhere, is a handle of this client; no lock is taken. */
bool gw_tensor_handle_is(const struct gw_client *client, const struct gw_tensor *tensor);

#endif
