/* Tensors through the public calls: created, read, written, trained and deleted, over every transport that a test has,
 * with the same bytes everywhere. The oracle is an array in this process. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define PARTS   3
#define COLUMNS 7
#define CALLS   12
#define CALL    900 /* rows of one call: more than a piece of a gather, with duplicates */

static struct setup setup;

/* How clients reach the servers. */
struct way {
	const char *name, *transport, *driver;
	uint32_t threads;
};

static const struct way ways[] = {
	{"memory", NULL, NULL, 1},
	{"memory, 8 threads", NULL, NULL, 8},
	{"epoll", "tcp", "epoll", 1},
	{"epoll, 8 threads", "tcp", "epoll", 8},
	{"io_uring", "tcp", "io_uring", 1},
	{"io_uring, 8 threads", "tcp", "io_uring", 8},
	{"shm", "shm", NULL, 1},
	{"shm, 8 threads", "shm", NULL, 8},
	{"verbs", "verbs", NULL, 1},
	{"verbs, 8 threads", "verbs", NULL, 8},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Over RDMA in a guest only RDMA exists; a client without servers always does. */
static bool has_way(const struct way *way)
{
	bool rdma = way->transport && strcmp(way->transport, "verbs") == 0;
	return !way->transport || rdma == cluster_is_rdma();
}

static bool has_servers(const struct way *way)
{
	return way->transport && has_way(way);
}

static struct gw_client *open_way(const struct way *way, const char *job)
{
	struct gw_client_options options = {.threads = way->threads, .tcp_driver = way->driver, .job = job};
	if (way->transport) {
		options.servers = setup.cluster.list;
		options.server_count = PARTS;
		options.transport = way->transport;
	} else {
		options.part_config = setup.fixture.folder;
	}
	return open_client(&options);
}

static const struct gw_tensor *create(struct gw_client *client, const struct gw_tensor_spec *spec)
{
	const struct gw_tensor *tensor = NULL;
	if (gw_tensor_create(client, spec, &tensor) != GW_OK)
		fail_msg("%s: %s", spec->name, gw_last_error());
	return tensor;
}

static struct gw_tensor_spec spec_of(struct gw_client *client, const char *name, enum gw_placement placement)
{
	struct gw_tensor_spec spec = {
		.name = name, .dtype = GW_FLOAT32, .placement = placement, .ndim = 2, .shape = {0, COLUMNS}};
	if (placement == GW_PLACE_NODES)
		must(gw_node_type(client, "paper", &spec.type));
	else if (placement == GW_PLACE_EDGES)
		spec.type = FIXTURE_CITES;
	else
		spec.shape[0] = 1001;
	return spec;
}

static void check_rows(struct gw_client *client, const struct gw_tensor *tensor, const float *expected)
{
	uint64_t n = tensor->shape[0];
	int64_t *ids = calloc(n, sizeof(*ids));
	float *rows = malloc(n * tensor->row_bytes);
	/* Ids out of order; each of the first ones twice. */
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)((i * 7919) % n);
	must(gw_gather(client, tensor, ids, n, rows));
	for (uint64_t i = 0; i < n; i++)
		assert_memory_equal(rows + i * COLUMNS, expected + (uint64_t)ids[i] * COLUMNS, tensor->row_bytes);
	free(ids);
	free(rows);
}

static void write_rows(struct gw_client *client, const struct gw_tensor *tensor, float *expected)
{
	struct gw_ticket *tickets[CALLS];
	int64_t *ids = malloc(sizeof(int64_t) * CALLS * CALL);
	float *rows = malloc(sizeof(float) * CALLS * CALL * COLUMNS);
	for (int c = 0; c < CALLS; c++) {
		for (int i = c * CALL; i < (c + 1) * CALL; i++) {
			ids[i] = (int64_t)(gw_mix64((uint64_t)i) % tensor->shape[0]);
			for (int j = 0; j < COLUMNS; j++)
				expected[ids[i] * COLUMNS + j] = rows[i * COLUMNS + j] = (float)(i * COLUMNS + j);
		}
		must(gw_update_start(client, tensor, ids + c * CALL, CALL, rows + (size_t)c * CALL * COLUMNS,
				     &tickets[c]));
	}
	must(gw_flush(client));
	check_rows(client, tensor, expected);
	for (int c = 0; c < CALLS; c++)
		must(gw_wait(tickets[c], 0));
	free(ids);
	free(rows);
}

