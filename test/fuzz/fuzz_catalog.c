/* Any bytes as a server's catalog: refused as the peer's fault, or a graph in which every array has its place. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "protocol/catalog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_catalog catalog;
	gw_status status = gw_catalog_parse(data, size, &catalog);
	if (status != GW_OK) {
		assert(status == GW_PROTOCOL && gw_last_error()[0] != '\0' && !catalog.meta && !catalog.arrays);
		return 0;
	}
	const struct gw_part_meta *part = &catalog.meta->parts[catalog.part];
	assert(catalog.part < catalog.meta->num_parts && catalog.count == part->count);
	for (uint32_t i = 0; i < part->count; i++)
		assert(gw_catalog_find(&catalog, part->arrays[i].key));
	assert(gw_catalog_same_places(&catalog, &catalog));
	gw_catalog_free(&catalog);
	return 0;
}
