/* A figure: one row of a table says how a value is called, shown and scraped, and where it lies in the values.
 *
 *   values ──► the table ──► JSON: the answers of servers, --json
 *                       ├──► text: the columns of `graphwire stat`
 *                       └──► metrics: metrics/exposition.h
 *
 * The tables are where the values are: server/figures.c, metrics/process.c. */
#ifndef GW_METRICS_FIGURE_H
#define GW_METRICS_FIGURE_H

#include <jansson.h>
#include <stddef.h>

#include "core/errors/units.h"
#include "core/numbers/latency.h"

enum gw_figure_kind {
	GW_FIGURE_TEXT,      /* const char * */
	GW_FIGURE_GAUGE,     /* may rise and fall; kept for the life of the process if the process never changes it */
	GW_FIGURE_COUNTER,   /* only rises */
	GW_FIGURE_HISTOGRAM, /* struct gw_latency */
};

enum gw_figure_unit {
	GW_FIGURE_NUMBER,  /* uint64_t, shown as it is; a text */
	GW_FIGURE_OF_NEXT, /* uint64_t, shown with the next row's figure: "0/2" */
	GW_FIGURE_COUNT,   /* uint64_t, shown with k, M, G */
	GW_FIGURE_BYTES,   /* uint64_t */
	GW_FIGURE_SECONDS, /* double; a histogram */
};

enum gw_figure_tables {
	GW_FIGURE_IN_STAT = 1,    /* a column of `graphwire stat` */
	GW_FIGURE_IN_CLUSTER = 2, /* a column of `cluster.py status`, which has own columns for what a record says */
	GW_FIGURE_IN_BOTH = 3,
};

struct gw_figure {
	const char *name; /* in the answer and in --json; NULL: in neither */
	const char *help;
	enum gw_figure_unit unit;
	enum gw_figure_kind kind;
	size_t offset;               /* in the values */
	const char *column;          /* the heading; NULL: in no table */
	int width;                   /* of the column in `stat`; below 0: aligned at the left */
	enum gw_figure_tables where; /* 0: in no table */
	const char *metric;          /* without the suffix of its kind; NULL: not scraped */
	const char *label; /* the value is this label of `metric`, whose sample is 1; NULL: it is the sample */
};

/* A table ends with a row without help. Makes an object of values; NULL: no memory. The caller frees it. */
json_t *gw_figures_json(const struct gw_figure *table, const void *values);

#define GW_FIGURE_TEXT_MAX 64
/* A figure of an answer as a table shows it: cut, without control characters, "-" if the answer lacks a text. Writes to
 * the buffer and returns it. */
char *gw_figure_text(const struct gw_figure *figure, const json_t *answer, char text[GW_FIGURE_TEXT_MAX]);

#endif
