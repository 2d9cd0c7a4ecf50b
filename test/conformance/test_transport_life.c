/* The life of connections, one suite over every backend: hello, who may connect, loss and reconnect, drain, threads,
 * and memory shortage at every allocation of it. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/transport_bed.h"

static void hello(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	const struct gw_peer *peer = &one.endpoint->peer;
	assert_int_equal(peer->graph_id, 77);
	assert_int_equal(peer->incarnation, 5);
	assert_int_equal(peer->part, 1);
	assert_int_equal(peer->parts, 3);
	assert_int_equal(peer->region_count, 3);
	assert_int_equal(peer->regions[0].bytes, one.bed.bytes);
	assert_int_equal(peer->regions[1].bytes, 0);
	assert_int_equal(peer->regions[2].id, 2);
	assert_int_equal(peer->regions[2].kind, GW_REGION_IMMUTABLE);
	const uint8_t *map = gw_endpoint_map(one.endpoint, &one.region);
	if (!gw_bed_is_mapped(one.bed.kind)) {
		assert_null(map);
	} else {
		assert_non_null(map);
		assert_memory_equal(map, one.bed.memory, one.bed.bytes);
		assert_memory_equal(gw_endpoint_map(one.endpoint, &peer->regions[2]),
				    one.bed.memory + one.bed.bytes - 1000, 1000);
	}
	gw_one_end(&one);
}

/* The server ends: open work fails, and so do later calls. A new server at the same address is another incarnation. */
static void losing_and_reconnecting(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 1 << 20);
	uint16_t port = one.bed.address.port;
	struct gw_span span = {0, 0, 1 << 20};
	struct gw_read_set open = {.cookie = &open, .deadline_ns = GW_NO_DEADLINE};
	if (one.bed.kind->network)
		gw_bed_pause(&one.bed);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &open, &one.region, one.buffer, &span, 1, false), 1);
	gw_bed_end(&one.bed);
	/* Over a network the loss is noticed by polling. */
	struct gw_read_set later = {.cookie = &later, .deadline_ns = GW_NO_DEADLINE};
	for (int i = 0; i < 30000 && one.endpoint->state != GW_ENDPOINT_LOST && one.bed.kind->network; i++)
		gw_one_nothing_more(&one, 2);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &later, &one.region, one.buffer, &span, 1, true), 1);
	gw_one_expect_failure(&one, &later, GW_PEER_LOST);
	assert_int_equal(one.endpoint->state, GW_ENDPOINT_LOST);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &open, &one.region, one.buffer, &span, 1, true), 1);
	gw_one_expect_failure(&one, &open, GW_PEER_LOST);
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, NULL, 0, GW_NO_DEADLINE, &one), GW_OK);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_PEER_LOST);
	gw_endpoint_close(one.endpoint);

	struct gw_connect_options nobody = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &nobody, &one.endpoint), GW_PEER_LOST);
	gw_endpoint_close(one.endpoint);

	struct bed_options options = {.port = port, .incarnation = 6};
	gw_bed_begin(&one.bed, *state, &options);
	struct gw_connect_options again = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &again, &one.endpoint), GW_OK);
	assert_int_equal(one.endpoint->peer.incarnation, 6);
	struct gw_read_set stale = {.cookie = &stale, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &stale, &one.region, one.buffer, &span, 1, true), 1);
	gw_one_expect_failure(&one, &stale, GW_STALE);
	one.region = one.endpoint->peer.regions[0];
	gw_one_read_works(&one);
	gw_one_end(&one);
}

/* A stopped listener accepts no new client and goes on serving the others. */
static void stop_and_drain(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	gw_bed_pause(&one.bed);
	gw_listener_stop(one.bed.listener, false);
	gw_bed_resume(&one.bed);
	struct gw_endpoint *late = NULL;
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &connect, &late), GW_PEER_LOST);
	gw_endpoint_close(late);
	gw_one_read_works(&one);
	assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, "abc", 3).status, GW_OK);
	gw_one_end(&one);
}

