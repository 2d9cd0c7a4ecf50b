/* What draws by time read, and what they refuse: few entries of long lists that have a fence, whole lists of others;
 * the same picks from both. A peer's times that do not ascend are refused with the vertex, and no bytes of a peer lead
 * out of a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/columns.h"
#include "test/support/temporal_bed.h"

static const struct gw_sampling_kind *const kinds[] = {&gw_sample_temporal, &gw_sample_last};

/* Lists whose times ascend, so that a fence and a scan see the same list. Times are 2 * (position / 3). */
static void ascending_bed(struct temporal_bed *bed, const uint64_t *degrees, uint64_t n)
{
	temporal_bed_begin(bed, n, degrees, GW_INT64);
	for (uint64_t v = 0; v < n; v++) {
		for (uint64_t e = bed->indptr[v]; e < bed->indptr[v + 1]; e++)
			temporal_set(GW_INT64, bed->times, e, temporal_whole((int64_t)((e - bed->indptr[v]) / 3 * 2)));
	}
	temporal_bed_sort(bed);
	for (uint32_t g = 0; g < TEMPORAL_SEEDS; g++) {
		uint64_t random = gw_mix64(g + 3);
		bed->until[g] = temporal_whole(g == 0 ? -1 : g == 1 ? 1 << 30 : (int64_t)(random % 800));
		bed->from[g] = temporal_whole(g % 3 == 0 ? -5 : (int64_t)(random % 800) - (int64_t)(random / 800 % 90));
	}
}

/* --- How much is read. --- */

static const uint64_t read_degrees[] = {11, 1, 40, 63, 64, 65, 100, 128, 129, 700, 50000, 3};
#define READ_LISTS (sizeof(read_degrees) / sizeof(read_degrees[0]))

static void long_lists_read_a_fence_and_blocks(void **state)
{
	(void)state;
	struct temporal_bed bed;
	ascending_bed(&bed, read_degrees, READ_LISTS);
	for (int windowed = 0; windowed < 2; windowed++) {
		bed.windowed = windowed;
		for (uint64_t v = 0; v < READ_LISTS; v++) {
			for (uint32_t g = 0; g < TEMPORAL_SEEDS; g++) {
				struct gw_draw draw = temporal_bed_draw(&bed, kinds[g % 2], 5, false);
				struct gw_picks picks = {0};
				uint64_t degree = read_degrees[v], read, most = degree / 64 + (windowed ? 129 : 65);
				assert_int_equal(temporal_drive(&bed, &draw, &v, &g, 1, true, &picks, &read), GW_OK);
				assert_in_range(read, 0, degree <= 64 ? degree : most);
				gw_picks_free(&picks);
			}
		}
	}
	temporal_bed_free(&bed);
}

/* Searches in memory are no entries that a server would have to bound; scans are. */
static void searches_need_no_entries(void **state)
{
	(void)state;
	struct temporal_bed bed;
	struct gw_picks picks = {0};
	const uint64_t vertices[] = {10, 9, 8};
	const uint32_t groups[] = {1, 2, 3};
	ascending_bed(&bed, read_degrees, READ_LISTS);
	bed.entries_max = 1000;
	struct gw_draw draw = temporal_bed_draw(&bed, &gw_sample_temporal, 5, false);
	assert_int_equal(temporal_drive(&bed, &draw, vertices, groups, 3, false, &picks, NULL), GW_OK);
	assert_int_equal(picks.entry_count, 0);
	draw.forms[GW_COLUMN_FENCE].entry_bytes = 0;
	assert_int_equal(temporal_drive(&bed, &draw, vertices, groups, 3, false, &picks, NULL), GW_LIMIT);
	assert_int_equal(picks.dst_count, 0);
	assert_int_equal(temporal_drive(&bed, &draw, vertices + 1, groups + 1, 2, false, &picks, NULL), GW_OK);
	assert_int_equal(picks.entry_count, 700 + 129);
	temporal_bed_ends(&bed, GW_INT64);
	draw = temporal_bed_draw(&bed, &gw_sample_temporal, 5, false);
	assert_int_equal(temporal_drive(&bed, &draw, vertices, groups, 3, false, &picks, NULL), GW_LIMIT);
	gw_picks_free(&picks);
	temporal_bed_free(&bed);
}

