/* graphwire doctor --part-config: each figure of its table is what loaders with these options fetch over servers, what
 * the window of a look-ahead holds, and what a disk reads; and so are those of the combinations that fit a memory. */
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

#include "client/state/client.h"
#include "core/files/disk.h"
#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "tools/means/means.h"

#define STEPS   20
#define DEPTH   16
#define FETCHES 2 /* in the order of the graph's JSON: author/q, paper/feat */

static struct gw_means_plan plan_of(const char *folder, const char *fanouts, uint32_t batch_size)
{
	struct gw_means_plan plan = {
		.config = folder, .steps = STEPS, .trainers = {.batch_size = batch_size, .seed = 7, .threads = 2}};
	assert_int_equal(gw_replicate_fanouts_parse(fanouts, &plan.trainers), GW_OK);
	plan.trainers.ntype = "paper";
	plan.trainers.features[0] = "q";
	plan.trainers.features[1] = "feat";
	plan.trainers.num_features = FETCHES;
	return plan;
}

static struct gw_means_table count(const struct gw_means_plan *plan)
{
	struct gw_means_table table;
	if (gw_means_count(plan, &table) != GW_OK)
		fail_msg("%s", gw_last_error());
	assert_true(table.batches > 0);
	return table;
}

static const struct gw_means_row *row_of(const struct gw_means_table *table, const char *means, const char *by,
					 uint32_t number)
{
	for (uint32_t i = 0; i < table->count; i++) {
		const struct gw_means_row *row = &table->rows[i];
		if (strcmp(row->means, means) == 0 && (!by || strcmp(row->by, by) == 0) && number-- == 0)
			return row;
	}
	fail_msg("no row %s", means);
	return NULL;
}

/* --- Loaders over servers. --- */

struct how {
	const char *by; /* of replicas; NULL: none */
	double share;
	uint32_t lookahead;
	uint64_t cache_bytes;
	bool lists;
};

struct moved {
	uint64_t rows, samples, ahead, cached, kept, near;
};

/* Over TCP: what travels between hosts. */
static struct moved moved_of(struct gw_client *client)
{
	struct gw_client_stats total;
	struct gw_link_stats links[64];
	const uint32_t rows = gw_client_get_stats(client, &total, links, 64);
	struct moved moved = {.ahead = total.ahead_bytes,
			      .cached = total.cached_bytes,
			      .kept = total.kept_bytes,
			      .near = total.replica_bytes};
	assert_true(rows <= 64);
	for (uint32_t i = 0; i < rows; i++) {
		if (strcmp(links[i].transport, "tcp") != 0)
			continue;
		moved.rows += links[i].read_bytes;
		moved.samples += links[i].sent_bytes + links[i].received_bytes;
	}
	return moved;
}

/* The papers of a part that train_mask marks. Valid until the next call. */
static const int64_t *seeds_of(const struct gw_means_plan *plan, uint32_t part, uint64_t *count)
{
	static int64_t ids[20 * SETUP_SCALE];
	static bool marked[20 * SETUP_SCALE];
	const struct gw_client_options alone = {.part_config = plan->config, .threads = 1};
	struct gw_client *client = open_client(&alone);
	const struct gw_tensor *mask = node_tensor(client, "paper", "train_mask");
	int64_t begin, end;
	assert_int_equal(gw_part_range(client, mask->type, part, &begin, &end), GW_OK);
	assert_true(end - begin <= 20 * SETUP_SCALE);
	for (int64_t i = 0; i < end - begin; i++)
		ids[i] = begin + i;
	assert_int_equal(gw_gather(client, mask, ids, (uint64_t)(end - begin), marked), GW_OK);
	*count = 0;
	for (int64_t i = 0; i < end - begin; i++) {
		ids[*count] = begin + i;
		*count += marked[i];
	}
	gw_client_close(client);
	return ids;
}

