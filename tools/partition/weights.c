/* partition --weight: finds the edge features that get alias tables, and checks them before the work begins.
 *
 *   "NAME" or "SRC:REL:DST:NAME" -> arrays of the input -> dtype and shape -> values
 *
 * The new tables replace those of the input. Tables that no word names move with their edges (split_rows.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/partition/candidates.h"
#include "tools/partition/split.h"
#include "tools/weights.h"

static bool can_be_weight(const struct gw_array_key *key, const struct gw_array_meta *array)
{
	return key->edge && gw_weight_form_check(array->dtype, array->ndim, array->shape) == GW_OK;
}

static const struct gw_array *find_weight(const struct gw_part *part, uint32_t etype, const char *name)
{
	char key[GW_KEY_MAX];
	const struct gw_graph_meta *meta = gw_part_meta(part);
	if (strlen(name) > GW_NAME_MAX || gw_name_is_taken(true, name))
		return NULL; /* the format's own arrays are no features */
	snprintf(key, sizeof(key), "edge/%s/%s", meta->etypes[etype].folder, name);
	return gw_part_array(part, key);
}

/* By its input row too if the graph has the rows. */
static gw_status fail_edge(const struct gw_part *part, uint32_t etype, const char *name, uint64_t edge,
			   const char *value)
{
	char key[GW_KEY_MAX], text[GW_EDGE_FOLDER_MAX + 1], origin[48] = "";
	const struct gw_graph_meta *meta = gw_part_meta(part);
	snprintf(key, sizeof(key), "edge/%s/orig_id", meta->etypes[etype].folder);
	const struct gw_array *rows = gw_part_array(part, key);
	if (rows)
		snprintf(origin, sizeof(origin), " (input row %" PRIu64 ")",
			 gw_load_id(rows->data, (uint8_t)rows->row_bytes, edge));
	return gw_fail(GW_RANGE, "edge %" PRIu64 "%s of %s: weight \"%s\" is %s: " GW_WEIGHT_RULE, edge, origin,
		       gw_meta_etype_text(meta, etype, text), name, value);
}

static gw_status add_feature(const struct gw_part *part, uint32_t etype, const char *name, unsigned threads,
			     struct gw_plan_weights *out)
{
	char text[GW_EDGE_FOLDER_MAX + 1], value[GW_WEIGHT_TEXT_MAX];
	const struct gw_array *array = find_weight(part, etype, name);
	for (uint32_t i = 0; i < out->count; i++) {
		if (out->list[i].array == array)
			return GW_OK; /* named before */
	}
	gw_status status = gw_weight_name_check(name);
	if (status != GW_OK)
		return status;
	status = gw_weight_form_check(array->meta->dtype, array->meta->ndim, array->meta->shape);
	if (status != GW_OK)
		return gw_context(status, "edge feature \"%s\" of %s", name,
				  gw_meta_etype_text(gw_part_meta(part), etype, text));
	uint64_t edge = gw_weight_first_fault(array->meta->dtype, array->data, array->rows, threads, value);
	if (edge != GW_NONE)
		return fail_edge(part, etype, name, edge, value);
	struct gw_plan_weight *more = gw_realloc(out->list, out->count + 1, sizeof(*more));
	if (!more)
		return GW_NO_MEMORY;
	out->list = more;
	struct gw_plan_weight *added = &out->list[out->count++];
	added->etype = etype;
	added->array = array;
	snprintf(added->name, sizeof(added->name), "%s", name);
	return GW_OK;
}

static gw_status find_word(const struct gw_part *part, const char *word, unsigned threads, struct gw_plan_weights *out)
{
	char text[GW_EDGE_FOLDER_MAX + 1], list[GW_CANDIDATES_MAX];
	const struct gw_graph_meta *meta = gw_part_meta(part);
	bool typed = gw_weight_is_typed(word), found = false;
	gw_status status = GW_OK;
	for (uint32_t e = 0; e < meta->num_etypes && status == GW_OK; e++) {
		const char *name = typed ? gw_weight_name_in(word, gw_meta_etype_text(meta, e, text)) : word;
		if (!name || !find_weight(part, e, name))
			continue;
		found = true;
		status = add_feature(part, e, name, threads, out);
	}
	if (status != GW_OK || found)
		return status;
	gw_candidates_list(part, can_be_weight, list);
	return gw_fail(GW_NOT_FOUND, "\"%s\" is not an edge feature; those with a number for each edge: %s", word,
		       list);
}

gw_status gw_plan_weights_find(const char *const *words, uint32_t count, const struct gw_part *part, unsigned threads,
			       struct gw_plan_weights *out)
{
	gw_status status = GW_OK;
	*out = (struct gw_plan_weights){0};
	for (uint32_t i = 0; i < count && status == GW_OK; i++)
		status = find_word(part, words[i], threads, out);
	if (status != GW_OK)
		gw_plan_weights_free(out);
	return status != GW_OK ? gw_context(status, "--weight") : GW_OK;
}

void gw_plan_weights_free(struct gw_plan_weights *weights)
{
	gw_free(weights->list);
	*weights = (struct gw_plan_weights){0};
}
