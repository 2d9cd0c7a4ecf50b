/* Many writes at a time. Writes of one client to one row take effect in the order of its calls, over every path and
 * over links that are cut. Rows may be longer than the pieces in which calls are sent. The oracle is an array in this
 * process, written one call after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "test/support/client_setup.h"
#include "test/support/many.h"
#include "test/support/must.h"
#include "test/support/relay.h"

#define PARTS    2
#define ROWS     1500
#define COLUMNS  400 /* 1,600 bytes: a call is several pieces */
#define CALLS    16  /* open at once */
#define CALL_MAX 1400
#define HOT      40 /* rows in every call, some several times */
#if defined(__SANITIZE_THREAD__)
#define CUTS 4
#else
#define CUTS 12
#endif
#define WRITES 40000        /* writes in flight: more than other operations may be */
#define LONG   (640u << 10) /* bytes of a relation of TransR at 400 columns */

/* How clients reach the servers. */
static const struct way {
	const char *transport, *driver;
} ways[] = {{NULL, NULL}, {"tcp", "epoll"}, {"tcp", "io_uring"}, {"shm", NULL}, {"verbs", NULL}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static bool has_way(const struct way *way)
{
	bool rdma = way->transport && strcmp(way->transport, "verbs") == 0;
	return !way->transport || rdma == cluster_is_rdma();
}

static struct gw_client *open_way(const struct setup *setup, const struct way *way)
{
	struct gw_client_options options = {.threads = 2, .tcp_driver = way->driver, .job = "writes"};
	if (way->transport) {
		options.servers = setup->cluster.list;
		options.server_count = setup->cluster.parts;
		options.transport = way->transport;
	} else {
		options.part_config = setup->fixture.folder;
	}
	return open_client(&options);
}

static void begin(struct setup *setup, uint64_t seed)
{
	cluster_offer(cluster_is_rdma() ? "verbs" : "shm");
	setup_begin(setup, seed, PARTS, NULL);
	cluster_offer(NULL);
}

/* --- Order. --- */

struct call {
	struct gw_ticket *ticket;
	uint64_t n;
	int64_t ids[CALL_MAX];
	float rows[CALL_MAX * COLUMNS];
};

/* Two tensors, their expected rows, and the open calls. */
struct history {
	struct gw_client *client;
	const struct gw_tensor *tensors[2];
	float *expected[2]; /* [ROWS][COLUMNS] */
	struct call *calls; /* [CALLS] */
	uint64_t random;
};

static void history_begin(struct history *history, struct gw_client *client, uint64_t seed)
{
	static const char *const names[] = {"one", "two"};
	*history = (struct history){.client = client, .random = seed};
	history->calls = calloc(CALLS, sizeof(*history->calls));
	for (int t = 0; t < 2; t++) {
		struct gw_tensor_spec spec = {.name = names[t],
					      .dtype = GW_FLOAT32,
					      .placement = GW_PLACE_STRIPED,
					      .ndim = 2,
					      .shape = {ROWS, COLUMNS}};
		must(gw_tensor_create(client, &spec, &history->tensors[t]));
		history->expected[t] = calloc((size_t)ROWS * COLUMNS, sizeof(float));
	}
}

static uint64_t draw(struct history *history, uint64_t below)
{
	history->random = gw_mix64(history->random + 1);
	return history->random % below;
}

/* Begins a call on the hot rows and others: an update or a push of integers. The oracle does the same. */
static void history_call(struct history *history, struct call *call)
{
	static const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	uint64_t which = draw(history, 2);
	bool push = draw(history, 3) == 0;
	float *expected = history->expected[which];
	call->n = 2 * HOT + draw(history, CALL_MAX - 2 * HOT);
	for (uint64_t i = 0; i < call->n; i++) {
		uint64_t id = i < 2 * HOT ? draw(history, HOT) * (ROWS / HOT) : draw(history, ROWS);
		float value = (float)(draw(history, 1000));
		call->ids[i] = (int64_t)id;
		for (uint64_t c = 0; c < COLUMNS; c++) {
			call->rows[i * COLUMNS + c] = value + (float)(c % 3);
			float *element = &expected[id * COLUMNS + c];
			*element = call->rows[i * COLUMNS + c] + (push ? *element : 0);
		}
	}
	if (push)
		must(gw_push_start(history->client, history->tensors[which], call->ids, call->n, call->rows, &add,
				   &call->ticket));
	else
		must(gw_update_start(history->client, history->tensors[which], call->ids, call->n, call->rows,
				     &call->ticket));
}

static void history_await(struct history *history)
{
	for (int i = 0; i < CALLS; i++) {
		if (history->calls[i].ticket)
			must(gw_wait(history->calls[i].ticket, -1));
		history->calls[i].ticket = NULL;
	}
}

static void history_end(struct history *history)
{
	int64_t ids[ROWS];
	float *rows = malloc((size_t)ROWS * COLUMNS * sizeof(*rows));
	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	for (int t = 0; t < 2; t++) {
		must(gw_gather(history->client, history->tensors[t], ids, ROWS, rows));
		for (int i = 0; i < ROWS * COLUMNS; i++)
			if (rows[i] != history->expected[t][i])
				fail_msg("tensor %d, row %d, column %d: %g, not %g", t, i / COLUMNS, i % COLUMNS,
					 (double)rows[i], (double)history->expected[t][i]);
		free(history->expected[t]);
	}
	free(rows);
	free(history->calls);
}

static void writes_take_effect_in_their_order(void **state)
{
	(void)state;
	struct setup setup;
	begin(&setup, 601);
	for (size_t w = 0; w < WAYS; w++) {
		struct history history;
		if (!has_way(&ways[w]))
			continue;
		struct gw_client *client = open_way(&setup, &ways[w]);
		uint64_t ended;
		history_begin(&history, client, 17 + w);
		for (uint32_t round = 0; round == 0 || round < gw_many(2); round++) {
			for (int i = 0; i < CALLS; i++)
				history_call(&history, &history.calls[i]);
			must(gw_flush(client));
			history_await(&history);
		}
		history_end(&history);
		must(gw_tensor_end_job(client, NULL, &ended));
		gw_client_close(client);
	}
	setup_end(&setup);
}

static void links_that_are_cut_change_nothing(void **state)
{
	(void)state;
	struct setup setup;
	struct relay relay;
	struct history history;
	uint32_t cuts = 0;
	if (cluster_is_rdma())
		return; /* a relay works only over TCP */
	setup_begin_open(&setup, 602, 1, SETUP_SCALE);
	relay_begin(&relay, &setup.cluster.addresses[0]);
	const char *list[] = {relay.text};
	struct gw_client_options options = {
		.servers = list, .server_count = 1, .threads = 2, .insecure = true, .transport = "tcp"};
	struct gw_client *client = open_client(&options);
	history_begin(&history, client, 99);
	for (uint32_t attempt = 0; cuts < CUTS; attempt++) {
		assert_true(attempt < 20 * CUTS);
		/* Some answers of about 50 bytes arrive before the cut. */
		uint64_t accepted = atomic_load(&relay.accepted);
		relay_cut_after(&relay, (int64_t)draw(&history, 600));
		for (int i = 0; i < CALLS; i++)
			history_call(&history, &history.calls[i]);
		gw_status status = GW_AGAIN;
		while (status == GW_AGAIN && atomic_load(&relay.accepted) == accepted)
			status = gw_wait(history.calls[CALLS - 1].ticket, 2);
		if (status != GW_AGAIN) {
			must(status);
			history.calls[CALLS - 1].ticket = NULL;
		} else {
			cuts++;
		}
		relay_pass(&relay);
		history_await(&history);
	}
	history_end(&history);
	gw_client_close(client);
	relay_end(&relay);
	setup_end(&setup);
}

/* --- Many. --- */

/* It adds to a row, or sometimes overwrites it. */
static gw_status write_one(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *id,
			   const float *row, uint32_t number, struct gw_ticket **ticket)
{
	static const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	return number % 1000 == 999 ? gw_update_start(client, tensor, id, 1, row, ticket)
				    : gw_push_start(client, tensor, id, 1, row, &add, ticket);
}

/* The relay holds back the answers until all writes have begun. */
static void any_number_may_be_in_flight(void **state)
{
	(void)state;
	enum { FEW = 200 };
	static int64_t ids[WRITES], all[FEW];
	static float rows[WRITES], expected[FEW], got[FEW];
	static struct gw_ticket *tickets[WRITES];
	struct setup setup;
	struct relay relay;
	const struct gw_tensor *tensor;
	if (cluster_is_rdma())
		return; /* a relay works only over TCP */
	_Static_assert(WRITES > GW_JOBS_MAX, "no more than may be open of others");
	setup_begin_open(&setup, 605, 1, SETUP_SCALE);
	relay_begin(&relay, &setup.cluster.addresses[0]);
	const char *list[] = {relay.text};
	struct gw_client_options options = {.servers = list,
					    .server_count = 1,
					    .threads = 1,
					    .insecure = true,
					    .transport = "tcp",
					    .timeout_ms = -1};
	struct gw_client *client = open_client(&options);
	struct gw_tensor_spec spec = {
		.name = "many", .dtype = GW_FLOAT32, .placement = GW_PLACE_STRIPED, .ndim = 1, .shape = {FEW}};
	must(gw_tensor_create(client, &spec, &tensor));
	relay_hold_after(&relay, 0);
	for (uint32_t i = 0; i < WRITES; i++) {
		ids[i] = (int64_t)(gw_mix64(i) % FEW);
		rows[i] = (float)(i % 100);
		must(write_one(client, tensor, &ids[i], &rows[i], i, &tickets[i]));
		/* Writes to other rows, which the test cancels. */
		if (i % 1000 == 500) {
			gw_cancel(tickets[i]);
			tickets[i] = NULL;
			continue;
		}
		expected[ids[i]] = rows[i] + (i % 1000 == 999 ? 0 : expected[ids[i]]);
	}
	relay_pass(&relay);
	must(gw_flush(client));
	for (uint32_t i = 0; i < WRITES; i++)
		must(tickets[i] ? gw_wait(tickets[i], 0) : GW_OK);
	for (int i = 0; i < FEW; i++)
		all[i] = i;
	must(gw_gather(client, tensor, all, FEW, got));
	for (int i = 0; i < FEW; i++)
		assert_true(got[i] == expected[i]);
	gw_client_close(client);
	relay_end(&relay);
	setup_end(&setup);
}

/* --- Long rows. --- */

/* Rows of `elements` integers that differ between rows and within a row. */
static void fill(float *rows, uint64_t n, uint64_t elements, uint64_t salt)
{
	for (uint64_t i = 0; i < n * elements; i++)
		rows[i] = (float)(int64_t)((gw_mix64(salt + i / 7) + i) % 16);
}

static void expect_long(struct gw_client *client, const struct gw_tensor *tensor, const void *expected)
{
	uint64_t n = tensor->shape[0];
	int64_t *ids = calloc(n, sizeof(*ids));
	uint8_t *rows = calloc(n, tensor->row_bytes);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	must(gw_gather(client, tensor, ids, n, rows));
	assert_memory_equal(rows, expected, n * tensor->row_bytes);
	free(rows);
	free(ids);
}

/* By more gradients than one request carries. */
static void train_rows_of_640_kb(struct gw_client *client)
{
	enum { N = 5, MANY = 20, ELEMENTS = LONG / sizeof(float) };
	struct gw_tensor_spec spec = {
		.name = "long", .dtype = GW_FLOAT32, .placement = GW_PLACE_STRIPED, .ndim = 2, .shape = {N, ELEMENTS}};
	const struct gw_tensor *tensor, *rest;
	float *expected = calloc((size_t)N * ELEMENTS, sizeof(float));
	float *gradients = calloc((size_t)MANY * ELEMENTS, sizeof(float));
	int64_t all[N] = {4, 0, 2, 1, 3}, one[MANY];
	must(gw_tensor_create(client, &spec, &tensor));
	fill(gradients, N, ELEMENTS, 5);
	must(gw_update(client, tensor, all, N, gradients));
	for (int i = 0; i < N; i++)
		memcpy(expected + (size_t)all[i] * ELEMENTS, gradients + (size_t)i * ELEMENTS, LONG);
	expect_long(client, tensor, expected);

	struct gw_optimizer sgd = {.kind = GW_SGD, .rate = -1};
	fill(gradients, MANY, ELEMENTS, 6);
	for (int i = 0; i < MANY; i++)
		one[i] = 3;
	must(gw_push(client, tensor, one, MANY, gradients, &sgd));
	for (uint64_t i = 0; i < (uint64_t)MANY * ELEMENTS; i++)
		expected[3 * ELEMENTS + i % ELEMENTS] += gradients[i];
	expect_long(client, tensor, expected);
	sgd.combine = GW_COMBINE_EACH;
	expect(gw_push(client, tensor, one, MANY, gradients, &sgd), GW_LIMIT, "add them up");
	expect_long(client, tensor, expected);

	/* Each gradient has one square per row. Gradients that fit into a request are applied one by one; more of them
	 * are applied as their sum. Two rows get the same gradients in both ways, powers of two so that sums are
	 * exact, and are equal. */
	struct gw_optimizer rows = {.kind = GW_ADAGRAD_ROWS, .combine = GW_COMBINE_EACH, .rate = 1, .eps = 0};
	spec.name = "trained";
	must(gw_tensor_create(client, &spec, &rest));
	for (uint64_t i = 0; i < (uint64_t)MANY * ELEMENTS; i++)
		gradients[i] = 2;
	must(gw_push(client, rest, one, 16, gradients, &rows)); /* s = 64, w = -16 * 2 / 8 */
	float *row = calloc(ELEMENTS, sizeof(float));
	must(gw_gather(client, rest, one, 1, row));
	for (uint64_t i = 0; i < ELEMENTS; i++)
		assert_true(row[i] == -4);
	for (int i = 0; i < 4; i++)
		one[i] = 2;
	must(gw_push(client, rest, one, 4, gradients, &rows)); /* s = 16, w = -4 * 2 / 4 */
	must(gw_gather(client, rest, one, 1, row));
	for (uint64_t i = 0; i < ELEMENTS; i++)
		assert_true(row[i] == -2);
	free(row);
	free(gradients);
	free(expected);
}

/* Of a type whose gradients are twice as long. */
static void train_longest_rows(struct gw_client *client)
{
	enum { N = 3, ELEMENTS = GW_TENSOR_ROW_BYTES_MAX / sizeof(uint16_t) };
	struct gw_tensor_spec spec = {
		.name = "longest", .dtype = GW_BFLOAT16, .placement = GW_PLACE_EVEN, .ndim = 2, .shape = {N, ELEMENTS}};
	const struct gw_tensor *tensor, *none;
	const struct gw_optimizer sgd = {.kind = GW_SGD, .rate = -1};
	uint16_t *expected = calloc((size_t)N * ELEMENTS, sizeof(*expected));
	float *gradients = calloc((size_t)2 * ELEMENTS, sizeof(*gradients));
	must(gw_tensor_create(client, &spec, &tensor));
	for (uint64_t i = 0; i < (uint64_t)2 * ELEMENTS; i++)
		gradients[i] = (float)(1 << i % 7);
	/* A power of two in bfloat16 is its exponent. */
	for (uint64_t i = 0; i < (uint64_t)2 * ELEMENTS; i++)
		expected[(i < ELEMENTS ? 2ull : 0) * ELEMENTS + i % ELEMENTS] = (uint16_t)((127 + i % 7) << 7);
	must(gw_push(client, tensor, (int64_t[]){2, 0}, 2, gradients, &sgd));
	expect_long(client, tensor, expected);
	for (uint64_t i = 0; i < ELEMENTS; i++)
		expected[ELEMENTS + i] = expected[i];
	must(gw_update(client, tensor, (int64_t[]){1}, 1, expected));
	expect_long(client, tensor, expected);
	spec.name = "too-long";
	spec.shape[1]++;
	expect(gw_tensor_create(client, &spec, &none), GW_LIMIT, "rows of more than 4194304 bytes");
	free(gradients);
	free(expected);
}

static void rows_may_be_longer_than_pieces(void **state)
{
	(void)state;
	struct setup setup;
	begin(&setup, 603);
	for (size_t w = 0; w < WAYS; w++) {
		uint64_t ended;
		if (!has_way(&ways[w]))
			continue;
		struct gw_client *client = open_way(&setup, &ways[w]);
		train_rows_of_640_kb(client);
		bool longest = w % 3 == 1 || gw_many_step() == 1; /* epoll and RDMA suffice for the thread sanitizer */
		if (longest)
			train_longest_rows(client);
		must(gw_tensor_end_job(client, NULL, &ended));
		assert_int_equal(ended, longest ? 3 : 2);
		gw_client_close(client);
	}
	setup_end(&setup);
}

static void long_rows_are_written_to_disk_and_back(void **state)
{
	(void)state;
	enum { N = 3, ELEMENTS = LONG / sizeof(float) };
	struct setup setup;
	char folder[160];
	uint64_t ended;
	const struct gw_tensor *tensor;
	const struct gw_optimizer adam = {.kind = GW_ADAM, .rate = 1, .eps = 1e-8f, .beta1 = 0.5f, .beta2 = 0.5f};
	struct gw_tensor_spec spec = {
		.name = "saved", .dtype = GW_FLOAT32, .placement = GW_PLACE_EVEN, .ndim = 2, .shape = {N, ELEMENTS}};
	int64_t ids[N] = {0, 1, 2};
	float *gradients = calloc((size_t)N * ELEMENTS, sizeof(float));
	float *before = calloc((size_t)N * ELEMENTS, sizeof(float));
	begin(&setup, 604);
	struct gw_client *client = open_way(&setup, &ways[cluster_is_rdma() ? WAYS - 1 : 1]);
	snprintf(folder, sizeof(folder), "%s/checkpoint", setup.fixture.root);
	must(gw_tensor_create(client, &spec, &tensor));
	fill(gradients, N, ELEMENTS, 8);
	must(gw_push(client, tensor, ids, N, gradients, &adam));
	must(gw_checkpoint(client, folder, NULL));
	must(gw_push(client, tensor, ids, N, gradients, &adam));
	must(gw_gather(client, tensor, ids, N, before));
	must(gw_tensor_delete(client, "saved", GW_OF_JOB));
	/* After a restore with its state, training gives the same rows. */
	must(gw_restore(client, folder, NULL, 0));
	must(gw_tensor_open(client, "saved", GW_OF_JOB, &tensor));
	must(gw_push(client, tensor, ids, N, gradients, &adam));
	expect_long(client, tensor, before);
	must(gw_tensor_end_job(client, NULL, &ended));
	gw_client_close(client);
	free(gradients);
	free(before);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_take_effect_in_their_order),
		cmocka_unit_test(links_that_are_cut_change_nothing),
		cmocka_unit_test(any_number_may_be_in_flight),
		cmocka_unit_test(rows_may_be_longer_than_pieces),
		cmocka_unit_test(long_rows_are_written_to_disk_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
