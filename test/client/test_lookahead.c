/* Look-ahead: what a loader fetches is what the definition in client/rows/row_window.h says, computed from the batches'
 * own lists by plain sets; and no batch's bytes differ, whatever the caller does to its batches and the servers to the
 * loader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <graphwire/stats.h>

#include "core/system/clock.h"
#include "test/support/client_setup.h"

#define FETCHES     4
#define BATCHES_MAX 64

/* Options of a loader. */
struct means {
	uint32_t lookahead;
	uint64_t cache_bytes, cache_batches;
};

/* The ids that one fetch of one batch has. */
struct listed {
	int64_t *ids;
	uint64_t count;
};

/* A loader's batches without look-ahead. */
struct reference {
	struct plan plan;
	struct gw_loader_options options;
	uint32_t count;
	uint64_t digests[BATCHES_MAX];
	struct listed lists[BATCHES_MAX][FETCHES];
	uint64_t rows[FETCHES], row_bytes[FETCHES]; /* of the tensors */
	uint64_t steps;
};

static struct gw_loader *loader_of(struct gw_client *client, const struct gw_loader_options *options)
{
	struct gw_loader *loader;
	if (gw_loader_open(client, options, &loader) != GW_OK)
		fail_msg("%s", gw_last_error());
	return loader;
}

/* Goes over the ends of epochs. */
static struct gw_minibatch *next_of(struct gw_loader *loader)
{
	struct gw_minibatch *batch;
	gw_status status = gw_loader_next(loader, &batch, -1);
	if (status == GW_END)
		status = gw_loader_next(loader, &batch, -1);
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
	return batch;
}

static struct listed list_of(const struct gw_minibatch *batch, const struct gw_fetch *fetch, uint64_t rows)
{
	const int64_t *ids = NULL;
	if (fetch->at == GW_AT_INPUTS)
		ids = batch->nodes[fetch->tensor->type];
	else if (fetch->at == GW_AT_SEEDS)
		ids = batch->seeds;
	else
		ids = batch->sampled[fetch->tensor->type].ids;
	struct listed list = {malloc(rows * sizeof(int64_t) + 1), rows};
	assert_non_null(list.ids);
	memcpy(list.ids, ids, rows * sizeof(int64_t));
	return list;
}

