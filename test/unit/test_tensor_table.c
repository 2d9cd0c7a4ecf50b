/* The end of a table of tensors whose thread is at work: nothing of the service is touched once that has ended, which
 * the address sanitizer sees. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tensors/table.h"
#include "test/support/graph_fixture.h"
#include "test/support/must.h"
#include "test/support/part_files.h"

#define ROUNDS  20
#define TENSORS 3

struct desk {
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_service *service;
	struct gw_tensor_table *table;
};

static void desk_serve(struct desk *desk)
{
	const struct gw_service_identity identity = {.graph_id = 7, .incarnation = 9, .parts = 1};
	must(gw_service_create(&identity, NULL, &desk->service));
	const struct gw_tensor_table_options options = {.meta = desk->meta,
							.part = desk->part,
							.service = desk->service,
							.incarnation = identity.incarnation,
							.numa = GW_NUMA_LOCAL};
	must(gw_tensor_table_create(&options, &desk->table));
}

/* Creates or finds one: whether its rows have their values. */
static bool desk_make(struct desk *desk, int number)
{
	struct gw_tensor_create_call call = {.plan = {.shape = {20000, 16},
						      .high = 1,
						      .dtype = GW_FLOAT32,
						      .ndim = 2,
						      .placement = GW_PLACE_EVEN,
						      .initial = GW_INITIAL_NORMAL}};
	struct gw_tensor_state tensor;
	struct gw_shard *shard;
	const uint64_t *births;
	snprintf(call.plan.name, sizeof(call.plan.name), "t%d", number);
	must(gw_tensor_table_make(desk->table, &call, &tensor, &births, &shard));
	gw_shard_leave(desk->table, shard);
	return tensor.ready;
}

static void a_table_stops_before_its_service_ends(void **state)
{
	(void)state;
	struct desk desk = {0};
	char config[160];
	gw_fixture_begin(&desk.fixture, 5, 50, 1);
	gw_fixture_write(&desk.fixture);
	snprintf(config, sizeof(config), "%s", desk.fixture.folder);
	must(gw_meta_read(config, &desk.meta));
	part_open(desk.meta, 0, false, &desk.part);
	for (int round = 0; round < ROUNDS; round++) {
		desk_serve(&desk);
		for (int i = 0; i < TENSORS; i++)
			desk_make(&desk, i);
		while (!desk_make(&desk, 0)) /* then the thread is at the next */
			sched_yield();
		gw_tensor_table_stop(desk.table);
		gw_tensor_table_stop(desk.table); /* has nothing more to do */
		gw_service_destroy(desk.service);
		gw_tensor_table_destroy(desk.table);
	}
	gw_part_close(desk.part);
	gw_meta_destroy(desk.meta);
	gw_fixture_end(&desk.fixture);
}

static void a_table_without_tensors_stops(void **state)
{
	(void)state;
	const struct gw_tensor_table_options options = {0};
	struct gw_tensor_table *table;
	must(gw_tensor_table_create(&options, &table));
	gw_tensor_table_stop(table);
	gw_tensor_table_destroy(table);
	gw_tensor_table_stop(NULL);
	gw_tensor_table_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_stops_before_its_service_ends),
		cmocka_unit_test(a_table_without_tensors_stops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
