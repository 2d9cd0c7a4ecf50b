/* A row store: the rows of one tensor in one server, or in a standalone client. It knows no network and no graph.
 *
 *   create: memory, then every row's value and trailer, by threads -> the creator publishes it -> read, write, push
 *
 * The rows are in an arena of their own, a memfd on the largest available pages: rows * format.stride bytes from its
 * base. External readers (a mapping, a device) follow core/numbers/row.h. Private memory holds the optimizer's state of
 * each row. The first push or an earlier gw_row_store_prepare allocates the state.
 *
 * Threads: any number of threads may make all calls at once, except create and destroy. Rows are numbered from 0. Each
 * row is locked with its state. A call over many rows is not atomic, but its work on each row is. A call waits while
 * another thread has locked its row. No thread sleeps while it has locked a row. Threads that serve connections must
 * not wait, so they make the same calls in slices.
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
	uint64_t seed; /* seeds the rows' hashes: the region's random seed, never used before */
	enum gw_huge_policy huge;
	int numa;         /* as gw_arena_options.numa */
	unsigned threads; /* threads that fill the rows; 0: one per processor */
	struct gw_row_initial initial;
	_Atomic uint64_t *filled; /* counts the rows filled so far, for a thread that waits; or NULL */
};

/* The memory that a store of these rows needs: the format, and the bytes of its rows. GW_INVALID, GW_LIMIT,
 * GW_UNSUPPORTED. */
gw_status gw_row_store_measure(gw_dtype dtype, uint64_t rows, uint64_t columns, struct gw_row_format *format,
			       uint64_t *bytes);

/* Allocates the memory and fills it. No other thread sees it before the call returns. The time grows with the memory,
 * so never call it on a thread that serves connections. Errors: those of gw_row_store_measure, gw_row_initial_check,
 * gw_arena_create and of the callback `copy`. */
gw_status gw_row_store_create(const struct gw_row_store_options *options, struct gw_row_store **out);
void gw_row_store_destroy(struct gw_row_store *store); /* no call may be in progress; NULL is allowed */

/* --- Hand-over to another process. --- */

/* The memory of a store: its rows, and the state of its optimizer. The descriptors belong to the store. */
struct gw_row_memory {
	int rows_fd, state_fd; /* state_fd -1: no state */
	struct gw_arena_shape rows, state;
	enum gw_optimizer_kind kind;
};
void gw_row_store_memory(const struct gw_row_store *store, struct gw_row_memory *out);

/* Makes a store of another process's memory, while that process still serves it. options: as for the other store,
 * except `threads`, `initial` and `filled`. The rows' memory becomes the store's own if it can be mapped for writing.
 * If clients may map it, it is sealed against new writers: the store then allocates memory, into which
 * gw_row_store_take_rows copies the rows. The state's memory becomes the store's own. Takes over both descriptors,
 * whatever the outcome. GW_INVALID: the memory does not fit the rows; and the errors of gw_arena_create and
 * gw_arena_adopt. */
gw_status gw_row_store_adopt(const struct gw_row_store_options *options, const struct gw_row_memory *memory,
			     struct gw_row_store **out);
/* Adopts a state that the other process allocated afterwards. Takes over memory->state_fd, whatever the outcome. */
gw_status gw_row_store_adopt_state(struct gw_row_store *store, const struct gw_row_memory *memory);
/* Copies the rows, if they are to be copied, when the other process does not write them any more. Returns whether it
 * did. */
bool gw_row_store_take_rows(struct gw_row_store *store);
/* Locks all rows for ever, so that a client that still maps them takes each copy for torn, and asks the server; or
 * unlocks them. No row may be locked otherwise. Rows without a trailer stay as they are. */
void gw_row_store_retire(struct gw_row_store *store, bool retired);

const struct gw_row_format *gw_row_store_format(const struct gw_row_store *store);
uint64_t gw_row_store_rows(const struct gw_row_store *store);
uint64_t gw_row_store_columns(const struct gw_row_store *store);
uint64_t gw_row_store_seed(const struct gw_row_store *store);
/* for its base and descriptor; the store owns it */
struct gw_arena *gw_row_store_arena(const struct gw_row_store *store);

/* --- Slices: for threads that serve others, and must neither wait for a row nor work for long at a time ---
 *
 * Each call on many rows has a form that takes a slice (NULL: all rows at once, for a caller that may wait). A call
 * with a slice continues where the last call ended, and handles at least one row. GW_OK: all rows are done. GW_AGAIN,
 * without a text: the slice's cost is used up, or another thread has locked the next row. Pass the same arguments each
 * time; the arrays may have moved. A call can fail only before it has handled its first row. */
