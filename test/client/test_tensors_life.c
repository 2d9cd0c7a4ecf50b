/* How tensors are created and end: by several creators at once, with jobs, at limits, over links that are cut. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine/remote_call.h"
#include "core/numbers/digest.h"
#include "core/rows/initial.h"
#include "protocol/ops.h"
#include "test/support/cut_pushes.h"
#include "test/support/striped.h"

#define PARTS    2
#define CREATORS 6
#define CUTS     50
#define ATTEMPTS 25 /* cuts between two checks of the sums */
/* A client renews its lease four times per lease. If this process was delayed for a quarter of it, a test begins again
 * with twice the lease. */
#define LEASE_MS     3000
#define LEASE_MAX_MS 48000

/* --- Creation. --- */

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
		striped_read(client, tensor, self->rows);
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

/* Initial rows depend on original ids: numbers for authors and edges, texts for papers. */
struct beginning {
	uint64_t original; /* of a text: its digest */
	float row[STRIPED_COLUMNS];
};

static int compare_beginnings(const void *a, const void *b)
{
	uint64_t x = ((const struct beginning *)a)->original, y = ((const struct beginning *)b)->original;
	return x < y ? -1 : x > y;
}

static void read_originals(struct gw_client *client, const struct gw_tensor_spec *spec, const int64_t *ids, uint64_t n,
			   struct beginning *out)
{
	const struct gw_tensor *numbers;
	struct gw_texts *texts = NULL;
	int64_t *originals = calloc(n, sizeof(*originals));
	gw_status status = spec->placement == GW_PLACE_EDGES ? gw_edge_tensor(client, spec->type, "orig_id", &numbers)
							     : gw_node_tensor(client, spec->type, "orig_id", &numbers);
	must(status == GW_OK ? gw_gather(client, numbers, ids, n, originals)
			     : gw_node_texts(client, spec->type, "orig_id", ids, n, &texts));
	for (uint64_t i = 0; i < n; i++)
		out[i].original =
			texts ? gw_digest(texts->bytes + texts->offsets[i], texts->offsets[i + 1] - texts->offsets[i])
			      : (uint64_t)originals[i];
	gw_texts_free(texts);
	free(originals);
}

static uint64_t original_of(const void *context, uint64_t row)
{
	return ((const struct beginning *)context)[row].original;
}

static void check_original_ids_decide(const struct gw_tensor_spec *spec, const struct beginning *rows, uint64_t n)
{
	const struct gw_row_initial initial = {.how = spec->initial,
					       .low = spec->low,
					       .high = spec->high,
					       .seed = spec->seed,
					       .original = original_of,
					       .context = rows};
	float expected[STRIPED_COLUMNS];
	for (uint64_t i = 0; i < n; i++) {
		must(gw_row_initial_write(&initial, GW_FLOAT32, STRIPED_COLUMNS, i, expected));
		assert_memory_equal(rows[i].row, expected, sizeof(expected));
	}
}

static uint64_t read_beginnings(uint32_t parts, enum gw_placement placement, const char *type, struct beginning **out)
{
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 222, 120, parts);
	gw_fixture_write(&fixture);
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&options);
	struct gw_tensor_spec spec = {.name = "x",
				      .dtype = GW_FLOAT32,
				      .placement = placement,
				      .ndim = 2,
				      .shape = {0, STRIPED_COLUMNS},
				      .initial = GW_INITIAL_UNIFORM,
				      .low = -1,
				      .high = 1,
				      .seed = 5};
	must(placement == GW_PLACE_EDGES ? gw_edge_type(client, type, &spec.type)
					 : gw_node_type(client, type, &spec.type));
	const struct gw_tensor *tensor = striped_create(client, &spec);
	uint64_t n = tensor->shape[0];
	int64_t *ids = calloc(n, sizeof(*ids));
	*out = calloc(n, sizeof(**out));
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	read_originals(client, &spec, ids, n, *out);
	for (uint64_t i = 0; i < n; i++)
		must(gw_gather(client, tensor, &ids[i], 1, (*out)[i].row));
	check_original_ids_decide(&spec, *out, n);
	qsort(*out, n, sizeof(**out), compare_beginnings);
	free(ids);
	gw_client_close(client);
	gw_fixture_end(&fixture);
	return n;
}