/* `count` batches of a standalone client. */
static void reference_begin(struct reference *reference, const struct setup *setup, struct gw_loader_options options,
			    uint32_t count)
{
	const struct gw_client_options standalone = {.part_config = setup->fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&standalone);
	make_plan(client, &reference->plan, false, false);
	reference->plan.spec.sampled_edges = true;
	options.spec = reference->plan.spec;
	options.lookahead = 0;
	struct gw_loader *loader = loader_of(client, &options);
	reference->steps = gw_loader_steps(loader);
	for (uint32_t f = 0; f < FETCHES; f++) {
		reference->rows[f] = reference->plan.fetches[f].tensor->shape[0];
		reference->row_bytes[f] = reference->plan.fetches[f].tensor->row_bytes;
	}
	reference->options = options;
	reference->count = count;
	assert_true(count <= BATCHES_MAX);
	for (uint32_t k = 0; k < count; k++) {
		struct gw_minibatch *batch = next_of(loader);
		reference->digests[k] = gw_minibatch_digest(batch);
		for (uint32_t f = 0; f < FETCHES; f++)
			reference->lists[k][f] = list_of(batch, &reference->plan.fetches[f], batch->row_counts[f]);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	gw_client_close(client);
}

static void reference_end(struct reference *reference)
{
	for (uint32_t k = 0; k < reference->count; k++)
		for (uint32_t f = 0; f < FETCHES; f++)
			free(reference->lists[k][f].ids);
}

/* The same options for a client of its own, whose handles differ. */
static struct gw_loader_options options_of(const struct reference *reference, struct gw_client *client,
					   struct plan *plan, const struct means *means)
{
	struct gw_loader_options options = reference->options;
	make_plan(client, plan, false, false);
	plan->spec.sampled_edges = true;
	for (uint32_t f = 0; f < FETCHES; f++)
		plan->fetches[f].convert = reference->plan.fetches[f].convert;
	options.spec = plan->spec;
	options.lookahead = means->lookahead;
	options.cache_bytes = means->cache_bytes;
	options.cache_batches = means->cache_batches;
	return options;
}

/* What a loader's batches fetch by the definition: bytes. */
struct defined {
	uint64_t fetched; /* by the batches */
	uint64_t kept;    /* rows that are kept, each when its set of kept rows begins to have it */
	uint64_t all;     /* rows of the batches */
	uint64_t hits;    /* rows of the batches that are kept */
};

/* A row of a fetch, and how many batches of an epoch would fetch it. */
struct used {
	uint32_t fetch;
	int64_t id;
	uint64_t count;
};

static int by_use(const void *left, const void *right)
{
	const struct used *l = left, *r = right;
	if (l->count != r->count)
		return l->count < r->count ? 1 : -1;
	if (l->fetch != r->fetch)
		return l->fetch < r->fetch ? -1 : 1;
	return l->id < r->id ? -1 : l->id > r->id;
}

/* Whether batch k, counted from 1, is served by an earlier one. by: the batch that fetched the row, or 0. */
static bool is_served(uint32_t by, uint32_t k, uint32_t lookahead)
{
	return by && (by == k || by + lookahead > k);
}

/* Marks the rows that an epoch keeps. */
static void choose(const struct reference *reference, const struct means *means, uint32_t epoch, uint8_t **kept)
{
	const uint32_t first = epoch * (uint32_t)reference->steps;
	uint64_t batches = reference->steps, left = means->cache_bytes, total = 0, n = 0;
	if (means->cache_batches && means->cache_batches < batches)
		batches = means->cache_batches;
	for (uint32_t f = 0; f < FETCHES; f++)
		total += reference->rows[f];
	struct used *used = calloc(total, sizeof(*used));
	assert_non_null(used);
	for (uint32_t f = 0; f < FETCHES; f++) {
		uint32_t *by = calloc(reference->rows[f], sizeof(*by));
		assert_non_null(by);
		for (uint64_t id = 0; id < reference->rows[f]; id++)
			used[n + id] = (struct used){f, (int64_t)id, 0};
		for (uint32_t k = 1; k <= batches; k++) {
			const struct listed *list = &reference->lists[first + k - 1][f];
			for (uint64_t i = 0; i < list->count; i++) {
				if (is_served(by[list->ids[i]], k, means->lookahead))
					continue;
				by[list->ids[i]] = k;
				used[n + (uint64_t)list->ids[i]].count++;
			}
		}
		n += reference->rows[f];
		free(by);
		memset(kept[f], 0, reference->rows[f]);
	}
	qsort(used, total, sizeof(*used), by_use);
	for (uint64_t i = 0; i < total && used[i].count > 1; i++) {
		if (reference->row_bytes[used[i].fetch] > left)
			continue;
		left -= reference->row_bytes[used[i].fetch];
		kept[used[i].fetch][used[i].id] = 1;
	}
	free(used);
}

/* For the first `count` batches. */
static struct defined define(const struct reference *reference, const struct means *means, uint32_t count)
{
	struct defined defined = {0};
	uint32_t *by[FETCHES]; /* [id]: the last batch, counted from 1, whose F has the row */
	uint8_t *kept[FETCHES], *before[FETCHES];
	for (uint32_t f = 0; f < FETCHES; f++) {
		by[f] = calloc(reference->rows[f], sizeof(**by));
		kept[f] = calloc(reference->rows[f], 1);
		before[f] = calloc(reference->rows[f], 1);
		assert_true(by[f] && kept[f] && before[f]);
	}
	for (uint32_t k = 1; k <= count; k++) {
		const bool begins = (k - 1) % reference->steps == 0;
		for (uint32_t f = 0; begins && f < FETCHES; f++)
			memcpy(before[f], kept[f], reference->rows[f]);
		if (begins && means->cache_bytes)
			choose(reference, means, (k - 1) / (uint32_t)reference->steps, kept);
		for (uint32_t f = 0; f < FETCHES; f++) {
			const struct listed *list = &reference->lists[k - 1][f];
			const uint64_t bytes = reference->row_bytes[f];
			for (uint64_t id = 0; begins && id < reference->rows[f]; id++)
				defined.kept += kept[f][id] && !before[f][id] ? bytes : 0;
			for (uint64_t i = 0; i < list->count; i++) {
				const int64_t id = list->ids[i];
				defined.all += bytes;
				defined.hits += kept[f][id] ? bytes : 0;
				/* Without look-ahead, a row that a batch has twice is fetched twice. */
				if (kept[f][id] || (means->lookahead > 1 && is_served(by[f][id], k, means->lookahead)))
					continue;
				defined.fetched += bytes;
				by[f][id] = k;
			}
		}
	}
	for (uint32_t f = 0; f < FETCHES; f++) {
		free(by[f]);
		free(kept[f]);
		free(before[f]);
	}
	return defined;
}

struct moved {
	uint64_t read, ahead, cached, copied;
};

static struct moved moved_of(struct gw_client *client)
{
	struct gw_client_stats total;
	struct gw_link_stats links[64];
	uint32_t rows = gw_client_get_stats(client, &total, links, 64);
	struct moved moved = {.ahead = total.ahead_bytes, .cached = total.cached_bytes, .copied = total.copied_bytes};
	assert_true(rows <= 64);
	for (uint32_t i = 0; i < rows; i++)
		moved.read += links[i].read_bytes;
	return moved;
}

/* Waits until the batches ahead have all rows, too: together `all` bytes. */
static struct moved moved_when(struct gw_client *client, const struct moved *before, uint64_t all)
{
	const uint64_t until = gw_now_ns() + 60 * GW_NS_PER_SECOND;
	struct moved moved;
	do {
		moved = moved_of(client);
		moved.read -= before->read;
		moved.ahead -= before->ahead;
		moved.cached -= before->cached;
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	} while (moved.read + moved.ahead + moved.cached < all && gw_now_ns() < until);
	return moved;
}

static struct gw_client *client_of(const struct setup *setup, uint32_t threads)
{
	const struct gw_client_options options = {.servers = setup->cluster.list,
						  .server_count = setup->cluster.parts,
						  .threads = threads,
						  .transport = cluster_is_rdma() ? "verbs" : "tcp",
						  .neighbours = "requests"};
	return open_client(&options);
}

/* One loader, whose fetched bytes are the definition's. The caller writes over the rows that it got, and holds some
 * batches for long. */
static void compare(const struct setup *setup, const struct reference *reference, uint32_t threads,
		    const struct means *means)
{
	struct gw_client *client = client_of(setup, threads);
	const uint32_t taken = reference->count - reference->options.depth;
	struct gw_minibatch *held[BATCHES_MAX];
	uint32_t held_count = 0;
	struct plan plan;
	const struct gw_loader_options options = options_of(reference, client, &plan, means);
	const struct moved before = moved_of(client);
	struct gw_loader *loader = loader_of(client, &options);
	for (uint32_t k = 0; k < taken; k++) {
		struct gw_minibatch *batch = next_of(loader);
		assert_true(gw_minibatch_digest(batch) == reference->digests[k]);
		for (uint32_t f = 0; f < FETCHES; f++)
			memset((void *)(uintptr_t)batch->rows[f], 0xee,
			       batch->row_counts[f] *
				       gw_converted_bytes(plan.fetches[f].tensor, plan.fetches[f].convert));
		if (k % 3 == 0)
			held[held_count++] = batch;
		else
			gw_minibatch_release(batch);
	}
	const struct defined defined = define(reference, means, reference->count);
	const struct moved moved = moved_when(client, &before, defined.all + defined.kept);
	assert_int_equal(moved.read, defined.fetched + defined.kept);
	assert_int_equal(moved.cached, defined.hits);
	assert_int_equal(moved.read + moved.ahead + moved.cached, defined.all + defined.kept);
	assert_true(defined.fetched < defined.all);
	gw_loader_close(loader);
	for (uint32_t i = 0; i < held_count; i++)
		gw_minibatch_release(held[i]);
	gw_client_close(client);
}

static void over_parts(uint32_t parts)
{
	struct setup setup;
	setup_begin(&setup, 41 + parts, parts, NULL);
	/* Of 4 ranks, with the last step that wraps around; and alone, over the ends of epochs. */
	for (uint32_t world = 1; world <= 4; world += 3) {
		struct reference reference;
		const struct gw_loader_options options = {
			.batch_size = 48, .shuffle = true, .seed = 5, .depth = 8, .world = world, .rank = world - 1};
		reference_begin(&reference, &setup, options, 40);
		assert_true(reference.steps < 20);
		for (uint32_t threads = 1; threads <= 4; threads++) {
			static const struct means means[] = {{2, 0, 0}, {3, 0, 0}, {8, 0, 0}};
			for (uint32_t m = 0; m < 3; m++)
				compare(&setup, &reference, threads, &means[m]);
		}
		reference_end(&reference);
	}
	setup_end(&setup);
}

static void fetches_what_the_definition_says(void **state)
{
	(void)state;
	over_parts(1);
	over_parts(3);
}

/* The rows that an epoch keeps, in few bytes and in many, with and without entries of the window. */
static void keeps_the_rows_that_save_most(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= 3; parts += 2) {
		struct setup setup;
		struct reference reference;
		setup_begin(&setup, 51 + parts, parts, NULL);
		const struct gw_loader_options options = {.batch_size = 60, .shuffle = true, .seed = 5, .depth = 4};
		reference_begin(&reference, &setup, options, 40);
		assert_int_equal(reference.steps, 10);
		static const struct means means[] = {{1, 700, 0},  {1, 1 << 20, 0}, {2, 3000, 0},
						     {4, 5000, 0}, {1, 4000, 3},    {2, 1, 0}};
		for (uint32_t m = 0; m < sizeof(means) / sizeof(means[0]); m++)
			compare(&setup, &reference, 1 + m % 4, &means[m]);
		reference_end(&reference);
		setup_end(&setup);
	}
}

