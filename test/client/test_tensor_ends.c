/* Deletions and ends of jobs over a link that is cut before the answer: the servers apply them once, and a tensor that
 * was created meanwhile with the same name stays. And a link that is cut while it is idle, which ends no tensor. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "test/support/relay.h"

#define JOB          "ends"
#define ROWS         20
#define LEASE_MS     3000
#define LEASE_MAX_MS 48000

struct cut {
	struct setup setup;
	struct relay relay;
	struct gw_client *client; /* behind the relay */
	struct gw_client *other;
	pthread_t thread;
	gw_status (*end)(struct cut *cut);
	uint64_t count;
	gw_status status; /* the result of `end` */
};

static gw_status delete_it(struct cut *cut)
{
	return gw_tensor_delete(cut->client, "t", GW_OF_JOB);
}

static gw_status end_its_job(struct cut *cut)
{
	return gw_tensor_end_job(cut->client, JOB, &cut->count);
}

static void *run_end(void *argument)
{
	struct cut *cut = argument;
	cut->status = cut->end(cut);
	return NULL;
}

static struct gw_client *open_at(const char *const *list, const char *job)
{
	struct gw_client_options options = {
		.servers = list, .server_count = 1, .threads = 1, .insecure = true, .transport = "tcp", .job = job};
	return open_client(&options);
}

static void create(struct gw_client *client)
{
	const struct gw_tensor *tensor;
	const struct gw_tensor_spec spec = {
		.name = "t", .dtype = GW_FLOAT32, .placement = GW_PLACE_EVEN, .ndim = 2, .shape = {ROWS, 3}};
	must(gw_tensor_create(client, &spec, &tensor));
}

static uint32_t count_tensors(struct gw_client *client)
{
	struct gw_tensor_list *list;
	must(gw_tensor_list(client, &list));
	uint32_t count = list->count;
	gw_tensor_list_free(list);
	return count;
}

/* The connection is lost before the answer arrives. again: another client has created the tensor since. */
static void end_over_a_cut_link(gw_status (*end)(struct cut *cut), bool again)
{
	struct cut cut = {.end = end};
	setup_begin_open(&cut.setup, 233, 1, SETUP_SCALE);
	relay_begin(&cut.relay, &cut.setup.cluster.addresses[0]);
	const char *list[] = {cut.relay.text};
	cut.client = open_at(list, JOB);
	cut.other = open_at(cut.setup.cluster.list, JOB);
	create(cut.client);
	relay_hold_after(&cut.relay, 0);
	assert_int_equal(pthread_create(&cut.thread, NULL, run_end, &cut), 0);
	while (count_tensors(cut.other) > 0)
		sched_yield();
	if (again)
		create(cut.other);
	uint64_t before = atomic_load(&cut.relay.accepted);
	relay_cut_after(&cut.relay, 0);
	while (atomic_load(&cut.relay.accepted) == before)
		sched_yield();
	relay_pass(&cut.relay);
	pthread_join(cut.thread, NULL);
	if (cut.status != GW_OK)
		fail_msg("%s", gw_status_text(cut.status));
	assert_int_equal(cut.count, end == end_its_job);
	assert_int_equal(count_tensors(cut.other), again);
	gw_client_close(cut.other);
	gw_client_close(cut.client);
	relay_end(&cut.relay);
	setup_end(&cut.setup);
}

static void tensors_are_deleted_once(void **state)
{
	(void)state;
	end_over_a_cut_link(delete_it, false);
	end_over_a_cut_link(delete_it, true);
}

/* Returns false if this process was delayed for as long as a client may be silent. */
static bool holds_over_a_lost_connection(uint32_t lease_ms)
{
	struct setup setup;
	struct relay relay;
	struct gw_tensor_listed listed;
	struct watch watch;
	cluster_limit_tensors(0, lease_ms);
	setup_begin_open(&setup, 233, 1, SETUP_SCALE);
	struct gw_tensor_table *table = setup.cluster.servers[0]->tensors;
	relay_begin(&relay, &setup.cluster.addresses[0]);
	const char *list[] = {relay.text};
	struct gw_client *client = open_at(list, JOB), *other = open_at(setup.cluster.list, JOB);
	watch_begin(&watch);
	create(other);
	gw_client_close(other);
	uint64_t before = atomic_load(&relay.accepted);
	relay_cut_after(&relay, 0);
	while (atomic_load(&relay.accepted) == before) {
		sched_yield();
		watch_look(&watch);
	}
	relay_pass(&relay);
	/* Its creator last renewed the lease after the creator of the other tensor did. So when this tensor has ended,
	 * the other one would have. */
	other = open_at(setup.cluster.list, "left");
	create(other);
	gw_client_close(other);
	while (gw_tensor_table_list(table, "left", NULL, NULL, &listed, 1) > 0) {
		sched_yield();
		watch_look(&watch);
	}
	bool held = gw_tensor_table_list(table, JOB, NULL, NULL, &listed, 1) == 1;
	bool told = held || watch.worst_ns < lease_ms / 4 * 1000000ull;
	if (told)
		assert_true(held);
	gw_client_close(client);
	relay_end(&relay);
	setup_end(&setup);
	cluster_limit_tensors(0, 0);
	return told;
}

/* A job's client without open tensors reconnects by itself and keeps the job's lease. */
static void jobs_are_held_over_a_lost_connection(void **state)
{
	(void)state;
	uint32_t lease_ms = LEASE_MS;
	while (!holds_over_a_lost_connection(lease_ms)) {
		lease_ms *= 2;
		assert_true(lease_ms <= LEASE_MAX_MS);
	}
}

static void jobs_end_once(void **state)
{
	(void)state;
	end_over_a_cut_link(end_its_job, false);
	end_over_a_cut_link(end_its_job, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_held_over_a_lost_connection),
		cmocka_unit_test(jobs_end_once),
		cmocka_unit_test(tensors_are_deleted_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
