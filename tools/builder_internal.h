/* What a builder holds: shared by its filling and its writing. */
#ifndef GW_TOOLS_BUILDER_INTERNAL_H
#define GW_TOOLS_BUILDER_INTERNAL_H

#include "tools/builder.h"

struct builder_item {
	char name[GW_NAME_MAX + 1];
	struct gw_builder_array array; /* its name points to name */
	bool strings;                  /* offsets in strings_offsets, bytes in array.data; shape[0] of them */
	const uint64_t *offsets;
};

struct builder_items {
	struct builder_item *items;
	uint32_t count, capacity;
};

struct builder_ntype {
	char name[GW_NAME_MAX + 1];
	uint64_t count;
	struct builder_items arrays;
};

struct builder_etype {
	char rel[GW_NAME_MAX + 1];
	char time_name[GW_NAME_MAX + 1];
	uint32_t src, dst;
	struct gw_builder_edges edges;
	struct builder_items arrays;
};

struct builder_owned {
	void *memory;
	void (*release)(void *memory);
};

struct gw_builder {
	char name[GW_NAME_MAX + 1];
	struct builder_ntype *ntypes;
	struct builder_etype *etypes;
	struct builder_owned *owned;
	uint32_t num_ntypes, num_etypes, num_owned;
	uint32_t ntype_room, etype_room, owned_room;
};

#endif
