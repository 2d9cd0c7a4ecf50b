/* Training rows of a store: gradients for equal rows are brought together, and each row changes once.
 *
 *   check -> state -> group equal rows, in the order of the call -> for each group:
 *     combine its gradients (sum, mean), or their squares (row-wise Adagrad) -> take the row -> apply -> give it back
 * new
 *
 * All that can fail comes before the first row: parameters, rows, dtype, memory.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/dtype.h"
#include "core/rows/half.h"
#include "core/rows/store.h"
#include "core/rows/store_inside.h"

#define PUSH_NONE UINT32_MAX

/* Gradients for one row, as a list in the order of the call. */
struct push_group {
	uint32_t first, last, count;
};

struct push {
	struct gw_row_store *store;
	const struct gw_optimizer *optimizer;
	const struct row_state *state;
	const uint64_t *rows;
	const float *gradients, *squares;
	uint64_t groups_count;
	struct push_group *groups;
	uint32_t *next;                  /* [n]: the next gradient for the same row */
	float *combined, *old, *changed; /* [columns] */
	void *payload;                   /* the row in its dtype, where that is not float32 */
};

void gw_row_push_scratch_free(struct gw_row_push_scratch *scratch)
{
	if (scratch->map.keys)
		gw_hash_map_destroy(&scratch->map);
	gw_vec_free(&scratch->numbers);
	gw_vec_free(&scratch->floats);
}

uint64_t gw_row_store_state_bytes(enum gw_optimizer_kind kind, uint64_t rows, uint64_t columns)
{
	return rows * gw_optimizer_state_floats(kind, columns) * sizeof(float);
}

static gw_status push_make_state(struct gw_row_store *store, enum gw_optimizer_kind kind)
{
	struct row_state *state = gw_calloc(1, sizeof(*state));
	if (!state)
		return GW_NO_MEMORY;
	state->kind = kind;
	state->floats = gw_optimizer_state_floats(kind, store->columns);
	char name[64];
	snprintf(name, sizeof(name), "state of %s", gw_optimizer_name(kind));
	struct gw_arena_options options = {.name = name, .huge = store->huge, .numa = store->numa};
	gw_status status =
		gw_arena_create(gw_row_store_state_bytes(kind, store->rows, store->columns), &options, &state->arena);
	if (status) {
		gw_free(state);
		return status;
	}
	state->base = (float *)(void *)gw_arena_base(state->arena);
	atomic_store(&store->state, state);
	return GW_OK;
}

gw_status gw_row_store_prepare(struct gw_row_store *store, enum gw_optimizer_kind kind)
{
	if (store->dtype != GW_FLOAT32 && store->dtype != GW_FLOAT16 && store->dtype != GW_BFLOAT16)
		return gw_fail(GW_UNSUPPORTED, "rows of %s are not trained: float32, float16 and bfloat16 are",
			       gw_dtype_name(store->dtype));
	if (gw_optimizer_state_floats(kind, store->columns) == 0)
		return GW_OK;
	gw_status status = GW_OK;
	struct row_state *state = atomic_load(&store->state);
	if (!state) {
		pthread_mutex_lock(&store->preparing);
		state = atomic_load(&store->state);
		if (!state)
			status = push_make_state(store, kind);
		pthread_mutex_unlock(&store->preparing);
	}
	if (state && state->kind != kind)
		return gw_fail(GW_EXISTS, "these rows are trained by %s already, not by %s; delete them to begin again",
			       gw_optimizer_name(state->kind), gw_optimizer_name(kind));
	return status;
}

bool gw_row_store_trained(const struct gw_row_store *store, enum gw_optimizer_kind *kind)
{
	const struct row_state *state = atomic_load(&((struct gw_row_store *)(uintptr_t)store)->state);
	if (state)
		*kind = state->kind;
	return state != NULL;
}

/* Room for the lists of n gradients and for a row's numbers; what is in scratch from the last call goes. */
static gw_status push_make_room(struct push *push, uint64_t n, struct gw_row_push_scratch *scratch)
{
	const struct gw_row_store *store = push->store;
	gw_status status = scratch->map.keys ? GW_OK : gw_hash_map_create(n, &scratch->map);
	if (status)
		return status;
	gw_hash_map_clear(&scratch->map);
	status = gw_hash_map_reserve(&scratch->map, n);
	if (!status)
		status = gw_vec_reserve(&scratch->numbers, n * (sizeof(*push->groups) + sizeof(*push->next)));
	if (!status)
		status = gw_vec_reserve(&scratch->floats,
					3 * store->columns * sizeof(float) + store->format.payload_bytes);
	if (status)
		return status;
	push->groups = scratch->numbers.data;
	push->next = (uint32_t *)(push->groups + n);
	push->combined = scratch->floats.data;
	push->old = push->combined + store->columns;
	push->changed = push->old + store->columns;
	push->payload = push->changed + store->columns;
	return GW_OK;
}

static void push_group_rows(struct push *push, uint64_t n, struct gw_hash_map *map)
{
	for (uint32_t i = 0; i < n; i++) {
		bool is_new;
		uint32_t number = gw_hash_map_put(map, push->rows[i], (uint32_t)push->groups_count, &is_new);
		struct push_group *group = &push->groups[number];
		push->next[i] = PUSH_NONE;
		if (is_new) {
			*group = (struct push_group){.first = i, .last = i, .count = 1};
			push->groups_count++;
			continue;
		}
		push->next[group->last] = i;
		group->last = i;
		group->count++;
	}
}

