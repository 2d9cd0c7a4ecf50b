/* Handlers of the calls on tensors: parse, find the shard, do it, reply.
 *
 * What a peer sends is checked by protocol/tensor_call.c for itself, and here against the shard: lengths of rows and
 * gradients, their numbers by the row store. Each handler leaves the shard that it has found.
 */
#include "tensors/service.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "protocol/ops.h"
#include "tensors/service_inside.h"

#define COUNT_PIECE_BYTES (1u << 20) /* of rows, in one turn */

const void *gw_tensor_call_numbers(const uint8_t *bytes, size_t byte_count, void **copy)
{
	*copy = NULL;
	if ((uintptr_t)bytes % 8 == 0)
		return bytes;
	*copy = gw_malloc(byte_count);
	if (*copy)
		memcpy(*copy, bytes, byte_count);
	return *copy;
}

static gw_status reply_number(struct gw_reply *reply, uint64_t number)
{
	uint8_t *out = gw_reply_extend(reply, sizeof(number));
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, &number, sizeof(number));
	return GW_OK;
}

static gw_status answer_create(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_table *table = context;
	struct gw_tensor_create_call create;
	struct gw_tensor_state state;
	struct gw_shard *shard = NULL;
	const uint64_t *births = NULL;
	gw_status status = gw_tensor_create_parse(call->bytes, call->byte_count, &create);
	if (status == GW_OK)
		status = gw_tensor_table_make(table, &create, &state, &births, &shard);
	if (status != GW_OK)
		return status;
	size_t birth_bytes = (size_t)state.births * sizeof(*births);
	uint8_t *out = gw_reply_extend(reply, (uint32_t)(sizeof(state) + birth_bytes));
	if (out) {
		memcpy(out, &state, sizeof(state));
		if (birth_bytes)
			memcpy(out + sizeof(state), births, birth_bytes);
	}
	gw_shard_leave(table, shard);
	return out ? GW_OK : GW_NO_MEMORY;
}

static gw_status answer_complete(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_table *table = context;
	struct gw_tensor_complete_call complete;
	struct gw_shard *shard = NULL;
	const uint8_t *bytes = NULL;
	const uint64_t *kept = NULL;
	void *copy = NULL;
	gw_status status = gw_tensor_complete_parse(call->bytes, call->byte_count, &complete, &bytes);
	if (status != GW_OK)
		return status;
	if (complete.parts != gw_tensor_table_options(table)->meta->num_parts)
		return gw_fail(GW_PROTOCOL, "a tensor of %u parts", complete.parts);
	const uint64_t *births = gw_tensor_call_numbers(bytes, complete.parts * sizeof(*births), &copy);
	status = births ? gw_tensor_table_complete(table, complete.birth, births, &kept, &shard) : GW_NO_MEMORY;
	gw_free(copy);
	if (status != GW_OK)
		return status;
	uint8_t *out = gw_reply_extend(reply, complete.parts * (uint32_t)sizeof(*kept));
	if (out)
		memcpy(out, kept, complete.parts * sizeof(*kept));
	gw_shard_leave(table, shard);
	return out ? GW_OK : GW_NO_MEMORY;
}

