/* Combines the gradients of one row, if a request cannot carry all of them. The client combines them as the server
 * would. */
#ifndef GW_TENSORS_COMBINE_H
#define GW_TENSORS_COMBINE_H

#include <stdbool.h>

#include <graphwire/rows.h>

/* Whether applying the combined gradient equals applying the gradients. False if each gradient changes the optimizer's
 * state separately. The optimizer must be a known one, also for the functions below. */
bool gw_gradients_can_combine(const struct gw_optimizer *optimizer);

/* Whether the sum of mean(g^2) over the gradients must be sent with their sum. */
bool gw_gradients_need_squares(const struct gw_optimizer *optimizer);

/* Combines gradients order[0] to order[n - 1], in that order, of `columns` elements each, into their sum or mean.
 * squares: NULL, or receives the sum of mean(g^2) over the gradients. */
void gw_gradients_combine(const struct gw_optimizer *optimizer, const float *gradients, const uint32_t *order,
			  uint64_t n, uint64_t columns, float *out, float *squares);

#endif
