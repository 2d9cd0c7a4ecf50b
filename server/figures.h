/* What a server reports: a row of one table for each figure.
 *
 *   gw_server_figures -> values -> the table -> the answer to GW_OP_STATS
 *                                          `-> the columns of `graphwire stat` and of cluster.py's status
 *
 * A new figure changes figures.c alone: a field of struct figure_values, a row of the table, and the line that fills
 * the field in. Counters of the transports are in the values already (struct gw_service_counters). */
#ifndef GW_SERVER_FIGURES_H
#define GW_SERVER_FIGURES_H

#include <jansson.h>

#include "core/errors/units.h"
#include "server/server.h"

enum gw_figure_kind {
	GW_FIGURE_TEXT,    /* const char * */
	GW_FIGURE_GAUGE,   /* may rise and fall; kept for the life of the server if the server never changes it */
	GW_FIGURE_COUNTER, /* only rises */
};

enum gw_figure_unit {
	GW_FIGURE_NUMBER,  /* uint64_t, shown as it is; a text */
	GW_FIGURE_OF_NEXT, /* uint64_t, shown with the next row's figure: "0/2" */
	GW_FIGURE_COUNT,   /* uint64_t, shown with k, M, G */
	GW_FIGURE_BYTES,   /* uint64_t */
	GW_FIGURE_SECONDS, /* double */
};

enum gw_figure_tables {
	GW_FIGURE_IN_STAT = 1,    /* a column of `graphwire stat` */
	GW_FIGURE_IN_CLUSTER = 2, /* a column of `cluster.py status`, which has own columns for what a record says */
	GW_FIGURE_IN_BOTH = 3,
};

struct gw_figure {
	const char *name; /* in the answer and in --json */
	const char *help;
	enum gw_figure_unit unit;
	enum gw_figure_kind kind;
	size_t offset;               /* in the values */
	const char *column;          /* the heading; NULL: in no table */
	int width;                   /* of the column in `stat`; below 0: aligned at the left */
	enum gw_figure_tables where; /* 0: in no table */
};

/* In the order of the columns; ended by a row without a name. */
extern const struct gw_figure gw_figures[];

/* Reads all figures of a server now and makes an object of them; NULL: no memory. The caller frees it. */
json_t *gw_server_figures(const struct gw_server *server);
/* The same of values that a test made: gw_figures_bytes bytes, in which each row has its offset. */
extern const size_t gw_figures_bytes;
json_t *gw_figures_json(const void *values);

#define GW_FIGURE_TEXT_MAX 64
/* A figure of an answer as a table shows it: cut, without control characters, "-" if the answer lacks a text. Writes to
 * the buffer and returns it. */
char *gw_figure_text(const struct gw_figure *figure, const json_t *answer, char text[GW_FIGURE_TEXT_MAX]);

#endif
