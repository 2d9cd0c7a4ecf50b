/* Calls on rows run in slices: one suite over every backend with one serving thread. A long call is many runs of its
 * handler. A call that needs a row which another thread has locked leaves the thread to other clients until it can
 * continue. A client that is lost in the middle of a push and repeats it has pushed once. Nothing depends on speed: the
 * test locks the row, and unlocks it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "protocol/ops.h"
#include "tensors/service.h"
#include "test/support/graph_fixture.h"
#include "test/support/must.h"
#include "test/support/part_files.h"
#include "test/support/transport_bed.h"

#define ROWS      5600
#define COLUMNS   400
#define ROW_BYTES (COLUMNS * sizeof(float))
#define FEW       300 /* rows of one pull */
#define HELD      250 /* the row that the test locks */
#define LIGHT     20  /* calls of the other client in the meantime */

/* A bed whose service has a table with one tensor of zeros, and a second client. */
struct desk {
	struct one one;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_tensor_table *table;
	struct gw_shard *shard;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint; /* the second client's */
	uint8_t *request;
	uint32_t request_bytes;
	uint64_t held_sequence; /* the sequence of the locked row */
};

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void desk_make_tensor(struct desk *desk)
{
	const struct gw_tensor_create_call call = {.plan = {.name = "rows",
							    .shape = {ROWS, COLUMNS},
							    .dtype = GW_FLOAT32,
							    .ndim = 2,
							    .placement = GW_PLACE_EVEN,
							    .initial = GW_INITIAL_ZERO}};
	const struct gw_tensor_table_options options = {
		.meta = desk->meta, .part = desk->part, .incarnation = 9, .numa = GW_NUMA_LOCAL};
	struct gw_tensor_state tensor = {0};
	const uint64_t *epochs;
	must(gw_tensor_table_create(&options, &desk->table));
	while (!tensor.ready) {
		struct gw_shard *shard;
		must(gw_tensor_table_make(desk->table, &call, &tensor, &epochs, &shard));
		gw_shard_unref(desk->table, shard);
		pause_a_little();
	}
	must(gw_tensor_table_find(desk->table, tensor.epoch, &desk->shard));
}

static void desk_connect(struct desk *desk)
{
	struct gw_connect_options connect = gw_bed_options(&desk->one.bed);
	connect.client_uuid[0] = 10;
	desk->group = gw_bed_group(desk->one.bed.kind);
	must(gw_bed_connect(desk->group, &connect, &desk->endpoint));
}

static void desk_disconnect(struct desk *desk)
{
	gw_endpoint_close(desk->endpoint);
	gw_poll_group_destroy(desk->group);
}

static void desk_begin(struct desk *desk, void **state)
{
	memset(desk, 0, sizeof(*desk));
	gw_fixture_begin(&desk->fixture, 5, 50, 1);
	gw_fixture_write(&desk->fixture);
	must(gw_meta_read(desk->fixture.folder, &desk->meta));
	part_open(desk->meta, 0, false, &desk->part);
	gw_one_begin(&desk->one, state, NULL, 4096);
	desk_make_tensor(desk);
	must(gw_tensor_service_set(desk->one.bed.service, desk->table));
	desk_connect(desk);
	desk->request = malloc(GW_REQUEST_BYTES_MAX);
}

static void desk_end(struct desk *desk)
{
	desk_disconnect(desk);
	gw_one_end(&desk->one);
	gw_shard_unref(desk->table, desk->shard);
	gw_tensor_table_stop(desk->table);
	gw_tensor_table_destroy(desk->table);
	gw_part_close(desk->part);
	gw_meta_destroy(desk->meta);
	gw_fixture_end(&desk->fixture);
	free(desk->request);
}

static struct gw_service_counters counters_of(const struct desk *desk)
{
	struct gw_service_counters counters;
	gw_service_counters(desk->one.bed.service, &counters);
	return counters;
}

static uint8_t *row_of(const struct desk *desk, uint64_t number)
{
	return (uint8_t *)gw_arena_base(gw_row_store_arena(desk->shard->store)) +
	       number * gw_row_store_format(desk->shard->store)->stride;
}

/* All elements of a row are equal. */
static float value_of(const struct desk *desk, uint64_t number)
{
	float row[COLUMNS];
	while (!gw_row_copy(gw_row_store_format(desk->shard->store), row_of(desk, number), row))
		pause_a_little();
	for (int c = 1; c < COLUMNS; c++)
		assert_true(row[c] == row[0]);
	return row[0];
}

static void desk_take(struct desk *desk)
{
	assert_true(gw_row_try_lock(gw_row_store_format(desk->shard->store), row_of(desk, HELD), &desk->held_sequence));
}

