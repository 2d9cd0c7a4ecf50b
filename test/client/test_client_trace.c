/* What the trace tells of an epoch: every batch once, every hop, every server that was asked, by requests and by reads;
 * with the bytes of a client without servers. A server that is lost is seen, and so is its return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/client_setup.h"
#include "test/support/scratch.h"
#include "test/support/trace_events.h"

#define PARTS 3

static char folder[] = "/tmp/gw-test-client-trace-XXXXXX", path[128];
static struct setup setup;

static struct gw_client *open_over_tcp(const char *neighbours)
{
	const struct gw_client_options options = {.servers = setup.cluster.list,
						  .server_count = PARTS,
						  .threads = 2,
						  .transport = "tcp",
						  .neighbours = neighbours};
	return open_client(&options);
}

static json_t *events_until_now(void)
{
	gw_trace_flush();
	return trace_events_read(path, false);
}

static double number_of(const json_t *event, const char *argument)
{
	return trace_event_number(json_object_get(event, "args"), argument);
}

static bool has(const json_t *event, const char *phase, const char *category)
{
	return strcmp(trace_event_text(event, "ph"), phase) == 0 &&
	       strcmp(trace_event_text(event, "cat"), category) == 0;
}

/* What begins ends once, and not before. */
static void check_ends(const json_t *events, const json_t *begin)
{
	size_t i, ends = 0;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		if (has(event, "e", trace_event_text(begin, "cat")) &&
		    strcmp(trace_event_text(event, "id"), trace_event_text(begin, "id")) == 0 &&
		    strcmp(trace_event_text(event, "name"), trace_event_text(begin, "name")) == 0) {
			assert_true(trace_event_number(event, "ts") >= trace_event_number(begin, "ts"));
			if (has(event, "e", "request"))
				assert_string_equal(trace_event_text(json_object_get(event, "args"), "transport"),
						    "tcp");
			ends++;
		}
	}
	assert_int_equal(ends, 1);
}

/* The number of a batch in the trace, by its place; the batch was handed over exactly once. */
static double batch_at(const json_t *events, double first, uint32_t step)
{
	size_t i, count = 0;
	json_t *event;
	double batch = 0;
	json_array_foreach(events, i, event)
	{
		if (!has(event, "e", "batch") || number_of(event, "batch") <= first || number_of(event, "epoch") != 0 ||
		    number_of(event, "step") != step || strcmp(trace_event_text(event, "name"), "batch") != 0)
			continue;
		assert_string_equal(trace_event_text(json_object_get(event, "args"), "end"), "handed over");
		batch = number_of(event, "batch");
		count++;
	}
	assert_int_equal(count, 1);
	return batch;
}

/* What a batch asked of a part: requests or reads of this name that began. */
static size_t asked(const json_t *events, double batch, uint32_t part, const char *what)
{
	size_t i, count = 0;
	json_t *event;
	char name[32];
	snprintf(name, sizeof(name), "part %u: %s", part, what);
	json_array_foreach(events, i, event)
	{
		if (!has(event, "b", "request") || number_of(event, "batch") != batch ||
		    strcmp(trace_event_text(event, "name"), name) != 0)
			continue;
		assert_int_equal(number_of(event, "part"), part);
		assert_true(number_of(event, "bytes") > 0);
		count++;
	}
	return count;
}

static double last_batch(const json_t *events)
{
	size_t i;
	json_t *event;
	double last = 0;
	json_array_foreach(events, i, event)
	{
		if (has(event, "b", "batch") && number_of(event, "batch") > last)
			last = number_of(event, "batch");
	}
	return last;
}

/* One part of the fixture has no nodes, and is not asked. */
static bool owns_papers(struct gw_client *client, uint32_t part)
{
	uint32_t papers;
	int64_t first, last;
	assert_int_equal(gw_node_type(client, "paper", &papers), GW_OK);
	assert_int_equal(gw_part_range(client, papers, part, &first, &last), GW_OK);
	return last > first;
}

static void check_epoch(struct gw_client *alone, const char *neighbours)
{
	struct plan plan;
	uint64_t digests[EPOCH_MAX], expected[EPOCH_MAX];
	json_t *before = events_until_now();
	double first = last_batch(before);
	json_decref(before);
	struct gw_client *client = open_over_tcp(neighbours);
	make_plan(client, &plan, false, false);
	uint32_t steps = run_epoch(client, &plan, 0, digests);
	gw_client_close(client);
	json_t *events = events_until_now();
	make_plan(alone, &plan, false, false);
	assert_int_equal(run_epoch(alone, &plan, 0, expected), steps);
	assert_memory_equal(digests, expected, steps * sizeof(*digests));
	assert_true(steps > 3);
	for (uint32_t step = 0; step < steps; step++) {
		double batch = batch_at(events, first, step);
		for (uint32_t part = 0; part < PARTS; part++) {
			bool owns = owns_papers(alone, part);
			assert_true((asked(events, batch, part, "hop 0") > 0) == owns);
			assert_true((asked(events, batch, part, "hop 1") > 0) == owns);
			assert_true((asked(events, batch, part, "rows") > 0) == owns);
		}
	}
	size_t i;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		if (has(event, "b", "batch") || has(event, "b", "request"))
			check_ends(events, event);
	}
	assert_true(trace_events_check_nests(events) >= 2);
	assert_true(trace_events_count(events, "X", "wait") >= steps);
	assert_true(trace_events_count(events, "X", "hop 0: block") >= steps);
	json_decref(events);
}

static void every_batch_and_server_of_an_epoch_is_there(void **state)
{
	(void)state;
	const struct gw_client_options options = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client *alone = open_client(&options);
	check_epoch(alone, "requests");
	check_epoch(alone, "reads");
	gw_client_close(alone);
}

static void a_lost_server_is_seen(void **state)
{
	(void)state;
	struct plan plan;
	uint64_t digests[EPOCH_MAX];
	struct gw_client *client = open_over_tcp(NULL);
	make_plan(client, &plan, false, false);
	run_epoch(client, &plan, 0, digests);
	json_t *events = events_until_now();
	assert_int_equal(trace_events_count(events, "i", "server 2: lost"), 0);
	size_t connects = trace_events_count(events, "e", "server 2: connect");
	assert_true(connects > 0);
	json_decref(events);
	cluster_kill(&setup.cluster, 2);
	cluster_revive(&setup.cluster, 2);
	run_epoch(client, &plan, 1, digests);
	gw_client_close(client);
	events = events_until_now();
	assert_true(trace_events_count(events, "i", "server 2: lost") > 0);
	assert_int_equal(trace_events_count(events, "i", "server 0: lost"), 0);
	assert_true(trace_events_count(events, "e", "server 2: connect") > connects);
	json_decref(events);
}

static int begin(void **state)
{
	(void)state;
	gw_scratch_make(folder);
	snprintf(path, sizeof(path), "%s/trace.json", folder);
	setenv("GRAPHWIRE_TRACE", path, 1);
	setup_begin(&setup, 31, PARTS, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	setup_end(&setup);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_batch_and_server_of_an_epoch_is_there),
		cmocka_unit_test(a_lost_server_is_seen),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
