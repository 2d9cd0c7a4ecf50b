/* Lists, columns and ids of a part whose offsets are beyond 2^32. The arrays are sparse files: holes but for the last
 * pages, so that they take a few pages of disk and memory. The draws, look-ups and neighbours are those of the same
 * lists at offset 0, at positions that are larger by the base. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/columns.h"
#include "sampler/lookup.h"
#include "sampler/picks.h"

#define ROWS    300
#define BASE    ((1ull << 32) + 12345)
#define SOURCES 997
#define DST     ((1ull << 40) + 77) /* the first row's id */

static struct lists {
	uint64_t indptr[ROWS + 1], far_indptr[ROWS + 1], edges;
	uint32_t *sources;
	uint64_t *wide_sources;
	float *weights;
	const uint32_t *far_sources; /* [BASE + edges] */
	const uint64_t *far_wide_sources;
	const float *far_weights;
} lists;

/* A mapped sparse file: `bytes` of the data, after `before` bytes of holes. */
static const void *sparse(const void *data, uint64_t before, uint64_t bytes)
{
	char path[] = "/tmp/gw-test-sparse-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)(before + bytes)), 0);
	assert_int_equal(pwrite(fd, data, bytes, (off_t)before), bytes);
	void *map = mmap(NULL, before + bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	return map;
}

static int lists_set_up(void **state)
{
	(void)state;
	for (uint64_t row = 0; row < ROWS; row++)
		lists.indptr[row + 1] = lists.indptr[row] + gw_mix64(row) % 40;
	lists.edges = lists.indptr[ROWS];
	lists.sources = calloc(lists.edges, sizeof(*lists.sources));
	lists.wide_sources = calloc(lists.edges, sizeof(*lists.wide_sources));
	lists.weights = calloc(lists.edges, sizeof(*lists.weights));
	assert_true(lists.sources && lists.wide_sources && lists.weights);
	for (uint64_t row = 0; row <= ROWS; row++)
		lists.far_indptr[row] = BASE + lists.indptr[row];
	for (uint64_t row = 0; row < ROWS; row++) {
		uint32_t source = 0;
		for (uint64_t e = lists.indptr[row]; e < lists.indptr[row + 1]; e++) {
			source += (uint32_t)(gw_mix64(e) % 3); /* ascending, some of them twice */
			lists.sources[e] = source;
			lists.wide_sources[e] = source + (1ull << 35);
			lists.weights[e] = (float)(gw_mix64(e * 7) % 1000) / 100;
		}
	}
	lists.far_sources = sparse(lists.sources, BASE * 4, lists.edges * 4);
	lists.far_wide_sources = sparse(lists.wide_sources, BASE * 8, lists.edges * 8);
	lists.far_weights = sparse(lists.weights, BASE * 4, lists.edges * 4);
	return 0;
}

static int lists_tear_down(void **state)
{
	(void)state;
	munmap((void *)(uintptr_t)lists.far_sources, (BASE + lists.edges) * 4);
	munmap((void *)(uintptr_t)lists.far_wide_sources, (BASE + lists.edges) * 8);
	munmap((void *)(uintptr_t)lists.far_weights, (BASE + lists.edges) * 4);
	free(lists.sources);
	free(lists.wide_sources);
	free(lists.weights);
	return 0;
}

static struct gw_adjacency adjacency(bool far, bool wide)
{
	const void *near_ids = wide ? (const void *)lists.wide_sources : lists.sources;
	const void *far_ids = wide ? (const void *)lists.far_wide_sources : lists.far_sources;
	return (struct gw_adjacency){
		.indptr = far ? lists.far_indptr : lists.indptr,
		.indices = far ? far_ids : near_ids,
		.rows = ROWS,
		.edges = lists.edges + (far ? BASE : 0),
		.columns = 1,
		.indptr_bytes = 8,
		.index_bytes = wide ? 8 : 4,
		.dst_start = DST,
		.edge_start = 0,
	};
}

/* --- Draws. --- */

static void expect_the_same_draws(const struct gw_draw *draw, bool wide)
{
	const struct gw_adjacency here = adjacency(false, wide), far = adjacency(true, wide);
	const struct gw_columns weights = {.at = {[GW_COLUMN_WEIGHT] = lists.weights}},
				far_weights = {.at = {[GW_COLUMN_WEIGHT] = lists.far_weights}};
	const struct gw_picks_memory from = {.adjacency = &here, .columns = &weights},
				     from_far = {.adjacency = &far, .columns = &far_weights};
	struct gw_picks picks = {0}, far_picks = {0};
	uint64_t vertices[ROWS];
	for (uint64_t i = 0; i < ROWS; i++)
		vertices[i] = DST + (i * 7) % ROWS;
	assert_int_equal(gw_picks_from_memory(&picks, &from, draw, vertices, NULL, ROWS), GW_OK);
	assert_int_equal(gw_picks_from_memory(&far_picks, &from_far, draw, vertices, NULL, ROWS), GW_OK);
	assert_int_equal(far_picks.dst_count, ROWS);
	assert_int_equal(far_picks.edge_count, picks.edge_count);
	assert_true(picks.edge_count > 0);
	assert_memory_equal(far_picks.counts.data, picks.counts.data, ROWS * sizeof(uint32_t));
	const uint64_t *positions = picks.positions.data, *far_positions = far_picks.positions.data;
	for (uint64_t i = 0; i < picks.edge_count; i++)
		assert_int_equal(far_positions[i], positions[i] + BASE);
	gw_picks_free(&picks);
	gw_picks_free(&far_picks);
}

static void draws_are_the_same(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {1, 3, 10, GW_FANOUT_ALL};
	for (size_t f = 0; f < sizeof(fanouts) / sizeof(fanouts[0]); f++) {
		for (int way = 0; way < 8; way++) {
			struct gw_draw draw = {.rule = {.key = gw_mix64(f), .fanout = fanouts[f], .replace = way & 1},
					       .kind = way & 2 ? &gw_sample_weighted : &gw_sample_uniform};
			if (way & 2)
				draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){4, GW_FLOAT32};
			draw.forms[GW_COLUMN_IDS] =
				(struct gw_column_form){way & 4 ? 8 : 4, way & 4 ? GW_UINT64 : GW_UINT32};
			expect_the_same_draws(&draw, way & 4);
		}
	}
}

