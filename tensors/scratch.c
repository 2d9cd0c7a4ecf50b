/* Scratch of pushes, kept by the table: a stack of what was used last. One that has grown large ends: clearing its map
 * would cost small pushes more than making one. */
#include "tensors/table_private.h"

#define SCRATCH_SLOTS_MAX (16u << 10) /* of its map */
#define SCRATCH_BYTES_MAX (4u << 20)  /* of its lists, each */

void gw_tensor_table_take_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *out)
{
	*out = (struct gw_row_push_scratch){0};
	pthread_mutex_lock(&table->lock);
	if (table->scratch_count > 0)
		*out = table->scratches[--table->scratch_count];
	pthread_mutex_unlock(&table->lock);
}

void gw_tensor_table_give_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *scratch)
{
	bool keep = scratch->map.keys && scratch->map.mask < SCRATCH_SLOTS_MAX &&
		    scratch->numbers.capacity <= SCRATCH_BYTES_MAX && scratch->floats.capacity <= SCRATCH_BYTES_MAX;
	pthread_mutex_lock(&table->lock);
	keep = keep && table->scratch_count < GW_TENSOR_SCRATCHES_MAX;
	if (keep)
		table->scratches[table->scratch_count++] = *scratch;
	pthread_mutex_unlock(&table->lock);
	if (!keep)
		gw_row_push_scratch_free(scratch);
}