static uint64_t nonzero(const float *rows, uint64_t n)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < n * COLUMNS; i++)
		count += rows[i] != 0;
	return count;
}

static void rows_are_what_was_written(void **state)
{
	(void)state;
	for (size_t w = 0; w < WAYS; w++) {
		if (!has_way(&ways[w]))
			continue;
		struct gw_client *client = open_way(&ways[w], ways[w].transport ? "written" : NULL);
		for (int p = GW_PLACE_NODES; p <= GW_PLACE_STRIPED; p++) {
			char name[32];
			snprintf(name, sizeof(name), "t%zu-%d", w, p);
			struct gw_tensor_spec spec = spec_of(client, name, (enum gw_placement)p);
			const struct gw_tensor *tensor = create(client, &spec);
			float *expected = calloc(tensor->shape[0] * COLUMNS, sizeof(float));
			uint64_t count;
			assert_true(tensor->writable);
			assert_int_equal(tensor->row_bytes, COLUMNS * sizeof(float));
			check_rows(client, tensor, expected);
			write_rows(client, tensor, expected);
			must(gw_tensor_count_nonzero(client, tensor, &count));
			assert_int_equal(count, nonzero(expected, tensor->shape[0]));
			must(gw_tensor_delete(client, name, GW_OF_JOB));
			expect(gw_gather(client, tensor, (int64_t[]){0}, 1, expected), GW_NOT_FOUND, "gone");
			expect(gw_update(client, tensor, (int64_t[]){0}, 1, expected), GW_NOT_FOUND, "gone");
			free(expected);
		}
		gw_client_close(client);
	}
}

/* --- Training. --- */

static const struct gw_optimizer optimizers[] = {
	{GW_SGD, GW_COMBINE_SUM, .rate = 0.5f},
	{GW_ADAGRAD, GW_COMBINE_MEAN, .rate = 0.1f, .eps = 1e-10f},
	{GW_ADAGRAD_ROWS, GW_COMBINE_EACH, .rate = 0.1f, .eps = 1e-10f},
	{GW_ADAM, GW_COMBINE_SUM, .rate = 0.01f, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.999f},
	{GW_ADAM, GW_COMBINE_MEAN, .rate = 0.01f, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.999f, .step = 3},
};
#define OPTIMIZERS (sizeof(optimizers) / sizeof(optimizers[0]))

/* Three calls in which some rows occur often; then the expected rows. */
static void train(struct gw_client *client, const struct gw_optimizer *optimizer, float *rows)
{
	struct gw_tensor_spec spec = spec_of(client, "trained", GW_PLACE_STRIPED);
	const struct gw_tensor *tensor;
	struct gw_ticket *tickets[3];
	int64_t *ids = calloc(3 * CALL, sizeof(*ids));
	float *gradients = calloc((size_t)3 * CALL * COLUMNS, sizeof(*gradients));
	spec.initial = GW_INITIAL_UNIFORM;
	spec.low = -1;
	spec.high = 1;
	tensor = create(client, &spec);
	for (int i = 0; i < 3 * CALL; i++) {
		ids[i] = (int64_t)(gw_mix64((uint64_t)i) % (i % 3 ? tensor->shape[0] : 5));
		for (int j = 0; j < COLUMNS; j++)
			gradients[i * COLUMNS + j] = (float)((i * 31 + j * 7) % 101 - 50) / 64;
	}
	for (int c = 0; c < 3; c++)
		must(gw_push_start(client, tensor, ids + c * CALL, CALL, gradients + (size_t)c * CALL * COLUMNS,
				   optimizer, &tickets[c]));
	for (int c = 0; c < 3; c++)
		must(gw_wait(tickets[c], -1));
	must(gw_tensor_part_read(client, tensor, 0, 0, (tensor->shape[0] + PARTS - 1) / PARTS, rows));
	if (optimizer->kind != GW_SGD)
		expect(gw_push(client, tensor, ids, 1, gradients, &optimizers[optimizer->kind == GW_ADAM ? 1 : 3]),
		       GW_EXISTS, "");
	must(gw_tensor_delete(client, "trained", GW_OF_JOB));
	free(ids);
	free(gradients);
}