static void desk_give(struct desk *desk)
{
	gw_row_unlock(gw_row_store_format(desk->shard->store), row_of(desk, HELD), desk->held_sequence);
}

/* --- Requests on rows 0 to n. --- */

static void request_add(struct desk *desk, const void *bytes, size_t n)
{
	memcpy(desk->request + desk->request_bytes, bytes, n);
	desk->request_bytes += (uint32_t)n;
}

static void request_begin(struct desk *desk, const void *head, size_t head_bytes, uint32_t n)
{
	desk->request_bytes = 0;
	request_add(desk, head, head_bytes);
	for (uint64_t i = 0; i < n; i++)
		request_add(desk, &i, sizeof(i));
}

static struct gw_tensor_rows_call rows_of(const struct desk *desk, uint32_t n)
{
	return (struct gw_tensor_rows_call){.epoch = desk->shard->epoch, .count = n};
}

static void request_pull(struct desk *desk, uint32_t n)
{
	struct gw_tensor_rows_call pull = rows_of(desk, n);
	request_begin(desk, &pull, sizeof(pull), n);
}

static void request_rows(struct desk *desk, uint32_t n, float value)
{
	for (uint64_t i = 0; i < (uint64_t)n * COLUMNS; i++)
		request_add(desk, &value, sizeof(value));
}

static void request_update(struct desk *desk, uint32_t n, float value)
{
	request_pull(desk, n);
	request_rows(desk, n, value);
}

static void request_push_of(struct desk *desk, uint32_t n, const struct gw_optimizer *optimizer, float gradient)
{
	const struct gw_tensor_push push = {.rows = rows_of(desk, n), .optimizer = *optimizer};
	uint8_t head[GW_TENSOR_PUSH_HEAD_MAX];
	size_t head_bytes = gw_tensor_push_encode(&push, head);
	request_begin(desk, head, head_bytes, n);
	request_rows(desk, n, gradient);
}

static void request_push(struct desk *desk, uint32_t n)
{
	request_push_of(desk, n, &(struct gw_optimizer){.kind = GW_SGD, .rate = -1}, 1);
}

static void request_restore(struct desk *desk, uint32_t n)
{
	struct gw_tensor_restore_call restore = {.rows = rows_of(desk, n), .kind = GW_ADAGRAD_ROWS, .floats = 1};
	request_begin(desk, &restore, sizeof(restore), n);
	for (uint32_t i = 0; i < n; i++)
		request_add(desk, &(float){7}, sizeof(float));
}

static void request_range(struct desk *desk, uint64_t first, uint32_t n)
{
	struct gw_tensor_range_call range = {.epoch = desk->shard->epoch, .first = first, .count = n};
	request_begin(desk, &range, sizeof(range), 0);
}

static void desk_ask(struct desk *desk, uint16_t op, uint64_t sequence, uint64_t window)
{
	struct gw_once once = {sequence, sequence, window};
	must(gw_endpoint_request(desk->endpoint, op, &once, desk->request, desk->request_bytes, GW_NO_DEADLINE, desk));
}

/* Over memory, the second client's own polls run its handler. */
static void await_deferred_runs(struct desk *desk, uint64_t before, uint64_t runs)
{
	struct gw_completion completion;
	while (counters_of(desk).deferred < before + runs)
		assert_int_equal(gw_poll_group_poll(desk->group, &completion, 1, GW_NS_PER_MS), 0);
}

/* The same thread serves the first client. */
static void others_go_on(struct desk *desk)
{
	struct {
		struct gw_tensor_rows_call call;
		uint64_t rows[2];
	} pull = {rows_of(desk, 2), {1, ROWS - 1}};
	for (uint32_t i = 0; i < LIGHT; i++) {
		struct gw_completion answer = gw_one_call(&desk->one, GW_OP_TENSOR_PULL, 0, &pull, sizeof(pull));
		assert_int_equal(answer.status, GW_OK);
		assert_int_equal(answer.reply_bytes, 2 * ROW_BYTES);
		gw_one_read_works(&desk->one);
	}
}

/* The second client's call needs the locked row: it ends after the row is unlocked, and not before. */
static struct gw_completion meets_the_row(struct desk *desk, uint16_t op)
{
	struct gw_completion none;
	uint64_t before = counters_of(desk).deferred;
	desk_take(desk);
	desk_ask(desk, op, 0, 0);
	await_deferred_runs(desk, before, 3);
	others_go_on(desk);
	await_deferred_runs(desk, before, 5);
	assert_int_equal(gw_poll_group_poll(desk->group, &none, 1, 0), 0);
	desk_give(desk);
	struct gw_completion answer = gw_bed_wait(desk->group, desk);
	assert_int_equal(answer.status, GW_OK);
	return answer;
}