/* --- Admission. --- */

static gw_status try_connect_as(struct one *one, const char *key, uint64_t graph_id, const char *word, bool must_prove)
{
	struct gw_connect_options connect = gw_bed_options(&one->bed);
	struct gw_endpoint *endpoint;
	connect.must_prove = must_prove;
	connect.key = (const uint8_t *)key;
	connect.key_bytes = key ? (uint32_t)strlen(key) : 0;
	connect.graph_id = graph_id;
	gw_status status = gw_bed_connect(one->group, &connect, &endpoint);
	if (status != GW_OK && !strstr(gw_last_error(), word))
		print_error("\"%s\" lacks \"%s\"\n", gw_last_error(), word);
	assert_true(status == GW_OK || strstr(gw_last_error(), word));
	assert_int_equal(endpoint->state, status != GW_OK ? GW_ENDPOINT_LOST : GW_ENDPOINT_OPEN);
	assert_true(status == GW_OK || endpoint->peer.region_count == 0);
	gw_endpoint_close(endpoint);
	return status;
}

static gw_status try_connect(struct one *one, const char *key, uint64_t graph_id, const char *word)
{
	return try_connect_as(one, key, graph_id, word, false);
}

static void keys_and_graphs(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	assert_int_equal(try_connect(&one, NULL, 77, ""), GW_OK);
	assert_int_equal(try_connect(&one, NULL, 78, "000000000000004d"), GW_WRONG_GRAPH);
	assert_int_equal(try_connect(&one, "a key too many", 0, "none to prove"), GW_REFUSED);
	assert_int_equal(try_connect_as(&one, NULL, 0, "no key to prove", true), GW_REFUSED);
	gw_one_read_works(&one);
	gw_one_end(&one);

	struct bed_options options = {.key = "the right key of this test"};
	memset(&one, 0, sizeof(one));
	gw_bed_begin(&one.bed, *state, &options);
	one.group = gw_bed_group(one.bed.kind);
	assert_int_equal(try_connect(&one, options.key, 77, ""), GW_OK);
	assert_int_equal(try_connect_as(&one, options.key, 77, "", true), GW_OK);
	assert_int_equal(try_connect_as(&one, NULL, 77, "wants a key", true), GW_REFUSED);
	assert_int_equal(try_connect(&one, options.key, 1, "graph"), GW_WRONG_GRAPH);
	assert_int_equal(try_connect(&one, "the wrong key of this test", 0, "another key"), GW_REFUSED);
	assert_int_equal(try_connect(&one, "the right key of this tes", 0, "another key"), GW_REFUSED);
	assert_int_equal(try_connect(&one, NULL, 0, "wants a key"), GW_REFUSED);
	struct gw_service_counters counters;
	gw_service_counters(one.bed.service, &counters);
	assert_in_range(counters.refused, 2,
			5); /* a client without a key or with another graph may leave before it is refused */
	gw_poll_group_destroy(one.group);
	gw_bed_end(&one.bed);
}

static void connections_are_limited(void **state)
{
	struct bed_options options = {.limits = {.connections = 3}};
	struct one one;
	struct gw_endpoint *endpoints[3];
	gw_one_begin(&one, state, &options, 4096);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoints[0]), GW_OK);
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoints[1]), GW_OK);
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoints[2]), GW_REFUSED);
	assert_non_null(strstr(gw_last_error(), "3 connections"));
	gw_endpoint_close(endpoints[2]);
	gw_one_read_works(&one);
	gw_endpoint_close(endpoints[1]);
	/* The client's place becomes free when the server notices its end. */
	gw_status status = GW_REFUSED;
	for (int i = 0; i < 10000 && status; i++) {
		gw_one_nothing_more(&one, 5);
		status = gw_bed_connect(one.group, &connect, &endpoints[1]);
		if (status != GW_OK)
			gw_endpoint_close(endpoints[1]);
	}
	assert_int_equal(status, GW_OK);
	gw_endpoint_close(endpoints[1]);
	gw_endpoint_close(endpoints[0]);
	gw_one_end(&one);
}

