/* How tensors come to be, and end: creators at once, jobs, limits, servers that are killed, links that are cut. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/remote_call.h"
#include "client/tensor_handles.h"
#include "core/base/rng.h"
#include "protocol/ops.h"
#include "test/support/client_setup.h"
#include "test/support/cut_pushes.h"

#define PARTS    2
#define COLUMNS  5
#define ROWS     300
#define CREATORS 6
#define CUTS     25
#define LEASE_MS 3000 /* a client says four times in it that it is there: one that is late by less is in time */

static void must(gw_status status)
{
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
}

static void pause_a_little(void)
{
	struct timespec pause = {.tv_nsec = 2000000};
	nanosleep(&pause, NULL);
}

static struct gw_tensor_spec striped(const char *name)
{
	return (struct gw_tensor_spec){
		.name = name, .dtype = GW_FLOAT32, .placement = GW_PLACE_STRIPED, .ndim = 2, .shape = {ROWS, COLUMNS}};
}

static const struct gw_tensor *create(struct gw_client *client, const struct gw_tensor_spec *spec)
{
	const struct gw_tensor *tensor;
	must(gw_tensor_create(client, spec, &tensor));
	return tensor;
}

static struct gw_client *open_servers(const struct cluster *cluster, const char *job, int64_t timeout_ms)
{
	struct gw_client_options options = {.servers = cluster->list,
					    .server_count = cluster->parts,
					    .threads = 2,
					    .job = job,
					    .timeout_ms = timeout_ms,
					    .insecure = cluster->insecure};
	return open_client(&options);
}

static void read_all(struct gw_client *client, const struct gw_tensor *tensor, float *rows)
{
	int64_t ids[ROWS];
	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	must(gw_gather(client, tensor, ids, ROWS, rows));
}

/* --- Coming to be. --- */

struct creator {
	pthread_t thread;
	const struct cluster *cluster;
	float rows[ROWS * COLUMNS];
	gw_status status;
};

static void *create_and_read(void *argument)
{
	struct creator *self = argument;
	struct gw_client *client = open_servers(self->cluster, "creators", 0);
	struct gw_tensor_spec spec = striped("shared");
	const struct gw_tensor *tensor;
	spec.initial = GW_INITIAL_NORMAL;
	spec.high = 1;
	spec.seed = 77;
	self->status = gw_tensor_create(client, &spec, &tensor);
	if (self->status == GW_OK)
		read_all(client, tensor, self->rows);
	gw_client_close(client);
	return NULL;
}

static void many_create_one(void **state)
{
	(void)state;
	struct setup setup;
	struct creator *creators = calloc(CREATORS, sizeof(*creators));
	setup_begin(&setup, 221, PARTS, NULL);
	for (int i = 0; i < CREATORS; i++) {
		creators[i].cluster = &setup.cluster;
		assert_int_equal(pthread_create(&creators[i].thread, NULL, create_and_read, &creators[i]), 0);
	}
	for (int i = 0; i < CREATORS; i++) {
		pthread_join(creators[i].thread, NULL);
		assert_int_equal(creators[i].status, GW_OK);
		assert_memory_equal(creators[i].rows, creators[0].rows, sizeof(creators[0].rows));
	}
	uint32_t differ = 0;
	for (int i = 1; i < ROWS * COLUMNS; i++)
		differ += creators[0].rows[i] != creators[0].rows[0];
	assert_int_equal(differ, ROWS * COLUMNS - 1);

	struct gw_client *client = open_servers(&setup.cluster, "creators", 0);
	struct gw_tensor_list *list;
	must(gw_tensor_list(client, &list));
	assert_int_equal(list->count, 1);
	assert_string_equal(list->entries[0].name, "shared");
	assert_true(list->entries[0].bytes >= ROWS * COLUMNS * sizeof(float));
	gw_tensor_list_free(list);
	gw_client_close(client);
	free(creators);
	setup_end(&setup);
}

/* What authors, whose original ids are numbers, begin with, by original id; and papers, whose are texts. */
struct beginning {
	uint64_t key;
	float row[COLUMNS];
};

