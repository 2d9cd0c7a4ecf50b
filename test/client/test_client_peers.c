/* The client and peers that are stuck or die. Every wait ends in time, nothing is written after it has ended, nothing
 * leaks, and the client recovers when the peer does. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "test/support/line.h"
#include "test/support/must.h"
#include "transport/service/service_backend.h"
#include "transport/tcp/wire.h"

/* --- Servers that are stuck. --- */

static const int64_t places[] = {0, 1, 15, 16, 17, 95, 96, 97, 150, 200, 240, 280, 400, 1000, 5000, 20000, 1000000};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void open_ends_wherever_the_server_is_stuck(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin_open(&setup, 50, 1, SETUP_SCALE);
	uint32_t opened = 0, failed = 0;
	clock_begin();
	for (size_t i = 0; i < PLACES; i++) {
		struct relay relay;
		relay_begin(&relay, &setup.cluster.addresses[0]);
		relay_hold_after(&relay, places[i]);
		const char *list[] = {relay.text};
		struct gw_client_options options = {.servers = list,
						    .server_count = 1,
						    .threads = 1,
						    .timeout_ms = SHORT_MS,
						    .reconnect_ms = 1,
						    .insecure = true};
		struct gw_client *client;
		if (i == PLACES - 1) /* after everything that opening needs */
			options.timeout_ms = LONG_MS;
		gw_status status = gw_client_open(&options, &client);
		if (status == GW_OK)
			opened++;
		else
			failed++;
		if (status != GW_OK && (status != GW_DEADLINE || !strstr(gw_last_error(), relay.text)))
			fail_msg("held after %lld bytes: %s: %s", (long long)places[i], gw_status_text(status),
				 gw_last_error());
		gw_client_close(client);
		relay_end(&relay);
	}
	clock_check();
	assert_true(opened > 0 && failed > 5);
	setup_end(&setup);
}

static void nothing_is_written_after_a_deadline(void **state)
{
	(void)state;
	struct line line;
	line_begin(&line, 20ul * SETUP_SCALE, (struct gw_client_options){.timeout_ms = SHORT_MS});
	uint64_t bytes = line.n * line.feat->row_bytes;
	assert_true(bytes > 100000);
	uint8_t *snapshot = malloc(bytes);
	static const int64_t held[] = {0, 1, 16, 100, 10000, 60000, 100000};
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		line_hold(&line, held[i]);
		expect(line_gather(&line), GW_DEADLINE, line.relay.text);
		memcpy(snapshot, line.out, bytes);
		uint8_t *out = line.out;
		line.out = malloc(bytes);
		relay_pass(&line.relay); /* the rest arrives now */
		line_works(&line);
		free(line.out);
		line.out = out;
		assert_memory_equal(line.out, snapshot, bytes);
	}
	free(snapshot);
	line_end(&line);
}

static void reads_that_wait_for_room_keep_their_deadline(void **state)
{
	(void)state;
	enum { TICKETS = 400 };
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = SHORT_MS});
	struct gw_ticket *tickets[TICKETS];
	uint8_t *rows = malloc(TICKETS * line.feat->row_bytes);
	line_hold(&line, 0);
	clock_begin();
	for (uint32_t i = 0; i < TICKETS; i++)
		assert_int_equal(gw_gather_start(line.client, line.feat, line.ids, 1, rows + i * line.feat->row_bytes,
						 &tickets[i]),
				 GW_OK);
	for (uint32_t i = 0; i < TICKETS; i++)
		expect(gw_wait(tickets[i], -1), GW_DEADLINE, line.relay.text);
	clock_check();
	relay_pass(&line.relay);
	line_works(&line);
	free(rows);
	line_end(&line);
}

