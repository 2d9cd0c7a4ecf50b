/* The parsed stanzas of a package index: shared by tools/import/apt_index.c and tools/import/apt_graph.c. */
#ifndef GW_TOOLS_IMPORT_APT_INDEX_H
#define GW_TOOLS_IMPORT_APT_INDEX_H

#include "tools/import/table.h"

#define GW_APT_PACKAGES_MAX (1u << 24)

enum apt_field {
	APT_DEPENDS,
	APT_PRE_DEPENDS,
	APT_RECOMMENDS,
	APT_SUGGESTS,
	APT_CONFLICTS,
	APT_BREAKS,
	APT_PROVIDES,
	APT_PACKAGE,
	APT_SOURCE,
	APT_MAINTAINER,
	APT_SECTION,
	APT_DESCRIPTION,
	APT_FIELDS
};

/* A package: its fields as they are in the text, without leading blanks, with continuation lines. */
struct apt_package {
	struct gw_text_span fields[APT_FIELDS];
};

struct apt_provider {
	struct gw_text_span name; /* the name that the package provides */
	uint32_t package;
};

struct apt_index {
	struct apt_package *packages;   /* sorted by name, each name once */
	struct apt_provider *providers; /* sorted by name, then package */
	uint32_t count, num_providers;
	uint64_t stanzas;
};

gw_status gw_apt_index_read(const struct gw_text *text, struct apt_index *out);
void gw_apt_index_free(struct apt_index *index);

/* Compares the bytes, then the lengths. */
int gw_text_span_compare(struct gw_text_span a, struct gw_text_span b);

/* The package with this name, or UINT32_MAX. */
uint32_t gw_apt_index_find(const struct apt_index *index, struct gw_text_span name);
/* The first of *count providers of a name. */
const struct apt_provider *gw_apt_index_providers(const struct apt_index *index, struct gw_text_span name,
						  uint32_t *count);

/* The next name in a relation field ("libc6 (>= 2.34), foo:any | bar"): *at moves past it and its constraints. An empty
 * span at the end. */
struct gw_text_span gw_apt_next_name(const char **at, const char *end);

#endif