static void a_locked_row_delays_no_other_call(void **state)
{
	struct desk desk;
	desk_begin(&desk, state);
	request_update(&desk, FEW, 3);
	meets_the_row(&desk, GW_OP_TENSOR_UPDATE);
	request_push(&desk, FEW);
	meets_the_row(&desk, GW_OP_TENSOR_PUSH);
	for (uint64_t i = 0; i < FEW; i++)
		assert_true(value_of(&desk, i) == 4);
	request_pull(&desk, FEW);
	struct gw_completion answer = meets_the_row(&desk, GW_OP_TENSOR_PULL);
	assert_int_equal(answer.reply_bytes, FEW * ROW_BYTES);
	const float four = 4;
	for (uint32_t i = 0; i < FEW; i++)
		assert_memory_equal((const uint8_t *)answer.reply + i * ROW_BYTES, &four, sizeof(four));
	/* The table's thread makes the state; then the call needs the locked row. */
	request_restore(&desk, FEW);
	meets_the_row(&desk, GW_OP_TENSOR_RESTORE);
	request_range(&desk, 0, FEW);
	answer = meets_the_row(&desk, GW_OP_TENSOR_SAVE);
	assert_int_equal(answer.reply_bytes, sizeof(struct gw_tensor_saved) + FEW * (ROW_BYTES + sizeof(float)));
	const float *saved = (const void *)((const uint8_t *)answer.reply + sizeof(struct gw_tensor_saved));
	for (uint32_t i = 0; i < FEW; i++) {
		const float seven = 7;
		assert_memory_equal(saved + i, &seven, sizeof(seven));
		assert_memory_equal((const uint8_t *)(saved + FEW) + i * ROW_BYTES, &four, sizeof(four));
	}
	request_range(&desk, 1, ROWS - 1);
	answer = meets_the_row(&desk, GW_OP_TENSOR_COUNT);
	uint64_t count;
	memcpy(&count, answer.reply, sizeof(count));
	assert_int_equal(count, (FEW - 1) * COLUMNS);
	desk_end(&desk);
}

/* A client gives up a push in the middle, and writes one of its rows over another connection. The last write stays,
 * even if the server has not noticed yet that the first connection was given up. */
static void a_write_waits_for_those_before_it(void **state)
{
	struct desk desk;
	struct gw_connect_options connect;
	struct gw_endpoint *other;
	struct gw_completion answer;
	struct {
		struct gw_tensor_rows_call call;
		uint64_t row;
		float values[COLUMNS];
	} update = {.row = FEW - 1};
	desk_begin(&desk, state);
	connect = gw_bed_options(&desk.one.bed);
	connect.client_uuid[0] = 10;
	must(gw_bed_connect(desk.group, &connect, &other));
	uint64_t window = desk.endpoint->peer.window, before = counters_of(&desk).deferred;
	assert_int_equal(other->peer.window, window);
	request_push(&desk, FEW);
	desk_take(&desk);
	desk_ask(&desk, GW_OP_TENSOR_PUSH, 1, window);
	await_deferred_runs(&desk, before, 3);
	while (value_of(&desk, HELD - 1) == 0)
		await_deferred_runs(&desk, counters_of(&desk).deferred, 1);

	struct gw_once once = {2, 2, window};
	update.call = rows_of(&desk, 1);
	for (int c = 0; c < COLUMNS; c++)
		update.values[c] = 9;
	must(gw_endpoint_request(other, GW_OP_TENSOR_UPDATE, &once, &update, sizeof(update), GW_NO_DEADLINE, &update));
	await_deferred_runs(&desk, counters_of(&desk).deferred, 20);
	desk_give(&desk);
	for (int ended = 0; ended < 2;) {
		if (gw_poll_group_poll(desk.group, &answer, 1, GW_NS_PER_MS) == 0)
			continue;
		assert_int_equal(answer.status, GW_OK);
		ended++;
	}
	assert_true(value_of(&desk, FEW - 2) == 1 && value_of(&desk, FEW - 1) == 9);
	gw_endpoint_close(other);
	desk_end(&desk);
}

static void expect_head_alone(struct gw_completion answer, uint64_t state_floats, uint32_t kind)
{
	struct gw_tensor_saved saved;
	assert_int_equal(answer.status, GW_OK);
	assert_int_equal(answer.reply_bytes, sizeof(saved));
	memcpy(&saved, answer.reply, sizeof(saved));
	assert_int_equal(saved.state_floats, state_floats);
	assert_int_equal(saved.kind, kind);
}

