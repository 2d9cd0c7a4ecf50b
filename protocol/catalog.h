/* The catalog, which a server sends once, after the hello: the graph's description, the part that it serves, and the
 * region and offset of each array. One JSON document; the receiver checks all of it. */
#ifndef GW_PROTOCOL_CATALOG_H
#define GW_PROTOCOL_CATALOG_H

#include "core/graph/meta.h"
#include "core/graph/part.h"

/* The position of an array of the served part. */
struct gw_catalog_array {
	char *key;
	bool changes; /* the array is in no region: it is served as rows that change (serve --mutable) */
	uint32_t region;
	uint64_t offset; /* bytes from the region's start */
};

struct gw_catalog {
	struct gw_graph_meta *meta;
	uint32_t part;
	uint32_t count;
	struct gw_catalog_array *arrays; /* sorted by key; the same arrays as in the part's meta */
};

/* Prints the catalog of a loaded part, whose arena is the region with this id. Free *text with gw_free. */
gw_status gw_catalog_print(const struct gw_part *part, uint32_t region, char **text);

/* Parses a peer's bytes: every fault is GW_PROTOCOL, with its description. */
gw_status gw_catalog_parse(const void *text, size_t bytes, struct gw_catalog *out);
void gw_catalog_free(struct gw_catalog *catalog);

/* The position of a key's array; NULL if the key does not exist. */
const struct gw_catalog_array *gw_catalog_find(const struct gw_catalog *catalog, const char *key);

/* Whether two catalogs of one part have all arrays at the same positions, so that reads for one are valid for the
 * other. */
bool gw_catalog_same_places(const struct gw_catalog *a, const struct gw_catalog *b);

#endif
