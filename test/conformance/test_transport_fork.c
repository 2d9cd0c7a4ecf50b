/* Forks, over every backend. A child that was forked while another thread works can use the library like a new process.
 * A closed connection or listener ends even if a child still has its descriptor. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "test/support/fork_midst.h"
#include "test/support/transport_bed.h"

#define READ_BYTES (64u << 10) /* enough for a device to register */

/* --- A fork at each allocation of a client's life. --- */

static struct gw_midst *midst;
static _Thread_local unsigned long stands_at; /* the allocation at which this thread stops; 0: none */

static void count_down(void)
{
	if (stands_at && --stands_at == 0)
		gw_midst_stand(midst);
}

static void *standing_allocate(size_t bytes)
{
	count_down();
	return gw_midst_allocate(bytes);
}

static void *standing_reallocate(void *old, size_t bytes)
{
	count_down();
	return gw_midst_reallocate(old, bytes);
}

static const struct gw_allocator standing = {
	.allocate = standing_allocate, .reallocate = standing_reallocate, .release = gw_midst_release};

static uint8_t landing[READ_BYTES] __attribute__((aligned(4096)));

/* A read may fail before all of it is posted. */
static gw_status read_once(struct gw_endpoint *endpoint, struct gw_buffer *buffer)
{
	struct gw_span span = {0, 0, READ_BYTES};
	struct gw_read_set read = {.cookie = &read, .deadline_ns = GW_NO_DEADLINE};
	struct gw_completion end;
	while (gw_endpoint_readv(endpoint, &read, &endpoint->peer.regions[0], buffer, &span, 1, true) == 0)
		if (gw_poll_group_poll(endpoint->group, &end, 1, GW_NS_PER_SECOND) == 1)
			return end.status;
	return gw_bed_wait(endpoint->group, &read).status;
}

static bool live(const struct bed *bed, bool may_fail)
{
	struct gw_poll_group *group = gw_bed_group(bed->kind);
	struct gw_buffer *buffer;
	struct gw_endpoint *endpoint;
	struct gw_connect_options connect = gw_bed_options(bed);
	connect.deadline_ns = GW_NO_DEADLINE;
	if (gw_buffer_register(group, landing, READ_BYTES, &buffer) != GW_OK)
		return false;
	memset(landing, 0, READ_BYTES);
	bool read_right = true, well = gw_bed_connect(group, &connect, &endpoint) == GW_OK;
	if (well) {
		well = read_once(endpoint, buffer) == GW_OK;
		read_right = !well || memcmp(landing, bed->memory, READ_BYTES) == 0;
	}
	if (!well)
		fprintf(stderr, "%s\n", gw_last_error());
	gw_endpoint_close(endpoint);
	gw_buffer_release(buffer);
	gw_poll_group_destroy(group);
	return read_right && (well || may_fail);
}

struct life {
	const struct bed *bed;
	unsigned long stands_at;
	bool well, all; /* well: the life had the right result; all: it ended without a stop */
};

static void *live_on(void *argument)
{
	struct life *life = argument;
	stands_at = life->stands_at;
	life->well = live(life->bed, false);
	life->all = stands_at > 0;
	stands_at = 0;
	if (life->all)
		gw_midst_stand(midst);
	gw_midst_outlast(midst);
	return NULL;
}

/* The kernel may refuse the child the device that its parent opened. Then the child must fail, and not hang. A child
 * has no access to its parent's services. It would need a service of its own, with threads, which the thread sanitizer
 * forbids after a fork. */