static int compare_beginnings(const void *a, const void *b)
{
	uint64_t x = ((const struct beginning *)a)->key, y = ((const struct beginning *)b)->key;
	return x < y ? -1 : x > y;
}

static uint64_t read_beginnings(uint32_t parts, const char *type, struct beginning **out)
{
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 222, 120, parts);
	gw_fixture_write(&fixture);
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&options);
	struct gw_tensor_spec spec = {.name = "x",
				      .dtype = GW_FLOAT32,
				      .ndim = 2,
				      .shape = {0, COLUMNS},
				      .initial = GW_INITIAL_UNIFORM,
				      .low = -1,
				      .high = 1,
				      .seed = 5};
	must(gw_node_type(client, type, &spec.type));
	const struct gw_tensor *tensor = create(client, &spec), *numbers;
	uint64_t n = tensor->shape[0];
	int64_t *ids = calloc(n, sizeof(*ids)), *originals = calloc(n, sizeof(*originals));
	*out = calloc(n, sizeof(**out));
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	struct gw_texts *texts = NULL;
	bool text = gw_node_tensor(client, spec.type, "orig_id", &numbers) != GW_OK;
	must(text ? gw_node_texts(client, spec.type, "orig_id", ids, n, &texts)
		  : gw_gather(client, numbers, ids, n, originals));
	for (uint64_t i = 0; i < n; i++) {
		struct beginning *one = &(*out)[i];
		one->key = (uint64_t)originals[i];
		for (uint64_t b = text ? texts->offsets[i] : 0; text && b < texts->offsets[i + 1]; b++)
			one->key = gw_mix64(one->key + (uint8_t)texts->bytes[b] + 1);
		must(gw_gather(client, tensor, &ids[i], 1, one->row));
	}
	qsort(*out, n, sizeof(**out), compare_beginnings);
	gw_texts_free(texts);
	free(ids);
	free(originals);
	gw_client_close(client);
	gw_fixture_end(&fixture);
	return n;
}

static void beginnings_do_not_depend_on_parts(void **state)
{
	(void)state;
	static const char *const types[] = {"author", "paper"};
	for (int t = 0; t < 2; t++) {
		struct beginning *one, *three;
		uint64_t n = read_beginnings(1, types[t], &one), also = read_beginnings(3, types[t], &three);
		assert_int_equal(n, also);
		for (uint64_t i = 0; i < n; i++)
			assert_memory_equal(&one[i], &three[i], sizeof(one[i].key) + sizeof(one[i].row));
		free(one);
		free(three);
	}
}

static void copies_begin_with_what_they_copy(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 223, PARTS, NULL);
	struct gw_client *client = open_servers(&setup.cluster, "copies", 0);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	struct gw_tensor_spec spec = {.name = "trained",
				      .dtype = feat->dtype,
				      .ndim = feat->ndim,
				      .type = feat->type,
				      .shape = {0, feat->shape[1]},
				      .initial = GW_INITIAL_COPY,
				      .from = feat};
	const struct gw_tensor *copy = create(client, &spec);
	uint64_t n = feat->shape[0], row = feat->row_bytes;
	int64_t *ids = calloc(n, sizeof(*ids));
	uint8_t *expected = calloc(n, row), *rows = calloc(n, row);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	must(gw_gather(client, feat, ids, n, expected));
	must(gw_gather(client, copy, ids, n, rows));
	assert_memory_equal(rows, expected, n * row);

	memset(expected, 7, row);
	must(gw_update(client, copy, ids, 1, expected));
	spec.name = "again";
	spec.from = copy;
	copy = create(client, &spec);
	must(gw_gather(client, copy, ids, n, rows));
	assert_memory_equal(rows, expected, n * row);

	/* A mini-batch fetches them as it fetches features. */
	int32_t fanouts[GW_FIXTURE_ETYPES] = {0};
	struct gw_fetch fetch = {copy, GW_AT_SEEDS};
	struct gw_sample_spec sample = {
		.ntype = feat->type, .hops = 1, .fanouts = fanouts, .fetch_count = 1, .fetches = &fetch};
	struct gw_minibatch *batch;
	must(gw_sample(client, &sample, 1, 1, ids, 3, &batch));
	assert_memory_equal(batch->rows[0], expected, 3 * row);
	gw_minibatch_release(batch);
	free(ids);
	free(expected);
	free(rows);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- Ending. --- */

