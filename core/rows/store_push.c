/* Training rows of a store: gradients for equal rows are brought together, and each row changes once.
 *
 *   check -> state -> group equal rows, in the order of the call -> for each group:
 *     combine its gradients (sum, mean), or their squares (if the optimizer needs them) -> take the row -> apply ->
 *     give it back new
 *
 * All that can fail comes before the first row: parameters, rows, dtype, memory. In turns, grouping takes some of them
 * too. Who goes on where another has ended groups anew, and finds the same groups.
 */
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/dtype.h"
#include "core/rows/half.h"
#include "core/rows/store.h"
#include "core/rows/store_private.h"

#define PUSH_NONE       UINT32_MAX
#define PUSH_GROUP_COST 64u /* of a turn, for a gradient that is grouped */

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

/* Room for the lists of n gradients and for a row's numbers; what is in scratch from the last call goes. */
static gw_status push_make_room(const struct gw_row_store *store, uint64_t n, struct gw_row_push_scratch *scratch)
{
	gw_status status = scratch->map.keys ? GW_OK : gw_hash_map_create(n, &scratch->map);
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

/* Groups rows on from turn->grouped, as many as the turn may. */
static gw_status push_group_rows(struct push *push, struct gw_row_slice *turn, bool waits, uint64_t n,
				 struct gw_hash_map *map)
{
	uint32_t i = (uint32_t)turn->grouped;
	for (; i < n && store_pay(waits ? NULL : turn, PUSH_GROUP_COST); i++) {
		bool is_new;
		uint32_t number = gw_hash_map_put(map, push->rows[i], (uint32_t)turn->groups, &is_new);
		struct push_group *group = &push->groups[number];
		push->next[i] = PUSH_NONE;
		if (is_new) {
			*group = (struct push_group){.first = i, .last = i, .count = 1};
			turn->groups++;
			continue;
		}
		push->next[group->last] = i;
		group->last = i;
		group->count++;
	}
	turn->grouped = i;
	return i < n ? GW_AGAIN : GW_OK;
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

/* False: the turn ends before it. */
static bool push_apply(const struct push *push, struct gw_row_slice *turn, const struct push_group *group)
{
	struct gw_row_store *store = push->store;
	const struct gw_optimizer *optimizer = push->optimizer;
	const struct gw_optimizer_rule *rule = push->rule;
	uint64_t number = push->rows[group->first], columns = store->columns;
	bool each = optimizer->combine == GW_COMBINE_EACH;
	struct row_lock hold;
	const float *gradient = each ? push_gradient(push, group->first) : push_combine(push, group);
	float squares = 0;
	if (rule->needs_squares)
		squares = each ? push_sum_squares(push, group) : gw_optimizer_mean_square(gradient, columns);
	float *state = push->state ? push->state->base + number * push->state->floats : NULL;

	if (!gw_row_store_lock(store, number, turn, &hold))
		return false;
	(void)store_pay(turn, (group->count - 1) * columns * sizeof(float));
	const float *old = push_load(push, hold.row);
	rule->apply(optimizer, gradient, squares, old, push->changed, state, columns);
	for (uint32_t i = push->next[group->first]; each && i != PUSH_NONE; i = push->next[i])
		rule->apply(optimizer, push_gradient(push, i), 0, push->changed, push->changed, state, columns);
	gw_row_store_replace(store, &hold, push_round(push));
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
		return gw_fail(GW_INVALID, "%s, combine %u, takes no squares", push->rule->name,
			       (unsigned)push->optimizer->combine);
	return gw_row_store_check(push->store, NULL, push->rows, n);
}

/* A call's first turn: all that can fail. */
static gw_status push_begin(const struct push *push, struct gw_row_slice *turn, uint64_t n,
			    struct gw_row_push_scratch *scratch)
{
	gw_status status = push_check(push, n);
	if (status == GW_OK)
		status = gw_row_store_prepare(push->store, push->optimizer->kind);
	if (status == GW_OK)
		status = push_make_room(push->store, n, scratch);
	turn->checked = status == GW_OK;
	return status;
}

/* What the next row needs: the row, and what its optimizer remembers of it. */
static inline __attribute__((always_inline)) void push_prefetch(const struct push *push, uint64_t number)
{
	store_prefetch(push->store, number);
	if (push->state)
		prefetch_bytes(push->state->base + number * push->state->floats, push->state->floats * sizeof(float));
}

static gw_status push_slice(struct push *push, struct gw_row_slice *turn, bool waits, uint64_t n,
			    struct gw_row_push_scratch *scratch)
{
	struct gw_row_store *store = push->store;
	push->rule = gw_optimizer_rule_of((uint32_t)push->optimizer->kind); /* NULL: push_begin refuses the kind */
	gw_status status = turn->checked ? GW_OK : push_begin(push, turn, n, scratch);
	if (status != GW_OK)
		return status;
	push_use_room(push, n, scratch);
	if (gw_optimizer_state_floats(push->optimizer->kind, store->columns) > 0)
		push->state = atomic_load(&store->state);
	status = push_group_rows(push, turn, waits, n, &scratch->map);
	if (status != GW_OK)
		return status;
	uint64_t i = turn->at;
	for (; i < turn->groups && (waits || turn->cost); i++) {
		if (i + 1 < turn->groups)
			push_prefetch(push, push->rows[push->groups[i + 1].first]);
		if (!push_apply(push, waits ? NULL : turn, &push->groups[i]))
			break;
	}
	return store_end_slice(turn, i, turn->groups);
}

gw_status gw_row_store_push_slice(struct gw_row_store *store, struct gw_row_slice *turn,
				  const struct gw_optimizer *optimizer, const uint64_t *rows, uint64_t n,
				  const float *gradients, const float *squares, struct gw_row_push_scratch *scratch)
{
	struct push push = {
		.store = store, .optimizer = optimizer, .rows = rows, .gradients = gradients, .squares = squares};
	turn->taken = false;
	return push_slice(&push, turn, false, n, scratch);
}

gw_status gw_row_store_push(struct gw_row_store *store, const struct gw_optimizer *optimizer, const uint64_t *rows,
			    uint64_t n, const float *gradients, const float *squares,
			    struct gw_row_push_scratch *scratch)
{
	struct push push = {
		.store = store, .optimizer = optimizer, .rows = rows, .gradients = gradients, .squares = squares};
	struct gw_row_slice turn = {0};
	return push_slice(&push, &turn, true, n, scratch);
}
