/* What each means saves: bytes of remote rows of a mini-batch, over the memory that saves them.
 *
 *   for each part: the nodes of some mini-batches, counted with the loader -> how hot by degree, by vip, by these
 * counts
 *   -> for each share: what is chosen -> the rows of the counted batches that are not
 *
 * The best choice for the counted batches is the bound of every other choice of as many rows. A new means is a row that
 * curve_print prints.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "core/numbers/convert.h"
#include "tools/replicate/replicate.h"

enum { BY_DEGREE, BY_VIP, BEST, RANKINGS };
static const char *const rankings[RANKINGS] = {"degree", "vip", "best"};

#define SHARES 5u
static const double shares[SHARES] = {0.01, 0.025, 0.05, 0.125, 0.25};

struct curve {
	struct gw_hot_graph graph;
	struct gw_client *client;
	uint64_t *cost;                   /* [ntypes] */
	struct gw_replica_block **blocks; /* [ntypes] */
	double *counts, *hot;
	uint64_t batches;
	double none, left[SHARES][RANKINGS]; /* bytes of remote rows of all counted batches */
	double memory[SHARES];               /* of the parts together */
};

static gw_status curve_open(const struct gw_replicate_plan *plan, const char *config, const struct gw_graph_meta *meta,
			    struct curve *curve)
{
	gw_status status = gw_hot_graph_open(plan, config, meta, false, &curve->graph);
	if (status != GW_OK)
		return status;
	const uint64_t nodes = gw_hot_nodes(&curve->graph);
	curve->cost = gw_calloc(meta->num_ntypes, sizeof(*curve->cost));
	curve->blocks = gw_calloc(meta->num_ntypes, sizeof(struct gw_replica_block *));
	curve->counts = gw_malloc(nodes * sizeof(double) + 1);
	curve->hot = gw_malloc(nodes * sizeof(double) + 1);
	if (!curve->cost || !curve->blocks || !curve->counts || !curve->hot)
		return GW_NO_MEMORY;
	status = gw_replicate_costs(plan, meta, curve->cost);
	for (uint32_t t = 0; t < meta->num_ntypes && status == GW_OK; t++) {
		if (curve->cost[t] == 0 || meta->ntypes[t].count == 0)
			continue;
		curve->blocks[t] = gw_calloc(gw_replica_blocks(meta->ntypes[t].count), sizeof(**curve->blocks));
		status = curve->blocks[t] ? GW_OK : GW_NO_MEMORY;
	}
	return status == GW_OK ? gw_hot_client_open(&curve->graph, &curve->client) : status;
}

static void curve_close(struct curve *curve)
{
	for (uint32_t t = 0; curve->blocks && t < curve->graph.meta->num_ntypes; t++)
		gw_free(curve->blocks[t]);
	gw_free(curve->blocks);
	gw_client_close(curve->client);
	gw_free(curve->cost);
	gw_free(curve->counts);
	gw_free(curve->hot);
	gw_hot_graph_close(&curve->graph);
}

static gw_status add_share(struct curve *curve, uint32_t share, uint32_t ranking)
{
	const struct gw_graph_meta *meta = curve->graph.meta;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		if (curve->blocks[t])
			memset(curve->blocks[t], 0, gw_replica_blocks(meta->ntypes[t].count) * sizeof(**curve->blocks));
	}
	gw_status status = gw_hot_choose(&curve->graph, curve->hot, curve->cost, shares[share], 0, curve->blocks);
	for (uint32_t t = 0; t < meta->num_ntypes && status == GW_OK; t++) {
		const double *counts = curve->counts + curve->graph.first[t];
		for (uint64_t i = 0, row; curve->blocks[t] && i < meta->ntypes[t].count; i++) {
			bool near = gw_replica_find(curve->blocks[t], i, &row);
			curve->left[share][ranking] += near ? 0 : counts[i] * (double)curve->cost[t];
			curve->memory[share] += near && ranking == BY_VIP ? (double)curve->cost[t] : 0;
		}
		if (curve->blocks[t] && ranking == BY_VIP)
			curve->memory[share] +=
				(double)gw_replica_blocks(meta->ntypes[t].count) * (double)sizeof(**curve->blocks);
	}
	return status;
}

static gw_status add_part(struct curve *curve, const struct gw_replicate_plan *plan, uint64_t steps, uint32_t part)
{
	const struct gw_graph_meta *meta = curve->graph.meta;
	uint64_t batches = 0;
	gw_status status =
		gw_hot_counts(&curve->graph, curve->client, part, 1, steps, plan->seed, curve->counts, &batches);
	if (status != GW_OK)
		return status;
	gw_hot_drop_own(&curve->graph, part, curve->counts);
	curve->batches += batches;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		for (uint64_t i = 0; i < meta->ntypes[t].count; i++)
			curve->none += curve->counts[curve->graph.first[t] + i] * (double)curve->cost[t];
	}
	for (uint32_t ranking = 0; ranking < RANKINGS && status == GW_OK; ranking++) {
		if (ranking == BY_DEGREE)
			status = gw_hot_degree(&curve->graph, curve->hot);
		else if (ranking == BY_VIP)
			status = gw_hot_vip(&curve->graph, part, curve->hot);
		else
			memcpy(curve->hot, curve->counts, gw_hot_nodes(&curve->graph) * sizeof(*curve->hot));
		gw_hot_drop_own(&curve->graph, part, curve->hot);
		for (uint32_t share = 0; share < SHARES && status == GW_OK; share++)
			status = add_share(curve, share, ranking);
	}
	return status;
}