/* --- Look-ups. --- */

static uint64_t found(const struct gw_adjacency *of, uint64_t row, uint64_t source, uint64_t *positions)
{
	struct gw_lookup lookup;
	uint64_t budget = UINT64_MAX, n = 0;
	assert_int_equal(gw_lookup_begin(&lookup, of, GW_ORDER_SRC, row, source, 0), GW_OK);
	while (gw_lookup_next(&lookup, &budget, &positions[n]))
		n++;
	return n;
}

static void look_ups_are_the_same(void **state)
{
	(void)state;
	uint64_t positions[64], far_positions[64], all = 0, row;
	for (int wide = 0; wide < 2; wide++) {
		const struct gw_adjacency here = adjacency(false, wide), far = adjacency(true, wide);
		for (uint64_t r = 0; r < ROWS; r++) {
			for (uint64_t source = 0; source < 90; source += 3) {
				const uint64_t id = source + (wide ? 1ull << 35 : 0);
				uint64_t n = found(&here, r, id, positions);
				assert_int_equal(found(&far, r, id, far_positions), n);
				for (uint64_t i = 0; i < n; i++)
					assert_int_equal(far_positions[i], positions[i] + BASE);
				all += n;
			}
		}
		for (uint64_t e = 0; e < lists.edges; e += 5) {
			assert_int_equal(gw_lookup_row(&far, BASE + e, &row), GW_OK);
			assert_true(lists.indptr[row] <= e && e < lists.indptr[row + 1]);
		}
	}
	assert_true(all > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_are_the_same),
		cmocka_unit_test(look_ups_are_the_same),
	};
	return cmocka_run_group_tests_name("offsets beyond 2^32", tests, lists_set_up, lists_tear_down);
}
