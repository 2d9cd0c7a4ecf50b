/* Rows and their state, out for a checkpoint and back. Each row is taken alone, so that both are of one moment. Fails
 * for rows and columns that there are not, and where there is no state.
 */
#include <string.h>

#include "core/rows/store.h"
#include "core/rows/store_inside.h"

gw_status gw_row_store_save(struct gw_row_store *store, uint64_t first, uint64_t n, void *rows, float *state)
{
	const struct row_state *kept = atomic_load(&store->state);
	gw_status status = gw_row_store_check_range(store, first, n);
	if (!status && state && !kept)
		status = gw_fail(GW_INVALID, "these rows have no optimizer's state");
	if (status)
		return status;
	uint8_t *to = rows;
	for (uint64_t i = 0; i < n; i++, to += store->format.payload_bytes) {
		struct row_hold hold = gw_row_store_take(store, first + i);
		memcpy(to, hold.row, store->format.payload_bytes);
		if (state)
			memcpy(state + i * kept->floats, kept->base + (first + i) * kept->floats,
			       kept->floats * sizeof(float));
		gw_row_store_give(store, &hold);
	}
	return GW_OK;
}

gw_status gw_row_store_set_state(struct gw_row_store *store, const uint64_t *rows, uint64_t n, uint64_t first,
				 uint64_t floats, const float *values)
{
	const struct row_state *kept = atomic_load(&store->state);
	if (!kept)
		return gw_fail(GW_INVALID, "these rows have no room for an optimizer's state");
	if (first > kept->floats || floats > kept->floats - first)
		return gw_fail(GW_RANGE, "columns %llu to %llu of a state of %llu", (unsigned long long)first,
			       (unsigned long long)(first + floats), (unsigned long long)kept->floats);
	gw_status status = gw_row_store_check(store, rows, n);
	for (uint64_t i = 0; i < n && !status; i++) {
		struct row_hold hold = gw_row_store_take(store, rows[i]);
		memcpy(kept->base + rows[i] * kept->floats + first, values + i * floats, floats * sizeof(float));
		gw_row_store_give(store, &hold);
	}
	return status;
}
