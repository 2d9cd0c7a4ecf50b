#include "tools/import/span.h"

#include <string.h>
#include <strings.h>

#include "tools/import/number.h"

bool gw_text_span_is_marked(struct gw_text_span span)
{
	return span.bytes >= GW_TEXT_MARK_BYTES && memcmp(span.at, GW_TEXT_MARK, GW_TEXT_MARK_BYTES) == 0;
}

bool gw_text_span_is_number(struct gw_text_span span)
{
	double value;
	return span.bytes && gw_scan_real(span.at, span.at + span.bytes, &value) == span.at + span.bytes;
}

bool gw_text_span_is_id(struct gw_text_span span, uint64_t *value)
{
	return span.bytes && gw_scan_id(span.at, span.at + span.bytes, value) == span.at + span.bytes;
}

bool gw_text_span_is_missing(struct gw_text_span span, bool any_case)
{
	static const char *const words[] = {"\\N",  "NULL", "null", "Null", "NA",   "N/A",  "n/a", "#N/A",
					    "<NA>", "NaN",  "nan",  "-NaN", "-nan", "None", "NaT"};
	if (span.bytes < 2 || span.bytes > 4)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i]) == span.bytes && (any_case ? strncasecmp(words[i], span.at, span.bytes)
								: memcmp(words[i], span.at, span.bytes)) == 0)
			return true;
	}
	return false;
}
