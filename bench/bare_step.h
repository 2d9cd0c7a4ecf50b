/* The ceiling of a training step over TCP: rows fetched, gradients sent, rows updated and hashed, acknowledged, by
 * plain sockets and two threads, and nothing of Graphwire in it. */
#ifndef GW_BENCH_BARE_STEP_H
#define GW_BENCH_BARE_STEP_H

#include <stdint.h>

struct gw_bare_step;

/* A table of rows of so many floats on loopback, its server thread on an odd processor; `batch` rows a step. 0 or an
 * errno. */
int gw_bare_step_begin(uint64_t rows, uint32_t columns, uint32_t batch, struct gw_bare_step **out);
void gw_bare_step_end(struct gw_bare_step *step); /* NULL is allowed */

/* Steps, one after another, for so long: the rows with these numbers come, and change by the same gradients; the next
 * step takes the next `batch` of the numbers, from the first again at their end. Steps a second. */
int gw_bare_step_run(struct gw_bare_step *step, const uint32_t *numbers, uint32_t steps, const float *gradients,
		     double seconds, double *steps_per_second);

/* What a row-wise Adagrad's step does to one row, and its hash: the loop that has no locks and no grouping. */
void gw_bare_update(float *row, float *sum, uint64_t *hash, const float *gradient, uint32_t columns);

#endif
