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

#include "client/remote_call.h"
#include "core/base/rng.h"
#include "protocol/ops.h"
#include "test/support/cut_pushes.h"
#include "test/support/striped.h"

#define PARTS    2
#define CREATORS 6
#define CUTS     25
#define LEASE_MS 3000 /* a client says four times in it that it is there: one that is late by less is in time */

static void pause_a_little(void)
{
	struct timespec pause = {.tv_nsec = 2000000};
	nanosleep(&pause, NULL);
}

static void read_all(struct gw_client *client, const struct gw_tensor *tensor, float *rows)
{
	int64_t ids[STRIPED_ROWS];
	for (int i = 0; i < STRIPED_ROWS; i++)
		ids[i] = i;
	must(gw_gather(client, tensor, ids, STRIPED_ROWS, rows));
}

/* --- Coming to be. --- */

struct creator {
	pthread_t thread;
	const struct cluster *cluster;
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	gw_status status;
};

static void *create_and_read(void *argument)
{
	struct creator *self = argument;
	struct gw_client *client = striped_client(self->cluster, "creators", 0);
	struct gw_tensor_spec spec = striped_spec("shared");
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
	for (int i = 1; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
		differ += creators[0].rows[i] != creators[0].rows[0];
	assert_int_equal(differ, STRIPED_ROWS * STRIPED_COLUMNS - 1);

	struct gw_client *client = striped_client(&setup.cluster, "creators", 0);
	struct gw_tensor_list *list;
	must(gw_tensor_list(client, &list));
	assert_int_equal(list->count, 1);
	assert_string_equal(list->entries[0].name, "shared");
	assert_true(list->entries[0].bytes >= STRIPED_ROWS * STRIPED_COLUMNS * sizeof(float));
	gw_tensor_list_free(list);
	gw_client_close(client);
	free(creators);
	setup_end(&setup);
}

/* What authors, whose original ids are numbers, begin with, by original id; and papers, whose are texts. */
struct beginning {
	uint64_t key;
	float row[STRIPED_COLUMNS];
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
				      .shape = {0, STRIPED_COLUMNS},
				      .initial = GW_INITIAL_UNIFORM,
				      .low = -1,
				      .high = 1,
				      .seed = 5};
	must(gw_node_type(client, type, &spec.type));
	const struct gw_tensor *tensor = striped_create(client, &spec), *numbers;
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
	struct gw_client *client = striped_client(&setup.cluster, "copies", 0);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	struct gw_tensor_spec spec = {.name = "trained",
				      .dtype = feat->dtype,
				      .ndim = feat->ndim,
				      .type = feat->type,
				      .shape = {0, feat->shape[1]},
				      .initial = GW_INITIAL_COPY,
				      .from = feat};
	const struct gw_tensor *copy = striped_create(client, &spec);
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
	copy = striped_create(client, &spec);
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
	struct gw_client *watcher = striped_client(&setup.cluster, "ends", 0);
	struct gw_client *client = striped_client(&setup.cluster, "ends", 0);
	struct gw_client *stranger = striped_client(&setup.cluster, "another", 0);
	struct gw_tensor_spec spec = striped_spec("job's"), kept = striped_spec("kept");
	struct gw_tensor_list *list;
	const struct gw_tensor *tensor;
	spec.name = "jobs";
	kept.lifetime = GW_KEPT;
	striped_create(client, &spec);
	striped_create(client, &kept);
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
	float row[STRIPED_COLUMNS];
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
	struct gw_client *client = striped_client(&setup.cluster, "over", 0);
	struct gw_client *other = striped_client(&setup.cluster, "goes-on", 0);
	struct gw_client *launcher = striped_client(&setup.cluster, "launcher", 0);
	struct gw_tensor_spec first = striped_spec("first"), second = striped_spec("second"),
			      kept = striped_spec("kept");
	kept.lifetime = GW_KEPT;
	const struct gw_tensor *tensor = striped_create(client, &first);
	striped_create(client, &second);
	striped_create(client, &kept);
	const struct gw_tensor *others = striped_create(other, &first);
	float row[STRIPED_COLUMNS] = {1, 2, 3, 4, 5}, read[STRIPED_COLUMNS];
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
	tensor = striped_create(client, &first);
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
	struct gw_client *client = striped_client(&setup.cluster, "limited", 0);
	struct gw_tensor_spec spec = striped_spec("small"), large = striped_spec("large");
	const struct gw_tensor *tensor = striped_create(client, &spec), *none;
	const struct gw_optimizer adam = {.kind = GW_ADAM, .rate = 1, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.99f};
	float row[STRIPED_COLUMNS] = {1, 1, 1, 1, 1};
	large.shape[0] = 100 * STRIPED_ROWS;
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
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	int64_t ids[STRIPED_ROWS];
	for (int i = 0; i < STRIPED_ROWS; i++)
		ids[i] = i;
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
		rows[i] = 1;
	do {
		self->status = gw_update(self->client, self->tensor, ids, STRIPED_ROWS, rows);
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
		float rows[STRIPED_ROWS * STRIPED_COLUMNS];
		struct writer writer = {.client = striped_client(&setup.cluster, "killed", 0)};
		struct gw_client *reader = striped_client(&setup.cluster, "killed", 0);
		snprintf(name, sizeof(name), "lost-%u", part);
		struct gw_tensor_spec spec = striped_spec(name);
		writer.tensor = striped_create(writer.client, &spec);
		const struct gw_tensor *read = striped_create(reader, &spec), *none;
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
		const struct gw_tensor *again = striped_create(writer.client, &spec);
		assert_ptr_not_equal(again, writer.tensor);
		read_all(writer.client, again, rows);
		for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
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
		cmocka_unit_test(rows_of_a_killed_server_are_lost),
		cmocka_unit_test(pushes_over_cut_links_are_applied_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
