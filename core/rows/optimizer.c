/* The optimizers, one function each: old row, gradient and state -> new row and state.
 *
 * Loops over a row are plain, for the compiler to make vectors of; what is the same for all its elements is computed
 * once in front of them. A gradient that is not finite is no error: arithmetic carries it into the row and the state,
 * so no comparison here may take a NaN for a number. Nothing can fail but the check of the parameters.
 */
#include "core/rows/optimizer.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define OPTIMIZER_LANES 16u

static const char *const optimizer_names[] = {
	[GW_SGD] = "sgd", [GW_ADAGRAD] = "adagrad", [GW_ADAGRAD_ROWS] = "adagrad-rows", [GW_ADAM] = "adam"};
#define OPTIMIZER_KINDS (sizeof(optimizer_names) / sizeof(optimizer_names[0]))

const char *gw_optimizer_name(enum gw_optimizer_kind kind)
{
	return (unsigned)kind < OPTIMIZER_KINDS ? optimizer_names[kind] : "?";
}

gw_status gw_optimizer_check(const struct gw_optimizer *optimizer)
{
	if ((unsigned)optimizer->kind >= OPTIMIZER_KINDS)
		return gw_fail(GW_INVALID, "optimizer: no kind %u", (unsigned)optimizer->kind);
	if ((unsigned)optimizer->combine > GW_COMBINE_EACH)
		return gw_fail(GW_INVALID, "optimizer: no way %u to combine", (unsigned)optimizer->combine);
	if (!isfinite(optimizer->rate))
		return gw_fail(GW_INVALID, "optimizer: a rate of %g", (double)optimizer->rate);
	if (optimizer->kind == GW_SGD)
		return GW_OK;
	if (!isfinite(optimizer->eps) || optimizer->eps < 0)
		return gw_fail(GW_INVALID, "optimizer: an eps of %g; it is 0 or more", (double)optimizer->eps);
	if (optimizer->kind != GW_ADAM)
		return GW_OK;
	float beta[] = {optimizer->beta1, optimizer->beta2};
	for (int i = 0; i < 2; i++) {
		if (!(beta[i] >= 0 && beta[i] < 1))
			return gw_fail(GW_INVALID, "optimizer: a beta%d of %g; it is from 0 to less than 1", i + 1,
				       (double)beta[i]);
	}
	return GW_OK;
}

uint32_t gw_optimizer_arrays(enum gw_optimizer_kind kind, uint64_t columns,
			     struct gw_optimizer_array out[GW_OPTIMIZER_ARRAYS_MAX])
{
	switch (kind) {
	case GW_ADAGRAD:
	case GW_ADAGRAD_ROWS:
		out[0] = (struct gw_optimizer_array){"sum", GW_FLOAT32, kind == GW_ADAGRAD ? columns : 1};
		return 1;
	case GW_ADAM:
		out[0] = (struct gw_optimizer_array){"step", GW_UINT32, 1};
		out[1] = (struct gw_optimizer_array){"mean", GW_FLOAT32, columns};
		out[2] = (struct gw_optimizer_array){"power", GW_FLOAT32, columns};
		return 3;
	default:
		return 0;
	}
}

uint64_t gw_optimizer_state_floats(enum gw_optimizer_kind kind, uint64_t columns)
{
	struct gw_optimizer_array arrays[GW_OPTIMIZER_ARRAYS_MAX];
	uint64_t floats = 0;
	for (uint32_t i = 0, n = gw_optimizer_arrays(kind, columns, arrays); i < n; i++)
		floats += arrays[i].columns;
	return floats;
}

float gw_optimizer_mean_square(const float *gradient, uint64_t columns)
{
	float lanes[OPTIMIZER_LANES] = {0};
	uint64_t at = 0;
	for (; at + OPTIMIZER_LANES <= columns; at += OPTIMIZER_LANES) {
		for (uint32_t lane = 0; lane < OPTIMIZER_LANES; lane++)
			lanes[lane] += gradient[at + lane] * gradient[at + lane];
	}
	for (uint32_t lane = 0; at + lane < columns; lane++)
		lanes[lane] += gradient[at + lane] * gradient[at + lane];
	for (uint32_t half = OPTIMIZER_LANES / 2; half > 0; half /= 2) {
		for (uint32_t lane = 0; lane < half; lane++)
			lanes[lane] += lanes[lane + half];
	}
	return lanes[0] / (float)columns;
}