/* --- Threads. --- */

static void *wake_later(void *group)
{
	nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
	gw_poll_group_wake(group);
	return NULL;
}

static void wake(void **state)
{
	struct one one;
	struct gw_completion completion;
	gw_one_begin(&one, state, NULL, 64);
	for (int round = 0; round < 2; round++) {
		pthread_t thread;
		uint64_t begun = gw_now_ns();
		assert_int_equal(pthread_create(&thread, NULL, wake_later, one.group), 0);
		assert_int_equal(gw_poll_group_poll(one.group, &completion, 1, 200 * GW_NS_PER_SECOND), 0);
		assert_in_range(gw_now_ns() - begun, 0, 100 * GW_NS_PER_SECOND);
		pthread_join(thread, NULL);
	}
	/* A wake before the poll ends that poll. */
	gw_poll_group_wake(one.group);
	uint64_t begun = gw_now_ns();
	assert_int_equal(gw_poll_group_poll(one.group, &completion, 1, 200 * GW_NS_PER_SECOND), 0);
	assert_in_range(gw_now_ns() - begun, 0, 100 * GW_NS_PER_SECOND);
	gw_one_end(&one);
}

struct user {
	struct bed *bed;
	uint32_t number;
};

static void *use(void *argument)
{
	struct user *user = argument;
	struct gw_poll_group *group = gw_bed_group(user->bed->kind);
	struct gw_connect_options connect = gw_bed_options(user->bed);
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint64_t remote[200], seed = user->number;
	uint8_t *landing = malloc(200 * 100);
	connect.client_uuid[0] = (uint8_t)user->number;
	if (gw_bed_connect(group, &connect, &endpoint) || gw_buffer_register(group, landing, 200 * 100, &buffer))
		abort();
	for (uint32_t round = 1; round <= 100; round++) {
		for (int i = 0; i < 200; i++)
			remote[i] = gw_below(&seed, user->bed->bytes - 100);
		struct gw_gather gather = {.remote = remote, .row_bytes = 100, .stride = 100};
		struct gw_read_set reads = {.cookie = &reads, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_gather(endpoint, &reads, &endpoint->peer.regions[0], buffer, &gather, 200);
		if (gw_bed_wait(group, &reads).status)
			abort();
		for (int i = 0; i < 200; i++)
			if (memcmp(landing + i * 100, user->bed->memory + remote[i], 100) != 0)
				abort();
		struct gw_once once = {round, round, endpoint->peer.window};
		if (gw_endpoint_request(endpoint, BED_OP_COUNT, &once, NULL, 0, GW_NO_DEADLINE, user) ||
		    gw_bed_wait(group, user).status)
			abort();
	}
	gw_endpoint_close(endpoint);
	gw_buffer_release(buffer);
	gw_poll_group_destroy(group);
	free(landing);
	return NULL;
}

static void several_clients_and_server_threads(void **state)
{
	struct bed bed;
	struct bed_options options = {.threads = 3};
	pthread_t threads[4];
	struct user users[4];
	gw_bed_begin(&bed, *state, &options);
	for (uint32_t i = 0; i < 4; i++) {
		users[i] = (struct user){&bed, i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&bed.applied), 400);
	struct gw_service_counters counters;
	gw_service_counters(bed.service, &counters);
	assert_int_equal(counters.connections_total, 4);
	assert_int_equal(counters.read_ranges, bed.kind->one_sided ? 0 : 4 * 100 * 200);
	assert_int_equal(counters.read_bytes, bed.kind->one_sided ? 0 : 4 * 100 * 200 * 100);
	assert_int_equal(counters.requests, 400);
	gw_bed_end(&bed);
}

/* A listener is closed by another thread while clients read: they lose it, and nothing else happens. */
struct load {
	struct bed *bed;
	_Atomic uint32_t reads; /* that have ended */
};

static void *close_under_it(void *argument)
{
	struct load *load = argument;
	while (atomic_load(&load->reads) < 10)
		sched_yield();
	gw_bed_end(load->bed);
	return NULL;
}

static void closing_under_load(void **state)
{
	struct one one;
	struct bed_options options = {.threads = 2};
	pthread_t thread;
	gw_one_begin(&one, state, &options, 1 << 20);
	struct load load = {.bed = &one.bed};
	assert_int_equal(pthread_create(&thread, NULL, close_under_it, &load), 0);
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK; i++) {
		struct gw_span span = {i % 1000, 0, 1 << 19};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &span, 1);
		status = gw_bed_wait(one.group, &set).status;
		atomic_fetch_add(&load.reads, 1);
	}
	atomic_store(&load.reads, 10); /* whatever the reason that they ended */
	assert_int_equal(status, GW_PEER_LOST);
	pthread_join(thread, NULL);
	gw_endpoint_close(one.endpoint);
	gw_buffer_release(one.buffer);
	gw_poll_group_destroy(one.group);
	free(one.landing);
	free(one.expected);
}

