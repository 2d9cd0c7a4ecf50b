/* Scratch of pushes, kept by the table in a few places: any thread takes what is in one, and puts it, or other scratch,
 * into a free one. One that has grown large ends: clearing its map would cost small pushes more than making one.
 *
 *   NONE ─▶ MOVING ─▶ THERE ─▶ MOVING ─▶ NONE
 *
 * No lock. The thread that has set a place to MOVING (acquire) has it alone, until it sets it to what follows
 * (release). Each thread begins with the place that it was at last, so that threads keep out of each other's way.
 */
#include "tensors/table_private.h"

#define SCRATCH_SLOTS_MAX (16u << 10) /* of its map */
#define SCRATCH_BYTES_MAX (4u << 20)  /* of its lists, each */

static _Thread_local uint32_t scratch_last;

/* A place that was in this state, and is MOVING now; NULL: all are in others. */
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
	bool keep = scratch->map.keys && scratch->map.mask < SCRATCH_SLOTS_MAX &&
		    scratch->numbers.capacity <= SCRATCH_BYTES_MAX && scratch->floats.capacity <= SCRATCH_BYTES_MAX;
	struct gw_kept_scratch *kept = keep ? scratch_seize(table, GW_KEPT_NONE) : NULL;
	if (!kept) {
		gw_row_push_scratch_free(scratch);
		return;
	}
	kept->scratch = *scratch;
	atomic_store_explicit(&kept->state, GW_KEPT_THERE, memory_order_release);
}
