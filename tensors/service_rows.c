/* Handlers of the calls on rows: pull, update, push, count. The threads that serve connections run them. A call may be
 * long, so it runs in slices of about SLICE_COST each, and never waits for a row that another thread uses.
 *
 *   first run: parse, find the shard, check lengths ─▶ a slice over some rows ─▶ GW_AGAIN ─▶ a slice … ─▶ the reply
 *
 * The call references the shard from the first run to the last, so that it succeeds even if its tensor is deleted
 * meanwhile. Writes count their finished rows in the reply's progress. So if a client is lost during a call and repeats
 * the call, every row is still written only once.
 */
#include <stdatomic.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tensors/service_private.h"

#define SLICE_COST (256u << 10)

static void rows_work_end(void *opaque)
{
	struct gw_rows_work *work = opaque;
	if (!work->table)
		return;
	if (work->pushes)
		gw_tensor_table_release_scratch(work->table, &work->scratch);
	gw_shard_unref(work->table, work->shard);
	gw_free(work->copy);
}

gw_status gw_rows_work_begin(struct gw_tensor_table *table, struct gw_reply *reply, uint64_t epoch,
			     struct gw_rows_work **out)
{
	struct gw_rows_work *work = *out = gw_reply_work(reply, sizeof(*work), rows_work_end);
	if (!work)
		return GW_NO_MEMORY;
	work->slice.cost = SLICE_COST;
	if (work->table)
		return GW_OK;
	gw_status status = gw_tensor_table_find(table, epoch, &work->shard);
	if (status != GW_OK)
		return status;
	work->table = table;
	work->slice.at = *gw_reply_progress(reply);
	return GW_OK;
}

const uint8_t *gw_rows_work_numbers(struct gw_rows_work *work, const uint8_t *bytes, size_t byte_count)
{
	if (work->copy || (uintptr_t)bytes % 8 == 0)
		return work->copy ? work->copy : bytes;
	work->copy = gw_malloc(byte_count);
	if (work->copy)
		memcpy(work->copy, bytes, byte_count);
	return work->copy;
}

gw_status gw_rows_work_yield(const struct gw_rows_work *work, struct gw_reply *reply, gw_status status)
{
	if (status == GW_AGAIN && work->slice.taken)
		gw_reply_wait(reply);
	return status;
}

gw_status gw_tensor_reply_number(struct gw_reply *reply, uint64_t number)
{
	uint8_t *out = gw_reply_extend(reply, sizeof(number));
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, &number, sizeof(number));
	return GW_OK;
}

static gw_status pull_rows(struct gw_rows_work *work, const uint8_t *rows, uint32_t count, struct gw_reply *reply)
{
	struct gw_shard *shard = work->shard;
	uint64_t bytes = count * shard->layout.row_bytes;
	uint32_t all;
	if (bytes > GW_TENSOR_PULL_BYTES && count > 1)
		return gw_fail(GW_PROTOCOL, "%u rows of %llu bytes were asked for in one call", count,
			       (unsigned long long)shard->layout.row_bytes);
	const uint8_t *numbers = gw_rows_work_numbers(work, rows, (size_t)count * 8);
	if (!numbers || (!work->begun && !gw_reply_extend(reply, (uint32_t)bytes)))
		return GW_NO_MEMORY;
	work->begun = true;
	return gw_row_store_read_slice(shard->store, &work->slice, (const void *)numbers, count,
				       gw_reply_data(reply, &all));
}

gw_status gw_tensor_answer_pull(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_rows_call pull;
	struct gw_rows_work *work;
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	gw_status status = gw_tensor_rows_parse(call->bytes, call->byte_count, &pull, &rows, &payload, &payload_bytes);
	if (status == GW_OK && payload_bytes)
		status = gw_fail(GW_PROTOCOL, "%zu bytes behind the numbers of rows to read", payload_bytes);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, pull.epoch, &work);
	if (status == GW_OK)
		status = gw_rows_work_yield(work, reply, pull_rows(work, rows, pull.count, reply));
	if (status != GW_OK)
		return status;
	struct gw_shard_counts *counts = &work->shard->counts;
	atomic_fetch_add_explicit(&counts->pulls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&counts->pulled, pull.count, memory_order_relaxed);
	if (pull.torn)
		atomic_fetch_add_explicit(&counts->torn, pull.count, memory_order_relaxed);
	return GW_OK;
}

