/* All combinations of the means, and the ones that let the fewest bytes travel within a memory.
 *
 *   for each part, set of replicas and look-ahead: counts -> for each store and size of kept rows: bytes fetched,
 * memory
 *     -> summed over the parts; the memory is that of the part that needs most
 *
 * Replicas, look-ahead and kept rows are counted together, since each takes rows from the others. Lists of other parts
 * take nothing from them. */
#include <string.h>

#include "core/files/disk.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "tools/means/means.h"

#define SETS   (GW_MEANS_SHARES + 1) /* of replicas: none, and by share */
#define CACHES (GW_MEANS_SHARES + 1) /* sizes of kept rows: none, and by share of all rows */

struct combination {
	double rows;      /* bytes of all batches */
	double memory[2]; /* of the part that needs most: without the lists of other parts, with them */
};

struct gw_means_fitting {
	const struct gw_means_graph *graph;
	struct combination of[GW_MEANS_STORES][SETS][GW_MEANS_AHEADS][CACHES];
	double alone[GW_MEANS_STORES], on_disk[GW_MEANS_STORES]; /* memory of the largest part */
};

static uint64_t cache_bytes(const struct gw_means_graph *graph, uint32_t store, uint32_t cache)
{
	return cache ? (uint64_t)(gw_means_shares[cache - 1] * (double)gw_means_all_bytes(graph, store)) : 0;
}

gw_status gw_means_fitting_create(const struct gw_means_graph *graph, struct gw_means_fitting **out)
{
	struct gw_means_fitting *fitting = gw_calloc(1, sizeof(*fitting));
	*out = fitting;
	if (!fitting)
		return GW_NO_MEMORY;
	fitting->graph = graph;
	return GW_OK;
}

void gw_means_fitting_free(struct gw_means_fitting *fitting)
{
	gw_free(fitting);
}

static const struct gw_means_fetch *fetch_of(const struct gw_means_graph *graph, const char *key)
{
	for (uint32_t f = 0; f < graph->fetch_count; f++) {
		if (strcmp(graph->fetches[f].array->key, key) == 0)
			return &graph->fetches[f];
	}
	return NULL;
}

