/* The calls that write and restore a checkpoint: rows with their optimizer's state, and state alone.
 *
 * The reply to a SAVE is as long as its rows and their state: a piece of GW_TENSOR_PULL_BYTES, or one row. If the rows
 * have got state that the client did not expect, the reply consists of the head alone. Requests are checked as in
 * service.c.
 */
#include <string.h>

#include "tensors/service_private.h"

/* Describes the optimizer's state that each row has at the moment. */
static struct gw_tensor_saved save_head(const struct gw_shard *shard)
{
	enum gw_optimizer_kind kind;
	struct gw_tensor_saved saved = {0};
	if (gw_row_store_trained(shard->store, &kind)) {
		saved.state_floats = gw_optimizer_state_floats(kind, shard->layout.row_elements);
		saved.kind = (uint32_t)kind;
	}
	return saved;
}

/* Begins the reply, or begins it again, with this head and room for this many bytes after it. */
static gw_status save_begin(struct gw_reply *reply, const struct gw_tensor_saved *saved, uint64_t bytes)
{
	uint32_t all;
	gw_reply_data(reply, &all);
	gw_reply_shrink(reply, all);
	uint8_t *out = gw_reply_extend(reply, (uint32_t)(sizeof(*saved) + bytes));
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, saved, sizeof(*saved));
	return GW_OK;
}

static gw_status answer_save_rows(struct gw_rows_work *work, const struct gw_tensor_range_call *call,
				  struct gw_reply *reply)
{
	struct gw_shard *shard = work->shard;
	struct gw_tensor_saved saved = save_head(shard);
	uint64_t state_bytes = saved.state_floats * sizeof(float), row_bytes = shard->layout.row_bytes;
	uint64_t bytes = call->count * (state_bytes + row_bytes);
	gw_status status = GW_OK;
	if (call->count > 1 && call->count * row_bytes > GW_TENSOR_PULL_BYTES)
		return gw_fail(GW_PROTOCOL, "%u rows of %llu bytes were asked for in one call", call->count,
			       (unsigned long long)row_bytes);
	if (!work->begun) {
		bool fits = call->count <= 1 || bytes <= GW_TENSOR_PULL_BYTES;
		status = save_begin(reply, &saved, fits ? bytes : 0);
		if (status != GW_OK || !fits)
			return status;
		work->state_floats = saved.state_floats;
		work->begun = true;
	}
	uint32_t all;
	state_bytes = work->state_floats * sizeof(float);
	uint8_t *state = gw_reply_data(reply, &all) + sizeof(saved), *rows = state + call->count * state_bytes;
	status = gw_row_store_save_slice(shard->store, &work->slice, call->first, call->count, rows,
					 state_bytes ? state : NULL);
	/* Read after the copy: a row that was pushed before it was copied has state, and the copy does not contain that
	 * state. */
	saved = save_head(shard);
	if ((status == GW_OK || status == GW_AGAIN) && saved.state_floats != work->state_floats)
		status = save_begin(reply, &saved, 0);
	return status;
}

gw_status gw_tensor_answer_save(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_range_call save;
	struct gw_rows_work *work;
	gw_status status = gw_tensor_range_parse(call->bytes, call->byte_count, &save);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, save.epoch, &work);
	return status == GW_OK ? gw_rows_work_yield(work, reply, answer_save_rows(work, &save, reply)) : status;
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
	/* The state directly follows the numbers. */
	size_t number_bytes = (size_t)restore->rows.count * 8;
	const uint8_t *numbers =
		gw_rows_work_numbers(work, rows, number_bytes + restore->rows.count * restore->floats * sizeof(float));
	if (!numbers)
		return GW_NO_MEMORY;
	return gw_row_store_set_state_slice(work->shard->store, &work->slice, (const void *)numbers,
					    restore->rows.count, restore->first, restore->floats,
					    (const void *)(numbers + number_bytes));
}

gw_status gw_tensor_answer_restore(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_restore_call restore;
	struct gw_rows_work *work;
	const uint8_t *rows = NULL, *payload = NULL;
	gw_status status = gw_tensor_restore_parse(call->bytes, call->byte_count, &restore, &rows, &payload);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, restore.rows.epoch, &work);
	return status == GW_OK ? gw_rows_work_yield(work, reply, answer_restore_state(work, &restore, rows, reply))
			       : status;
}