static uint64_t requests_of(const struct cluster *cluster)
{
	struct gw_service_counters counters;
	gw_service_counters(cluster->servers[0]->service, &counters);
	return counters.requests;
}

static void jobs_end_and_kept_ones_stay(void **state)
{
	(void)state;
	struct setup setup;
	cluster_limit_tensors(0, LEASE_MS);
	setup_begin(&setup, 224, PARTS, NULL);
	struct gw_client *watcher = open_servers(&setup.cluster, "ends", 0);
	struct gw_client *client = open_servers(&setup.cluster, "ends", 0);
	struct gw_client *stranger = open_servers(&setup.cluster, "another", 0);
	struct gw_tensor_spec spec = striped("job's"), kept = striped("kept");
	struct gw_tensor_list *list;
	const struct gw_tensor *tensor;
	spec.name = "jobs";
	kept.lifetime = GW_KEPT;
	create(client, &spec);
	create(client, &kept);
	expect(gw_tensor_open(stranger, "jobs", GW_OF_JOB, &tensor), GW_NOT_FOUND, "jobs");
	must(gw_tensor_open(stranger, "kept", GW_KEPT, &tensor));
	/* The client is heard of without a call. */
	for (uint64_t before = requests_of(&setup.cluster); requests_of(&setup.cluster) == before;)
		pause_a_little();
	must(gw_tensor_list(watcher, &list));
	assert_int_equal(list->count, 2);
	gw_tensor_list_free(list);
	gw_client_close(client);
	do {
		pause_a_little();
		must(gw_tensor_list(watcher, &list));
		assert_true(list->count >= 1);
		assert_string_equal(list->entries[list->count - 1].name, "kept");
		bool over = list->count == 1;
		gw_tensor_list_free(list);
		if (over)
			break;
	} while (true);
	gw_client_close(stranger);
	gw_client_close(watcher);
	setup_end(&setup);
	cluster_limit_tensors(0, 0);
}

/* Each connection has to hear of it: memory that is mapped can be read until then. */
static void expect_gone(struct gw_client *client, const struct gw_tensor *tensor, int64_t id)
{
	float row[COLUMNS];
	gw_status status;
	while ((status = gw_gather(client, tensor, &id, 1, row)) == GW_OK)
		pause_a_little();
	expect(status, GW_NOT_FOUND, "gone");
}

static void expect_listed(struct gw_client *client, uint32_t count)
{
	struct gw_tensor_list *list;
	must(gw_tensor_list(client, &list));
	assert_int_equal(list->count, count);
	gw_tensor_list_free(list);
}

