/* Threads find, use and release shards without a lock, while others create and delete them. Each thread gets the shard
 * of its epoch or nothing, and no shard is freed during its use, which the address sanitizer checks. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tensors/table_private.h"
#include "test/support/graph_fixture.h"
#include "test/support/must.h"
#include "test/support/part_files.h"

#define ROWS    8
#define COLUMNS 4
#define USERS   3   /* threads */
#define PLACES  4   /* tensors at a time */
#define ROUNDS  400 /* tensors in all */
#define PUSHES  8   /* to each, at least */

struct desk {
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_tensor_table *table;
	_Atomic uint64_t epochs[PLACES]; /* of the current tensor, or of a former one */
	_Atomic uint64_t pushed[ROUNDS]; /* pushed rows per tensor number, which is in the tensor's name */
	_Atomic(const char *) wrong;     /* the first error */
	_Atomic bool stop;
};

static void desk_begin(struct desk *desk)
{
	memset(desk, 0, sizeof(*desk));
	gw_fixture_begin(&desk->fixture, 5, 50, 1);
	gw_fixture_write(&desk->fixture);
	must(gw_meta_read(desk->fixture.folder, &desk->meta));
	part_open(desk->meta, 0, false, &desk->part);
	const struct gw_tensor_table_options options = {
		.meta = desk->meta, .part = desk->part, .incarnation = 9ull << 32, .numa = GW_NUMA_LOCAL};
	must(gw_tensor_table_create(&options, &desk->table));
}

static void desk_end(struct desk *desk)
{
	gw_tensor_table_stop(desk->table);
	gw_tensor_table_destroy(desk->table);
	gw_part_close(desk->part);
	gw_meta_destroy(desk->meta);
	gw_fixture_end(&desk->fixture);
}

static uint64_t make_tensor(struct desk *desk, uint32_t number)
{
	struct gw_tensor_create_call call = {.plan = {.shape = {ROWS, COLUMNS},
						      .dtype = GW_FLOAT32,
						      .ndim = 2,
						      .placement = GW_PLACE_EVEN,
						      .initial = GW_INITIAL_ZERO}};
	struct gw_tensor_state tensor;
	struct gw_shard *shard;
	const uint64_t *epochs;
	snprintf(call.plan.name, sizeof(call.plan.name), "%u", number);
	must(gw_tensor_table_make(desk->table, &call, &tensor, &epochs, &shard));
	gw_shard_unref(desk->table, shard);
	return tensor.epoch;
}

static struct gw_shard *find_filled(struct desk *desk, uint64_t epoch)
{
	struct gw_shard *shard;
	while (gw_tensor_table_find(desk->table, epoch, &shard) != GW_OK)
		sched_yield();
	return shard;
}

static void delete_tensor(struct desk *desk, uint32_t number)
{
	char name[16];
	uint32_t count;
	snprintf(name, sizeof(name), "%u", number);
	must(gw_tensor_table_delete(desk->table, "", name, 0, &count));
	assert_int_equal(count, 1);
}

/* Reads a row, whose elements must all be equal; then adds 1 to all elements of another row by a push. */
static const char *use_shard(struct desk *desk, struct gw_shard *shard, uint64_t turn)
{
	static const float gradients[COLUMNS] = {1, 1, 1, 1};
	const struct gw_optimizer optimizer = {.kind = GW_SGD, .combine = GW_COMBINE_EACH, .rate = -1};
	const uint64_t pulled = turn % ROWS, pushed = turn / ROWS % ROWS;
	unsigned number = 0;
	float row[COLUMNS];
	if (sscanf(shard->plan.name, "%u", &number) != 1 || number >= ROUNDS)
		return "a shard without its name";
	if (gw_row_store_read(shard->store, &pulled, 1, row) != GW_OK)
		return "a row cannot be read";
	for (int c = 1; c < COLUMNS; c++) {
		if (row[c] < row[0] || row[c] > row[0])
			return "a row is torn";
	}
	struct gw_row_push_scratch scratch;
	gw_tensor_table_acquire_scratch(desk->table, &scratch);
	gw_status status = gw_shard_prepare(desk->table, shard, GW_SGD);
	if (status == GW_OK)
		status = gw_row_store_push(shard->store, &optimizer, &pushed, 1, gradients, NULL, &scratch);
	gw_tensor_table_release_scratch(desk->table, &scratch);
	atomic_fetch_add(&desk->pushed[number], 1);
	return status == GW_OK ? NULL : "a push fails";
}

static void *use_shards(void *context)
{
	struct desk *desk = context;
	for (uint64_t turn = 0; !atomic_load(&desk->stop); turn++) {
		const uint64_t epoch = atomic_load(&desk->epochs[turn % PLACES]);
		struct gw_shard *shard;
		if (gw_tensor_table_find(desk->table, epoch, &shard) != GW_OK) {
			sched_yield();
			continue;
		}
		const char *wrong = shard->epoch == epoch ? use_shard(desk, shard, turn) : "the shard of another epoch";
		gw_tensor_table_note_reads(desk->table, epoch, 1);
		gw_shard_unref(desk->table, shard);
		if (wrong)
			atomic_store(&desk->wrong, wrong);
	}
	return NULL;
}

