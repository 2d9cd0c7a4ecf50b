/* The optimizers. Each is a function from the old row, the gradient and the state to the new row and state. A table
 * lists them, and functions answer questions from the table.
 *
 * Loops over a row are plain, so that the compiler vectorizes them; values that all elements share are computed before
 * the loop. A gradient that is not finite is no error: arithmetic propagates it into the row and the state, so no
 * comparison here may mistake a NaN for a number. Only the check of the parameters, their decoding and the search for a
 * name can fail.
 */
#include "core/rows/optimizer.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define OPTIMIZER_LANES 16u

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

static void optimizer_sgd(const struct gw_optimizer *optimizer, const float *gradient, float squares,
			  const float *before, float *after, float *state, uint64_t columns)
{
	(void)squares, (void)state;
	float rate = optimizer->rate;
	for (uint64_t i = 0; i < columns; i++)
		after[i] = before[i] - rate * gradient[i];
}

/* numerator / divisor, where the divisor is 0 or more, or NaN. 0 / 0 gives 0: such an element has never had a gradient.
 * never_zero: the divisor cannot be 0, because eps is not 0; the compiler then makes a separate loop without the
 * test. */
static inline float optimizer_share(float numerator, float divisor, bool never_zero)
{
	return !never_zero && fabsf(numerator) + divisor == 0 ? 0 : numerator / divisor;
}

