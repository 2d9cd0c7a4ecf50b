/* Applies a gradient to a row and its state: the formulas of <graphwire/rows.h>, on float32. Each optimizer is one row
 * of the table in optimizer.c; all other code uses the table.
 *
 * Sums over a row's elements use sixteen lanes (element i in lane i % 16), which are added in pairs. Vectors of any
 * width can keep this order, so every machine has the same result. For the same reason, powers of beta are products in
 * double.
 */
#ifndef GW_ROWS_OPTIMIZER_H
#define GW_ROWS_OPTIMIZER_H

#include <stdbool.h>

#include <graphwire/rows.h>

#include "core/errors/status.h"

#define GW_OPTIMIZER_ARRAYS_MAX     3u /* arrays of a state */
#define GW_OPTIMIZER_PARAMETERS_MAX 5u

/* An array of a state. A row's state is its arrays one after another. */
struct gw_optimizer_array {
	const char *name;
	gw_dtype dtype;   /* 4 bytes */
	uint64_t columns; /* columns of a row; in the table, 0 means as many as the row has */
};

struct gw_optimizer_parameter;

struct gw_optimizer_rule {
	const char *name;
	const struct gw_optimizer_parameter *parameters[GW_OPTIMIZER_PARAMETERS_MAX]; /* up to the first NULL */
	struct gw_optimizer_array arrays[GW_OPTIMIZER_ARRAYS_MAX]; /* up to the first without a name */
	bool needs_squares; /* apply needs the sum of mean(g^2) over all gradients for the row */
	bool can_combine;   /* GW_COMBINE_EACH: applying the sum of the gradients equals applying them one by one */

	/* Applies one gradient: computes after[] from before[] (they may be the same array) and the state. squares is 0
	 * unless needs_squares. */
	void (*apply)(const struct gw_optimizer *optimizer, const float *gradient, float squares, const float *before,
		      float *after, float *state, uint64_t columns);
};

/* NULL: no optimizer has this number. */
const struct gw_optimizer_rule *gw_optimizer_rule_of(uint32_t kind);

/* Finds the kind by its name. GW_NOT_FOUND. */
gw_status gw_optimizer_parse(const char *name, enum gw_optimizer_kind *kind);

/* "adagrad" and so on; "?" for an invalid value. */
const char *gw_optimizer_name(enum gw_optimizer_kind kind);

/* GW_INVALID names the parameter that is out of range. */
gw_status gw_optimizer_check(const struct gw_optimizer *optimizer);

/* Writes the hyper-parameters of the optimizer's kind, in the table's order, and returns their number. Each is a number
 * of 8 bytes; a float's bits are in the lower half. gw_optimizer_put_parameters reads them back. It fails with
 * GW_PROTOCOL for another number of parameters, and for bits that the parameter's type does not have. It does not check
 * ranges (gw_optimizer_check does). Both functions need a known kind. */
uint32_t gw_optimizer_parameters(const struct gw_optimizer *optimizer, uint64_t out[GW_OPTIMIZER_PARAMETERS_MAX]);
gw_status gw_optimizer_put_parameters(struct gw_optimizer *optimizer, const uint64_t *values, uint32_t count);

/* Writes the descriptions of a kind's state arrays, for rows of the given number of columns, and returns how many there
 * are. */
uint32_t gw_optimizer_arrays(enum gw_optimizer_kind kind, uint64_t columns,
			     struct gw_optimizer_array out[GW_OPTIMIZER_ARRAYS_MAX]);

/* Floats of state for each row; 0: the kind has no state. */
uint64_t gw_optimizer_state_floats(enum gw_optimizer_kind kind, uint64_t columns);

/* mean(g^2) of one gradient. */
float gw_optimizer_mean_square(const float *gradient, uint64_t columns);

#endif