static bool live_in_child(const struct bed *bed)
{
	if (strcmp(bed->kind->scheme, "memory") != 0)
		return live(bed, strcmp(bed->kind->scheme, "verbs") == 0);
	struct bed own = *bed;
	struct gw_service_identity identity = {.graph_id = 1, .incarnation = 1, .parts = 1};
	struct gw_poll_group *group = gw_bed_group(bed->kind);
	uint32_t region;
	gw_bed_name(bed->kind, &own.address);
	if (gw_service_create(&identity, NULL, &own.service) != GW_OK ||
	    gw_service_expose(own.service, own.memory, own.bytes, 0, NULL, &region) != GW_OK ||
	    gw_listen(&group, 1, &own.address, own.service, &own.listener) != GW_OK)
		return false;
	bool well = live(&own, false);
	gw_listener_free(own.listener);
	gw_service_destroy(own.service);
	gw_poll_group_destroy(group);
	return well;
}

static void a_child_forked_at_any_moment_works(void **state)
{
	struct bed bed;
	struct life life = {.bed = &bed, .well = true};
	gw_bed_begin(&bed, *state, NULL);
	gw_bed_pause(&bed); /* waits until its threads have started: see fork_midst.c */
	gw_bed_resume(&bed);
	for (unsigned long n = 1; !life.all && life.well; n++) {
		struct gw_midst here = {0};
		pthread_t thread;
		midst = &here;
		life = (struct life){.bed = &bed, .stands_at = n};
		assert_int_equal(pthread_create(&thread, NULL, live_on, &life), 0);
		pid_t child = gw_midst_fork(&here);
		if (child == 0)
			gw_midst_exit(live_in_child(&bed));
		pthread_join(thread, NULL);
		if (!gw_midst_child_well(child))
			fail_msg("a child that was forked at allocation %lu", n);
	}
	assert_true(life.well);
	gw_bed_end(&bed);
}

/* --- Descriptors that a child has. --- */

static pid_t hold_all(void)
{
	pid_t child = gw_bed_fork();
	if (child == 0)
		for (;;)
			pause();
	return child;
}

static void let_go(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static uint64_t open_at(const struct bed *bed)
{
	struct gw_service_counters counters;
	gw_service_counters(bed->service, &counters);
	return counters.connections_open;
}

static void a_connection_ends_though_a_child_holds_it(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	assert_true(open_at(&one.bed) > 0);
	pid_t child = hold_all();
	gw_one_read_works(&one);
	gw_endpoint_close(one.endpoint);
	one.endpoint = NULL;
	for (int i = 0; i < 5000 && open_at(&one.bed) > 0; i++)
		gw_one_nothing_more(&one, 2);
	assert_int_equal(open_at(&one.bed), 0);
	let_go(child);
	gw_one_end(&one);
}

static void a_client_sees_the_end_though_a_child_holds_it(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	pid_t child = hold_all();
	uint16_t port = one.bed.address.port;
	gw_bed_end(&one.bed);
	for (int i = 0; i < 5000 && one.endpoint->state != GW_ENDPOINT_LOST && one.bed.kind->network; i++)
		gw_one_nothing_more(&one, 2);
	if (one.bed.kind->network)
		assert_int_equal(one.endpoint->state, GW_ENDPOINT_LOST);
	gw_endpoint_close(one.endpoint);
	/* The child's copy of the listener neither accepts clients nor occupies the port. */
	struct gw_connect_options nobody = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &nobody, &one.endpoint), GW_PEER_LOST);
	gw_endpoint_close(one.endpoint);
	struct bed_options options = {.port = port};
	gw_bed_begin(&one.bed, *state, &options);
	struct gw_connect_options again = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &again, &one.endpoint), GW_OK);
	let_go(child);
	gw_one_end(&one);
}

/* --- The services of this process. --- */

struct hub_bed {
	struct gw_poll_group *group;
	struct gw_service *service;
	struct gw_listener *listener;
	struct gw_midst midst;
};

static gw_status stand_in_call(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)call, (void)reply;
	gw_midst_stand(&((struct hub_bed *)context)->midst);
	return GW_OK;
}

static const struct gw_connect_options hub_connect = {.address = {.scheme = "memory", .host = "forked"}};

