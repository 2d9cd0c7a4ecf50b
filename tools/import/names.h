/* Names of columns that hold the ends of edges, as tools and people write them in headers. */
#ifndef GW_TOOLS_IMPORT_NAMES_H
#define GW_TOOLS_IMPORT_NAMES_H

#include "tools/import/table.h"

/* The columns that the names of a header point out. */
enum gw_names_found { GW_NAMES_NONE, GW_NAMES_FOUND, GW_NAMES_SEVERAL };

/* Finds the columns of sources and destinations. src_type, dst_type: names of node types, which go before the known
 * names; NULL or equal names: none. Case, blanks and signs between words, and a final "id" or "node id" do not count:
 * "Source ID", "source_id" and "sourceNodeId" are "source". */
enum gw_names_found gw_names_ends(const struct gw_text_span *fields, uint32_t count, const char *src_type,
				  const char *dst_type, uint32_t *src, uint32_t *dst);

/* Finds the column of relations: relation, predicate, type and so on. */
enum gw_names_found gw_names_relation(const struct gw_text_span *fields, uint32_t count, uint32_t *relation);

/* Whether the name alone points out a source, or a destination. */
bool gw_names_is_source(struct gw_text_span field, const char *src_type, const char *dst_type);
bool gw_names_is_destination(struct gw_text_span field, const char *src_type, const char *dst_type);

/* Whether a column has no name: pandas writes its index so, as "" or "Unnamed: 0". */
bool gw_names_is_unnamed(struct gw_text_span field);

/* Whether the name is one of numbers of rows, times, weights and the like, which are no ends. */
bool gw_names_is_other(struct gw_text_span field);

#endif
