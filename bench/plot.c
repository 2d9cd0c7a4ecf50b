/* An SVG plot: background, panels (frame, grid and ticks, lines with their points), legend. Points have titles, which
 * browsers show under the mouse. Every number is checked before it is drawn: a logarithmic axis has no place for a
 * number that is not positive and finite. An axis covers complete decades. If the figures are close together, it starts
 * and ends at 1, 2 or 5 times a power of ten.
 */
#include "bench/plot.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PANEL_WIDTH  460.0
#define PANEL_HEIGHT 300.0
#define LEFT         70.0 /* a panel's margin for the texts of ticks */
#define RIGHT        20.0
#define TOP          70.0
#define BELOW        60.0 /* room for the ticks and the label of the x axis */
#define LEGEND       36.0
#define TICKS_MAX    32u

static const char *const hues[GW_PLOT_HUES] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
					       "#56b4e9", "#8a6d00", "#7b3294", "#404040"};

struct axis {
	double low, high;  /* the range of the values */
	double at, length; /* the axis's place in the plot; a y axis has a negative length */
};

static bool drawable(double value)
{
	return isfinite(value) && value > 0;
}

static double place(const struct axis *axis, double value)
{
	double low = log(axis->low);
	return axis->at + axis->length * ((log(value) - low) / (log(axis->high) - low));
}

/* ---- text ---- */

static void plot_put_text(FILE *to, const char *text)
{
	for (const char *c = text; *c; c++) {
		if (*c == '<')
			fputs("&lt;", to);
		else if (*c == '>')
			fputs("&gt;", to);
		else if (*c == '&')
			fputs("&amp;", to);
		else if (*c == '"')
			fputs("&quot;", to);
		else if ((unsigned char)*c >= 0x20)
			fputc(*c, to);
	}
}

static void label(FILE *to, double x, double y, const char *style, const char *text)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	plot_put_text(to, text);
	fputs("</text>\n", to);
}

/* A number with its unit: "8 B", "4 KiB", "20 us", "1.5 M". */
static void write_value(char text[32], enum gw_plot_unit unit, double value)
{
	static const struct {
		double one;
		const char *name;
	} scales[][5] = {
		[GW_PLOT_BYTES] = {{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}},
		[GW_PLOT_SECONDS] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " \u00b5s"}, {1e-9, " ns"}},
		[GW_PLOT_COUNT] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1, ""}},
	};
	unsigned i = 0;
	while (scales[unit][i + 1].name && value < scales[unit][i].one * 0.9999)
		i++;
	snprintf(text, 32, "%.3g%s", value / scales[unit][i].one, scales[unit][i].name);
}

/* ---- axes ---- */

static void plot_widen(struct axis *axis, const double *values, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!drawable(values[i]))
			continue;
		axis->low = axis->low > 0 && axis->low < values[i] ? axis->low : values[i];
		axis->high = axis->high > values[i] ? axis->high : values[i];
	}
}

/* The nearest possible tick at or below (above) a value: 1, 2 or 5 times a power of ten. */
static double step_below(double value)
{
	double decade = pow(10, floor(log10(value) + 1e-9));
	return value >= decade * 4.999 ? decade * 5 : value >= decade * 1.999 ? decade * 2 : decade;
}

static double step_above(double value)
{
	double below = step_below(value), decade = pow(10, floor(log10(below) + 1e-9));
	if (below >= value * 0.999)
		return below;
	return below >= decade * 4.999 ? decade * 10 : below >= decade * 1.999 ? decade * 5 : decade * 2;
}

/* Rounds the ends to possible ticks. They never coincide, even for equal figures. */
static void round_ends(struct axis *axis)
{
	if (!(axis->low > 0))
		axis->low = axis->high = 1;
	axis->low = step_below(axis->low * 0.95);
	axis->high = step_above(axis->high * 1.05);
	if (axis->high / axis->low > 20) { /* complete decades */
		axis->low = pow(10, floor(log10(axis->low) + 1e-9));
		axis->high = pow(10, ceil(log10(axis->high) - 1e-9));
	}
}

/* The ticks of a y axis: every decade; with few decades, also 2 and 5 times each. */
static unsigned find_ticks(const struct axis *axis, double ticks[TICKS_MAX])
{
	unsigned count = 0;
	double decades = log10(axis->high) - log10(axis->low);
	double stride = decades > TICKS_MAX - 2 ? pow(10, ceil(decades / (TICKS_MAX - 2))) : 10;
	if (decades > 2.5) {
		for (double tick = axis->low; tick <= axis->high * 1.001 && count < TICKS_MAX; tick *= stride)
			ticks[count++] = tick;
		return count;
	}
	for (double tick = axis->low; tick <= axis->high * 1.001 && count < TICKS_MAX; tick = step_above(tick * 1.1))
		ticks[count++] = tick;
	return count;
}

/* ---- panels ---- */

#define TICK_X "class=\"t\" text-anchor=\"middle\""
#define TICK_Y "class=\"t\" text-anchor=\"end\""

