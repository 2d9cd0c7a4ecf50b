/* A table of tensors without a server: it ends while its thread works, and does not use the service afterwards, which
 * the address sanitizer checks; its limit of jobs; and its threads do not wait for each other. */
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/rows/store_private.h"
#include "tensors/table.h"
#include "tensors/table_private.h"
#include "test/support/graph_fixture.h"
#include "test/support/must.h"
#include "test/support/part_files.h"
#include "transport/service/service_backend.h"

#define ROUNDS  20
#define TENSORS 3

struct desk {
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_service *service;
	struct gw_tensor_table *table;
	uint32_t lease_ms;
};

static void desk_serve(struct desk *desk)
{
	const struct gw_service_identity identity = {.graph_id = 7, .incarnation = 9, .parts = 1};
	must(gw_service_create(&identity, NULL, &desk->service));
	const struct gw_tensor_table_options options = {.meta = desk->meta,
							.part = desk->part,
							.service = desk->service,
							.incarnation = identity.incarnation,
							.lease_ms = desk->lease_ms,
							.numa = GW_NUMA_LOCAL};
	must(gw_tensor_table_create(&options, &desk->table));
}

static struct gw_tensor_create_call call_of(int number)
{
	struct gw_tensor_create_call call = {.plan = {.shape = {20000, 16},
						      .high = 1,
						      .dtype = GW_FLOAT32,
						      .ndim = 2,
						      .placement = GW_PLACE_EVEN,
						      .initial = GW_INITIAL_NORMAL}};
	snprintf(call.plan.name, sizeof(call.plan.name), "t%d", number);
	return call;
}

static gw_status make_and_leave(struct desk *desk, struct gw_tensor_create_call *call, struct gw_tensor_state *tensor)
{
	struct gw_shard *shard;
	const uint64_t *epochs;
	gw_status status = gw_tensor_table_make(desk->table, call, tensor, &epochs, &shard);
	gw_shard_unref(desk->table, shard);
	return status;
}

/* The caller releases the tensor. True: its rows have their values. */
static bool desk_lease(struct desk *desk, int number, struct gw_shard **shard)
{
	struct gw_tensor_create_call call = call_of(number);
	struct gw_tensor_state tensor;
	const uint64_t *epochs;
	must(gw_tensor_table_make(desk->table, &call, &tensor, &epochs, shard));
	return tensor.ready;
}

static bool desk_make(struct desk *desk, int number)
{
	struct gw_shard *shard;
	bool ready = desk_lease(desk, number, &shard);
	gw_shard_unref(desk->table, shard);
	return ready;
}

static void desk_begin(struct desk *desk)
{
	char config[160];
	*desk = (struct desk){0};
	gw_fixture_begin(&desk->fixture, 5, 50, 1);
	gw_fixture_write(&desk->fixture);
	snprintf(config, sizeof(config), "%s", desk->fixture.folder);
	must(gw_meta_read(config, &desk->meta));
	part_open(desk->meta, 0, false, &desk->part);
}

static void desk_close(struct desk *desk)
{
	gw_tensor_table_stop(desk->table);
	gw_service_destroy(desk->service);
	gw_tensor_table_destroy(desk->table);
}

static void desk_end(struct desk *desk)
{
	gw_part_close(desk->part);
	gw_meta_destroy(desk->meta);
	gw_fixture_end(&desk->fixture);
}

static void a_table_stops_before_its_service_ends(void **state)
{
	(void)state;
	struct desk desk;
	desk_begin(&desk);
	for (int round = 0; round < ROUNDS; round++) {
		desk_serve(&desk);
		for (int i = 0; i < TENSORS; i++)
			desk_make(&desk, i);
		while (!desk_make(&desk, 0)) /* then the thread fills the next one */
			sched_yield();
		gw_tensor_table_stop(desk.table);
		desk_close(&desk); /* its stop has nothing more to do */
	}
	desk_end(&desk);
}

/* Blocks where the table's filler publishes a filled tensor. */
struct gate {
	struct gw_dynamic_region_registrar registrar; /* first */
	sem_t come, go;
	uint32_t published, shut_at; /* the number of published tensors; the one that waits for `go` */
};