static gw_status update_rows(struct gw_rows_work *work, uint32_t count, const uint8_t *rows, size_t payload_bytes,
			     struct gw_reply *reply)
{
	struct gw_shard *shard = work->shard;
	if (payload_bytes != count * shard->layout.row_bytes)
		return gw_fail(GW_PROTOCOL, "%u rows of %llu bytes to write in %zu bytes", count,
			       (unsigned long long)shard->layout.row_bytes, payload_bytes);
	/* The rows directly follow the numbers, and need not be aligned. */
	const uint8_t *numbers = gw_rows_work_numbers(work, rows, (size_t)count * 8);
	if (!numbers)
		return GW_NO_MEMORY;
	gw_status status = gw_row_store_write_slice(shard->store, &work->slice, (const void *)numbers, count,
						    rows + (size_t)count * 8);
	*gw_reply_progress(reply) = work->slice.at;
	return status;
}

gw_status gw_tensor_answer_update(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_rows_call update;
	struct gw_rows_work *work;
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	gw_status status =
		gw_tensor_rows_parse(call->bytes, call->byte_count, &update, &rows, &payload, &payload_bytes);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, update.epoch, &work);
	if (status == GW_OK)
		status = gw_rows_work_yield(work, reply, update_rows(work, update.count, rows, payload_bytes, reply));
	if (status == GW_OK)
		atomic_fetch_add_explicit(&work->shard->counts.written, update.count, memory_order_relaxed);
	return status;
}

/* Requests the optimizer's state. If the state does not exist yet, waits once and checks again. If it still does not
 * exist, replies 0, and the client asks again; meanwhile the server can serve other requests on the client's
 * connection. */
static gw_status push_ask(struct gw_rows_work *work, enum gw_optimizer_kind kind, struct gw_reply *reply)
{
	gw_status status = gw_shard_prepare(work->table, work->shard, kind);
	if (status == GW_AGAIN && !work->asked) {
		work->asked = true;
		gw_reply_wait(reply);
		return status;
	}
	return status == GW_AGAIN ? gw_tensor_reply_number(reply, 0) : status;
}

static gw_status push_rows(struct gw_rows_work *work, const struct gw_tensor_push *push, const uint8_t *rows,
			   size_t payload_bytes, struct gw_reply *reply)
{
	struct gw_shard *shard = work->shard;
	uint32_t count = push->rows.count;
	uint64_t square_bytes = push->squares ? count * sizeof(float) : 0;
	enum gw_optimizer_kind kind = push->optimizer.kind;
	if (payload_bytes != square_bytes + count * shard->layout.row_elements * sizeof(float))
		return gw_fail(GW_PROTOCOL, "gradients of %u rows of %llu elements in %zu bytes", count,
			       (unsigned long long)shard->layout.row_elements, payload_bytes);
	if (count == 0)
		return push_ask(work, kind, reply);
	gw_status status = work->pushes ? GW_OK : gw_shard_prepare(work->table, shard, kind);
	if (status != GW_OK) {
		if (status == GW_AGAIN)
			gw_reply_wait(reply);
		return status;
	}
	/* Squares and gradients directly follow the numbers. */
	const uint8_t *numbers = gw_rows_work_numbers(work, rows, (size_t)count * 8 + payload_bytes);
	if (!numbers)
		return GW_NO_MEMORY;
	if (!work->pushes)
		gw_tensor_table_acquire_scratch(work->table, &work->scratch);
	work->pushes = true;
	const uint8_t *squares = numbers + (size_t)count * 8;
	status = gw_row_store_push_slice(shard->store, &work->slice, &push->optimizer, (const void *)numbers, count,
					 (const void *)(squares + square_bytes),
					 square_bytes ? (const void *)squares : NULL, &work->scratch);
	*gw_reply_progress(reply) = work->slice.at;
	return status;
}

gw_status gw_tensor_answer_push(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_push push;
	struct gw_rows_work *work;
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	gw_status status = gw_tensor_push_parse(call->bytes, call->byte_count, &push, &rows, &payload, &payload_bytes);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, push.rows.epoch, &work);
	if (status == GW_OK)
		status = gw_rows_work_yield(work, reply, push_rows(work, &push, rows, payload_bytes, reply));
	if (status == GW_OK)
		atomic_fetch_add_explicit(&work->shard->counts.pushed, push.rows.count, memory_order_relaxed);
	return status;
}

gw_status gw_tensor_answer_count(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_tensor_range_call range;
	struct gw_rows_work *work;
	uint64_t found = 0;
	gw_status status = gw_tensor_range_parse(call->bytes, call->byte_count, &range);
	if (status == GW_OK)
		status = gw_rows_work_begin(context, reply, range.epoch, &work);
	if (status != GW_OK)
		return status;
	status = gw_row_store_count_slice(work->shard->store, &work->slice, range.first, range.count, &found);
	work->found += status == GW_OK || status == GW_AGAIN ? found : 0;
	status = gw_rows_work_yield(work, reply, status);
	return status == GW_OK ? gw_tensor_reply_number(reply, work->found) : status;
}
