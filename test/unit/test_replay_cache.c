/* The replay cache at its limits: slots for clients, bytes of answers, allocations that fail.
 * test/conformance/test_transport_once.c tests calls over connections. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "transport/service/replay_cache.h"
#include "transport/service/service_backend.h"

static void uuid_of(uint32_t number, uint8_t uuid[16])
{
	memset(uuid, 0, 16);
	memcpy(uuid, &number, sizeof(number));
}

static gw_status enter(struct gw_replay_cache *cache, uint32_t client, struct gw_once once,
		       struct gw_replay_entry **entry)
{
	struct gw_reply reply;
	uint8_t uuid[16];
	uuid_of(client, uuid);
	gw_reply_begin(&reply, NULL, 0, 1 << 20);
	gw_status status = gw_replay_enter(cache, uuid, &once, &reply, entry);
	gw_reply_end(&reply);
	return status;
}

static uint64_t join(struct gw_replay_cache *cache, uint32_t client, uint64_t budget_ns)
{
	uint8_t uuid[16];
	uuid_of(client, uuid);
	return gw_replay_join(cache, uuid, budget_ns);
}

static void part(struct gw_replay_cache *cache, uint32_t client)
{
	uint8_t uuid[16];
	uuid_of(client, uuid);
	gw_replay_disconnect(cache, uuid);
}

static gw_status apply(struct gw_replay_cache *cache, uint32_t client, struct gw_once once, uint32_t bytes)
{
	struct gw_replay_entry *entry;
	struct gw_reply reply;
	uint8_t uuid[16];
	uuid_of(client, uuid);
	gw_reply_begin(&reply, NULL, 0, 1 << 20);
	gw_status status = gw_replay_enter(cache, uuid, &once, &reply, &entry);
	if (entry) {
		status = gw_reply_extend(&reply, bytes) ? GW_OK : GW_NO_MEMORY;
		gw_replay_keep(cache, entry, status, &reply);
	}
	gw_reply_end(&reply);
	return status;
}

static void a_full_table_refuses_writers(void **state)
{
	(void)state;
	struct gw_replay_cache *cache;
	struct gw_replay_entry *entry;
	assert_int_equal(gw_replay_cache_create(1, &cache), GW_OK);
	for (uint32_t i = 0; i < GW_REPLAY_CLIENTS; i++) {
		uint64_t window = join(cache, i, 0);
		assert_int_not_equal(window, 0);
		assert_int_equal(apply(cache, i, (struct gw_once){1, 1, window}, 4), GW_OK);
	}
	assert_int_equal(join(cache, GW_REPLAY_CLIENTS, 0), 0);
	assert_int_equal(enter(cache, GW_REPLAY_CLIENTS, (struct gw_once){1, 1, 0}, &entry), GW_LIMIT);
	/* Clients that are away may come back: their slots stay until their budgets expire. */
	part(cache, 5);
	assert_int_equal(join(cache, GW_REPLAY_CLIENTS, 0), 0);
	join(cache, 6, 1);
	part(cache, 6);
	part(cache, 6);
	uint64_t window = 0;
	while (!window) /* a nanosecond */
		window = join(cache, GW_REPLAY_CLIENTS, 0);
	assert_int_equal(enter(cache, GW_REPLAY_CLIENTS, (struct gw_once){1, 1, window}, &entry), GW_OK);
	gw_replay_leave(cache, entry, 0);
	assert_int_equal(enter(cache, 5, (struct gw_once){1, 1, 0}, &entry), GW_OK); /* remembered */
	assert_null(entry);
	gw_replay_cache_destroy(cache);
}

/* A client whose window has ended finds no slot when it comes back: its open call may have been applied. */
static void a_full_table_reports_unknown_outcomes(void **state)
{
	(void)state;
	struct gw_replay_cache *cache, *other;
	struct gw_replay_entry *entry;
	const uint32_t late = GW_REPLAY_CLIENTS;
	assert_int_equal(gw_replay_cache_create(1, &cache), GW_OK);
	assert_int_equal(gw_replay_cache_create(2, &other), GW_OK);
	uint64_t window = join(cache, late, 1), elsewhere = join(other, late, 1);
	assert_int_equal(apply(cache, late, (struct gw_once){1, 1, window}, 4), GW_OK);
	part(cache, late);
	for (uint32_t i = 0; i < GW_REPLAY_CLIENTS; i++) {
		while (!join(cache, i, 0)) /* the last client takes its slot, after a nanosecond */
			;
	}
	assert_int_equal(join(cache, late, 0), 0);
	assert_int_equal(enter(cache, late, (struct gw_once){1, 1, window}, &entry), GW_OUTCOME_UNKNOWN);
	assert_null(entry);
	/* A window of another incarnation, or no window, shows that this server has not applied the call. */
	assert_int_equal(enter(cache, late, (struct gw_once){1, 1, elsewhere}, &entry), GW_LIMIT);
	assert_int_equal(enter(cache, late, (struct gw_once){1, 1, 0}, &entry), GW_LIMIT);
	assert_null(entry);
	gw_replay_cache_destroy(other);
	gw_replay_cache_destroy(cache);
}