static void training_is_the_same_over_every_transport(void **state)
{
	(void)state;
	size_t bytes = sizeof(float) * COLUMNS * 1001;
	float *expected = calloc(OPTIMIZERS, bytes), *rows = calloc(1, bytes);
	for (size_t w = 0; w < WAYS; w++) {
		if (!has_way(&ways[w]))
			continue;
		struct gw_client *client = open_way(&ways[w], ways[w].transport ? "trained" : NULL);
		for (size_t o = 0; o < OPTIMIZERS; o++) {
			float *first = expected + o * COLUMNS * 1001;
			train(client, &optimizers[o], w == 0 ? first : rows);
			if (w > 0)
				assert_memory_equal(rows, first, bytes);
		}
		gw_client_close(client);
	}
	for (size_t o = 1; o < OPTIMIZERS; o++)
		assert_memory_not_equal(expected, expected + o * COLUMNS * 1001, bytes);
	free(expected);
	free(rows);
}

/* --- At once. --- */

#define WIDE    400 /* float32: rows of 1,600 bytes */
#define WRITERS 2
#define READS   200

struct writer {
	pthread_t thread;
	const struct way *way;
	const char *job;
	float first;
	atomic_bool stop;
	_Atomic uint32_t written;
};

static struct gw_tensor_spec wide_spec(void)
{
	return (struct gw_tensor_spec){
		.name = "hot", .dtype = GW_FLOAT32, .placement = GW_PLACE_EVEN, .ndim = 2, .shape = {PARTS, WIDE}};
}

static void fill_row(float *row, float value)
{
	for (int j = 0; j < WIDE; j++)
		row[j] = value;
}

static void *write_hot_rows(void *argument)
{
	struct writer *self = argument;
	struct gw_client *client = open_way(self->way, self->job);
	struct gw_tensor_spec spec = wide_spec();
	const struct gw_tensor *tensor = create(client, &spec);
	float rows[PARTS * WIDE];
	int64_t ids[PARTS];
	for (int p = 0; p < PARTS; p++)
		ids[p] = p;
	for (float value = self->first; !atomic_load(&self->stop); value += WRITERS) {
		fill_row(rows, value);
		for (int p = 1; p < PARTS; p++)
			memcpy(rows + p * WIDE, rows, WIDE * sizeof(float));
		must(gw_update(client, tensor, ids, PARTS, rows));
		atomic_fetch_add(&self->written, 1);
	}
	gw_client_close(client);
	return NULL;
}

/* Readers see whole rows while a writer overwrites them, and see every acknowledged write. In memory there is one
 * client only, because its tensors are private. */
static void no_row_is_torn(void **state)
{
	(void)state;
	for (size_t w = 0; w < WAYS; w++) {
		struct writer writers[WRITERS] = {0};
		if (!has_servers(&ways[w]))
			continue;
		char job[16];
		snprintf(job, sizeof(job), "hot-%zu", w);
		struct gw_client *client = open_way(&ways[w], job);
		struct gw_tensor_spec spec = wide_spec();
		const struct gw_tensor *tensor = create(client, &spec);
		for (int i = 0; i < WRITERS; i++) {
			writers[i].way = &ways[w];
			writers[i].job = job;
			writers[i].first = (float)(i + 1);
			assert_int_equal(pthread_create(&writers[i].thread, NULL, write_hot_rows, &writers[i]), 0);
		}
		float rows[PARTS * WIDE], own[WIDE];
		int64_t ids[PARTS];
		uint32_t changes = 0;
		float before = -1;
		for (int p = 0; p < PARTS; p++)
			ids[p] = p;
		for (uint32_t r = 0; r < READS || changes < 3; r++) {
			must(gw_gather(client, tensor, ids, PARTS, rows));
			for (int i = 0; i < PARTS * WIDE; i++)
				assert_true(rows[i] == rows[i / WIDE * WIDE]);
			changes += rows[0] != before;
			before = rows[0];
		}
		for (int i = 0; i < WRITERS; i++) {
			atomic_store(&writers[i].stop, true);
			pthread_join(writers[i].thread, NULL);
		}
		for (int r = 0; r < 50; r++) {
			fill_row(own, (float)-r);
			must(gw_update(client, tensor, &ids[r % PARTS], 1, own));
			must(gw_gather(client, tensor, &ids[r % PARTS], 1, rows));
			assert_memory_equal(rows, own, sizeof(own));
		}
		gw_client_close(client);
	}
}