static void optimizer_adagrad(const struct gw_optimizer *optimizer, const float *gradient, float squares,
			      const float *before, float *after, float *sums, uint64_t columns)
{
	(void)squares;
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

static void optimizer_adam(const struct gw_optimizer *optimizer, const float *gradient, float squares,
			   const float *before, float *after, float *state, uint64_t columns)
{
	(void)squares;
	float *means = state + 1, *powers = means + columns;
	uint32_t counted;
	memcpy(&counted, state, sizeof(counted));
	counted += counted < UINT32_MAX; /* stops at the maximum: by then the corrections are 1 */
	uint64_t step = optimizer->step ? optimizer->step : counted;
	if (!optimizer->step)
		memcpy(state, &counted, sizeof(counted));
	double correction1 = 1 - optimizer_power((double)optimizer->beta1, step);
	double root2 = sqrt(1 - optimizer_power((double)optimizer->beta2, step));
	/* Both variants are rate * (root2 / correction1) * (m / (sqrt(v) + eps')). DGL adds eps after the correction of
	 * v, so eps' is then eps * root2. */
	float rate = (float)((double)optimizer->rate * root2 / correction1);
	float eps = optimizer->step ? optimizer->eps : (float)((double)optimizer->eps * root2);
	float beta1 = optimizer->beta1, beta2 = optimizer->beta2;
	for (uint64_t i = 0; i < columns; i++) {
		float mean = beta1 * means[i] + (1 - beta1) * gradient[i];
		float power = beta2 * powers[i] + (1 - beta2) * (gradient[i] * gradient[i]);
		/* Adds 0; or NaN, if an earlier square was too large for a float: see <graphwire/rows.h>. */
		power += powers[i] - powers[i];
		means[i] = mean;
		powers[i] = power;
		after[i] = before[i] - rate * optimizer_share(mean, sqrtf(power) + eps, eps > 0);
	}
}

/* --- The table. --- */

/* A hyper-parameter: a float from low to high; or an integer of 8 bytes, for which every value is valid. */
struct gw_optimizer_parameter {
	const char *name, *range; /* for an error text, such as "an eps" and "; it is 0 or more" */
	size_t offset, bytes;     /* in struct gw_optimizer */
	float low, high;
};

#define OPTIMIZER_BELOW_ONE 0x1.fffffep-1f

static const struct gw_optimizer_parameter optimizer_rate = {
	.name = "a rate",
	.range = "",
	.offset = offsetof(struct gw_optimizer, rate),
	.bytes = sizeof(float),
	.low = -FLT_MAX,
	.high = FLT_MAX,
};
static const struct gw_optimizer_parameter optimizer_eps = {
	.name = "an eps",
	.range = "; it is 0 or more",
	.offset = offsetof(struct gw_optimizer, eps),
	.bytes = sizeof(float),
	.low = 0,
	.high = FLT_MAX,
};
static const struct gw_optimizer_parameter optimizer_beta1 = {
	.name = "a beta1",
	.range = "; it is from 0 to less than 1",
	.offset = offsetof(struct gw_optimizer, beta1),
	.bytes = sizeof(float),
	.low = 0,
	.high = OPTIMIZER_BELOW_ONE,
};
static const struct gw_optimizer_parameter optimizer_beta2 = {
	.name = "a beta2",
	.range = "; it is from 0 to less than 1",
	.offset = offsetof(struct gw_optimizer, beta2),
	.bytes = sizeof(float),
	.low = 0,
	.high = OPTIMIZER_BELOW_ONE,
};
static const struct gw_optimizer_parameter optimizer_step = {
	.name = "a step",
	.range = "",
	.offset = offsetof(struct gw_optimizer, step),
	.bytes = sizeof(uint64_t),
};

static const struct gw_optimizer_rule optimizer_rules[] = {
	[GW_SGD] =
		{
			.name = "sgd",
			.parameters = {&optimizer_rate},
			.apply = optimizer_sgd,
		},
	[GW_ADAGRAD] =
		{
			.name = "adagrad",
			.parameters = {&optimizer_rate, &optimizer_eps},
			.arrays = {{"sum", GW_FLOAT32, 0}},
			.apply = optimizer_adagrad,
		},
	[GW_ADAGRAD_ROWS] =
		{
			.name = "adagrad-rows",
			.parameters = {&optimizer_rate, &optimizer_eps},
			.arrays = {{"sum", GW_FLOAT32, 1}},
			.needs_squares = true,
			.can_combine = true,
			.apply = optimizer_adagrad_rows,
		},
	[GW_ADAM] =
		{
			.name = "adam",
			.parameters = {&optimizer_rate, &optimizer_eps, &optimizer_beta1, &optimizer_beta2,
				       &optimizer_step},
			.arrays = {{"step", GW_UINT32, 1}, {"mean", GW_FLOAT32, 0}, {"power", GW_FLOAT32, 0}},
			.apply = optimizer_adam,
		},
};
#define OPTIMIZER_KINDS (sizeof(optimizer_rules) / sizeof(optimizer_rules[0]))

const struct gw_optimizer_rule *gw_optimizer_rule_of(uint32_t kind)
{
	return kind < OPTIMIZER_KINDS ? &optimizer_rules[kind] : NULL;
}

gw_status gw_optimizer_parse(const char *name, enum gw_optimizer_kind *kind)
{
	for (uint32_t i = 0; i < OPTIMIZER_KINDS; i++) {
		if (strcmp(name, optimizer_rules[i].name) == 0) {
			*kind = (enum gw_optimizer_kind)i;
			return GW_OK;
		}
	}
	return gw_fail(GW_NOT_FOUND, "there is no optimizer \"%.64s\"", name);
}

const char *gw_optimizer_name(enum gw_optimizer_kind kind)
{
	const struct gw_optimizer_rule *rule = gw_optimizer_rule_of((uint32_t)kind);
	return rule ? rule->name : "?";
}

/* NULL after the last. */
static const struct gw_optimizer_parameter *optimizer_parameter(const struct gw_optimizer_rule *rule, uint32_t i)
{
	return i < GW_OPTIMIZER_PARAMETERS_MAX ? rule->parameters[i] : NULL;
}

static gw_status optimizer_check_parameter(const struct gw_optimizer *optimizer,
					   const struct gw_optimizer_parameter *parameter)
{
	float value;
	if (parameter->bytes != sizeof(value))
		return GW_OK;
	memcpy(&value, (const uint8_t *)optimizer + parameter->offset, sizeof(value));
	if (!(value >= parameter->low && value <= parameter->high))
		return gw_fail(GW_INVALID, "optimizer: %s of %g%s", parameter->name, (double)value, parameter->range);
	return GW_OK;
}

gw_status gw_optimizer_check(const struct gw_optimizer *optimizer)
{
	const struct gw_optimizer_rule *rule = gw_optimizer_rule_of((uint32_t)optimizer->kind);
	const struct gw_optimizer_parameter *parameter;
	gw_status status = GW_OK;
	if (!rule)
		return gw_fail(GW_INVALID, "optimizer: unknown kind %u", (unsigned)optimizer->kind);
	if ((unsigned)optimizer->combine > GW_COMBINE_EACH)
		return gw_fail(GW_INVALID, "optimizer: unknown way %u to combine gradients",
			       (unsigned)optimizer->combine);
	for (uint32_t i = 0; status == GW_OK && (parameter = optimizer_parameter(rule, i)); i++)
		status = optimizer_check_parameter(optimizer, parameter);
	return status;
}

uint32_t gw_optimizer_parameters(const struct gw_optimizer *optimizer, uint64_t out[GW_OPTIMIZER_PARAMETERS_MAX])
{
	const struct gw_optimizer_rule *rule = gw_optimizer_rule_of((uint32_t)optimizer->kind);
	const struct gw_optimizer_parameter *parameter;
	uint32_t count = 0;
	for (; (parameter = optimizer_parameter(rule, count)); count++) {
		out[count] = 0;
		memcpy(&out[count], (const uint8_t *)optimizer + parameter->offset, parameter->bytes);
	}
	return count;
}

gw_status gw_optimizer_put_parameters(struct gw_optimizer *optimizer, const uint64_t *values, uint32_t count)
{
	const struct gw_optimizer_rule *rule = gw_optimizer_rule_of((uint32_t)optimizer->kind);
	const struct gw_optimizer_parameter *parameter;
	uint32_t i = 0;
	for (; i < count && (parameter = optimizer_parameter(rule, i)); i++) {
		if (parameter->bytes < sizeof(*values) && values[i] >> (8 * parameter->bytes))
			return gw_fail(GW_PROTOCOL, "%s: %s of more than %zu bytes", rule->name, parameter->name,
				       parameter->bytes);
		memcpy((uint8_t *)optimizer + parameter->offset, &values[i], parameter->bytes);
	}
	if (i < count || optimizer_parameter(rule, i))
		return gw_fail(GW_PROTOCOL, "%s with %u parameters", rule->name, count);
	return GW_OK;
}

uint32_t gw_optimizer_arrays(enum gw_optimizer_kind kind, uint64_t columns,
			     struct gw_optimizer_array out[GW_OPTIMIZER_ARRAYS_MAX])
{
	const struct gw_optimizer_rule *rule = gw_optimizer_rule_of((uint32_t)kind);
	uint32_t count = 0;
	for (; rule && count < GW_OPTIMIZER_ARRAYS_MAX && rule->arrays[count].name; count++) {
		out[count] = rule->arrays[count];
		out[count].columns = out[count].columns ? out[count].columns : columns;
	}
	return count;
}

uint64_t gw_optimizer_state_floats(enum gw_optimizer_kind kind, uint64_t columns)
{
	struct gw_optimizer_array arrays[GW_OPTIMIZER_ARRAYS_MAX];
	uint64_t floats = 0;
	for (uint32_t i = 0, n = gw_optimizer_arrays(kind, columns, arrays); i < n; i++)
		floats += arrays[i].columns;
	return floats;
}
