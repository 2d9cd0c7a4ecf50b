/* Decodes the calls on tensors: see tensor_call.h. Encoding copies the structures, except for a push's list of
 * parameters. Nothing is read before its length is known. A text without an end, or an enum out of range, is the peer's
 * fault. */
#include "protocol/tensor_call.h"

#include <string.h>

static gw_status call_too_short(const char *what, size_t bytes)
{
	return gw_fail(GW_PROTOCOL, "%s of %zu bytes", what, bytes);
}

/* Whether a text ends within its field, and the bytes after its end are zero. A truncated name would be another
 * name. */
static bool is_text(const char *field, size_t room)
{
	const char *end = memchr(field, 0, room);
	for (const char *at = end; at && at < field + room; at++) {
		if (*at != 0)
			return false;
	}
	return end != NULL;
}

static bool is_name(const char *text, size_t room)
{
	static const char others[] = "._-:/+";
	for (size_t i = 0; i < room; i++) {
		char c = text[i];
		if (c == 0)
			return true;
		bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!alnum && !strchr(others, c))
			return false;
	}
	return false;
}

bool gw_tensor_name_valid(const char *name)
{
	return *name && is_name(name, GW_TENSOR_NAME_MAX + 1);
}

bool gw_job_name_valid(const char *job)
{
	return *job && is_name(job, GW_JOB_NAME_MAX + 1);
}

static bool is_name_or_empty(const char *field, size_t room)
{
	return is_text(field, room) && is_name(field, room);
}

static gw_status plan_parse(const struct gw_tensor_plan *plan, bool whole)
{
	if (!is_name_or_empty(plan->name, sizeof(plan->name)) || !plan->name[0] ||
	    !is_name_or_empty(plan->job, sizeof(plan->job)) || !is_text(plan->source, sizeof(plan->source)))
		return gw_fail(GW_PROTOCOL, "a tensor with invalid names");
	if (!whole)
		return GW_OK;
	if (plan->dtype >= GW_DTYPE_COUNT || plan->ndim < 1 || plan->ndim > GW_DIMS_MAX ||
	    plan->placement > GW_PLACE_STRIPED || plan->initial > GW_INITIAL_COPY || plan->padding != 0)
		return gw_fail(GW_PROTOCOL, "a tensor of dtype %u with %u dimensions, placement %u, initial values %u",
			       plan->dtype, plan->ndim, plan->placement, plan->initial);
	return GW_OK;
}

gw_status gw_tensor_create_parse(const void *bytes, size_t byte_count, struct gw_tensor_create_call *call)
{
	if (byte_count != sizeof(*call))
		return call_too_short("a call that creates a tensor", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->open > 1 || call->restored > 1)
		return gw_fail(GW_PROTOCOL, "a call that creates a tensor, with invalid numbers");
	return plan_parse(&call->plan, !call->open);
}

gw_status gw_tensor_complete_parse(const void *bytes, size_t byte_count, struct gw_tensor_complete_call *call,
				   const uint8_t **epochs)
{
	if (byte_count < sizeof(*call))
		return call_too_short("a call that completes a tensor", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->parts > GW_PARTS_MAX || byte_count - sizeof(*call) != (size_t)call->parts * 8)
		return gw_fail(GW_PROTOCOL, "a tensor of %u parts in %zu bytes", call->parts, byte_count);
	*epochs = (const uint8_t *)bytes + sizeof(*call);
	return GW_OK;
}

