/* Counts the means one by one, part after part. A new means is a call of add_row. */
#include <math.h>
#include <string.h>

#include "core/graph/part_lists.h"
#include "core/memory/alloc.h"
#include "tools/means/means.h"

const double gw_means_shares[GW_MEANS_SHARES] = {0.01, 0.025, 0.05, 0.125, 0.25};
const uint32_t gw_means_aheads[GW_MEANS_AHEADS] = {1, 2, 4, 8, 16};

/* How rows to replicate are chosen. The last by the counted batches themselves: no choice of as many rows saves more.
 */
enum ranking { BY_DEGREE, BY_VIP, BEST, RANKINGS };
static const char *const rankings[RANKINGS] = {"degree", "vip", "best"};

struct means {
	const struct gw_means_plan *plan;
	struct gw_means_graph graph;
	struct gw_means_client *client;
	struct gw_means_batches batches;
	struct gw_means_ahead *ahead;
	struct gw_means_fitting *fitting;
	struct gw_replica_block **near; /* [ntypes] */
	double *counts, *hot;           /* [gw_hot_nodes] */
	double none;                    /* bytes of remote rows of the part's batches */
	struct gw_means_table *table;
	uint32_t at; /* the next row of the table */
};

static gw_status means_open(struct means *means, const struct gw_graph_meta *meta)
{
	struct gw_means_graph *graph = &means->graph;
	gw_status status = gw_means_graph_open(means->plan, meta, graph);
	if (status != GW_OK)
		return status;
	const uint64_t nodes = gw_hot_nodes(&graph->hot);
	means->near = gw_calloc(meta->num_ntypes, sizeof(struct gw_replica_block *));
	means->counts = gw_malloc(nodes * sizeof(double) + 1);
	means->hot = gw_malloc(nodes * sizeof(double) + 1);
	if (!means->near || !means->counts || !means->hot)
		return GW_NO_MEMORY;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		if (graph->cost[t] == 0)
			continue;
		means->near[t] = gw_calloc(gw_replica_blocks(meta->ntypes[t].count), sizeof(**means->near));
		if (!means->near[t])
			return GW_NO_MEMORY;
	}
	status = gw_means_client_open(graph, &means->client);
	if (status == GW_OK)
		status = gw_means_ahead_create(graph, &means->ahead);
	return status == GW_OK && means->plan->memory ? gw_means_fitting_create(graph, &means->fitting) : status;
}

static void means_close(struct means *means)
{
	struct gw_means_graph *graph = &means->graph;
	gw_means_fitting_free(means->fitting);
	gw_means_ahead_free(means->ahead);
	gw_means_client_close(means->client);
	for (uint32_t t = 0; means->near && t < graph->hot.meta->num_ntypes; t++)
		gw_free(means->near[t]);
	if (graph->hot.meta)
		gw_means_batches_free(graph, &means->batches);
	gw_free(means->near);
	gw_free(means->counts);
	gw_free(means->hot);
	gw_means_graph_close(graph);
}

/* --- Rows of the table. --- */

/* Of one part. memory: of its host. rows, blocks: of all its batches. */
static void add_row(struct means *means, struct gw_means_row add)
{
	struct gw_means_table *table = means->table;
	struct gw_means_row *row = &table->rows[means->at++];
	if (means->at > table->count) {
		table->count = means->at;
		*row = add;
		return;
	}
	row->memory = add.memory > row->memory ? add.memory : row->memory;
	row->rows += add.rows;
	row->samples += add.samples;
	row->disk_blocks += add.disk_blocks;
}

/* Replicas by each ranking, at one share. */
static gw_status choose_near(struct means *means, double share)
{
	const struct gw_graph_meta *meta = means->graph.hot.meta;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		if (means->near[t])
			memset(means->near[t], 0, gw_replica_blocks(meta->ntypes[t].count) * sizeof(**means->near));
	}
	return gw_hot_choose(&means->graph.hot, means->hot, means->graph.cost, share, 0, means->near);
}