static struct gw_loader *loader_of(struct gw_client *client, const struct gw_means_plan *plan, uint32_t part,
				   const struct how *how)
{
	int32_t fanouts[GW_HOPS_MAX * GW_FIXTURE_ETYPES];
	const struct gw_epoch_fanouts *given = &plan->trainers.fanouts;
	const struct gw_fetch fetches[FETCHES] = {{.tensor = node_tensor(client, "author", "q"), .at = GW_AT_INPUTS},
						  {.tensor = node_tensor(client, "paper", "feat"), .at = GW_AT_INPUTS}};
	const uint32_t paper = fetches[1].tensor->type;
	uint64_t count;
	const int64_t *ids = seeds_of(plan, part, &count);
	for (uint32_t i = 0; i < given->hops * GW_FIXTURE_ETYPES; i++)
		fanouts[i] = given->of_hop[i / GW_FIXTURE_ETYPES];
	const struct gw_loader_options options = {.spec = {.ntype = paper,
							   .hops = given->hops,
							   .fanouts = fanouts,
							   .fetch_count = FETCHES,
							   .fetches = fetches},
						  .ids = ids,
						  .id_count = count,
						  .batch_size = plan->trainers.batch_size,
						  .shuffle = true,
						  .seed = plan->trainers.seed,
						  .world = 1,
						  .last = GW_LAST_SHORT,
						  .depth = DEPTH,
						  .lookahead = how->lookahead,
						  .cache_bytes = how->cache_bytes,
						  .cache_batches = STEPS};
	struct gw_loader *loader;
	if (gw_loader_open(client, &options, &loader) != GW_OK)
		fail_msg("%s", gw_last_error());
	return loader;
}

static void take(struct gw_loader *loader, uint32_t batches)
{
	struct gw_minibatch *batch;
	for (uint32_t k = 0; k < batches; k++) {
		if (gw_loader_next(loader, &batch, -1) != GW_OK)
			fail_msg("%s", gw_last_error());
		gw_minibatch_release(batch);
	}
}

/* Adds what a loader moves for the first STEPS batches of a part, of which its last DEPTH are ahead. needed: bytes of
 * their rows of other parts, wherever these come from. */
static void add_loader(struct gw_client *client, const struct gw_means_plan *plan, uint32_t part, const struct how *how,
		       uint64_t needed, struct moved *out)
{
	const uint64_t until = gw_now_ns() + 60 * GW_NS_PER_SECOND;
	const struct moved before = moved_of(client);
	struct moved now;
	uint64_t came;
	struct gw_loader *loader = loader_of(client, plan, part, how);
	assert_true(gw_loader_steps(loader) > STEPS);
	take(loader, STEPS - DEPTH);
	do {
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
		now = moved_of(client);
		came = now.rows + now.ahead + now.cached + now.near - now.kept;
		came -= before.rows + before.ahead + before.cached + before.near - before.kept;
	} while (came < needed && gw_now_ns() < until);
	assert_int_equal(came, needed);
	gw_loader_close(loader);
	now = moved_of(client);
	out->rows += now.rows - before.rows;
	out->samples += now.samples - before.samples;
}