/* The memory of a part's arrays, without replicas. */
static double part_bytes(const struct gw_means_graph *graph, uint32_t part, uint32_t store)
{
	const struct gw_graph_meta *meta = graph->hot.meta;
	double bytes = 0;
	for (uint32_t a = 0; a < meta->parts[part].count; a++) {
		const struct gw_array_meta *array = &meta->parts[part].arrays[a];
		const struct gw_means_fetch *fetch = fetch_of(graph, array->key);
		if (gw_replica_key(meta, array->key))
			continue;
		const uint64_t of_array =
			fetch ? array->shape[0] * fetch->row_bytes[store] : gw_array_meta_bytes(array);
		bytes += (double)((of_array + GW_ARENA_ALIGN - 1) & ~(GW_ARENA_ALIGN - 1));
	}
	return bytes;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

static void add_alone(struct gw_means_fitting *fitting, const struct gw_means_batches *batches, uint32_t store)
{
	const double alone = part_bytes(fitting->graph, batches->part, store);
	fitting->alone[store] = most(fitting->alone[store], alone);
	fitting->on_disk[store] =
		most(fitting->on_disk[store], alone - gw_means_row_bytes(fitting->graph, batches->part, store));
}

static gw_status add_caches(struct gw_means_fitting *fitting, struct gw_means_ahead *ahead,
			    const struct gw_means_batches *batches, uint32_t store, double replicas,
			    struct combination *out)
{
	const struct gw_means_graph *graph = fitting->graph;
	const double host = part_bytes(graph, batches->part, store) + replicas;
	const double lists = gw_means_other_lists(graph->hot.meta, batches->part);
	gw_status status = GW_OK;
	for (uint32_t c = 0; c < CACHES && status == GW_OK; c++) {
		struct gw_means_fetched fetched = {0};
		status = gw_means_ahead_fetched(ahead, store, cache_bytes(graph, store, c), &fetched);
		const double memory = host + fetched.window + fetched.cache;
		out[c].rows += fetched.bytes;
		out[c].memory[0] = most(out[c].memory[0], memory);
		out[c].memory[1] = most(out[c].memory[1], memory + lists);
	}
	return status;
}

gw_status gw_means_fitting_add(struct gw_means_fitting *fitting, struct gw_means_ahead *ahead,
			       const struct gw_means_batches *batches, uint32_t number,
			       struct gw_replica_block *const *near, const double *replicas)
{
	gw_status status = GW_OK;
	for (uint32_t a = 0; a < GW_MEANS_AHEADS && status == GW_OK; a++) {
		status = gw_means_ahead_count(ahead, batches, near, gw_means_aheads[a]);
		for (uint32_t store = 0; store < GW_MEANS_STORES && status == GW_OK; store++) {
			add_alone(fitting, batches, store);
			status = add_caches(fitting, ahead, batches, store, replicas[store],
					    fitting->of[store][number][a]);
		}
	}
	return status;
}

/* --- The choice. --- */

struct fit_choice {
	const struct combination *best;
	uint32_t set, ahead, cache, lists;
	double travels;
};

static void look_at(const struct combination *one, uint32_t set, uint32_t ahead, uint32_t cache, double memory,
		    double samples, struct fit_choice *choice)
{
	samples *= cache ? 2 : 1; /* the epoch is sampled once to count */
	for (uint32_t lists = 0; lists < 2; lists++) {
		const double travels = one->rows + (lists ? 0 : samples);
		const bool less =
			!choice->best || travels < choice->travels ||
			(travels == choice->travels && one->memory[lists] < choice->best->memory[choice->lists]);
		if (one->memory[lists] <= memory && less)
			*choice = (struct fit_choice){one, set, ahead, cache, lists, travels};
	}
}

static void best_of(const struct gw_means_fitting *fitting, const struct gw_means_table *table, uint32_t store,
		    struct gw_means_fit *out)
{
	const struct gw_means_row *none = &table->rows[0], *disk = none;
	const double batches = table->batches ? (double)table->batches : 1, memory = (double)table->memory;
	struct fit_choice choice = {0};
	while (strcmp(disk->means, "disk") != 0)
		disk++;
	for (uint32_t s = 0; s < SETS; s++) {
		for (uint32_t a = 0; a < GW_MEANS_AHEADS; a++) {
			for (uint32_t c = 0; c < CACHES; c++)
				look_at(&fitting->of[store][s][a][c], s, a, c, memory, none->samples * batches,
					&choice);
		}
	}
	*out = (struct gw_means_fit){.store = gw_means_stores[store].name, .memory = fitting->alone[store]};
	if (choice.best) {
		out->fits = true;
		out->share = choice.set ? gw_means_shares[choice.set - 1] : 0;
		out->lookahead = gw_means_aheads[choice.ahead];
		out->cache_bytes = cache_bytes(fitting->graph, store, choice.cache);
		out->lists = choice.lists;
		out->memory = choice.best->memory[choice.lists];
		out->rows = choice.best->rows / batches;
		out->samples = (choice.travels - choice.best->rows) / batches;
	} else if (fitting->on_disk[store] + (double)GW_DISK_CACHE_MIN <= memory) {
		out->fits = out->on_disk = true;
		out->lookahead = 1;
		out->memory = fitting->on_disk[store];
		out->rows = fitting->of[store][0][0][0].rows / batches;
		out->samples = none->samples;
		out->disk_blocks = store ? 0 : disk->disk_blocks;
	}
}

void gw_means_fitting_best(const struct gw_means_fitting *fitting, const struct gw_means_table *table,
			   struct gw_means_fit *out)
{
	for (uint32_t store = 0; store < GW_MEANS_STORES; store++)
		best_of(fitting, table, store, &out[store]);
}
