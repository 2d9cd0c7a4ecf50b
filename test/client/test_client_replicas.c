/* Hot rows near a part: clients that map one part of several copy the rows of the others from its replicas. The bytes
 * are those of a standalone client, whatever is near, and whether or not the near part stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "protocol/saved_call.h"
#include "test/support/client_setup.h"
#include "test/support/many.h"
#include "tools/replicate/replicate.h"

static struct gw_replicate_plan plan_of(const char *rows, const char *by)
{
	struct gw_replicate_plan plan = {.batch_size = BATCH_SIZE, .seed = 7, .threads = 2};
	assert_int_equal(gw_replicate_rows_parse(rows, &plan), GW_OK);
	assert_int_equal(gw_replicate_by_parse(by, &plan), GW_OK);
	assert_int_equal(gw_replicate_fanouts_parse("4,3", &plan), GW_OK);
	plan.ntype = "paper";
	return plan;
}

static void replicate(const char *folder, const char *rows, const char *by)
{
	struct gw_replicate_plan plan = plan_of(rows, by);
	struct gw_replicate_report report;
	if (gw_replicate(&plan, folder, true, &report) != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_replicate_report_free(&report);
}

/* A graph with replicas; part `near` is mapped, the others are not. */
static void begin_near(struct setup *setup, uint64_t seed, uint32_t parts, uint32_t near, const char *rows)
{
	gw_fixture_begin(&setup->fixture, seed, SETUP_SCALE, parts);
	gw_fixture_write(&setup->fixture);
	replicate(setup->fixture.folder, rows, "vip");
	cluster_begin(&setup->cluster, setup->fixture.folder, parts, NULL);
	cluster_kill(&setup->cluster, near);
	setup->cluster.transport = "shm";
	cluster_revive(&setup->cluster, near);
}

static struct gw_client_stats stats_of(const struct gw_client *client)
{
	struct gw_client_stats stats;
	gw_client_get_stats(client, &stats, NULL, 0);
	return stats;
}

static uint64_t read_bytes(const struct gw_client *client)
{
	struct gw_client_stats stats;
	struct gw_link_stats links[64];
	uint64_t bytes = 0;
	uint32_t count = gw_client_get_stats(client, &stats, links, 64);
	for (uint32_t i = 0; i < count; i++)
		bytes += strcmp(links[i].transport, cluster_far()) == 0 ? links[i].read_bytes : 0;
	return bytes;
}

static void epochs_have_the_same_bytes(void **state)
{
	(void)state;
	static const char *const shares[] = {"10%", "100%", "4Ki"};
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t near = 0; near < 3; near += 2) { /* part 1 is empty */
			struct setup setup;
			uint64_t expected[EPOCH_MAX], got[EPOCH_MAX];
			begin_near(&setup, 71 + i, 3, near, shares[i]);
			struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
			struct gw_client_options some = {
				.servers = setup.cluster.list, .server_count = 3, .threads = 2};
			struct plan plan;
			struct gw_client *client = open_client(&alone);
			make_plan(client, &plan, false, false);
			uint32_t n = run_epoch(client, &plan, 1, expected);
			assert_true(stats_of(client).replica_rows == 0);
			gw_client_close(client);

			client = open_client(&some);
			assert_string_equal(gw_part_transport(client, near), "shm");
			make_plan(client, &plan, false, false);
			assert_int_equal(run_epoch(client, &plan, 1, got), n);
			assert_memory_equal(got, expected, n * sizeof(*got));
			assert_true(stats_of(client).replica_rows > 0);
			assert_true(stats_of(client).replica_bytes >= 12 * stats_of(client).replica_rows);
			gw_client_close(client);
			setup_end(&setup);
		}
	}
}

/* The near server learns what its replicas and lists have saved when a client closes: all of it, unless the report
 * takes longer than a closing client waits. */