static void a_job_is_ended_when_somebody_says_so(void **state)
{
	(void)state;
	struct setup setup;
	uint64_t count;
	setup_begin(&setup, 230, PARTS, NULL);
	struct gw_client *client = open_servers(&setup.cluster, "over", 0);
	struct gw_client *other = open_servers(&setup.cluster, "goes-on", 0);
	struct gw_client *launcher = open_servers(&setup.cluster, "launcher", 0);
	struct gw_tensor_spec first = striped("first"), second = striped("second"), kept = striped("kept");
	kept.lifetime = GW_KEPT;
	const struct gw_tensor *tensor = create(client, &first);
	create(client, &second);
	create(client, &kept);
	const struct gw_tensor *others = create(other, &first);
	float row[COLUMNS] = {1, 2, 3, 4, 5}, read[COLUMNS];
	must(gw_update(other, others, (int64_t[]){3}, 1, row));
	must(gw_tensor_end_job(launcher, "over", &count));
	assert_int_equal(count, 2);
	expect_gone(client, tensor, 0);
	expect_gone(client, tensor, 1);
	expect(gw_update(client, tensor, (int64_t[]){0}, 1, row), GW_NOT_FOUND, "gone");
	expect_listed(client, 1);
	expect_listed(other, 2);
	must(gw_gather(other, others, (int64_t[]){3}, 1, read));
	assert_memory_equal(read, row, sizeof(row));
	/* Again, and for one that never was. */
	must(gw_tensor_end_job(launcher, "over", &count));
	assert_int_equal(count, 0);
	must(gw_tensor_end_job(launcher, NULL, &count));
	assert_int_equal(count, 0);
	expect(gw_tensor_end_job(launcher, "", &count), GW_INVALID, "job");
	expect(gw_tensor_end_job(launcher, "no job", &count), GW_INVALID, "job");
	/* A server is not told by an empty name to delete what is kept. */
	struct gw_vec reply = {0};
	size_t bytes;
	const char nobody[GW_JOB_NAME_MAX + 1] = {0};
	expect(gw_remote_call(launcher, 0, GW_OP_TENSOR_END_JOB, nobody, sizeof(nobody), &reply, &bytes), GW_INVALID,
	       "which job");
	gw_vec_free(&reply);
	/* Who goes on may begin again. */
	tensor = create(client, &first);
	must(gw_gather(client, tensor, (int64_t[]){0}, 1, read));
	assert_true(read[0] == 0);
	must(gw_tensor_end_job(client, NULL, &count));
	assert_int_equal(count, 1);
	expect(gw_gather(client, tensor, (int64_t[]){0}, 1, read), GW_NOT_FOUND, "deleted");
	gw_client_close(launcher);
	gw_client_close(other);
	gw_client_close(client);
	setup_end(&setup);
}

static void memory_has_its_limit(void **state)
{
	(void)state;
	struct setup setup;
	cluster_limit_tensors(10000, 0);
	setup_begin(&setup, 225, PARTS, NULL);
	struct gw_client *client = open_servers(&setup.cluster, "limited", 0);
	struct gw_tensor_spec spec = striped("small"), large = striped("large");
	const struct gw_tensor *tensor = create(client, &spec), *none;
	const struct gw_optimizer adam = {.kind = GW_ADAM, .rate = 1, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.99f};
	float row[COLUMNS] = {1, 1, 1, 1, 1};
	large.shape[0] = 100 * ROWS;
	expect(gw_tensor_create(client, &large, &none), GW_NO_SPACE, "--tensor-memory");
	/* Nothing is left of it. */
	struct gw_tensor_list *list;
	must(gw_tensor_list(client, &list));
	assert_int_equal(list->count, 1);
	gw_tensor_list_free(list);
	expect(gw_push(client, tensor, (int64_t[]){1}, 1, row, &adam), GW_NO_SPACE, "--tensor-memory");
	must(gw_gather(client, tensor, (int64_t[]){1}, 1, row));
	assert_true(row[0] == 0);
	/* What is deleted makes room, once nobody reads it any more. */
	gw_status status;
	must(gw_tensor_delete(client, "small", GW_OF_JOB));
	while ((status = gw_tensor_create(client, &spec, &tensor)) == GW_NO_SPACE)
		pause_a_little();
	must(status);
	gw_client_close(client);
	setup_end(&setup);
	cluster_limit_tensors(0, 0);
}

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

/* Reads of two rows by somebody who tells of them at his end, which does not wait for long. */
static void read_and_close(const struct setup *setup)
{
	struct gw_client *reader = open_servers(&setup->cluster, "told", 0);
	const struct gw_tensor *tensor;
	float rows[2 * COLUMNS];
	must(gw_tensor_open(reader, "told-of", GW_OF_JOB, &tensor));
	for (int i = 0; i < TOLD_READS; i++)
		must(gw_gather(reader, tensor, (int64_t[]){0, 2}, 2, rows));
	gw_client_close(reader);
}

