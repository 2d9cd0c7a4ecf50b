/* Rows that change: their initial values, and how a gradient changes a row. Part of graphwire.h. */
#ifndef GRAPHWIRE_ROWS_H
#define GRAPHWIRE_ROWS_H

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Initial values of rows. A random value depends only on the seed, the row's original id and the column. It is the same
 * on every machine and in every partition of a graph. Edges without data that were imported without --edge-ids have no
 * original ids (FORMAT.md). Their rows use the graph's ids, which depend on the partition. */
enum gw_initial {
	GW_INITIAL_ZERO,
	GW_INITIAL_CONSTANT, /* `low`: finite, and within the dtype's range */
	GW_INITIAL_UNIFORM,  /* in [low, high); floating point only, and within the dtype's range */
	GW_INITIAL_NORMAL, /* mean `low`, standard deviation `high`; floating point only; up to 6.7 deviations from the
			      mean must be in range */
	GW_INITIAL_COPY,   /* the rows of another array */
};

/* How a gradient g changes a row w. The optimizer computes in float32 and rounds once to the row's dtype: float32,
 * float16 or bfloat16. State begins at zero: s, m and v are float32, t is uint32. The state is stored with the row, and
 * both change together.
 *
 * Numbers that are not finite are no errors. The formulas propagate them, as torch does, so that readers of the row see
 * them:
 * - A gradient that is NaN or infinite makes its element NaN. With GW_SGD, an infinite gradient makes it infinite. With
 *   GW_ADAGRAD_ROWS, a NaN makes the entire row NaN.
 * - A value beyond the row's dtype (65504 in float16) becomes infinite.
 * - A finite gradient above 1.8e19 has a square beyond float32. With GW_ADAGRAD and GW_ADAGRAD_ROWS, the elements that
 *   use this s do not change any more, as in torch.optim.Adagrad and DGL-KE. With GW_ADAM, the next step makes the
 *   element NaN, as in torch.optim.SparseAdam.
 * - Unlike in torch, eps = 0 leaves an element unchanged if it has never had a gradient (0 / 0). */
enum gw_optimizer_kind {
	/* w -= rate * g. As torch.optim.SGD without momentum. No state. */
	GW_SGD,

	/* s += g^2;  w -= rate * (g / (sqrt(s) + eps)), with one s for each element. As torch.optim.Adagrad, whose eps
	 * is 1e-10. dgl.distributed.optim.SparseAdagrad has eps in the same place (docs/DGL.md lists its other
	 * differences); dgl.optim.SparseAdagrad has it under the root. */
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

/* How gradients for equal ids of one call combine. In each case they change the row in one step: no read and no other
 * call comes between them. */
enum gw_combine {
	GW_COMBINE_SUM,  /* add them and apply the sum (as torch coalesces sparse gradients) */
	GW_COMBINE_MEAN, /* apply the sum divided by their number (as DGL's sparse optimizers) */
	/* Apply each, in the order of the call. GW_ADAGRAD_ROWS first adds all their squares to s, and then changes w
	 * by each (as DGL-KE). */
	GW_COMBINE_EACH,
};

struct gw_optimizer {
	enum gw_optimizer_kind kind;
	enum gw_combine combine;
	float rate;         /* finite */
	float eps;          /* 0 or more; GW_SGD ignores it */
	float beta1, beta2; /* 0 to less than 1; GW_ADAM only */
	uint64_t step;      /* GW_ADAM: t, from 1; 0: each row counts its own steps */
};

#ifdef __cplusplus
}
#endif
#endif