static void the_server_learns_what_it_saved(void **state)
{
	(void)state;
	struct setup setup;
	begin_near(&setup, 77, 3, 2, "20%");
	cluster_kill(&setup.cluster, 2);
	setup.cluster.lists = GW_SERVER_LISTS_ALL;
	cluster_revive(&setup.cluster, 2);
	bool all = false;
	for (uint32_t tries = 0; tries < 100 && !all; tries++) {
		const struct gw_server *near = setup.cluster.servers[2];
		const uint64_t rows = atomic_load(&near->saved.rows), bytes = atomic_load(&near->saved.bytes),
			       hops = atomic_load(&near->saved.hops);
		const struct gw_client_options options = {
			.servers = setup.cluster.list, .server_count = 3, .threads = 2};
		struct gw_client *client = open_client(&options);
		struct plan plan;
		uint64_t digests[EPOCH_MAX];
		make_plan(client, &plan, false, false);
		run_epoch(client, &plan, 1, digests);
		const struct gw_client_stats last = stats_of(client);
		gw_client_close(client);
		all = atomic_load(&near->saved.rows) - rows >= last.replica_rows && last.replica_rows > 0;
		assert_true(!all || (atomic_load(&near->saved.bytes) - bytes >= last.replica_bytes &&
				     atomic_load(&near->saved.hops) - hops >= last.held_hops && last.held_hops > 0));
		for (uint32_t p = 0; p < 2; p++)
			assert_int_equal(atomic_load(&setup.cluster.servers[p]->saved.rows), 0);
	}
	assert_true(all);
	setup_end(&setup);
}

static void false_reports_are_refused(void **state)
{
	(void)state;
	struct gw_saved saved[2] = {{GW_SAVED_MAX, 2, 3}}, got;
	for (size_t bytes = 0; bytes <= sizeof(saved); bytes++)
		assert_int_equal(gw_saved_parse(saved, bytes, &got), bytes == sizeof(got) ? GW_OK : GW_PROTOCOL);
	for (uint32_t i = 0; i < 3; i++) {
		struct gw_saved large = {.rows = i == 0 ? GW_SAVED_MAX + 1 : 1,
					 .bytes = i == 1 ? UINT64_MAX : 1,
					 .hops = i == 2 ? GW_SAVED_MAX + 1 : 1};
		expect(gw_saved_parse(&large, sizeof(large), &got), GW_PROTOCOL, "2^50");
	}
}

/* Only one server was started again after the parts got replicas, or lost them. */
static void servers_of_two_versions_are_refused(void **state)
{
	(void)state;
	for (uint32_t gets = 0; gets < 2; gets++) {
		struct setup setup;
		gw_fixture_begin(&setup.fixture, 83 + gets, SETUP_SCALE, 2);
		gw_fixture_write(&setup.fixture);
		if (!gets)
			replicate(setup.fixture.folder, "20%", "degree");
		cluster_begin(&setup.cluster, setup.fixture.folder, 2, NULL);
		replicate(setup.fixture.folder, gets ? "20%" : "0", "degree");
		for (uint32_t part = 0; part < 2; part++) {
			cluster_kill(&setup.cluster, part);
			cluster_revive(&setup.cluster, part);
			const struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2};
			if (part == 0)
				expect_no_client(options, GW_PROTOCOL, "; start all servers again");
			else
				gw_client_close(open_client(&options));
		}
		setup_end(&setup);
	}
}

/* With a replica of every row, no feature row comes over TCP: a gather of all rows reads nothing. */
static void all_rows_are_near(void **state)
{
	(void)state;
	struct setup setup;
	/* rows that no list names are not replicated, whatever their number */
	begin_near(&setup, 81, 2, 0, "100%");
	struct gw_client_options some = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	struct gw_client *client = open_client(&some);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	const uint64_t n = feat->shape[0];
	int64_t *ids = gw_calloc(2 * n, sizeof(*ids));
	float *rows = gw_calloc(2 * n * 5, sizeof(*rows));
	uint64_t own = 0, saved = 0;
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client *other = open_client(&alone);
	float *expected = gw_calloc(2 * n * 5, sizeof(*expected));
	for (uint64_t i = 0; i < 2 * n; i++)
		ids[i] = (int64_t)(i * 7919 % n);
	assert_int_equal(gw_gather(other, node_tensor(other, "paper", "feat"), ids, 2 * n, expected), GW_OK);
	const uint64_t before = read_bytes(client);
	assert_int_equal(gw_gather(client, feat, ids, 2 * n, rows), GW_OK);
	assert_memory_equal(rows, expected, 2 * n * feat->row_bytes);
	int64_t begin, end;
	assert_int_equal(gw_part_range(client, feat->type, 0, &begin, &end), GW_OK);
	own = 2 * (uint64_t)(end - begin);
	saved = stats_of(client).replica_rows;
	assert_true(saved > 0 && saved <= 2 * n - own);
	/* rows that are equal in the list may be fetched once */
	assert_true(read_bytes(client) - before <= (2 * n - own - saved) * feat->row_bytes);

	/* converted on arrival */
	uint16_t *narrow = gw_calloc(2 * n * 5, sizeof(*narrow)),
		 *narrow_expected = gw_calloc(2 * n * 5, sizeof(*narrow));
	assert_int_equal(gw_gather_as(client, feat, GW_FLOAT16, ids, 2 * n, narrow), GW_OK);
	assert_int_equal(
		gw_gather_as(other, node_tensor(other, "paper", "feat"), GW_FLOAT16, ids, 2 * n, narrow_expected),
		GW_OK);
	assert_memory_equal(narrow, narrow_expected, 2 * n * 5 * sizeof(*narrow));

	ids[n] = (int64_t)n;
	expect(gw_gather(client, feat, ids, 2 * n, rows), GW_RANGE, "id");
	gw_client_close(client);
	gw_client_close(other);
	gw_free(narrow);
	gw_free(narrow_expected);
	gw_free(ids);
	gw_free(rows);
	gw_free(expected);
	setup_end(&setup);
}

