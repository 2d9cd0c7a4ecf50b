/* Deferred replies, one suite over every backend. A handler with more work lets other clients run, whatever they
 * request, and its answer is complete. A call in progress meets the end of its client, a deadline, a cancel and a
 * repeat. The memory of all replies together is limited. Nothing depends on speed: calls are in progress until the
 * test lets them end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/transport_bed.h"

/* A second client in addition to the bed's. */
struct other {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
};

static void other_begin(struct other *other, struct one *one, uint8_t number)
{
	struct gw_connect_options connect = gw_bed_options(&one->bed);
	connect.client_uuid[0] = number;
	other->group = gw_bed_group(one->bed.kind);
	assert_int_equal(gw_bed_connect(other->group, &connect, &other->endpoint), GW_OK);
}

static void other_end(struct other *other)
{
	gw_endpoint_close(other->endpoint);
	gw_poll_group_destroy(other->group);
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Over memory, the client's own polls run it. */
static void await_runs(struct one *one, struct other *other, uint32_t runs)
{
	struct gw_completion completion;
	while (atomic_load(&one->bed.runs) < runs)
		assert_int_equal(gw_poll_group_poll(other->group, &completion, 1, GW_NS_PER_MS), 0);
}

static gw_status ask(struct other *other, uint16_t op, uint64_t sequence, const void *bytes, uint32_t n)
{
	struct gw_once once = {sequence, sequence, other->endpoint->peer.window};
	return gw_endpoint_request(other->endpoint, op, &once, bytes, n, GW_NO_DEADLINE, other);
}

static void defer_begin(struct one *one, struct other *other, void **state)
{
	gw_one_begin(one, state, NULL, 4096);
	other_begin(other, one, 10);
	assert_int_equal(ask(other, BED_OP_DEFER, 0, "abc", 3), GW_OK);
	await_runs(one, other, 3);
}

static struct gw_service_counters counters_of(const struct one *one)
{
	struct gw_service_counters counters;
	gw_service_counters(one->bed.service, &counters);
	return counters;
}

static void other_clients_are_served(void **state)
{
	enum { HEAVY = 3 };
	struct one one;
	struct other heavy[HEAVY];
	uint8_t bytes[40000];
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13 ^ i >> 7);
	gw_one_begin(&one, state, NULL, 4096);
	for (uint32_t i = 0; i < HEAVY; i++) {
		other_begin(&heavy[i], &one, (uint8_t)(10 + i));
		assert_int_equal(ask(&heavy[i], BED_OP_DEFER, 0, bytes, sizeof(bytes) - i), GW_OK);
		await_runs(&one, &heavy[i], atomic_load(&one.bed.runs) + 3);
	}
	for (uint32_t i = 0; i < 50; i++) {
		struct gw_completion echo = gw_one_call(&one, BED_OP_ECHO, 0, &i, 4);
		assert_int_equal(echo.status, GW_OK);
		assert_memory_equal(echo.reply, &i, 4);
		gw_one_read_works(&one);
	}
	while (counters_of(&one).calls_open >
	       HEAVY) /* the last answer may arrive before the server has finished with it */
		pause_a_little();
	struct gw_service_counters counters = counters_of(&one);
	assert_int_equal(counters.requests, HEAVY + 50);
	assert_int_equal(counters.calls_open, HEAVY);
	assert_int_equal(atomic_load(&one.bed.works_ended), 0);
	assert_true(counters.deferred >= HEAVY);
	atomic_store(&one.bed.release, true);
	for (uint32_t i = 0; i < HEAVY; i++) {
		struct gw_completion answer = gw_bed_wait(heavy[i].group, &heavy[i]);
		assert_int_equal(answer.status, GW_OK);
		assert_int_equal(answer.reply_bytes, sizeof(bytes) - i);
		assert_memory_equal(answer.reply, bytes, sizeof(bytes) - i);
		other_end(&heavy[i]);
	}
	assert_int_equal(atomic_load(&one.bed.works_ended), HEAVY);
	gw_one_end(&one);
}