/* The first read that finds no room belongs to no connection: the next connection takes it. */
static void reads_that_wait_for_room_outlive_the_connection(void **state)
{
	(void)state;
	enum { TICKETS = 400 };
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = LONG_MS, .reconnect_ms = LONG_MS});
	struct gw_ticket *tickets[TICKETS];
	uint64_t row_bytes = line.feat->row_bytes;
	uint8_t *rows = malloc(TICKETS * row_bytes);
	line_hold(&line, 0);
	for (uint32_t i = 0; i < TICKETS; i++)
		must(gw_gather_start(line.client, line.feat, line.ids + i % line.n, 1, rows + i * row_bytes,
				     &tickets[i]));
	/* The first is open, and the last waits for room: its cancel ends after all reads before it were posted. */
	gw_cancel(tickets[0]);
	gw_cancel(tickets[TICKETS - 1]);
	uint64_t before = atomic_load(&line.relay.accepted);
	relay_cut_after(&line.relay, 0);
	clock_begin();
	while (atomic_load(&line.relay.accepted) == before) {
		sleep_ms(5);
		clock_check();
	}
	relay_pass(&line.relay);
	for (uint32_t i = 1; i < TICKETS - 1; i++) {
		must(gw_wait(tickets[i], -1));
		assert_memory_equal(rows + i * row_bytes, line.expected + i % line.n * row_bytes, row_bytes);
	}
	clock_check();
	free(rows);
	line_end(&line);
}

static void more_operations_than_there_may_be_are_refused_by_name(void **state)
{
	(void)state;
	enum { MORE = 50, TICKETS = GW_JOBS_MAX + MORE };
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = LONG_MS});
	static struct gw_ticket *tickets[TICKETS];
	uint8_t *rows = malloc(TICKETS * line.feat->row_bytes);
	line_hold(&line, 0);
	for (uint32_t i = 0; i < TICKETS; i++)
		assert_int_equal(gw_gather_start(line.client, line.feat, line.ids + i % line.n, 1,
						 rows + i * line.feat->row_bytes, &tickets[i]),
				 GW_OK);
	/* Operations are processed in order, so the end of the last one, which is refused, means that all were. */
	expect(gw_wait(tickets[TICKETS - 1], -1), GW_LIMIT, "operations at once");
	relay_pass(&line.relay);
	uint32_t limited = 1;
	for (uint32_t i = 0; i < TICKETS - 1; i++) {
		if (i % 1000 == 999) {
			gw_cancel(tickets[i]);
			continue;
		}
		gw_status status = gw_wait(tickets[i], -1);
		limited += status == GW_LIMIT;
		if (status == GW_OK)
			assert_memory_equal(rows + i * line.feat->row_bytes,
					    line.expected + i % line.n * line.feat->row_bytes, line.feat->row_bytes);
		else
			expect(status, GW_LIMIT, "operations at once");
	}
	assert_in_range(limited, 1, MORE);
	line_works(&line);
	free(rows);
	line_end(&line);
}

/* --- One deadline for the whole operation. --- */

struct trickle {
	struct relay *relay;
	int64_t step; /* bytes passed every SHORT_MS / 10 */
	atomic_bool stop;
	pthread_t thread;
};

static void *run_trickle(void *argument)
{
	struct trickle *trickle = argument;
	int64_t passed = (int64_t)atomic_load(&trickle->relay->answer_bytes);
	while (!atomic_load(&trickle->stop)) {
		passed += trickle->step;
		relay_hold_after(trickle->relay, passed);
		sleep_ms(SHORT_MS / 10);
	}
	return NULL;
}

static gw_status sample_by_trickle(struct line *line, const struct gw_sample_spec *spec, uint64_t n, int64_t step,
				   uint64_t *took_ms)
{
	struct trickle trickle = {.relay = &line->relay, .step = step};
	struct gw_minibatch *batch = NULL;
	relay_hold_after(&line->relay, (int64_t)atomic_load(&line->relay.answer_bytes)); /* until the thread runs */
	assert_int_equal(pthread_create(&trickle.thread, NULL, run_trickle, &trickle), 0);
	uint64_t start = gw_now_ns();
	gw_status status = gw_sample(line->client, spec, 1, 1, line->ids, n, &batch);
	*took_ms = (gw_now_ns() - start) / GW_NS_PER_MS;
	if (status != GW_OK)
		expect(status, GW_DEADLINE, "operation's deadline");
	atomic_store(&trickle.stop, true);
	pthread_join(trickle.thread, NULL);
	relay_pass(&line->relay);
	gw_minibatch_release(batch);
	return status;
}

