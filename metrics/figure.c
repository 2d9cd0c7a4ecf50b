/* Figures as JSON and as cells of a table. */
#include "metrics/figure.h"

#include <stdio.h>

static json_t *latency_json(const struct gw_latency *latency)
{
	json_t *buckets = json_array();
	for (uint32_t i = 0; buckets && i < GW_LATENCY_BUCKETS; i++)
		json_array_append_new(buckets, json_integer((json_int_t)latency->buckets[i]));
	return json_pack("{s:f, s:o}", "sum_s", (double)latency->ns / 1e9, "buckets", buckets);
}

static json_t *value_json(const struct gw_figure *figure, const void *values)
{
	const void *at = (const char *)values + figure->offset;
	if (figure->kind == GW_FIGURE_TEXT)
		return json_string(*(const char *const *)at);
	if (figure->kind == GW_FIGURE_HISTOGRAM)
		return latency_json(at);
	if (figure->unit == GW_FIGURE_SECONDS)
		return json_real(*(const double *)at);
	return json_integer((json_int_t) * (const uint64_t *)at);
}

json_t *gw_figures_json(const struct gw_figure *table, const void *values)
{
	json_t *object = json_object();
	for (const struct gw_figure *figure = table; object && figure->help; figure++) {
		if (figure->name && json_object_set_new(object, figure->name, value_json(figure, values)) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

char *gw_figure_text(const struct gw_figure *figure, const json_t *answer, char text[GW_FIGURE_TEXT_MAX])
{
	const json_t *value = json_object_get(answer, figure->name);
	double number = json_number_value(value);
	if (figure->kind == GW_FIGURE_TEXT)
		gw_text_printable(text, GW_FIGURE_TEXT_MAX, json_string_value(value));
	else if (figure->unit == GW_FIGURE_OF_NEXT)
		snprintf(text, GW_FIGURE_TEXT_MAX, "%.0f/%.0f", number,
			 json_number_value(json_object_get(answer, figure[1].name)));
	else if (figure->unit == GW_FIGURE_COUNT)
		gw_text_count(text, number);
	else if (figure->unit == GW_FIGURE_BYTES)
		gw_text_bytes(text, number);
	else if (figure->unit == GW_FIGURE_SECONDS)
		gw_text_duration(text, number);
	else
		snprintf(text, GW_FIGURE_TEXT_MAX, "%.0f", number);
	return text;
}