/* Also after a deferred call. */
static void answers_keep_their_order(void **state)
{
	enum { BEHIND = 20 };
	struct one one;
	struct other other;
	static const uint64_t cookies[BEHIND];
	gw_one_begin(&one, state, NULL, 4096);
	other_begin(&other, &one, 10);
	assert_int_equal(ask(&other, BED_OP_DEFER, 0, "first", 5), GW_OK);
	for (uint64_t i = 0; i < BEHIND; i++) {
		struct gw_once once = {i + 1, 1, other.endpoint->peer.window};
		assert_int_equal(gw_endpoint_request(other.endpoint, BED_OP_COUNT, &once, &i, sizeof(i), GW_NO_DEADLINE,
						     (void *)(uintptr_t)&cookies[i]),
				 GW_OK);
	}
	await_runs(&one, &other, 3);
	assert_int_equal(atomic_load(&one.bed.applied), 0);
	atomic_store(&one.bed.release, true);
	assert_int_equal(gw_bed_wait(other.group, &other).status, GW_OK);
	for (uint32_t i = 0; i < BEHIND; i++) {
		struct gw_completion answer = gw_bed_wait(other.group, &cookies[i]);
		uint32_t sum;
		assert_int_equal(answer.status, GW_OK);
		memcpy(&sum, answer.reply, 4);
		assert_int_equal(sum, i + 1);
	}
	other_end(&other);
	gw_one_end(&one);
}

static void a_client_leaves(void **state)
{
	struct one one;
	struct other other;
	defer_begin(&one, &other, state);
	other_end(&other);
	while (atomic_load(&one.bed.works_ended) == 0)
		pause_a_little();
	uint32_t runs = atomic_load(&one.bed.runs);
	assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, "abc", 3).status, GW_OK);
	assert_int_equal(atomic_load(&one.bed.runs), runs);
	while (counters_of(&one).calls_open)
		pause_a_little();
	gw_one_end(&one);
}

/* A numbered call in progress is not begun a second time: the repeat gets the first run's answer. */
static void a_repeat_waits_for_the_first(void **state)
{
	struct one one;
	struct other first, second;
	gw_one_begin(&one, state, NULL, 4096);
	other_begin(&first, &one, 10);
	other_begin(&second, &one, 10); /* the same client over a new connection */
	assert_int_equal(ask(&first, BED_OP_DEFER, 7, "once", 4), GW_OK);
	await_runs(&one, &first, 2);
	uint64_t deferred = counters_of(&one).deferred;
	assert_int_equal(ask(&second, BED_OP_DEFER, 7, "once", 4), GW_OK);
	while (counters_of(&one).requests < 2 || counters_of(&one).deferred < deferred + 5) {
		struct gw_completion completion;
		assert_int_equal(gw_poll_group_poll(second.group, &completion, 1, GW_NS_PER_MS), 0);
	}
	atomic_store(&one.bed.release, true);
	struct gw_completion answer = gw_bed_wait(first.group, &first);
	assert_int_equal(answer.status, GW_OK);
	answer = gw_bed_wait(second.group, &second);
	assert_int_equal(answer.status, GW_OK);
	assert_int_equal(answer.reply_bytes, 4);
	assert_memory_equal(answer.reply, "once", 4);
	assert_int_equal(atomic_load(&one.bed.works_ended), 1);
	/* A call that was never answered runs when it is repeated. */
	atomic_store(&one.bed.release, false);
	uint32_t runs = atomic_load(&one.bed.runs);
	assert_int_equal(ask(&first, BED_OP_DEFER, 8, "x", 1), GW_OK);
	await_runs(&one, &first, runs + 2);
	other_end(&first);
	atomic_store(&one.bed.release, true);
	assert_int_equal(ask(&second, BED_OP_DEFER, 8, "x", 1), GW_OK);
	assert_int_equal(gw_bed_wait(second.group, &second).status, GW_OK);
	other_end(&second);
	gw_one_end(&one);
}