/* --- Narrow rows. --- */

/* The bytes of the rows if those of real numbers were stored so, over their bytes now. */
static double narrow_ratio(const struct gw_replicate_plan *plan, const struct gw_graph_meta *meta, gw_dtype to)
{
	double now = 0, then = 0;
	for (uint32_t a = 0; a < meta->parts[0].count; a++) {
		const struct gw_array_meta *array = &meta->parts[0].arrays[a];
		if (!gw_replicate_means(plan, meta, array))
			continue;
		const uint64_t bytes = gw_array_meta_row_bytes(array), numbers = gw_meta_row_numbers(meta, array);
		const bool narrows = gw_convert_is_possible(array->dtype, to) &&
				     (array->dtype == GW_FLOAT32 || array->dtype == GW_FLOAT64);
		const double row = (double)(to == GW_INT8_ROW ? (numbers + 3) / 4 * 4 + GW_INT8_ROW_HEAD
							      : numbers * gw_dtype_bytes(to));
		now += (double)bytes;
		then += narrows ? row : (double)bytes;
	}
	return now > 0 ? then / now : 1;
}

static const struct {
	gw_dtype dtype;
	const char *name;
} narrows[] = {{GW_FLOAT16, "float16"}, {GW_INT8_ROW, "int8_row"}};

#define NARROWS (sizeof(narrows) / sizeof(narrows[0]))

static void curve_print_json(const struct curve *curve, const double *ratio)
{
	const double batches = curve->batches ? (double)curve->batches : 1;
	const uint32_t parts = curve->graph.meta->num_parts;
	printf("{\"batches\": %" PRIu64 ", \"parts\": %u, \"none\": %.0f, \"replicas\": [", curve->batches, parts,
	       curve->none / batches);
	for (uint32_t s = 0; s < SHARES; s++) {
		printf("%s{\"share\": %g, \"memory\": %.0f", s ? ", " : "", shares[s], curve->memory[s] / parts);
		for (uint32_t r = 0; r < RANKINGS; r++)
			printf(", \"%s\": %.0f", rankings[r], curve->left[s][r] / batches);
		printf("}");
	}
	printf("], \"narrow\": {");
	for (size_t i = 0; i < NARROWS; i++)
		printf("%s\"%s\": %.0f", i ? ", " : "", narrows[i].name, curve->none / batches * ratio[i]);
	printf("}}\n");
}

static void curve_print_text(const struct curve *curve, const double *ratio)
{
	const double batches = curve->batches ? (double)curve->batches : 1, none = curve->none > 0 ? curve->none : 1;
	const uint32_t parts = curve->graph.meta->num_parts;
	char text[GW_UNIT_TEXT_MAX], cell[64];
	printf("Bytes of remote rows for a mini-batch of %u seeds, over %" PRIu64 " mini-batches of %u parts.\n"
	       "best: by exact counts of the same mini-batches.\n\n",
	       curve->graph.batch_size, curve->batches, parts);
	printf("%-28s %14s %20s %20s %20s\n", "MEANS", "MEMORY A PART", "DEGREE", "VIP", "BEST");
	printf("%-28s %14s %20s\n", "none", "0 B", gw_text_bytes(text, curve->none / batches));
	for (uint32_t s = 0; s < SHARES; s++) {
		snprintf(cell, sizeof(cell), "replicas, --rows %g%%", 100 * shares[s]);
		printf("%-28s %14s", cell, gw_text_bytes(text, curve->memory[s] / parts));
		for (uint32_t r = 0; r < RANKINGS; r++) {
			snprintf(cell, sizeof(cell), "%s (%.3f)", gw_text_bytes(text, curve->left[s][r] / batches),
				 curve->left[s][r] / none);
			printf(" %20s", cell);
		}
		printf("\n");
	}
	for (size_t i = 0; i < NARROWS; i++) {
		snprintf(cell, sizeof(cell), "narrow rows, %s", narrows[i].name);
		printf("%-28s %14s", cell, "less");
		snprintf(cell, sizeof(cell), "%s (%.3f)", gw_text_bytes(text, curve->none / batches * ratio[i]),
			 ratio[i]);
		printf(" %20s\n", cell);
	}
}

gw_status gw_replicate_curve(const struct gw_replicate_plan *plan, const char *config, uint64_t steps, bool json)
{
	struct gw_graph_meta *meta = NULL;
	struct curve curve = {0};
	double ratio[NARROWS];
	gw_status status = gw_meta_read(config, &meta);
	if (status != GW_OK)
		return status;
	if (meta->num_parts == 1)
		status =
			gw_fail(GW_INVALID, "%s: the graph is in one part, and no row is remote: partition it", config);
	if (status == GW_OK)
		status = curve_open(plan, config, meta, &curve);
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++)
		status = add_part(&curve, plan, steps, p);
	for (size_t i = 0; i < NARROWS; i++)
		ratio[i] = narrow_ratio(plan, meta, narrows[i].dtype);
	if (status == GW_OK && json)
		curve_print_json(&curve, ratio);
	else if (status == GW_OK)
		curve_print_text(&curve, ratio);
	curve_close(&curve);
	gw_meta_destroy(meta);
	return status;
}