/* Bytes of the replicas of the chosen rows and of their indexes; *left: bytes of the batches' rows that have none. */
static double near_bytes(const struct means *means, uint32_t store, double *left)
{
	const struct gw_means_graph *graph = &means->graph;
	double bytes = 0;
	*left = 0;
	for (uint32_t f = 0; f < graph->fetch_count; f++) {
		const uint32_t t = graph->fetches[f].ntype;
		const double *counts = means->counts + graph->hot.first[t],
			     row_bytes = (double)graph->fetches[f].row_bytes[store];
		for (uint64_t i = 0, row; i < graph->hot.meta->ntypes[t].count; i++) {
			const bool near = gw_replica_find(means->near[t], i, &row);
			bytes += near ? row_bytes : 0;
			*left += near ? 0 : counts[i] * row_bytes;
		}
	}
	for (uint32_t t = 0; t < graph->hot.meta->num_ntypes; t++) {
		if (means->near[t])
			bytes += (double)(gw_replica_blocks(graph->hot.meta->ntypes[t].count) * sizeof(**means->near));
	}
	return bytes;
}

static gw_status rank(struct means *means, enum ranking ranking)
{
	const struct gw_hot_graph *hot = &means->graph.hot;
	gw_status status = GW_OK;
	if (ranking == BY_DEGREE)
		status = gw_hot_degree(hot, means->hot);
	else if (ranking == BY_VIP)
		status = gw_hot_vip(hot, means->batches.part, means->hot);
	else
		memcpy(means->hot, means->counts, gw_hot_nodes(hot) * sizeof(*means->hot));
	if (status == GW_OK)
		gw_hot_drop_own(hot, means->batches.part, means->hot);
	return status;
}

static gw_status add_replicas(struct means *means, enum ranking ranking)
{
	gw_status status = rank(means, ranking);
	for (uint32_t s = 0; s < GW_MEANS_SHARES && status == GW_OK; s++) {
		double memory[GW_MEANS_STORES], left, other;
		status = choose_near(means, gw_means_shares[s]);
		if (status != GW_OK)
			break;
		memory[0] = near_bytes(means, 0, &left);
		for (uint32_t i = 1; i < GW_MEANS_STORES; i++)
			memory[i] = near_bytes(means, i, &other);
		add_row(means, (struct gw_means_row){.means = "replicas",
						     .by = rankings[ranking],
						     .value = gw_means_shares[s],
						     .memory = memory[0],
						     .rows = left,
						     .samples = (double)means->batches.sampled});
		if (means->fitting && ranking == BY_VIP)
			status = gw_means_fitting_add(means->fitting, means->ahead, &means->batches, s + 1, means->near,
						      memory);
	}
	return status;
}

static void add_narrow(struct means *means)
{
	const struct gw_means_graph *graph = &means->graph;
	for (uint32_t s = 1; s < GW_MEANS_STORES; s++) {
		double rows = 0;
		for (uint32_t f = 0; f < graph->fetch_count; f++) {
			uint64_t count;
			gw_means_ids(&means->batches, graph->fetches[f].ntype, &count);
			rows += (double)(count * graph->fetches[f].row_bytes[s]);
		}
		add_row(means, (struct gw_means_row){.means = "narrow",
						     .by = gw_means_stores[s].name,
						     .memory = gw_means_row_bytes(graph, means->batches.part, s) -
							       gw_means_row_bytes(graph, means->batches.part, 0),
						     .rows = rows,
						     .samples = (double)means->batches.sampled});
	}
}

static gw_status add_ahead(struct means *means)
{
	gw_status status = GW_OK;
	for (uint32_t a = 1; a < GW_MEANS_AHEADS && status == GW_OK; a++) {
		struct gw_means_fetched fetched = {0};
		status = gw_means_ahead_count(means->ahead, &means->batches, NULL, gw_means_aheads[a]);
		if (status == GW_OK)
			status = gw_means_ahead_fetched(means->ahead, 0, 0, &fetched);
		add_row(means, (struct gw_means_row){.means = "lookahead",
						     .value = gw_means_aheads[a],
						     .memory = fetched.window,
						     .rows = fetched.bytes,
						     .samples = (double)means->batches.sampled});
	}
	return status;
}

/* The epoch is sampled twice: once to count. */
static gw_status add_cached(struct means *means)
{
	const double all = (double)gw_means_all_bytes(&means->graph, 0);
	gw_status status = gw_means_ahead_count(means->ahead, &means->batches, NULL, 1);
	for (uint32_t s = 0; s < GW_MEANS_SHARES && status == GW_OK; s++) {
		const uint64_t bytes = (uint64_t)(all * gw_means_shares[s]);
		struct gw_means_fetched fetched = {0};
		status = gw_means_ahead_fetched(means->ahead, 0, bytes, &fetched);
		add_row(means, (struct gw_means_row){.means = "cache",
						     .value = (double)bytes,
						     .memory = fetched.cache,
						     .rows = fetched.bytes,
						     .samples = 2 * (double)means->batches.sampled});
	}
	return status;
}