static void draw_x_axis(const struct gw_plot *plot, const struct axis *x, const struct axis *y, FILE *to)
{
	char text[32];
	double bottom = y->at, top = y->at + y->length, last = -1000;
	for (unsigned i = 0; i < plot->points; i++) {
		double at = place(x, plot->x[i]);
		fprintf(to, "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", at, bottom, at,
			top);
		if (at - last < 46) /* its text would touch the text before it */
			continue;
		last = at;
		write_value(text, plot->x_unit, plot->x[i]);
		label(to, at, bottom + 18, TICK_X, text);
	}
	label(to, x->at + x->length / 2, bottom + 40, "class=\"l\" text-anchor=\"middle\"", plot->x_label);
}

static void draw_y_axis(const struct gw_plot_panel *panel, const struct axis *x, const struct axis *y, FILE *to)
{
	char text[32];
	double ticks[TICKS_MAX];
	unsigned count = find_ticks(y, ticks);
	for (unsigned i = 0; i < count; i++) {
		double at = place(y, ticks[i]);
		fprintf(to, "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x->at, at,
			x->at + x->length, at);
		write_value(text, panel->unit, ticks[i]);
		label(to, x->at - 8, at + 4, TICK_Y, text);
	}
}

static void draw_line(const struct gw_plot *plot, const struct gw_plot_panel *panel, const struct gw_plot_line *line,
		      const struct axis *x, const struct axis *y, FILE *to)
{
	const char *dashes = line->dashed ? " stroke-dasharray=\"5 4\"" : "";
	bool drawing = false;
	assert(line->hue < GW_PLOT_HUES);
	fprintf(to, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s d=\"", hues[line->hue],
		line->dashed ? "1.3" : "2", dashes);
	for (unsigned i = 0; i < plot->points; i++) {
		if (drawable(line->y[i]))
			fprintf(to, "%s%.1f %.1f", drawing ? "L" : "M", place(x, plot->x[i]), place(y, line->y[i]));
		drawing = drawable(line->y[i]);
	}
	fputs("\"/>\n", to);
	for (unsigned i = 0; i < plot->points; i++) {
		char size[32], value[32];
		if (!drawable(line->y[i]))
			continue;
		write_value(size, plot->x_unit, plot->x[i]);
		write_value(value, panel->unit, line->y[i]);
		fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\"><title>", place(x, plot->x[i]),
			place(y, line->y[i]), line->dashed ? "1.8" : "3", hues[line->hue]);
		plot_put_text(to, line->name);
		fprintf(to, ", %s: %s</title></circle>\n", size, value);
	}
}

static void draw_panel(const struct gw_plot *plot, const struct gw_plot_panel *panel, double left, FILE *to)
{
	struct axis x = {.at = left + LEFT, .length = PANEL_WIDTH};
	struct axis y = {.at = TOP + PANEL_HEIGHT, .length = -PANEL_HEIGHT};
	for (unsigned i = 0; i < panel->line_count; i++)
		plot_widen(&y, panel->lines[i].y, plot->points);
	plot_widen(&x, plot->x, plot->points);
	round_ends(&y);
	x.low *= 0.8;
	x.high *= 1.25;
	label(to, x.at + x.length / 2, TOP - 14, "class=\"h\" text-anchor=\"middle\"", panel->title);
	draw_x_axis(plot, &x, &y, to);
	draw_y_axis(panel, &x, &y, to);
	fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#888\"/>\n",
		x.at, TOP, PANEL_WIDTH, PANEL_HEIGHT);
	for (unsigned i = 0; i < panel->line_count; i++)
		draw_line(plot, panel, &panel->lines[i], &x, &y, to);
}

/* Only hues that have at least one point in the first panel. */
static void draw_legend(const struct gw_plot *plot, FILE *to)
{
	double x = LEFT, y = TOP + PANEL_HEIGHT + BELOW + 10;
	bool drawn[GW_PLOT_HUES] = {false};
	const struct gw_plot_panel *panel = &plot->panels[0];
	for (unsigned i = 0; i < panel->line_count; i++) {
		const struct gw_plot_line *line = &panel->lines[i];
		bool any = false;
		for (unsigned p = 0; p < plot->points; p++)
			any |= drawable(line->y[p]);
		if (!any || drawn[line->hue])
			continue;
		drawn[line->hue] = true;
		fprintf(to,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"3\"/>\n", x,
			y, x + 26, y, hues[line->hue]);
		label(to, x + 32, y + 4, "class=\"l\"", line->name);
		x += 62 + 8 * (double)strlen(line->name);
	}
}

void gw_plot_write(const struct gw_plot *plot, FILE *to)
{
	double panel = LEFT + PANEL_WIDTH + RIGHT, width = plot->panel_count * panel;
	double height = TOP + PANEL_HEIGHT + BELOW + LEGEND;
	assert(plot->points > 0 && plot->panel_count > 0);
	for (unsigned i = 0; i < plot->points; i++)
		assert(drawable(plot->x[i]) && (i == 0 || plot->x[i] > plot->x[i - 1]));
	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n"
		"<style>text{font-family:-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif;fill:#222}"
		".t{font-size:12px}.l{font-size:13px}.h{font-size:15px}.g{stroke:#ddd;stroke-width:1}</style>\n"
		"<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n",
		width, height, width, height, width, height);
	label(to, width / 2, 28, "font-size=\"18\" text-anchor=\"middle\"", plot->title);
	for (unsigned i = 0; i < plot->panel_count; i++)
		draw_panel(plot, &plot->panels[i], i * panel, to);
	draw_legend(plot, to);
	fputs("</svg>\n", to);
}
