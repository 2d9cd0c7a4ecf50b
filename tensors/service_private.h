/* What the handlers of the calls on tensors share. */
#ifndef GW_TENSORS_SERVICE_PRIVATE_H
#define GW_TENSORS_SERVICE_PRIVATE_H

#include "tensors/service.h"

/* A call on rows, from its first turn to its last: the reply's work. */
struct gw_rows_work {
	struct gw_tensor_table *table; /* NULL until the shard is found, and held */
	struct gw_shard *shard;
	void *copy; /* of the call's numbers and what follows them, where they were not aligned */
	struct gw_row_slice turn;
	uint64_t found;        /* COUNT */
	uint64_t state_floats; /* SAVE: of a row */
	bool begun;            /* the reply has its length */
	bool asked;            /* PUSH of no rows: once before */
	bool pushes;           /* the scratch is the table's, to be given back */
	struct gw_row_push_scratch scratch;
};

/* service_rows.c, which service.c and service_save.c use. */

/* Finds the shard, in the first turn, and sets what this turn may cost. */
gw_status gw_rows_work_begin(struct gw_tensor_table *table, struct gw_reply *reply, uint64_t epoch,
			     struct gw_rows_work **out);
/* Numbers of a call, aligned: those of the call itself, or a copy. NULL: no memory. */
const uint8_t *gw_rows_work_numbers(struct gw_rows_work *work, const uint8_t *bytes, size_t byte_count);
/* What the handler returns after a turn that ended so. */
gw_status gw_rows_work_turned(const struct gw_rows_work *work, struct gw_reply *reply, gw_status status);

gw_status gw_tensor_reply_number(struct gw_reply *reply, uint64_t number);

gw_status gw_tensor_answer_pull(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);
gw_status gw_tensor_answer_update(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);
gw_status gw_tensor_answer_push(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);
gw_status gw_tensor_answer_count(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);
/* service_save.c */
gw_status gw_tensor_answer_save(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);
gw_status gw_tensor_answer_restore(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);

#endif