/* --- Memory shortage: server and client in one thread, so that allocations come in one order. --- */

struct life {
	const struct bed_kind *kind;
	struct gw_poll_group *group;
	struct gw_service *service;
	struct gw_listener *listener;
	struct gw_endpoint *endpoint;
	struct gw_arena *arena; /* the served memory */
	uint8_t *memory, landing[4096];
};

static gw_status echo(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	uint8_t *room = gw_reply_extend(reply, call->byte_count);
	if (!room)
		return GW_NO_MEMORY;
	memcpy(room, call->bytes, call->byte_count);
	return GW_OK;
}

static gw_status await(struct life *life, const void *cookie)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	while (gw_now_ns() < end)
		if (gw_poll_group_poll(life->group, &completion, 1, 10 * GW_NS_PER_MS) && completion.cookie == cookie)
			return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
	fail_msg("nothing completed");
	return GW_DEADLINE;
}

static gw_status live(struct life *life)
{
	struct gw_poll_group_options options = {.tcp_driver = life->kind->driver};
	struct gw_service_identity identity = {.graph_id = 1};
	struct gw_address address = {.port = 0};
	struct gw_buffer *buffer;
	uint32_t id;
	gw_bed_name(life->kind, &address);
	gw_status status = gw_poll_group_create(&options, &life->group);
	if (status == GW_OK)
		status = gw_service_create(&identity, NULL, &life->service);
	if (status == GW_OK)
		status = gw_service_memory(life->service, life->memory, gw_arena_bytes(life->arena),
					   gw_arena_fd(life->arena));
	if (status == GW_OK)
		status = gw_service_expose(life->service, life->memory, 4096, 0, NULL, &id);
	if (status == GW_OK)
		status = gw_service_handle(life->service, 1, echo, NULL);
	if (status == GW_OK)
		status = gw_service_key_set(life->service, (const uint8_t *)"0123456789abcdef", 16);
	if (status == GW_OK)
		status = gw_listen(&life->group, 1, &address, life->service, &life->listener);
	if (status == GW_OK)
		status = gw_buffer_register(life->group, life->landing, 4096, &buffer);
	if (status != GW_OK)
		return status;
	struct gw_connect_options connect = {.address = life->listener->address,
					     .key = (const uint8_t *)"0123456789abcdef",
					     .key_bytes = 16,
					     .deadline_ns = GW_NO_DEADLINE};
	status = gw_endpoint_connect(life->group, &connect, life, &life->endpoint);
	if (status == GW_OK)
		status = await(life, life);
	if (status != GW_OK)
		return status;
	struct gw_span span = {0, 0, 4096};
	struct gw_read_set set = {.cookie = &set};
	assert_int_equal(
		gw_endpoint_readv(life->endpoint, &set, &life->endpoint->peer.regions[0], buffer, &span, 1, true), 1);
	status = await(life, &set);
	if (status == GW_OK)
		assert_memory_equal(life->landing, life->memory, 4096);
	/* Larger than the first buffers of both sides. */
	static uint8_t bytes[300000];
	struct gw_once once = {5, 5, life->endpoint->peer.window};
	if (status == GW_OK)
		status = gw_endpoint_request(life->endpoint, 1, &once, bytes, sizeof(bytes), GW_NO_DEADLINE, &span);
	if (status == GW_OK)
		status = await(life, &span);
	return status;
}

