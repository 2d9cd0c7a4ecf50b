/* What the methods of assignment share: memory for the result, the limit of memory, and the classes of nodes to balance
 * separately.
 *
 *   options -> classes: one for all nodes, or one for each type; each split by numbers or the training mask
 */
#include <stdio.h>

#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"
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

gw_status gw_plan_memory_check(const struct gw_plan *plan, uint64_t bytes, const char *what, const char *others)
{
	char want[GW_UNIT_TEXT_MAX], have[GW_UNIT_TEXT_MAX];
	gw_status status;
	if (plan->memory_max == 0)
		status = gw_memory_check(bytes, -1, what);
	else
		status = bytes <= plan->memory_max ? GW_OK
						   : gw_fail(GW_NO_MEMORY, "%s: needs about %s, --memory allows %s",
							     what, gw_text_bytes(want, (double)bytes),
							     gw_text_bytes(have, (double)plan->memory_max));
	if (status == GW_OK)
		return GW_OK;
	char why[GW_ERROR_TEXT_MAX];
	snprintf(why, sizeof(why), "%s", gw_last_error());
	return gw_fail(status, "%s; use %s, or set --memory", why, others);
}

uint64_t gw_plan_lists_bytes(const struct gw_plan *plan)
{
	struct gw_memory memory;
	if (plan->memory_max)
		return plan->memory_max / 2;
	gw_memory_read("", -1, &memory);
	return memory.available / 10 * 7 / 2;
}

/* NULL if the type has no mask of this shape. */
static const uint8_t *train_mask(const struct gw_part *part, uint32_t ntype)
{
	char key[GW_NAME_MAX + 32];
	snprintf(key, sizeof(key), "node/%s/" GW_PLAN_TRAIN_MASK, gw_part_meta(part)->ntypes[ntype].name);
	const struct gw_array *array = gw_part_array(part, key);
	return array && array->row_bytes == 1 ? array->data : NULL;
}

/* The numbers of a node type: those of the user, else the training mask, whose set nodes have the number 1. */
static struct gw_plan_numbers numbers_of(const struct gw_plan *plan, const struct gw_part *part, uint32_t ntype)
{
	if (plan->numbers)
		return plan->numbers[ntype];
	const uint8_t *mask = plan->balance_train ? train_mask(part, ntype) : NULL;
	return (struct gw_plan_numbers){.of = mask, .count = mask ? 2 : 0};
}

gw_status gw_plan_classes_make(const struct gw_plan *plan, const struct gw_part *part, struct gw_plan_classes *out)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	bool by_type = plan->balance_ntypes || plan->numbers, masked = false;
	*out = (struct gw_plan_classes){0};
	out->first = gw_calloc(meta->num_ntypes, sizeof(*out->first));
	out->numbers = gw_calloc(meta->num_ntypes, sizeof(*out->numbers));
	if (!out->first || !out->numbers) {
		gw_plan_classes_free(out);
		return GW_NO_MEMORY;
	}
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		out->numbers[t] = numbers_of(plan, part, t);
		masked |= out->numbers[t].of != NULL;
		out->first[t] = by_type ? out->count : 0;
		out->count += by_type ? (out->numbers[t].of ? out->numbers[t].count : 1) : 0;
	}
	if (!by_type)
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
	gw_free(classes->numbers);
	*classes = (struct gw_plan_classes){0};
}