/* A loader of a client of both servers, and what a standalone client's loader returns. */
struct course {
	struct gw_client *client;
	struct gw_loader *loader;
	struct plan plan;
	uint64_t expected[EPOCH_MAX];
	uint32_t n;
};

static void course_begin(struct course *c, const struct setup *setup)
{
	const struct gw_client_options alone = {.part_config = setup->fixture.folder, .threads = 1};
	const struct gw_client_options some = {.servers = setup->cluster.list, .server_count = 2, .threads = 2};
	struct gw_client *client = open_client(&alone);
	make_plan(client, &c->plan, false, false);
	c->n = run_epoch(client, &c->plan, 1, c->expected);
	gw_client_close(client);
	c->client = open_client(&some);
	make_plan(c->client, &c->plan, false, false);
	c->loader = open_loader(c->client, &c->plan, (struct gw_loader_state){.epoch = 1});
}

static void course_take(struct course *c, uint32_t b)
{
	struct gw_minibatch *batch;
	if (gw_loader_next(c->loader, &batch, -1) != GW_OK)
		fail_msg("batch %u: %s", b, gw_last_error());
	assert_true(gw_minibatch_digest(batch) == c->expected[b]);
	gw_minibatch_release(batch);
}

static void course_end(struct course *c)
{
	gw_loader_close(c->loader);
	gw_client_close(c->client);
}

/* The near part goes away in the middle of an epoch, and comes back unmapped: its replicas are of no use then. */
static void the_near_part_is_lost(void **state)
{
	(void)state;
	struct setup setup;
	struct course course;
	begin_near(&setup, 91, 2, 0, "30%");
	course_begin(&course, &setup);
	uint64_t near_before = 0;
	for (uint32_t b = 0; b < course.n; b++) {
		if (b == course.n / 3 || b == 2 * course.n / 3) {
			near_before = stats_of(course.client).replica_rows;
			cluster_kill(&setup.cluster, 0);
			setup.cluster.transport = b == course.n / 3 ? NULL : "shm";
			cluster_revive(&setup.cluster, 0);
		}
		course_take(&course, b);
	}
	assert_true(near_before > 0);
	course_end(&course);
	setup_end(&setup);
}

/* The near part ends, which the client learns while it copies a long list of its replicas: one in 61 polls looks at
 * idle connections (transport/poll_group.c), and a slice copies 2^17 rows. The owner sends the rest. */