/* Rows that are converted: as stored in the window, converted in each batch. */
static void rows_become_another_type(void **state)
{
	(void)state;
	static const gw_dtype types[FETCHES] = {GW_FLOAT16, GW_FLOAT32, 0, GW_FLOAT64};
	struct setup setup;
	struct reference reference;
	setup_begin(&setup, 43, 3, NULL);
	const struct gw_loader_options options = {.batch_size = 40, .shuffle = true, .seed = 5, .depth = 4};
	const struct gw_client_options standalone = {.part_config = setup.fixture.folder, .threads = 1};
	reference_begin(&reference, &setup, options, 30);
	assert_int_equal(reference.steps, 15);
	for (uint32_t f = 0; f < FETCHES; f++)
		reference.plan.fetches[f].convert = types[f];
	struct gw_client *alone = open_client(&standalone);
	struct plan plan;
	const struct gw_loader_options converting = options_of(&reference, alone, &plan, &(struct means){0});
	struct gw_loader *loader = loader_of(alone, &converting);
	for (uint32_t k = 0; k < reference.count; k++) {
		struct gw_minibatch *batch = next_of(loader);
		reference.digests[k] = gw_minibatch_digest(batch);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	gw_client_close(alone);
	compare(&setup, &reference, 1, &(struct means){4, 0, 0});
	compare(&setup, &reference, 3, &(struct means){4, 2000, 0});
	reference_end(&reference);
	setup_end(&setup);
}

/* Rows that this process can address are copied from there: nothing changes. */
static void mapped_rows_take_no_part(void **state)
{
	(void)state;
	struct setup setup;
	struct reference reference;
	if (cluster_is_rdma())
		skip(); /* servers offer nothing else then */
	cluster_offer("shm");
	setup_begin(&setup, 44, 3, NULL);
	cluster_offer(NULL);
	const struct gw_loader_options options = {.batch_size = 40, .shuffle = true, .seed = 5, .depth = 4};
	reference_begin(&reference, &setup, options, 20);
	for (uint32_t standalone = 0; standalone < 2; standalone++) {
		struct gw_client_options how = {
			.servers = setup.cluster.list, .server_count = 3, .threads = 2, .transport = "shm"};
		if (standalone)
			how = (struct gw_client_options){.part_config = setup.fixture.folder, .threads = 2};
		struct gw_client *client = open_client(&how);
		struct plan plan;
		uint64_t ahead_bytes = 0;
		/* Until an engine has connected, it knows of no mapped memory: the first loader lets both connect. */
		for (uint32_t lookahead = 0; lookahead <= 4; lookahead += 4) {
			const struct means means = {lookahead, lookahead * 1000, 0};
			const struct gw_loader_options ahead = options_of(&reference, client, &plan, &means);
			struct gw_loader *loader = loader_of(client, &ahead);
			ahead_bytes = moved_of(client).ahead + moved_of(client).cached;
			for (uint32_t k = 0; k < reference.count; k++) {
				struct gw_minibatch *batch = next_of(loader);
				assert_true(gw_minibatch_digest(batch) == reference.digests[k]);
				gw_minibatch_release(batch);
			}
			gw_loader_close(loader);
		}
		assert_int_equal(moved_of(client).ahead + moved_of(client).cached, ahead_bytes);
		assert_true(moved_of(client).copied > 0);
		gw_client_close(client);
	}
	reference_end(&reference);
	setup_end(&setup);
}

/* Rows that change are fetched for each batch: a copy could be old. */
static void rows_that_change_take_no_part(void **state)
{
	(void)state;
	struct setup setup;
	struct plan plan;
	cluster_serve_mutable("paper/feat");
	setup_begin(&setup, 48, 3, NULL);
	cluster_serve_mutable(NULL);
	struct gw_client *client = client_of(&setup, 2);
	make_plan(client, &plan, false, false);
	plan.spec.fetch_count = 1;
	const struct gw_loader_options options = {
		.spec = plan.spec, .batch_size = 40, .shuffle = true, .lookahead = 4, .cache_bytes = 2000};
	for (uint32_t fetches = 1; fetches <= 2; fetches++) {
		struct gw_loader_options ahead = options;
		ahead.spec.fetch_count = fetches;
		struct gw_loader *loader = loader_of(client, &ahead);
		for (uint32_t k = 0; k < 20; k++)
			gw_minibatch_release(next_of(loader));
		gw_loader_close(loader);
		const struct moved moved = moved_of(client);
		assert_true((moved.ahead > 0) == (fetches == 2)); /* of authors */
		assert_true((moved.cached > 0) == (fetches == 2));
	}
	gw_client_close(client);
	setup_end(&setup);
}

/* A server is lost and comes back, again and again. Batches that its loss has failed are sampled again. */
static void servers_are_lost(void **state)
{
	(void)state;
	struct setup setup;
	struct reference reference;
	setup_begin(&setup, 45, 3, NULL);
	const struct gw_loader_options options = {.batch_size = 40, .shuffle = true, .seed = 5, .depth = 6};
	/* A connection by RDMA takes longer, and must be made within this time for the loop to go on. */
	const int64_t away_ms = cluster_is_rdma() ? patient_ms(300) : 1;
	const uint32_t period = cluster_is_rdma() ? 12 : 4;
	reference_begin(&reference, &setup, options, 40);
	for (uint32_t threads = 1; threads <= 3; threads++) {
		const struct gw_client_options how = {.servers = setup.cluster.list,
						      .server_count = 3,
						      .threads = threads,
						      .transport = cluster_is_rdma() ? "verbs" : "tcp",
						      .neighbours = threads == 2 ? "reads" : "requests",
						      .reconnect_ms = threads == 3 ? 60000 : away_ms};
		struct gw_client *client = open_client(&how);
		struct plan plan;
		const struct gw_loader_options ahead =
			options_of(&reference, client, &plan, &(struct means){6, 2000, 0});
		struct gw_loader *loader = loader_of(client, &ahead);
		uint32_t lost = 0, next_kill = 1;
		bool down = false;
		for (uint32_t k = 0; k < reference.count;) {
			if (k == next_kill) {
				cluster_kill(&setup.cluster, 2);
				down = true;
				next_kill += period;
			}
			struct gw_minibatch *batch;
			gw_status status = gw_loader_next(loader, &batch, threads == 3 && down ? 50 : -1);
			if (status == GW_END)
				continue;
			if (status == GW_OK) {
				assert_true(gw_minibatch_digest(batch) == reference.digests[k]);
				gw_minibatch_release(batch);
				k++;
			} else {
				assert_true(status == GW_PEER_LOST || (threads == 3 && status == GW_AGAIN));
				lost++;
			}
			if (down && (status != GW_OK || k % period == 0)) {
				cluster_revive(&setup.cluster, 2);
				down = false;
			}
		}
		assert_true(lost > 0);
		if (down)
			cluster_revive(&setup.cluster, 2);
		gw_loader_close(loader);
		gw_client_close(client);
	}
	reference_end(&reference);
	setup_end(&setup);
}

/* Loaders end while their batches wait for turns and for each other; batches outlive their loader. */
static void loaders_end_at_any_moment(void **state)
{
	(void)state;
	struct setup setup;
	struct reference reference;
	setup_begin(&setup, 46, 3, NULL);
	const struct gw_loader_options options = {.batch_size = 40, .shuffle = true, .seed = 5, .depth = 8};
	reference_begin(&reference, &setup, options, 12);
	struct gw_client *client = client_of(&setup, 3);
	for (uint32_t run = 0; run < 60; run++) {
		struct plan plan;
		const struct means how = {1 + run % 7, run % 2 ? 2000 : 0, 0};
		const struct gw_loader_options ahead = options_of(&reference, client, &plan, &how);
		struct gw_loader *loader = loader_of(client, &ahead);
		struct gw_minibatch *kept = NULL;
		for (uint32_t k = 0; k < run % 5; k++) {
			gw_minibatch_release(kept);
			kept = next_of(loader);
		}
		gw_loader_close(loader);
		if (kept)
			assert_true(gw_minibatch_digest(kept) == reference.digests[run % 5 - 1]);
		gw_minibatch_release(kept);
	}
	gw_client_close(client);
	reference_end(&reference);
	setup_end(&setup);
}

static void refuses_more_than_the_depth(void **state)
{
	(void)state;
	struct setup setup;
	struct plan plan;
	struct gw_loader *loader;
	setup_begin(&setup, 47, 1, NULL);
	struct gw_client *client = client_of(&setup, 1);
	make_plan(client, &plan, false, false);
	struct gw_loader_options options = {.spec = plan.spec, .depth = 3, .lookahead = 4};
	expect(gw_loader_open(client, &options, &loader), GW_RANGE, "lookahead 4: at most the depth, which is 3");
	options.depth = 0;
	options.lookahead = 5;
	expect(gw_loader_open(client, &options, &loader), GW_RANGE, "lookahead 5: at most the depth, which is 4");
	gw_client_close(client);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fetches_what_the_definition_says), cmocka_unit_test(keeps_the_rows_that_save_most),
		cmocka_unit_test(rows_become_another_type),         cmocka_unit_test(mapped_rows_take_no_part),
		cmocka_unit_test(rows_that_change_take_no_part),    cmocka_unit_test(servers_are_lost),
		cmocka_unit_test(loaders_end_at_any_moment),        cmocka_unit_test(refuses_more_than_the_depth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
