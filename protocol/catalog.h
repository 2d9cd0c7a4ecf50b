/* The catalog, which a server sends once, after the hello: the part that it serves, and the description, region and
 * offset of each of its own arrays. A client takes the book of the graph from one server, and the arrays of each part
 * from the part's server, so that all catalogs together grow with the parts, and not with their square.
 *
 *   catalogs of all servers, one of them with the book -> gw_catalog_join for each -> gw_meta_check_whole: one graph
 *
 * One JSON document; the receiver checks all of it.
 */
#ifndef GW_PROTOCOL_CATALOG_H
#define GW_PROTOCOL_CATALOG_H

#include "core/graph/meta.h"
#include "core/graph/part.h"

/* The request: one byte. */
enum gw_catalog_form {
	GW_CATALOG_OWN,       /* the server's own arrays */
	GW_CATALOG_WITH_BOOK, /* and the book */
	GW_CATALOG_FORMS
};
/* Added to the form: the client knows rows on disk, which it requests (protocol/disk_call.h). A server that has such
 * rows refuses the others, GW_REFUSED, in words that older clients show. A client adds it after that refusal alone,
 * since older servers do not know it. */
#define GW_CATALOG_KNOWS_DISK 2

/* The position of an array of the served part. */
struct gw_catalog_array {
	const struct gw_array_meta *meta; /* of the catalog or, once it has joined a graph, of the graph */
	bool changes; /* the array is in no region: it is served as rows that change (serve --mutable) */
	bool on_disk; /* likewise: its rows are requested (serve --on-disk) */
	uint32_t region;
	uint64_t offset; /* bytes from the region's start */
};

struct gw_catalog {
	uint32_t part;
	char graph_name[GW_NAME_MAX + 1];
	uint64_t graph_id;
	uint64_t book_digest;       /* gw_meta_book_digest of the server's graph */
	struct gw_graph_meta *book; /* NULL unless the catalog has it */
	struct gw_part_meta own;    /* the arrays, without files; empty once the catalog has joined a graph */
	uint32_t count;
	struct gw_catalog_array *arrays; /* sorted by key */
};

/* Prints the catalog of a loaded part, whose arena is the region with this id. Free *text with gw_free. */
gw_status gw_catalog_print(const struct gw_part *part, uint32_t region, enum gw_catalog_form form, char **text);

/* Parses a peer's bytes: every fault is GW_PROTOCOL, with its description. */
gw_status gw_catalog_parse(const void *text, size_t bytes, struct gw_catalog *out);
void gw_catalog_free(struct gw_catalog *catalog);

/* Makes the catalog a part of this graph. If the graph has no arrays of the part yet, it takes them over from the
 * catalog, and no array can be added to that part; otherwise the two must be the same. The catalog then refers to the
 * graph's arrays, and the graph must outlive it. Repeats are allowed. book_digest: of the graph, computed once for all
 * catalogs. GW_PROTOCOL: the catalog is of another graph. */
gw_status gw_catalog_join(struct gw_catalog *catalog, struct gw_graph_meta *graph, uint64_t book_digest);

/* The position of a key's array; NULL if the key does not exist. */
const struct gw_catalog_array *gw_catalog_find(const struct gw_catalog *catalog, const char *key);

/* Whether two catalogs of one part have the same arrays at the same positions, so that reads for one are valid for the
 * other. */
bool gw_catalog_same_places(const struct gw_catalog *a, const struct gw_catalog *b);

#endif
