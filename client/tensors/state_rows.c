/* Reads and writes the state of an optimizer by the ids of rows.
 *
 *   read:  ids sorted by owner and row ─▶ spans of near rows ─▶ a SAVE for each span ─▶ the array's columns copied out
 *   write: the state is allocated ─▶ rows grouped by owner ─▶ RESTORE of the array's columns, as many rows as fit
 *
 * A call is rare and long, so the requests go one after another. Fails for ids that are no rows, for arrays and kinds
 * that the tensor does not have, if memory runs out, and with the errors of requests.
 */
#include "client/tensors/state_rows.h"

#include <string.h>

#include "client/engine/remote_call.h"
#include "client/rows/rows_write.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "core/numbers/sort.h"
#include "protocol/ops.h"

#define STATE_GAP 64u /* rows that a span contains in vain, at most, before the next wanted row */

/* The rows of a call. */
struct state_rows {
	struct gw_client *client;
	const struct gw_tensor_handle *handle;
	enum gw_optimizer_kind kind;
	uint64_t floats, first, columns; /* of a row's state; the array's first column, and how many it has */
	uint64_t n;
	uint64_t *keys;  /* [n]: the row's number if all parts' rows were stored one after another, ascending */
	uint32_t *order; /* [n]: the row's place in the caller's arrays */
	struct gw_vec request, reply;
};

gw_status gw_tensor_state_make(struct gw_client *client, const struct gw_tensor_handle *handle,
			       enum gw_optimizer_kind kind, struct gw_vec *reply)
{
	gw_status status = GW_OK;
	for (uint32_t part = 0; part < handle->layout.parts && status == GW_OK; part++) {
		const struct gw_tensor_push ask = {.rows = {.epoch = handle->epochs[part]}, .optimizer.kind = kind};
		uint8_t call[GW_TENSOR_PUSH_HEAD_MAX];
		uint32_t call_bytes = gw_tensor_push_encode(&ask, call);
		size_t bytes = 0;
		bool there = gw_tensor_layout_count(&handle->layout, part) == 0;
		while (!there && status == GW_OK) {
			status = gw_remote_call(client, part, GW_OP_TENSOR_PUSH, call, call_bytes, reply, &bytes);
			there = bytes == 0;
		}
	}
	return status;
}

static gw_status state_find_array(struct state_rows *state, const char *name)
{
	struct gw_optimizer_array arrays[GW_OPTIMIZER_ARRAYS_MAX];
	uint64_t elements = state->handle->layout.row_elements;
	uint32_t count = gw_optimizer_arrays(state->kind, elements, arrays);
	state->floats = gw_optimizer_state_floats(state->kind, elements);
	for (uint32_t a = 0; a < count; a++) {
		state->columns = arrays[a].columns;
		if (name && strcmp(arrays[a].name, name) == 0)
			return GW_OK;
		state->first += state->columns;
	}
	return gw_fail(GW_INVALID, "the state of %s has no array \"%.64s\"", gw_optimizer_name(state->kind),
		       name ? name : "");
}

/* Equal rows keep the order of the call. */
static gw_status state_sort(struct state_rows *state, const int64_t *ids)
{
	const struct gw_tensor_layout *layout = &state->handle->layout;
	struct gw_vec scratch = {0};
	state->keys = gw_calloc(state->n ? state->n : 1, sizeof(*state->keys));
	state->order = gw_calloc(state->n ? state->n : 1, sizeof(*state->order));
	if (!state->keys || !state->order)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < state->n; i++) {
		uint64_t id = (uint64_t)ids[i];
		if (id >= layout->rows)
			return gw_fail_id("id", ids[i], i, layout->rows);
		uint32_t owner = gw_tensor_layout_owner(layout, id);
		state->keys[i] = layout->starts[owner] + gw_tensor_layout_row(layout, owner, id);
		state->order[i] = (uint32_t)i;
	}
	gw_status status = state->n > 1 ? gw_sort_rows(state->keys, state->order, state->n, &scratch) : GW_OK;
	gw_vec_free(&scratch);
	return status;
}

