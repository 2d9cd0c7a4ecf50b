/* See records.h. A record has zeros in place of the graph's id until the graph is committed. */
#include "core/graph/records.h"

#include <string.h>

#include "core/files/regular.h"
#include "core/graph/record_names.h"
#include "core/memory/alloc.h"

/* The record that a word begins with, or NULL. */
static const char *record_of(const char *word)
{
	for (size_t i = 0; gw_record_names[i]; i++) {
		size_t length = strlen(gw_record_names[i]);
		if (strncmp(word, gw_record_names[i], length) == 0 && word[length] == '=')
			return gw_record_names[i];
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
