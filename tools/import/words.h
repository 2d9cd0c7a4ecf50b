/* Parses words of import's command line; and lists that grow. */
#ifndef GW_TOOLS_IMPORT_WORDS_H
#define GW_TOOLS_IMPORT_WORDS_H

#include "tools/import/import.h"

#define GW_IMPORT_NAMES_MAX 5u

/* "a:b:name=value": names[0] .. names[count - 1] and the value; count is 0 without '='. */
struct gw_import_parts {
	char names[GW_IMPORT_NAMES_MAX][GW_NAME_MAX + 1];
	uint32_t count;
	const char *value;
};

/* Splits at most types_max names before the last ':' ... '='. GW_INVALID. */
gw_status gw_import_word_split(const char *text, uint32_t types_max, struct gw_import_parts *out);

/* The edges of the type that the parts begin with; without a type, of _N:_E:_N. form: how to write the word, for the
 * error. GW_NOT_FOUND. */
gw_status gw_import_set_of(const struct gw_import *im, const struct gw_import_parts *parts, const char *form,
			   struct gw_import_set **out);

/* Makes room for one more element, zeroed. */
gw_status gw_import_grow(void **elements, uint32_t count, uint32_t *room, size_t bytes);

#endif
