/* Functions and state that the handlers of the calls on tensors share. */
#ifndef GW_TENSORS_SERVICE_PRIVATE_H
#define GW_TENSORS_SERVICE_PRIVATE_H

#include "tensors/service.h"

/* State of a call on rows, from its first slice to its last: the reply owns it. */
struct gw_rows_work {
	struct gw_tensor_table *table; /* NULL until the shard is found and referenced */
	struct gw_shard *shard;
	void *copy; /* aligned copy of the call's numbers and the data after them; NULL: they were aligned */
	struct gw_row_slice slice;
	uint64_t found;        /* COUNT */
	uint64_t state_floats; /* SAVE: per row */
	bool begun;            /* the reply has its length */
	bool asked;            /* PUSH without rows: it has requested the state once and waited */
	bool pushes;           /* the scratch belongs to the table and must be released */
	struct gw_row_push_scratch scratch;
};

/* service_rows.c, which service.c and service_save.c use. */

/* Sets the cost that this slice may have. In the first slice, also finds the shard. */
gw_status gw_rows_work_begin(struct gw_tensor_table *table, struct gw_reply *reply, uint64_t epoch,
			     struct gw_rows_work **out);
/* The numbers of a call, aligned: those in the call itself, or a copy. NULL: memory ran out. */
const uint8_t *gw_rows_work_numbers(struct gw_rows_work *work, const uint8_t *bytes, size_t byte_count);
/* Returns what the handler must return after a slice that ended with this status. */
gw_status gw_rows_work_yield(const struct gw_rows_work *work, struct gw_reply *reply, gw_status status);

gw_status gw_tensor_reply_number(struct gw_reply *reply, uint64_t number);

gw_status gw_tensor_answer_pull(void *context, const struct gw_call *call, struct gw_reply *reply);
gw_status gw_tensor_answer_update(void *context, const struct gw_call *call, struct gw_reply *reply);
gw_status gw_tensor_answer_push(void *context, const struct gw_call *call, struct gw_reply *reply);
gw_status gw_tensor_answer_count(void *context, const struct gw_call *call, struct gw_reply *reply);
/* service_save.c */
gw_status gw_tensor_answer_save(void *context, const struct gw_call *call, struct gw_reply *reply);
gw_status gw_tensor_answer_restore(void *context, const struct gw_call *call, struct gw_reply *reply);

#endif