/* A save is in progress when rows are trained for the first time, including rows that are not copied yet. Such rows are
 * not saved without their optimizer state. Nor does a reply get more rows with state than it has room for. */
static void state_that_appears_during_a_save_is_saved(void **state)
{
	struct desk desk;
	const uint64_t last = FEW - 1;
	static const float gradient[COLUMNS];
	uint8_t push[GW_TENSOR_PUSH_HEAD_MAX + sizeof(last) + sizeof(gradient)];
	desk_begin(&desk, state);
	const struct gw_tensor_push head = {.rows = rows_of(&desk, 1),
					    .optimizer = {.kind = GW_ADAM, .rate = 1, .eps = 1}};
	uint32_t head_bytes = gw_tensor_push_encode(&head, push);
	memcpy(push + head_bytes, &last, sizeof(last));
	memcpy(push + head_bytes + sizeof(last), gradient, sizeof(gradient));
	uint32_t push_bytes = head_bytes + (uint32_t)(sizeof(last) + sizeof(gradient));
	uint64_t before = counters_of(&desk).deferred;
	desk_take(&desk);
	request_range(&desk, 0, FEW);
	desk_ask(&desk, GW_OP_TENSOR_SAVE, 0, 0);
	await_deferred_runs(&desk, before, 3);
	assert_int_equal(gw_one_call(&desk.one, GW_OP_TENSOR_PUSH, 0, push, push_bytes).status, GW_OK);
	desk_give(&desk);
	expect_head_alone(gw_bed_wait(desk.group, &desk), gw_optimizer_state_floats(GW_ADAM, COLUMNS), GW_ADAM);
	desk_ask(&desk, GW_OP_TENSOR_SAVE, 0, 0);
	expect_head_alone(gw_bed_wait(desk.group, &desk), gw_optimizer_state_floats(GW_ADAM, COLUMNS), GW_ADAM);
	desk_end(&desk);
}

/* 9 MB of gradients: the handler runs some 40 times, and pushes each gradient once. */
static void a_long_push_is_many_slices(void **state)
{
	struct desk desk;
	desk_begin(&desk, state);
	request_push(&desk, ROWS);
	uint64_t before = counters_of(&desk).deferred;
	desk_ask(&desk, GW_OP_TENSOR_PUSH, 0, 0);
	struct gw_completion answer = gw_bed_wait(desk.group, &desk);
	assert_int_equal(answer.status, GW_OK);
	assert_true(counters_of(&desk).deferred >= before + desk.request_bytes / (512u << 10));
	for (uint64_t i = 0; i < ROWS; i++)
		assert_true(value_of(&desk, i) == 1);
	desk_end(&desk);
}

/* Half of a push is done when its client's connection is lost. The repeat does the other half, and no more. */
static void a_client_lost_in_the_middle_pushes_once(void **state)
{
	struct desk desk;
	desk_begin(&desk, state);
	uint64_t window = desk.endpoint->peer.window;
	uint64_t before = counters_of(&desk).deferred;
	request_push(&desk, FEW);
	desk_take(&desk);
	desk_ask(&desk, GW_OP_TENSOR_PUSH, 1, window);
	await_deferred_runs(&desk, before, 3);
	while (value_of(&desk, HELD - 1) == 0)
		await_deferred_runs(&desk, counters_of(&desk).deferred, 1);
	desk_disconnect(&desk);
	while (counters_of(&desk).calls_open)
		pause_a_little();
	desk_give(&desk);
	for (uint64_t i = 0; i < FEW; i++)
		assert_true(value_of(&desk, i) == (i < HELD ? 1 : 0));
	desk_connect(&desk);
	for (int times = 0; times < 2; times++) { /* the second is answered from the replay cache */
		desk_ask(&desk, GW_OP_TENSOR_PUSH, 1, window);
		assert_int_equal(gw_bed_wait(desk.group, &desk).status, GW_OK);
		for (uint64_t i = 0; i < FEW; i++)
			assert_true(value_of(&desk, i) == 1);
	}
	desk_ask(&desk, GW_OP_TENSOR_PUSH, 2, window);
	assert_int_equal(gw_bed_wait(desk.group, &desk).status, GW_OK);
	assert_true(value_of(&desk, 0) == 2 && value_of(&desk, FEW - 1) == 2);
	desk_end(&desk);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(a_locked_row_delays_no_other_call)},
		{BED_TEST(a_long_push_is_many_slices)},
		{BED_TEST(a_write_waits_for_those_before_it)},
		{BED_TEST(state_that_appears_during_a_save_is_saved)},
		{BED_TEST(a_client_lost_in_the_middle_pushes_once)},
	};
	return gw_bed_run("tensor slices", tests, sizeof(tests) / sizeof(tests[0]));
}