/* The bytes of the rows of other parts that a part's batches need. */
static uint64_t needed_by(const struct gw_means_plan *plan, uint32_t part)
{
	const struct gw_client_options alone = {.part_config = plan->config, .threads = 1};
	struct gw_client *client = open_client(&alone);
	struct gw_loader *loader = loader_of(client, plan, part, &(struct how){0});
	const struct gw_tensor *of[FETCHES] = {node_tensor(client, "author", "q"),
					       node_tensor(client, "paper", "feat")};
	uint64_t bytes = 0;
	struct gw_minibatch *batch;
	for (uint32_t k = 0; k < STEPS; k++) {
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		for (uint32_t f = 0; f < FETCHES; f++) {
			int64_t begin, end;
			assert_int_equal(gw_part_range(client, of[f]->type, part, &begin, &end), GW_OK);
			for (uint64_t i = 0; i < batch->node_counts[of[f]->type]; i++) {
				const int64_t id = batch->nodes[of[f]->type][i];
				bytes += id < begin || id >= end ? of[f]->row_bytes : 0;
			}
		}
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	gw_client_close(client);
	return bytes;
}

static void replicate(const struct gw_means_plan *plan, const struct how *how, uint64_t *bytes)
{
	struct gw_replicate_plan replicas = plan->trainers;
	struct gw_replicate_report report;
	char rows[32];
	*bytes = 0;
	snprintf(rows, sizeof(rows), "%g%%", 100 * how->share);
	assert_int_equal(gw_replicate_rows_parse(how->by ? rows : "0", &replicas), GW_OK);
	if (how->by)
		assert_int_equal(gw_replicate_by_parse(how->by, &replicas), GW_OK);
	if (gw_replicate(&replicas, plan->config, true, &report) != GW_OK)
		fail_msg("%s", gw_last_error());
	for (uint32_t p = 0; p < report.parts; p++)
		*bytes = report.bytes[p] + report.index_bytes > *bytes ? report.bytes[p] + report.index_bytes : *bytes;
	gw_replicate_report_free(&report);
}

/* Of all parts' trainers, each of whom maps its own part. Each `how` has the same replicas and lists. */
static void move(const struct gw_fixture *fixture, const struct gw_means_plan *plan, const struct how *how, uint32_t n,
		 struct moved *out)
{
	const uint32_t parts = fixture->schema->num_parts;
	memset(out, 0, n * sizeof(*out));
	for (uint32_t part = 0; part < parts; part++) {
		struct cluster cluster;
		const uint64_t *starts = fixture->schema->ntypes[0].starts;
		if (starts[part] == starts[part + 1])
			continue;
		cluster_begin(&cluster, fixture->folder, parts, NULL);
		cluster_kill(&cluster, part);
		cluster.transport = "shm";
		cluster.lists = how->lists ? GW_SERVER_LISTS_ALL : GW_SERVER_LISTS_OWN;
		cluster_revive(&cluster, part);
		const uint64_t needed = needed_by(plan, part);
		const struct gw_client_options options = {
			.servers = cluster.list, .server_count = parts, .threads = 1 + part % 2};
		for (uint32_t i = 0; i < n; i++) {
			struct gw_client *client = open_client(&options);
			struct gw_loader *first = loader_of(client, plan, part, &(struct how){0});
			take(first, STEPS); /* until every engine has mapped the part */
			gw_loader_close(first);
			add_loader(client, plan, part, &how[i], needed, &out[i]);
			gw_client_close(client);
		}
		cluster_end(&cluster);
	}
}

static void expect_bytes(const struct gw_means_table *table, const char *what, double rows, double samples,
			 const struct moved *moved)
{
	const double batches = (double)table->batches;
	if ((uint64_t)(rows * batches + 0.5) != moved->rows || (uint64_t)(samples * batches + 0.5) != moved->samples)
		fail_msg("%s: the table has %.0f bytes of rows and %.0f of samples, loaders %.0f and %.0f", what,
			 rows * batches, samples * batches, (double)moved->rows, (double)moved->samples);
}

static void loaders_fetch_what_the_table_says(void **state)
{
	(void)state;
	for (uint32_t parts = 2; parts <= 3; parts++) {
		struct gw_fixture fixture;
		gw_fixture_begin(&fixture, 60 + parts, SETUP_SCALE, parts);
		gw_fixture_write(&fixture);
		const struct gw_means_plan plan = plan_of(fixture.folder, parts == 2 ? "4,3" : "3", 4);
		const struct gw_means_table table = count(&plan);
		const struct gw_means_row *few = row_of(&table, "cache", NULL, 0),
					  *many = row_of(&table, "cache", NULL, 4);
		const struct how plain[] = {{.lookahead = 1},
					    {.lookahead = 2},
					    {.lookahead = 8},
					    {.lookahead = 16},
					    {.lookahead = 1, .cache_bytes = (uint64_t)few->value},
					    {.lookahead = 1, .cache_bytes = (uint64_t)many->value}};
		const struct gw_means_row *const rows[] = {row_of(&table, "none", NULL, 0),
							   row_of(&table, "lookahead", NULL, 0),
							   row_of(&table, "lookahead", NULL, 2),
							   row_of(&table, "lookahead", NULL, 3),
							   few,
							   many};
		struct moved moved[6];
		uint64_t bytes;
		move(&fixture, &plan, plain, 6, moved);
		for (uint32_t i = 0; i < 6; i++)
			expect_bytes(&table, rows[i]->means, rows[i]->rows, rows[i]->samples, &moved[i]);
		assert_true(rows[3]->rows < rows[1]->rows && rows[1]->rows < rows[0]->rows);

		const struct how lists = {.lookahead = 1, .lists = true};
		move(&fixture, &plan, &lists, 1, moved);
		const struct gw_means_row *row = row_of(&table, "lists", NULL, 0);
		expect_bytes(&table, "lists", row->rows, row->samples, moved);
		assert_true(row->samples == 0 && (parts == 3 || rows[0]->samples > 0));

		for (uint32_t by = 0; by < 2; by++) {
			const char *const name = by ? "vip" : "degree";
			const struct how near = {.by = name, .share = gw_means_shares[3 + by], .lookahead = 1};
			row = row_of(&table, "replicas", name, 3 + by);
			replicate(&plan, &near, &bytes);
			assert_int_equal(bytes, row->memory);
			move(&fixture, &plan, &near, 1, moved);
			expect_bytes(&table, name, row->rows, row->samples, moved);
			/* The table is about the graph, whatever replicas it has. */
			const struct gw_means_table again = count(&plan);
			assert_memory_equal(&again, &table, sizeof(table));
		}
		gw_fixture_end(&fixture);
	}
}

/* From memory for the part alone to memory for all: the best combinations, each of which is what loaders fetch. */
static void combinations_that_fit(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 66, SETUP_SCALE, 2);
	gw_fixture_write(&fixture);
	struct gw_means_plan plan = plan_of(fixture.folder, "4,3", 4);
	plan.memory = 1;
	struct gw_means_table table = count(&plan);
	assert_false(table.fits[0].fits);
	const double alone = table.fits[0].memory, lists = row_of(&table, "lists", NULL, 0)->memory;
	double least = row_of(&table, "none", NULL, 0)->rows + row_of(&table, "none", NULL, 0)->samples;
	const double memory[] = {alone, alone + 2000, alone + lists + 4000, alone + lists + 100000};
	for (uint32_t i = 0; i < 4; i++) {
		plan.memory = (uint64_t)memory[i] + 1;
		table = count(&plan);
		const struct gw_means_fit *fit = &table.fits[0];
		const struct how how = {.by = fit->share > 0 ? "vip" : NULL,
					.share = fit->share,
					.lookahead = fit->lookahead,
					.cache_bytes = fit->cache_bytes,
					.lists = fit->lists};
		struct moved moved;
		uint64_t bytes;
		assert_true(fit->fits && fit->memory <= (double)plan.memory);
		assert_true(fit->rows + fit->samples <= least);
		least = fit->rows + fit->samples;
		for (uint32_t r = 0; r < table.count; r++) { /* no single means that fits is better */
			const struct gw_means_row *row = &table.rows[r];
			if (strcmp(row->means, "narrow") != 0 && strncmp(row->means, "disk", 4) != 0 &&
			    (!row->by || strcmp(row->by, "vip") == 0) && alone + row->memory <= (double)plan.memory)
				assert_true(row->rows + row->samples >= least - 1e-6);
		}
		assert_true(table.fits[1].fits && table.fits[1].rows + table.fits[1].samples <= least);
		replicate(&plan, &how, &bytes);
		move(&fixture, &plan, &how, 1, &moved);
		expect_bytes(&table, "a combination", fit->rows, fit->samples, &moved);
	}
	assert_true(table.fits[0].lists);
	gw_fixture_end(&fixture);
}

