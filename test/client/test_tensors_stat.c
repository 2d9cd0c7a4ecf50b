/* What servers report about tensors (stat): their descriptions, the writes, and the one-sided reads, which clients
 * count and report: each once, for one tensor after another, the last when they close. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/engine/remote_call.h"
#include "client/rows/tensor_handles.h"
#include "protocol/ops.h"
#include "test/support/striped.h"

#define PARTS 2

static json_t *ask_stats(struct gw_client *client)
{
	struct gw_vec reply = {0};
	size_t bytes;
	must(gw_remote_call(client, 0, GW_OP_STATS, NULL, 0, &reply, &bytes));
	json_t *stats = json_loadb(reply.data, bytes, 0, NULL);
	gw_vec_free(&reply);
	return stats;
}

#define TOLD_READS 50

/* Two rows read by a client that reports its reads when it closes, and does not wait for long. */
static void read_and_close(const struct setup *setup)
{
	struct gw_client *reader = striped_client(&setup->cluster, "told", 0);
	const struct gw_tensor *tensor;
	float rows[2 * STRIPED_COLUMNS];
	must(gw_tensor_open(reader, "told-of", GW_OF_JOB, &tensor));
	for (int i = 0; i < TOLD_READS; i++)
		must(gw_gather(reader, tensor, (int64_t[]){0, 2}, 2, rows));
	gw_client_close(reader);
}

static void stat_lists_tensors(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 228, PARTS, NULL);
	struct gw_client *client = striped_client(&setup.cluster, "told", 0);
	struct gw_tensor_spec spec = striped_spec("told-of");
	const struct gw_tensor *tensor = striped_create(client, &spec);
	const struct gw_optimizer add = {.kind = GW_SGD, .rate = 1};
	float rows[3 * STRIPED_COLUMNS] = {0};
	must(gw_update(client, tensor, (int64_t[]){0, 2, 4}, 3, rows)); /* all of them rows of part 0 */
	must(gw_push(client, tensor, (int64_t[]){0, 2}, 2, rows, &add));
	json_t *stats = ask_stats(client);
	const json_t *told = json_array_get(json_object_get(stats, "tensors"), 0);
	assert_string_equal(json_string_value(json_object_get(told, "name")), "told-of");
	assert_string_equal(json_string_value(json_object_get(told, "job")), "told");
	assert_string_equal(json_string_value(json_object_get(told, "dtype")), "float32");
	assert_int_equal(json_integer_value(json_object_get(told, "written")), 3);
	assert_int_equal(json_integer_value(json_object_get(told, "pushed")), 2);
	assert_true(json_integer_value(json_object_get(told, "bytes")) >= STRIPED_ROWS / PARTS * STRIPED_COLUMNS * 4);
	assert_int_equal(json_array_size(json_object_get(stats, "tensors")), 1);
	assert_int_equal(json_integer_value(json_object_get(told, "read")), 0);
	json_int_t pulled = json_integer_value(json_object_get(told, "pulled"));
	json_decref(stats);
	/* A row is pulled or read; chance decides how many are pulled before their region is open. */
	json_int_t read = 0, most = 0;
	while (read == 0) {
		read_and_close(&setup);
		stats = ask_stats(client);
		told = json_array_get(json_object_get(stats, "tensors"), 0);
		read = json_integer_value(json_object_get(told, "read"));
		most += 2 * TOLD_READS;
		assert_true(read + json_integer_value(json_object_get(told, "pulled")) - pulled <= most);
		json_decref(stats);
	}
	gw_client_close(client);
	setup_end(&setup);
}

#define READERS     4
#define READER_ROWS 3000 /* rows that each reader reads, ten per call */
#define TURNS_MAX   10000

struct reader {
	pthread_t thread;
	struct gw_client *client;
	const struct gw_tensor *tensor;
};