static gw_status answer_list(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
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

static gw_status answer_delete(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_delete_call delete;
	gw_status status = gw_tensor_delete_parse(call->bytes, call->byte_count, &delete);
	uint32_t count = 0;
	if (status == GW_OK)
		status = gw_tensor_table_delete(context, delete.job, delete.name, delete.leader, &count);
	return status == GW_OK ? reply_number(reply, count) : status;
}

static gw_status answer_hold(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	(void)reply;
	char job[GW_JOB_NAME_MAX + 1];
	gw_status status = gw_tensor_hold_parse(call->bytes, call->byte_count, job);
	return status == GW_OK ? gw_tensor_table_hold(context, job) : status;
}

static gw_status answer_end_job(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	char job[GW_JOB_NAME_MAX + 1];
	uint32_t count = 0;
	gw_status status = gw_tensor_hold_parse(call->bytes, call->byte_count, job);
	if (status == GW_OK)
		status = gw_tensor_table_end_job(context, job, &count);
	return status == GW_OK ? reply_number(reply, count) : status;
}

static gw_status pull_rows(struct gw_shard *shard, const uint8_t *rows, uint32_t count, struct gw_reply *reply)
{
	uint64_t bytes = count * shard->layout.row_bytes;
	void *copy;
	if (bytes > GW_TENSOR_PULL_BYTES && count > 1)
		return gw_fail(GW_PROTOCOL, "%u rows of %llu bytes were asked for in one call", count,
			       (unsigned long long)shard->layout.row_bytes);
	const uint64_t *numbers = gw_tensor_call_numbers(rows, (size_t)count * 8, &copy);
	uint8_t *out = numbers ? gw_reply_extend(reply, (uint32_t)bytes) : NULL;
	gw_status status = out ? gw_row_store_read(shard->store, numbers, count, out) : GW_NO_MEMORY;
	gw_free(copy);
	atomic_fetch_add_explicit(&shard->counts.pulls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&shard->counts.pulled, count, memory_order_relaxed);
	return status;
}

static gw_status answer_pull(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_rows_call pull;
	struct gw_shard *shard = NULL;
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	gw_status status = gw_tensor_rows_parse(call->bytes, call->byte_count, &pull, &rows, &payload, &payload_bytes);
	if (status == GW_OK && payload_bytes)
		status = gw_fail(GW_PROTOCOL, "%zu bytes behind the numbers of rows to read", payload_bytes);
	if (status == GW_OK)
		status = gw_tensor_table_find(context, pull.birth, &shard);
	if (status != GW_OK)
		return status;
	status = pull_rows(shard, rows, pull.count, reply);
	if (pull.torn)
		atomic_fetch_add_explicit(&shard->counts.torn, pull.count, memory_order_relaxed);
	gw_shard_leave(context, shard);
	return status;
}

static gw_status answer_update(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	(void)reply;
	struct gw_tensor_rows_call update;
	struct gw_shard *shard = NULL;
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	void *copy = NULL;
	gw_status status =
		gw_tensor_rows_parse(call->bytes, call->byte_count, &update, &rows, &payload, &payload_bytes);
	if (status == GW_OK)
		status = gw_tensor_table_find(context, update.birth, &shard);
	if (status != GW_OK)
		return status;
	if (payload_bytes != update.count * shard->layout.row_bytes)
		status = gw_fail(GW_PROTOCOL, "%u rows of %llu bytes to write in %zu bytes", update.count,
				 (unsigned long long)shard->layout.row_bytes, payload_bytes);
	const uint64_t *numbers = gw_tensor_call_numbers(rows, (size_t)update.count * 8, &copy);
	if (status == GW_OK)
		status = numbers ? gw_row_store_write(shard->store, numbers, update.count, payload) : GW_NO_MEMORY;
	gw_free(copy);
	if (status == GW_OK)
		atomic_fetch_add_explicit(&shard->counts.written, update.count, memory_order_relaxed);
	gw_shard_leave(context, shard);
	return status;
}

static gw_status push_rows(struct gw_tensor_table *table, struct gw_shard *shard,
			   const struct gw_tensor_push_call *push, const uint8_t *rows, const uint8_t *payload,
			   size_t payload_bytes)
{
	uint32_t count = push->rows.count;
	uint64_t square_bytes = push->squares ? count * sizeof(float) : 0;
	struct gw_row_push_scratch scratch;
	struct gw_optimizer optimizer = {.kind = (enum gw_optimizer_kind)push->kind,
					 .combine = (enum gw_combine)push->combine,
					 .rate = push->rate,
					 .eps = push->eps,
					 .beta1 = push->beta1,
					 .beta2 = push->beta2,
					 .step = push->step};
	void *copy;
	if (payload_bytes != square_bytes + count * shard->layout.row_elements * sizeof(float))
		return gw_fail(GW_PROTOCOL, "gradients of %u rows of %llu elements in %zu bytes", count,
			       (unsigned long long)shard->layout.row_elements, payload_bytes);
	gw_status status = gw_shard_prepare(table, shard, optimizer.kind);
	if (status != GW_OK)
		return status;
	/* Squares and gradients lie right behind the numbers. */
	const uint8_t *numbers = gw_tensor_call_numbers(rows, (size_t)count * 8 + payload_bytes, &copy);
	if (!numbers)
		return GW_NO_MEMORY;
	(void)payload;
	gw_tensor_table_take_scratch(table, &scratch);
	const uint8_t *squares = numbers + (size_t)count * 8;
	status = gw_row_store_push(shard->store, &optimizer, (const void *)numbers, count,
				   (const void *)(squares + square_bytes), square_bytes ? (const void *)squares : NULL,
				   &scratch);
	gw_tensor_table_give_scratch(table, &scratch);
	gw_free(copy);
	if (status == GW_OK)
		atomic_fetch_add_explicit(&shard->counts.pushed, count, memory_order_relaxed);
	return status;
}

static gw_status answer_push(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	(void)reply;
	struct gw_tensor_push_call push;
	struct gw_shard *shard = NULL;
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	gw_status status = gw_tensor_push_parse(call->bytes, call->byte_count, &push, &rows, &payload, &payload_bytes);
	if (status == GW_OK)
		status = gw_tensor_table_find(context, push.rows.birth, &shard);
	if (status != GW_OK)
		return status;
	status = push_rows(context, shard, &push, rows, payload, payload_bytes);
	gw_shard_leave(context, shard);
	return status;
}

/* A count goes over the rows in turns with the thread's other work. */
struct count_work {
	struct gw_tensor_table *table;
	struct gw_shard *shard;
	uint64_t at, found;
};

static void count_end(void *work)
{
	struct count_work *count = work;
	gw_shard_leave(count->table, count->shard);
}

static gw_status answer_count(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	struct gw_tensor_rows_call parsed;
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	struct count_work *work = gw_reply_work(reply, sizeof(*work), count_end);
	if (!work)
		return GW_NO_MEMORY;
	gw_status status =
		gw_tensor_rows_parse(call->bytes, call->byte_count, &parsed, &rows, &payload, &payload_bytes);
	if (status == GW_OK && !work->shard) {
		work->table = context;
		status = gw_tensor_table_find(context, parsed.birth, &work->shard);
	}
	if (status != GW_OK)
		return status;
	uint64_t all = gw_row_store_rows(work->shard->store), found = 0;
	uint64_t step = COUNT_PIECE_BYTES / work->shard->layout.row_bytes + 1;
	if (all - work->at < step)
		step = all - work->at;
	status = gw_row_store_count_nonzero(work->shard->store, work->at, step, &found);
	if (status != GW_OK)
		return status;
	work->at += step;
	work->found += found;
	return work->at < all ? GW_AGAIN : reply_number(reply, work->found);
}

gw_status gw_tensor_service_set(struct gw_service *service, struct gw_tensor_table *table)
{
	static const struct {
		uint16_t op;
		gw_handler handler;
	} handlers[] = {
		{GW_OP_TENSOR_CREATE, answer_create},       {GW_OP_TENSOR_COMPLETE, answer_complete},
		{GW_OP_TENSOR_LIST, answer_list},           {GW_OP_TENSOR_DELETE, answer_delete},
		{GW_OP_TENSOR_PULL, answer_pull},           {GW_OP_TENSOR_UPDATE, answer_update},
		{GW_OP_TENSOR_PUSH, answer_push},           {GW_OP_TENSOR_COUNT, answer_count},
		{GW_OP_TENSOR_HOLD, answer_hold},           {GW_OP_TENSOR_END_JOB, answer_end_job},
		{GW_OP_TENSOR_SAVE, gw_tensor_answer_save}, {GW_OP_TENSOR_RESTORE, gw_tensor_answer_restore},
	};
	gw_status status = GW_OK;
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]) && status == GW_OK; i++)
		status = gw_service_handle(service, handlers[i].op, handlers[i].handler, table);
	return status;
}