/* A client that never made a numbered call gives its slot to a connected client. */
static void readers_make_room(void **state)
{
	(void)state;
	struct gw_replay_cache *cache;
	assert_int_equal(gw_replay_cache_create(1, &cache), GW_OK);
	for (uint32_t i = 0; i < GW_REPLAY_CLIENTS; i++) {
		assert_int_not_equal(join(cache, i, 0), 0);
		part(cache, i);
	}
	assert_int_not_equal(join(cache, GW_REPLAY_CLIENTS, 0), 0);
	gw_replay_cache_destroy(cache);
}

static void calls_that_run_keep_their_window(void **state)
{
	(void)state;
	struct gw_replay_cache *cache;
	struct gw_replay_entry *running, *again;
	assert_int_equal(gw_replay_cache_create(1, &cache), GW_OK);
	uint64_t window = join(cache, 1, 1);
	assert_int_equal(enter(cache, 1, (struct gw_once){1, 1, window}, &running), GW_OK);
	part(cache, 1);
	assert_int_equal(join(cache, 1, 1), window);
	assert_int_equal(enter(cache, 1, (struct gw_once){1, 1, window}, &again), GW_AGAIN);
	/* A sequence that shares the entry waits for it too. */
	assert_int_equal(enter(cache, 1, (struct gw_once){1 + GW_WINDOW, 1 + GW_WINDOW, window}, &again), GW_AGAIN);
	gw_replay_leave(cache, running, 0);
	assert_int_equal(apply(cache, 1, (struct gw_once){1 + GW_WINDOW, 1 + GW_WINDOW, window}, 4), GW_OK);
	gw_replay_cache_destroy(cache);
}

/* A call that arrived over an abandoned connection still runs there. The client's later calls wait until it ends. */
static void calls_wait_for_those_before_them(void **state)
{
	(void)state;
	struct gw_replay_cache *cache;
	struct gw_replay_entry *first, *third, *other;
	assert_int_equal(gw_replay_cache_create(1, &cache), GW_OK);
	uint64_t window = join(cache, 1, 0);
	join(cache, 2, 0);
	assert_int_equal(enter(cache, 1, (struct gw_once){1, 1, window}, &first), GW_OK);
	for (uint64_t oldest = 1; oldest <= 2; oldest++)
		assert_int_equal(enter(cache, 1, (struct gw_once){2, oldest, window}, &other), GW_AGAIN);
	assert_int_equal(apply(cache, 2, (struct gw_once){2, 2, 0}, 4), GW_OK); /* another client's */
	gw_replay_leave(cache, first, 3);
	assert_int_equal(enter(cache, 1, (struct gw_once){3, 2, window}, &third), GW_OK);
	assert_int_equal(apply(cache, 1, (struct gw_once){2, 2, window}, 4), GW_OK); /* which was before */
	gw_replay_leave(cache, third, 0);
	assert_int_equal(enter(cache, 1, (struct gw_once){1, 1, window}, &other), GW_INVALID);
	gw_replay_cache_destroy(cache);
}

/* Threads of a server: one connection of the client ends while the next one begins. */
#define COMINGS 4
#define TURNS   50000

struct comings {
	struct gw_replay_cache *cache;
	uint64_t window;
	uint32_t others; /* joins that got another window */
};

static void *come_and_go(void *argument)
{
	struct comings *comings = argument;
	for (uint32_t i = 0; i < TURNS && !comings->others; i++) {
		comings->others += join(comings->cache, 1, 0) != comings->window;
		part(comings->cache, 1);
	}
	return NULL;
}