static void stat_tells_of_tensors(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 228, PARTS, NULL);
	struct gw_client *client = open_servers(&setup.cluster, "told", 0);
	struct gw_tensor_spec spec = striped("told-of");
	const struct gw_tensor *tensor = create(client, &spec);
	const struct gw_optimizer add = {.kind = GW_SGD, .rate = 1};
	float rows[3 * COLUMNS] = {0};
	must(gw_update(client, tensor, (int64_t[]){0, 2, 4}, 3, rows)); /* all of them part 0's */
	must(gw_push(client, tensor, (int64_t[]){0, 2}, 2, rows, &add));
	json_t *stats = ask_stats(client);
	const json_t *told = json_array_get(json_object_get(stats, "tensors"), 0);
	assert_string_equal(json_string_value(json_object_get(told, "name")), "told-of");
	assert_string_equal(json_string_value(json_object_get(told, "job")), "told");
	assert_string_equal(json_string_value(json_object_get(told, "dtype")), "float32");
	assert_int_equal(json_integer_value(json_object_get(told, "written")), 3);
	assert_int_equal(json_integer_value(json_object_get(told, "pushed")), 2);
	assert_true(json_integer_value(json_object_get(told, "bytes")) >= ROWS / PARTS * COLUMNS * 4);
	assert_int_equal(json_array_size(json_object_get(stats, "tensors")), 1);
	assert_int_equal(json_integer_value(json_object_get(told, "read")), 0);
	json_int_t pulled = json_integer_value(json_object_get(told, "pulled"));
	json_decref(stats);
	/* A row is pulled or read; how many are pulled before their region is open depends on chance. */
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
#define READER_ROWS 3000 /* rows that each reads, ten at once */
#define TURNS_MAX   10000

struct reader {
	pthread_t thread;
	struct gw_client *client;
	const struct gw_tensor *tensor;
};

static void *read_again_and_again(void *argument)
{
	struct reader *self = argument;
	float rows[10 * COLUMNS];
	for (int i = 0; i < READER_ROWS; i += 10)
		must(gw_gather(self->client, self->tensor, (int64_t[]){0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, 10, rows));
	return NULL;
}

/* What part 0's rows were read by the client itself, until `count` tensors were. */
static void read_by_itself(struct gw_client *client, const struct gw_tensor *const *tensors, uint32_t count)
{
	struct gw_tensor_read reads[8];
	float row[COLUMNS];
	for (uint32_t read = 0, turns = 0; read < count; turns++) {
		assert_true(turns < TURNS_MAX);
		for (uint32_t i = 0; i < count; i++)
			must(gw_gather(client, tensors[i], (int64_t[]){0}, 1, row));
		read = gw_tensor_handles_take_reads(client, 0, reads, 8);
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
	struct gw_client *client = open_servers(&setup.cluster, "count", 0);
	struct gw_tensor_spec spec = striped("counted");
	const struct gw_tensor *tensor = create(client, &spec);
	const struct gw_rows *rows = &((const struct gw_client_tensor *)tensor)->rows;
	/* No line of a cache has counts of two engines. */
	assert_true(client->engine_count > 1);
	assert_int_equal((uintptr_t)rows->read % 64, 0);
	assert_int_equal(rows->read_stride * sizeof(rows->read[0]) % 64, 0);
	/* Each engine has its own connections, which open the rows' region one by one; calls at once are of several. */
	for (uint64_t e = 0, turns = 0; e < client->engine_count; turns++) {
		struct gw_ticket *tickets[2];
		float row[2][COLUMNS];
		assert_true(turns < TURNS_MAX);
		for (int i = 0; i < 2; i++)
			must(gw_gather_start(client, tensor, &first, 1, row[i], &tickets[i]));
		for (int i = 0; i < 2; i++)
			must(gw_wait(tickets[i], -1));
		e += atomic_load(&rows->read[e * rows->read_stride]) > 0;
	}
	assert_int_equal(gw_tensor_handles_take_reads(client, 0, &read, 1), 1);
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.client = client, .tensor = tensor};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_again_and_again, &readers[i]), 0);
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i].thread, NULL);
	assert_int_equal(gw_tensor_handles_take_reads(client, 0, &read, 1), 1);
	assert_int_equal(read.rows, READERS * READER_ROWS);
	assert_int_equal(gw_tensor_handles_take_reads(client, 0, &read, 1), 0);
	assert_int_equal(gw_tensor_handles_take_reads(client, 1, &read, 1), 0);
	/* What could not be told is told later. */
	read.birth = ((const struct gw_tensor_handle *)tensor)->births[0];
	read.rows = 7;
	gw_tensor_handles_give_reads(client, 0, &read, 1);
	assert_int_equal(gw_tensor_handles_take_reads(client, 0, &read, 1), 1);
	assert_int_equal(read.rows, 7);
	gw_client_close(client);
	setup_end(&setup);
}