/* A scan and a search of the same list pick the same edges. */
static void a_fence_does_not_show(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {1, 7, 40, 500, GW_FANOUT_ALL};
	struct temporal_bed bed;
	uint64_t vertices[100];
	uint32_t groups[100];
	ascending_bed(&bed, read_degrees, READ_LISTS);
	bed.windowed = true;
	for (uint32_t i = 0; i < 100; i++) {
		vertices[i] = i % READ_LISTS;
		groups[i] = i % TEMPORAL_SEEDS;
	}
	for (uint32_t i = 0; i < 40; i++) {
		struct gw_draw draw = temporal_bed_draw(&bed, kinds[i & 1], fanouts[i / 8], i & 2);
		struct gw_picks fenced = {0}, scanned = {0};
		assert_int_equal(temporal_drive(&bed, &draw, vertices, groups, 100, i & 4, &fenced, NULL), GW_OK);
		draw.forms[GW_COLUMN_FENCE].entry_bytes = 0;
		assert_int_equal(temporal_drive(&bed, &draw, vertices, groups, 100, i & 4, &scanned, NULL), GW_OK);
		assert_int_equal(fenced.edge_count, scanned.edge_count);
		assert_memory_equal(fenced.counts.data, scanned.counts.data, 100 * 4);
		assert_memory_equal(fenced.positions.data, scanned.positions.data, fenced.edge_count * 8);
		gw_picks_free(&fenced);
		gw_picks_free(&scanned);
	}
	temporal_bed_free(&bed);
}

/* The picks of a run whose last list is long come a round after those of the next run, which must stay. */
static void runs_end_in_different_rounds(void **state)
{
	(void)state;
	enum { N = GW_RUN_MAX + 8 };
	uint64_t degrees[N], vertices[N];
	uint32_t groups[N];
	struct temporal_bed bed;
	for (uint32_t i = 0; i < N; i++) {
		degrees[i] = i == GW_RUN_MAX - 1 ? 65 : 3;
		vertices[i] =
			i < GW_RUN_MAX ? i : N + GW_RUN_MAX - 1 - i; /* its positions do not go on in the next run */
		groups[i] = 1;                                       /* sees everything */
	}
	ascending_bed(&bed, degrees, N);
	for (size_t k = 0; k < 2; k++) {
		struct gw_picks picks = {0};
		struct gw_draw draw = temporal_bed_draw(&bed, kinds[k], GW_FANOUT_ALL, false);
		assert_int_equal(temporal_drive(&bed, &draw, vertices, groups, N, true, &picks, NULL), GW_OK);
		assert_int_equal(picks.edge_count, bed.edges);
		const uint64_t *positions = picks.positions.data;
		for (uint32_t i = 0; i < N; i++) {
			for (uint64_t e = bed.indptr[vertices[i]]; e < bed.indptr[vertices[i] + 1]; e++)
				assert_int_equal(*positions++, e);
		}
		gw_picks_free(&picks);
	}
	temporal_bed_free(&bed);
}

/* --- Peers that lie. --- */

struct liar {
	enum gw_column column;
	uint64_t entry; /* of the column */
	int64_t key;
};

static void lie_once(const struct temporal_bed *bed, const struct gw_column_read *read, uint8_t *copy)
{
	const struct liar *liar = bed->liar;
	if (read->column == liar->column && liar->entry >= read->first && liar->entry < read->first + read->count)
		memcpy(copy + (liar->entry - read->first) * 8, &liar->key, 8);
}

static void unsorted_times_name_the_vertex(void **state)
{
	(void)state;
	static const uint64_t degrees[] = {64, 40, 1000}; /* the long list begins at 104: its fence, at 128 */
	static const struct {
		uint64_t vertex;
		struct liar liar;
		const char *says;
	} cases[] = {
		{1, {GW_COLUMN_TIME, 70, 1000}, "a time of a list"}, /* a short list */
		{1, {GW_COLUMN_TIME, 103, -1}, "a time of a list"},
		{2, {GW_COLUMN_FENCE, 5, 100000}, "the fence of a list"},
		{2, {GW_COLUMN_FENCE, 5, -100000}, "the fence of a list"},
		{2, {GW_COLUMN_TIME, 400, 1000}, "a time of a list"}, /* in the block of time 200: 384 to 447 */
		{2, {GW_COLUMN_TIME, 447, 0}, "a time of a list"},
		{2, {GW_COLUMN_FENCE, 7, 199}, "the fence of a list"}, /* the block of 448 has no such time */
	};
	struct gw_node_type ntypes[] = {{.name = "a"}, {.name = "b"}};
	struct gw_edge_type relation = {.name = "r", .src = 0, .dst = 1};
	const struct gw_graph_meta meta = {.ntypes = ntypes, .etypes = &relation};
	const struct gw_column_names names = {.meta = &meta, .of = {[GW_COLUMN_TIME] = "t"}};
	struct temporal_bed bed;
	ascending_bed(&bed, degrees, 3);
	bed.lie = lie_once;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t group = 2;
		char named[64];
		bed.until[group] = temporal_whole(200);
		bed.liar = &cases[i].liar;
		snprintf(named, sizeof(named), "time \"t\" of a:r:b, in the list of vertex %d: ", (int)cases[i].vertex);
		for (int named_too = 0; named_too < 2; named_too++) {
			struct gw_picks picks = {0};
			struct gw_draw draw = temporal_bed_draw(&bed, kinds[i % 2], 5, false);
			draw.names = named_too ? &names : NULL;
			assert_int_equal(temporal_drive(&bed, &draw, &cases[i].vertex, &group, 1, true, &picks, NULL),
					 GW_PROTOCOL);
			assert_non_null(strstr(gw_last_error(), cases[i].says));
			assert_non_null(strstr(gw_last_error(), "is sorted by time does not ascend"));
			if (named_too)
				assert_non_null(strstr(gw_last_error(), named));
			gw_picks_free(&picks);
		}
	}
	temporal_bed_free(&bed);
}