static void deadlines_and_cancels(void **state)
{
	struct one one;
	struct other other;
	gw_one_begin(&one, state, NULL, 4096);
	other_begin(&other, &one, 10);
	assert_int_equal(
		gw_endpoint_request(other.endpoint, BED_OP_DEFER, 0, "late", 4, gw_now_ns() + 50 * GW_NS_PER_MS, &one),
		GW_OK);
	assert_int_equal(gw_bed_wait(other.group, &one).status, GW_DEADLINE);
	assert_int_equal(ask(&other, BED_OP_ECHO, 0, "behind", 6), GW_OK);
	gw_endpoint_request_cancel(other.endpoint, &other);
	assert_int_equal(gw_bed_wait(other.group, &other).status, GW_CANCELLED);
	atomic_store(&one.bed.release, true);
	assert_int_equal(ask(&other, BED_OP_ECHO, 0, "goes on", 7), GW_OK);
	struct gw_completion answer = gw_bed_wait(other.group, &other);
	assert_int_equal(answer.status, GW_OK);
	assert_memory_equal(answer.reply, "goes on", 7);
	other_end(&other);
	gw_one_end(&one);
}

static void the_service_ends(void **state)
{
	struct one one;
	struct other other;
	defer_begin(&one, &other, state);
	gw_bed_pause(&one.bed);
	gw_listener_stop(one.bed.listener, true);
	assert_int_equal(atomic_load(&one.bed.works_ended), 1);
	gw_bed_resume(&one.bed);
	assert_int_equal(gw_bed_wait(other.group, &other).status, GW_PEER_LOST);
	other_end(&other);
	gw_one_end(&one);
}

/* Accepted calls are answered completely before the connection ends. */
static void a_drain_ends_what_was_begun(void **state)
{
	struct one one;
	struct other other;
	defer_begin(&one, &other, state);
	gw_bed_pause(&one.bed);
	gw_listener_drain(one.bed.listener);
	gw_bed_resume(&one.bed);
	/* The idle connection ends at once (except over RDMA, where the connections of the hello end together). The
	 * other one does not end while its call is in progress. */
	bool verbs = strcmp(one.bed.kind->scheme, "verbs") == 0;
	while (!verbs && counters_of(&one).connections_open > 1)
		gw_one_nothing_more(&one, 1);
	assert_int_equal(counters_of(&one).calls_open, 1);
	atomic_store(&one.bed.release, true);
	struct gw_completion answer = gw_bed_wait(other.group, &other);
	assert_int_equal(answer.status, GW_OK);
	assert_memory_equal(answer.reply, "abc", 3);
	while (counters_of(&one).connections_open || counters_of(&one).calls_open) {
		struct gw_completion completion;
		assert_int_equal(gw_poll_group_poll(other.group, &completion, 1, GW_NS_PER_MS), 0);
	}
	other_end(&other);
	gw_one_end(&one);
}

/* Busy clients do not delay a drain: each gets answers up to its last complete frame, then the end of the stream. If
 * the server moves, they know it by then. */
static void drain_under_load(void **state, bool moves)
{
	struct one one;
	struct other other;
	gw_one_begin(&one, state, NULL, 4096);
	other_begin(&other, &one, 10);
	uint32_t bytes = 100000, open = 0, answered = 0;
	bool draining = false, lost = false;
	while (!lost) {
		while (open < 30) {
			gw_status status = ask(&other, BED_OP_LARGE, 0, &bytes, 4);
			if (status != GW_OK)
				break;
			open++;
		}
		struct gw_completion completion;
		if (gw_poll_group_poll(other.group, &completion, 1, 100 * GW_NS_PER_MS) == 0)
			continue;
		open--;
		lost = completion.status == GW_PEER_LOST;
		assert_true(lost || completion.status == GW_OK);
		assert_true(lost || completion.reply_bytes == bytes);
		answered += !lost;
		if (answered > 100 && !draining) {
			draining = true;
			gw_bed_pause(&one.bed);
			if (moves)
				gw_listener_move(one.bed.listener);
			else
				gw_listener_drain(one.bed.listener);
			gw_bed_resume(&one.bed);
		}
	}
	assert_int_equal(other.endpoint->state, GW_ENDPOINT_LOST);
	assert_int_equal(other.endpoint->moved, moves);
	while (counters_of(&one).connections_open || counters_of(&one).calls_open)
		gw_one_nothing_more(&one, 1);
	other_end(&other);
	gw_one_end(&one);
}

