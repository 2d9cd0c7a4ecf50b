/* See time_counts.h. Fails as gathers do, and if memory runs out. */
#include "client/batch/time_counts.h"

#include <string.h>

#include "core/graph/book.h"
#include "core/graph/part.h"
#include "core/numbers/sort.h"
#include "core/numbers/time_key.h"

#define ROUND_ENTRIES 65536u /* keys of a round, unless it has more segments than that */

static uint32_t counts_parts(const struct gw_time_counts *op)
{
	return op->engine->client->meta->num_parts;
}

gw_status gw_time_counts_init(struct gw_time_counts *op, struct gw_engine *engine)
{
	memset(op, 0, sizeof(*op));
	op->engine = engine;
	return gw_gather_op_init(&op->gather, engine);
}

void gw_time_counts_free(struct gw_time_counts *op)
{
	struct gw_vec *vecs[] = {&op->nodes,  &op->ends,        &op->of,          &op->keys,    &op->limits,
				 &op->before, &op->segments[0], &op->segments[1], &op->sorting, &op->entries};
	for (size_t i = 0; i < sizeof(vecs) / sizeof(vecs[0]); i++)
		gw_vec_free(vecs[i]);
	gw_recv_buffer_free(&op->received);
	gw_gather_op_free(&op->gather);
}

void gw_time_counts_cancel(struct gw_time_counts *op)
{
	if (gw_gather_op_is_open(&op->gather))
		gw_gather_op_cancel(&op->gather);
}

static void gather_rows(struct gw_time_counts *op, const struct gw_rows *rows, const int64_t *ids, bool unique,
			void (*done)(struct gw_gather_op *gather, gw_status status))
{
	gw_status status = gw_recv_buffer_reserve(&op->received, &op->engine->slab, op->n * rows->row_bytes);
	if (status != GW_OK) {
		op->done(op, status);
		return;
	}
	op->gather.done = done;
	op->gather.owner = op;
	const struct gw_landing to = gw_landing_in(&op->received);
	gw_gather_op_start(&op->gather, op->job, rows, ids, op->n, &to, unique);
}

/* --- Counting. --- */

static void count_round(struct gw_time_counts *op);

static void take_count(struct gw_time_counts *op, const struct gw_time_segment *segment)
{
	uint64_t *before = op->before.data;
	for (uint32_t i = 0; i < segment->count; i++)
		before[(uint64_t)(segment->first + i) * (counts_parts(op) + 1) + segment->part + 1] = segment->low;
}

/* Segments without entries are answers. Returns how many of these segments stay. */
static uint32_t keep_open(struct gw_time_counts *op, struct gw_time_segment *segments, uint32_t count)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (segments[i].low == segments[i].high)
			take_count(op, &segments[i]);
		else
			segments[kept++] = segments[i];
	}
	return kept;
}

static gw_status split_segments(struct gw_time_counts *op)
{
	const struct gw_time_segment *segments = op->segments[0].data;
	const int64_t *keys = (const int64_t *)(const void *)op->received.data;
	uint64_t room = 0, made = 0;
	for (uint64_t i = 0; i < op->segment_count; i++) {
		uint32_t most = gw_time_entries(&segments[i], op->most) + 1;
		room += segments[i].count < most ? segments[i].count : most;
	}
	if (gw_vec_reserve(&op->segments[1], room * sizeof(*segments)) != GW_OK)
		return GW_NO_MEMORY;
	struct gw_time_segment *next = op->segments[1].data;
	for (uint64_t i = 0; i < op->segment_count; i++) {
		uint32_t n = gw_time_entries(&segments[i], op->most);
		uint32_t split = gw_time_split(&segments[i], op->keys.data, keys, n, next + made);
		if (split == 0)
			return gw_fail(GW_PROTOCOL, "part %u: the index of the times \"%s\" of %s is not in order",
				       segments[i].part, op->times->name,
				       op->engine->client->ntypes[op->times->ntype].name);
		made += keep_open(op, next + made, split);
		keys += n;
	}
	struct gw_vec swapped = op->segments[0];
	op->segments[0] = op->segments[1];
	op->segments[1] = swapped;
	op->segment_count = made;
	return GW_OK;
}

