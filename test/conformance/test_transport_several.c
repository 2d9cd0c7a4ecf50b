/* One poll group with endpoints of several backends. Each is served, and none starves the other. A poll that waits for
 * both ends when either has work, when it is woken, or when room is free. */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/transport_bed.h"

#define ROWS      500u
#define ROW_BYTES 100u
#define AREA      (ROWS * ROW_BYTES)

struct side {
	struct bed bed;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	struct gw_read_set set;
	uint8_t landing[AREA];
	uint64_t remote[ROWS];
};

struct both {
	struct gw_poll_group *group;
	struct side sides[2]; /* the second is the backend under test */
};

static void connect_side(struct both *both, struct side *side, const struct bed_kind *kind)
{
	struct gw_completion completion;
	gw_bed_begin(&side->bed, kind, NULL);
	assert_int_equal(gw_buffer_register(both->group, side->landing, AREA, &side->buffer), GW_OK);
	struct gw_connect_options connect = gw_bed_options(&side->bed);
	assert_int_equal(gw_endpoint_connect(both->group, &connect, side, &side->endpoint), GW_OK);
	while (!gw_poll_group_poll(both->group, &completion, 1, GW_NS_PER_SECOND))
		;
	assert_ptr_equal(completion.cookie, side);
	assert_int_equal(completion.status, GW_OK);
}

static struct both *both_begin_with(const struct bed_kind *other, void **state, uint64_t spin_ns)
{
	const struct bed_kind *kind = *state;
	struct gw_poll_group_options options = {.tcp_driver = kind->driver, .spin_ns = spin_ns};
	struct both *both = calloc(1, sizeof(*both));
	assert_non_null(both);
	assert_int_equal(gw_poll_group_create(&options, &both->group), GW_OK);
	connect_side(both, &both->sides[0], other);
	connect_side(both, &both->sides[1], kind);
	return both;
}

static struct both *both_begin(void **state, uint64_t spin_ns)
{
	return both_begin_with(&gw_beds[0], state, spin_ns);
}

static void both_end(struct both *both)
{
	for (int i = 0; i < 2; i++) {
		gw_endpoint_close(both->sides[i].endpoint);
		gw_buffer_release(both->sides[i].buffer);
	}
	gw_poll_group_destroy(both->group);
	for (int i = 0; i < 2; i++)
		gw_bed_end(&both->sides[i].bed);
	free(both);
}

static void post(struct side *side, uint64_t *seed)
{
	for (uint32_t i = 0; i < ROWS; i++)
		side->remote[i] = gw_below(seed, side->bed.bytes - ROW_BYTES);
	struct gw_gather gather = {.remote = side->remote, .row_bytes = ROW_BYTES, .stride = ROW_BYTES};
	side->set = (struct gw_read_set){.cookie = side, .deadline_ns = GW_NO_DEADLINE};
	memset(side->landing, 0, AREA);
	assert_int_equal(gw_endpoint_gather(side->endpoint, &side->set, &side->endpoint->peer.regions[0], side->buffer,
					    &gather, ROWS, true),
			 ROWS);
}

static void check(const struct side *side)
{
	for (uint32_t i = 0; i < ROWS; i++)
		assert_memory_equal(side->landing + (size_t)i * ROW_BYTES, side->bed.memory + side->remote[i],
				    ROW_BYTES);
}

static void read_both(struct both *both)
{
	uint64_t seed = 1;
	for (int round = 0; round < 300; round++) {
		uint32_t open = 0;
		for (int i = 0; i < 2; i++)
			if (round % 3 != i) {
				post(&both->sides[i], &seed);
				open++;
			}
		while (open) {
			struct gw_completion completion;
			if (!gw_poll_group_poll(both->group, &completion, 1, 10 * GW_NS_PER_SECOND))
				continue;
			assert_int_equal(completion.status, GW_OK);
			check(completion.cookie);
			open--;
		}
	}
}

static void reads(void **state)
{
	struct both *both = both_begin(state, 0);
	read_both(both);
	both_end(both);
	both = both_begin(state, 20000);
	read_both(both);
	both_end(both);
}

static void *wake_later(void *group)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	gw_poll_group_wake(group);
	return NULL;
}

static void wakes(void **state)
{
	for (uint64_t spin_ns = 0; spin_ns <= 200 * GW_NS_PER_SECOND; spin_ns += 200 * GW_NS_PER_SECOND) {
		struct both *both = both_begin(state, spin_ns);
		struct gw_completion completion;
		pthread_t thread;
		uint64_t begun = gw_now_ns();
		assert_int_equal(pthread_create(&thread, NULL, wake_later, both->group), 0);
		assert_int_equal(gw_poll_group_poll(both->group, &completion, 1, 200 * GW_NS_PER_SECOND), 0);
		assert_in_range(gw_now_ns() - begun, 0, 100 * GW_NS_PER_SECOND);
		pthread_join(thread, NULL);
		both_end(both);
	}
}

