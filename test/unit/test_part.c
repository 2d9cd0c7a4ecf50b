/* Parts opened both ways: every array and list is what was written, and whatever is damaged is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/part.h"
#include "test/support/graph_fixture.h"

static void open_part(const struct gw_graph_meta *meta, uint32_t number, bool mapped, struct gw_part **part)
{
	struct gw_part_options options = {.mapped = mapped, .arena = {.name = "test", .huge = GW_HUGE_OFF}};
	if (gw_part_open(meta, number, &options, part) != GW_OK)
		fail_msg("%s", gw_last_error());
}

/* Every list of every part is the slice of the whole graph's. */
static void check_lists(const struct gw_fixture *fixture, const struct gw_part *part)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	uint32_t p = gw_part_number(part);
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		const struct gw_fixture_edges *edges = &fixture->edges[t];
		const struct gw_adjacency *a = gw_part_adjacency(part, t);
		const uint64_t *starts = meta->ntypes[meta->etypes[t].dst].starts;
		assert_int_equal(a->rows, starts[p + 1] - starts[p]);
		assert_int_equal(a->dst_start, starts[p]);
		assert_int_equal(a->edge_start, edges->indptr[starts[p]]);
		for (uint64_t row = 0; row < a->rows; row++) {
			uint64_t from, to;
			gw_adjacency_list(a, row, &from, &to);
			assert_int_equal(from + a->edge_start, edges->indptr[starts[p] + row]);
			assert_int_equal(to + a->edge_start, edges->indptr[starts[p] + row + 1]);
			for (uint64_t i = from; i < to; i++)
				assert_int_equal(gw_load_id(a->indices, a->index_bytes, i),
						 edges->src[a->edge_start + i]);
		}
	}
}

static void test_round_trip(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= 4; parts++) {
		struct gw_fixture fixture;
		struct gw_graph_meta *meta;
		gw_fixture_begin(&fixture, 7, 301, parts);
		gw_fixture_write(&fixture);
		if (gw_meta_read(fixture.folder, &meta) != GW_OK)
			fail_msg("%s", gw_last_error());
		for (uint32_t p = 0; p < parts; p++) {
			for (int mapped = 0; mapped < 2; mapped++) {
				struct gw_part *part;
				open_part(meta, p, mapped, &part);
				check_lists(&fixture, part);
				gw_part_close(part);
			}
		}
		gw_meta_destroy(meta);
		gw_fixture_end(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