static const float *push_gradient(const struct push *push, uint32_t i)
{
	return push->gradients + (uint64_t)i * push->store->columns;
}

/* The sum of a group's gradients, divided by their number if it is the mean that is wanted. */
static const float *push_combine(const struct push *push, const struct push_group *group)
{
	uint64_t columns = push->store->columns;
	if (group->count == 1)
		return push_gradient(push, group->first);
	memcpy(push->combined, push_gradient(push, group->first), columns * sizeof(float));
	for (uint32_t i = push->next[group->first]; i != PUSH_NONE; i = push->next[i]) {
		const float *gradient = push_gradient(push, i);
		for (uint64_t column = 0; column < columns; column++)
			push->combined[column] += gradient[column];
	}
	if (push->optimizer->combine == GW_COMBINE_MEAN) {
		for (uint64_t column = 0; column < columns; column++)
			push->combined[column] /= (float)group->count;
	}
	return push->combined;
}

static float push_sum_squares(const struct push *push, const struct push_group *group)
{
	float sum = 0;
	for (uint32_t i = group->first; i != PUSH_NONE; i = push->next[i])
		sum += push->squares ? push->squares[i]
				     : gw_optimizer_mean_square(push_gradient(push, i), push->store->columns);
	return sum;
}

static const float *push_load(const struct push *push, const uint8_t *row)
{
	const uint16_t *halves = (const void *)row;
	if (push->store->dtype == GW_FLOAT32)
		return (const float *)(const void *)row;
	for (uint64_t i = 0; i < push->store->columns; i++)
		push->old[i] = push->store->dtype == GW_FLOAT16 ? gw_float_of_float16(halves[i])
								: gw_float_of_bfloat16(halves[i]);
	return push->old;
}

static const void *push_round(const struct push *push)
{
	uint16_t *halves = push->payload;
	if (push->store->dtype == GW_FLOAT32)
		return push->changed;
	for (uint64_t i = 0; i < push->store->columns; i++)
		halves[i] = push->store->dtype == GW_FLOAT16 ? gw_float16_of_float(push->changed[i])
							     : gw_bfloat16_of_float(push->changed[i]);
	return halves;
}

static void push_apply(const struct push *push, const struct push_group *group)
{
	struct gw_row_store *store = push->store;
	const struct gw_optimizer *optimizer = push->optimizer;
	uint64_t number = push->rows[group->first], columns = store->columns;
	bool each = optimizer->combine == GW_COMBINE_EACH;
	const float *gradient = each ? push_gradient(push, group->first) : push_combine(push, group);
	float squares = 0;
	if (optimizer->kind == GW_ADAGRAD_ROWS)
		squares = each ? push_sum_squares(push, group) : gw_optimizer_mean_square(gradient, columns);
	float *state = push->state ? push->state->base + number * push->state->floats : NULL;

	struct row_hold hold = gw_row_store_take(store, number);
	const float *old = push_load(push, hold.row);
	gw_optimizer_apply(optimizer, gradient, squares, old, push->changed, state, columns);
	for (uint32_t i = push->next[group->first]; each && i != PUSH_NONE; i = push->next[i])
		gw_optimizer_apply(optimizer, push_gradient(push, i), 0, push->changed, push->changed, state, columns);
	gw_row_store_give_new(store, &hold, push_round(push));
}

static gw_status push_check(const struct push *push, uint64_t n)
{
	gw_status status = gw_optimizer_check(push->optimizer);
	if (status)
		return status;
	if (n >= PUSH_NONE)
		return gw_fail(GW_LIMIT, "%llu gradients in one call", (unsigned long long)n);
	if (push->squares && (push->optimizer->kind != GW_ADAGRAD_ROWS || push->optimizer->combine != GW_COMBINE_EACH))
		return gw_fail(GW_INVALID, "squares belong to %s, each gradient applied",
			       gw_optimizer_name(GW_ADAGRAD_ROWS));
	return gw_row_store_check(push->store, push->rows, n);
}

gw_status gw_row_store_push(struct gw_row_store *store, const struct gw_optimizer *optimizer, const uint64_t *rows,
			    uint64_t n, const float *gradients, const float *squares,
			    struct gw_row_push_scratch *scratch)
{
	struct push push = {
		.store = store, .optimizer = optimizer, .rows = rows, .gradients = gradients, .squares = squares};
	gw_status status = push_check(&push, n);
	if (!status)
		status = gw_row_store_prepare(store, optimizer->kind);
	if (!status)
		status = push_make_room(&push, n, scratch);
	if (status)
		return status;
	if (gw_optimizer_state_floats(optimizer->kind, store->columns) > 0)
		push.state = atomic_load(&store->state);
	push_group_rows(&push, n, &scratch->map);
	for (uint64_t i = 0; i < push.groups_count; i++) {
		if (i + 1 < push.groups_count)
			store_prefetch(store, rows[push.groups[i + 1].first]);
		push_apply(&push, &push.groups[i]);
	}
	return GW_OK;
}