static void *gate_add(struct gw_dynamic_region_registrar *registrar, const struct gw_dynamic_region *region)
{
	struct gate *gate = (struct gate *)registrar;
	(void)region;
	gate->published++;
	if (gate->published == gate->shut_at) {
		sem_post(&gate->come);
		sem_wait(&gate->go);
	}
	gw_fail(GW_UNSUPPORTED, "a gate registers nothing");
	return NULL;
}

static struct gw_shard *desk_hold_ready(struct desk *desk, int number)
{
	struct gw_shard *shard;
	while (!desk_lease(desk, number, &shard)) {
		gw_shard_unref(desk->table, shard);
		sched_yield();
	}
	return shard;
}

/* A large tensor takes long to fill. Meanwhile others are trained, and end with their jobs. */
static void nothing_waits_for_a_tensor_that_is_filled(void **state)
{
	(void)state;
	struct desk desk;
	struct gate gate = {.registrar = {.add = gate_add}, .shut_at = 2};
	struct gw_tensor_listed listed;
	sem_init(&gate.come, 0, 0);
	sem_init(&gate.go, 0, 0);
	desk_begin(&desk);
	desk.lease_ms = 1;
	desk_serve(&desk);
	gw_dynamic_region_registrar_set(desk.service, &gate.registrar);
	struct gw_shard *trained = desk_hold_ready(&desk, 0);
	desk_make(&desk, 1);
	sem_wait(&gate.come);
	while (gw_shard_prepare(desk.table, trained, GW_ADAGRAD) == GW_AGAIN)
		sched_yield();
	must(gw_shard_prepare(desk.table, trained, GW_ADAGRAD));
	struct gw_tensor_create_call call = call_of(2);
	struct gw_tensor_state tensor;
	snprintf(call.plan.job, sizeof(call.plan.job), "job");
	must(make_and_leave(&desk, &call, &tensor));
	while (gw_tensor_table_list(desk.table, "job", "job", "", &listed, 1) > 0)
		sched_yield();
	sem_post(&gate.go);
	gw_shard_unref(desk.table, trained);
	gw_dynamic_region_registrar_set(desk.service, NULL);
	desk_close(&desk);
	desk_end(&desk);
	sem_destroy(&gate.come);
	sem_destroy(&gate.go);
}

/* The keeper skips deleted tensors: a thread that still uses one need not wait for its state. */
static void a_deleted_tensor_gets_no_state(void **state)
{
	(void)state;
	struct desk desk;
	struct gw_shard *shards[3];
	uint32_t count;
	desk_begin(&desk);
	desk_serve(&desk);
	for (int i = 0; i < 3; i++)
		shards[i] = desk_hold_ready(&desk, i);
	/* The keeper takes long to create one state, and does not get to the other. */
	pthread_mutex_lock(&shards[0]->store->preparing);
	for (int i = 0; i < 2; i++)
		assert_int_equal(gw_shard_prepare(desk.table, shards[i], GW_ADAGRAD), GW_AGAIN);
	must(gw_tensor_table_delete(desk.table, "", "t1", 0, &count));
	must(gw_tensor_table_delete(desk.table, "", "t2", 0, &count));
	assert_int_equal(gw_shard_prepare(desk.table, shards[0], GW_ADAGRAD), GW_AGAIN);
	assert_int_equal(gw_shard_prepare(desk.table, shards[1], GW_ADAGRAD), GW_NOT_FOUND);
	assert_int_equal(gw_shard_prepare(desk.table, shards[2], GW_ADAGRAD), GW_NOT_FOUND);
	pthread_mutex_unlock(&shards[0]->store->preparing);
	for (int i = 0; i < 3; i++)
		gw_shard_unref(desk.table, shards[i]);
	desk_close(&desk);
	desk_end(&desk);
}