/* --- A part. --- */

static void sum_counts(struct means *means)
{
	const struct gw_means_graph *graph = &means->graph;
	memset(means->counts, 0, gw_hot_nodes(&graph->hot) * sizeof(*means->counts));
	means->none = 0;
	for (uint32_t t = 0; t < graph->hot.meta->num_ntypes; t++) {
		uint64_t count;
		const int64_t *ids = gw_means_ids(&means->batches, t, &count);
		for (uint64_t i = 0; graph->cost[t] && i < count; i++)
			means->counts[graph->hot.first[t] + (uint64_t)ids[i]]++;
		means->none += graph->cost[t] ? (double)(count * graph->cost[t]) : 0;
	}
}

static gw_status add_part(struct means *means, uint32_t part)
{
	const struct gw_graph_meta *meta = means->graph.hot.meta;
	const struct gw_means_batches *batches = &means->batches;
	gw_status status = gw_means_batches_run(means->client, part, means->plan->steps, means->plan->trainers.seed,
						&means->batches);
	if (status != GW_OK)
		return status;
	sum_counts(means);
	means->at = 0;
	means->table->batches += batches->count;
	const double sampled = (double)batches->sampled;
	add_row(means, (struct gw_means_row){.means = "none", .rows = means->none, .samples = sampled});
	if (means->fitting) {
		const double none[GW_MEANS_STORES] = {0};
		status = gw_means_fitting_add(means->fitting, means->ahead, batches, 0, NULL, none);
	}
	for (uint32_t r = 0; r < RANKINGS && status == GW_OK; r++)
		status = add_replicas(means, r);
	if (status != GW_OK)
		return status;
	add_narrow(means);
	status = add_ahead(means);
	if (status == GW_OK)
		status = add_cached(means);
	add_row(means, (struct gw_means_row){
			       .means = "lists", .memory = gw_means_other_lists(meta, part), .rows = means->none});
	add_row(means, (struct gw_means_row){.means = "disk",
					     .memory = 0 - gw_means_row_bytes(&means->graph, part, 0),
					     .rows = means->none,
					     .samples = sampled,
					     .disk_blocks = (double)batches->disk_blocks});
	/* Clients draw from such lists themselves, by other requests. */
	const double lists = gw_means_left_on_disk(meta, part, gw_array_is_of_edges),
		     offsets = gw_means_left_on_disk(meta, part, gw_array_is_of_offsets);
	add_row(means, (struct gw_means_row){.means = "disk_lists",
					     .memory = 0 - lists, /* not -0 */
					     .rows = means->none,
					     .samples = NAN,
					     .disk_blocks = (double)batches->list_blocks});
	add_row(means, (struct gw_means_row){.means = "disk_offsets",
					     .memory = 0 - lists - offsets,
					     .rows = means->none,
					     .samples = NAN,
					     .disk_blocks = (double)(batches->list_blocks + batches->offset_blocks)});
	return status;
}

static void for_each_batch(struct gw_means_table *table)
{
	const double batches = table->batches ? (double)table->batches : 1;
	for (uint32_t i = 0; i < table->count; i++) {
		table->rows[i].rows /= batches;
		table->rows[i].samples /= batches;
		table->rows[i].disk_blocks /= batches;
	}
}

gw_status gw_means_count(const struct gw_means_plan *plan, struct gw_means_table *out)
{
	struct gw_graph_meta *meta = NULL;
	struct means means = {.plan = plan, .table = out};
	*out = (struct gw_means_table){.batch_size = plan->trainers.batch_size, .memory = plan->memory};
	gw_status status = gw_meta_read(plan->config, &meta);
	if (status != GW_OK)
		return status;
	out->parts = meta->num_parts;
	if (meta->num_parts == 1)
		status = gw_fail(GW_INVALID, "%s: the graph is in one part, and no row is remote: partition it",
				 plan->config);
	if (status == GW_OK)
		status = means_open(&means, meta);
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++)
		status = add_part(&means, p);
	for_each_batch(out);
	if (status == GW_OK && means.fitting) {
		gw_means_fitting_best(means.fitting, out, out->fits);
		out->fit_count = GW_MEANS_STORES;
	}
	means_close(&means);
	gw_meta_destroy(meta);
	return status;
}
