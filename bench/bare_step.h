/* The ceiling of a training step over TCP: fetch rows, send gradients, update and hash rows, acknowledge. Plain
 * sockets and two threads, without any code of Graphwire. */
#ifndef GW_BENCH_BARE_STEP_H
#define GW_BENCH_BARE_STEP_H

#include <stdint.h>

struct gw_bare_step;

/* Makes a table whose rows have `columns` floats, and its server thread on an odd processor, which the caller reaches
 * over loopback. A step has `batch` rows. Returns 0 or an errno. */
int gw_bare_step_begin(uint64_t rows, uint32_t columns, uint32_t batch, struct gw_bare_step **out);
void gw_bare_step_end(struct gw_bare_step *step); /* NULL is allowed */

/* Runs steps one after another for the given time. A step fetches the rows with the next `batch` numbers and changes
 * them by the same gradients; after the last number it starts again at the first. *steps_per_second is the result. */
int gw_bare_step_run(struct gw_bare_step *step, const uint32_t *numbers, uint32_t steps, const float *gradients,
		     double seconds, double *steps_per_second);

/* Applies a step of row-wise Adagrad to one row, and hashes the row: a server's work without locks and grouping. */
void gw_bare_update(float *row, float *sum, uint64_t *hash, const float *gradient, uint32_t columns);

#endif
