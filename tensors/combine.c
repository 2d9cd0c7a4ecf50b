/* Computes the same sums as core/rows/store_push.c, in the same order, so that the results have the same bits. */
#include "tensors/combine.h"

#include <string.h>

#include "core/rows/optimizer.h"

bool gw_gradients_can_combine(const struct gw_optimizer *optimizer)
{
	return optimizer->combine != GW_COMBINE_EACH || gw_optimizer_rule_of((uint32_t)optimizer->kind)->can_combine;
}

bool gw_gradients_need_squares(const struct gw_optimizer *optimizer)
{
	return optimizer->combine == GW_COMBINE_EACH && gw_optimizer_rule_of((uint32_t)optimizer->kind)->needs_squares;
}

void gw_gradients_combine(const struct gw_optimizer *optimizer, const float *gradients, const uint32_t *order,
			  uint64_t n, uint64_t columns, float *out, float *squares)
{
	float sum = 0;
	memcpy(out, gradients + order[0] * columns, columns * sizeof(*out));
	for (uint64_t i = 0; i < n; i++) {
		const float *gradient = gradients + order[i] * columns;
		for (uint64_t column = 0; i > 0 && column < columns; column++)
			out[column] += gradient[column];
		sum += squares ? gw_optimizer_mean_square(gradient, columns) : 0;
	}
	if (squares)
		memcpy(squares, &sum, sizeof(sum));
	for (uint64_t column = 0; optimizer->combine == GW_COMBINE_MEAN && column < columns; column++)
		out[column] /= (float)n;
}
