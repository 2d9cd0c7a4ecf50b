/* The state of optimizers, read and written by ids, in this process, over TCP and in mapped memory. The oracle is an
 * array of state in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define PARTS   3
#define COLUMNS 7
#define ROWS    1001
#define WRITTEN 700    /* rows of a write; some occur twice */
#define WIDE    200000 /* columns: a row's state is longer than a request */

static struct setup setup;

static const struct gw_optimizer adam = {.kind = GW_ADAM, .rate = 0.01f, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.999f};

static struct gw_client *open_over(const char *transport, const char *job)
{
	struct gw_client_options options = {.threads = 1, .job = transport ? job : NULL};
	if (transport) {
		options.servers = setup.cluster.list;
		options.server_count = PARTS;
		options.transport = transport;
	} else {
		options.part_config = setup.fixture.folder;
	}
	return open_client(&options);
}

static const struct gw_tensor *create(struct gw_client *client, enum gw_placement placement, uint64_t rows,
				      uint64_t columns)
{
	struct gw_tensor_spec spec = {
		.name = "t", .dtype = GW_FLOAT32, .placement = placement, .ndim = 2, .shape = {rows, columns}};
	const struct gw_tensor *tensor = NULL;
	must(gw_tensor_create(client, &spec, &tensor));
	return tensor;
}

static void check_state(struct gw_client *client, const struct gw_tensor *tensor, const char *array, uint64_t columns,
			const float *expected)
{
	int64_t ids[ROWS + 5];
	float *found = calloc((size_t)(ROWS + 5) * columns, sizeof(*found));
	for (uint64_t i = 0; i < ROWS + 5; i++)
		ids[i] = (int64_t)((i * 7919) % ROWS);
	must(gw_tensor_state_read(client, tensor, GW_ADAM, array, ids, ROWS + 5, found));
	for (uint64_t i = 0; i < ROWS + 5; i++)
		assert_memory_equal(found + i * columns, expected + (uint64_t)ids[i] * columns,
				    columns * sizeof(float));
	free(found);
}

static void write_state(struct gw_client *client, const struct gw_tensor *tensor, const char *array, uint64_t columns,
			float *expected)
{
	int64_t ids[WRITTEN];
	float *values = calloc((size_t)WRITTEN * columns, sizeof(*values));
	for (uint64_t i = 0; i < WRITTEN; i++) {
		ids[i] = (int64_t)(gw_mix64(i + columns) % ROWS);
		for (uint64_t j = 0; j < columns; j++)
			expected[(uint64_t)ids[i] * columns + j] = values[i * columns + j] =
				(float)(i * columns + j + 1) / 1024;
	}
	must(gw_tensor_state_write(client, tensor, GW_ADAM, array, ids, WRITTEN, values));
	free(values);
}

static void check_way(const char *transport, enum gw_placement placement)
{
	struct gw_client *client = open_over(transport, "state");
	const struct gw_tensor *tensor = create(client, placement, ROWS, COLUMNS);
	float *means = calloc((size_t)ROWS * COLUMNS, sizeof(*means));
	float *powers = calloc((size_t)ROWS * COLUMNS, sizeof(*powers));
	float gradient[COLUMNS] = {0}, row[COLUMNS];
	uint32_t steps[2];
	check_state(client, tensor, "mean", COLUMNS, means);
	write_state(client, tensor, "mean", COLUMNS, means);
	check_state(client, tensor, "mean", COLUMNS, means);
	check_state(client, tensor, "power", COLUMNS, powers);
	write_state(client, tensor, "power", COLUMNS, powers);
	check_state(client, tensor, "power", COLUMNS, powers);
	must(gw_tensor_state_write(client, tensor, GW_ADAM, "step", (int64_t[]){ROWS - 1, 0}, 2, (uint32_t[]){41, 7}));
	/* A push uses the state that was written, and a read sees the state of the push. */
	must(gw_push(client, tensor, (int64_t[]){0}, 1, gradient, &adam));
	must(gw_tensor_state_read(client, tensor, GW_ADAM, "step", (int64_t[]){ROWS - 1, 0}, 2, steps));
	assert_int_equal(steps[0], 41);
	assert_int_equal(steps[1], 8);
	for (uint64_t j = 0; j < COLUMNS; j++) {
		means[j] *= adam.beta1;
		powers[j] *= adam.beta2;
	}
	check_state(client, tensor, "mean", COLUMNS, means);
	check_state(client, tensor, "power", COLUMNS, powers);
	must(gw_gather(client, tensor, (int64_t[]){0}, 1, row));
	for (uint64_t j = 0; j < COLUMNS; j++)
		assert_true(means[j] == 0 ? row[j] == 0 : row[j] < 0);
	must(gw_tensor_delete(client, "t", GW_OF_JOB));
	expect(gw_tensor_state_read(client, tensor, GW_ADAM, "step", (int64_t[]){0}, 1, steps), GW_NOT_FOUND, "t");
	expect(gw_tensor_state_write(client, tensor, GW_ADAM, "step", (int64_t[]){0}, 1, steps), GW_NOT_FOUND, "t");
	free(means);
	free(powers);
	gw_client_close(client);
}