static void *read_again_and_again(void *argument)
{
	struct reader *self = argument;
	float rows[10 * STRIPED_COLUMNS];
	for (int i = 0; i < READER_ROWS; i += 10)
		must(gw_gather(self->client, self->tensor, (int64_t[]){0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, 10, rows));
	return NULL;
}

/* Reads rows of part 0 until the client has read rows of `count` tensors one-sided. */
static void read_by_itself(struct gw_client *client, const struct gw_tensor *const *tensors, uint32_t count)
{
	struct gw_tensor_read reads[8];
	float row[STRIPED_COLUMNS];
	for (uint32_t read = 0, turns = 0; read < count; turns++) {
		assert_true(turns < TURNS_MAX);
		for (uint32_t i = 0; i < count; i++)
			must(gw_gather(client, tensors[i], (int64_t[]){0}, 1, row));
		read = gw_tensor_handles_collect_reads(client, 0, reads, 8);
	}
}

static void threads_count_what_they_read(void **state)
{
	(void)state;
	struct setup setup;
	struct reader readers[READERS];
	struct gw_tensor_read read;
	const int64_t first = 0;
	setup_begin(&setup, 231, PARTS, NULL);
	struct gw_client *client = striped_client(&setup.cluster, "count", 0);
	struct gw_tensor_spec spec = striped_spec("counted");
	const struct gw_tensor *tensor = striped_create(client, &spec);
	const struct gw_rows *rows = &((const struct gw_client_tensor *)tensor)->rows;
	/* Counts of two engines never share a cache line. */
	assert_true(client->engine_count > 1);
	assert_int_equal((uintptr_t)rows->read % 64, 0);
	assert_int_equal(rows->read_stride * sizeof(rows->read[0]) % 64, 0);
	/* Each engine opens the rows' region over its own connections. Concurrent calls use several engines. */
	for (uint64_t e = 0, turns = 0; e < client->engine_count; turns++) {
		struct gw_ticket *tickets[2];
		float row[2][STRIPED_COLUMNS];
		assert_true(turns < TURNS_MAX);
		for (int i = 0; i < 2; i++)
			must(gw_gather_start(client, tensor, &first, 1, row[i], &tickets[i]));
		for (int i = 0; i < 2; i++)
			must(gw_wait(tickets[i], -1));
		e += atomic_load(&rows->read[e * rows->read_stride]) > 0;
	}
	assert_int_equal(gw_tensor_handles_collect_reads(client, 0, &read, 1), 1);
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.client = client, .tensor = tensor};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_again_and_again, &readers[i]), 0);
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i].thread, NULL);
	assert_int_equal(gw_tensor_handles_collect_reads(client, 0, &read, 1), 1);
	assert_int_equal(read.rows, READERS * READER_ROWS);
	assert_int_equal(gw_tensor_handles_collect_reads(client, 0, &read, 1), 0);
	assert_int_equal(gw_tensor_handles_collect_reads(client, 1, &read, 1), 0);
	/* A failed report is repeated later. */
	read.epoch = ((const struct gw_tensor_handle *)tensor)->epochs[0];
	read.rows = 7;
	gw_tensor_handles_return_reads(client, 0, &read, 1);
	assert_int_equal(gw_tensor_handles_collect_reads(client, 0, &read, 1), 1);
	assert_int_equal(read.rows, 7);
	gw_client_close(client);
	setup_end(&setup);
}

#define SEVERAL 5

static void reads_are_reported_in_turn(void **state)
{
	(void)state;
	static const char *const names[SEVERAL] = {"first", "second", "third", "fourth", "fifth"};
	struct setup setup;
	const struct gw_tensor *tensors[SEVERAL];
	uint32_t told[SEVERAL] = {0};
	float row[STRIPED_COLUMNS];
	setup_begin(&setup, 232, PARTS, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = PARTS, .threads = 1, .job = "turns"};
	struct gw_client *client = open_client(&options);
	for (int i = 0; i < SEVERAL; i++) {
		struct gw_tensor_spec spec = striped_spec(names[i]);
		tensors[i] = striped_create(client, &spec);
	}
	read_by_itself(client, tensors, SEVERAL);
	for (int turn = 0; turn < SEVERAL; turn++) {
		struct gw_tensor_read reads[2];
		for (int i = 0; i < SEVERAL; i++)
			must(gw_gather(client, tensors[i], (int64_t[]){0}, 1, row));
		assert_int_equal(gw_tensor_handles_collect_reads(client, 0, reads, 2), 2);
		for (int i = 0; i < SEVERAL; i++) {
			uint64_t epoch = ((const struct gw_tensor_handle *)tensors[i])->epochs[0];
			told[i] += reads[0].epoch == epoch || reads[1].epoch == epoch;
		}
	}
	for (int i = 0; i < SEVERAL; i++)
		assert_int_equal(told[i], 2);
	gw_client_close(client);
	setup_end(&setup);
}

