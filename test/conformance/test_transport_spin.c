/* A server's poll group that spins. It does not sleep between events that follow each other within the time of its
 * spin, it sleeps afterwards, and polls without events spin no more. Tests count the server thread's sleeps and its
 * processor time, since a busy machine delays everything else. Both drivers. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/must.h"
#include "transport/transport.h"

#define READS      50
#define LONG_NS    (1000 * GW_NS_PER_SECOND)
#define SHORT_NS   (20 * GW_NS_PER_MS)
#define IDLE_POLLS 40
#define POLL_NS    GW_NS_PER_MS /* of one poll of the server */

struct spin {
	struct gw_service *service;
	struct gw_poll_group *group, *client;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	struct gw_listener *listener;
	uint64_t memory[8], landing[8];
	pthread_t thread;
	_Atomic bool stop;
	_Atomic long sleeps;       /* of the server's thread, before its last poll */
	_Atomic uint64_t spent_ns; /* its processor time likewise */
	_Atomic uint64_t polls;
};

static void *spin_serve(void *argument)
{
	struct spin *spin = argument;
	while (!atomic_load(&spin->stop)) {
		struct rusage usage;
		struct timespec spent;
		gw_poll_group_poll(spin->group, NULL, 0, POLL_NS);
		getrusage(RUSAGE_THREAD, &usage);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
		atomic_store(&spin->sleeps, usage.ru_nvcsw);
		atomic_store(&spin->spent_ns, (uint64_t)spent.tv_sec * GW_NS_PER_SECOND + (uint64_t)spent.tv_nsec);
		atomic_fetch_add(&spin->polls, 1);
	}
	return NULL;
}

static struct gw_completion spin_wait(struct spin *spin)
{
	struct gw_completion completion;
	while (!gw_poll_group_poll(spin->client, &completion, 1, GW_NS_PER_SECOND))
		;
	return completion;
}

static void spin_begin(struct spin *spin, const char *driver, uint64_t spin_ns)
{
	const struct gw_poll_group_options options = {.tcp_driver = driver, .spin_ns = spin_ns};
	const struct gw_poll_group_options asleep = {.tcp_driver = driver};
	const struct gw_service_identity identity = {.graph_id = 1, .incarnation = 1, .parts = 1};
	const struct gw_address address = {.scheme = "tcp", .host = "127.0.0.1"};
	uint32_t region;
	*spin = (struct spin){.memory = {1, 2, 3, 4}};
	must(gw_service_create(&identity, NULL, &spin->service));
	must(gw_service_expose(spin->service, (uint8_t *)spin->memory, sizeof(spin->memory), 0, NULL, &region));
	must(gw_poll_group_create(&options, &spin->group));
	must(gw_listen(&spin->group, 1, &address, spin->service, &spin->listener));
	assert_int_equal(pthread_create(&spin->thread, NULL, spin_serve, spin), 0);
	const struct gw_connect_options connect = {
		.address = spin->listener->address, .graph_id = 1, .deadline_ns = gw_now_ns() + 60 * GW_NS_PER_SECOND};
	must(gw_poll_group_create(&asleep, &spin->client));
	must(gw_buffer_register(spin->client, spin->landing, sizeof(spin->landing), &spin->buffer));
	must(gw_endpoint_connect(spin->client, &connect, spin, &spin->endpoint));
	assert_int_equal(spin_wait(spin).status, GW_OK);
}

static void spin_read(struct spin *spin)
{
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	const struct gw_span span = {.bytes = sizeof(spin->memory)};
	memset(spin->landing, 0, sizeof(spin->landing));
	assert_int_equal(
		gw_endpoint_readv(spin->endpoint, &set, &spin->endpoint->peer.regions[0], spin->buffer, &span, 1, true),
		1);
	assert_int_equal(spin_wait(spin).status, GW_OK);
	assert_memory_equal(spin->landing, spin->memory, sizeof(spin->memory));
}

static void spin_end(struct spin *spin)
{
	atomic_store(&spin->stop, true);
	gw_poll_group_wake(spin->group);
	pthread_join(spin->thread, NULL);
	gw_endpoint_close(spin->endpoint);
	gw_buffer_release(spin->buffer);
	gw_poll_group_destroy(spin->client);
	gw_listener_free(spin->listener);
	gw_poll_group_destroy(spin->group);
	gw_service_destroy(spin->service);
}

static void wait_for_polls(struct spin *spin, uint64_t n)
{
	for (uint64_t until = atomic_load(&spin->polls) + n; atomic_load(&spin->polls) < until;)
		sched_yield();
}

static void a_spinning_server_does_not_sleep(void **state)
{
	struct spin spin;
	spin_begin(&spin, *state, LONG_NS);
	spin_read(&spin);
	wait_for_polls(&spin, 2);
	long before = atomic_load(&spin.sleeps);
	for (int i = 0; i < READS; i++)
		spin_read(&spin);
	wait_for_polls(&spin, 2);
	assert_int_equal(atomic_load(&spin.sleeps), before);
	spin_end(&spin);
}

/* With one spin for each poll the processor time would be that of IDLE_POLLS spins, or their polls would end first. */
static void a_server_without_events_sleeps(void **state)
{
	struct spin spin;
	spin_begin(&spin, *state, SHORT_NS);
	spin_read(&spin);
	long before = atomic_load(&spin.sleeps);
	while (atomic_load(&spin.sleeps) == before)
		wait_for_polls(&spin, 1);
	before = atomic_load(&spin.sleeps);
	uint64_t spent_ns = atomic_load(&spin.spent_ns);
	wait_for_polls(&spin, IDLE_POLLS);
	assert_true(atomic_load(&spin.sleeps) >= before + IDLE_POLLS / 2);
	assert_in_range(atomic_load(&spin.spent_ns) - spent_ns, 0, IDLE_POLLS * POLL_NS / 2);
	spin_end(&spin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{"epoll: does not sleep", a_spinning_server_does_not_sleep, NULL, NULL, (void *)"epoll"},
		{"epoll: sleeps", a_server_without_events_sleeps, NULL, NULL, (void *)"epoll"},
		{"io_uring: does not sleep", a_spinning_server_does_not_sleep, NULL, NULL, (void *)"io_uring"},
		{"io_uring: sleeps", a_server_without_events_sleeps, NULL, NULL, (void *)"io_uring"},
	};
	struct gw_poll_group_options options = {.tcp_driver = "io_uring"};
	struct gw_poll_group *group;
	const struct gw_transport *transport;
	void *part;
	must(gw_poll_group_create(&options, &group));
	must(gw_transport_find("tcp", &transport));
	bool ring = gw_poll_group_state(group, transport, &part) == GW_OK;
	gw_poll_group_destroy(group);
	return _cmocka_run_group_tests("spin", tests, ring ? 4 : 2, NULL, NULL);
}
