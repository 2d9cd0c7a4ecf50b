/* The calls that a checkpoint is made of and restored by: rows with their optimizer's state, and state alone.
 *
 * A SAVE's reply is as long as its rows and their state: a piece of GW_TENSOR_PULL_BYTES, or one row. What a peer sends
 * is checked as in service.c.
 */
#include <string.h>

#include "tensors/service_inside.h"

static gw_status answer_save_rows(struct gw_rows_work *work, const struct gw_tensor_range_call *call,
				  struct gw_reply *reply)
{
	struct gw_shard *shard = work->shard;
	struct gw_tensor_saved saved = {0};
	enum gw_optimizer_kind kind = GW_SGD;
	if (!work->begun && gw_row_store_trained(shard->store, &kind))
		work->state_floats = gw_optimizer_state_floats(kind, shard->layout.row_elements);
	saved.state_floats = work->state_floats; /* as it was in the first turn */
	saved.kind = (uint32_t)kind;
	uint64_t state_bytes = saved.state_floats * sizeof(float), row_bytes = shard->layout.row_bytes;
	uint64_t bytes = call->count * (state_bytes + row_bytes);
	if (bytes > GW_TENSOR_PULL_BYTES && call->count > 1)
		return gw_fail(GW_PROTOCOL, "%u rows of %llu bytes, state included, were asked for in one call",
			       call->count, (unsigned long long)(state_bytes + row_bytes));
	if (!work->begun) {
		uint8_t *out = gw_reply_extend(reply, (uint32_t)(sizeof(saved) + bytes));
		if (!out)
			return GW_NO_MEMORY;
		memcpy(out, &saved, sizeof(saved));
		work->begun = true;
	}
	uint32_t all;
	uint8_t *state = gw_reply_data(reply, &all) + sizeof(saved), *rows = state + call->count * state_bytes;
	return gw_row_store_save_turn(shard->store, &work->turn, call->first, call->count, rows,
				      state_bytes ? state : NULL);
}

gw_status gw_tensor_answer_save(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_range_call save;
	struct gw_rows_work *work;
	gw_status status = gw_tensor_range_parse(call->bytes, call->byte_count, &save);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, save.birth, &work);
	return status == GW_OK ? gw_rows_work_turned(work, reply, answer_save_rows(work, &save, reply)) : status;
}

static gw_status answer_restore_state(struct gw_rows_work *work, const struct gw_tensor_restore_call *restore,
				      const uint8_t *rows, struct gw_reply *reply)
{
	gw_status status = gw_shard_prepare(work->table, work->shard, (enum gw_optimizer_kind)restore->kind);
	if (status != GW_OK) {
		if (status == GW_AGAIN)
			gw_reply_wait(reply);
		return status;
	}
	/* The state lies right behind the numbers. */
	size_t number_bytes = (size_t)restore->rows.count * 8;
	const uint8_t *numbers =
		gw_rows_work_numbers(work, rows, number_bytes + restore->rows.count * restore->floats * sizeof(float));
	if (!numbers)
		return GW_NO_MEMORY;
	return gw_row_store_set_state_turn(work->shard->store, &work->turn, (const void *)numbers, restore->rows.count,
					   restore->first, restore->floats, (const void *)(numbers + number_bytes));
}

gw_status gw_tensor_answer_restore(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_restore_call restore;
	struct gw_rows_work *work;
	const uint8_t *rows = NULL, *payload = NULL;
	gw_status status = gw_tensor_restore_parse(call->bytes, call->byte_count, &restore, &rows, &payload);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, restore.rows.birth, &work);
	return status == GW_OK ? gw_rows_work_turned(work, reply, answer_restore_state(work, &restore, rows, reply))
			       : status;
}
