/* What a gradient does to a row and to its state: the formulas of <graphwire/rows.h>, on float32. Each optimizer is one
 * row of the table in optimizer.c; all other code asks the table.
 *
 * Sums over a row's elements are taken in sixteen lanes (element i in lane i % 16) that are added in pairs: vectors of
 * any width can keep this order, so that the result is the same on every machine. Powers of beta are products in
 * double, for the same reason.
 */
#ifndef GW_ROWS_OPTIMIZER_H
#define GW_ROWS_OPTIMIZER_H

#include <stdbool.h>

#include <graphwire/rows.h>

#include "core/errors/status.h"

#define GW_OPTIMIZER_ARRAYS_MAX     3u /* of a state */
#define GW_OPTIMIZER_PARAMETERS_MAX 5u

/* An array of a state. A row's state holds its arrays one after another. */
struct gw_optimizer_array {
	const char *name;
	gw_dtype dtype;   /* 4 bytes */
	uint64_t columns; /* of a row; in the table, 0: as many as the row has */
};

struct gw_optimizer_parameter;

struct gw_optimizer_rule {
	const char *name;
	const struct gw_optimizer_parameter *parameters[GW_OPTIMIZER_PARAMETERS_MAX]; /* up to the first NULL */
	struct gw_optimizer_array arrays[GW_OPTIMIZER_ARRAYS_MAX];                    /* up to the first without name */
	bool needs_squares; /* apply takes the sum of mean(g^2) over all gradients for the row */
	bool can_combine;   /* GW_COMBINE_EACH: the sum of the gradients does what they would one by one */

	/* One gradient: new[] from old[] (they may be the same) and the state. squares: 0 unless it needs them. */
	void (*apply)(const struct gw_optimizer *optimizer, const float *gradient, float squares, const float *old,
		      float *new, float *state, uint64_t columns);
};

/* NULL: no optimizer has this number. */
const struct gw_optimizer_rule *gw_optimizer_rule_of(uint32_t kind);

/* The kind of this name. GW_NOT_FOUND. */
gw_status gw_optimizer_parse(const char *name, enum gw_optimizer_kind *kind);

/* "adagrad" and so on; "?" for a value out of range. */
const char *gw_optimizer_name(enum gw_optimizer_kind kind);

/* GW_INVALID names the parameter that makes no sense. */
gw_status gw_optimizer_check(const struct gw_optimizer *optimizer);

/* The hyper-parameters that the optimizer's kind has, in the table's order: how many. Each is a number of 8 bytes, the
 * bits of a float in its lower half. Put fails (GW_PROTOCOL) for another count, and for bits that the parameter does
 * not have; whether a value makes sense is left to gw_optimizer_check. The kind is a known one. */
uint32_t gw_optimizer_parameters(const struct gw_optimizer *optimizer, uint64_t out[GW_OPTIMIZER_PARAMETERS_MAX]);
gw_status gw_optimizer_put_parameters(struct gw_optimizer *optimizer, const uint64_t *values, uint32_t count);

/* The arrays of a kind's state for rows of so many columns: how many. */
uint32_t gw_optimizer_arrays(enum gw_optimizer_kind kind, uint64_t columns,
			     struct gw_optimizer_array out[GW_OPTIMIZER_ARRAYS_MAX]);

/* Floats of state that a row has; 0: none. */
uint64_t gw_optimizer_state_floats(enum gw_optimizer_kind kind, uint64_t columns);

/* mean(g^2) of one gradient. */
float gw_optimizer_mean_square(const float *gradient, uint64_t columns);

#endif