static void add_pulls(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready)
{
	(void)bytes;
	(void)ready;
	*(uint64_t *)context += atomic_load(&shard->counts.pulls);
}

static uint64_t count_pulls(void)
{
	uint64_t pulls = 0;
	for (int p = 0; p < PARTS; p++)
		gw_tensor_table_each(setup.cluster.servers[p]->tensors, add_pulls, &pulls);
	return pulls;
}

static void rows_are_read_one_sided(void **state)
{
	(void)state;
	for (size_t w = 0; w < WAYS; w++) {
		if (!has_servers(&ways[w]) || cluster_is_rdma())
			continue;
		struct gw_client *client = open_way(&ways[w], "one-sided");
		struct gw_tensor_spec spec = spec_of(client, "one-sided", GW_PLACE_EVEN);
		const struct gw_tensor *tensor = create(client, &spec);
		float *expected = calloc(tensor->shape[0] * COLUMNS, sizeof(float));
		uint64_t before;
		uint32_t quiet = 0;
		do {
			before = count_pulls();
			check_rows(client, tensor, expected);
			quiet = count_pulls() == before ? quiet + 1 : 0;
		} while (quiet < 3 * ways[w].threads);
		must(gw_tensor_delete(client, "one-sided", GW_OF_JOB));
		free(expected);
		gw_client_close(client);
	}
}

struct reader {
	pthread_t thread;
	const struct way *way;
	const char *job;
	atomic_bool stop;
	_Atomic uint32_t read, missed;
	char text[256]; /* the first error */
};

/* A feature exists always. */
static void *read_what_is_deleted(void *argument)
{
	struct reader *self = argument;
	struct gw_client *client = open_way(self->way, self->job);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat"), *tensor = NULL;
	float row[WIDE];
	gw_status status = GW_OK;
	while (!atomic_load(&self->stop) && (status == GW_OK || status == GW_NOT_FOUND)) {
		int64_t id = (int64_t)(atomic_load(&self->read) % PARTS);
		status = tensor ? gw_gather(client, tensor, &id, 1, row)
				: gw_tensor_open(client, "hot", GW_OF_JOB, &tensor);
		if (status == GW_NOT_FOUND) {
			tensor = NULL;
			atomic_fetch_add(&self->missed, 1);
		} else if (status == GW_OK) {
			atomic_fetch_add(&self->read, 1);
		}
		if (gw_gather(client, feat, &id, 1, row) != GW_OK)
			status = GW_PROTOCOL;
	}
	if (status != GW_OK && status != GW_NOT_FOUND)
		snprintf(self->text, sizeof(self->text), "%s: %s", gw_status_text(status), gw_last_error());
	gw_client_close(client);
	return NULL;
}

static void tensors_go_and_come_under_readers(void **state)
{
	(void)state;
	for (size_t w = 0; w < WAYS; w++) {
		struct reader readers[2] = {0};
		char job[16];
		if (!has_servers(&ways[w]))
			continue;
		snprintf(job, sizeof(job), "deleted-%zu", w);
		struct gw_client *client = open_way(&ways[w], job);
		struct gw_tensor_spec spec = wide_spec();
		for (int i = 0; i < 2; i++) {
			readers[i].way = &ways[w];
			readers[i].job = job;
			assert_int_equal(pthread_create(&readers[i].thread, NULL, read_what_is_deleted, &readers[i]),
					 0);
		}
		for (int round = 0; round < 4; round++) {
			create(client, &spec);
			for (uint32_t before = atomic_load(&readers[0].read);
			     atomic_load(&readers[0].read) < before + 3 && !readers[0].text[0];)
				sched_yield();
			uint32_t missed = atomic_load(&readers[0].missed);
			must(gw_tensor_delete(client, "hot", GW_OF_JOB));
			while (atomic_load(&readers[0].missed) == missed && !readers[0].text[0])
				sched_yield(); /* one-sided reads may still succeed for a moment */
		}
		for (int i = 0; i < 2; i++) {
			atomic_store(&readers[i].stop, true);
			pthread_join(readers[i].thread, NULL);
			if (readers[i].text[0])
				fail_msg("%s", readers[i].text);
		}
		gw_client_close(client);
	}
}

