/* See temporal_bed.h. Times are compared as long double, which holds every int64 and every double exactly. */
#include "test/support/temporal_bed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/part.h"
#include "sampler/pick.h"

static void *bed_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes + 1);
	assert_non_null(memory);
	return memory;
}

void temporal_bed_begin(struct temporal_bed *bed, uint64_t n, const uint64_t *degrees, gw_dtype dtype)
{
	*bed = (struct temporal_bed){.n = n, .dtype = dtype, .end_dtype = dtype};
	bed->indptr = bed_alloc((n + 1) * sizeof(uint64_t));
	for (uint64_t i = 0; i < n; i++)
		bed->indptr[i + 1] = bed->indptr[i] + degrees[i];
	bed->edges = bed->indptr[n];
	bed->indices = bed_alloc(bed->edges * sizeof(uint64_t));
	bed->times = bed_alloc(bed->edges * gw_dtype_bytes(dtype));
}

void temporal_bed_ends(struct temporal_bed *bed, gw_dtype dtype)
{
	bed->end_dtype = dtype;
	bed->ends = bed_alloc(bed->edges * gw_dtype_bytes(dtype));
}

void temporal_bed_free(struct temporal_bed *bed)
{
	free(bed->indptr);
	free(bed->indices);
	free(bed->times);
	free(bed->ends);
	free(bed->fence);
}

struct gw_time temporal_whole(int64_t time)
{
	return (struct gw_time){.is_real = false, .value.whole = time};
}

struct gw_time temporal_real(double time)
{
	return (struct gw_time){.is_real = true, .value.real = time};
}

static long double time_value(struct gw_time time)
{
	return time.is_real ? (long double)time.value.real : (long double)time.value.whole;
}

void temporal_set(gw_dtype dtype, void *entries, uint64_t at, struct gw_time time)
{
	long double value = time_value(time);
	if (dtype == GW_INT32)
		((int32_t *)entries)[at] = (int32_t)floorl(value);
	else if (dtype == GW_INT64)
		((int64_t *)entries)[at] = (int64_t)floorl(value);
	else if (dtype == GW_FLOAT32)
		((float *)entries)[at] = (float)value;
	else
		((double *)entries)[at] = (double)value;
}

static long double entry_value(gw_dtype dtype, const void *entries, uint64_t at)
{
	if (dtype == GW_INT32)
		return ((const int32_t *)entries)[at];
	if (dtype == GW_INT64)
		return ((const int64_t *)entries)[at];
	return dtype == GW_FLOAT32 ? (long double)((const float *)entries)[at]
				   : (long double)((const double *)entries)[at];
}

void temporal_bed_sort(struct temporal_bed *bed)
{
	uint32_t width = gw_dtype_bytes(bed->dtype), end_width = gw_dtype_bytes(bed->end_dtype);
	uint8_t kept[8], *times = bed->times, *ends = bed->ends;
	for (uint64_t v = 0; v < bed->n; v++) {
		for (uint64_t i = bed->indptr[v] + 1; i < bed->indptr[v + 1]; i++) {
			for (uint64_t at = i; at > bed->indptr[v]; at--) {
				if (entry_value(bed->dtype, times, at - 1) <= entry_value(bed->dtype, times, at))
					break;
				memcpy(kept, times + at * width, width);
				memcpy(times + at * width, times + (at - 1) * width, width);
				memcpy(times + (at - 1) * width, kept, width);
				if (!ends)
					continue;
				memcpy(kept, ends + at * end_width, end_width);
				memcpy(ends + at * end_width, ends + (at - 1) * end_width, end_width);
				memcpy(ends + (at - 1) * end_width, kept, end_width);
			}
		}
	}
	bed->fence = bed_alloc((bed->edges / 64 + 1) * sizeof(int64_t));
	for (uint64_t j = 0; j * 64 < bed->edges; j++)
		bed->fence[j] = gw_time_key(bed->dtype, times + j * 64 * width);
}

struct gw_draw temporal_bed_draw(struct temporal_bed *bed, const struct gw_sampling_kind *kind, int32_t fanout,
				 bool replace)
{
	struct gw_draw draw = {.rule = {.key = 4711, .fanout = fanout, .replace = replace}, .kind = kind};
	draw.forms[GW_COLUMN_TIME] = (struct gw_column_form){gw_dtype_bytes(bed->dtype), bed->dtype};
	if (bed->ends)
		draw.forms[GW_COLUMN_END] = (struct gw_column_form){gw_dtype_bytes(bed->end_dtype), bed->end_dtype};
	if (bed->fence)
		draw.forms[GW_COLUMN_FENCE] = (struct gw_column_form){sizeof(int64_t), GW_INT64};
	for (uint32_t g = 0; g < TEMPORAL_SEEDS; g++) {
		struct gw_time_range range = gw_time_range_of(
			gw_time_is_real(bed->dtype), bed->windowed ? &bed->from[g] : NULL, &bed->until[g], bed->strict);
		bed->from_keys[g] = range.from;
		bed->until_keys[g] = range.until;
	}
	draw.groups = (struct gw_groups){
		.count = TEMPORAL_SEEDS, .from = bed->from_keys, .until = bed->until_keys, .strict_ends = bed->strict};
	assert_int_equal(draw.kind->check(&draw), GW_OK);
	return draw;
}

static const void *column_of(const struct temporal_bed *bed, enum gw_column column)
{
	assert_true(column == GW_COLUMN_TIME || column == GW_COLUMN_END || column == GW_COLUMN_FENCE);
	return column == GW_COLUMN_TIME ? bed->times : column == GW_COLUMN_END ? bed->ends : (void *)bed->fence;
}

