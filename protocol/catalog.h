/* The catalog, which a server sends once, after the hello: the part that it serves, and the description, region and
 * offset of each of its own arrays. A client takes the book of the graph from one server, and the arrays of each part
 * from the part's server, so that all catalogs together grow with the parts, and not with their square.
 *
 *   catalogs of all servers, one of them with the book -> gw_catalog_join for each -> gw_meta_check_whole: one graph
 *
 * A server that holds the lists of other parts too (serve --lists all) says so in its catalog, and sends their places
 * on request: a client that maps its memory reads them there.
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
	GW_CATALOG_LISTS,     /* the lists of other parts that the server holds: struct gw_catalog_lists */
	GW_CATALOG_FORMS
};
/* Added to the form: the client knows rows on disk, which it requests (protocol/disk_call.h). A server that has such
 * rows refuses the others, GW_REFUSED, in words that older clients show. A client adds it after that refusal alone,
 * since older servers do not know it. */
#define GW_CATALOG_KNOWS_DISK 0x80

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
	bool holds_lists;           /* of other parts, whose places are in GW_CATALOG_LISTS */
	struct gw_part_meta own;    /* the arrays, without files; empty once the catalog has joined a graph */
	uint32_t count;
	struct gw_catalog_array *arrays; /* sorted by key */
};

/* The lists of other parts: their arrays and positions. Only part, count, arrays and own of each are set. */
struct gw_catalog_lists {
	uint32_t count;
	struct gw_catalog *parts; /* in the order of the parts */
};

/* Prints the catalog of a loaded part, whose arena is the region with this id. Free *text with gw_free. holds_lists:
 * the server holds lists of other parts. */
gw_status gw_catalog_print(const struct gw_part *part, uint32_t region, enum gw_catalog_form form, bool holds_lists,
			   char **text);
/* Prints the lists of other parts, in the order of the parts and in the region with this id. */
gw_status gw_catalog_lists_print(struct gw_part *const *parts, uint32_t count, uint32_t region, char **text);

/* Parses a peer's bytes: every fault is GW_PROTOCOL, with its description. */
gw_status gw_catalog_parse(const void *text, size_t bytes, struct gw_catalog *out);
void gw_catalog_free(struct gw_catalog *catalog);
/* The same for GW_CATALOG_LISTS. num_parts: of the graph; own: the server's part. */
gw_status gw_catalog_lists_parse(const void *text, size_t bytes, uint32_t num_parts, uint32_t own,
				 struct gw_catalog_lists *out);
void gw_catalog_lists_free(struct gw_catalog_lists *lists);

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