static void the_near_part_is_lost_between_slices(void **state)
{
	(void)state;
	enum { LIST = 400000 };
	const uint64_t all = gw_many(30) * LIST;
	struct setup setup;
	begin_near(&setup, 92, 2, 0, "100%");
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client_options some = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	struct gw_client *client = open_client(&some), *other = open_client(&alone);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	const uint64_t bytes = feat->row_bytes;
	int64_t begin, end, *near = gw_calloc(SETUP_SCALE, sizeof(*near));
	uint64_t count = 0;
	uint8_t *expected = gw_calloc(SETUP_SCALE, bytes), *rows = gw_calloc(all, bytes);
	int64_t *ids = gw_calloc(all, sizeof(*ids));
	assert_int_equal(gw_part_range(client, feat->type, 1, &begin, &end), GW_OK);
	for (int64_t id = begin; id < end; id++) {
		const uint64_t before = stats_of(client).replica_rows;
		assert_int_equal(gw_gather(client, feat, &id, 1, rows), GW_OK);
		if (stats_of(client).replica_rows > before)
			near[count++] = id;
	}
	if (count < 10)
		fail_msg("%d rows are near", (int)count);
	assert_int_equal(gw_gather(other, node_tensor(other, "paper", "feat"), near, count, expected), GW_OK);
	for (uint64_t i = 0, next = 0; i < all; i++, next = next + 1 < count ? next + 1 : 0)
		ids[i] = near[next];
	memset(rows, 0, all * bytes);
	struct gw_ticket *ticket;
	cluster_kill(&setup.cluster, 0);
	assert_int_equal(gw_gather_start(client, feat, ids, all, rows, &ticket), GW_OK);
	setup.cluster.transport = NULL;
	cluster_revive(&setup.cluster, 0);
	assert_int_equal(gw_wait(ticket, -1), GW_OK);
	for (uint64_t i = 0, next = 0; i < all; i++, next = next + 1 < count ? next + 1 : 0)
		assert_memory_equal(rows + i * bytes, expected + next * bytes, bytes);
	gw_client_close(client);
	gw_client_close(other);
	gw_free(near);
	gw_free(expected);
	gw_free(rows);
	gw_free(ids);
	setup_end(&setup);
}

/* A successor takes over the near part with its replicas, under a running loader. */
static void the_near_part_is_taken_over(void **state)
{
	(void)state;
	struct setup setup;
	struct course course;
	uint64_t before = 0;
	begin_near(&setup, 93, 2, 0, "30%");
	course_begin(&course, &setup);
	for (uint32_t b = 0; b < course.n; b++) {
		if (b == course.n / 2) {
			before = stats_of(course.client).replica_rows;
			cluster_replace(&setup.cluster, 0);
		}
		course_take(&course, b);
	}
	course_end(&course);
	/* A client that comes later finds them too. */
	course_begin(&course, &setup);
	for (uint32_t b = 0; b < course.n; b++)
		course_take(&course, b);
	assert_true(before > 0 && stats_of(course.client).replica_rows > 0);
	course_end(&course);
	setup_end(&setup);
}

/* Rows that change are never replicated. */
static void mutable_rows_have_no_replicas(void **state)
{
	(void)state;
	struct setup setup;
	cluster_serve_mutable("feat");
	begin_near(&setup, 95, 2, 0, "50%");
	struct gw_client_options some = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	struct gw_client *client = open_client(&some);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t ids[200];
	float rows[200][5], row[5] = {1, 2, 3, 4, 5};
	assert_true(feat->writable);
	for (int64_t i = 0; i < 200; i++)
		ids[i] = (int64_t)feat->shape[0] - 1 - i;
	assert_int_equal(gw_update(client, feat, ids, 1, row), GW_OK);
	assert_int_equal(gw_gather(client, feat, ids, 200, rows), GW_OK);
	assert_memory_equal(rows[0], row, sizeof(row));
	assert_true(stats_of(client).replica_rows == 0);
	/* those of the others are */
	const struct gw_tensor *q = node_tensor(client, "author", "q");
	int64_t *all = gw_calloc(q->shape[0], sizeof(*all));
	uint8_t *bytes = gw_calloc(q->shape[0], q->row_bytes);
	for (uint64_t i = 0; i < q->shape[0]; i++)
		all[i] = (int64_t)i;
	assert_int_equal(gw_gather(client, q, all, q->shape[0], bytes), GW_OK);
	assert_true(stats_of(client).replica_rows > 0);
	gw_free(all);
	gw_free(bytes);
	gw_client_close(client);
	cluster_serve_mutable(NULL);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_of_two_versions_are_refused),
		cmocka_unit_test(the_server_learns_what_it_saved),
		cmocka_unit_test(false_reports_are_refused),
		cmocka_unit_test(epochs_have_the_same_bytes),
		cmocka_unit_test(all_rows_are_near),
		cmocka_unit_test(the_near_part_is_lost),
		cmocka_unit_test(the_near_part_is_lost_between_slices),
		cmocka_unit_test(the_near_part_is_taken_over),
		cmocka_unit_test(mutable_rows_have_no_replicas),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
