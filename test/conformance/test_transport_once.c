/* Numbered calls, one suite over every backend. Each call is applied once, whatever happens to the connections that
 * carry it, and however many calls are open. If the server cannot know whether a call was applied, it reports that and
 * does not apply it. The oracle is the server's counter: every answer is another number, and the count of answers is
 * the sum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/many.h"
#include "test/support/transport_bed.h"
#include "transport/service/replay_cache.h"
#include "transport/service/service_backend.h"

static void reconnect(struct one *one, uint64_t budget_ns)
{
	struct gw_connect_options options = gw_bed_options(&one->bed);
	options.budget_ns = budget_ns;
	gw_endpoint_close(one->endpoint);
	assert_int_equal(gw_bed_connect(one->group, &options, &one->endpoint), GW_OK);
}

static void uuid_of(uint32_t number, uint8_t uuid[16])
{
	memset(uuid, 0x77, 16);
	memcpy(uuid, &number, sizeof(number));
}

/* Other clients connect while this one is away, until one of them takes its place; then they leave. */
static void be_forgotten(struct one *one)
{
	struct gw_replay_cache *cache = one->bed.service->replay_cache;
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	uint8_t uuid[16];
	gw_endpoint_close(one->endpoint);
	for (uint32_t i = 0; i < GW_REPLAY_CLIENTS; i++) {
		uuid_of(i, uuid);
		while (gw_replay_join(cache, uuid, 0) == 0) {
			assert_true(gw_now_ns() < end); /* the server has not noticed this client's end yet */
			gw_one_nothing_more(one, 1);
		}
	}
	for (uint32_t i = 0; i < GW_REPLAY_CLIENTS; i++) {
		uuid_of(i, uuid);
		gw_replay_goodbye(cache, uuid);
		gw_replay_disconnect(cache, uuid);
	}
	struct gw_connect_options options = gw_bed_options(&one->bed);
	assert_int_equal(gw_bed_connect(one->group, &options, &one->endpoint), GW_OK);
}

static struct gw_completion call_once(struct one *one, uint16_t op, struct gw_once once)
{
	assert_int_equal(gw_endpoint_request(one->endpoint, op, &once, NULL, 0, GW_NO_DEADLINE, one), GW_OK);
	return gw_bed_wait(one->group, one);
}

static uint32_t expect_sum(struct gw_completion completion)
{
	uint32_t sum;
	if (completion.status)
		fail_msg("no sum: %s: %s", gw_status_text(completion.status), completion.text);
	assert_int_equal(completion.reply_bytes, 4);
	memcpy(&sum, completion.reply, 4);
	return sum;
}

/* --- Many open calls, and links that are cut. --- */

#define CALLS_MAX 2000

struct caller {
	struct one *one;
	uint32_t answers[CALLS_MAX + 1]; /* by sequence; 0: no answer yet */
	bool open[CALLS_MAX + 1];
	uint64_t windows[CALLS_MAX + 1];
	uint32_t total, oldest, next;
};

static void post_open(struct caller *caller)
{
	for (uint32_t s = caller->oldest; s < caller->next || (s <= caller->total && s - caller->oldest < GW_WINDOW);
	     s++) {
		if (caller->answers[s] || caller->open[s])
			continue;
		if (!caller->windows[s])
			caller->windows[s] = caller->one->endpoint->peer.window;
		struct gw_once once = {s, caller->oldest, caller->windows[s]};
		gw_status status = gw_endpoint_request(caller->one->endpoint, BED_OP_COUNT, &once, &s, sizeof(s),
						       GW_NO_DEADLINE, &caller->open[s]);
		if (status == GW_AGAIN)
			return;
		assert_int_equal(status, GW_OK);
		caller->open[s] = true;
		caller->next = s >= caller->next ? s + 1 : caller->next;
	}
}

