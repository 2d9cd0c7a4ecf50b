/* The catalog: what a server tells a client once, after the hello: the graph's description, which part it serves, and
 * at which offset of which region each array lies. One JSON document; the receiver checks all of it. */
#ifndef GW_PROTOCOL_CATALOG_H
#define GW_PROTOCOL_CATALOG_H

#include "core/graph/meta.h"
#include "core/graph/part.h"

/* Where an array of the served part lies. */
struct gw_catalog_array {
	char *key;
	bool changes; /* it is in no region: it is served as rows that change (serve --mutable) */
	uint32_t region;
	uint64_t offset; /* bytes from the region's start */
};

struct gw_catalog {
	struct gw_graph_meta *meta;
	uint32_t part;
	uint32_t count;
	struct gw_catalog_array *arrays; /* sorted by key; exactly those of the part's meta */
};

/* The catalog of a loaded part whose arena is the region with this id. *text is to be freed with gw_free. */
gw_status gw_catalog_print(const struct gw_part *part, uint32_t region, char **text);

/* From a peer's bytes: every fault is GW_PROTOCOL with what is wrong. */
gw_status gw_catalog_parse(const void *text, size_t bytes, struct gw_catalog *out);
void gw_catalog_free(struct gw_catalog *catalog);

/* The place of a key; NULL if there is none. */
const struct gw_catalog_array *gw_catalog_find(const struct gw_catalog *catalog, const char *key);

/* Whether two catalogs of one part place every array alike, so that reads of the one are good for the other. */
bool gw_catalog_same_places(const struct gw_catalog *a, const struct gw_catalog *b);

#endif
