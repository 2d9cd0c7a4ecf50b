/* Trains rows of a store: groups the gradients for equal rows, and changes each row once.
 *
 *   check -> state -> group equal rows, in the order of the call -> for each group:
 *     combine its gradients (sum, mean), or their squares (if the optimizer needs them) -> lock the row -> apply ->
 *     unlock it with its new value
 *
 * Everything that can fail precedes the first row: parameters, rows, dtype, memory. Grouping may take several slices. A
 * resumed call computes the groups again; grouping is deterministic.
 */
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/dtype.h"
#include "core/numbers/half.h"
#include "core/rows/store.h"
#include "core/rows/store_private.h"

#define PUSH_NONE       UINT32_MAX
#define PUSH_GROUP_COST 64u /* cost of grouping one gradient */

/* Gradients for one row, as a list in the order of the call. */
struct push_group {
	uint32_t first, last, count;
};

struct push {
	struct gw_row_store *store;
	const struct gw_optimizer *optimizer;
	const struct gw_optimizer_rule *rule; /* the optimizer's */
	const struct row_state *state;
	const uint64_t *rows;
	const float *gradients, *squares;
	struct push_group *groups;
	uint32_t *next;                  /* [n]: the next gradient for the same row, as a list */
	float *combined, *old, *changed; /* [columns] */
	void *payload;                   /* the row in its dtype, if that is not float32 */
};

void gw_row_push_scratch_free(struct gw_row_push_scratch *scratch)
{
	if (scratch->map.slots)
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
	struct gw_arena_options options = {.name = name, .huge = store->huge, .numa = store->numa, .shareable = true};
	gw_status status =
		gw_arena_create(gw_row_store_state_bytes(kind, store->rows, store->columns), &options, &state->arena);
	if (status != GW_OK) {
		gw_free(state);
		return status;
	}
	state->base = (float *)(void *)gw_arena_base(state->arena);
	atomic_store(&store->state, state);
	return GW_OK;
}

gw_status gw_row_store_trainable(const struct gw_row_store *store)
{
	if (store->dtype != GW_FLOAT32 && store->dtype != GW_FLOAT16 && store->dtype != GW_BFLOAT16)
		return gw_fail(GW_UNSUPPORTED, "rows of %s are not trained: float32, float16 and bfloat16 are",
			       gw_dtype_name(store->dtype));
	return GW_OK;
}

