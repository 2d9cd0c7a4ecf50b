/* Edges that are sorted into lists, a run of lists at a time, so that the memory of a run suffices for any number of
 * edges.
 *
 *   one run        the edges as they are ────────────────────────────────────┐
 *   several runs   count the edges of each row -> runs of about equal size    ├─► gw_runs_sort: the lists of a run
 *                  -> edges and their arrays scattered to the runs' places ──┘
 *
 * The runs follow each other in the order of rows, and each is sorted as gw_csc_build sorts, stably. So the lists are
 * the same for any number of runs. The scatter goes through its input in order, and writes to as many places as there
 * are runs, through buffers (run_writer.h). Blocks are from the builder's budget (spill.h).
 */
#ifndef GW_TOOLS_BUILDER_RUNS_H
#define GW_TOOLS_BUILDER_RUNS_H

#include "core/graph/csc.h"
#include "tools/builder/spill.h"

#define GW_RUNS_MAX    4096u
#define GW_RUNS_BLOCKS 8u

struct gw_runs {
	struct gw_coo coo;      /* the edges; scattered, with dst counted from the run's first row, if count > 1 */
	const uint64_t *input;  /* [edges] the input row of each edge; NULL: its index */
	uint32_t count;         /* at least 1 */
	uint64_t *rows, *edges; /* [count + 1]: the first row and the first edge of each run */
	uint64_t *indptr;       /* [rows + 1]; NULL before the only run is sorted */
	const uint64_t *to;     /* [edges] the row of each edge before it was scattered */
	struct gw_spill *spill;
	uint64_t memory; /* for buffers while edges are scattered */
	void *blocks[GW_RUNS_BLOCKS];
	uint32_t block_count;
};

/* One run, sorted. Position i of its lists has the edge first + order[i] of gw_runs.coo. */
struct gw_run {
	uint64_t first_row, rows, first, count;
	struct gw_csc csc; /* indptr from 0; NULL in the only run, whose indptr gw_runs has */
};

/* Divides the edges into runs of at most run_edges edges, if one list has not more. coo and input are borrowed, with
 * one dst for each row of lists. run_edges 0: one run. The runs do not depend on the number of
 * threads. GW_RANGE names the edge whose id is too large; GW_NO_MEMORY,
 * GW_IO. Free runs in any case. */
gw_status gw_runs_make(struct gw_spill *spill, const struct gw_coo *coo, const uint64_t *input, uint64_t run_edges,
		       unsigned threads, struct gw_runs *out);
/* The bytes of an edge in a run. */
uint64_t gw_runs_edge_bytes(const struct gw_coo *coo);
/* Passes a block of the spill to the runs. NULL is allowed. */
void gw_runs_own(struct gw_runs *runs, void *block);
void gw_runs_free(struct gw_runs *runs);

/* Sorts run r. gw_run_free frees it. */
gw_status gw_runs_sort(struct gw_runs *runs, uint32_t r, unsigned threads, struct gw_run *out);
void gw_run_free(struct gw_run *run);

/* Scatters rows of an input array, `bytes` each, to the places of their edges: row i of *out belongs to edge i of
 * runs->coo. With one run *out is NULL: the row of an edge is where the input has it. by: the input row of each edge
 * before the scatter; NULL: its index. *out is a block of the spill. GW_NO_MEMORY, GW_IO. */
gw_status gw_runs_scatter(const struct gw_runs *runs, const void *data, uint64_t bytes, const uint64_t *by, void **out);

#endif
