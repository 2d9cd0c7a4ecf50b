/* Writes numbers by hand: a scrape has hundreds of them, and printf would take most of its time. */
#include "metrics/exposition.h"

#include <stdio.h>
#include <string.h>

#define USUAL_BYTES (32u << 10)

const char *const gw_exposition_types[] = {"text/plain; version=0.0.4; charset=utf-8",
					   "application/openmetrics-text; version=1.0.0; charset=utf-8"};

/* --- Text. --- */

static void expose_bytes(struct gw_exposition *e, const char *bytes, size_t count)
{
	if (e->status == GW_OK && e->bytes + count > e->text.capacity)
		e->status = gw_vec_reserve(&e->text, e->bytes + count);
	if (e->status != GW_OK || !e->text.data)
		return;
	memcpy((char *)e->text.data + e->bytes, bytes, count);
	e->bytes += count;
}

static void expose_text(struct gw_exposition *e, const char *text)
{
	if (text)
		expose_bytes(e, text, strlen(text));
}

static void expose_number(struct gw_exposition *e, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);
	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	expose_bytes(e, digits + at, sizeof(digits) - at);
}

/* A number of seconds, with the digits of a nanosecond and without zeros at the end. */
static void expose_ns(struct gw_exposition *e, uint64_t ns)
{
	char fraction[10] = ".000000000";
	uint64_t rest = ns % 1000000000;
	size_t used = sizeof(fraction);
	expose_number(e, ns / 1000000000);
	for (size_t i = sizeof(fraction) - 1; i > 0; i--, rest /= 10)
		fraction[i] = (char)('0' + rest % 10);
	while (fraction[used - 1] == '0')
		used--;
	expose_bytes(e, fraction, used > 1 ? used : 2); /* ".0" */
}

