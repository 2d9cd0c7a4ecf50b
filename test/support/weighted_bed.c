/* Lists with weights and their driver: see weighted_bed.h. What a round asks for is copied to one block of memory at
 * odd addresses, with a byte between the spans. */
#include "test/support/weighted_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/alias.h"
#include "core/numbers/dtype.h"
#include "sampler/pick.h"

void *weighted_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes + 1);
	assert_non_null(memory);
	return memory;
}

void weighted_bed_begin(struct weighted_bed *bed, uint64_t n, const uint64_t *degrees, gw_dtype dtype)
{
	*bed = (struct weighted_bed){.n = n, .dtype = dtype};
	bed->indptr = weighted_alloc((n + 1) * sizeof(uint64_t));
	bed->vertices = weighted_alloc(n * sizeof(uint64_t));
	bed->groups = weighted_alloc(n * sizeof(uint32_t));
	for (uint64_t i = 0; i < n; i++) {
		bed->indptr[i + 1] = bed->indptr[i] + degrees[i];
		bed->vertices[i] = i;
	}
	bed->edges = bed->indptr[n];
	bed->weights = weighted_alloc(bed->edges * gw_dtype_bytes(dtype));
}

void weighted_bed_table(struct weighted_bed *bed)
{
	bed->table = weighted_alloc(bed->edges * 8);
	assert_int_equal(gw_alias_build(bed->indptr, bed->n, bed->dtype, bed->weights, 1, bed->table), GW_OK);
}

void weighted_bed_free(struct weighted_bed *bed)
{
	free(bed->indptr);
	free(bed->vertices);
	free(bed->groups);
	free(bed->table);
	free(bed->weights);
}

struct slow_list weighted_bed_list(const struct weighted_bed *bed, uint64_t list)
{
	return (struct slow_list){
		.n = bed->indptr[list + 1] - bed->indptr[list],
		.dtype = bed->dtype,
		.weights = (uint8_t *)bed->weights + bed->indptr[list] * gw_dtype_bytes(bed->dtype),
		.table = bed->table ? bed->table + 2 * bed->indptr[list] : NULL,
	};
}

struct gw_draw weighted_bed_draw(const struct weighted_bed *bed, int32_t fanout, bool replace)
{
	struct gw_draw draw = {.rule = {.key = 78, .fanout = fanout, .replace = replace}, .kind = &gw_sample_weighted};
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){gw_dtype_bytes(bed->dtype), bed->dtype};
	if (bed->table)
		draw.forms[GW_COLUMN_ALIAS] = (struct gw_column_form){8, GW_UINT32};
	return draw;
}

void weighted_driven_free(struct weighted_driven *driven)
{
	gw_pick_scratch_free(&driven->scratch);
	gw_vec_free(&driven->needs);
	gw_vec_free(&driven->next);
	gw_vec_free(&driven->got);
	gw_vec_free(&driven->bytes);
}

static gw_status weighted_bring(struct weighted_driven *driven, const struct weighted_bed *bed,
				const struct gw_draw *draw)
{
	struct gw_draw_run *run = &driven->run;
	struct gw_vec asked = driven->next;
	uint64_t bytes = 0;
	driven->next = driven->needs;
	driven->needs = asked;
	const struct gw_need *needs = driven->needs.data;
	for (uint64_t i = 0; i < run->next_count; i++) {
		assert_true(needs[i].count > 0 && needs[i].list < run->lists.n);
		assert_true(needs[i].first + needs[i].count <= run->lists.degrees[needs[i].list]);
		assert_false(run->done[needs[i].list]);
		bytes += needs[i].count * draw->forms[needs[i].column].entry_bytes + 1;
	}
	if (gw_vec_reserve(&driven->got, run->next_count * sizeof(void *)) != GW_OK ||
	    gw_vec_reserve(&driven->bytes, bytes + 1) != GW_OK)
		return GW_NO_MEMORY;
	uint8_t *to = (uint8_t *)driven->bytes.data + 1;
	for (uint64_t i = 0; i < run->next_count; i++) {
		uint64_t size = draw->forms[needs[i].column].entry_bytes;
		const uint8_t *column = needs[i].column == GW_COLUMN_WEIGHT ? bed->weights : (uint8_t *)bed->table;
		((const void **)driven->got.data)[i] = to;
		memcpy(to, column + (run->lists.begins[needs[i].list] - bed->shift + needs[i].first) * size,
		       needs[i].count * size);
		to += needs[i].count * size + 1;
	}
	driven->asked += run->next_count;
	run->needs = needs;
	run->got = driven->got.data;
	run->need_count = run->next_count;
	return GW_OK;
}

gw_status weighted_drive(struct weighted_driven *driven, const struct weighted_bed *bed, const struct gw_draw *draw,
			 uint64_t at, uint32_t n, uint64_t *positions)
{
	struct gw_draw_run *run = &driven->run;
	const struct gw_columns columns = {{[GW_COLUMN_ALIAS] = bed->table, [GW_COLUMN_WEIGHT] = bed->weights}};
	const struct gw_columns *each[GW_RUN_MAX];
	const struct gw_draw_columns one = {.all = &columns}, several = {.each = each, .firsts = bed->indptr + at};
	memset(run, 0xee, sizeof(*run));
	run->lists.n = n;
	run->lists.vertices = bed->vertices + at;
	run->lists.groups = bed->grouped ? bed->groups + at : NULL;
	run->scratch = &driven->scratch;
	run->next = &driven->next;
	run->next_count = 0;
	run->element_bytes = 0;
	run->at_hand = !bed->at_hand ? NULL : bed->shift ? &several : &one;
	run->lists.starts[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		each[i] = &columns;
		run->lists.begins[i] = bed->indptr[at + i] + bed->shift;
		run->lists.degrees[i] = bed->indptr[at + i + 1] - bed->indptr[at + i];
		run->lists.starts[i + 1] = run->lists.starts[i] + gw_draw_bound(draw, run->lists.degrees[i]);
		run->counts[i] = 0;
		run->done[i] = false;
	}
	gw_status status = draw->kind->round(draw, run, 0, positions);
	for (uint32_t number = 1; status == GW_AGAIN; number++) {
		assert_true(number <= 3);
		status = weighted_bring(driven, bed, draw);
		run->next_count = 0;
		if (status == GW_OK)
			status = draw->kind->round(draw, run, number, positions);
		driven->rounds++;
	}
	for (uint32_t i = 0; status == GW_OK && i < n; i++)
		assert_true(run->done[i]);
	return status;
}

uint64_t weighted_bed_bounds(const struct weighted_bed *bed, const struct gw_draw *draw)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < bed->n; i++)
		sum += gw_draw_bound(draw, bed->indptr[i + 1] - bed->indptr[i]);
	return sum;
}

void weighted_bed_repeat(struct weighted_bed *bed, uint64_t n, gw_dtype dtype, const double *weights, uint64_t degree)
{
	uint64_t *degrees = weighted_alloc(n * sizeof(uint64_t));
	for (uint64_t i = 0; i < n; i++)
		degrees[i] = degree;
	weighted_bed_begin(bed, n, degrees, dtype);
	for (uint64_t e = 0; e < bed->edges; e++)
		slow_weight_set(dtype, bed->weights, e, weights[e % degree]);
	free(degrees);
}