static void a_job_too_many_leaves_no_tensor(void **state)
{
	(void)state;
	struct desk desk;
	struct gw_tensor_listed listed;
	struct gw_tensor_create_call call = call_of(0);
	struct gw_tensor_state tensor;
	struct gw_shard *shard;
	const uint64_t *epochs;
	desk_begin(&desk);
	desk_serve(&desk);
	call.plan.shape[0] = 1;
	for (int i = 0; i < GW_TENSOR_JOBS_MAX; i++) {
		snprintf(call.plan.job, sizeof(call.plan.job), "job%d", i);
		must(make_and_leave(&desk, &call, &tensor));
	}
	uint64_t bytes = gw_tensor_table_bytes(desk.table);
	snprintf(call.plan.job, sizeof(call.plan.job), "another");
	assert_int_equal(gw_tensor_table_make(desk.table, &call, &tensor, &epochs, &shard), GW_LIMIT);
	assert_null(shard);
	assert_int_equal(gw_tensor_table_list(desk.table, "another", NULL, NULL, &listed, 1), 0);
	assert_int_equal(gw_tensor_table_bytes(desk.table), bytes);
	desk_close(&desk);
	desk_end(&desk);
}

/* Clients of jobs without tensors renew their leases too. */
static void jobs_without_tensors_take_no_place(void **state)
{
	(void)state;
	struct desk desk;
	struct gw_tensor_create_call call = call_of(0);
	struct gw_tensor_state tensor;
	desk_begin(&desk);
	desk_serve(&desk);
	for (int i = 0; i < GW_TENSOR_JOBS_MAX; i++) {
		char job[GW_JOB_NAME_MAX + 1];
		snprintf(job, sizeof(job), "job%d", i);
		gw_tensor_table_lease(desk.table, job);
	}
	snprintf(call.plan.job, sizeof(call.plan.job), "another");
	must(make_and_leave(&desk, &call, &tensor));
	desk_close(&desk);
	desk_end(&desk);
}

/* Calls with a name that leave no tensor: renew the lease, open an absent tensor, fail to create one, delete a created
 * one, end the job. */
static void use_name(struct desk *desk, int number, int way)
{
	struct gw_tensor_create_call call = call_of(0);
	struct gw_tensor_state tensor;
	uint32_t count;
	call.plan.shape[0] = 1;
	snprintf(call.plan.job, sizeof(call.plan.job), "name%d", number);
	if (way == 0)
		gw_tensor_table_lease(desk->table, call.plan.job);
	call.open = way == 1;
	if (way == 2) {
		call.plan.initial = GW_INITIAL_COPY;
		snprintf(call.plan.source, sizeof(call.plan.source), "=nowhere");
	}
	if (way == 1 || way == 2)
		assert_int_equal(make_and_leave(desk, &call, &tensor), GW_NOT_FOUND);
	if (way < 3)
		return;
	must(make_and_leave(desk, &call, &tensor));
	if (way == 3)
		must(gw_tensor_table_delete(desk->table, call.plan.job, call.plan.name, 0, &count));
	else
		must(gw_tensor_table_end_job(desk->table, call.plan.job, &count));
	assert_int_equal(count, 1);
}

/* However many names there are, later ones are accepted, and a job with a tensor keeps it. */
static void names_that_leave_nothing_take_no_place(void **state)
{
	(void)state;
	struct desk desk;
	struct gw_tensor_create_call call = call_of(0);
	struct gw_tensor_state tensor;
	desk_begin(&desk);
	desk_serve(&desk);
	call.plan.shape[0] = 1;
	snprintf(call.plan.job, sizeof(call.plan.job), "stays");
	for (int i = 0; i < 2; i++) { /* two tensors: one is deleted, and the job stays */
		snprintf(call.plan.name, sizeof(call.plan.name), "t%d", i);
		must(make_and_leave(&desk, &call, &tensor));
	}
	uint64_t epoch = tensor.epoch;
	uint32_t count;
	must(gw_tensor_table_delete(desk.table, "stays", "t0", 0, &count));
	for (int i = 0; i < 5 * (GW_TENSOR_JOBS_MAX + 9); i++)
		use_name(&desk, i, i % 5);
	call.open = 1;
	must(make_and_leave(&desk, &call, &tensor));
	assert_int_equal(tensor.epoch, epoch);
	/* All other slots are free. */
	call.open = 0;
	for (int i = 1; i <= GW_TENSOR_JOBS_MAX; i++) {
		snprintf(call.plan.job, sizeof(call.plan.job), "job%d", i);
		gw_status status = make_and_leave(&desk, &call, &tensor);
		assert_int_equal(status, i < GW_TENSOR_JOBS_MAX ? GW_OK : GW_LIMIT);
	}
	desk_close(&desk);
	desk_end(&desk);
}