static void keys_read(struct gw_gather_op *gather, gw_status status)
{
	struct gw_time_counts *op = gather->owner;
	if (status == GW_OK)
		status = split_segments(op);
	if (status == GW_OK)
		count_round(op);
	else
		op->done(op, status);
}

static void count_end(struct gw_time_counts *op)
{
	uint32_t parts = counts_parts(op);
	uint64_t *before = op->before.data;
	for (uint64_t i = 0; i < op->time_count; i++, before += parts + 1) {
		before[0] = 0;
		for (uint32_t p = 0; p < parts; p++)
			before[p + 1] += before[p];
	}
	op->done(op, GW_OK);
}

static void count_round(struct gw_time_counts *op)
{
	const uint64_t *starts = op->times->keys.starts;
	const struct gw_time_segment *segments = op->segments[0].data;
	if (op->segment_count == 0) {
		count_end(op);
		return;
	}
	uint64_t share = ROUND_ENTRIES / op->segment_count;
	op->most = share > GW_TIME_ENTRIES_MAX ? GW_TIME_ENTRIES_MAX : share > 0 ? (uint32_t)share : 1;
	op->n = 0;
	for (uint64_t i = 0; i < op->segment_count; i++)
		op->n += gw_time_entries(&segments[i], op->most);
	if (gw_vec_reserve(&op->entries, op->n * sizeof(int64_t)) != GW_OK) {
		op->done(op, GW_NO_MEMORY);
		return;
	}
	int64_t *entries = op->entries.data;
	for (uint64_t i = 0; i < op->segment_count; i++) {
		uint32_t n = gw_time_entries(&segments[i], op->most);
		for (uint32_t k = 0; k < n; k++)
			*entries++ = (int64_t)(starts[segments[i].part] + gw_time_entry(&segments[i], n, k));
	}
	gather_rows(op, &op->times->keys, op->entries.data, true, keys_read);
}

/* The times, ascending, each once, without those that are before every time of the column. */
static gw_status sort_times_once(struct gw_time_counts *op, bool real, const void *at, uint64_t n)
{
	if (gw_vec_reserve(&op->of, 2 * n * sizeof(uint32_t)) != GW_OK ||
	    gw_vec_reserve(&op->keys, n * sizeof(uint64_t)) != GW_OK ||
	    gw_vec_reserve(&op->limits, n * sizeof(struct gw_time_range)) != GW_OK)
		return GW_NO_MEMORY;
	uint32_t *of = op->of.data, *sorted = of + n, times = 0;
	uint64_t *own = op->keys.data, last = 0;
	int64_t *keys = op->keys.data;
	struct gw_time_range *limits = op->limits.data;
	for (uint64_t i = 0; i < n; i++) {
		sorted[i] = (uint32_t)i;
		own[i] = (uint64_t)gw_time_key(real ? GW_FLOAT64 : GW_INT64, (const uint8_t *)at + i * 8) ^ 1ull << 63;
	}
	gw_status status = gw_sort_rows(own, sorted, n, &op->sorting);
	for (uint64_t i = 0; i < n && status == GW_OK; i++) {
		const struct gw_time time = gw_time_at(real, at, sorted[i]);
		const struct gw_time_range range = gw_time_range_of(op->times->real, NULL, &time, false);
		bool never = range.from > range.until;
		if (!never && (times == 0 || own[i] != last)) {
			last = own[i];
			keys[times] = range.until;
			limits[times++] = gw_time_range_of(op->times->real_ends, NULL, &time, false);
		}
		of[sorted[i]] = never ? GW_TIME_NEVER : times - 1;
	}
	op->time_count = times;
	return status;
}