/* The idle side's server ends: the loss is noticed while only the other side is used, and while neither is. */
static void an_idle_side_is_lost(void **state)
{
	struct both *both = both_begin(state, 0);
	struct side *memory = &both->sides[0], *tcp = &both->sides[1];
	struct gw_completion completion;
	uint64_t seed = 2;
	gw_listener_stop(memory->bed.listener, false);
	gw_bed_pause(&tcp->bed);
	gw_listener_stop(tcp->bed.listener, true);
	for (uint64_t end = gw_deadline_ns(60000); tcp->endpoint->state != GW_ENDPOINT_LOST && gw_now_ns() < end;) {
		post(memory, &seed);
		assert_int_equal(gw_poll_group_poll(both->group, &completion, 1, GW_NS_PER_SECOND), 1);
		assert_ptr_equal(completion.cookie, memory);
	}
	assert_int_equal(tcp->endpoint->state, GW_ENDPOINT_LOST);
	gw_bed_resume(&tcp->bed);
	both_end(both);
}

static void deadlines_of_either(void **state)
{
	const struct bed_kind *kind = *state, *other = gw_beds;
	while (strcmp(other->scheme, strcmp(kind->scheme, "tcp") == 0 ? "shm" : "tcp") != 0)
		other++;
	struct both *both = both_begin_with(other, state, 0);
	for (int i = 0; i < 2; i++)
		gw_bed_pause(&both->sides[i].bed);
	for (int i = 0; i < 2; i++) {
		struct side *asked = &both->sides[i], *silent = &both->sides[1 - i];
		struct gw_completion completion;
		uint64_t now = gw_now_ns(), soon = now + 100 * GW_NS_PER_MS, late = now + 100 * GW_NS_PER_SECOND;
		assert_int_equal(gw_endpoint_request(silent->endpoint, BED_OP_ECHO, 0, "x", 1, late, silent), GW_OK);
		assert_int_equal(gw_endpoint_request(asked->endpoint, BED_OP_ECHO, 0, "x", 1, soon, asked), GW_OK);
		while (!gw_poll_group_poll(both->group, &completion, 1, 60 * GW_NS_PER_SECOND))
			;
		assert_ptr_equal(completion.cookie, asked);
		assert_int_equal(completion.status, GW_DEADLINE);
		assert_in_range(gw_now_ns() - now, 0, 50 * GW_NS_PER_SECOND);
		gw_endpoint_request_cancel(silent->endpoint, silent);
		while (!gw_poll_group_poll(both->group, &completion, 1, GW_NS_PER_SECOND))
			;
		assert_int_equal(completion.status, GW_CANCELLED);
	}
	for (int i = 0; i < 2; i++)
		gw_bed_resume(&both->sides[i].bed);
	both_end(both);
}

/* A server's groups are polled with max = 0. */
static void polls_without_completions(void **state)
{
	struct both *both = both_begin(state, 0);
	uint64_t seed = 3;
	post(&both->sides[1], &seed);
	for (int i = 0; i < 60000 && both->sides[1].set.frames_open; i++)
		gw_poll_group_poll(both->group, NULL, 0, GW_NS_PER_MS);
	assert_int_equal(both->sides[1].set.frames_open, 0);
	struct gw_completion completion;
	assert_int_equal(gw_poll_group_poll(both->group, &completion, 1, GW_NS_PER_SECOND), 1);
	assert_int_equal(completion.status, GW_OK);
	check(&both->sides[1]);
	both_end(both);
}

/* --- Clients of a thread that sleeps in another backend. --- */

/* A backend that always has open work, so that a thread sleeps in it. */
struct sleeper {
	int wake_fd;
	_Atomic bool asleep;
};

static gw_status sleeper_open(struct gw_poll_group *group, void **state)
{
	(void)group;
	struct sleeper *sleeper = calloc(1, sizeof(*sleeper));
	assert_non_null(sleeper);
	sleeper->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(sleeper->wake_fd >= 0);
	*state = sleeper;
	return GW_OK;
}

static void sleeper_shut(void *state)
{
	close(((struct sleeper *)state)->wake_fd);
	free(state);
}