static void beginnings_do_not_depend_on_parts(void **state)
{
	(void)state;
	static const struct {
		enum gw_placement placement;
		const char *name;
	} types[] = {{GW_PLACE_NODES, "author"}, {GW_PLACE_NODES, "paper"}, {GW_PLACE_EDGES, "author:writes:paper"}};
	for (int t = 0; t < 3; t++) {
		struct beginning *one, *three;
		uint64_t n = read_beginnings(1, types[t].placement, types[t].name, &one);
		assert_int_equal(n, read_beginnings(3, types[t].placement, types[t].name, &three));
		for (uint64_t i = 0; i < n; i++)
			assert_memory_equal(&one[i], &three[i], sizeof(one[i].original) + sizeof(one[i].row));
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

	/* A mini-batch fetches them like features. */
	int32_t fanouts[GW_FIXTURE_ETYPES] = {0};
	struct gw_fetch fetch = {.tensor = copy, .at = GW_AT_SEEDS};
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

static uint32_t shards_of(const struct cluster *cluster, const char *job)
{
	struct gw_tensor_listed listed[4];
	uint32_t found = 0;
	for (uint32_t p = 0; p < cluster->parts; p++) {
		uint32_t n = gw_tensor_table_list(cluster->servers[p]->tensors, job, NULL, NULL, listed, 4);
		for (uint32_t i = 0; i < n; i++)
			found += listed[i].plan.job[0] != 0;
	}
	return found;
}

/* Whether the attempt counts: it succeeded, or it failed though this process was not delayed. */
static bool attempt_counts(bool good, const struct watch *watch, uint32_t lease_ms)
{
	return good || watch->worst_ns < lease_ms / 4 * 1000000ull;
}

static void with_longer_leases(bool (*try)(uint32_t lease_ms))
{
	uint32_t lease_ms = LEASE_MS;
	while (!try(lease_ms)) {
		lease_ms *= 2;
		assert_true(lease_ms <= LEASE_MAX_MS);
	}
}

static uint32_t listed_by(struct gw_client *client)
{
	struct gw_tensor_list *list;
	must(gw_tensor_list(client, &list));
	uint32_t count = list->count;
	gw_tensor_list_free(list);
	return count;
}

static bool ends_jobs_and_keeps_others(uint32_t lease_ms)
{
	struct setup setup;
	struct watch watch;
	cluster_limit_tensors(0, lease_ms);
	setup_begin(&setup, 224, PARTS, NULL);
	struct gw_client *client = striped_client(&setup.cluster, "ends", 0);
	struct gw_client *other_job = striped_client(&setup.cluster, "another", 0);
	struct gw_tensor_spec spec = striped_spec("jobs"), kept = striped_spec("kept");
	struct gw_tensor_list *list;
	const struct gw_tensor *tensor;
	kept.lifetime = GW_KEPT;
	watch_begin(&watch);
	striped_create(client, &spec);
	striped_create(client, &kept);
	watch_look(&watch);
	expect(gw_tensor_open(other_job, "jobs", GW_OF_JOB, &tensor), GW_NOT_FOUND, "jobs");
	must(gw_tensor_open(other_job, "kept", GW_KEPT, &tensor));
	/* The client renews the lease without a call. */
	for (uint64_t before = requests_of(&setup.cluster); requests_of(&setup.cluster) == before;) {
		striped_pause();
		watch_look(&watch);
	}
	uint32_t count = listed_by(client);
	watch_look(&watch);
	bool told = attempt_counts(count == 2, &watch, lease_ms);
	if (told)
		assert_int_equal(count, 2);
	gw_client_close(client);
	while (shards_of(&setup.cluster, "ends"))
		striped_pause();
	must(gw_tensor_list(other_job, &list));
	assert_int_equal(list->count, 1);
	assert_string_equal(list->entries[0].name, "kept");
	gw_tensor_list_free(list);
	gw_client_close(other_job);
	setup_end(&setup);
	cluster_limit_tensors(0, 0);
	return told;
}

static void jobs_end_and_kept_ones_stay(void **state)
{
	(void)state;
	with_longer_leases(ends_jobs_and_keeps_others);
}

static void create_and_leave(const struct cluster *cluster, const char *job)
{
	struct gw_client *client = striped_client(cluster, job, 0);
	struct gw_tensor_spec spec = striped_spec("left");
	striped_create(client, &spec);
	gw_client_close(client);
}

static bool holds_what_it_has_not_opened(uint32_t lease_ms)
{
	struct setup setup;
	const struct gw_tensor *tensor;
	struct watch watch;
	cluster_limit_tensors(0, lease_ms);
	setup_begin(&setup, 234, PARTS, NULL);
	struct gw_client *client = striped_client(&setup.cluster, "held", 0);
	watch_begin(&watch);
	create_and_leave(&setup.cluster, "held");
	watch_look(&watch);
	/* Its creator last renewed the lease after the creator of "held" did. */
	create_and_leave(&setup.cluster, "left");
	while (shards_of(&setup.cluster, "left")) {
		striped_pause();
		watch_look(&watch);
	}
	gw_status status = gw_tensor_open(client, "left", GW_OF_JOB, &tensor);
	uint32_t shards = shards_of(&setup.cluster, "held");
	watch_look(&watch);
	bool told = attempt_counts(shards == PARTS && status == GW_OK, &watch, lease_ms);
	if (told) {
		must(status);
		assert_int_equal(shards, PARTS);
	}
	gw_client_close(client);
	while (shards_of(&setup.cluster, "held"))
		striped_pause();
	setup_end(&setup);
	cluster_limit_tensors(0, 0);
	return told;
}

static void clients_keep_tensors_that_they_have_not_opened(void **state)
{
	(void)state;
	with_longer_leases(holds_what_it_has_not_opened);
}

static void a_job_ends_on_request(void **state)
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
	const struct gw_optimizer add = {.kind = GW_SGD, .rate = 1};
	must(gw_update(other, others, (int64_t[]){3}, 1, row));
	must(gw_tensor_end_job(launcher, "over", &count));
	assert_int_equal(count, 2);
	striped_expect_gone(client, tensor, 0);
	striped_expect_gone(client, tensor, 1);
	expect(gw_update(client, tensor, (int64_t[]){0}, 1, row), GW_NOT_FOUND, "tensor \"first\"");
	expect(gw_push(client, tensor, (int64_t[]){0}, 1, row, &add), GW_NOT_FOUND, "tensor \"first\"");
	expect(gw_tensor_count_nonzero(client, tensor, &count), GW_NOT_FOUND, "tensor \"first\"");
	assert_int_equal(listed_by(client), 1);
	assert_int_equal(listed_by(other), 2);
	must(gw_gather(other, others, (int64_t[]){3}, 1, read));
	assert_memory_equal(read, row, sizeof(row));
	/* Again, and for a tensor that never existed. */
	must(gw_tensor_end_job(launcher, "over", &count));
	assert_int_equal(count, 0);
	must(gw_tensor_end_job(launcher, NULL, &count));
	assert_int_equal(count, 0);
	expect(gw_tensor_end_job(launcher, "", &count), GW_INVALID, "job");
	expect(gw_tensor_end_job(launcher, "no job", &count), GW_INVALID, "job");
	/* An empty job name must not delete kept tensors. */
	struct gw_vec reply = {0};
	size_t bytes;
	const char nobody[GW_JOB_NAME_MAX + 1] = {0};
	expect(gw_remote_call(launcher, 0, GW_OP_TENSOR_END_JOB, nobody, sizeof(nobody), &reply, &bytes), GW_INVALID,
	       "no job is named");
	gw_vec_free(&reply);
	/* After its job has ended, a client may create the tensor again. */
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
	/* The job has no tensors left. */
	struct gw_tensor_list *list;
	must(gw_tensor_list(client, &list));
	assert_int_equal(list->count, 1);
	gw_tensor_list_free(list);
	expect(gw_push(client, tensor, (int64_t[]){1}, 1, row, &adam), GW_NO_SPACE, "--tensor-memory");
	must(gw_gather(client, tensor, (int64_t[]){1}, 1, row));
	assert_true(row[0] == 0);
	/* A deleted tensor's memory is available once no client reads it any more. */
	gw_status status;
	must(gw_tensor_delete(client, "small", GW_OF_JOB));
	while ((status = gw_tensor_create(client, &spec, &tensor)) == GW_NO_SPACE)
		striped_pause();
	must(status);
	gw_client_close(client);
	setup_end(&setup);
	cluster_limit_tensors(0, 0);
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
		return; /* a relay works only over TCP */
	cut_pushes_begin(&pushes);
	uint32_t cuts = 0, attempts = 0;
	for (; cuts < CUTS; attempts += ATTEMPTS) {
		assert_true(attempts < 20 * CUTS);
		cuts += cut_pushes_run(&pushes, ATTEMPTS, attempts);
	}
	/* The last connection reads one-sided again when it has opened the rows' region. */
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
		cmocka_unit_test(clients_keep_tensors_that_they_have_not_opened),
		cmocka_unit_test(a_job_ends_on_request),
		cmocka_unit_test(memory_has_its_limit),
		cmocka_unit_test(pushes_over_cut_links_are_applied_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