static void take_answers(struct caller *caller, uint64_t timeout_ns)
{
	struct gw_completion completions[16];
	size_t n = gw_poll_group_poll(caller->one->group, completions, 16, timeout_ns);
	for (size_t i = 0; i < n; i++) {
		uint32_t s = (uint32_t)((bool *)completions[i].cookie - caller->open);
		caller->open[s] = false;
		if (completions[i].status == GW_CANCELLED)
			continue; /* from an endpoint that the test closed */
		assert_int_equal(caller->answers[s], 0);
		caller->answers[s] = expect_sum(completions[i]);
	}
	while (caller->oldest <= caller->total && caller->answers[caller->oldest])
		caller->oldest++;
}

static void sums_are_exact_under_cut_links(void **state)
{
	struct bed_options options = {.threads = 2};
	static struct caller caller;
	struct one one;
	uint64_t seed = 1;
	uint32_t cuts = 0;
	gw_one_begin(&one, state, &options, 64);
	memset(&caller, 0, sizeof(caller));
	caller.one = &one;
	caller.total = gw_many(CALLS_MAX);
	caller.oldest = caller.next = 1;
	while (caller.oldest <= caller.total) {
		for (uint64_t turns = gw_below(&seed, 6); turns && caller.oldest <= caller.total; turns--) {
			post_open(&caller);
			take_answers(&caller, gw_below(&seed, 2) ? 0 : GW_NS_PER_MS);
		}
		if (caller.oldest > caller.total)
			break;
		/* The link is cut: open calls are repeated. Their completions are taken first. */
		struct gw_connect_options connect = gw_bed_options(&one.bed);
		gw_endpoint_close(one.endpoint);
		for (bool any = true; any;) {
			take_answers(&caller, 0);
			any = false;
			for (uint32_t s = 1; s < caller.next; s++)
				any |= caller.open[s];
		}
		assert_int_equal(gw_bed_connect(one.group, &connect, &one.endpoint), GW_OK);
		cuts++;
	}
	assert_true(cuts > 0);
	assert_int_equal(atomic_load(&one.bed.applied), caller.total);
	static bool seen[CALLS_MAX + 1];
	memset(seen, 0, sizeof(seen));
	for (uint32_t s = 1; s <= caller.total; s++) {
		assert_in_range(caller.answers[s], 1, caller.total);
		assert_false(seen[caller.answers[s]]);
		seen[caller.answers[s]] = true;
	}
	caller.one = NULL;
	gw_one_end(&one);
}

/* --- Windows. --- */

static void repeats_in_any_order(void **state)
{
	struct one one;
	uint32_t sums[GW_WINDOW + 1];
	gw_one_begin(&one, state, NULL, 64);
	uint64_t window = one.endpoint->peer.window;
	assert_int_not_equal(window, 0);
	for (uint32_t s = GW_WINDOW; s >= 1; s--)
		sums[s] = expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){s, 1, window}));
	reconnect(&one, 0);
	assert_int_equal(one.endpoint->peer.window, window);
	for (uint32_t s = 1; s <= GW_WINDOW; s++)
		assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){s, 1, window})), sums[s]);
	assert_int_equal(atomic_load(&one.bed.applied), GW_WINDOW);
	/* One call more than may be open. Then the oldest is acknowledged, and forgotten. */
	assert_int_equal(call_once(&one, BED_OP_COUNT, (struct gw_once){GW_WINDOW + 1, 1, window}).status, GW_INVALID);
	assert_int_equal(call_once(&one, BED_OP_COUNT, (struct gw_once){1, 2, window}).status, GW_INVALID);
	expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){GW_WINDOW + 1, 2, window}));
	assert_int_equal(call_once(&one, BED_OP_COUNT, (struct gw_once){1, 1, window}).status, GW_INVALID);
	assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){2, 2, window})), sums[2]);
	assert_int_equal(atomic_load(&one.bed.applied), GW_WINDOW + 1);
	gw_one_end(&one);
}