#define MANY ((int)GW_TENSOR_READS_MAX + 6)

/* More tensors than one call carries. */
static void all_reads_are_reported_at_close(void **state)
{
	(void)state;
	struct setup setup;
	const struct gw_tensor *tensors[MANY];
	float row[STRIPED_COLUMNS];
	setup_begin(&setup, 233, PARTS, NULL);
	struct gw_client *keeper = striped_client(&setup.cluster, "end", 0);
	int missing = MANY;
	for (int turn = 0; missing > 0; turn++) {
		assert_true(turn < 100);
		struct gw_client *client = striped_client(&setup.cluster, "end", 0);
		for (int i = 0; i < MANY; i++) {
			char name[32];
			snprintf(name, sizeof(name), "of-%d", i);
			struct gw_tensor_spec spec = striped_spec(name);
			striped_create(keeper, &spec);
			tensors[i] = striped_create(client, &spec);
		}
		for (int i = 0; i < 4 * MANY; i++)
			must(gw_gather(client, tensors[i % MANY], (int64_t[]){0}, 1, row));
		gw_client_close(client);
		json_t *stats = ask_stats(keeper), *told;
		size_t index;
		missing = 0;
		json_array_foreach(json_object_get(stats, "tensors"), index, told) missing +=
			json_integer_value(json_object_get(told, "read")) == 0;
		json_decref(stats);
	}
	gw_client_close(keeper);
	setup_end(&setup);
}

#define WIDE_ROWS    13 /* as large as possible */
#define WIDE_COLUMNS (GW_TENSOR_ROW_BYTES_MAX / sizeof(float))

static uint64_t requests_of(const struct setup *setup, uint32_t part)
{
	struct gw_service_counters counters;
	gw_service_counters(setup->cluster.servers[part]->service, &counters);
	return counters.requests;
}

/* However large a tensor is, its count is requested in short pieces. */
static void counts_are_many_requests(void **state)
{
	(void)state;
	struct setup setup;
	const struct gw_tensor *tensor;
	uint64_t found = 0, before[PARTS], ones = 0;
	setup_begin(&setup, 231, PARTS, NULL);
	struct gw_client *client = striped_client(&setup.cluster, "wide", 0);
	const struct gw_tensor_spec spec = {.name = "wide",
					    .dtype = GW_FLOAT32,
					    .placement = GW_PLACE_STRIPED,
					    .ndim = 2,
					    .shape = {WIDE_ROWS, WIDE_COLUMNS}};
	float *row = calloc(WIDE_COLUMNS, sizeof(*row));
	must(gw_tensor_create(client, &spec, &tensor));
	for (int64_t id = 0; id < WIDE_ROWS; id++) {
		row[id] = row[WIDE_COLUMNS - 1] = 1;
		ones += (uint64_t)id + 2;
		must(gw_update(client, tensor, &id, 1, row));
	}
	for (uint32_t p = 0; p < PARTS; p++)
		before[p] = requests_of(&setup, p);
	must(gw_tensor_count_nonzero(client, tensor, &found));
	assert_int_equal(found, ones);
	for (uint32_t p = 0; p < PARTS; p++)
		assert_true(requests_of(&setup, p) >= before[p] + 2);
	free(row);
	gw_client_close(client);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_lists_tensors),         cmocka_unit_test(threads_count_what_they_read),
		cmocka_unit_test(reads_are_reported_in_turn), cmocka_unit_test(all_reads_are_reported_at_close),
		cmocka_unit_test(counts_are_many_requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