struct gw_row_slice {
	uint64_t at;   /* rows done; in a push, distinct rows (repeats count once). Before the first slice: 0, or the
			  progress of an earlier call with the same arguments */
	uint64_t cost; /* what remains of the slice; the caller sets it before each slice. A row costs its bytes plus
			  GW_ROW_SLICE_COST */
	bool taken;    /* GW_AGAIN because another thread has locked the next row */
	bool checked;  /* private to the calls, like the members below */
	uint64_t grouped, groups;
};
#define GW_ROW_SLICE_COST 128u

/* Copies rows out, one after another; each row is locked for the copy, so it is intact (PULL). GW_RANGE names the first
 * row that does not exist, and nothing is copied. */
gw_status gw_row_store_read(struct gw_row_store *store, const uint64_t *rows, uint64_t n, void *out);
gw_status gw_row_store_read_range(struct gw_row_store *store, uint64_t first, uint64_t n, void *out);
gw_status gw_row_store_read_slice(struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
				  uint64_t n, void *out);

/* Overwrites rows; if a row repeats, its last value counts. GW_RANGE: nothing is written. */
gw_status gw_row_store_write_slice(struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
				   uint64_t n, const void *values);

/* Counts the elements of rows first to first + n - 1 that are not zero (-0.0 is zero). *out counts those of this slice.
 * GW_RANGE, GW_NO_MEMORY. */
gw_status gw_row_store_count_slice(struct gw_row_store *store, struct gw_row_slice *slice, uint64_t first, uint64_t n,
				   uint64_t *out);

/* --- Training --- */

/* Bytes of state that an optimizer needs for these rows, to check a budget in advance. */
uint64_t gw_row_store_state_bytes(enum gw_optimizer_kind kind, uint64_t rows, uint64_t columns);

/* GW_UNSUPPORTED: these rows cannot be trained, because they are not floating-point numbers, or are float64. */
gw_status gw_row_store_trainable(const struct gw_row_store *store);

/* Allocates an optimizer's state, zeroed, unless it exists. GW_EXISTS: the store has another optimizer's state (names
 * it); GW_UNSUPPORTED; GW_NO_MEMORY. */
gw_status gw_row_store_prepare(struct gw_row_store *store, enum gw_optimizer_kind kind);

/* The optimizer whose state the store has; false while the store has no state. */
bool gw_row_store_trained(const struct gw_row_store *store, enum gw_optimizer_kind *kind);

/* A push's working memory. The calling thread keeps it between calls, and frees it with gw_row_push_scratch_free.
 * Zero-initialized is empty. */
struct gw_row_push_scratch {
	struct gw_hash_map map;
	struct gw_vec numbers, floats;
};
void gw_row_push_scratch_free(struct gw_row_push_scratch *scratch);

/* Applies gradients [n][columns]. Gradients for equal rows combine as the optimizer's `combine` selects, and change the
 * row in one step. squares: [n] if the caller has already added up gradients for equal rows, and the optimizer needs
 * squares with GW_COMBINE_EACH; otherwise NULL. squares[i] is the sum of mean(g^2) over the gradients that were added
 * up into gradient i. Prepares state if necessary. GW_INVALID, GW_RANGE, GW_NO_MEMORY and the errors of
 * gw_row_store_prepare leave all rows unchanged. n < 2^32. */
gw_status gw_row_store_push(struct gw_row_store *store, const struct gw_optimizer *optimizer, const uint64_t *rows,
			    uint64_t n, const float *gradients, const float *squares,
			    struct gw_row_push_scratch *scratch);
/* The call owns the scratch until its last slice. */
gw_status gw_row_store_push_slice(struct gw_row_store *store, struct gw_row_slice *slice,
				  const struct gw_optimizer *optimizer, const uint64_t *rows, uint64_t n,
				  const float *gradients, const float *squares, struct gw_row_push_scratch *scratch);

/* Copies rows and their state for a checkpoint, each row with its state at one moment. state: n rows of
 * gw_optimizer_state_floats, at any address; or NULL: no state is wanted. GW_RANGE; GW_INVALID: the store has no
 * state. */
gw_status gw_row_store_save_slice(struct gw_row_store *store, struct gw_row_slice *slice, uint64_t first, uint64_t n,
				  void *rows, void *state);

/* Sets some columns of rows' state, [n][floats], from column `first` on. GW_RANGE: rows or columns do not exist;
 * GW_INVALID: the store has no state. Errors leave the state unchanged. */
gw_status gw_row_store_set_state_slice(struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
				       uint64_t n, uint64_t first, uint64_t floats, const float *values);

#endif