/* Those of the round before are freed: a kind must not use them any more. */
static uint8_t *copy_entries(const struct temporal_bed *bed, const struct gw_draw *draw, struct gw_picks_rounds *rounds,
			     uint8_t *before, uint64_t *read)
{
	uint64_t room = 1, at = 1;
	for (uint64_t i = 0; i < rounds->read_count; i++)
		room += (rounds->reads[i].count * draw->forms[rounds->reads[i].column].entry_bytes + 1) & ~1ull;
	uint8_t *copies = bed_alloc(room);
	for (uint64_t i = 0; i < rounds->read_count; i++) {
		const struct gw_column_read *entries = &rounds->reads[i];
		uint64_t width = draw->forms[entries->column].entry_bytes;
		assert_true(entries->count > 0 && width > 0);
		assert_true(entries->first + entries->count <= gw_column_entry(entries->column, bed->edges));
		memcpy(copies + at, (const uint8_t *)column_of(bed, entries->column) + entries->first * width,
		       entries->count * width);
		if (bed->lie)
			bed->lie(bed, entries, copies + at);
		rounds->got[i] = copies + at;
		at += (entries->count * width + 1) & ~1ull;
		*read += entries->count;
	}
	free(before);
	return copies;
}

static gw_status drive_by_rounds(const struct temporal_bed *bed, const struct gw_draw *draw, const uint64_t *vertices,
				 const uint32_t *groups, uint64_t n, struct gw_picks *picks, uint64_t *read)
{
	struct gw_picks_rounds rounds = {0};
	uint64_t *begins = malloc(n * 8), *ends = malloc(n * 8);
	uint8_t *copies = NULL;
	assert_true(begins && ends);
	for (uint64_t i = 0; i < n; i++) {
		begins[i] = bed->indptr[vertices[i]];
		ends[i] = bed->indptr[vertices[i] + 1];
	}
	gw_status status = gw_picks_rounds_begin(&rounds, picks, draw, vertices, groups, begins, ends, n);
	free(begins);
	free(ends);
	*read = 0;
	if (status == GW_OK)
		status = gw_picks_rounds_next(&rounds);
	for (int round = 1; status == GW_AGAIN; round++) {
		assert_true(round < 5);
		copies = copy_entries(bed, draw, &rounds, copies, read);
		status = gw_picks_rounds_next(&rounds);
	}
	free(copies);
	gw_picks_rounds_free(&rounds);
	return status;
}

gw_status temporal_drive(const struct temporal_bed *bed, const struct gw_draw *draw, const uint64_t *vertices,
			 const uint32_t *groups, uint64_t n, bool by_reads, struct gw_picks *picks, uint64_t *read)
{
	uint64_t ignored;
	if (by_reads)
		return drive_by_rounds(bed, draw, vertices, groups, n, picks, read ? read : &ignored);
	const struct gw_columns columns = {
		{[GW_COLUMN_TIME] = bed->times, [GW_COLUMN_END] = bed->ends, [GW_COLUMN_FENCE] = bed->fence}};
	const struct gw_adjacency adjacency = {.indptr = bed->indptr,
					       .indices = bed->indices,
					       .rows = bed->n,
					       .edges = bed->edges,
					       .columns = 1,
					       .indptr_bytes = 8,
					       .index_bytes = 8};
	const struct gw_picks_memory memory = {
		.adjacency = &adjacency, .columns = &columns, .entries_max = bed->entries_max};
	return gw_picks_from_memory(picks, &memory, draw, vertices, groups, n);
}

uint64_t temporal_eligible(const struct temporal_bed *bed, uint64_t vertex, uint32_t group, uint64_t *out)
{
	uint64_t count = 0;
	long double until = time_value(bed->until[group]), from = time_value(bed->from[group]);
	for (uint64_t e = bed->indptr[vertex]; e < bed->indptr[vertex + 1]; e++) {
		long double time = entry_value(bed->dtype, bed->times, e);
		bool sees = bed->strict ? time < until : time <= until; /* false for NaN */
		if (!sees || (bed->windowed && !(time >= from)))
			continue;
		if (bed->ends && entry_value(bed->end_dtype, bed->ends, e) <= until)
			continue;
		out[count++] = e;
	}
	return count;
}

uint64_t temporal_law(const struct temporal_bed *bed, const struct gw_draw *draw, uint64_t vertex, uint32_t group,
		      uint64_t *out)
{
	uint64_t degree = bed->indptr[vertex + 1] - bed->indptr[vertex], *eligible = bed_alloc(degree * 8);
	uint64_t m = temporal_eligible(bed, vertex, group, eligible), count = gw_pick_count(&draw->rule, m);
	struct gw_pick_scratch scratch = {0};
	if (draw->kind == &gw_sample_temporal) {
		assert_int_equal(gw_pick_in(&draw->rule, vertex, group, m, &scratch, out), GW_OK);
		for (uint64_t i = 0; i < count; i++)
			out[i] = eligible[out[i]];
	} else {
		uint64_t most = draw->rule.fanout == GW_FANOUT_ALL ? m : (uint64_t)draw->rule.fanout;
		count = 0;
		for (uint64_t i = 0; i < m; i++) {
			uint64_t later = 0; /* how many are later than this one */
			for (uint64_t j = 0; j < m; j++) {
				long double of_i = entry_value(bed->dtype, bed->times, eligible[i]);
				long double of_j = entry_value(bed->dtype, bed->times, eligible[j]);
				later += of_j > of_i || (of_j == of_i && j > i);
			}
			if (later < most)
				out[count++] = eligible[i];
		}
	}
	gw_pick_scratch_free(&scratch);
	free(eligible);
	return count;
}
