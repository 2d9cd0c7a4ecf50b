/* Fetches rows that change, and rows on disk. One-sided reads fetch rows that change if their region is open.
 * Otherwise, for rows that were torn at every attempt, and for rows on disk, requests to the owner fetch them. */
#ifndef GW_CLIENT_ROWS_ROWS_PULL_H
#define GW_CLIENT_ROWS_ROWS_PULL_H

#include "client/engine/fan_in.h"
#include "client/link/link.h"
#include "core/memory/vec.h"

/* The rows of one part. */
struct gw_pull {
	const char *name;             /* of the tensor; or NULL */
	const struct gw_place *place; /* of the part */
	uint64_t epoch;
	uint64_t *rows; /* offsets in the region: row numbers times `step`. Rewritten if some rows are torn */
	uint32_t *to;   /* destinations: rows of `out`; also rewritten. NULL, on disk alone: 0, 1, 2, ... */
	uint64_t count;
	uint64_t step;
	uint8_t *out;
	uint64_t out_local; /* offset of `out` in the op's buffer */
	uint64_t row_bytes;
	const struct gw_fan_in *reads; /* the gather that this pull is a piece of */
	_Atomic uint64_t *read;        /* the engine's count of rows read without a request; NULL: not counted */
	/* Private: */
	uint64_t at, asked;
	bool torn;             /* the requested rows were read before and were torn */
	struct gw_vec request; /* its memory is kept from gather to gather */
	struct gw_link *link;
	void *owner; /* owner of the link op, restored before `done` */
	void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion);
};

/* Makes room for `count` pulls. On failure no pull exists. */
gw_status gw_pulls_reserve(struct gw_pull **pulls, uint64_t *room, uint64_t count);
void gw_pulls_free(struct gw_pull *pulls, uint64_t room);

/* Begins a pull. `op` is a gather of the rows from their region. The pull reads the rows if possible, else requests
 * them, with one request after another. op->done reports the end. Cancelling `op` ends the pull. */
void gw_pull_start(struct gw_pull *pull, struct gw_link *link, struct gw_link_op *op);

#endif
