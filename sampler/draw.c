/* What kinds share in their rounds. Fails if memory runs out. */
#include "sampler/draw.h"

gw_status gw_draw_need(struct gw_draw_run *run, uint32_t list, enum gw_column column, uint64_t first, uint64_t count)
{
	gw_status status = gw_vec_reserve(run->next, (run->next_count + 1) * sizeof(struct gw_need));
	if (status != GW_OK)
		return status;
	((struct gw_need *)run->next->data)[run->next_count++] =
		(struct gw_need){.list = list, .column = column, .first = first, .count = count};
	return GW_OK;
}