#define SEVERAL 5

/* Whoever has a count has his turn, though others count again. */
static void reads_are_told_in_turns(void **state)
{
	(void)state;
	static const char *const names[SEVERAL] = {"first", "second", "third", "fourth", "fifth"};
	struct setup setup;
	const struct gw_tensor *tensors[SEVERAL];
	uint32_t told[SEVERAL] = {0};
	float row[COLUMNS];
	setup_begin(&setup, 232, PARTS, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = PARTS, .threads = 1, .job = "turns"};
	struct gw_client *client = open_client(&options);
	for (int i = 0; i < SEVERAL; i++) {
		struct gw_tensor_spec spec = striped(names[i]);
		tensors[i] = create(client, &spec);
	}
	read_by_itself(client, tensors, SEVERAL);
	for (int turn = 0; turn < SEVERAL; turn++) {
		struct gw_tensor_read reads[2];
		for (int i = 0; i < SEVERAL; i++)
			must(gw_gather(client, tensors[i], (int64_t[]){0}, 1, row));
		assert_int_equal(gw_tensor_handles_take_reads(client, 0, reads, 2), 2);
		for (int i = 0; i < SEVERAL; i++) {
			uint64_t birth = ((const struct gw_tensor_handle *)tensors[i])->births[0];
			told[i] += reads[0].birth == birth || reads[1].birth == birth;
		}
	}
	for (int i = 0; i < SEVERAL; i++)
		assert_int_equal(told[i], 2);
	gw_client_close(client);
	setup_end(&setup);
}

#define MANY ((int)GW_TENSOR_READS_MAX + 6)

