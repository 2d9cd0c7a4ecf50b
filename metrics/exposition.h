/* Figures as the text that scrapers read: Prometheus' text format 0.0.4, or OpenMetrics 1.0.
 *
 *   begin ──► figures, table by table: a family for each metric, a sample for each set of values ──► end: "# EOF"
 *
 * The formats differ in names: OpenMetrics calls a family by its name without "_total" and "_info", and has units. A
 * shortage of memory is remembered, and gw_exposition_end returns it. */
#ifndef GW_METRICS_EXPOSITION_H
#define GW_METRICS_EXPOSITION_H

#include <stdbool.h>

#include "core/memory/vec.h"
#include "metrics/figure.h"

enum gw_exposition_format { GW_EXPOSITION_PROMETHEUS, GW_EXPOSITION_OPENMETRICS };

struct gw_exposition {
	enum gw_exposition_format format;
	gw_status status; /* GW_NO_MEMORY: the text is cut */
	struct gw_vec text;
	size_t bytes;
};

extern const char *const gw_exposition_types[]; /* the content type of each format */

void gw_exposition_begin(struct gw_exposition *exposition, enum gw_exposition_format format);
/* Adds the metrics of a table for `count` sets of values, which lie `stride` bytes apart. labels[i]: the labels of set
 * i, as gw_exposition_label writes them; NULL: none. A table without sets adds nothing. */
void gw_exposition_figures(struct gw_exposition *exposition, const struct gw_figure *table, const void *values,
			   size_t stride, const char *const *labels, uint32_t count);
gw_status gw_exposition_end(struct gw_exposition *exposition);
void gw_exposition_free(struct gw_exposition *exposition);

#define GW_EXPOSITION_LABELS_MAX 256
/* Appends name="value" to a zero-terminated list of labels, escaped; a byte that is not UTF-8 becomes '?'. A label that
 * does not fit is left out. */
void gw_exposition_label(char labels[GW_EXPOSITION_LABELS_MAX], const char *name, const char *value);

#endif