static void invalid_writes_are_refused(void **state)
{
	(void)state;
	struct gw_client *client = open_way(&ways[cluster_is_rdma() ? WAYS - 1 : 2], "refused");
	struct gw_tensor_spec spec = spec_of(client, "refused", GW_PLACE_NODES);
	const struct gw_tensor *tensor = create(client, &spec), *other = NULL;
	float row[COLUMNS] = {1};
	int64_t ids[] = {0, (int64_t)tensor->shape[0]};
	expect(gw_update(client, node_tensor(client, "paper", "feat"), ids, 1, row), GW_INVALID, "feature");
	expect(gw_update(client, tensor, ids, 2, row), GW_RANGE, "at position 1");
	expect(gw_update(client, tensor, (int64_t[]){-1}, 1, row), GW_RANGE, "id -1");
	must(gw_gather(client, tensor, ids, 1, row));
	assert_true(row[0] == 0); /* the writes had no effect */
	expect(gw_tensor_open(client, "another", GW_OF_JOB, &other), GW_NOT_FOUND, "another");
	expect(gw_tensor_open(client, "refused", GW_KEPT, &other), GW_NOT_FOUND, "refused");
	expect(gw_tensor_delete(client, "another", GW_OF_JOB), GW_NOT_FOUND, "another");

	const struct {
		struct gw_tensor_spec spec;
		gw_status status;
		const char *text;
	} faults[] = {
		{{.name = NULL, .ndim = 1}, GW_INVALID, "name"},
		{{.name = "a b", .ndim = 1}, GW_INVALID, "name"},
		{{.name = "x", .ndim = 0}, GW_INVALID, "dimensions"},
		{{.name = "x", .ndim = 5}, GW_INVALID, "dimensions"},
		{{.name = "x", .ndim = 2}, GW_INVALID, "no elements"},
		{{.name = "x", .ndim = 1, .type = 99}, GW_RANGE, "type 99"},
		{{.name = "x", .ndim = 1, .shape = {5}}, GW_INVALID, "its type has"},
		{{.name = "x", .ndim = 1, .dtype = GW_INT8_ROW}, GW_UNSUPPORTED, "int8_row"},
		{{.name = "x", .ndim = 1, .initial = GW_INITIAL_UNIFORM, .dtype = GW_INT32}, GW_INVALID, "random"},
		{{.name = "x", .ndim = 2, .shape = {0, (1 << 20) + 1}, .dtype = GW_FLOAT32}, GW_LIMIT, "bytes"},
		{{.name = "refused", .ndim = 2, .shape = {0, COLUMNS}, .dtype = GW_FLOAT16}, GW_EXISTS, "float16"},
		{{.name = "refused", .ndim = 2, .shape = {0, 9}, .dtype = GW_FLOAT32}, GW_EXISTS, "9"},
		{{.name = "refused",
		  .ndim = 2,
		  .shape = {0, COLUMNS},
		  .dtype = GW_FLOAT32,
		  .initial = GW_INITIAL_CONSTANT},
		 GW_EXISTS,
		 "constant"},
	};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct gw_tensor_spec fault = faults[i].spec;
		if (!fault.type)
			fault.type = spec.type;
		expect(gw_tensor_create(client, &fault, &other), faults[i].status, faults[i].text);
		assert_null(other);
	}
	/* Opening it again gives the same tensor. */
	assert_ptr_equal(create(client, &spec), tensor);
	must(gw_tensor_open(client, "refused", GW_OF_JOB, &other));
	assert_ptr_equal(other, tensor);
	gw_client_close(client);
}

static int setup_all(void **state)
{
	(void)state;
	cluster_offer(cluster_is_rdma() ? NULL : "shm");
	setup_begin(&setup, 211, PARTS, NULL);
	return 0;
}

static int end_all(void **state)
{
	(void)state;
	setup_end(&setup);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_what_was_written),
		cmocka_unit_test(training_is_the_same_over_every_transport),
		cmocka_unit_test(no_row_is_torn),
		cmocka_unit_test(rows_are_read_one_sided),
		cmocka_unit_test(tensors_go_and_come_under_readers),
		cmocka_unit_test(invalid_writes_are_refused),
	};
	return cmocka_run_group_tests(tests, setup_all, end_all);
}
