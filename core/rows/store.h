/* A row store: the rows of one tensor that one server, or a standalone client, has. Knows no network and no graph.
 *
 *   create: memory, then every row's value and trailer, by threads -> publish (its creator) -> read, write, push
 *
 * The rows lie in an arena of their own, a memfd on the largest pages to be had, rows * format.stride bytes from its
 * base: readers from outside (a mapping, a device) go by core/numbers/row.h. Beside them, in private memory,
 * lies what an optimizer remembers of each; it comes with the first push, or when it is asked for.
 *
 * Threads: all calls but create and destroy may be made by any number of threads at once. Rows are numbered from 0.
 * Each row is taken alone, with its state; a call over many rows is not one moment, but each row is whole. Calls wait
 * for other threads that have the same row, who do not sleep over it: not for threads that serve connections, which
 * make the same calls in turns.
 */
#ifndef GW_ROWS_STORE_H
#define GW_ROWS_STORE_H

#include <stdatomic.h>

#include "core/memory/arena.h"
#include "core/memory/idmap.h"
#include "core/memory/vec.h"
#include "core/numbers/row.h"
#include "core/rows/initial.h"
#include "core/rows/optimizer.h"

struct gw_row_store;

struct gw_row_store_options {
	const char *name; /* for the log and /proc/PID/maps */
	gw_dtype dtype;   /* any but int8_row */
	uint64_t rows, columns;
	uint64_t seed; /* of the rows' hashes: the region's, random, never used before */
	enum gw_huge_policy huge;
	int numa;         /* as gw_arena_options.numa */
	unsigned threads; /* that fill; 0: as many as there are processors */
	struct gw_row_initial initial;
	_Atomic uint64_t *filled; /* counts the rows that have their values, for who waits; NULL: nobody does */
};

/* What a store of these rows takes: the format, and the bytes of its rows. GW_INVALID, GW_LIMIT, GW_UNSUPPORTED. */
gw_status gw_row_store_measure(gw_dtype dtype, uint64_t rows, uint64_t columns, struct gw_row_format *format,
			       uint64_t *bytes);

/* Takes the memory and fills it. Nothing of it is seen by anybody before this returns; it takes as long as the memory
 * is large: never on a thread that serves connections. Errors of measure, gw_row_initial_check, gw_arena_create,
 * `copy`. */
gw_status gw_row_store_create(const struct gw_row_store_options *options, struct gw_row_store **out);
void gw_row_store_destroy(struct gw_row_store *store); /* no call may be under way; NULL is allowed */

const struct gw_row_format *gw_row_store_format(const struct gw_row_store *store);
gw_dtype gw_row_store_dtype(const struct gw_row_store *store);
uint64_t gw_row_store_rows(const struct gw_row_store *store);
uint64_t gw_row_store_columns(const struct gw_row_store *store);
uint64_t gw_row_store_seed(const struct gw_row_store *store);
struct gw_arena *gw_row_store_arena(const struct gw_row_store *store); /* base and descriptor; stays the store's */
uint64_t gw_row_store_bytes(const struct gw_row_store *store);         /* taken: rows and state */

/* --- Turns: for threads that serve others, and neither wait for a row nor work for long at a time ---
 *
 * Each call on many rows has a form that takes a turn. It goes on where the last one ended, and does rows, one at
 * least, until all are done (GW_OK), the turn has cost what it may, or another thread has the next row: GW_AGAIN,
 * without a text. The arguments are the same each time, though they may have moved. Errors come before the first row.
 */
struct gw_row_slice {
	uint64_t at;   /* rows that are done, of a push: different ones. Before the first turn: 0, or what an earlier
			  call with the same arguments has done already */
	uint64_t cost; /* that is left of this turn, to be set before each: bytes, and GW_ROW_SLICE_COST for a row */
	bool taken;    /* GW_AGAIN: another thread has the next row */
	bool checked;  /* the calls' own, as what follows */
	uint64_t grouped, groups;
};
#define GW_ROW_SLICE_COST 128u

/* Copies rows out, one behind the other, each whole: each was taken alone for the copy (PULL). GW_RANGE names the first
 * row that there is not; nothing is copied then. */
gw_status gw_row_store_read(struct gw_row_store *store, const uint64_t *rows, uint64_t n, void *out);
gw_status gw_row_store_read_range(struct gw_row_store *store, uint64_t first, uint64_t n, void *out);
gw_status gw_row_store_read_slice(struct gw_row_store *store, struct gw_row_slice *turn, const uint64_t *rows,
				  uint64_t n, void *out);

