/* What a server reports of requests and clients: a set of figures for each operation and transport, each operation, and
 * each client. See server/figures.h. */
#ifndef GW_SERVER_CALL_FIGURES_H
#define GW_SERVER_CALL_FIGURES_H

#include "metrics/exposition.h"
#include "transport/service/service.h"

/* Adds "calls", "times" and, if wanted, "clients" to an answer, each a list of objects. Without memory the answer lacks
 * them. */
void gw_call_figures_add(json_t *answer, struct gw_service *service, bool clients);
/* Writes the metrics of calls and times. */
void gw_call_figures_expose(struct gw_service *service, struct gw_exposition *out);

#endif