/* The length of the UTF-8 character at `text`; 0: it is none. */
static size_t utf8_length(const unsigned char *text)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	for (size_t length = 1; length <= 4; length++) {
		if ((text[0] & forms[length - 1].mask) != forms[length - 1].lead)
			continue;
		uint32_t code = text[0] & (unsigned char)~forms[length - 1].mask;
		for (size_t i = 1; i < length; i++) {
			if ((text[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (text[i] & 0x3f);
		}
		bool surrogate = code >= 0xd800 && code < 0xe000;
		return code >= forms[length - 1].least && code < 0x110000 && !surrogate ? length : 0;
	}
	return 0;
}

void gw_exposition_label(char labels[GW_EXPOSITION_LABELS_MAX], const char *name, const char *value)
{
	const size_t before = strlen(labels), most = GW_EXPOSITION_LABELS_MAX - 2; /* the last quote, and the zero */
	int head = snprintf(labels + before, GW_EXPOSITION_LABELS_MAX - before, "%s%s=\"", before ? "," : "", name);
	size_t used = before + (size_t)head;
	const unsigned char *from = (const unsigned char *)value;
	for (size_t length; used < most && *from; from += length) {
		char escaped[3] = {'\\', (char)*from, 0}, plain[5] = {0};
		length = utf8_length(from);
		memcpy(plain, length ? (const char *)from : "?", length ? length : 1);
		if (*from == '\n')
			escaped[1] = 'n';
		else if (*from < ' ')
			plain[0] = '?';
		const char *text = strchr("\\\"\n", *from) ? escaped : plain;
		if (used + strlen(text) > most) {
			used = most + 1;
			break;
		}
		memcpy(labels + used, text, strlen(text));
		used += strlen(text);
		length = length ? length : 1;
	}
	if (used > most) {
		labels[before] = '\0';
		return;
	}
	labels[used] = '"';
	labels[used + 1] = '\0';
}

/* --- Families. --- */

static const char *suffix_of(const struct gw_figure *figure)
{
	if (figure->label)
		return "_info";
	return figure->kind == GW_FIGURE_COUNTER ? "_total" : "";
}

static void expose_head(struct gw_exposition *e, const struct gw_figure *figure)
{
	static const char *const types[] = {"gauge", "gauge", "counter", "histogram"}; /* enum gw_figure_kind */
	const bool open = e->format == GW_EXPOSITION_OPENMETRICS;
	const char *type = figure->label && open ? "info" : figure->label ? "gauge" : types[figure->kind];
	char line[512];
	char family[128];
	snprintf(family, sizeof(family), "%s%s", figure->metric, open ? "" : suffix_of(figure));
	snprintf(line, sizeof(line), "# HELP %s %s\n# TYPE %s %s\n", family,
		 figure->label ? "Labels that say what this process is and serves" : figure->help, family, type);
	expose_text(e, line);
	if (!open || figure->label || (figure->unit != GW_FIGURE_BYTES && figure->unit != GW_FIGURE_SECONDS))
		return;
	snprintf(line, sizeof(line), "# UNIT %s %s\n", family, figure->unit == GW_FIGURE_BYTES ? "bytes" : "seconds");
	expose_text(e, line);
}

/* more: a label after the others; NULL: none. */
static void expose_name(struct gw_exposition *e, const char *metric, const char *suffix, const char *labels,
			const char *more)
{
	const bool some = labels && *labels;
	expose_text(e, metric);
	expose_text(e, suffix);
	if (some || more) {
		expose_text(e, "{");
		expose_text(e, some ? labels : "");
		expose_text(e, some && more ? "," : "");
		expose_text(e, more ? more : "");
		expose_text(e, "}");
	}
	expose_text(e, " ");
}

static void expose_histogram(struct gw_exposition *e, const struct gw_figure *figure, const struct gw_latency *latency,
			     const char *labels)
{
	char name[2 * GW_EXPOSITION_LABELS_MAX];
	const bool some = labels && *labels;
	uint64_t count = 0;
	size_t name_bytes = (size_t)snprintf(name, sizeof(name), "%s_bucket{%s%sle=\"", figure->metric,
					     some ? labels : "", some ? "," : "");
	for (uint32_t i = 0; i < GW_LATENCY_BUCKETS; i++) {
		count += latency->buckets[i];
		expose_bytes(e, name, name_bytes);
		if (i + 1 < GW_LATENCY_BUCKETS)
			expose_ns(e, gw_latency_bound_ns(i));
		else
			expose_bytes(e, "+Inf", 4);
		expose_text(e, "\"} ");
		expose_number(e, count);
		expose_text(e, "\n");
	}
	expose_name(e, figure->metric, "_sum", labels, NULL);
	expose_ns(e, latency->ns);
	expose_text(e, "\n");
	expose_name(e, figure->metric, "_count", labels, NULL);
	expose_number(e, count);
	expose_text(e, "\n");
}

static void expose_sample(struct gw_exposition *e, const struct gw_figure *figure, const void *values,
			  const char *labels)
{
	const void *at = (const char *)values + figure->offset;
	if (figure->kind == GW_FIGURE_HISTOGRAM) {
		expose_histogram(e, figure, at, labels);
		return;
	}
	expose_name(e, figure->metric, suffix_of(figure), labels, NULL);
	if (figure->unit == GW_FIGURE_SECONDS)
		expose_ns(e, (uint64_t)(*(const double *)at * 1e9 + 0.5));
	else
		expose_number(e, *(const uint64_t *)at);
	expose_text(e, "\n");
}

/* The rows of one information are adjacent: its labels. Returns the row after them. */
static const struct gw_figure *expose_info(struct gw_exposition *e, const struct gw_figure *first, const void *values,
					   const char *labels)
{
	char all[4 * GW_EXPOSITION_LABELS_MAX];
	size_t used = (size_t)snprintf(all, sizeof(all), "%s", labels ? labels : "");
	const struct gw_figure *figure = first;
	for (; figure->metric && figure->label && strcmp(figure->metric, first->metric) == 0; figure++) {
		char number[24], one[GW_EXPOSITION_LABELS_MAX] = "";
		const void *at = (const char *)values + figure->offset;
		snprintf(number, sizeof(number), "%llu",
			 figure->kind == GW_FIGURE_TEXT ? 0 : (unsigned long long)*(const uint64_t *)at);
		gw_exposition_label(one, figure->label,
				    figure->kind == GW_FIGURE_TEXT ? *(const char *const *)at : number);
		if (*one && used + strlen(one) + 2 < sizeof(all))
			used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used ? "," : "", one);
	}
	expose_name(e, first->metric, suffix_of(first), all, NULL);
	expose_text(e, "1\n");
	return figure;
}

void gw_exposition_figures(struct gw_exposition *e, const struct gw_figure *table, const void *values, size_t stride,
			   const char *const *labels, uint32_t count)
{
	for (const struct gw_figure *figure = table, *next; figure->help && count; figure = next) {
		next = figure + 1;
		if (!figure->metric)
			continue;
		expose_head(e, figure);
		for (uint32_t i = 0; i < count; i++) {
			const void *set = (const char *)values + i * stride;
			const char *its = labels ? labels[i] : NULL;
			if (figure->label)
				next = expose_info(e, figure, set, its);
			else
				expose_sample(e, figure, set, its);
		}
	}
}

void gw_exposition_begin(struct gw_exposition *exposition, enum gw_exposition_format format)
{
	*exposition = (struct gw_exposition){.format = format};
	exposition->status = gw_vec_reserve(&exposition->text, USUAL_BYTES);
}

gw_status gw_exposition_end(struct gw_exposition *e)
{
	if (e->format == GW_EXPOSITION_OPENMETRICS)
		expose_text(e, "# EOF\n");
	return e->status;
}

void gw_exposition_free(struct gw_exposition *e)
{
	gw_vec_free(&e->text);
	e->bytes = 0;
}
