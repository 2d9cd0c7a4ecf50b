/* A field of a table's text, and what its bytes alone say of it. */
#ifndef GW_TOOLS_IMPORT_SPAN_H
#define GW_TOOLS_IMPORT_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#define GW_TEXT_MARK       "\xef\xbb\xbf" /* the byte order mark */
#define GW_TEXT_MARK_BYTES 3u

struct gw_text_span {
	const char *at;
	uint64_t bytes;
	bool escaped; /* has "" for each quote */
	bool quoted;  /* was in quotes */
};

/* A reference to a text field: its offset, its length, whether quotes are doubled. */
static inline uint64_t gw_text_ref(uint64_t offset, uint64_t bytes, bool escaped)
{
	return offset << 17 | (uint64_t)escaped << 16 | bytes;
}

static inline struct gw_text_span gw_text_span(const char *data, uint64_t ref)
{
	return (struct gw_text_span){.at = data + (ref >> 17), .bytes = ref & 0xffff, .escaped = ref >> 16 & 1};
}

/* Whether the text, which had no quotes, stands for a missing value: NULL, NA, nan, None, \N and others, as pandas,
 * R, SQL, Hive and Spark write them. any_case: "Null" and "NAN" too. */
bool gw_text_span_is_missing(struct gw_text_span span, bool any_case);

/* Whether the text begins with a byte order mark, as the second of two files that were joined. */
bool gw_text_span_is_marked(struct gw_text_span span);

/* Whether the span is a number, as gw_scan_real reads it. */
bool gw_text_span_is_number(struct gw_text_span span);

/* Whether the span is a whole number that fits an id. */
bool gw_text_span_is_id(struct gw_text_span span, uint64_t *value);

#endif