static void state_is_what_was_written(void **state)
{
	(void)state;
	for (int placement = GW_PLACE_EVEN; placement <= GW_PLACE_STRIPED; placement++) {
		check_way(NULL, (enum gw_placement)placement);
		check_way(cluster_is_rdma() ? "verbs" : "tcp", (enum gw_placement)placement);
		if (!cluster_is_rdma())
			check_way("shm", (enum gw_placement)placement);
	}
}

static void a_row_may_be_longer_than_a_request(void **state)
{
	(void)state;
	struct gw_client *client = open_over(cluster_is_rdma() ? "verbs" : "tcp", "wide");
	const struct gw_tensor *tensor = create(client, GW_PLACE_EVEN, 4, WIDE);
	float *values = calloc((size_t)2 * WIDE, sizeof(*values)), *found = calloc((size_t)2 * WIDE, sizeof(*found));
	for (uint64_t i = 0; i < 2 * WIDE; i++)
		values[i] = (float)i;
	must(gw_tensor_state_write(client, tensor, GW_ADAGRAD, "sum", (int64_t[]){3, 1}, 2, values));
	must(gw_tensor_state_read(client, tensor, GW_ADAGRAD, "sum", (int64_t[]){3, 1}, 2, found));
	assert_memory_equal(found, values, sizeof(float) * 2 * WIDE);
	free(values);
	free(found);
	gw_client_close(client);
}

static void invalid_calls_are_refused(void **state)
{
	(void)state;
	struct gw_client *client = open_over(NULL, NULL);
	const struct gw_tensor *tensor = create(client, GW_PLACE_STRIPED, ROWS, COLUMNS), *feature;
	float values[COLUMNS] = {1};
	const int64_t zero[] = {0}, beyond[] = {0, ROWS};
	must(gw_tensor_state_read(client, tensor, GW_ADAM, "mean", zero, 0, NULL));
	must(gw_tensor_state_write(client, tensor, GW_ADAM, "mean", zero, 1, values));
	expect(gw_tensor_state_read(client, tensor, GW_ADAM, "sum", zero, 1, values), GW_INVALID, "no array \"sum\"");
	expect(gw_tensor_state_read(client, tensor, GW_SGD, "sum", zero, 1, values), GW_INVALID, "no array");
	expect(gw_tensor_state_write(client, tensor, GW_ADAM, NULL, zero, 1, values), GW_INVALID, "no array");
	expect(gw_tensor_state_read(client, tensor, (enum gw_optimizer_kind)9, "sum", zero, 1, values), GW_INVALID,
	       "unknown");
	expect(gw_tensor_state_read(client, tensor, GW_ADAGRAD, "sum", zero, 1, values), GW_EXISTS, "adam");
	expect(gw_tensor_state_write(client, tensor, GW_ADAGRAD, "sum", zero, 1, values), GW_EXISTS, "adam");
	expect(gw_tensor_state_read(client, tensor, GW_ADAM, "mean", beyond, 2, values), GW_RANGE, "1001");
	expect(gw_tensor_state_write(client, tensor, GW_ADAM, "mean", beyond, 2, values), GW_RANGE, "1001");
	uint32_t paper;
	must(gw_node_type(client, "paper", &paper));
	must(gw_node_tensor(client, paper, "feat", &feature));
	expect(gw_tensor_state_read(client, feature, GW_ADAM, "mean", zero, 1, values), GW_INVALID, "feature");
	gw_client_close(client);
}

static int setup_all(void **state)
{
	(void)state;
	cluster_offer(cluster_is_rdma() ? NULL : "shm");
	setup_begin(&setup, 977, PARTS, NULL);
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
		cmocka_unit_test(state_is_what_was_written),
		cmocka_unit_test(a_row_may_be_longer_than_a_request),
		cmocka_unit_test(invalid_calls_are_refused),
	};
	return cmocka_run_group_tests(tests, setup_all, end_all);
}