static void hub_begin(struct hub_bed *hub)
{
	struct gw_service_identity identity = {.graph_id = 1, .incarnation = 1, .parts = 1};
	assert_int_equal(gw_poll_group_create(NULL, &hub->group), GW_OK);
	assert_int_equal(gw_service_create(&identity, NULL, &hub->service), GW_OK);
	uint32_t region;
	assert_int_equal(gw_service_expose(hub->service, landing, READ_BYTES, 0, NULL, &region), GW_OK);
	assert_int_equal(gw_service_handle(hub->service, BED_OP_ECHO, stand_in_call, hub), GW_OK);
	assert_int_equal(gw_listen(&hub->group, 1, &hub_connect.address, hub->service, &hub->listener), GW_OK);
}

static void hub_end(struct hub_bed *hub)
{
	gw_listener_free(hub->listener);
	gw_service_destroy(hub->service);
	gw_poll_group_destroy(hub->group);
}

static void *call_and_stand(void *argument)
{
	struct hub_bed *hub = argument;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	assert_int_equal(gw_bed_connect(group, &hub_connect, &endpoint), GW_OK);
	assert_int_equal(gw_endpoint_request(endpoint, BED_OP_ECHO, 0, NULL, 0, GW_NO_DEADLINE, hub), GW_OK);
	gw_poll_group_destroy(group);
	return NULL;
}

static void *stop(void *argument)
{
	gw_listener_stop(((struct hub_bed *)argument)->listener, true);
	return NULL;
}

/* A thread that stops a service holds the hub's lock while a call is in the service. The child of a fork at that moment
 * has an unlocked and empty hub: its parent's name is free there. */
static void a_service_that_is_being_stopped(void **state)
{
	(void)state;
	struct hub_bed hub = {0}, own = {0};
	pthread_t caller, stopper;
	struct gw_endpoint *other;
	hub_begin(&hub);
	assert_int_equal(gw_bed_connect(hub.group, &hub_connect, &other), GW_OK);
	assert_int_equal(pthread_create(&caller, NULL, call_and_stand, &hub), 0);
	while (!atomic_load(&hub.midst.standing))
		usleep(100);
	assert_int_equal(pthread_create(&stopper, NULL, stop, &hub), 0);
	while (gw_endpoint_map(other, &other->peer.regions[0])) /* until it is closed, under the lock */
		usleep(100);
	pid_t child = gw_midst_fork(&hub.midst);
	if (child == 0) {
		hub_begin(&own);
		hub_end(&own);
		gw_midst_exit(true);
	}
	pthread_join(stopper, NULL);
	pthread_join(caller, NULL);
	assert_true(gw_midst_child_well(child));
	gw_endpoint_close(other);
	hub_end(&hub);
}

/* The parent's service goes on: the child may take its name, and close the inherited copy. */
static void a_service_that_goes_on(void **state)
{
	(void)state;
	struct hub_bed hub = {0}, own = {0};
	struct gw_endpoint *other;
	hub_begin(&hub);
	assert_int_equal(gw_bed_connect(hub.group, &hub_connect, &other), GW_OK);
	pid_t child = gw_bed_fork();
	if (child == 0) {
		hub_begin(&own);
		hub_end(&own);
		gw_endpoint_close(other);
		hub_end(&hub);
		gw_midst_exit(true);
	}
	assert_true(gw_midst_child_well(child));
	gw_endpoint_close(other);
	hub_end(&hub);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(a_child_forked_at_any_moment_works)},
		{BED_TEST(a_connection_ends_though_a_child_holds_it)},
		{BED_TEST(a_client_sees_the_end_though_a_child_holds_it)},
	};
	const struct CMUnitTest hub_tests[] = {
		cmocka_unit_test(a_service_that_is_being_stopped),
		cmocka_unit_test(a_service_that_goes_on),
	};
	gw_allocator_set(&standing);
	return gw_bed_run("forks", tests, sizeof(tests) / sizeof(tests[0])) +
	       cmocka_run_group_tests_name("forks: memory", hub_tests, NULL, NULL);
}
