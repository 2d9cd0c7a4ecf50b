/* Picks from lists whose columns arrive from elsewhere, round by round, for all lists at once.
 *
 *   begin (offsets) ─▶ next: GW_AGAIN ─▶ the caller brings the entries ─▶ next ... ─▶ next: GW_OK, the picks are
 * complete
 *
 * The lists are cut into the runs that the memory driver would use, and each run goes through the same rounds of its
 * kind. So one round trip serves all lists.
 */
#ifndef GW_SAMPLER_PICKS_ROUNDS_H
#define GW_SAMPLER_PICKS_ROUNDS_H

#include "core/graph/picks.h"
#include "sampler/draw.h"

/* Entries [first, first + count) of a column of the part. */
struct gw_column_read {
	enum gw_column column;
	uint64_t first, count;
};

/* Zero-initialized is empty. Reused from draw to draw. */
struct gw_picks_rounds {
	/* After GW_AGAIN: what to read, and where the caller notes the address of each read's entries. */
	const struct gw_column_read *reads; /* [read_count] */
	const void **got;                   /* [read_count] */
	uint64_t read_count;
	/* Private: */
	struct gw_draw draw;
	struct gw_picks *picks;
	uint32_t run_count, round;
	struct gw_vec runs;                              /* struct gw_draw_run, and its share of the vectors below */
	struct gw_vec needs, next_needs, reads_of, gots; /* of all runs */
};

void gw_picks_rounds_free(struct gw_picks_rounds *rounds);

/* begins, ends: positions of the lists [n]. vertices and groups (or NULL) must stay until the picks are complete;
 * begins and ends need not. GW_RANGE, GW_INVALID and GW_NO_MEMORY as gw_picks_from_memory. */
gw_status gw_picks_rounds_begin(struct gw_picks_rounds *rounds, struct gw_picks *picks, const struct gw_draw *draw,
				const uint64_t *vertices, const uint32_t *groups, const uint64_t *begins,
				const uint64_t *ends, uint64_t n);

/* GW_OK: counts and positions of the picks are complete. GW_AGAIN: see above. Other statuses are the kind's. */
gw_status gw_picks_rounds_next(struct gw_picks_rounds *rounds);

#endif
