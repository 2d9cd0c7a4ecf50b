/* The shared part of both assignments: memory for the result, and the classes of nodes to balance separately.
 *
 *   options -> classes: one for all nodes, or one for each type; each split by the training mask if one exists
 */
#include <stdio.h>

#include "core/memory/alloc.h"
#include "tools/partition/plan.h"

gw_status gw_assignment_make(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *out)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	*out = (struct gw_assignment){.pieces = plan->parts * plan->trainers, .num_ntypes = meta->num_ntypes};
	out->piece = gw_calloc(meta->num_ntypes, sizeof(*out->piece));
	if (!out->piece)
		return GW_NO_MEMORY;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		out->piece[t] = gw_calloc(meta->ntypes[t].count, sizeof(**out->piece));
		if (!out->piece[t]) {
			gw_assignment_free(out);
			return GW_NO_MEMORY;
		}
	}
	return GW_OK;
}

void gw_assignment_free(struct gw_assignment *assignment)
{
	for (uint32_t t = 0; assignment->piece && t < assignment->num_ntypes; t++)
		gw_free(assignment->piece[t]);
	gw_free(assignment->piece);
	*assignment = (struct gw_assignment){0};
}

/* The training mask of a node type, one byte for each node, or NULL if the type has no mask of this shape. */
static const uint8_t *train_mask(const struct gw_part *part, uint32_t ntype)
{
	char key[GW_NAME_MAX + 32];
	snprintf(key, sizeof(key), "node/%s/" GW_PLAN_TRAIN_MASK, gw_part_meta(part)->ntypes[ntype].name);
	const struct gw_array *array = gw_part_array(part, key);
	return array && array->row_bytes == 1 ? array->data : NULL;
}

gw_status gw_plan_classes_make(const struct gw_plan *plan, const struct gw_part *part, struct gw_plan_classes *out)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	bool masked = false;
	*out = (struct gw_plan_classes){0};
	out->first = gw_calloc(meta->num_ntypes, sizeof(*out->first));
	out->mask = gw_calloc(meta->num_ntypes, sizeof(*out->mask));
	if (!out->first || !out->mask) {
		gw_plan_classes_free(out);
		return GW_NO_MEMORY;
	}
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		out->mask[t] = plan->balance_train ? train_mask(part, t) : NULL;
		masked |= out->mask[t] != NULL;
		out->first[t] = plan->balance_ntypes ? out->count : 0;
		out->count += plan->balance_ntypes ? (out->mask[t] ? 2 : 1) : 0;
	}
	if (!plan->balance_ntypes)
		out->count = masked ? 2 : 1;
	if (plan->balance_train && !masked) {
		gw_plan_classes_free(out);
		return gw_fail(GW_NOT_FOUND, "--balance-train: no node type has a feature \"" GW_PLAN_TRAIN_MASK
					     "\" (bool, one value for each node); import it, or leave the option out");
	}
	return GW_OK;
}

void gw_plan_classes_free(struct gw_plan_classes *classes)
{
	gw_free(classes->first);
	gw_free(classes->mask);
	*classes = (struct gw_plan_classes){0};
}
