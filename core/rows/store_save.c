/* Copies rows and their state out for a checkpoint, and state back in. Each row is locked, so that both are of one
 * moment. Fails for rows and columns that do not exist, and for a store without state.
 */
#include <string.h>

#include "core/rows/store.h"
#include "core/rows/store_private.h"

gw_status gw_row_store_save_slice(struct gw_row_store *store, struct gw_row_slice *slice, uint64_t first, uint64_t n,
				  void *rows, void *state)
{
	const struct row_state *kept = atomic_load(&store->state);
	gw_status status = gw_row_store_check_range(store, first, n);
	if (status == GW_OK && state && !kept)
		status = gw_fail(GW_INVALID, "these rows have no optimizer's state");
	if (status != GW_OK)
		return status;
	uint64_t bytes = store->format.payload_bytes, state_bytes = state ? kept->floats * sizeof(float) : 0;
	uint64_t i = store_begin(slice);
	if (slice)
		slice->taken = false;
	for (; i < n; i++) {
		struct row_lock lock;
		if (!gw_row_store_lock(store, first + i, slice, &lock))
			break;
		memcpy((uint8_t *)rows + i * bytes, lock.row, bytes);
		if (state)
			memcpy((uint8_t *)state + i * state_bytes, kept->base + (first + i) * kept->floats,
			       state_bytes);
		gw_row_store_unlock(store, &lock);
	}
	return store_end_slice(slice, i, n);
}

gw_status gw_row_store_set_state_slice(struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
				       uint64_t n, uint64_t first, uint64_t floats, const float *values)
{
	const struct row_state *kept = atomic_load(&store->state);
	if (!kept)
		return gw_fail(GW_INVALID, "these rows have no room for an optimizer's state");
	if (first > kept->floats || floats > kept->floats - first)
		return gw_fail(GW_RANGE, "columns %llu to %llu of a state of %llu", (unsigned long long)first,
			       (unsigned long long)(first + floats), (unsigned long long)kept->floats);
	gw_status status = gw_row_store_check(store, slice, rows, n);
	if (status != GW_OK)
		return status;
	uint64_t i = store_begin(slice);
	for (; i < n; i++) {
		struct row_lock lock;
		if (!gw_row_store_lock(store, rows[i], slice, &lock))
			break;
		memcpy(kept->base + rows[i] * kept->floats + first, values + i * floats, floats * sizeof(float));
		gw_row_store_unlock(store, &lock);
	}
	return store_end_slice(slice, i, n);
}
