/* Checks the number of rows of a feature, and writes the strings of nodes or edges. */
#include "tools/builder/builder_private.h"

gw_status gw_builder_write_strings(struct builder_writing *w, const char *key, const struct builder_item *item)
{
	gw_status status = gw_writer_strings(w->writer, 0, key, item->offsets, item->array.shape[0], item->array.data);
	gw_builder_wrote(w, (item->array.shape[0] + 1) * 8 + item->offsets[item->array.shape[0]]);
	return status;
}

gw_status gw_builder_check_rows(const struct builder_item *item, const char *what, const char *type, uint64_t rows)
{
	if (item->strings || item->array.shape[0] == rows)
		return GW_OK;
	return gw_fail(GW_INVALID, "%s feature \"%s\" of %s has %llu rows, but there are %llu %ss", what, item->name,
		       type, (unsigned long long)item->array.shape[0], (unsigned long long)rows, what);
}