/* Many reads, all in time, that together take longer than an operation may. */
static void many_timely_reads_are_one_late_operation(void **state)
{
	(void)state;
	enum { HOPS = 8, SEEDS = 50 };
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = 4 * SHORT_MS, .neighbours = "reads"});
	int32_t fanouts[HOPS * GW_FIXTURE_ETYPES] = {0};
	for (int h = 0; h < HOPS; h++)
		fanouts[h * GW_FIXTURE_ETYPES + FIXTURE_CITES] = 1;
	struct gw_sample_spec spec = {.ntype = line.feat->type, .hops = HOPS, .fanouts = fanouts};
	struct gw_minibatch *batch;
	uint64_t before = atomic_load(&line.relay.answer_bytes);
	LINE_WORKS(gw_sample(line.client, &spec, 1, 1, line.ids, SEEDS, &batch));
	uint64_t digest = gw_minibatch_digest(batch), bytes = atomic_load(&line.relay.answer_bytes) - before;
	gw_minibatch_release(batch);

	/* Three times the time that an operation may take. If the client is delayed as long, all bytes arrive in time.
	 */
	gw_status status = GW_OK;
	uint64_t ms = 0;
	for (int tries = 0; tries < 100 && status == GW_OK; tries++)
		status = sample_by_trickle(&line, &spec, SEEDS, (int64_t)bytes / 120 + 1, &ms);
	assert_int_equal(status, GW_DEADLINE);
	assert_true(ms >= 4 * SHORT_MS);
	LINE_WORKS(gw_sample(line.client, &spec, 1, 1, line.ids, SEEDS, &batch));
	assert_true(gw_minibatch_digest(batch) == digest);
	gw_minibatch_release(batch);
	line_end(&line);
}

/* A server is away for longer than an operation may take: the time away does not count. */
static void the_deadline_stands_still_while_the_server_is_away(void **state)
{
	(void)state;
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = 8 * SHORT_MS, .reconnect_ms = LONG_MS});
	struct plan plan;
	make_plan(line.client, &plan, false, false);
	struct gw_minibatch *batch;
	LINE_WORKS(gw_sample(line.client, &plan.spec, 1, 1, line.ids, 50, &batch));
	uint64_t digest = gw_minibatch_digest(batch);
	gw_minibatch_release(batch);
	struct gw_ticket *gather, *sample;
	relay_cut_after(&line.relay, 0);
	assert_int_equal(gw_gather_start(line.client, line.feat, line.ids, line.n, line.out, &gather), GW_OK);
	assert_int_equal(gw_sample_start(line.client, &plan.spec, 1, 1, line.ids, 50, &batch, &sample), GW_OK);
	expect(gw_wait(sample, 12 * SHORT_MS), GW_AGAIN, "");
	relay_pass(&line.relay);
	if (gw_wait(sample, -1) != GW_OK || gw_wait(gather, -1) != GW_OK)
		fail_msg("%s", gw_last_error());
	assert_true(gw_minibatch_digest(batch) == digest);
	assert_memory_equal(line.out, line.expected, line.n * line.feat->row_bytes);
	gw_minibatch_release(batch);
	line_end(&line);
}

/* --- Cancelled. --- */

static void cancel_waits_for_no_server(void **state)
{
	(void)state;
	static const char *const ways[] = {"requests", "reads"};
	for (size_t w = 0; w < 2; w++) {
		struct line line;
		line_begin(&line, SETUP_SCALE,
			   (struct gw_client_options){.timeout_ms = LONG_MS, .neighbours = ways[w]});
		struct plan plan;
		make_plan(line.client, &plan, false, false);
		/* Held at once, in the middle of a hop's answers, and between hops. */
		static const int64_t held[] = {0, 20, 500, 2000};
		clock_begin();
		for (size_t h = 0; h < sizeof(held) / sizeof(held[0]); h++) {
			struct gw_ticket *gather, *sample;
			struct gw_minibatch *batch;
			line_hold(&line, held[h]);
			assert_int_equal(gw_sample_start(line.client, &plan.spec, 1, 1, line.ids, 50, &batch, &sample),
					 GW_OK);
			assert_int_equal(gw_gather_start(line.client, line.feat, line.ids, line.n, line.out, &gather),
					 GW_OK);
			sleep_ms(20);
			gw_cancel(sample);
			gw_cancel(gather);
			relay_pass(&line.relay);
			line_works(&line);
			assert_int_equal(gw_sample(line.client, &plan.spec, 1, 1, line.ids, 50, &batch), GW_OK);
			gw_minibatch_release(batch);
		}
		clock_check();
		line_end(&line);
	}
}