static gw_status state_begin(struct state_rows *state, struct gw_client *client, const struct gw_tensor *tensor,
			     enum gw_optimizer_kind kind, const char *array, const int64_t *ids, uint64_t n)
{
	*state = (struct state_rows){
		.client = client, .handle = (const struct gw_tensor_handle *)tensor, .kind = kind, .n = n};
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = gw_tensor_check(client, tensor);
	if (status != GW_OK)
		return status;
	if (!tensor->writable)
		return gw_fail(GW_INVALID, "\"%s\" is a feature, which no optimizer trains", tensor->name);
	if (!gw_optimizer_rule_of((uint32_t)kind))
		return gw_fail(GW_INVALID, "state of an unknown optimizer");
	if (n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu rows in one call: at most 2^32 - 1", (unsigned long long)n);
	status = state_find_array(state, array);
	return status == GW_OK ? state_sort(state, ids) : status;
}

static gw_status state_end(struct state_rows *state, const struct gw_tensor *tensor, gw_status status)
{
	gw_free(state->keys);
	gw_free(state->order);
	gw_vec_free(&state->request);
	gw_vec_free(&state->reply);
	return gw_tensor_name_gone(status, tensor->name);
}

static uint32_t state_part(const struct state_rows *state, uint64_t key)
{
	return gw_book_owner(state->handle->layout.starts, state->handle->layout.parts, key);
}

/* --- Reading. --- */

/* The end of a span: the first wanted row after `at` that is in another part, far away, or beyond what fits into a
 * reply. */
static uint64_t span_end(const struct state_rows *state, uint64_t at, uint32_t part)
{
	const struct gw_tensor_layout *layout = &state->handle->layout;
	uint64_t most = GW_TENSOR_PULL_BYTES / (layout->row_bytes + state->floats * sizeof(float));
	uint64_t begin = state->keys[at], limit = begin + (most ? most : 1), end = at + 1;
	if (limit > layout->starts[part + 1])
		limit = layout->starts[part + 1];
	while (end < state->n && state->keys[end] < limit && state->keys[end] - state->keys[end - 1] <= STATE_GAP)
		end++;
	return end;
}

/* *out: NULL if the part has no state. */
static gw_status span_ask(struct state_rows *state, uint32_t part, uint64_t first, uint32_t count, const uint8_t **out)
{
	const struct gw_tensor_range_call call = {.epoch = state->handle->epochs[part], .first = first, .count = count};
	struct gw_tensor_saved saved = {0};
	const uint8_t *rows = NULL;
	/* The head alone: the state was allocated during the call. */
	while (!rows) {
		size_t bytes = 0;
		gw_status status = gw_remote_call(state->client, part, GW_OP_TENSOR_SAVE, &call, sizeof(call),
						  &state->reply, &bytes);
		if (status == GW_OK)
			status = gw_tensor_saved_parse(state->reply.data, bytes, count, state->handle->layout.row_bytes,
						       &saved, out, &rows);
		if (status != GW_OK)
			return status;
		if (saved.state_floats == 0) {
			*out = NULL;
			return GW_OK;
		}
		if ((enum gw_optimizer_kind)saved.kind != state->kind)
			return gw_fail(GW_EXISTS, "tensor \"%s\" has the state of %s, not of %s",
				       state->handle->base.tensor.name,
				       gw_optimizer_name((enum gw_optimizer_kind)saved.kind),
				       gw_optimizer_name(state->kind));
		if (saved.state_floats != state->floats)
			return gw_fail(GW_PROTOCOL, "part %u: its state does not match its optimizer", part);
	}
	return GW_OK;
}

static gw_status span_read(struct state_rows *state, uint64_t at, uint64_t end, uint32_t part, uint8_t *out)
{
	const uint8_t *found = NULL;
	uint64_t begin = state->keys[at], bytes = state->columns * sizeof(float);
	gw_status status = span_ask(state, part, begin - state->handle->layout.starts[part],
				    (uint32_t)(state->keys[end - 1] - begin + 1), &found);
	for (uint64_t i = at; i < end && status == GW_OK; i++) {
		uint8_t *to = out + state->order[i] * bytes;
		if (found)
			memcpy(to, found + ((state->keys[i] - begin) * state->floats + state->first) * sizeof(float),
			       bytes);
		else
			memset(to, 0, bytes);
	}
	return status;
}

gw_status gw_tensor_state_read(struct gw_client *client, const struct gw_tensor *tensor, enum gw_optimizer_kind kind,
			       const char *array, const int64_t *ids, uint64_t n, void *out)
{
	struct state_rows state;
	gw_status status = state_begin(&state, client, tensor, kind, array, ids, n);
	for (uint64_t at = 0, end; at < n && status == GW_OK; at = end) {
		uint32_t part = state_part(&state, state.keys[at]);
		end = span_end(&state, at, part);
		status = span_read(&state, at, end, part, out);
	}
	return state_end(&state, tensor, status);
}

/* --- Writing. --- */

/* In one request. */
static gw_status state_send(struct state_rows *state, uint64_t at, uint64_t end, uint32_t part, uint64_t first,
			    uint64_t columns, const uint8_t *values)
{
	uint64_t count = end - at, number_bytes = count * sizeof(uint64_t), column_bytes = columns * sizeof(float);
	struct gw_tensor_restore_call call = {.rows = {.epoch = state->handle->epochs[part], .count = (uint32_t)count},
					      .kind = (uint32_t)state->kind,
					      .first = state->first + first,
					      .floats = columns};
	size_t bytes = sizeof(call) + number_bytes + count * column_bytes;
	gw_status status = gw_vec_reserve(&state->request, bytes);
	if (status != GW_OK)
		return status;
	uint8_t *to = state->request.data;
	memcpy(to, &call, sizeof(call));
	to += sizeof(call);
	for (uint64_t i = at; i < end; i++, to += sizeof(uint64_t)) {
		uint64_t row = state->keys[i] - state->handle->layout.starts[part];
		memcpy(to, &row, sizeof(row));
	}
	for (uint64_t i = at; i < end; i++, to += column_bytes)
		memcpy(to, values + (state->order[i] * state->columns + first) * sizeof(float), column_bytes);
	return gw_numbered_call(state->client, part, GW_OP_TENSOR_RESTORE, state->request.data, (uint32_t)bytes, NULL);
}

gw_status gw_tensor_state_write(struct gw_client *client, const struct gw_tensor *tensor, enum gw_optimizer_kind kind,
				const char *array, const int64_t *ids, uint64_t n, const void *values)
{
	struct state_rows state;
	gw_status status = state_begin(&state, client, tensor, kind, array, ids, n);
	if (status == GW_OK)
		status = gw_tensor_state_make(client, state.handle, kind, &state.reply);
	uint64_t budget = (GW_TENSOR_REQUEST_BYTES - sizeof(struct gw_tensor_restore_call) - sizeof(uint64_t));
	uint64_t widest = budget / sizeof(float), columns = state.columns < widest ? state.columns : widest;
	uint64_t most = budget / (sizeof(uint64_t) + columns * sizeof(float));
	most = columns < state.columns || most == 0 ? 1 : most;
	for (uint64_t at = 0, end; at < n && status == GW_OK; at = end) {
		uint32_t part = state_part(&state, state.keys[at]);
		for (end = at + 1; end < n && end - at < most; end++) {
			if (state.keys[end] >= state.handle->layout.starts[part + 1])
				break;
		}
		for (uint64_t first = 0, sent; first < state.columns && status == GW_OK; first += sent) {
			sent = state.columns - first < columns ? state.columns - first : columns;
			status = state_send(&state, at, end, part, first, sent, values);
		}
	}
	return state_end(&state, tensor, status);
}
