/* See records.h. A record has zeros in place of the graph's id until the graph is committed. */
#include "core/graph/records.h"

#include <string.h>

#include "core/files/regular.h"
#include "core/memory/alloc.h"

static const char *const records[] = {"tables", "build"};
#define RECORDS (sizeof(records) / sizeof(records[0]))

/* The record that a word begins with, or NULL. */
static const char *record_of(const char *word)
{
	for (size_t i = 0; i < RECORDS; i++) {
		size_t length = strlen(records[i]);
		if (strncmp(word, records[i], length) == 0 && word[length] == '=')
			return records[i];
	}
	return NULL;
}

gw_status gw_record_check(const char *word)
{
	return record_of(word) ? GW_OK : gw_fail(GW_INVALID, "\"%.200s\": write tables=FILE or build=FILE", word);
}

gw_status gw_records_add(struct gw_writer *writer, const char *const *words, uint32_t count)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < count && status == GW_OK; i++) {
		const char *record = record_of(words[i]);
		char *text = NULL, *end = gw_format(".%s.json", record);
		size_t bytes;
		status = end ? gw_regular_read(strchr(words[i], '=') + 1, GW_JSON_BYTES_MAX, &text, &bytes)
			     : GW_NO_MEMORY;
		if (status == GW_OK)
			status = gw_writer_text(writer, end, text);
		gw_free(text);
		gw_free(end);
	}
	return status;
}

gw_status gw_records_own(struct gw_owned *owned, const char *json)
{
	gw_status status = GW_OK;
	for (size_t i = 0; i < RECORDS && status == GW_OK; i++) {
		char *name = gw_format("%.*s.%s.json", (int)strlen(json) - 5, json, records[i]);
		status = name ? gw_owned_add(owned, name) : GW_NO_MEMORY;
		gw_free(name);
	}
	return status;
}