static void a_drain_under_load_ends(void **state)
{
	drain_under_load(state, false);
}

static void a_move_under_load_ends(void **state)
{
	drain_under_load(state, true);
}

/* An idle client and a client with a long call: both know that the server moves when their connections end. */
static void a_move_ends_what_was_begun(void **state)
{
	struct one one;
	struct other other;
	struct gw_completion completion;
	defer_begin(&one, &other, state);
	gw_bed_pause(&one.bed);
	gw_listener_move(one.bed.listener);
	gw_bed_resume(&one.bed);
	atomic_store(&one.bed.release, true);
	struct gw_completion answer = gw_bed_wait(other.group, &other);
	assert_int_equal(answer.status, GW_OK);
	assert_memory_equal(answer.reply, "abc", 3);
	while (counters_of(&one).connections_open || counters_of(&one).calls_open) {
		assert_int_equal(gw_poll_group_poll(other.group, &completion, 1, GW_NS_PER_MS), 0);
		assert_int_equal(gw_poll_group_poll(one.group, &completion, 1, GW_NS_PER_MS), 0);
	}
	/* A call finds the connection ended, also where no poll looks at an idle connection. */
	uint32_t echo = 1;
	assert_int_equal(ask(&other, BED_OP_ECHO, 0, &echo, 4), GW_OK);
	assert_int_equal(gw_bed_wait(other.group, &other).status, GW_PEER_LOST);
	assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, &echo, 4).status, GW_PEER_LOST);
	assert_true(other.endpoint->moved && one.endpoint->moved);
	other_end(&other);
	gw_one_end(&one);
}

/* --- The memory of all replies. --- */

/* Only a call whose reply finds no room waits; it is answered when room is free. */
static void replies_share_a_limit(void **state)
{
	struct bed_options options = {.limits = {.reply_bytes = 4u << 20}};
	struct one one;
	const uint32_t much = 3u << 20, too_much = 5u << 20, little = 1000;
	gw_one_begin(&one, state, &options, 4096);
	struct gw_completion answer = gw_one_call(&one, BED_OP_RESERVE, 0, &much, 4);
	assert_int_equal(answer.status, GW_OK);
	assert_int_equal(answer.reply_bytes, much);
	for (uint32_t i = 0; i < much; i += 1 + i / 100)
		assert_int_equal(answer.reply[i], (uint8_t)(i * 7));
	assert_int_equal(gw_one_call(&one, BED_OP_RESERVE, 0, &too_much, 4).status, GW_LIMIT);
	assert_int_equal(gw_one_call(&one, BED_OP_LARGE, 0, &too_much, 4).status, GW_LIMIT);
	assert_int_equal(gw_one_call(&one, BED_OP_RESERVE, 0, &little, 4).status, GW_OK);
	while (counters_of(&one).reply_bytes)
		gw_one_nothing_more(&one, 1);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(other_clients_are_served)},
		{BED_TEST(answers_keep_their_order)},
		{BED_TEST(a_client_leaves)},
		{BED_TEST(a_repeat_waits_for_the_first)},
		{BED_TEST(deadlines_and_cancels)},
		{BED_TEST(the_service_ends)},
		{BED_TEST(a_drain_ends_what_was_begun)},
		{BED_TEST(a_drain_under_load_ends)},
		{BED_TEST(a_move_ends_what_was_begun)},
		{BED_TEST(a_move_under_load_ends)},
		{BED_TEST(replies_share_a_limit)},
	};
	return gw_bed_run("transport deferred", tests, sizeof(tests) / sizeof(tests[0]));
}