/* A client that closes tells of all tensors, be they more than one call carries. */
static void all_reads_are_told_at_the_end(void **state)
{
	(void)state;
	struct setup setup;
	const struct gw_tensor *tensors[MANY];
	float row[COLUMNS];
	setup_begin(&setup, 233, PARTS, NULL);
	struct gw_client *keeper = open_servers(&setup.cluster, "end", 0);
	int missing = MANY;
	for (int turn = 0; missing > 0; turn++) {
		assert_true(turn < 100);
		struct gw_client *client = open_servers(&setup.cluster, "end", 0);
		for (int i = 0; i < MANY; i++) {
			char name[32];
			snprintf(name, sizeof(name), "of-%d", i);
			struct gw_tensor_spec spec = striped(name);
			create(keeper, &spec);
			tensors[i] = create(client, &spec);
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

/* --- Servers that are killed. --- */

struct writer {
	pthread_t thread;
	struct gw_client *client;
	const struct gw_tensor *tensor;
	_Atomic uint32_t done;
	gw_status status;
	char text[512];
};

static void *write_until_it_fails(void *argument)
{
	struct writer *self = argument;
	float rows[ROWS * COLUMNS];
	int64_t ids[ROWS];
	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	for (int i = 0; i < ROWS * COLUMNS; i++)
		rows[i] = 1;
	do {
		self->status = gw_update(self->client, self->tensor, ids, ROWS, rows);
		atomic_fetch_add(&self->done, 1);
	} while (self->status == GW_OK);
	snprintf(self->text, sizeof(self->text), "%s", gw_last_error());
	return NULL;
}

static void lose_rows(const char *offered)
{
	struct setup setup;
	cluster_offer(offered);
	setup_begin(&setup, 226, PARTS, NULL);
	cluster_offer(NULL);
	for (uint32_t part = 0; part < PARTS; part++) {
		char name[32];
		float rows[ROWS * COLUMNS];
		struct writer writer = {.client = open_servers(&setup.cluster, "killed", 0)};
		struct gw_client *reader = open_servers(&setup.cluster, "killed", 0);
		snprintf(name, sizeof(name), "lost-%u", part);
		struct gw_tensor_spec spec = striped(name);
		writer.tensor = create(writer.client, &spec);
		const struct gw_tensor *read = create(reader, &spec), *none;
		read_all(reader, read, rows);
		assert_int_equal(pthread_create(&writer.thread, NULL, write_until_it_fails, &writer), 0);
		while (atomic_load(&writer.done) < 3)
			pause_a_little();
		cluster_kill(&setup.cluster, part);
		cluster_revive(&setup.cluster, part);
		pthread_join(writer.thread, NULL);
		if (writer.status != GW_NOT_FOUND || !strstr(writer.text, "gone"))
			fail_msg("%s: %s", gw_status_text(writer.status), writer.text);
		int64_t id = part; /* striped: the row of that part */
		expect_gone(reader, read, id);
		expect(gw_tensor_create(reader, &spec, &none), GW_NOT_FOUND, "delete it");
		must(gw_tensor_delete(reader, name, GW_OF_JOB));
		const struct gw_tensor *again = create(writer.client, &spec);
		assert_ptr_not_equal(again, writer.tensor);
		read_all(writer.client, again, rows);
		for (int i = 0; i < ROWS * COLUMNS; i++)
			assert_true(rows[i] == 0);
		for (int64_t i = 0; i < PARTS; i++)
			expect_gone(reader, read, i);
		gw_client_close(writer.client);
		gw_client_close(reader);
	}
	setup_end(&setup);
}

static void rows_of_a_killed_server_are_lost(void **state)
{
	(void)state;
	lose_rows(NULL);
	lose_rows("shm");
}

/* --- Links that are cut. --- */

static void add_pulls_of(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready)
{
	(void)bytes;
	(void)ready;
	*(uint64_t *)context += atomic_load(&shard->counts.pulls);
}

static uint64_t pulls_of(const struct cluster *cluster)
{
	uint64_t pulls = 0;
	gw_tensor_table_each(cluster->servers[0]->tensors, add_pulls_of, &pulls);
	return pulls;
}

static void pushes_over_cut_links_are_applied_once(void **state)
{
	(void)state;
	struct cut_pushes pushes;
	float rows[CUT_PUSHES_ROWS * CUT_PUSHES_COLUMNS];
	if (cluster_is_rdma())
		return; /* a relay is TCP's */
	cut_pushes_begin(&pushes);
	assert_true(cut_pushes_run(&pushes, CUTS, 0) > 0);
	/* The last connection reads one-sided again, as soon as it has opened the rows' region. */
	uint32_t tries = 0;
	for (uint64_t before = UINT64_MAX; before != pulls_of(&pushes.setup.cluster); tries++) {
		assert_true(tries < 1000);
		before = pulls_of(&pushes.setup.cluster);
		cut_pushes_read(&pushes, rows);
	}
	cut_pushes_end(&pushes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_create_one),
		cmocka_unit_test(beginnings_do_not_depend_on_parts),
		cmocka_unit_test(copies_begin_with_what_they_copy),
		cmocka_unit_test(jobs_end_and_kept_ones_stay),
		cmocka_unit_test(a_job_is_ended_when_somebody_says_so),
		cmocka_unit_test(memory_has_its_limit),
		cmocka_unit_test(stat_tells_of_tensors),
		cmocka_unit_test(threads_count_what_they_read),
		cmocka_unit_test(reads_are_told_in_turns),
		cmocka_unit_test(all_reads_are_told_at_the_end),
		cmocka_unit_test(rows_of_a_killed_server_are_lost),
		cmocka_unit_test(pushes_over_cut_links_are_applied_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
