/* Splits of masks, ids and whole types, over worlds of every size and with ranks at any parts. The tests check what
 * splits promise: every id once, even shares, own ids first while the own part has any, and the same result from every
 * client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"

#define WORLD_MAX 9

static uint32_t owner_of(const uint64_t *starts, int64_t id)
{
	uint32_t p = 0;
	while ((uint64_t)id >= starts[p + 1])
		p++;
	return p;
}

static uint32_t part_of(const struct gw_split_options *options, uint32_t rank, uint32_t parts)
{
	return options->rank_parts ? options->rank_parts[rank] : rank * parts / options->world;
}

static struct gw_rank_ids *split_of(struct gw_client *client, struct gw_split_options options, uint32_t rank)
{
	struct gw_rank_ids *split;
	options.rank = rank;
	if (gw_split_ids(client, &options, &split) != GW_OK)
		fail_msg("%s", gw_last_error());
	return split;
}

/* counts: how often each of the type's n ids must occur. */
static void check_split(struct gw_client *client, struct gw_client *other, const uint64_t *starts, uint32_t parts,
			const struct gw_split_options *options, const uint32_t *counts, uint64_t n)
{
	struct gw_rank_ids *splits[WORLD_MAX];
	uint64_t count = starts[parts], given = 0;
	uint32_t *seen = calloc(count + 1, sizeof(*seen));
	for (uint32_t r = 0; r < options->world; r++) {
		struct gw_rank_ids *split = splits[r] = split_of(client, *options, r),
				   *same = split_of(other, *options, r);
		assert_int_equal(split->count, same->count);
		assert_int_equal(split->own_count, same->own_count);
		assert_memory_equal(split->ids, same->ids, split->count * 8);
		gw_rank_ids_free(same);
		assert_int_equal(split->count, n / options->world + (r < n % options->world));
		for (uint64_t i = 0; i < split->count; i++) {
			seen[split->ids[i]]++;
			bool own = owner_of(starts, split->ids[i]) == part_of(options, r, parts);
			assert_true(i >= split->own_count || own);
		}
		given += split->count;
	}
	assert_int_equal(given, n);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(seen[i], counts[i]);
	/* A rank that got other parts' ids has all ids of its own part: no rank of another part has one. */
	for (uint32_t r = 0; r < options->world; r++) {
		uint32_t part = part_of(options, r, parts);
		for (uint32_t o = 0; splits[r]->count > splits[r]->own_count && o < options->world; o++) {
			for (uint64_t i = 0; i < splits[o]->count && part_of(options, o, parts) != part; i++)
				assert_true(owner_of(starts, splits[o]->ids[i]) != part);
		}
	}
	for (uint32_t r = 0; r < options->world; r++)
		gw_rank_ids_free(splits[r]);
	free(seen);
}