static void a_client_that_reconnects_is_not_forgotten(void **state)
{
	(void)state;
	struct gw_replay_cache *cache;
	struct comings comings[COMINGS];
	pthread_t threads[COMINGS];
	assert_int_equal(gw_replay_cache_create(1, &cache), GW_OK);
	uint64_t window = join(cache, 1, 0);
	part(cache, 1);
	for (int i = 0; i < COMINGS; i++) {
		comings[i] = (struct comings){.cache = cache, .window = window};
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &comings[i]), 0);
	}
	for (int i = 0; i < COMINGS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < COMINGS; i++)
		assert_int_equal(comings[i].others, 0);
	gw_replay_cache_destroy(cache);
}

static void long_answers_are_not_kept(void **state)
{
	(void)state;
	struct gw_replay_cache *cache;
	assert_int_equal(gw_replay_cache_create(1, &cache), GW_OK);
	uint64_t window = join(cache, 1, 0);
	assert_int_equal(apply(cache, 1, (struct gw_once){1, 1, window}, GW_REPLAY_REPLY_MAX), GW_OK);
	assert_int_equal(apply(cache, 1, (struct gw_once){1, 1, window}, 0), GW_OK);
	assert_int_equal(apply(cache, 1, (struct gw_once){2, 1, window}, GW_REPLAY_REPLY_MAX + 1), GW_OK);
	assert_int_equal(apply(cache, 1, (struct gw_once){2, 1, window}, 0), GW_LIMIT);
	/* The answers of all clients together. */
	uint32_t kept = 0;
	for (uint32_t client = 2; client < 2 + 2 * GW_REPLAY_BYTES_MAX / GW_REPLAY_REPLY_MAX / GW_WINDOW; client++) {
		window = join(cache, client, 0);
		for (uint64_t s = 1; s <= GW_WINDOW; s++) {
			struct gw_once once = {s, 1, window};
			assert_int_equal(apply(cache, client, once, GW_REPLAY_REPLY_MAX), GW_OK);
			kept += apply(cache, client, once, 0) == GW_OK;
		}
	}
	assert_int_equal(kept, GW_REPLAY_BYTES_MAX / GW_REPLAY_REPLY_MAX - 1);
	gw_replay_cache_destroy(cache);
}

static gw_status life_of_a_client(void *context)
{
	struct gw_replay_cache *cache;
	(void)context;
	gw_status status = gw_replay_cache_create(1, &cache);
	if (status != GW_OK)
		return status;
	uint64_t window = join(cache, 1, 0);
	status = window ? apply(cache, 1, (struct gw_once){1, 1, window}, 100) : gw_fail(GW_NO_MEMORY, "no place");
	/* Applied at most once: a repeat is answered, or gets the error that its answer is gone. */
	gw_status again = status != GW_OK ? GW_OK : apply(cache, 1, (struct gw_once){1, 1, window}, 0);
	assert_true(again == GW_OK || again == GW_LIMIT || again == GW_NO_MEMORY);
	gw_replay_cache_destroy(cache);
	return status;
}

#define MOVED_CLIENTS 20u
#define MOVED_CALLS   200u

/* The result of a repeat: its status and its answer or its text. */
static gw_status repeat(struct gw_replay_cache *cache, uint32_t client, struct gw_once once, uint8_t *answer,
			uint32_t *bytes, uint64_t *progress)
{
	struct gw_replay_entry *entry;
	struct gw_reply reply;
	uint8_t uuid[16];
	const uint8_t *data;
	uuid_of(client, uuid);
	gw_reply_begin(&reply, NULL, 0, 1 << 20);
	gw_status status = gw_replay_enter(cache, uuid, &once, &reply, &entry);
	*progress = entry ? *gw_reply_progress(&reply) : UINT64_MAX;
	if (status == GW_OK && !entry) {
		data = gw_reply_data(&reply, bytes);
		memcpy(answer, data, *bytes);
	} else {
		*bytes = (uint32_t)snprintf((char *)answer, 512, "%s", status == GW_OK ? "" : gw_last_error());
	}
	if (entry)
		gw_replay_leave(cache, entry, *progress);
	gw_reply_end(&reply);
	return status;
}