/* --- Memory, and blocks of files. --- */

/* The bytes of the entries of a loader's windows, at most: from the windows themselves. */
static uint64_t window_holds(const struct gw_means_plan *plan, uint32_t part, uint32_t lookahead)
{
	const struct gw_client_options alone = {.part_config = plan->config, .threads = 1};
	struct gw_client *client = open_client(&alone);
	struct gw_loader *loader = loader_of(client, plan, part, &(struct how){0});
	const struct gw_tensor *of[FETCHES] = {node_tensor(client, "author", "q"),
					       node_tensor(client, "paper", "feat")};
	struct gw_row_window *windows[FETCHES];
	uint64_t held[STEPS] = {0}, most = 0;
	struct gw_minibatch *batch;
	for (uint32_t f = 0; f < FETCHES; f++)
		assert_int_equal(gw_row_window_create(lookahead, of[f]->row_bytes, 0, &windows[f]), GW_OK);
	for (uint32_t k = 0; k < STEPS; k++) {
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		for (uint32_t f = 0; f < FETCHES; f++) {
			struct gw_window_share share = {.window = windows[f], .number = k};
			uint64_t n = 0;
			int64_t begin, end;
			uint32_t *positions = calloc(batch->node_counts[of[f]->type] + 1, sizeof(*positions));
			assert_int_equal(gw_part_range(client, of[f]->type, part, &begin, &end), GW_OK);
			for (uint32_t i = 0; i < batch->node_counts[of[f]->type]; i++) {
				const int64_t id = batch->nodes[of[f]->type][i];
				positions[n] = i;
				n += id < begin || id >= end;
			}
			assert_true(gw_row_window_turn(&share));
			assert_int_equal(gw_row_window_plan(&share, batch->nodes[of[f]->type], positions, &n), GW_OK);
			held[k] += n * of[f]->row_bytes;
			gw_row_window_leave(&share);
			gw_window_share_free(&share);
			free(positions);
		}
		gw_minibatch_release(batch);
	}
	for (uint32_t k = 0; k < STEPS; k++) {
		uint64_t sum = 0;
		for (uint32_t j = k < lookahead ? 0 : k + 1 - lookahead; j <= k; j++)
			sum += held[j];
		most = sum > most ? sum : most;
	}
	for (uint32_t f = 0; f < FETCHES; f++)
		gw_row_window_destroy(windows[f]);
	gw_loader_close(loader);
	gw_client_close(client);
	return most;
}

