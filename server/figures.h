/* What a server reports: a row of one table for each figure (metrics/figure.h).
 *
 *   gw_server_figures -> values -> the table -> the answer to GW_OP_STATS
 *                                          |-> the columns of `graphwire stat` and of cluster.py's status
 *                                          `-> metrics (server/metrics.c)
 *
 * A new figure changes figures.c alone: a field of struct figure_values, a row of the table, and the line that fills
 * the field in. Counters of the transports are in the values already (struct gw_service_counters). */
#ifndef GW_SERVER_FIGURES_H
#define GW_SERVER_FIGURES_H

#include "metrics/exposition.h"
#include "server/server.h"

/* In the order of the columns; ended by a row without a name. */
extern const struct gw_figure gw_figures[];
extern const size_t gw_figures_bytes; /* of the values */

/* Reads all figures of a server now and makes an object of them; NULL: no memory. The caller frees it. */
json_t *gw_server_figures(const struct gw_server *server);
/* Writes all figures that are scraped. Before the part is served: those of the build and the part alone. */
void gw_server_expose(const struct gw_server *server, struct gw_exposition *out);

#endif