/* A client away for longer than its budget may have been suspended: it is remembered while places are free. */
static void late_clients_are_remembered(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	for (uint64_t s = 1; s <= 20; s++) {
		reconnect(&one, 1); /* a budget of a nanosecond */
		uint64_t window = one.endpoint->peer.window;
		assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){s, 1, window})), s);
		gw_endpoint_close(one.endpoint);
		while (atomic_load(&one.bed.service->counts.connections_open)) /* the server has not noticed it yet */
			gw_one_nothing_more(&one, 1);
		struct gw_connect_options options = gw_bed_options(&one.bed);
		assert_int_equal(gw_bed_connect(one.group, &options, &one.endpoint), GW_OK);
		assert_int_equal(one.endpoint->peer.window, window);
		assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){s, 1, window})), s);
	}
	assert_int_equal(atomic_load(&one.bed.applied), 20);
	gw_one_end(&one);
}

/* Another client needed the place: a repeat is not applied, and its outcome is unknown. */
static void forgotten_clients_get_an_unknown_outcome(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	reconnect(&one, 1);
	uint64_t window = one.endpoint->peer.window;
	assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){1, 1, window})), 1);
	be_forgotten(&one);
	assert_int_not_equal(one.endpoint->peer.window, window);
	for (uint64_t s = 1; s <= 2; s++) {
		struct gw_completion lost = call_once(&one, BED_OP_COUNT, (struct gw_once){s, 1, window});
		assert_int_equal(lost.status, GW_OUTCOME_UNKNOWN);
		assert_true(strlen(lost.text) > 0);
	}
	assert_int_equal(atomic_load(&one.bed.applied), 1);
	/* A new call is applied. */
	uint64_t now = one.endpoint->peer.window;
	assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){3, 3, now})), 2);
	gw_one_end(&one);
}

static void goodbyes_end_windows(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	uint64_t window = one.endpoint->peer.window;
	expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){1, 1, window}));
	assert_int_equal(call_once(&one, GW_OP_GOODBYE, (struct gw_once){0}).status, GW_OK);
	/* Only when the client has no other connection. */
	struct gw_connect_options options = gw_bed_options(&one.bed);
	struct gw_endpoint *second;
	assert_int_equal(gw_bed_connect(one.group, &options, &second), GW_OK);
	assert_int_equal(second->peer.window, window);
	assert_int_equal(call_once(&one, GW_OP_GOODBYE, (struct gw_once){0}).status, GW_OK);
	gw_endpoint_close(second);
	assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){1, 1, window})), 1);
	gw_endpoint_goodbye(one.endpoint); /* does not wait */
	gw_endpoint_close(one.endpoint);
	for (struct gw_completion completion; gw_poll_group_poll(one.group, &completion, 1, 0);)
		assert_null(completion.cookie);
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	for (;;) {
		assert_int_equal(gw_bed_connect(one.group, &options, &one.endpoint), GW_OK);
		if (one.endpoint->peer.window != window || gw_now_ns() > end)
			break;
		assert_int_equal(call_once(&one, GW_OP_GOODBYE, (struct gw_once){0}).status, GW_OK);
		gw_endpoint_close(one.endpoint);
	}
	assert_int_equal(call_once(&one, BED_OP_COUNT, (struct gw_once){1, 1, window}).status, GW_OUTCOME_UNKNOWN);
	gw_one_end(&one);
}

/* The window number of another incarnation shows that this server has applied nothing. */
static void restarted_servers(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	uint64_t other = one.endpoint->peer.window ^ 1ull << 63;
	assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){7, 7, other})), 1);
	assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){7, 7, other})), 1);
	assert_int_equal(expect_sum(call_once(&one, BED_OP_COUNT, (struct gw_once){8, 8, 0})), 2);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(sums_are_exact_under_cut_links)}, {BED_TEST(repeats_in_any_order)},
		{BED_TEST(late_clients_are_remembered)},    {BED_TEST(forgotten_clients_get_an_unknown_outcome)},
		{BED_TEST(goodbyes_end_windows)},           {BED_TEST(restarted_servers)},
	};
	return gw_bed_run("transport_once", tests, sizeof(tests) / sizeof(tests[0]));
}