static size_t sleeper_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns)
{
	struct sleeper *sleeper = state;
	uint64_t ignored;
	(void)completions;
	(void)max;
	if (timeout_ns == 0)
		return 0;
	atomic_store(&sleeper->asleep, true);
	poll(&(struct pollfd){.fd = sleeper->wake_fd, .events = POLLIN}, 1, -1);
	(void)!read(sleeper->wake_fd, &ignored, sizeof(ignored));
	return 0;
}

static bool sleeper_busy(void *state)
{
	(void)state;
	return true;
}

static int sleeper_wait_fd(void *state, uint64_t *until_ns)
{
	(void)until_ns;
	return ((struct sleeper *)state)->wake_fd;
}

static void sleeper_wake(void *state)
{
	uint64_t one = 1;
	(void)!write(((struct sleeper *)state)->wake_fd, &one, sizeof(one));
}

static const struct gw_scheme sleeper_scheme = {.name = "sleeper", .title = "sleep"};
static const struct gw_transport sleepers = {
	.scheme = &sleeper_scheme,
	.open = sleeper_open,
	.shut = sleeper_shut,
	.poll = sleeper_poll,
	.busy = sleeper_busy,
	.wait_fd = sleeper_wait_fd,
	.wake = sleeper_wake,
};

struct server_thread {
	struct gw_poll_group *group;
	_Atomic bool stop;
	pthread_t thread;
};

/* Polls without a time limit: only an event or a wake ends a poll. */
static void *serve_for_ever(void *argument)
{
	struct server_thread *thread = argument;
	while (!atomic_load(&thread->stop))
		gw_poll_group_poll(thread->group, NULL, 0, GW_NO_DEADLINE);
	return NULL;
}

/* One thread accepts sockets and deals them to all threads. The second thread sleeps in another backend: over RDMA in
 * RDMA's loop, else in a backend made for this test. */
static void clients_of_a_thread_that_sleeps_elsewhere(void **state)
{
	enum { THREADS = 2, CLIENTS = 4 };
	const struct bed_kind *kind = *state;
	const struct gw_service_identity identity = {.graph_id = 77, .incarnation = 5, .part = 1, .parts = 3};
	struct server_thread threads[THREADS] = {0};
	struct gw_poll_group *groups[THREADS], *group = gw_bed_group(kind);
	struct gw_endpoint *endpoints[CLIENTS];
	struct gw_service *service;
	struct gw_listener *listener;
	struct gw_address address = {0};
	void *part = NULL;
	for (int i = 0; i < THREADS; i++)
		groups[i] = threads[i].group = gw_bed_group(kind);
	assert_int_equal(gw_service_create(&identity, NULL, &service), GW_OK);
	if (gw_bed_is_mapped(kind))
		assert_int_equal(gw_service_expose(service, NULL, 0, 0, NULL, &(uint32_t){0}), GW_OK);
	gw_bed_name(kind, &address);
	assert_int_equal(gw_listen(groups, THREADS, &address, service, &listener), GW_OK);
	if (strcmp(kind->scheme, "verbs") != 0)
		assert_int_equal(gw_poll_group_state(groups[1], &sleepers, &part), GW_OK);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i].thread, NULL, serve_for_ever, &threads[i]), 0);
	while (part && !atomic_load(&((struct sleeper *)part)->asleep))
		sched_yield();
	for (int i = 0; i < CLIENTS; i++) {
		struct gw_connect_options connect = {.address = listener->address,
						     .client_uuid = {(uint8_t)i},
						     .deadline_ns = gw_now_ns() + 30 * GW_NS_PER_SECOND};
		assert_int_equal(gw_bed_connect(group, &connect, &endpoints[i]), GW_OK);
	}
	for (int i = 0; i < CLIENTS; i++)
		gw_endpoint_close(endpoints[i]);
	for (int i = 0; i < THREADS; i++) {
		atomic_store(&threads[i].stop, true);
		gw_poll_group_wake(groups[i]);
		pthread_join(threads[i].thread, NULL);
	}
	gw_poll_group_destroy(group);
	gw_listener_stop(listener, true);
	gw_listener_free(listener);
	for (int i = 0; i < THREADS; i++)
		gw_poll_group_destroy(groups[i]);
	gw_service_destroy(service);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(clients_of_a_thread_that_sleeps_elsewhere)},
		{BED_TEST(reads)},
		{BED_TEST(wakes)},
		{BED_TEST(an_idle_side_is_lost)},
		{BED_TEST(deadlines_of_either)},
		{BED_TEST(polls_without_completions)},
	};
	return gw_bed_run_network("several transports", tests, sizeof(tests) / sizeof(tests[0]));
}
