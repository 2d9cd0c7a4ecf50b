/* Reads a package index (deb-control(5)): stanzas of "Field: value", separated by blank lines.
 *
 * Errors, each with its line: a line of another form, a stanza without a name, an input without stanzas.
 */
#include "tools/import/apt_index.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/memory/alloc.h"
#include "tools/import/table_line.h"

static const char *const field_names[APT_FIELDS] = {
	[APT_DEPENDS] = "Depends",       [APT_PRE_DEPENDS] = "Pre-Depends", [APT_RECOMMENDS] = "Recommends",
	[APT_SUGGESTS] = "Suggests",     [APT_CONFLICTS] = "Conflicts",     [APT_BREAKS] = "Breaks",
	[APT_PROVIDES] = "Provides",     [APT_PACKAGE] = "Package",         [APT_SOURCE] = "Source",
	[APT_MAINTAINER] = "Maintainer", [APT_SECTION] = "Section",         [APT_DESCRIPTION] = "Description",
};

int gw_text_span_compare(struct gw_text_span a, struct gw_text_span b)
{
	uint64_t shorter = a.bytes < b.bytes ? a.bytes : b.bytes;
	int order = shorter ? memcmp(a.at, b.at, shorter) : 0;
	return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static struct gw_text_span trimmed(const char *at, const char *end)
{
	while (at < end && gw_is_blank(*at))
		at++;
	while (end > at && (gw_is_blank(end[-1]) || end[-1] == '\r' || end[-1] == '\n'))
		end--;
	return (struct gw_text_span){.at = at, .bytes = (uint64_t)(end - at)};
}

static int field_of(const char *name, size_t bytes)
{
	for (int i = 0; i < APT_FIELDS; i++) {
		if (strlen(field_names[i]) == bytes && strncasecmp(field_names[i], name, bytes) == 0)
			return i;
	}
	/* Accepts "Description-en" and the like if the plain field is missing. */
	if (bytes > 12 && strncasecmp(name, "Description-", 12) == 0 &&
	    strncasecmp(name, "Description-md5", bytes) != 0)
		return APT_DESCRIPTION;
	return APT_FIELDS;
}

struct apt_reader {
	const struct gw_text *text;
	struct apt_index *index;
	uint32_t room;
	struct apt_package now;
	int field; /* the field that a continuation line belongs to */
	bool any;  /* the stanza has a line */
	uint64_t line, stanza_line;
};

static gw_status end_stanza(struct apt_reader *reader)
{
	if (!reader->any)
		return GW_OK;
	struct apt_index *index = reader->index;
	if (reader->now.fields[APT_PACKAGE].bytes == 0)
		return gw_fail(GW_FORMAT, "%s, line %llu: a stanza without \"Package:\"", reader->text->name,
			       (unsigned long long)reader->stanza_line);
	if (index->count == GW_APT_PACKAGES_MAX)
		return gw_fail(GW_LIMIT, "%s: more than %u packages", reader->text->name, GW_APT_PACKAGES_MAX);
	if (index->count == reader->room) {
		uint32_t room = reader->room ? reader->room * 2 : 1024;
		void *grown = gw_realloc(index->packages, room, sizeof(*index->packages));
		if (!grown)
			return GW_NO_MEMORY;
		index->packages = grown;
		reader->room = room;
	}
	for (int i = 0; i < APT_FIELDS; i++) {
		if (!reader->now.fields[i].at)
			reader->now.fields[i].at = ""; /* an empty field still needs a valid pointer */
	}
	index->packages[index->count++] = reader->now;
	index->stanzas++;
	memset(&reader->now, 0, sizeof(reader->now));
	reader->any = false;
	reader->field = APT_FIELDS;
	return GW_OK;
}

static gw_status read_line(struct apt_reader *reader, const char *at, const char *end)
{
	if (trimmed(at, end).bytes == 0)
		return end_stanza(reader);
	if (gw_is_blank(*at)) { /* the line continues the field */
		if (!reader->any)
			return gw_fail(GW_FORMAT, "%s, line %llu: a continuation line without a field before it",
				       reader->text->name, (unsigned long long)reader->line);
		if (reader->field < APT_FIELDS && reader->now.fields[reader->field].at)
			reader->now.fields[reader->field].bytes =
				(uint64_t)(end - reader->now.fields[reader->field].at);
		return GW_OK;
	}
	const char *colon = memchr(at, ':', (size_t)(end - at));
	if (!colon || colon == at)
		return gw_fail(GW_FORMAT,
			       "%s, line %llu: not \"Field: value\": is this the output of apt-cache dumpavail?",
			       reader->text->name, (unsigned long long)reader->line);
	if (!reader->any)
		reader->stanza_line = reader->line;
	reader->any = true;
	reader->field = field_of(at, (size_t)(colon - at));
	if (reader->field < APT_FIELDS) {
		if (reader->now.fields[reader->field].bytes)
			reader->field = APT_FIELDS; /* if a stanza repeats a field, the first counts */
		else
			reader->now.fields[reader->field] = trimmed(colon + 1, end);
	}
	return GW_OK;
}

static gw_status read_stanzas(const struct gw_text *text, struct apt_index *index)
{
	struct apt_reader reader = {.text = text, .index = index, .field = APT_FIELDS};
	const char *at = text->data, *stop = text->data + text->bytes, *end;
	while (at < stop) {
		const char *next = gw_line_next(at, stop, &end);
		reader.line++;
		gw_status status = read_line(&reader, at, end);
		if (status != GW_OK)
			return status;
		at = next;
	}
	gw_status status = end_stanza(&reader);
	if (status == GW_OK && index->count == 0)
		return gw_fail(GW_FORMAT, "%s: no packages: run apt-get update first", text->name);
	return status;
}

/* Orders by name, then by place in the text. */
static int compare_packages(const void *left, const void *right)
{
	const struct apt_package *a = left, *b = right;
	int order = gw_text_span_compare(a->fields[APT_PACKAGE], b->fields[APT_PACKAGE]);
	if (order)
		return order;
	return (a->fields[APT_PACKAGE].at > b->fields[APT_PACKAGE].at) -
	       (a->fields[APT_PACKAGE].at < b->fields[APT_PACKAGE].at);
}

static int compare_providers(const void *left, const void *right)
{
	const struct apt_provider *a = left, *b = right;
	int order = gw_text_span_compare(a->name, b->name);
	return order ? order : (a->package > b->package) - (a->package < b->package);
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
	       c == '.' || c == '_';
}

struct gw_text_span gw_apt_next_name(const char **at, const char *end)
{
	const char *p = *at;
	while (p < end && !is_name_byte(*p))
		p++;
	struct gw_text_span name = {.at = p};
	while (p < end && is_name_byte(*p))
		p++;
	name.bytes = (uint64_t)(p - name.at);
	while (p < end && *p != ',' && *p != '|')
		p++; /* (>= 1.2), :any, [amd64], <!nocheck> */
	*at = p < end ? p + 1 : p;
	return name;
}

static gw_status collect_providers(struct apt_index *index)
{
	uint64_t total = 0;
	for (int pass = 0; pass < 2; pass++) {
		uint64_t at_provider = 0;
		for (uint32_t i = 0; i < index->count; i++) {
			struct gw_text_span field = index->packages[i].fields[APT_PROVIDES];
			const char *at = field.at, *end = field.at + field.bytes;
			while (at < end) {
				struct gw_text_span name = gw_apt_next_name(&at, end);
				if (name.bytes && pass)
					index->providers[at_provider] =
						(struct apt_provider){.name = name, .package = i};
				at_provider += name.bytes > 0;
			}
		}
		total = at_provider;
		if (pass == 0) {
			if (total > UINT32_MAX)
				return gw_fail(GW_LIMIT, "more than 2^32 provided names");
			index->providers = gw_malloc(total * sizeof(*index->providers));
			if (!index->providers)
				return GW_NO_MEMORY;
		}
	}
	index->num_providers = (uint32_t)total;
	qsort(index->providers, total, sizeof(*index->providers), compare_providers);
	return GW_OK;
}

gw_status gw_apt_index_read(const struct gw_text *text, struct apt_index *out)
{
	memset(out, 0, sizeof(*out));
	gw_status status = read_stanzas(text, out);
	if (status == GW_OK) {
		qsort(out->packages, out->count, sizeof(*out->packages), compare_packages);
		uint32_t kept = 0;
		for (uint32_t i = 0; i < out->count; i++) {
			if (kept == 0 || gw_text_span_compare(out->packages[kept - 1].fields[APT_PACKAGE],
							      out->packages[i].fields[APT_PACKAGE]) != 0)
				out->packages[kept++] = out->packages[i];
		}
		out->count = kept;
		status = collect_providers(out);
	}
	if (status != GW_OK)
		gw_apt_index_free(out);
	return status;
}

void gw_apt_index_free(struct apt_index *index)
{
	gw_free(index->packages);
	gw_free(index->providers);
	memset(index, 0, sizeof(*index));
}

uint32_t gw_apt_index_find(const struct apt_index *index, struct gw_text_span name)
{
	uint32_t low = 0, high = index->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = gw_text_span_compare(index->packages[middle].fields[APT_PACKAGE], name);
		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

const struct apt_provider *gw_apt_index_providers(const struct apt_index *index, struct gw_text_span name,
						  uint32_t *count)
{
	uint32_t low = 0, high = index->num_providers;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (gw_text_span_compare(index->providers[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*count = 0;
	while (low + *count < index->num_providers &&
	       gw_text_span_compare(index->providers[low + *count].name, name) == 0)
		(*count)++;
	return index->providers + low;
}
