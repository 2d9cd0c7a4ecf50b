/* Gradients for one row that are more than a request carries: added up by the client, as the server would. */
#ifndef GW_TENSORS_COMBINE_H
#define GW_TENSORS_COMBINE_H

#include <stdbool.h>

#include <graphwire/rows.h>

/* Whether their sum does what they would: not where each of them changes the optimizer's state by itself. The optimizer
 * is a known one, here and below. */
bool gw_gradients_can_combine(const struct gw_optimizer *optimizer);

/* Whether the sum goes along with the sum of their mean(g^2). */
bool gw_gradients_need_squares(const struct gw_optimizer *optimizer);

/* Gradients order[0] to order[n], in that order, of `columns` elements each: their sum, or mean. squares: NULL, or
 * the sum of their mean(g^2). */
void gw_gradients_combine(const struct gw_optimizer *optimizer, const float *gradients, const uint32_t *order,
			  uint64_t n, uint64_t columns, float *out, float *squares);

#endif