static gw_status live_and_end(void *context)
{
	struct life *life = context;
	life->group = NULL;
	life->service = NULL;
	life->listener = NULL;
	life->endpoint = NULL;
	memset(life->memory, 7, 4096);
	gw_status status = live(life);
	gw_endpoint_close(life->endpoint);
	gw_listener_free(life->listener);
	gw_poll_group_destroy(life->group);
	gw_service_destroy(life->service);
	/* A shortage at the server ends the connection, which the client regards as lost. */
	if (status != GW_OK && gw_fault_hit())
		status = gw_fail(GW_NO_MEMORY, "short of memory");
	return status;
}

static void memory_shortage(void **state)
{
	struct life *life = calloc(1, sizeof(*life));
	struct gw_arena_options options = {.name = "life", .numa = GW_NUMA_LOCAL, .shareable = true};
	life->kind = *state;
	assert_int_equal(gw_arena_create(4096, &options, &life->arena), GW_OK);
	life->memory = gw_arena_base(life->arena);
	assert_true(gw_fault_each(live_and_end, life) > 5);
	assert_true(gw_fault_each_from(live_and_end, life) > 5);
	gw_arena_destroy(life->arena);
	free(life);
}

/* --- Poll groups that change threads. --- */

struct relay_run {
	struct one *one;
	struct gw_read_set set;
	_Atomic bool armed, landed;
};

/* Makes no system call until the read has arrived. */
static void *arm_and_compute(void *argument)
{
	static const struct gw_span span = {12, 0, 64};
	struct relay_run *run = argument;
	struct one *one = run->one;
	struct gw_completion none;
	run->set = (struct gw_read_set){.cookie = &run->set, .deadline_ns = GW_NO_DEADLINE};
	gw_endpoint_readv(one->endpoint, &run->set, &one->region, one->buffer, &span, 1, true);
	if (one->bed.kind->network && !one->bed.kind->one_sided)
		gw_poll_group_poll(one->group, &none, 1, 0);
	atomic_store(&run->armed, true);
	while (!atomic_load(&run->landed))
		;
	return NULL;
}

/* Another thread completes the read, though the first thread does not enter the kernel again. */
static void another_thread_goes_on(void **state)
{
	struct one one;
	pthread_t thread;
	gw_one_begin(&one, state, NULL, 4096);
	struct relay_run run = {.one = &one};
	if (!one.bed.kind->one_sided)
		gw_bed_pause(&one.bed);
	assert_int_equal(pthread_create(&thread, NULL, arm_and_compute, &run), 0);
	while (!atomic_load(&run.armed))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	if (!one.bed.kind->one_sided)
		gw_bed_resume(&one.bed);
	gw_one_wait_ok(&one, &run.set);
	atomic_store(&run.landed, true);
	pthread_join(thread, NULL);
	assert_memory_equal(one.landing, one.bed.memory + 12, 64);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(hello)},
		{BED_TEST(losing_and_reconnecting)},
		{BED_TEST(stop_and_drain)},
		{BED_TEST(keys_and_graphs)},
		{BED_TEST(connections_are_limited)},
		{BED_TEST(wake)},
		{BED_TEST(several_clients_and_server_threads)},
		{BED_TEST(closing_under_load)},
		{BED_TEST(memory_shortage)},
		{BED_TEST(another_thread_goes_on)},
	};
	return gw_bed_run("transport life", tests, sizeof(tests) / sizeof(tests[0]));
}
