/* Figures of the process itself, under the names that all Prometheus clients use. */
#ifndef GW_METRICS_PROCESS_H
#define GW_METRICS_PROCESS_H

#include "metrics/exposition.h"

extern const struct gw_figure gw_process_figures[];

/* What is read seldom, because it takes long or never changes. */
struct gw_process_look {
	double started_s;      /* since 1970 */
	uint64_t memory_at_ns; /* when the next two were read; 0: never */
	uint64_t available, total;
};

void gw_process_look_begin(struct gw_process_look *look);
void gw_process_expose(struct gw_process_look *look, struct gw_exposition *out);

#endif