gw_status gw_row_store_prepare(struct gw_row_store *store, enum gw_optimizer_kind kind)
{
	gw_status status = gw_row_store_trainable(store);
	if (status != GW_OK || gw_optimizer_state_floats(kind, store->columns) == 0)
		return status;
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

/* Discards the scratch of the last call. */
static gw_status push_make_room(const struct gw_row_store *store, uint64_t n, struct gw_row_push_scratch *scratch)
{
	gw_status status = scratch->map.slots ? GW_OK : gw_hash_map_create(n, &scratch->map);
	if (status != GW_OK)
		return status;
	gw_hash_map_clear(&scratch->map);
	status = gw_hash_map_reserve(&scratch->map, n);
	if (status == GW_OK)
		status = gw_vec_reserve(&scratch->numbers, n * (sizeof(struct push_group) + sizeof(uint32_t)));
	if (status == GW_OK)
		status = gw_vec_reserve(&scratch->floats,
					3 * store->columns * sizeof(float) + store->format.payload_bytes);
	return status;
}

static void push_use_room(struct push *push, uint64_t n, const struct gw_row_push_scratch *scratch)
{
	uint64_t columns = push->store->columns;
	push->groups = scratch->numbers.data;
	push->next = (uint32_t *)(push->groups + n);
	push->combined = scratch->floats.data;
	push->old = push->combined + columns;
	push->changed = push->old + columns;
	push->payload = push->changed + columns;
}

/* Groups rows from slice->grouped on, as many as the slice may. */
static gw_status push_group_rows(struct push *push, struct gw_row_slice *slice, bool waits, uint64_t n,
				 struct gw_hash_map *map)
{
	uint32_t i = (uint32_t)slice->grouped;
	for (; i < n && store_pay(waits ? NULL : slice, PUSH_GROUP_COST); i++) {
		bool is_new;
		uint32_t number = gw_hash_map_put(map, push->rows[i], (uint32_t)slice->groups, &is_new);
		struct push_group *group = &push->groups[number];
		push->next[i] = PUSH_NONE;
		if (is_new) {
			*group = (struct push_group){.first = i, .last = i, .count = 1};
			slice->groups++;
			continue;
		}
		push->next[group->last] = i;
		group->last = i;
		group->count++;
	}
	slice->grouped = i;
	return i < n ? GW_AGAIN : GW_OK;
}

static const float *push_gradient(const struct push *push, uint32_t i)
{
	return push->gradients + (uint64_t)i * push->store->columns;
}

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

/* Returns false if the slice ends before the row. */
static bool push_apply(const struct push *push, struct gw_row_slice *slice, const struct push_group *group)
{
	struct gw_row_store *store = push->store;
	const struct gw_optimizer *optimizer = push->optimizer;
	const struct gw_optimizer_rule *rule = push->rule;
	uint64_t number = push->rows[group->first], columns = store->columns;
	bool each = optimizer->combine == GW_COMBINE_EACH;
	struct row_lock lock;
	const float *gradient = each ? push_gradient(push, group->first) : push_combine(push, group);
	float squares = 0;
	if (rule->needs_squares)
		squares = each ? push_sum_squares(push, group) : gw_optimizer_mean_square(gradient, columns);
	float *state = push->state ? push->state->base + number * push->state->floats : NULL;

	if (!gw_row_store_lock(store, number, slice, &lock))
		return false;
	(void)store_pay(slice, (group->count - 1) * columns * sizeof(float));
	const float *old = push_load(push, lock.row);
	rule->apply(optimizer, gradient, squares, old, push->changed, state, columns);
	for (uint32_t i = push->next[group->first]; each && i != PUSH_NONE; i = push->next[i])
		rule->apply(optimizer, push_gradient(push, i), 0, push->changed, push->changed, state, columns);
	gw_row_store_replace(store, &lock, push_round(push));
	return true;
}

static gw_status push_check(const struct push *push, uint64_t n)
{
	gw_status status = gw_optimizer_check(push->optimizer);
	if (status != GW_OK)
		return status;
	if (n >= PUSH_NONE)
		return gw_fail(GW_LIMIT, "%llu gradients in one call", (unsigned long long)n);
	if (push->squares && (!push->rule->needs_squares || push->optimizer->combine != GW_COMBINE_EACH))
		return gw_fail(GW_INVALID, "%s with combine %u: squares are given, but not used", push->rule->name,
			       (unsigned)push->optimizer->combine);
	return gw_row_store_check(push->store, NULL, push->rows, n);
}

/* The steps of a call's first slice: all that can fail. */
static gw_status push_begin(const struct push *push, struct gw_row_slice *slice, uint64_t n,
			    struct gw_row_push_scratch *scratch)
{
	gw_status status = push_check(push, n);
	if (status == GW_OK)
		status = gw_row_store_prepare(push->store, push->optimizer->kind);
	if (status == GW_OK)
		status = push_make_room(push->store, n, scratch);
	slice->checked = status == GW_OK;
	return status;
}

static inline __attribute__((always_inline)) void push_prefetch(const struct push *push, uint64_t number)
{
	store_prefetch(push->store, number);
	if (push->state)
		prefetch_bytes(push->state->base + number * push->state->floats, push->state->floats * sizeof(float));
}

static gw_status push_slice(struct push *push, struct gw_row_slice *slice, bool waits, uint64_t n,
			    struct gw_row_push_scratch *scratch)
{
	struct gw_row_store *store = push->store;
	/* may be NULL; push_begin then refuses the kind */
	push->rule = gw_optimizer_rule_of((uint32_t)push->optimizer->kind);
	gw_status status = slice->checked ? GW_OK : push_begin(push, slice, n, scratch);
	if (status != GW_OK)
		return status;
	push_use_room(push, n, scratch);
	if (gw_optimizer_state_floats(push->optimizer->kind, store->columns) > 0)
		push->state = atomic_load(&store->state);
	status = push_group_rows(push, slice, waits, n, &scratch->map);
	if (status != GW_OK)
		return status;
	uint64_t i = slice->at;
	for (; i < slice->groups && (waits || slice->cost); i++) {
		if (i + 1 < slice->groups)
			push_prefetch(push, push->rows[push->groups[i + 1].first]);
		if (!push_apply(push, waits ? NULL : slice, &push->groups[i]))
			break;
	}
	return store_end_slice(slice, i, slice->groups);
}

gw_status gw_row_store_push_slice(struct gw_row_store *store, struct gw_row_slice *slice,
				  const struct gw_optimizer *optimizer, const uint64_t *rows, uint64_t n,
				  const float *gradients, const float *squares, struct gw_row_push_scratch *scratch)
{
	struct push push = {
		.store = store, .optimizer = optimizer, .rows = rows, .gradients = gradients, .squares = squares};
	slice->taken = false;
	return push_slice(&push, slice, false, n, scratch);
}

gw_status gw_row_store_push(struct gw_row_store *store, const struct gw_optimizer *optimizer, const uint64_t *rows,
			    uint64_t n, const float *gradients, const float *squares,
			    struct gw_row_push_scratch *scratch)
{
	struct push push = {
		.store = store, .optimizer = optimizer, .rows = rows, .gradients = gradients, .squares = squares};
	struct gw_row_slice slice = {0};
	return push_slice(&push, &slice, true, n, scratch);
}