/* Waits until the shard has no other user. */
static void expect_pushes(struct desk *desk, struct gw_shard *shard, uint32_t number)
{
	const uint64_t rows[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7};
	float values[ROWS][COLUMNS];
	double sum = 0;
	while (atomic_load(&shard->users->count) > 1)
		sched_yield();
	must(gw_row_store_read(shard->store, rows, ROWS, values));
	for (int r = 0; r < ROWS; r++)
		sum += (double)values[r][0];
	assert_int_equal((uint64_t)sum, atomic_load(&desk->pushed[number]));
}

/* Deletes a tensor after PUSHES pushes, while threads use it, and creates the next one. Each third one is deleted at
 * once, often before it is filled. */
static void replace_tensor(struct desk *desk, uint32_t number)
{
	if (number >= PLACES && (number - PLACES) % 3 != 0) {
		const uint32_t old = number - PLACES;
		struct gw_shard *shard = find_filled(desk, atomic_load(&desk->epochs[old % PLACES]));
		while (atomic_load(&desk->pushed[old]) < PUSHES && !atomic_load(&desk->wrong))
			sched_yield();
		delete_tensor(desk, old);
		expect_pushes(desk, shard, old);
		gw_shard_unref(desk->table, shard);
	}
	atomic_store(&desk->epochs[number % PLACES], make_tensor(desk, number));
	if (number % 3 == 0)
		delete_tensor(desk, number);
}

static void no_shard_is_freed_under_its_users(void **state)
{
	(void)state;
	static struct desk desk;
	pthread_t threads[USERS];
	desk_begin(&desk);
	for (int i = 0; i < USERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_shards, &desk), 0);
	for (uint32_t number = 0; number < ROUNDS && !atomic_load(&desk.wrong); number++)
		replace_tensor(&desk, number);
	atomic_store(&desk.stop, true);
	for (int i = 0; i < USERS; i++)
		pthread_join(threads[i], NULL);
	if (atomic_load(&desk.wrong))
		fail_msg("%s", atomic_load(&desk.wrong));
	desk_end(&desk);
}

/* Its bytes count while it is used, and no thread finds it any more. */
static void a_deleted_shard_is_its_last_users(void **state)
{
	(void)state;
	static struct desk desk;
	struct gw_shard *found;
	desk_begin(&desk);
	const uint64_t epoch = make_tensor(&desk, 0);
	struct gw_shard *shard = find_filled(&desk, epoch);
	delete_tensor(&desk, 0);
	assert_int_equal(gw_tensor_table_find(desk.table, epoch, &found), GW_NOT_FOUND);
	assert_null(found);
	assert_null(use_shard(&desk, shard, 0));
	while (atomic_load(&shard->users->count) > 1) /* the filler, which is about to end */
		sched_yield();
	assert_true(gw_tensor_table_bytes(desk.table) > 0);
	gw_shard_unref(desk.table, shard);
	assert_int_equal(gw_tensor_table_bytes(desk.table), 0);
	desk_end(&desk);
}

/* A finder increments the count of a slot after the slot's shard has changed: it gets no shard. */
static void a_late_finder_gets_nothing(void **state)
{
	(void)state;
	static struct desk desk;
	struct gw_shard *found;
	desk_begin(&desk);
	const uint64_t epoch = make_tensor(&desk, 0);
	struct gw_shard *shard = find_filled(&desk, epoch);
	struct gw_shard_users *users = shard->users;
	delete_tensor(&desk, 0);
	while (atomic_load(&users->count) > 1)
		sched_yield();
	gw_shard_unref(desk.table, shard);
	_Atomic(struct gw_shard_users *) *slot = &desk.table->slots[epoch % GW_TABLE_SLOTS];
	assert_null(atomic_load(slot));
	atomic_store(slot, users);
	assert_int_equal(gw_tensor_table_find(desk.table, epoch, &found), GW_NOT_FOUND);
	assert_int_equal(atomic_load(&users->count), 0);
	atomic_store(slot, NULL);
	const uint64_t later = make_tensor(&desk, 1);
	shard = find_filled(&desk, later);
	assert_ptr_equal(shard->users, users);
	while (atomic_load(&users->count) > 2)
		sched_yield();
	atomic_store(slot, users);
	assert_int_equal(gw_tensor_table_find(desk.table, epoch, &found), GW_NOT_FOUND);
	assert_null(found);
	assert_int_equal(atomic_load(&users->count), 2);
	atomic_store(slot, NULL);
	gw_shard_unref(desk.table, shard);
	desk_end(&desk);
}

/* An epoch whose slot is taken would replace a tensor that stays. */
static void epochs_leave_taken_slots_out(void **state)
{
	(void)state;
	static struct desk desk;
	desk_begin(&desk);
	const uint64_t stays = make_tensor(&desk, 0);
	desk.table->epochs += GW_TABLE_SLOTS - 1;
	const uint64_t later = make_tensor(&desk, 1);
	assert_int_equal(later, stays + GW_TABLE_SLOTS + 1);
	gw_shard_unref(desk.table, find_filled(&desk, stays));
	gw_shard_unref(desk.table, find_filled(&desk, later));
	desk_end(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_shard_is_freed_under_its_users),
		cmocka_unit_test(a_deleted_shard_is_its_last_users),
		cmocka_unit_test(a_late_finder_gets_nothing),
		cmocka_unit_test(epochs_leave_taken_slots_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
