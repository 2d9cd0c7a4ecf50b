/* Plots of figures over a size, as SVG: panels in a row, logarithmic axes, a legend below. */
#ifndef GW_BENCH_PLOT_H
#define GW_BENCH_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#define GW_PLOT_HUES 8u /* colours of lines */

/* The unit of an axis, which decides the texts of its ticks. */
enum gw_plot_unit {
	GW_PLOT_BYTES,   /* 8 B, 4 KiB: the ticks are at the points */
	GW_PLOT_SECONDS, /* 20 us */
	GW_PLOT_COUNT,   /* 10 M */
};

struct gw_plot_line {
	const char *name; /* lines of one name and hue share an entry of the legend */
	unsigned hue;     /* < GW_PLOT_HUES */
	bool dashed;
	const double *y; /* [points]; values that are not positive numbers are left out */
};

struct gw_plot_panel {
	const char *title;
	enum gw_plot_unit unit; /* the unit of the y axis */
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

/* Writes the plot as a complete SVG file in UTF-8, without references to other files. Check ferror() for errors. */
void gw_plot_write(const struct gw_plot *plot, FILE *to);

#endif