/* Random calls: answered with bytes, failed, or stopped in the middle. */
static void random_call(struct gw_replay_cache *cache, uint32_t client, struct gw_once once)
{
	struct gw_replay_entry *entry;
	struct gw_reply reply;
	uint8_t uuid[16];
	uint32_t bytes = (uint32_t)rand() % 300;
	uuid_of(client, uuid);
	gw_reply_begin(&reply, NULL, 0, 1 << 20);
	assert_int_equal(gw_replay_enter(cache, uuid, &once, &reply, &entry), GW_OK);
	memset(gw_reply_extend(&reply, bytes), rand(), bytes);
	switch (rand() % 4) {
	case 0:
		gw_replay_leave(cache, entry, (uint64_t)rand() + 1);
		break;
	case 1:
		gw_replay_keep(cache, entry, gw_fail(GW_RANGE, "row %d", rand()), &reply);
		break;
	default:
		gw_replay_keep(cache, entry, GW_OK, &reply);
	}
	gw_reply_end(&reply);
}

static void calls_move_to_another_cache(void **state)
{
	(void)state;
	static uint8_t answers[2][1 << 10];
	struct gw_replay_cache *here, *there, *other;
	uint64_t windows[MOVED_CLIENTS], last[MOVED_CLIENTS] = {0}, bytes, progress[2];
	uint8_t *saved;
	srand(3);
	assert_int_equal(gw_replay_cache_create(9, &here), GW_OK);
	assert_int_equal(gw_replay_cache_create(9, &there), GW_OK);
	assert_int_equal(gw_replay_cache_create(8, &other), GW_OK);
	for (uint32_t i = 0; i < MOVED_CLIENTS; i++)
		windows[i] = join(here, i, 0);
	for (uint32_t i = 0; i < MOVED_CALLS; i++) {
		uint32_t client = (uint32_t)rand() % (MOVED_CLIENTS - 1); /* one makes no calls */
		uint64_t sequence = ++last[client];
		random_call(here, client, (struct gw_once){sequence, 1, windows[client]});
	}
	assert_int_equal(gw_replay_save(here, &saved, &bytes), GW_BUSY);
	for (uint32_t i = 0; i < MOVED_CLIENTS; i++)
		part(here, i);
	assert_int_equal(gw_replay_save(here, &saved, &bytes), GW_OK);
	assert_int_equal(gw_replay_load(other, saved, bytes), GW_FORMAT);
	for (uint64_t cut = 0; cut < bytes; cut += 1 + bytes / 50) {
		struct gw_replay_cache *damaged;
		assert_int_equal(gw_replay_cache_create(9, &damaged), GW_OK);
		assert_int_equal(gw_replay_load(damaged, saved, cut), GW_FORMAT);
		gw_replay_cache_destroy(damaged);
	}
	assert_int_equal(gw_replay_load(there, saved, bytes), GW_OK);
	free(saved);
	assert_int_equal(gw_replay_cache_clients(there), MOVED_CLIENTS);
	for (uint32_t i = 0; i < MOVED_CLIENTS; i++) {
		assert_int_equal(join(there, i, 0), windows[i]);
		for (uint64_t sequence = 1; sequence <= last[i] + 1; sequence++) {
			uint32_t lengths[2];
			const struct gw_once once = {sequence, 1, windows[i]};
			gw_status first = repeat(here, i, once, answers[0], &lengths[0], &progress[0]);
			assert_int_equal(repeat(there, i, once, answers[1], &lengths[1], &progress[1]), first);
			assert_int_equal(lengths[0], lengths[1]);
			assert_int_equal(progress[0], progress[1]);
			assert_memory_equal(answers[0], answers[1], lengths[0]);
		}
	}
	/* A client that comes later gets a number that none had. */
	assert_int_equal(join(there, MOVED_CLIENTS, 0), windows[MOVED_CLIENTS - 1] + 1);
	gw_replay_cache_destroy(here);
	gw_replay_cache_destroy(there);
	gw_replay_cache_destroy(other);
}

static void shortages(void **state)
{
	(void)state;
	assert_true(gw_fault_each(life_of_a_client, NULL) > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_table_refuses_writers),
		cmocka_unit_test(a_full_table_reports_unknown_outcomes),
		cmocka_unit_test(readers_make_room),
		cmocka_unit_test(calls_that_run_keep_their_window),
		cmocka_unit_test(calls_wait_for_those_before_them),
		cmocka_unit_test(a_client_that_reconnects_is_not_forgotten),
		cmocka_unit_test(long_answers_are_not_kept),
		cmocka_unit_test(calls_move_to_another_cache),
		cmocka_unit_test(shortages),
	};
	return cmocka_run_group_tests_name("replay_cache", tests, NULL, NULL);
}
