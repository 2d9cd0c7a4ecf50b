/* Any bytes as a server's catalog: refused as the peer's fault, or arrays that have their places and may join the book,
 * if there is one. */
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
		assert(status == GW_PROTOCOL && gw_last_error()[0] != '\0' && !catalog.book && !catalog.arrays);
		return 0;
	}
	assert(catalog.count == catalog.own.count);
	for (uint32_t i = 0; i < catalog.count; i++)
		assert(gw_catalog_find(&catalog, catalog.own.arrays[i].key) == &catalog.arrays[i]);
	assert(gw_catalog_same_places(&catalog, &catalog));
	struct gw_graph_meta *graph = catalog.book;
	catalog.book = NULL;
	if (graph && gw_catalog_join(&catalog, graph, catalog.book_digest) == GW_OK)
		(void)gw_meta_check_whole(graph);
	gw_catalog_free(&catalog);
	gw_meta_destroy(graph);
	return 0;
}