static void a_loader_closes_in_mid_epoch(void **state)
{
	(void)state;
	struct line line;
	line_begin(
		&line, SETUP_SCALE,
		(struct gw_client_options){.timeout_ms = LONG_MS, .reconnect_ms = LONG_MS, .neighbours = "requests"});
	struct plan plan;
	make_plan(line.client, &plan, false, false);
	clock_begin();
	for (int round = 0; round < 12; round++) {
		struct gw_loader *loader = open_loader(line.client, &plan, (struct gw_loader_state){0});
		struct gw_minibatch *held = NULL, *batch;
		assert_int_equal(gw_loader_next(loader, &held, -1), GW_OK);
		uint64_t digest = gw_minibatch_digest(held);
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		gw_minibatch_release(batch);
		if (round % 3 == 1)
			line_hold(&line, 100l * round);
		if (round % 3 == 2)
			relay_cut_after(&line.relay, 0); /* the server is away, and every new connection is lost too */
		sleep_ms(round);
		gw_loader_close(loader);
		/* A batch outlives its loader. */
		assert_true(gw_minibatch_digest(held) == digest);
		gw_minibatch_release(held);
		relay_pass(&line.relay);
		if (round % 3 == 2) /* counts the connections again */
			atomic_store(&line.relay.answer_bytes, 0);
		line_works(&line);
	}
	clock_check();
	line_end(&line);
}

static void a_batch_that_is_not_there_yet_is_not_lost(void **state)
{
	(void)state;
	const long timeout_ms = 8 * SHORT_MS;
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = timeout_ms, .neighbours = "requests"});
	struct plan plan;
	struct gw_client_options options = {
		.servers = line.setup.cluster.list, .server_count = 1, .threads = 1, .insecure = true};
	struct gw_client *patient = open_client(&options);
	uint64_t digests[EPOCH_MAX], begun_ns, asked_ns;
	make_plan(patient, &plan, false, false);
	uint32_t steps = run_epoch(patient, &plan, 0, digests); /* more steps than the depth, which fail */
	gw_client_close(patient);

	line_hold(&line, 0);
	make_plan(line.client, &plan, false, false);
	struct gw_loader *loader = NULL;
	struct gw_minibatch *batch;
	char first_text[GW_ERROR_TEXT_MAX];
	gw_status first, second;
	do { /* again, if this process was delayed until the deadline */
		gw_loader_close(loader);
		begun_ns = gw_now_ns();
		loader = open_loader(line.client, &plan, (struct gw_loader_state){0});
		first = gw_loader_next(loader, &batch, 0);
		snprintf(first_text, sizeof(first_text), "%s", gw_last_error());
		second = gw_loader_next(loader, &batch, 20);
		asked_ns = gw_now_ns();
	} while (asked_ns - begun_ns >= (uint64_t)timeout_ms * GW_NS_PER_MS);
	assert_int_equal(first, GW_AGAIN);
	assert_non_null(strstr(first_text, "0 ms"));
	expect(second, GW_AGAIN, "20 ms");
	/* A batch that misses its own deadline has failed, and the next call tries it again. */
	expect(gw_loader_next(loader, &batch, -1), GW_DEADLINE, "step 0");
	assert_null(batch);
	relay_pass(&line.relay);
	gw_status status;
	do /* a busy machine */
		status = gw_loader_next(loader, &batch, -1);
	while (status == GW_DEADLINE);
	assert_int_equal(status, GW_OK);
	assert_int_equal(batch->step, 0);
	assert_true(gw_minibatch_digest(batch) == digests[0] && steps > 1);
	gw_minibatch_release(batch);
	gw_loader_close(loader);
	line_end(&line);
}