static void windows_hold_what_the_table_says(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 67, SETUP_SCALE, 2);
	gw_fixture_write(&fixture);
	const struct gw_means_plan plan = plan_of(fixture.folder, "4,3", 4);
	const struct gw_means_table table = count(&plan);
	for (uint32_t a = 1; a < GW_MEANS_AHEADS; a++) {
		const uint64_t first = window_holds(&plan, 0, gw_means_aheads[a]),
			       second = window_holds(&plan, 1, gw_means_aheads[a]);
		assert_int_equal(row_of(&table, "lookahead", NULL, a - 1)->memory, first > second ? first : second);
	}
	gw_fixture_end(&fixture);
}

/* Each batch on a disk of its own, whose cache is empty and has room for all. */
static void disks_read_what_the_table_says(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 68, 20 * SETUP_SCALE, 3);
	gw_fixture_write(&fixture);
	const struct gw_means_plan plan = plan_of(fixture.folder, "1,1", 3);
	const struct gw_means_table table = count(&plan);
	static const char *const on_disk[] = {"q", "feat", "lists", "offsets"};
	int32_t fanouts[2 * GW_FIXTURE_ETYPES];
	for (uint32_t i = 0; i < 2 * GW_FIXTURE_ETYPES; i++)
		fanouts[i] = 1;
	const struct gw_client_options alone = {.part_config = fixture.folder, .threads = 1};
	struct gw_client_options disk = {
		.part_config = fixture.folder, .threads = 1, .on_disk = on_disk, .disk_cache = 4 << 20};
	struct gw_client *client = open_client(&alone);
	uint64_t blocks = 0, list_blocks[2] = {0};
	for (uint32_t run = 0; run < 4; run++) {
		const uint32_t part = run / 2 * 2, offsets = run % 2; /* part 1 is empty */
		disk.on_disk_count = FETCHES + 1 + offsets;
		struct gw_loader *loader = loader_of(client, &plan, part, &(struct how){0});
		for (uint32_t k = 0; k < STEPS; k++) {
			struct gw_client *reader = open_client(&disk);
			struct gw_disk_counts counts;
			struct gw_minibatch *batch;
			assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
			for (uint32_t f = 0; f < FETCHES; f++) {
				const struct gw_tensor *of = node_tensor(reader, f ? "paper" : "author", on_disk[f]);
				void *rows = malloc(batch->node_counts[of->type] * of->row_bytes + 1);
				assert_int_equal(gw_gather(reader, of, batch->nodes[of->type],
							   batch->node_counts[of->type], rows),
						 GW_OK);
				free(rows);
			}
			gw_disk_counts(reader->disk, &counts);
			const uint64_t of_rows = counts.misses;
			const struct gw_sample_spec spec = {
				.ntype = node_tensor(reader, "paper", "feat")->type, .hops = 2, .fanouts = fanouts};
			struct gw_minibatch *again;
			assert_int_equal(gw_sample(reader, &spec, plan.trainers.seed, batch->stream, batch->seeds,
						   batch->seed_count, &again),
					 GW_OK);
			gw_disk_counts(reader->disk, &counts);
			blocks += offsets ? 0 : of_rows;
			list_blocks[offsets] += counts.misses - of_rows;
			gw_minibatch_release(again);
			gw_minibatch_release(batch);
			gw_client_close(reader);
		}
		gw_loader_close(loader);
	}
	gw_client_close(client);
	const struct gw_means_row *row = row_of(&table, "disk", NULL, 0);
	assert_int_equal((uint64_t)(row->disk_blocks * (double)table.batches + 0.5), blocks);
	row = row_of(&table, "disk_lists", NULL, 0);
	assert_int_equal((uint64_t)(row->disk_blocks * (double)table.batches + 0.5), list_blocks[0]);
	row = row_of(&table, "disk_offsets", NULL, 0);
	assert_int_equal((uint64_t)(row->disk_blocks * (double)table.batches + 0.5), list_blocks[1]);
	gw_fixture_end(&fixture);
}

