/* Passes the edge sets of read_edges.c to the builder as edge types: both directions, times, weights, relations with
 * their names, split masks. */
#include <string.h>

#include "tools/import/import.h"

static gw_status narrow_relations_in_place(struct gw_import *im, struct gw_import_set *set)
{
	if (im->relations.count > UINT32_MAX)
		return gw_fail(GW_LIMIT, "more than 2^32 - 1 relations");
	uint32_t *narrow = (uint32_t *)(void *)set->relations;
	for (uint64_t i = 0; i < set->rows; i++) {
		uint64_t value = set->relations[i];
		memcpy(&narrow[i], &(uint32_t){(uint32_t)value}, sizeof(*narrow));
	}
	set->rel_numbers = narrow;
	return GW_OK;
}

static gw_status add_splits(struct gw_import *im, const struct gw_import_set *set)
{
	static const char *const names[] = {NULL, "train_mask", "val_mask", "test_mask"};
	gw_status status = GW_OK;
	for (int split = GW_SPLIT_TRAIN; split <= GW_SPLIT_TEST && status == GW_OK; split++) {
		bool wanted = false;
		for (uint32_t f = 0; f < set->num_files; f++)
			wanted |= (int)set->files[f].split == split;
		if (!wanted)
			continue;
		uint8_t *mask = gw_import_take(im, set->rows, 1, &status);
		for (uint32_t f = 0; f < set->num_files && status == GW_OK; f++)
			memset(mask + set->files[f].first_row, (int)set->files[f].split == split, set->files[f].rows);
		struct gw_builder_array array = {
			.name = names[split], .dtype = GW_BOOL, .ndim = 1, .shape = {set->rows}, .data = mask};
		if (status == GW_OK)
			status = gw_builder_edge_array(im->builder, set->etype, &array);
	}
	return status;
}

static gw_status add_columns(struct gw_import *im, const struct gw_import_set *set)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < set->num_columns && status == GW_OK; i++) {
		struct gw_builder_array array = {.name = set->columns[i].name,
						 .dtype = set->columns[i].dtype,
						 .ndim = 1,
						 .shape = {set->rows},
						 .data = set->columns[i].values,
						 .weight = set->columns[i].weight};
		status = gw_builder_edge_array(im->builder, set->etype, &array);
	}
	return status;
}

/* --undirected asks for it, or all files of the type are symmetric matrices. */
static gw_status is_symmetric(const struct gw_import *im, const struct gw_import_set *set, bool *out)
{
	const struct gw_import_file *yes = NULL, *no = NULL;
	for (uint32_t f = 0; f < set->num_files; f++) {
		if (set->files[f].matrix.symmetric)
			yes = &set->files[f];
		else
			no = &set->files[f];
	}
	*out = im->options->undirected || yes;
	if (yes && no && !im->options->undirected)
		return gw_fail(GW_INVALID,
			       "%s is symmetric, but %s of the same edge type is not: "
			       "give each its own type, or use --undirected for both",
			       yes->path, no->path);
	return GW_OK;
}

static gw_status add_set(struct gw_import *im, struct gw_import_set *set)
{
	const struct gw_import_options *o = im->options;
	struct gw_builder_edges edges = {.count = set->rows,
					 .src = set->src_ids,
					 .dst = set->dst_ids,
					 .time = set->times ? set->times : set->given_times,
					 .time_name = "time",
					 .time_unit = set->time_unit,
					 .reverse = o->reverse || set->reverse,
					 .transpose = o->transpose,
					 .keep_orig_id = o->edge_ids};
	bool symmetric;
	gw_status status = is_symmetric(im, set, &symmetric);
	edges.reverse &= !symmetric; /* an undirected type is its own reverse */
	if (status == GW_OK && set->triples) {
		status = narrow_relations_in_place(im, set);
		edges.rel = set->rel_numbers;
		/* An empty triple file still makes a type with relations. */
		edges.relations = im->relations.count ? (uint32_t)im->relations.count : 1;
		edges.keep_orig_id = true;
	}
	if (status == GW_OK && symmetric) {
		if (set->src != set->dst)
			return gw_fail(
				GW_INVALID,
				"edge type %s goes from %s to %s: --undirected needs one node type; use --reverse",
				set->rel, im->spaces[set->src].name, im->spaces[set->dst].name);
		status = gw_builder_mirror(im->builder, &edges);
	}
	if (status == GW_OK)
		status = gw_builder_etype(im->builder, im->spaces[set->src].ntype, set->rel, im->spaces[set->dst].ntype,
					  &edges, &set->etype);
	if (status == GW_OK && set->triples && im->relations.offsets)
		status = gw_builder_edge_strings(im->builder, set->etype, "rel.names", im->relations.count,
						 im->relations.offsets, im->relations.bytes);
	if (status == GW_OK)
		status = add_columns(im, set);
	return status != GW_OK ? status : add_splits(im, set);
}

gw_status gw_import_add_edges(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK; s++)
		status = add_set(im, &im->sets[s]);
	return status;
}
