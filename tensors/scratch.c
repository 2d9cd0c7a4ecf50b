/* Scratch memory of pushes. The table keeps it in a few places: a thread takes the scratch of one place and later
 * stores it, or other scratch, in a free place. Scratch that has grown large is freed: clearing its map would cost
 * small pushes more than creating a new map.
 *
 *   NONE ─▶ MOVING ─▶ THERE ─▶ MOVING ─▶ NONE
 *
 * There is no lock. A thread that has set a place to MOVING (acquire) owns the place until it stores the next state
 * (release). Each thread starts with the place that it used last, so that threads rarely contend.
 */
#include "tensors/table_private.h"

#define SCRATCH_SLOTS_MAX (16u << 10) /* of the map of scratch that is kept */
#define SCRATCH_BYTES_MAX (4u << 20)  /* of each list of scratch that is kept */

static _Thread_local uint32_t scratch_last;

/* Sets the place to MOVING. NULL: no place is in the wanted state. */
static struct gw_kept_scratch *scratch_seize(struct gw_tensor_table *table, enum gw_kept_state wanted)
{
	for (uint32_t i = 0; i < GW_TENSOR_SCRATCHES_MAX; i++) {
		uint32_t number = (scratch_last + i) % GW_TENSOR_SCRATCHES_MAX;
		struct gw_kept_scratch *kept = &table->scratches[number];
		enum gw_kept_state state = atomic_load_explicit(&kept->state, memory_order_relaxed);
		if (state == wanted &&
		    atomic_compare_exchange_strong_explicit(&kept->state, &state, GW_KEPT_MOVING, memory_order_acquire,
							    memory_order_relaxed)) {
			scratch_last = number;
			return kept;
		}
	}
	return NULL;
}

void gw_tensor_table_acquire_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *out)
{
	struct gw_kept_scratch *kept = scratch_seize(table, GW_KEPT_THERE);
	*out = (struct gw_row_push_scratch){0};
	if (!kept)
		return;
	*out = kept->scratch;
	kept->scratch = (struct gw_row_push_scratch){0};
	atomic_store_explicit(&kept->state, GW_KEPT_NONE, memory_order_release);
}

void gw_tensor_table_release_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *scratch)
{
	bool keep = scratch->map.slots && scratch->map.mask < SCRATCH_SLOTS_MAX &&
		    scratch->numbers.capacity <= SCRATCH_BYTES_MAX && scratch->floats.capacity <= SCRATCH_BYTES_MAX;
	struct gw_kept_scratch *kept = keep ? scratch_seize(table, GW_KEPT_NONE) : NULL;
	if (!kept) {
		gw_row_push_scratch_free(scratch);
		return;
	}
	kept->scratch = *scratch;
	atomic_store_explicit(&kept->state, GW_KEPT_THERE, memory_order_release);
}