/* Before batch `at` the server stops to answer, and after the first error it answers again. Returns the number of
 * errors. */
static uint32_t epoch_over_an_outage(struct line *line, struct gw_loader *loader, const uint64_t *digests,
				     uint32_t steps, uint32_t at, bool cut)
{
	uint32_t errors = 0, done = 0;
	for (;;) {
		struct gw_minibatch *batch;
		struct gw_loader_state state;
		if (done == at && errors == 0) {
			if (cut)
				relay_cut_after(&line->relay, 0);
			else
				relay_hold_after(&line->relay, 0);
		}
		gw_status status = gw_loader_next(loader, &batch, -1);
		if (status == GW_END)
			break;
		gw_loader_get_state(loader, &state);
		if (status != GW_OK) {
			char place[32];
			snprintf(place, sizeof(place), "step %u", done);
			if (status != GW_DEADLINE && status != GW_PEER_LOST && status != GW_PROTOCOL)
				fail_msg("%s", gw_last_error());
			assert_non_null(strstr(gw_last_error(), place));
			assert_null(batch);
			assert_int_equal(state.step, done);
			assert_in_range(++errors, 1, 1000);
			relay_pass(&line->relay);
			continue;
		}
		assert_true(done < steps && gw_minibatch_digest(batch) == digests[done]);
		assert_int_equal(batch->step, done);
		assert_int_equal(state.step, ++done);
		gw_minibatch_release(batch);
	}
	assert_int_equal(done, steps);
	relay_pass(&line->relay);
	return errors;
}

static void an_outage_costs_a_loader_no_batch(void **state)
{
	(void)state;
	for (uint32_t threads = 1; threads <= 3; threads += 2) {
		struct line line;
		line_begin(&line, SETUP_SCALE,
			   (struct gw_client_options){.timeout_ms = SHORT_MS,
						      .reconnect_ms = SHORT_MS,
						      .threads = threads,
						      .neighbours = "requests"});
		struct gw_client_options alone = {.part_config = line.setup.cluster.part_config};
		struct gw_client *standalone = open_client(&alone);
		struct plan plan;
		uint64_t digests[EPOCH_MAX];
		make_plan(standalone, &plan, false, false);
		uint32_t steps = run_epoch(standalone, &plan, 0, digests), errors = 0;
		gw_client_close(standalone);
		assert_true(steps > 6); /* more than are under way */
		make_plan(line.client, &plan, false, false);
		for (uint32_t at = 0; at < steps; at += 3) {
			for (int cut = 0; cut < 2; cut++) {
				struct gw_loader *loader = open_loader(line.client, &plan, (struct gw_loader_state){0});
				uint32_t some = epoch_over_an_outage(&line, loader, digests, steps, at, cut);
				if (some == 0 && at + 6 < steps)
					fail_msg("no error at step %u of %u, cut: %d", at, steps, cut);
				errors += some;
				gw_loader_close(loader);
			}
		}
		assert_true(errors > 0);
		line_end(&line);
	}
}

/* --- Servers that die. --- */

