/* See balance.h. A quantity of a class is the number of its nodes, or of the edges into them. */
#include "tools/partition/balance.h"

#include <string.h>

#include "core/memory/alloc.h"

gw_status gw_balance_open(const struct gw_plan *plan, const struct gw_part *part, struct gw_balance *out)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	*out = (struct gw_balance){.plan = plan, .part = part, .meta = meta};
	gw_status status = gw_plan_classes_make(plan, part, &out->classes);
	if (status != GW_OK)
		return status;
	out->quantities = out->classes.count * (plan->balance_edges ? 2 : 1);
	out->base = gw_calloc(meta->num_ntypes + 1ull, sizeof(*out->base));
	out->sources = gw_calloc(meta->num_etypes, sizeof(*out->sources));
	if (!out->base || !out->sources)
		return GW_NO_MEMORY;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		out->base[t + 1] = out->base[t] + meta->ntypes[t].count;
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		out->sources[e].adjacency = gw_part_adjacency(part, e);
		out->sources[e].mapped = !gw_part_arena(part);
		out->sources[e].src_base = out->base[meta->etypes[e].src];
		out->sources[e].dst_base = out->base[meta->etypes[e].dst];
		out->edges += out->sources[e].adjacency->edges;
	}
	return GW_OK;
}

void gw_balance_free(struct gw_balance *balance)
{
	gw_plan_classes_free(&balance->classes);
	gw_free(balance->base);
	gw_free(balance->sources);
	*balance = (struct gw_balance){0};
}

static uint64_t in_degree(const struct gw_balance *balance, uint32_t ntype, uint64_t node)
{
	const struct gw_node_type *type = &balance->meta->ntypes[ntype];
	uint64_t degree = 0, from, to;
	for (uint32_t c = 0; c < type->columns; c++) {
		gw_adjacency_list(gw_part_adjacency(balance->part, type->column_edge_types[c]), node, &from, &to);
		degree += to - from;
	}
	return degree;
}

void gw_balance_of_node(const struct gw_balance *balance, uint64_t node, uint32_t *ntype, uint64_t *quantity)
{
	while (node >= balance->base[*ntype + 1])
		++*ntype;
	uint64_t local = node - balance->base[*ntype];
	uint32_t class = gw_plan_class(&balance->classes, *ntype, local);
	memset(quantity, 0, balance->quantities * sizeof(*quantity));
	quantity[class] = 1;
	if (balance->plan->balance_edges)
		quantity[balance->classes.count + class] = in_degree(balance, *ntype, local);
}

/* As evenly as possible: fills all pieces below one level up to that level. Updates counts; share, [pieces]: the
 * number of nodes added to each piece. */
static void level(uint64_t *counts, uint32_t pieces, uint64_t more, uint64_t *share)
{
	uint64_t low = 0, high = more;
	for (uint32_t p = 0; p < pieces; p++)
		high = counts[p] + more > high ? counts[p] + more : high;
	while (low < high) { /* finds the highest level that `more` nodes can fill */
		uint64_t middle = low + (high - low + 1) / 2, need = 0;
		for (uint32_t p = 0; p < pieces && need <= more; p++)
			need += counts[p] < middle ? middle - counts[p] : 0;
		if (need <= more)
			low = middle;
		else
			high = middle - 1;
	}
	for (uint32_t p = 0; p < pieces; p++) {
		share[p] = counts[p] < low ? low - counts[p] : 0;
		more -= share[p];
	}
	for (uint32_t p = 0; p < pieces && more > 0; p++) {
		if (counts[p] <= low) {
			share[p]++;
			more--;
		}
	}
	for (uint32_t p = 0; p < pieces; p++)
		counts[p] += share[p];
}

gw_status gw_balance_fill_up(const struct gw_balance *balance, const uint32_t *origin, uint64_t nodes,
			     const int32_t *piece, struct gw_assignment *assignment)
{
	uint32_t pieces = assignment->pieces, classes = balance->classes.count;
	uint64_t next = 0;
	uint64_t *counts = gw_calloc((uint64_t)classes * pieces, sizeof(*counts));
	uint64_t *shares = gw_calloc((uint64_t)classes * pieces, sizeof(*shares));
	uint64_t *loose = gw_calloc(classes, sizeof(*loose));
	uint32_t *filling = gw_calloc(classes, sizeof(*filling)); /* the piece that each class fills now */
	gw_status status = counts && shares && loose && filling ? GW_OK : GW_NO_MEMORY;
	for (int pass = 0; status == GW_OK && pass < 2; pass++, next = 0) {
		for (uint32_t t = 0; t < balance->meta->num_ntypes; t++) {
			for (uint64_t node = 0; node < balance->meta->ntypes[t].count; node++) {
				uint32_t class = gw_plan_class(&balance->classes, t, node);
				uint64_t *share = shares + (uint64_t) class * pieces;
				bool has = next < nodes && origin[next] == balance->base[t] + node;
				if (pass == 0 && has)
					counts[(uint64_t) class * pieces + (uint32_t)piece[next]]++;
				if (pass == 0 && !has)
					loose[class]++;
				if (pass == 1 && !has) {
					while (share[filling[class]] == 0)
						filling[class]++;
					share[filling[class]]--;
				}
				if (pass == 1)
					assignment->piece[t][node] =
						(uint16_t)(has ? (uint32_t)piece[next] : filling[class]);
				next += has;
			}
		}
		for (uint32_t c = 0; pass == 0 && c < classes; c++)
			level(counts + (uint64_t)c * pieces, pieces, loose[c], shares + (uint64_t)c * pieces);
	}
	gw_free(counts);
	gw_free(shares);
	gw_free(loose);
	gw_free(filling);
	return status;
}
