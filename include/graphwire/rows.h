/* Rows that change: what they are at first, and how a gradient changes one. Part of graphwire.h. */
#ifndef GRAPHWIRE_ROWS_H
#define GRAPHWIRE_ROWS_H

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What rows are at first. Random values are a function of seed, the row's original id and the column alone, the same on
 * every machine: however a graph is partitioned, its rows begin alike. Rows without original ids go by the graph's ids,
 * which depend on the partition: those of edges without data that were imported without --edge-ids (FORMAT.md). */
enum gw_initial {
	GW_INITIAL_ZERO,
	GW_INITIAL_CONSTANT, /* `low`: finite, and no more than the dtype holds */
	GW_INITIAL_UNIFORM,  /* in [low, high); floating point only, and not beyond what the dtype holds */
	GW_INITIAL_NORMAL,   /* mean `low`, standard deviation `high`; likewise, up to 6.7 deviations from the mean */
	GW_INITIAL_COPY,     /* the rows of another array */
};

/* How a gradient g changes a row w. All of it is computed in float32 and rounded once to the row's dtype, which is a
 * floating-point one. State (s, m, v, t) begins at zero, is float32 and lies beside the row; both change together.
 *
 * Numbers that are not finite are no errors. The formulas carry them, as torch does, so that whoever reads the row sees
 * them: a gradient that is NaN or infinite makes its element NaN (by GW_SGD infinite, by GW_ADAGRAD_ROWS a NaN makes
 * the whole row NaN), and a row beyond its dtype (65504 in float16) becomes infinite. A finite gradient of more
 * than 1.8e19 has a square that float32 does not hold: GW_ADAGRAD and GW_ADAGRAD_ROWS change what has this s no more,
 * as torch.optim.Adagrad and DGL-KE; GW_ADAM makes the element NaN in the next step, as torch.optim.SparseAdam. Other
 * than in torch, an eps of 0 leaves an element alone that has never had a gradient (0 / 0). */
enum gw_optimizer_kind {
	/* w -= rate * g. As torch.optim.SGD without momentum. No state. */
	GW_SGD,

	/* s += g^2;  w -= rate * (g / (sqrt(s) + eps)), with an s for each element. As torch.optim.Adagrad, whose eps
	 * is 1e-10. (DGL's SparseAdagrad has eps under the root.) */
	GW_ADAGRAD,

	/* s += mean(g^2);  w -= rate * (g / (sqrt(s) + eps)), with one s for the row. As DGL-KE, whose eps is 1e-10. */
	GW_ADAGRAD_ROWS,

	/* m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;  and then,
	 * step = 0: each row counts its own steps t:
	 *   w -= rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).  As DGL's SparseAdam.
	 * step > 0: t = step, for all rows of the call:
	 *   w -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * (m / (sqrt(v) + eps)).  As torch.optim.SparseAdam. */
	GW_ADAM,
};

/* What becomes of gradients for equal ids of one call. Whatever it is, they change the row as one: no reader and no
 * other call comes between. */
enum gw_combine {
	GW_COMBINE_SUM,  /* they are added, and applied as one (torch coalesces sparse gradients so) */
	GW_COMBINE_MEAN, /* the same, divided by their number (DGL's sparse optimizers) */
	/* Each is applied, in the order of the call. GW_ADAGRAD_ROWS adds all their squares to s first, and then
	 * changes w by each (DGL-KE). */
	GW_COMBINE_EACH,
};

struct gw_optimizer {
	enum gw_optimizer_kind kind;
	enum gw_combine combine;
	float rate;         /* finite */
	float eps;          /* 0 or more; GW_SGD has none */
	float beta1, beta2; /* 0 to less than 1; GW_ADAM's */
	uint64_t step;      /* GW_ADAM: t, from 1; 0: each row counts its own */
};

#ifdef __cplusplus
}
#endif
#endif
