/* The first push to a tensor while its server takes long to allocate the optimizer's state. Meanwhile all other calls
 * to that server over the same connection work. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rows/store_private.h"
#include "test/support/scratch.h"
#include "test/support/striped.h"

#define JOB "states"

static const struct gw_optimizer adagrad = {.kind = GW_ADAGRAD, .rate = 1, .eps = 1e-10f};

struct bench {
	struct setup setup;
	struct gw_client *client;
	struct gw_shard *shard; /* whose state does not exist yet */
	uint64_t connections;
};

/* A short time: a client gives up a server that has not answered for long. */
static uint64_t connections_of(const struct bench *bench)
{
	struct gw_service_counters counters;
	gw_service_counters(bench->setup.cluster.servers[0]->service, &counters);
	return counters.connections_total;
}

static struct gw_client *open_one(const struct bench *bench)
{
	struct gw_client_options options = {.servers = bench->setup.cluster.list,
					    .server_count = 1,
					    .threads = 1,
					    .transport = cluster_is_rdma() ? "verbs" : "tcp",
					    .job = JOB};
	return open_client(&options);
}

static void bench_begin(struct bench *bench)
{
	*bench = (struct bench){0};
	setup_begin(&bench->setup, 241, 1, NULL);
	bench->client = open_one(bench);
}

/* From here on the server allocates the state of "trained", the only tensor with a state, and does not finish. */
static void bench_shut(struct bench *bench)
{
	struct gw_tensor_table *tensors = bench->setup.cluster.servers[0]->tensors;
	struct gw_tensor_listed listed;
	assert_int_equal(gw_tensor_table_list(tensors, JOB, JOB, "tr", &listed, 1), 1);
	assert_string_equal(listed.plan.name, "trained");
	must(gw_tensor_table_find(tensors, listed.epoch, &bench->shard));
	pthread_mutex_lock(&bench->shard->store->preparing);
	bench->connections = connections_of(bench);
}

static void bench_open(struct bench *bench)
{
	assert_int_equal(connections_of(bench), bench->connections);
	pthread_mutex_unlock(&bench->shard->store->preparing);
	gw_shard_unref(bench->setup.cluster.servers[0]->tensors, bench->shard);
}

static void bench_end(struct bench *bench)
{
	gw_client_close(bench->client);
	setup_end(&bench->setup);
}

static void others_pass_a_push_that_waits(void **state)
{
	(void)state;
	struct bench bench;
	struct gw_ticket *first, *second;
	uint64_t count;
	float row[STRIPED_COLUMNS] = {2, 2, 2, 2, 2}, read[STRIPED_COLUMNS];
	bench_begin(&bench);
	struct gw_tensor_spec trained = striped_spec("trained"), written = striped_spec("written");
	const struct gw_tensor *table = striped_create(bench.client, &trained);
	const struct gw_tensor *rows = striped_create(bench.client, &written);
	const struct gw_tensor *feat = node_tensor(bench.client, "paper", "feat");
	uint8_t *features = calloc(1, feat->row_bytes);
	bench_shut(&bench);
	must(gw_push_start(bench.client, table, (int64_t[]){3}, 1, row, &adagrad, &first));
	must(gw_update_start(bench.client, table, (int64_t[]){3}, 1, row, &second));
	/* Another feature, another tensor, and reads of the same tensor. */
	must(gw_gather(bench.client, feat, (int64_t[]){0}, 1, features));
	assert_int_equal(gw_wait(first, 0), GW_AGAIN);
	must(gw_update(bench.client, rows, (int64_t[]){1}, 1, row));
	must(gw_gather(bench.client, rows, (int64_t[]){1}, 1, read));
	assert_memory_equal(read, row, sizeof(row));
	must(gw_gather(bench.client, table, (int64_t[]){3}, 1, read));
	assert_true(read[0] == 0);
	must(gw_tensor_count_nonzero(bench.client, table, &count));
	assert_int_equal(count, 0);
	assert_int_equal(gw_wait(first, 0), GW_AGAIN);
	assert_int_equal(gw_wait(second, 0), GW_AGAIN);
	bench_open(&bench);
	/* Writes of one row take effect in the order of their calls. */
	must(gw_wait(first, -1));
	must(gw_wait(second, -1));
	must(gw_gather(bench.client, table, (int64_t[]){3}, 1, read));
	assert_memory_equal(read, row, sizeof(row));
	free(features);
	bench_end(&bench);
}