static void optimizer_sgd(const struct gw_optimizer *optimizer, const float *gradient, const float *before,
			  float *after, uint64_t columns)
{
	float rate = optimizer->rate;
	for (uint64_t i = 0; i < columns; i++)
		after[i] = before[i] - rate * gradient[i];
}

/* numerator / divisor, which is 0 or more, or NaN. 0 / 0, of an element that never had a gradient, is no step.
 * never_zero: the divisor is not 0, since eps is not; the compiler makes a loop of its own of that, without the look.
 */
static inline float optimizer_share(float numerator, float divisor, bool never_zero)
{
	return !never_zero && fabsf(numerator) + divisor == 0 ? 0 : numerator / divisor;
}

static void optimizer_adagrad(const struct gw_optimizer *optimizer, const float *gradient, const float *before,
			      float *after, float *sums, uint64_t columns)
{
	float rate = optimizer->rate, eps = optimizer->eps;
	for (uint64_t i = 0; i < columns; i++) {
		float sum = sums[i] + gradient[i] * gradient[i];
		sums[i] = sum;
		after[i] = before[i] - rate * optimizer_share(gradient[i], sqrtf(sum) + eps, eps > 0);
	}
}

static void optimizer_adagrad_rows(const struct gw_optimizer *optimizer, const float *gradient, float squares,
				   const float *before, float *after, float *sum, uint64_t columns)
{
	*sum += squares;
	float divisor = sqrtf(*sum) + optimizer->eps, rate = optimizer->rate, factor = rate / divisor;
	if (isnormal(factor)) {
		for (uint64_t i = 0; i < columns; i++)
			after[i] = before[i] - factor * gradient[i];
		return;
	}
	for (uint64_t i = 0; i < columns; i++)
		after[i] = before[i] - rate * optimizer_share(gradient[i], divisor, false);
}

static double optimizer_power(double base, uint64_t exponent)
{
	double power = 1;
	for (; exponent > 0; exponent >>= 1, base *= base) {
		if (exponent & 1)
			power *= base;
	}
	return power;
}

static void optimizer_adam(const struct gw_optimizer *optimizer, const float *gradient, const float *before,
			   float *after, float *state, uint64_t columns)
{
	float *means = state + 1, *powers = means + columns;
	uint32_t counted;
	memcpy(&counted, state, sizeof(counted));
	counted += counted < UINT32_MAX; /* by then the corrections are 1 */
	uint64_t step = optimizer->step ? optimizer->step : counted;
	if (!optimizer->step)
		memcpy(state, &counted, sizeof(counted));
	double correction1 = 1 - optimizer_power((double)optimizer->beta1, step);
	double root2 = sqrt(1 - optimizer_power((double)optimizer->beta2, step));
	/* Both ways are rate * (root2 / correction1) * (m / (sqrt(v) + eps')): DGL's eps stands behind the correction
	 * of v. */
	float rate = (float)((double)optimizer->rate * root2 / correction1);
	float eps = optimizer->step ? optimizer->eps : (float)((double)optimizer->eps * root2);
	float beta1 = optimizer->beta1, beta2 = optimizer->beta2;
	for (uint64_t i = 0; i < columns; i++) {
		float mean = beta1 * means[i] + (1 - beta1) * gradient[i];
		float power = beta2 * powers[i] + (1 - beta2) * (gradient[i] * gradient[i]);
		/* 0, or NaN where an earlier square was too large for a float: see <graphwire/rows.h>. */
		power += powers[i] - powers[i];
		means[i] = mean;
		powers[i] = power;
		after[i] = before[i] - rate * optimizer_share(mean, sqrtf(power) + eps, eps > 0);
	}
}

void gw_optimizer_apply(const struct gw_optimizer *optimizer, const float *gradient, float squares, const float *before,
			float *after, float *state, uint64_t columns)
{
	switch (optimizer->kind) {
	case GW_SGD:
		optimizer_sgd(optimizer, gradient, before, after, columns);
		return;
	case GW_ADAGRAD:
		optimizer_adagrad(optimizer, gradient, before, after, state, columns);
		return;
	case GW_ADAGRAD_ROWS:
		optimizer_adagrad_rows(optimizer, gradient, squares, before, after, state, columns);
		return;
	case GW_ADAM:
		optimizer_adam(optimizer, gradient, before, after, state, columns);
		return;
	}
}