static gw_status count_begin(struct gw_time_counts *op, bool real, const void *at, uint64_t n)
{
	uint32_t parts = counts_parts(op);
	const uint64_t *starts = op->times->keys.starts;
	gw_status status = sort_times_once(op, real, at, n);
	if (status == GW_OK)
		status = gw_vec_reserve(&op->before, op->time_count * (parts + 1ull) * sizeof(uint64_t));
	if (status == GW_OK)
		status = gw_vec_reserve(&op->segments[0], parts * sizeof(struct gw_time_segment));
	struct gw_time_segment *segments = op->segments[0].data;
	op->segment_count = 0;
	for (uint32_t p = 0; p < parts && op->time_count > 0 && status == GW_OK; p++) {
		segments[op->segment_count] = gw_time_segment_begin(p, op->time_count, starts[p + 1] - starts[p]);
		op->segment_count += keep_open(op, &segments[op->segment_count], 1);
	}
	return status;
}

void gw_time_counts_start(struct gw_time_counts *op, struct gw_job *job, const struct gw_node_times *times, bool real,
			  const void *at, uint64_t n)
{
	op->job = job;
	op->times = times;
	gw_status status = count_begin(op, real, at, n);
	if (status == GW_OK)
		count_round(op);
	else
		op->done(op, status);
}

/* --- Finding. --- */

const uint64_t *gw_time_counts_before(const struct gw_time_counts *op, uint32_t time)
{
	return (const uint64_t *)op->before.data + (uint64_t)time * (counts_parts(op) + 1);
}

int64_t *gw_time_counts_ask(struct gw_time_counts *op, uint64_t n)
{
	op->n = n;
	return gw_vec_reserve(&op->entries, n * sizeof(int64_t)) == GW_OK ? op->entries.data : NULL;
}

int64_t gw_time_counts_entry(const struct gw_time_counts *op, uint32_t time, uint64_t number)
{
	const uint64_t *before = gw_time_counts_before(op, time);
	uint32_t part = gw_book_owner(before, counts_parts(op), number);
	return (int64_t)(op->times->nodes.starts[part] + number - before[part]);
}

static gw_status take_nodes(struct gw_time_counts *op)
{
	const struct gw_rows *rows = &op->times->nodes;
	const int64_t *entries = op->entries.data;
	if (gw_vec_reserve(&op->nodes, op->n * sizeof(int64_t)) != GW_OK)
		return GW_NO_MEMORY;
	int64_t *nodes = op->nodes.data;
	for (uint64_t i = 0; i < op->n; i++) {
		uint64_t row = gw_load_id(op->received.data, (uint8_t)rows->row_bytes, i);
		uint32_t part = gw_book_owner(rows->starts, counts_parts(op), (uint64_t)entries[i]);
		if (row >= rows->starts[part + 1] - rows->starts[part])
			return gw_fail(GW_PROTOCOL,
				       "part %u: the index of the times \"%s\" of %s names row %llu of %llu", part,
				       op->times->name, op->engine->client->ntypes[op->times->ntype].name,
				       (unsigned long long)row,
				       (unsigned long long)(rows->starts[part + 1] - rows->starts[part]));
		nodes[i] = (int64_t)(rows->starts[part] + row);
	}
	return GW_OK;
}

static void ends_read(struct gw_gather_op *gather, gw_status status)
{
	struct gw_time_counts *op = gather->owner;
	const struct gw_node_times *times = op->times;
	if (status == GW_OK)
		status = gw_vec_reserve(&op->ends, op->n * sizeof(int64_t));
	int64_t *ends = op->ends.data;
	for (uint64_t i = 0; i < op->n && status == GW_OK; i++)
		ends[i] = gw_time_key(times->end_dtype, op->received.data + i * times->ends.row_bytes);
	op->done(op, status);
}

static void nodes_read(struct gw_gather_op *gather, gw_status status)
{
	struct gw_time_counts *op = gather->owner;
	if (status == GW_OK)
		status = take_nodes(op);
	if (status == GW_OK && op->times->end)
		gather_rows(op, &op->times->ends, op->nodes.data, false, ends_read);
	else
		op->done(op, status);
}

void gw_time_counts_find(struct gw_time_counts *op)
{
	gather_rows(op, &op->times->nodes, op->entries.data, false, nodes_read);
}