/* Returns whether the budget was long enough for a second attempt. */
static bool dies_at_any_byte(long reconnect_ms)
{
	struct line line;
	line_begin(&line, 10ul * SETUP_SCALE,
		   (struct gw_client_options){.timeout_ms = LONG_MS, .reconnect_ms = reconnect_ms});
	uint32_t lost = 0, answered = 0, tried_again = 0;
	clock_begin();
	for (size_t i = 0; i < PLACES; i++) {
		relay_cut_after(&line.relay, places[i]);
		uint64_t before = atomic_load(&line.relay.accepted);
		gw_status status = line_gather(&line);
		if (status == GW_OK) {
			answered++;
			assert_memory_equal(line.out, line.expected, line.n * line.feat->row_bytes);
		} else {
			lost++;
			if (status != GW_PEER_LOST && status != GW_PROTOCOL)
				fail_msg("cut after %lld bytes: %s: %s", (long long)places[i], gw_status_text(status),
					 gw_last_error());
			assert_non_null(strstr(gw_last_error(), "reconnect budget"));
			/* More than one attempt if there was time, but not many. */
			uint64_t tries = atomic_load(&line.relay.accepted) - before;
			assert_in_range(tries, 0, 20);
			tried_again += tries > 1;
		}
		relay_pass(&line.relay);
		/* The budget is short: on a busy machine it may expire before the server is back. */
		for (int tries = 0; tries < 100 && line_gather(&line) == GW_PEER_LOST;)
			tries++;
		line_works(&line);
	}
	clock_check();
	assert_true(lost > 5 && answered > 0);
	line_end(&line);
	return tried_again > 0;
}

static void a_server_that_dies_at_any_byte_is_tried_again_then_given_up(void **state)
{
	(void)state;
	long reconnect_ms = SHORT_MS;
	while (!dies_at_any_byte(reconnect_ms)) { /* on a busy machine the second attempt needs more time */
		reconnect_ms *= 4;
		assert_true(reconnect_ms <= 64 * SHORT_MS);
	}
}

static void open_tries_a_dying_server_until_it_lives(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin_open(&setup, 52, 1, SETUP_SCALE);
	struct relay relay;
	relay_begin(&relay, &setup.cluster.addresses[0]);
	const char *list[] = {relay.text};
	for (size_t i = 0; i < PLACES; i++) {
		relay_cut_after(&relay, places[i]);
		struct gw_client_options options = {
			.servers = list, .server_count = 1, .threads = 1, .timeout_ms = SHORT_MS, .insecure = true};
		struct gw_client *client;
		gw_status status = gw_client_open(&options, &client);
		while (status == GW_DEADLINE && options.timeout_ms < LONG_MS) { /* a busy machine */
			options.timeout_ms *= 4;
			status = gw_client_open(&options, &client);
		}
		if (status != GW_OK && status != GW_PEER_LOST && status != GW_PROTOCOL)
			fail_msg("cut after %lld bytes: %s", (long long)places[i], gw_last_error());
		assert_true(places[i] > 1000 || status != GW_OK);
		gw_client_close(client);
	}
	relay_end(&relay);
	setup_end(&setup);
}

static void each_operation_has_its_own_budget(void **state)
{
	(void)state;
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = LONG_MS, .reconnect_ms = 8 * SHORT_MS});
	struct gw_ticket *ticket;
	uint64_t before = atomic_load(&line.relay.accepted);
	relay_cut_after(&line.relay, 0);
	assert_int_equal(gw_gather_start(line.client, line.feat, line.ids, line.n, line.out, &ticket), GW_OK);
	while (atomic_load(&line.relay.accepted) == before) /* until it tries */
		sleep_ms(1);
	gw_cancel(ticket);
	sleep_ms(10 * SHORT_MS);
	relay_pass(&line.relay);
	line_works(&line);
	line_end(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_ends_wherever_the_server_is_stuck),
		cmocka_unit_test(nothing_is_written_after_a_deadline),
		cmocka_unit_test(reads_that_wait_for_room_keep_their_deadline),
		cmocka_unit_test(reads_that_wait_for_room_outlive_the_connection),
		cmocka_unit_test(more_operations_than_there_may_be_are_refused_by_name),
		cmocka_unit_test(many_timely_reads_are_one_late_operation),
		cmocka_unit_test(the_deadline_stands_still_while_the_server_is_away),
		cmocka_unit_test(cancel_waits_for_no_server),
		cmocka_unit_test(a_loader_closes_in_mid_epoch),
		cmocka_unit_test(a_batch_that_is_not_there_yet_is_not_lost),
		cmocka_unit_test(an_outage_costs_a_loader_no_batch),
		cmocka_unit_test(a_server_that_dies_at_any_byte_is_tried_again_then_given_up),
		cmocka_unit_test(open_tries_a_dying_server_until_it_lives),
		cmocka_unit_test(each_operation_has_its_own_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
