/* Pictures of figures over a size, as SVG: panels side by side, logarithmic axes, a legend below. */
#ifndef GW_BENCH_PLOT_H
#define GW_BENCH_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#define GW_PLOT_HUES 8u /* colours of lines */

/* What the numbers of an axis are: how its ticks read. */
enum gw_plot_unit {
	GW_PLOT_BYTES,   /* 8 B, 4 KiB: ticks at the points themselves */
	GW_PLOT_SECONDS, /* 20 us */
	GW_PLOT_COUNT,   /* 10 M */
};

struct gw_plot_line {
	const char *name; /* lines of one name and hue share an entry of the legend */
	unsigned hue;     /* < GW_PLOT_HUES */
	bool dashed;
	const double *y; /* [points]; what is not a positive number is left out */
};

struct gw_plot_panel {
	const char *title;
	enum gw_plot_unit unit; /* of y */
	const struct gw_plot_line *lines;
	unsigned line_count;
};

struct gw_plot {
	const char *title, *x_label;
	enum gw_plot_unit x_unit;
	const double *x; /* [points], positive, ascending */
	unsigned points; /* at least 1 */
	const struct gw_plot_panel *panels;
	unsigned panel_count; /* at least 1 */
};

/* Writes the picture, a whole SVG file in UTF-8 without references to anything outside. Errors show in ferror(). */
void gw_plot_write(const struct gw_plot *plot, FILE *to);

#endif