gw_status gw_tensor_list_parse(const void *bytes, size_t byte_count, struct gw_tensor_list_call *call)
{
	if (byte_count != sizeof(*call))
		return call_too_short("a call that lists tensors", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (!is_name_or_empty(call->job, sizeof(call->job)) || !is_name_or_empty(call->after, sizeof(call->after)) ||
	    call->after_kept > 1)
		return gw_fail(GW_PROTOCOL, "a list of tensors with invalid names");
	return GW_OK;
}

gw_status gw_tensor_delete_parse(const void *bytes, size_t byte_count, struct gw_tensor_delete_call *call)
{
	if (byte_count != sizeof(*call))
		return call_too_short("a call that deletes a tensor", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (!is_name_or_empty(call->name, sizeof(call->name)) || !is_name_or_empty(call->job, sizeof(call->job)))
		return gw_fail(GW_PROTOCOL, "a tensor to delete with invalid names");
	return GW_OK;
}

static gw_status rows_split(const void *bytes, size_t byte_count, size_t head, uint32_t count, const uint8_t **rows,
			    const uint8_t **payload, size_t *payload_bytes)
{
	if ((byte_count - head) / 8 < count)
		return gw_fail(GW_PROTOCOL, "a call on %u rows in %zu bytes", count, byte_count);
	*rows = (const uint8_t *)bytes + head;
	*payload = *rows + (size_t)count * 8;
	*payload_bytes = byte_count - head - (size_t)count * 8;
	return GW_OK;
}

gw_status gw_tensor_rows_parse(const void *bytes, size_t byte_count, struct gw_tensor_rows_call *call,
			       const uint8_t **rows, const uint8_t **payload, size_t *payload_bytes)
{
	if (byte_count < sizeof(*call))
		return call_too_short("a call on rows", byte_count);
	memcpy(call, bytes, sizeof(*call));
	return rows_split(bytes, byte_count, sizeof(*call), call->count, rows, payload, payload_bytes);
}

uint32_t gw_tensor_push_encode(const struct gw_tensor_push *push, uint8_t out[GW_TENSOR_PUSH_HEAD_MAX])
{
	uint64_t values[GW_OPTIMIZER_PARAMETERS_MAX];
	struct gw_tensor_push_call call = {.rows = push->rows,
					   .kind = (uint32_t)push->optimizer.kind,
					   .combine = (uint32_t)push->optimizer.combine,
					   .squares = push->squares,
					   .parameters = gw_optimizer_parameters(&push->optimizer, values)};
	memcpy(out, &call, sizeof(call));
	memcpy(out + sizeof(call), values, call.parameters * sizeof(values[0]));
	return (uint32_t)(sizeof(call) + call.parameters * sizeof(values[0]));
}

gw_status gw_tensor_push_parse(const void *bytes, size_t byte_count, struct gw_tensor_push *push, const uint8_t **rows,
			       const uint8_t **payload, size_t *payload_bytes)
{
	struct gw_tensor_push_call call;
	uint64_t values[GW_OPTIMIZER_PARAMETERS_MAX];
	if (byte_count < sizeof(call))
		return call_too_short("a push", byte_count);
	memcpy(&call, bytes, sizeof(call));
	if (!gw_optimizer_rule_of(call.kind) || call.combine > GW_COMBINE_EACH || call.squares > 1)
		return gw_fail(GW_PROTOCOL, "a push with optimizer %u, combine %u", call.kind, call.combine);
	size_t value_bytes = (size_t)call.parameters * sizeof(values[0]);
	if (call.parameters > GW_OPTIMIZER_PARAMETERS_MAX || byte_count - sizeof(call) < value_bytes)
		return gw_fail(GW_PROTOCOL, "a push with %u parameters in %zu bytes", call.parameters, byte_count);
	memcpy(values, (const uint8_t *)bytes + sizeof(call), value_bytes);
	*push = (struct gw_tensor_push){.rows = call.rows,
					.optimizer.kind = (enum gw_optimizer_kind)call.kind,
					.optimizer.combine = (enum gw_combine)call.combine,
					.squares = call.squares == 1};
	gw_status status = gw_optimizer_put_parameters(&push->optimizer, values, call.parameters);
	return status == GW_OK ? rows_split(bytes, byte_count, sizeof(call) + value_bytes, call.rows.count, rows,
					    payload, payload_bytes)
			       : status;
}

gw_status gw_tensor_range_parse(const void *bytes, size_t byte_count, struct gw_tensor_range_call *call)
{
	if (byte_count != sizeof(*call))
		return call_too_short("a call on a range of rows", byte_count);
	memcpy(call, bytes, sizeof(*call));
	return GW_OK;
}

gw_status gw_tensor_restore_parse(const void *bytes, size_t byte_count, struct gw_tensor_restore_call *call,
				  const uint8_t **rows, const uint8_t **payload)
{
	size_t payload_bytes = 0;
	if (byte_count < sizeof(*call))
		return call_too_short("a call that restores an optimizer's state", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (!gw_optimizer_rule_of(call->kind))
		return gw_fail(GW_PROTOCOL, "state of optimizer %u", call->kind);
	gw_status status =
		rows_split(bytes, byte_count, sizeof(*call), call->rows.count, rows, payload, &payload_bytes);
	/* Divides instead of multiplying, because the peer chose both numbers and a product may overflow. */
	uint64_t all = payload_bytes / sizeof(float);
	if (status == GW_OK &&
	    (payload_bytes % sizeof(float) != 0 ||
	     (call->rows.count ? all / call->rows.count != call->floats || all % call->rows.count != 0 : all != 0)))
		status = gw_fail(GW_PROTOCOL, "state of %u rows, %llu numbers of each, in %zu bytes", call->rows.count,
				 (unsigned long long)call->floats, payload_bytes);
	return status;
}

gw_status gw_tensor_saved_parse(const void *bytes, size_t byte_count, uint32_t count, uint64_t row_bytes,
				struct gw_tensor_saved *saved, const uint8_t **state, const uint8_t **rows)
{
	if (byte_count < sizeof(*saved))
		return call_too_short("saved rows", byte_count);
	memcpy(saved, bytes, sizeof(*saved));
	bool head = byte_count == sizeof(*saved) && count > 0 && saved->state_floats > 0;
	*state = *rows = NULL;
	/* A row has at most as many columns as bytes, and a reply is shorter than such a product. */
	if (!gw_optimizer_rule_of(saved->kind) || saved->state_floats > GW_OPTIMIZER_ARRAYS_MAX * (row_bytes + 1) ||
	    (!head && byte_count - sizeof(*saved) != count * (saved->state_floats * sizeof(float) + row_bytes)))
		return gw_fail(GW_PROTOCOL,
			       "%u saved rows of %llu bytes, with %llu numbers of state each, in %zu bytes", count,
			       (unsigned long long)row_bytes, (unsigned long long)saved->state_floats, byte_count);
	if (head)
		return GW_OK;
	*state = (const uint8_t *)bytes + sizeof(*saved);
	*rows = *state + count * saved->state_floats * sizeof(float);
	return GW_OK;
}

gw_status gw_tensor_reads_parse(const void *bytes, size_t byte_count, const uint8_t **reads, uint32_t *count)
{
	*reads = bytes;
	*count = (uint32_t)(byte_count / sizeof(struct gw_tensor_read));
	if (byte_count == 0 || byte_count % sizeof(struct gw_tensor_read) != 0 ||
	    byte_count / sizeof(struct gw_tensor_read) > GW_TENSOR_READS_MAX)
		return gw_fail(GW_PROTOCOL, "rows that were read, in %zu bytes", byte_count);
	for (uint32_t i = 0; i < *count; i++) {
		uint64_t rows = gw_tensor_number(*reads, 2 * (uint64_t)i + 1);
		if (rows > GW_TENSOR_READ_ROWS_MAX)
			return gw_fail(GW_PROTOCOL, "%llu rows of one tensor were read at once",
				       (unsigned long long)rows);
	}
	return GW_OK;
}

gw_status gw_tensor_lease_parse(const void *bytes, size_t byte_count, char job[GW_JOB_NAME_MAX + 1])
{
	if (byte_count != GW_JOB_NAME_MAX + 1 || !is_name_or_empty(bytes, byte_count))
		return gw_fail(GW_PROTOCOL, "a job's name in %zu bytes", byte_count);
	memcpy(job, bytes, byte_count);
	return GW_OK;
}

gw_status gw_tensor_state_parse(const void *bytes, size_t byte_count, uint32_t parts, struct gw_tensor_state *state,
				const uint8_t **epochs)
{
	if (byte_count < sizeof(*state))
		return call_too_short("a tensor's state", byte_count);
	memcpy(state, bytes, sizeof(*state));
	if ((state->epochs != 0 && state->epochs != parts) ||
	    byte_count - sizeof(*state) != (size_t)state->epochs * 8 || state->ready > 1 || state->restored > 1)
		return gw_fail(GW_PROTOCOL, "a tensor's state with %u epochs in %zu bytes", state->epochs, byte_count);
	*epochs = (const uint8_t *)bytes + sizeof(*state);
	return plan_parse(&state->plan, true);
}

gw_status gw_tensor_listed_parse(const void *bytes, size_t byte_count, struct gw_tensor_listed *out, uint32_t *count)
{
	if (byte_count % sizeof(*out) != 0 || byte_count / sizeof(*out) > GW_TENSOR_LIST_MAX)
		return call_too_short("a list of tensors", byte_count);
	*count = (uint32_t)(byte_count / sizeof(*out));
	if (byte_count > 0)
		memcpy(out, bytes, byte_count);
	for (uint32_t i = 0; i < *count; i++) {
		gw_status status = plan_parse(&out[i].plan, true);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

uint64_t gw_tensor_number(const uint8_t *numbers, uint64_t i)
{
	uint64_t number;
	memcpy(&number, numbers + i * 8, 8);
	return number;
}
