/* The calls that a checkpoint is made of and restored by: rows with their optimizer's state, and state alone.
 *
 * A SAVE's reply is as long as its rows and their state: a piece of GW_TENSOR_PULL_BYTES, or one row. What a peer sends
 * is checked as in service.c.
 */
#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tensors/service_inside.h"

static gw_status answer_save_rows(struct gw_shard *shard, const struct gw_tensor_save_call *call,
				  struct gw_reply *reply)
{
	enum gw_optimizer_kind kind = GW_SGD;
	struct gw_tensor_saved saved = {0};
	if (gw_row_store_trained(shard->store, &kind))
		saved.state_floats = gw_optimizer_state_floats(kind, shard->layout.row_elements);
	saved.kind = (uint32_t)kind;
	uint64_t state_bytes = saved.state_floats * sizeof(float), row_bytes = shard->layout.row_bytes;
	uint64_t bytes = call->count * (state_bytes + row_bytes);
	if (bytes > GW_TENSOR_PULL_BYTES && call->count > 1)
		return gw_fail(GW_PROTOCOL, "%u rows of %llu bytes, state included, were asked for in one call",
			       call->count, (unsigned long long)(state_bytes + row_bytes));
	uint8_t *out = gw_reply_extend(reply, (uint32_t)(sizeof(saved) + bytes));
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, &saved, sizeof(saved));
	/* Aligned: a reply's bytes may begin anywhere. */
	float *state = NULL;
	if (state_bytes && call->count && !(state = gw_malloc(call->count * state_bytes)))
		return GW_NO_MEMORY;
	uint8_t *rows = out + sizeof(saved) + call->count * state_bytes;
	gw_status status = gw_row_store_save(shard->store, call->first, call->count, rows, state);
	if (status == GW_OK && state)
		memcpy(out + sizeof(saved), state, call->count * state_bytes);
	gw_free(state);
	return status;
}

gw_status gw_tensor_answer_save(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_save_call save;
	struct gw_shard *shard = NULL;
	gw_status status = gw_tensor_save_parse(call->bytes, call->byte_count, &save);
	if (status == GW_OK)
		status = gw_tensor_table_find(context, save.birth, &shard);
	if (status != GW_OK)
		return status;
	status = answer_save_rows(shard, &save, reply);
	gw_shard_leave(context, shard);
	return status;
}

gw_status gw_tensor_answer_restore(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	(void)reply;
	struct gw_tensor_restore_call restore;
	struct gw_shard *shard = NULL;
	const uint8_t *rows = NULL, *payload = NULL;
	void *copy = NULL;
	gw_status status = gw_tensor_restore_parse(call->bytes, call->byte_count, &restore, &rows, &payload);
	if (status == GW_OK)
		status = gw_tensor_table_find(context, restore.rows.birth, &shard);
	if (status != GW_OK)
		return status;
	status = gw_shard_prepare(context, shard, (enum gw_optimizer_kind)restore.kind);
	/* The state lies right behind the numbers. */
	size_t number_bytes = (size_t)restore.rows.count * 8;
	const uint8_t *numbers = NULL;
	if (status == GW_OK) {
		numbers = gw_tensor_call_numbers(
			rows, number_bytes + restore.rows.count * restore.floats * sizeof(float), &copy);
		status = numbers ? GW_OK : GW_NO_MEMORY;
	}
	if (status == GW_OK)
		status = gw_row_store_set_state(shard->store, (const void *)numbers, restore.rows.count, restore.first,
						restore.floats, (const void *)(numbers + number_bytes));
	gw_free(copy);
	gw_shard_leave(context, shard);
	return status;
}
