/* The memory driver: draws from lists whose columns this process can address.
 *
 * A standalone client, a client of a server on its host, and the server itself use it.
 */
#ifndef GW_SAMPLER_DRAW_MEMORY_H
#define GW_SAMPLER_DRAW_MEMORY_H

#include "sampler/draw.h"

/* Draws for run->lists, whose starts gw_lists_read has set. Writes the picks to positions, without gaps, and sets the
 * starts. positions needs room for the sum of the bounds and GW_SLACK more: call gw_draw_run_begin before. entries_max
 * bounds the entries that a round needs, of all lists together: for more, the status is GW_LIMIT. Then a run of the
 * first *too_long lists needs less. If that is 0, the first list alone needs too much. UINT64_MAX: no bound. Other
 * failures as the kind's rounds. */
gw_status gw_draw_from_memory(const struct gw_draw *draw, struct gw_draw_run *run,
			      const struct gw_draw_columns *columns, uint64_t *positions, uint64_t entries_max,
			      uint32_t *too_long);

#endif