/* A copy that is restored begins with zeros, and does not look for its source. A client that opens it learns that, so
 * that it creates the other parts the same way. */
static void a_restored_copy_has_no_source(void **state)
{
	(void)state;
	struct desk desk;
	struct gw_tensor_create_call call = call_of(0);
	struct gw_tensor_state tensor = {0};
	struct gw_shard *shard = NULL;
	const uint64_t *epochs;
	uint64_t nonzero = 1;
	desk_begin(&desk);
	desk_serve(&desk);
	call.plan.initial = GW_INITIAL_COPY;
	snprintf(call.plan.source, sizeof(call.plan.source), "+nowhere");
	assert_int_equal(gw_tensor_table_make(desk.table, &call, &tensor, &epochs, &shard), GW_NOT_FOUND);
	call.restored = 1;
	while (!tensor.ready) {
		gw_shard_unref(desk.table, shard);
		must(gw_tensor_table_make(desk.table, &call, &tensor, &epochs, &shard));
		assert_int_equal(tensor.restored, 1);
		call.open = 1;
		call.restored = 0;
		sched_yield();
	}
	must(gw_row_store_count_slice(shard->store, NULL, 0, call.plan.shape[0], &nonzero));
	assert_int_equal(nonzero, 0);
	gw_shard_unref(desk.table, shard);
	desk_close(&desk);
	desk_end(&desk);
}

/* Another tensor has the slot of one that is deleted: a client that still names the old one learns that it is gone. */
static void an_old_epoch_in_the_same_slot_is_gone(void **state)
{
	(void)state;
	struct desk desk;
	struct gw_tensor_create_call call = call_of(0);
	struct gw_tensor_state old, tensor;
	struct gw_shard *shard;
	uint32_t count;
	desk_begin(&desk);
	desk_serve(&desk);
	call.plan.shape[0] = 1;
	must(make_and_leave(&desk, &call, &old));
	do {
		must(gw_tensor_table_delete(desk.table, "", "t0", 0, &count));
		must(make_and_leave(&desk, &call, &tensor));
	} while (tensor.epoch % GW_TABLE_SLOTS != old.epoch % GW_TABLE_SLOTS);
	assert_true(tensor.epoch != old.epoch);
	while (gw_tensor_table_find(desk.table, tensor.epoch, &shard) != GW_OK)
		sched_yield();
	assert_int_equal(shard->epoch, tensor.epoch);
	gw_shard_unref(desk.table, shard);
	const uint64_t others[] = {old.epoch, tensor.epoch + GW_TABLE_SLOTS, tensor.epoch - GW_TABLE_SLOTS,
				   tensor.epoch % GW_TABLE_SLOTS};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(gw_tensor_table_find(desk.table, others[i], &shard), GW_NOT_FOUND);
		assert_null(shard);
	}
	/* Those look-ups have kept no user: memory is free once the table's thread leaves the tensor. */
	must(gw_tensor_table_delete(desk.table, "", "t0", 0, &count));
	while (gw_tensor_table_bytes(desk.table) > 0)
		sched_yield();
	desk_close(&desk);
	desk_end(&desk);
}

static void a_table_without_tensors_stops(void **state)
{
	(void)state;
	const struct gw_tensor_table_options options = {0};
	struct gw_tensor_table *table;
	must(gw_tensor_table_create(&options, &table));
	gw_tensor_table_stop(table);
	gw_tensor_table_destroy(table);
	gw_tensor_table_stop(NULL);
	gw_tensor_table_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_stops_before_its_service_ends),
		cmocka_unit_test(a_table_without_tensors_stops),
		cmocka_unit_test(nothing_waits_for_a_tensor_that_is_filled),
		cmocka_unit_test(a_deleted_tensor_gets_no_state),
		cmocka_unit_test(an_old_epoch_in_the_same_slot_is_gone),
		cmocka_unit_test(a_job_too_many_leaves_no_tensor),
		cmocka_unit_test(a_restored_copy_has_no_source),
		cmocka_unit_test(jobs_without_tensors_take_no_place),
		cmocka_unit_test(names_that_leave_nothing_take_no_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