static void splits_are_even_and_begin_at_home(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 61, 3, NULL);
	struct gw_client_options far = {.servers = setup.cluster.list, .server_count = 3, .threads = 2};
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client *clients[] = {open_client(&far), open_client(&alone)};
	const struct gw_tensor *mask_tensor = node_tensor(clients[0], "paper", "train_mask");
	const struct gw_tensor *mask_here = node_tensor(clients[1], "paper", "train_mask");
	uint64_t n = mask_tensor->shape[0], edges = setup.fixture.edges[FIXTURE_CITES].count, set = 0;
	const uint64_t *starts = setup.fixture.schema->ntypes[0].starts;
	bool *mask = calloc(n, 1);
	int64_t *all = malloc((n + edges) * 8);
	uint32_t *ones = calloc(n + edges, sizeof(*ones)), *counts = calloc(n, sizeof(*counts));
	for (uint64_t i = 0; i < n; i++)
		all[i] = (int64_t)i;
	assert_int_equal(gw_gather(clients[0], mask_tensor, all, n, mask), GW_OK);
	for (uint64_t i = 0; i < n; i++)
		set += counts[i] = mask[i];
	assert_true(set > n / 4 && set < n);
	for (uint64_t i = 0; i < n + edges; i++)
		ones[i] = 1;
	static const uint32_t at[WORLD_MAX] = {2, 0, 0, 2, 1, 0, 2, 2, 0};
	for (uint32_t world = 1; world <= WORLD_MAX; world++) {
		for (int placed = 0; placed < 2; placed++) {
			struct gw_split_options options = {.world = world, .rank_parts = placed ? at : NULL};
			check_split(clients[0], clients[1], starts, 3, &options, ones, n);
			options.mask = mask;
			options.mask_count = n;
			check_split(clients[0], clients[1], starts, 3, &options, counts, set);
			/* The same mask as a tensor. */
			struct gw_split_options read = {.world = world, .rank_parts = options.rank_parts};
			for (uint32_t r = 0; r < world; r++) {
				struct gw_rank_ids *split = split_of(clients[0], options, r), *same;
				read.mask_tensor = r % 2 ? mask_here : mask_tensor;
				same = split_of(clients[r % 2], read, r);
				assert_int_equal(split->count, same->count);
				assert_memory_equal(split->ids, same->ids, split->count * 8);
				gw_rank_ids_free(split);
				gw_rank_ids_free(same);
			}
			struct gw_split_options of_edges = {.of_edges = true,
							    .type = FIXTURE_CITES,
							    .world = world,
							    .rank_parts = options.rank_parts};
			check_split(clients[0], clients[1], setup.fixture.schema->etypes[FIXTURE_CITES].starts, 3,
				    &of_edges, ones, edges);
		}
	}
	/* Ids in any order, some twice, almost all of one part. */
	memset(counts, 0, n * sizeof(*counts));
	for (uint64_t i = 0; i < n; i++)
		counts[all[i] = (int64_t)(i % 10 ? gw_mix64(i) % (starts[1] ? starts[1] : n) : gw_mix64(i) % n)]++;
	for (uint32_t world = 1; world <= WORLD_MAX; world++) {
		struct gw_split_options options = {.world = world, .ids = all, .id_count = n};
		check_split(clients[0], clients[1], starts, 3, &options, counts, n);
	}
	free(mask);
	free(all);
	free(ones);
	free(counts);
	for (int i = 0; i < 2; i++)
		gw_client_close(clients[i]);
	setup_end(&setup);
}

static void wrong_splits_are_named(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 62, SETUP_SCALE, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options alone = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&alone);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	static const int64_t ids[] = {0, -1};
	static const bool mask[1];
	static const uint32_t parts[] = {0, 2};
	const struct {
		struct gw_split_options options;
		gw_status status;
		const char *text;
	} wrong[] = {
		{{.type = 9}, GW_RANGE, "node type 9"},
		{{.of_edges = true, .type = 9}, GW_RANGE, "edge type 9"},
		{{.world = 2, .rank = 2}, GW_RANGE, "rank 2"},
		{{.world = 2, .rank_parts = parts}, GW_RANGE, "part 2 of 2"},
		{{.mask = mask, .mask_count = 1}, GW_INVALID, "a mask of 1"},
		{{.mask = mask, .ids = ids}, GW_INVALID, "give at most one"},
		{{.ids = ids, .id_count = 2}, GW_RANGE, "id -1 at position 1"},
		{{.mask_tensor = feat}, GW_INVALID, "mask \"feat\" has 2 dimensions"},
		{{.mask_tensor = node_tensor(client, "paper", "train_mask"), .type = 1}, GW_INVALID, "not a mask"},
	};
	struct gw_rank_ids *split;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		expect(gw_split_ids(client, &wrong[i].options, &split), wrong[i].status, wrong[i].text);
		assert_null(split);
	}
	/* No ids. */
	struct gw_split_options none = {.ids = ids, .world = 3, .rank = 1};
	assert_int_equal(gw_split_ids(client, &none, &split), GW_OK);
	assert_int_equal(split->count, 0);
	gw_rank_ids_free(split);
	gw_rank_ids_free(NULL);
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

static gw_status split_once(void *context)
{
	struct gw_client *client = context;
	struct gw_rank_ids *split;
	struct gw_split_options options = {.mask_tensor = node_tensor(client, "paper", "train_mask"), .world = 2};
	gw_status status = gw_split_ids(client, &options, &split);
	if (status == GW_OK)
		gw_rank_ids_free(split);
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 63, SETUP_SCALE, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options alone = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&alone);
	assert_int_equal(split_once(client), GW_OK);
	assert_true(gw_fault_each(split_once, client) > 5);
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_are_even_and_begin_at_home),
		cmocka_unit_test(wrong_splits_are_named),
		cmocka_unit_test(short_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