/* --- Faults. --- */

static void allocations_fail(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_means_table table;
	gw_fixture_begin(&fixture, 69, 60, 2);
	gw_fixture_write(&fixture);
	struct gw_means_plan plan = plan_of(fixture.folder, "2", 20);
	plan.steps = 2;
	plan.memory = 1 << 20;
	plan.trainers.threads = 1;
	/* Each of the first ones, then one in ever more. */
	for (unsigned long n = 1, hit = 1; hit; n += 1 + n / 16) {
		gw_fault_begin(n);
		const gw_status status = gw_means_count(&plan, &table);
		hit = gw_fault_hit();
		assert_int_equal(gw_fault_end(), 0);
		assert_true(status == GW_OK || (status == GW_NO_MEMORY && hit && *gw_last_error()));
	}
	gw_fixture_end(&fixture);
}

static void refuses_what_the_graph_does_not_have(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_means_table table;
	gw_fixture_begin(&fixture, 70, 60, 2);
	gw_fixture_write(&fixture);
	struct gw_means_plan plan = plan_of(fixture.folder, "2", 20);
	plan.trainers.features[1] = "nix";
	expect(gw_means_count(&plan, &table), GW_NOT_FOUND, "nix");
	plan.trainers.features[1] = "feat";
	plan.trainers.mask = "nix";
	expect(gw_means_count(&plan, &table), GW_NOT_FOUND, "nix");
	plan.config = "/nowhere";
	expect(gw_means_count(&plan, &table), GW_NOT_FOUND, "/nowhere");
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaders_fetch_what_the_table_says),
		cmocka_unit_test(combinations_that_fit),
		cmocka_unit_test(windows_hold_what_the_table_says),
		cmocka_unit_test(disks_read_what_the_table_says),
		cmocka_unit_test(allocations_fail),
		cmocka_unit_test(refuses_what_the_graph_does_not_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
