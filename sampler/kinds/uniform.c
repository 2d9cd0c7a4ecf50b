/* The uniform kind: every edge of a list is equally likely. It needs no column, so it has one round: lists.h. */
#include "sampler/draw.h"

static gw_status uniform_round(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number,
			       uint64_t *positions)
{
	(void)number;
	return gw_lists_pick(&run->lists, &draw->rule, run->scratch, positions, run->memory, run->element_bytes);
}

const struct gw_sampling_kind gw_sample_uniform = {
	.name = "uniform",
	.how = "uniformly",
	.number = GW_KIND_UNIFORM,
	.round = uniform_round,
};
