/* Words of the command line of import, taken apart; and lists that grow: see words.h. */
#include "tools/import/words.h"

#include <string.h>

#include "core/memory/alloc.h"

gw_status gw_import_grow(void **elements, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return GW_OK;
	if (count >= GW_IMPORT_INPUTS_MAX)
		return gw_fail(GW_LIMIT, "more than %u inputs in one import", GW_IMPORT_INPUTS_MAX);
	uint32_t wanted = *room ? *room * 2 : 4;
	void *grown = gw_realloc(*elements, wanted, bytes);
	if (!grown)
		return GW_NO_MEMORY;
	memset((char *)grown + (size_t)*room * bytes, 0, (wanted - *room) * bytes);
	*elements = grown;
	*room = wanted;
	return GW_OK;
}

gw_status gw_import_word_split(const char *text, uint32_t types_max, struct gw_import_parts *out)
{
	*out = (struct gw_import_parts){.value = text};
	const char *equals = strchr(text, '=');
	if (!equals)
		return GW_OK;
	const char *at = text;
	out->value = equals + 1;
	for (;;) {
		size_t bytes = strcspn(at, ":=");
		if (out->count > types_max)
			return gw_fail(GW_INVALID, "\"%.200s\": too many ':' before the '='", text);
		if (bytes > GW_NAME_MAX)
			return gw_fail(GW_INVALID, "\"%.200s\": a name has at most %d bytes", text, GW_NAME_MAX);
		memcpy(out->names[out->count], at, bytes);
		out->names[out->count++][bytes] = '\0';
		if (at[bytes] == '=')
			return GW_OK;
		at += bytes + 1;
	}
}