static void lie_at_random(const struct temporal_bed *bed, const struct gw_column_read *read, uint8_t *copy)
{
	uint64_t seed = *(const uint64_t *)bed->liar;
	for (uint64_t i = 0; i < read->count; i++) {
		uint64_t random = gw_mix64(seed * 1000003 + (uint64_t)read->column * 77 + read->first + i);
		int64_t key = random % 3 ? (int64_t)(random / 3 % 800) : (int64_t)random;
		if (seed % 7 == 0 || random / 7 % 16 == 0)
			memcpy(copy + i * 8, &key, 8);
	}
}

/* Whatever a peer sends, or has in memory that this process maps: picks of the list, ascending, or an error. */
static void no_bytes_lead_out_of_a_list(void **state)
{
	(void)state;
	struct temporal_bed bed, mapped;
	uint32_t refused = 0;
	ascending_bed(&bed, read_degrees, READ_LISTS);
	ascending_bed(&mapped, read_degrees, READ_LISTS);
	bed.lie = lie_at_random;
	temporal_bed_ends(&mapped, GW_INT64);
	temporal_bed_ends(&bed, GW_INT64);
	for (uint64_t seed = 0; seed < 4000; seed++) {
		bool by_reads = seed & 1;
		struct temporal_bed *of = by_reads ? &bed : &mapped;
		uint64_t vertices[READ_LISTS];
		uint32_t groups[READ_LISTS];
		struct gw_picks picks = {0};
		for (uint32_t i = 0; i < READ_LISTS; i++) {
			vertices[i] = by_reads && i == 10 ? 0 : i; /* each list, but for the longest */
			groups[i] = (uint32_t)(gw_mix64(seed + i) % TEMPORAL_SEEDS);
		}
		bed.liar = &seed;
		of->windowed = seed & 2;
		const struct gw_column_read times = {GW_COLUMN_TIME, 0, 1100}, fence = {GW_COLUMN_FENCE, 0, 18};
		mapped.liar = &seed;
		lie_at_random(&mapped, &times, mapped.times);
		lie_at_random(&mapped, &fence, (uint8_t *)mapped.fence);
		struct gw_draw draw =
			temporal_bed_draw(of, kinds[seed >> 2 & 1], seed & 8 ? 5 : GW_FANOUT_ALL, seed & 16);
		if (seed & 32)
			draw.forms[GW_COLUMN_END].entry_bytes = 0;
		gw_status status = temporal_drive(of, &draw, vertices, groups, READ_LISTS - 1, by_reads, &picks, NULL);
		refused += status != GW_OK;
		assert_true(status == GW_OK || status == GW_PROTOCOL);
		const uint64_t *positions = picks.positions.data;
		for (uint32_t i = 0; status == GW_OK && i < READ_LISTS - 1; i++) {
			uint32_t count = ((const uint32_t *)picks.counts.data)[i];
			assert_in_range(count, 0, gw_draw_bound(&draw, read_degrees[vertices[i]]));
			for (uint32_t j = 0; j < count; j++, positions++) {
				assert_in_range(*positions, of->indptr[vertices[i]], of->indptr[vertices[i] + 1] - 1);
				assert_true(j == 0 || positions[0] >= positions[-1] + !draw.rule.replace);
			}
		}
		gw_picks_free(&picks);
	}
	assert_in_range(refused, 200, 3900);
	temporal_bed_free(&bed);
	temporal_bed_free(&mapped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_lists_read_a_fence_and_blocks),
		cmocka_unit_test(searches_need_no_entries),
		cmocka_unit_test(a_fence_does_not_show),
		cmocka_unit_test(unsorted_times_name_the_vertex),
		cmocka_unit_test(no_bytes_lead_out_of_a_list),
		cmocka_unit_test(runs_end_in_different_rounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
