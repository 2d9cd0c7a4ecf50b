/* Handlers of the calls on whole tensors: create, complete, list, delete, lease, end_job, reads. The handlers of the
 * calls on rows are in service_rows.c and service_save.c.
 *
 * protocol/tensor_call.c checks the fields of a request; the handlers check them against the table. Each handler
 * releases the shard that it has found.
 */
#include "tensors/service.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "protocol/ops.h"
#include "tensors/service_private.h"

static gw_status answer_create(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_table *table = context;
	struct gw_tensor_create_call create;
	struct gw_tensor_state state;
	struct gw_shard *shard = NULL;
	const uint64_t *epochs = NULL;
	gw_status status = gw_tensor_create_parse(call->bytes, call->byte_count, &create);
	if (status == GW_OK)
		status = gw_tensor_table_make(table, &create, &state, &epochs, &shard);
	if (status != GW_OK)
		return status;
	size_t epoch_bytes = (size_t)state.epochs * sizeof(*epochs);
	uint8_t *out = gw_reply_extend(reply, (uint32_t)(sizeof(state) + epoch_bytes));
	if (out) {
		memcpy(out, &state, sizeof(state));
		if (epoch_bytes)
			memcpy(out + sizeof(state), epochs, epoch_bytes);
	}
	gw_shard_unref(table, shard);
	return out ? GW_OK : GW_NO_MEMORY;
}

static gw_status answer_complete(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_table *table = context;
	struct gw_tensor_complete_call complete;
	struct gw_shard *shard = NULL;
	const uint8_t *bytes = NULL;
	const uint64_t *kept = NULL;
	gw_status status = gw_tensor_complete_parse(call->bytes, call->byte_count, &complete, &bytes);
	if (status != GW_OK)
		return status;
	if (complete.parts != gw_tensor_table_options(table)->meta->num_parts)
		return gw_fail(GW_PROTOCOL, "a tensor of %u parts, which is not the graph's number", complete.parts);
	status = gw_tensor_table_complete(table, complete.epoch, bytes, &kept, &shard);
	if (status != GW_OK)
		return status;
	uint8_t *out = gw_reply_extend(reply, complete.parts * (uint32_t)sizeof(*kept));
	if (out)
		memcpy(out, kept, complete.parts * sizeof(*kept));
	gw_shard_unref(table, shard);
	return out ? GW_OK : GW_NO_MEMORY;
}

static gw_status answer_list(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_list_call list;
	gw_status status = gw_tensor_list_parse(call->bytes, call->byte_count, &list);
	if (status != GW_OK)
		return status;
	struct gw_tensor_listed *listed = gw_calloc(GW_TENSOR_LIST_MAX, sizeof(*listed));
	if (!listed)
		return GW_NO_MEMORY;
	bool first = list.after_kept && !list.after[0];
	uint32_t count = gw_tensor_table_list(context, list.job,
					      first             ? NULL
					      : list.after_kept ? ""
								: list.job,
					      list.after, listed, GW_TENSOR_LIST_MAX);
	uint8_t *out = gw_reply_extend(reply, count * (uint32_t)sizeof(*listed));
	if (out && count)
		memcpy(out, listed, count * sizeof(*listed));
	gw_free(listed);
	return out ? GW_OK : GW_NO_MEMORY;
}

static gw_status answer_delete(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_delete_call delete;
	gw_status status = gw_tensor_delete_parse(call->bytes, call->byte_count, &delete);
	uint32_t count = 0;
	if (status == GW_OK)
		status = gw_tensor_table_delete(context, delete.job, delete.name, delete.leader, &count);
	return status == GW_OK ? gw_tensor_reply_number(reply, count) : status;
}

static gw_status answer_lease(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	char job[GW_JOB_NAME_MAX + 1];
	gw_status status = gw_tensor_lease_parse(call->bytes, call->byte_count, job);
	return status == GW_OK ? gw_tensor_reply_number(reply, gw_tensor_table_lease(context, job)) : status;
}

static gw_status answer_end_job(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	char job[GW_JOB_NAME_MAX + 1];
	uint32_t count = 0;
	gw_status status = gw_tensor_lease_parse(call->bytes, call->byte_count, job);
	if (status == GW_OK)
		status = gw_tensor_table_end_job(context, job, &count);
	return status == GW_OK ? gw_tensor_reply_number(reply, count) : status;
}

static gw_status answer_reads(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)reply;
	const uint8_t *reads = NULL;
	uint32_t count = 0;
	gw_status status = gw_tensor_reads_parse(call->bytes, call->byte_count, &reads, &count);
	for (uint32_t i = 0; i < count && status == GW_OK; i++)
		gw_tensor_table_note_reads(context, gw_tensor_number(reads, 2 * (uint64_t)i),
					   gw_tensor_number(reads, 2 * (uint64_t)i + 1));
	return status;
}

gw_status gw_tensor_service_set(struct gw_service *service, struct gw_tensor_table *table)
{
	static const struct {
		uint16_t op;
		gw_handler handler;
	} handlers[] = {
		{GW_OP_TENSOR_CREATE, answer_create},
		{GW_OP_TENSOR_COMPLETE, answer_complete},
		{GW_OP_TENSOR_LIST, answer_list},
		{GW_OP_TENSOR_DELETE, answer_delete},
		{GW_OP_TENSOR_PULL, gw_tensor_answer_pull},
		{GW_OP_TENSOR_UPDATE, gw_tensor_answer_update},
		{GW_OP_TENSOR_PUSH, gw_tensor_answer_push},
		{GW_OP_TENSOR_COUNT, gw_tensor_answer_count},
		{GW_OP_TENSOR_LEASE, answer_lease},
		{GW_OP_TENSOR_END_JOB, answer_end_job},
		{GW_OP_TENSOR_READS, answer_reads},
		{GW_OP_TENSOR_SAVE, gw_tensor_answer_save},
		{GW_OP_TENSOR_RESTORE, gw_tensor_answer_restore},
	};
	gw_status status = GW_OK;
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]) && status == GW_OK; i++)
		status = gw_service_handle(service, handlers[i].op, handlers[i].handler, table);
	return status;
}