/* Overwrites rows; of equal ones the last in the call counts. GW_RANGE: nothing is written. */
gw_status gw_row_store_write(struct gw_row_store *store, const uint64_t *rows, uint64_t n, const void *values);
gw_status gw_row_store_write_range(struct gw_row_store *store, uint64_t first, uint64_t n, const void *values);
gw_status gw_row_store_write_slice(struct gw_row_store *store, struct gw_row_slice *turn, const uint64_t *rows,
				   uint64_t n, const void *values);

/* How many elements of rows first to first + n are not zero (-0.0 is zero). GW_RANGE, GW_NO_MEMORY. */
gw_status gw_row_store_count_nonzero(struct gw_row_store *store, uint64_t first, uint64_t n, uint64_t *out);
/* *out: those of this turn. */
gw_status gw_row_store_count_slice(struct gw_row_store *store, struct gw_row_slice *turn, uint64_t first, uint64_t n,
				   uint64_t *out);

/* --- Training --- */

/* Bytes of state that an optimizer needs for these rows, for a budget to be asked before. */
uint64_t gw_row_store_state_bytes(enum gw_optimizer_kind kind, uint64_t rows, uint64_t columns);

/* GW_UNSUPPORTED: these rows are no floating-point numbers (float64 is not trained either). */
gw_status gw_row_store_trainable(const struct gw_row_store *store);

/* Makes room for an optimizer's state, zeroed, if there is none yet. GW_EXISTS: there is another optimizer's, and
 * whose; GW_UNSUPPORTED; GW_NO_MEMORY. */
gw_status gw_row_store_prepare(struct gw_row_store *store, enum gw_optimizer_kind kind);

/* The optimizer that the store has state of: false as long as there is none. */
bool gw_row_store_trained(const struct gw_row_store *store, enum gw_optimizer_kind *kind);

/* What a push works with: kept by the calling thread from call to call, and ended with gw_row_push_scratch_free.
 * Zero-initialized is empty. */
struct gw_row_push_scratch {
	struct gw_hash_map map;
	struct gw_vec numbers, floats;
};
void gw_row_push_scratch_free(struct gw_row_push_scratch *scratch);

/* Applies gradients [n][columns]: equal rows as the optimizer's `combine` says, as one. squares: NULL; or, for an
 * optimizer that needs them with GW_COMBINE_EACH, where a caller has added gradients for equal rows up already, the sum
 * of their mean(g^2), [n]. Prepares state if need be. GW_INVALID, GW_RANGE, GW_NO_MEMORY and the errors of prepare:
 * nothing has changed then. n < 2^32. */
gw_status gw_row_store_push(struct gw_row_store *store, const struct gw_optimizer *optimizer, const uint64_t *rows,
			    uint64_t n, const float *gradients, const float *squares,
			    struct gw_row_push_scratch *scratch);
/* The scratch is the call's until its last turn. */
gw_status gw_row_store_push_slice(struct gw_row_store *store, struct gw_row_slice *turn,
				  const struct gw_optimizer *optimizer, const uint64_t *rows, uint64_t n,
				  const float *gradients, const float *squares, struct gw_row_push_scratch *scratch);

/* Copies of rows and of their state, of one moment for each row: for a checkpoint. state: n rows of
 * gw_optimizer_state_floats, wherever they lie, or NULL: no state is wanted. GW_RANGE; GW_INVALID: there is no state to
 * be had. */
gw_status gw_row_store_save(struct gw_row_store *store, uint64_t first, uint64_t n, void *rows, void *state);
gw_status gw_row_store_save_slice(struct gw_row_store *store, struct gw_row_slice *turn, uint64_t first, uint64_t n,
				  void *rows, void *state);

/* Sets some columns of rows' state, [n][floats], from `first` on. GW_RANGE: rows or columns that there are not;
 * GW_INVALID: there is no state. Nothing has changed then. */
gw_status gw_row_store_set_state(struct gw_row_store *store, const uint64_t *rows, uint64_t n, uint64_t first,
				 uint64_t floats, const float *values);
gw_status gw_row_store_set_state_slice(struct gw_row_store *store, struct gw_row_slice *turn, const uint64_t *rows,
				       uint64_t n, uint64_t first, uint64_t floats, const float *values);

#endif