static char saved_folder[80];

struct restorer {
	struct gw_client *client;
	atomic_bool ended;
	gw_status status;
};

static void *restore_it(void *argument)
{
	struct restorer *self = argument;
	self->status = gw_restore(self->client, saved_folder, NULL, 0);
	atomic_store(&self->ended, true);
	return NULL;
}

static void others_pass_a_restore_that_waits(void **state)
{
	(void)state;
	struct bench bench;
	pthread_t thread;
	float row[STRIPED_COLUMNS] = {2, 2, 2, 2, 2}, read[STRIPED_COLUMNS];
	bench_begin(&bench);
	struct gw_tensor_table *tensors = bench.setup.cluster.servers[0]->tensors;
	struct gw_tensor_spec spec = striped_spec("trained");
	const struct gw_tensor *table = striped_create(bench.client, &spec);
	must(gw_push(bench.client, table, (int64_t[]){3}, 1, row, &adagrad));
	must(gw_gather(bench.client, table, (int64_t[]){3}, 1, row));
	char scratch[64];
	gw_scratch_make_in_memory("states", scratch);
	snprintf(saved_folder, sizeof(saved_folder), "%s/saved", scratch);
	must(gw_checkpoint(bench.client, saved_folder, NULL));
	must(gw_tensor_delete(bench.client, "trained", GW_OF_JOB));
	table = striped_create(bench.client, &spec);
	const struct gw_tensor *feat = node_tensor(bench.client, "paper", "feat");
	uint8_t *features = calloc(1, feat->row_bytes);
	bench_shut(&bench);
	struct restorer restorer = {.client = bench.client};
	uint64_t bytes = gw_tensor_table_bytes(tensors);
	assert_int_equal(pthread_create(&thread, NULL, restore_it, &restorer), 0);
	while (gw_tensor_table_bytes(tensors) == bytes) /* then the server has begun to allocate the state */
		striped_pause();
	must(gw_gather(bench.client, feat, (int64_t[]){0}, 1, features));
	assert_false(atomic_load(&restorer.ended));
	bench_open(&bench);
	pthread_join(thread, NULL);
	assert_int_equal(restorer.status, GW_OK);
	must(gw_gather(bench.client, table, (int64_t[]){3}, 1, read));
	assert_memory_equal(read, row, sizeof(row));
	free(features);
	bench_end(&bench);
}

/* A push that waits for too long fails; the server completes the state all the same. */
static void a_push_waits_within_its_deadline(void **state)
{
	(void)state;
	struct bench bench;
	float row[STRIPED_COLUMNS] = {2, 2, 2, 2, 2}, read[STRIPED_COLUMNS];
	bench_begin(&bench);
	struct gw_tensor_spec spec = striped_spec("trained");
	struct gw_client *hasty = striped_client(&bench.setup.cluster, JOB, patient_ms(2000));
	const struct gw_tensor *table;
	gw_status status;
	while ((status = gw_tensor_create(hasty, &spec, &table)) == GW_DEADLINE) /* its deadline is short here too */
		;
	must(status);
	bench_shut(&bench);
	expect(gw_push(hasty, table, (int64_t[]){3}, 1, row, &adagrad), GW_DEADLINE, "deadline");
	must(gw_gather(bench.client, striped_create(bench.client, &spec), (int64_t[]){3}, 1, read));
	assert_true(read[0] == 0);
	bench_open(&bench);
	must(gw_push(bench.client, striped_create(bench.client, &spec), (int64_t[]){3}, 1, row, &adagrad));
	gw_client_close(hasty);
	bench_end(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_pass_a_push_that_waits),
		cmocka_unit_test(others_pass_a_restore_that_waits),
		cmocka_unit_test(a_push_waits_within_its_deadline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
